"""What traceaf-report says of a trace, and the conditions that every trace meets."""

import json

from .case import Condition
from .context import CheckFailed


def traces_in(folder):
    """Traces by path; a tail beside one is not a trace of its own."""
    return sorted(p for p in folder.iterdir() if p.is_file() and not p.name.endswith(".tail"))


def report(context, verb, trace, *options, status=0):
    """Stdout of `traceaf-report VERB TRACE`; its exit status must be `status`."""
    done = context.run([context.report_program, verb, trace, *options], timeout=300)
    if done.status != status:
        raise CheckFailed(
            f"traceaf-report {verb} {trace.name}: exit status {done.status}, expected {status}\n"
            + (done.stdout + done.stderr).decode(errors="replace")[-2000:]
        )
    return done.stdout.decode()


def summary(context, trace, status=0):
    text = report(context, "summary", trace, "--format=json", status=status)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise CheckFailed(f"{trace.name}: summary --format=json is no JSON: {error}") from error


def check_invariants(numbers, name):
    """Nothing lost, no address live twice, and the books balance."""
    for key in ("lost_events", "unknown_frees", "double_births", "unknown_types"):
        if numbers[key] != 0:
            raise CheckFailed(f"{name}: {key} is {numbers[key]}, expected 0")
    for key in ("nested_events", "lost_threads", "lost_rows", "stuck_threads", "output_errors"):
        if numbers["counters"][key] != 0:
            raise CheckFailed(f"{name}: the counter {key} is {numbers['counters'][key]}, expected 0")
    if numbers["peak_bytes"] < numbers["live_bytes"]:
        raise CheckFailed(f"{name}: peak of {numbers['peak_bytes']} bytes below {numbers['live_bytes']} live at the end")
    # What was freed while recording was switched off is in no trace.
    if numbers["counters"]["toggles"] != 0:
        return
    born = numbers["allocations"] + numbers["inherited_blocks"]
    freed = numbers["frees"] - numbers["frees_before"]
    if numbers["live_blocks"] != born - freed:
        raise CheckFailed(f"{name}: {numbers['live_blocks']} blocks live, but {born} born and {freed} freed")


def check_conditions(numbers, conditions, name):
    """All conditions, not only the first that fails, so that one run shows the whole difference."""
    wrong = []
    for condition in conditions:
        if condition.key not in numbers:
            wrong.append(f"{name}: the summary has no {condition.key}")
        elif not condition.holds(numbers[condition.key]):
            wrong.append(f"{name}: {condition.key} is {numbers[condition.key]}, expected {condition}")
    if wrong:
        raise CheckFailed("\n".join(wrong))


def read_conditions(path):
    return [Condition.parse(line) for line in path.read_text().splitlines() if line.strip()]
