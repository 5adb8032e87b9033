"""Runs a command natively, in each state of the recorder, or under heaptrack, and says what that cost."""

import dataclasses
import json
import os
import re
import shutil
import statistics
import subprocess

# Name of a column and what TRACEALLOCFREE says; None: without the library.
STATES = {"native": None, "off": "0", "standby": "standby", "on": "1", "both": "1,stacks=both"}


@dataclasses.dataclass
class Cost:
    wall: float  # s
    cpu: float  # s, of all threads
    peak: int  # resident set, KiB
    figure: float  # what the program printed (ns a pair), or 0
    events: int = 0
    trace: int = 0  # bytes
    lost: int = 0  # events


class Runner:
    def __init__(self, build, folder):
        self.build = build
        self.library = build / "lib" / "libtraceaf.so"
        self.folder = folder
        self.heaptrack = shutil.which("heaptrack")

    def states(self):
        return [*STATES, *(["heaptrack"] if self.heaptrack else [])]

    def run(self, command, state):
        """One run. With counts of its trace, which must say that nothing was lost."""
        env = {key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "TRACEALLOCFREE")}
        traces, result = self.folder / "traces", self.folder / "cost"
        shutil.rmtree(traces, ignore_errors=True)
        traces.mkdir()
        settings, before = [], []
        if state == "heaptrack":
            before = [self.heaptrack, "-o", traces / "heaptrack"]
        elif STATES[state] is not None:
            settings = [f"LD_PRELOAD={self.library}", f"TRACEALLOCFREE={STATES[state]},out={traces}/%p.traf"]
        done = subprocess.run([self.build / "bench" / "measured", result, *settings, *before, *command], env=env,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]} ({state}): status {done.returncode}\n{done.stderr}")
        wall, cpu, peak = map(int, result.read_text().split())
        figures = re.findall(r"^\d+\.\d\d$", done.stdout, re.MULTILINE)
        cost = Cost(wall / 1e9, cpu / 1e9, peak, float(figures[-1]) if figures else 0)
        if state in ("on", "both"):
            trace = max(traces.glob("*.traf"), key=lambda path: path.stat().st_size)
            self.count(trace, cost)
        shutil.rmtree(traces)
        return cost

    def count(self, trace, cost):
        report = self.build / "bin" / "traceaf-report"
        done = subprocess.run([report, "summary", trace, "--format=json", "--no-symbols"], capture_output=True, text=True,
                              check=True)
        summary = json.loads(done.stdout)
        if not summary["complete"]:
            raise RuntimeError(f"the trace is incomplete: {summary['note']}")
        cost.events, cost.lost, cost.trace = summary["events"], summary["lost_events"], trace.stat().st_size

    def interleaved(self, command, runs, states=None):
        """Costs by state: `runs` rounds, each with every state in turn, after one that is not counted."""
        states = states or self.states()
        self.run(command, "native")
        costs = {state: [] for state in states}
        for _ in range(runs):
            for state in states:
                costs[state].append(self.run(command, state))
        return costs


def middle(costs, field):
    return statistics.median(getattr(cost, field) for cost in costs)


def ratio(costs, state, field="wall"):
    """Median over the rounds of state / native, so that a slow spell of the machine counts on both sides."""
    return statistics.median(getattr(cost, field) / getattr(native, field)
                             for cost, native in zip(costs[state], costs["native"]))
