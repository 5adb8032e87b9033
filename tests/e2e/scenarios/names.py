"""The name of the trace: the default in the working directory, and never over a file that exists."""

import hashlib

from harness import report
from harness.context import CheckFailed


def run(context, case):
    program = context.program(case.program)
    preload = {"LD_PRELOAD": str(context.library)}

    done = context.run([program, "return"], env={**preload, "TRACEALLOCFREE": "1"})
    made = report.traces_in(context.cwd)
    if done.status != 3 or len(made) != 1:
        raise CheckFailed(f"default name: status {done.status}, files {[path.name for path in made]}")
    pid = report.summary(context, made[0])["pid"]
    if made[0].name != f"traceaf.ends.{pid}.traf":
        raise CheckFailed(f"default name: {made[0].name}, expected traceaf.ends.{pid}.traf")

    fixed = context.out / "same.traf"
    fixed.write_bytes(b"not ours")
    for number in range(3):
        context.run([program, "return"], env={**preload, "TRACEALLOCFREE": f"1,guard=1,out={fixed}"})
        traces = [path for path in report.traces_in(context.out) if path != fixed]
        if len(traces) != number + 1:
            raise CheckFailed(f"{number + 1} runs to one name: {[path.name for path in traces]}")
    if hashlib.sha256(fixed.read_bytes()).hexdigest() != hashlib.sha256(b"not ours").hexdigest():
        raise CheckFailed("a file that existed was overwritten")
    fixed.unlink()
    pids = {report.summary(context, trace)["pid"] for trace in traces}
    if len(pids) != 3:
        raise CheckFailed(f"three runs, but the traces are of {len(pids)} processes")
