"""traceaf record: passes status, signal and output on, and says one clear sentence where nothing can be recorded."""

import json
import signal

from harness import report
from harness.context import CheckFailed


def run(context, case):
    records(context)
    passes_on(context, ["ends", "_exit"], 4)
    passes_on(context, ["ends", "sigterm"], 128 + signal.SIGTERM)
    nothing_to_record(context, case)
    wrong_usage(context)


def launch(context, *command):
    trace = context.out / "launcher.%p.%n.traf"
    return context.run([context.launcher, "record", f"--out={trace}", "--", *command])


def launch_own(context, words):
    return launch(context, context.program(words[0]), *words[1:])


def records(context):
    done = launch_own(context, ["ends", "return"])
    traces = report.traces_in(context.out)
    if done.status != 3 or done.stdout or len(traces) != 1:
        raise CheckFailed(f"status {done.status}, stdout {done.stdout!r}, {len(traces)} traces, stderr {done.stderr!r}")
    numbers = json.loads(report.report(context, "summary", traces[0], "--format=json"))
    if numbers["allocations"] != 1000:
        raise CheckFailed(f"{numbers['allocations']} allocations, expected 1000")
    if traces[0].name.encode() not in done.stderr:
        raise CheckFailed(f"the closing paragraph does not name the trace: {done.stderr!r}")


def passes_on(context, words, status):
    """A signal may be passed on as such or as a shell would tell it."""
    done = launch_own(context, words)
    if done.status not in (status, 128 - status):
        raise CheckFailed(f"{words}: status {done.status}, expected {status}; stderr {done.stderr!r}")


def nothing_to_record(context, case):
    before = report.traces_in(context.out)
    done = launch_own(context, [case.program])
    said = done.stderr.decode().splitlines()
    if done.status != 9 or done.stdout != b"static\n":
        raise CheckFailed(f"static program: status {done.status}, stdout {done.stdout!r}")
    if len(said) != 1 or "static" not in said[0]:
        raise CheckFailed(f"static program: expected one sentence that says so, found {said}")
    if report.traces_in(context.out) != before:
        raise CheckFailed("static program: a trace appeared")


def wrong_usage(context):
    """`record` answers with 125, since 2 may be the command's own status."""
    for command, status in ((["record"], 125), (["record", "--depth=many", "--", "true"], 125), (["on", "nobody"], 2)):
        done = context.run([context.launcher, *command])
        if done.status != status or not done.stderr:
            raise CheckFailed(f"traceaf {' '.join(command)}: status {done.status}, expected {status} and a word on stderr")
    done = launch(context, "/nonexistent/program")
    if done.status != 127:
        raise CheckFailed(f"a program that does not exist: status {done.status}, expected 127")
