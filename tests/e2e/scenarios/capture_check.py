"""Runs a program under the library that compares each capture with a plain walk, and each N-th with libunwind.

env TRACEAF_CHECK_LIBUNWIND: N. env BEHIND: a library of tests/e2e/libraries that is preloaded in each run, behind ours.
`expect` has conditions on the totals of all processes, so that a check which met nothing does not pass.
"""

from harness import report
from harness.case import Condition
from harness.context import CheckFailed, Unsound
from harness.course import check_needs, run_once

MUST_BE_ZERO = ("different", "libunwind_different", "unchecked")


def run(context, case):
    check_needs(case.needs)
    library = context.library
    if "break" not in library.name:
        library = context.build / "lib" / "libtraceaf-check-capture.so"
    behind = case.env.pop("BEHIND", None)
    others = [str(context.build / "e2e" / behind)] if behind else []
    for path in (library, *others):
        if not context.build.joinpath(path).exists():
            raise Unsound(f"{path} is not built")
    totals_file = context.out.parent / f"{case.name}.totals"
    totals_file.unlink(missing_ok=True)

    plain, plain_files = run_once(context, case, {"LD_PRELOAD": ":".join(others)} if others else None)
    recorded, recorded_files = run_once(
        context,
        case,
        {
            "LD_PRELOAD": ":".join([str(library), *others]),
            "TRACEALLOCFREE": f"1,guard=1,stacks=both,out={context.out}/%e.%p.%n.traf",
            "TRACEAF_CHECK_OUT": str(totals_file),
        },
    )
    for path in report.traces_in(context.out):
        path.unlink()
    for what in ("status", "stdout", "stderr"):
        if getattr(plain, what) != getattr(recorded, what):
            raise CheckFailed(f"{what} {getattr(recorded, what)!r}, plain {getattr(plain, what)!r}")
    if plain_files != recorded_files:
        raise CheckFailed("files in the working directory differ from the plain run")

    lines = totals_file.read_text().splitlines() if totals_file.exists() else []
    totals = sum_of(lines)
    print(f"{case.name}: {len(lines)} processes, " + ", ".join(f"{key} {value}" for key, value in totals.items()))
    for key in MUST_BE_ZERO:
        if totals.get(key, 1) != 0:
            first = [line[line.index(" first=") :] for line in lines if " first=" in line]
            raise CheckFailed(f"{key} is {totals.get(key)}, expected 0\n" + "\n".join(first))
    report.check_conditions(totals, map(Condition.parse, case.expect), case.name)


def sum_of(lines):
    """Lines of key=value; what follows ` first=` describes a difference."""
    totals = {}
    for line in lines:
        for word in line.partition(" first=")[0].split():
            key, _, value = word.partition("=")
            if key != "pid":
                totals[key] = totals.get(key, 0) + int(value)
    return totals
