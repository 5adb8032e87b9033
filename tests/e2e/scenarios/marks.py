"""Frames that the report must mark: `calls_generated`, which is behind code without unwind tables, and no other."""

import json

from harness import report
from harness.context import CheckFailed

MARK = "[guessed]"


def run(context, case):
    done = context.run(
        [context.program(case.program)],
        env={
            "LD_PRELOAD": str(context.library),
            "TRACEALLOCFREE": f"1,guard=1,out={context.out}/%e.%p.%n.traf",
        },
    )
    if done.status != 0:
        raise CheckFailed(f"status {done.status}: {done.stderr.decode(errors='replace')}")
    (trace,) = report.traces_in(context.out)
    report.report(context, "validate", trace)

    leaks = json.loads(report.report(context, "leaks", trace, "--format=json"))
    stacks = [site["stack"] for site in leaks["sites"] if site["live_bytes"] == 5 * 48]
    marked = sorted([frame["function"] for frame in stack if frame.get("guessed")] for stack in stacks)
    if marked != [[], ["calls_generated"]]:
        raise CheckFailed(f"two sites, one with calls_generated guessed, expected; found {marked} in {leaks['sites']}")

    text = report.report(context, "leaks", trace)
    lines = [line for line in text.splitlines() if line.endswith(MARK)]
    if len(lines) != 1 or "calls_generated" not in lines[0] or text.count(f"\n{MARK}: ") != 1:
        raise CheckFailed(f"expected calls_generated marked and one line of explanation:\n{text}")
