"""The usual course of a case: twice plain, once recorded, compare, then check every trace."""

import os
import pathlib
import subprocess

from . import compare, report
from .case import Condition
from .context import CheckFailed, Skipped, Unsound


def check_needs(needs):
    for need in needs:
        if need.startswith("cmd:"):
            if subprocess.run(["which", need[4:]], capture_output=True, check=False).returncode != 0:
                raise Skipped(f"{need[4:]} is not installed")
        elif need == "root":
            if os.geteuid() != 0:
                raise Skipped("must be root")
        elif need == "tmpfs":
            probe = "mount -t tmpfs none /mnt"
            if subprocess.run(["unshare", "-m", "sh", "-c", probe], capture_output=True, check=False).returncode != 0:
                raise Skipped("a tmpfs cannot be mounted in a mount namespace of its own")
        elif need == "userns":
            if subprocess.run(["unshare", "-U", "true"], capture_output=True, check=False).returncode != 0:
                raise Skipped("user namespaces are not allowed")
        else:
            raise Unsound(f"the case needs {need!r}, which the runner does not know")


def recorded_environment(context, case):
    """LD_PRELOAD and TRACEALLOCFREE of the recorded run."""
    env = {"LD_PRELOAD": str(context.library)}
    value = case.trace_env
    if value is None:
        value = "1,guard=1,out={out}/%e.%p.%n.traf"
    if case.options:
        value += "," + case.options
    if value:
        env["TRACEALLOCFREE"] = value.replace("{out}", str(context.out))
    return env


def command_of(context, case, preload):
    """The command line; the preload begins at the program itself, not at its wrapper."""
    arguments = case.full_args if context.full and case.full_args is not None else case.args
    places = {"{out}": str(context.out), "{cwd}": str(context.cwd), "{e2e}": str(context.build / "e2e")}
    words = [context.program(case.program), *arguments]
    if preload:
        words = ["env", *(f"{key}={value}" for key, value in preload.items()), *words]
    words = [*case.wrapper, *words]
    for place, path in places.items():
        words = [str(word).replace(place, path) for word in words]
    return words


def run_once(context, case, preload):
    context.fresh_folders()
    for name, text in case.files.items():
        (context.cwd / name).write_text(text)
    env = {key: str(value).replace("{e2e}", str(context.build / "e2e")) for key, value in case.env.items()}
    outcome = context.run(command_of(context, case, preload), env=env, timeout=case.timeout)
    return outcome, compare.files_of(context.cwd)


def identity(trace):
    """(pid, image) from a name made by the pattern %e.%p.%n.traf."""
    parts = trace.name.split(".")
    return int(parts[-3]), int(parts[-2])


def expectations(context, traces):
    """Trace -> conditions that its process wrote to expect.PID or, one a process image, expect.PID.NUMBER."""
    by_pid = {}
    for trace in traces:
        by_pid.setdefault(identity(trace)[0], []).append(trace)
    found = {}
    for path in sorted(context.expect_file.parent.glob("expect.*")):
        numbers = [int(part) for part in path.name.split(".")[1:]]
        images = sorted(by_pid.get(numbers[0], []), key=identity)
        index = numbers[1] if len(numbers) > 1 else 0
        if index >= len(images):
            raise CheckFailed(f"image {index} of process {numbers[0]} left no trace; there are {[t.name for t in traces]}")
        found[images[index]] = report.read_conditions(path)
    return found


def check_traces(context, case):
    """Number, validity, completeness and numbers of the traces."""
    traces = report.traces_in(context.out)
    if len(traces) != case.traces:
        raise CheckFailed(f"{len(traces)} traces, expected {case.traces}: {[t.name for t in traces]}")
    tails = [p.name for p in context.out.iterdir() if p.name.endswith(".tail")]
    if case.complete == "yes" and tails:
        raise CheckFailed(f"left behind: {tails}")
    summaries = {}
    for trace in traces:
        if case.complete == "yes":
            report.report(context, "validate", trace)
        summaries[trace] = numbers = report.summary(context, trace)
        if case.complete != "any" and numbers["complete"] != (case.complete == "yes"):
            raise CheckFailed(f"{trace.name}: complete is {numbers['complete']}, expected {case.complete}")
        if not case.lossy:
            report.check_invariants(numbers, trace.name)
    if traces and case.trace_env is None:
        for trace, conditions in expectations(context, traces).items():
            report.check_conditions(summaries[trace], conditions, trace.name)
    if case.expect:
        first = min(traces, key=lambda t: t.stat().st_mtime) if case.trace_env is not None else min(traces, key=identity)
        report.check_conditions(summaries[first], map(Condition.parse, case.expect), first.name)


def run_case(context, case):
    """Raises CheckFailed or Skipped; returning means the case passed."""
    check_needs(case.needs)
    plain, plain_files = run_once(context, case, None)
    again, again_files = run_once(context, case, None)
    try:
        compare.check_same(plain, again)
        compare.check_same_files(plain_files, again_files)
    except CheckFailed as error:
        raise Unsound(f"two plain runs differ: {error}") from error
    remove_outputs(context)
    recorded, recorded_files = run_once(context, case, recorded_environment(context, case))
    compare.check_same(plain, recorded)
    compare.check_stderr(plain, recorded, case.stderr)
    compare.check_same_files(plain_files, recorded_files)
    check_traces(context, case)


def remove_outputs(context):
    """A wrapper may have copied something into the folder of traces in a plain run."""
    for path in context.out.iterdir():
        if not pathlib.Path(path).is_dir():
            path.unlink()
