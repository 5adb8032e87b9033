"""kill -9 at random moments: each event that was done is in the report, none that was not begun, and the end is missing."""

import mmap
import os
import random
import signal
import struct
import subprocess
import time

from harness import report
from harness.context import CheckFailed
from harness.course import recorded_environment

ROUNDS, FULL_ROUNDS = 25, 200
LONGEST = 0.25  # seconds from the first event to the kill
# Different courses of the flusher: hardly ever awake, at its usual pace, and closing generations all the time.
OPTIONS = ("generation=3600", "", "generation=0.01", "generation_size=64K,compress=none")


def run(context, case):
    seed = int(os.environ.get("E2E_SEED", time.time_ns()))
    print(f"E2E_SEED={seed}")
    moments = random.Random(seed)
    for number in range(FULL_ROUNDS if context.full else ROUNDS):
        case.options = OPTIONS[number % len(OPTIONS)]
        delay = moments.uniform(0, LONGEST)
        try:
            one_round(context, case, delay)
        except CheckFailed as error:
            raise CheckFailed(f"round {number}, options {case.options!r}, killed after {delay:.6f} s: {error}") from error
        for path in context.out.iterdir():
            path.unlink()


def one_round(context, case, delay):
    page = context.cwd / "page"
    page.write_bytes(bytes(4096))
    env = context.environment(recorded_environment(context, case))
    with open(page, "r+b") as file, mmap.mmap(file.fileno(), 4096) as counts:
        victim = subprocess.Popen([context.program(case.program), page], env=env, cwd=context.cwd, stderr=subprocess.PIPE)
        wait_for_first_event(victim, counts)
        time.sleep(delay)
        victim.send_signal(signal.SIGKILL)
        _, errors = victim.communicate()
        births_begun, births_done, deaths_begun, deaths_done = struct.unpack_from("4q", counts)
    if victim.returncode != -signal.SIGKILL or errors:
        raise CheckFailed(f"status {victim.returncode}, stderr {errors!r}")
    traces = report.traces_in(context.out)
    if len(traces) != 1:
        raise CheckFailed(f"{len(traces)} traces: {[path.name for path in traces]}")
    numbers = report.summary(context, traces[0])
    if numbers["complete"]:
        raise CheckFailed("the report says that the trace is complete")
    if numbers["lost_events"] or numbers["unknown_frees"]:
        raise CheckFailed(f"{numbers['lost_events']} events lost, {numbers['unknown_frees']} unknown frees")
    check_between("births", births_done, numbers["allocations"], births_begun)
    check_between("deaths", deaths_done, numbers["frees"], deaths_begun)


def wait_for_first_event(victim, counts):
    limit = time.monotonic() + 30
    while struct.unpack_from("q", counts)[0] == 0:
        if victim.poll() is not None or time.monotonic() > limit:
            victim.kill()
            raise CheckFailed(f"the program did not begin to allocate: {victim.communicate()[1]!r}")
        time.sleep(0.0005)


def check_between(what, done, reported, begun):
    if not done <= reported <= begun:
        raise CheckFailed(f"{reported} {what} in the report; {done} were done and {begun} begun")
