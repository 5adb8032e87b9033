#!/usr/bin/env python3
"""Prices of recording: the same work natively, with the recorder off, in standby, on, on with stacks at frees, and under
heaptrack where it is installed, in turn. docs/performance.md says what each figure means.

--format md prints Markdown, --update puts it between the two marks of docs/performance.md. --check-off only demands that
the preloaded library costs nothing while it is off, and fails otherwise. Lost events fail in each case.
"""

import argparse
import os
import pathlib
import platform
import statistics
import sys
import tempfile

from runner import Runner, middle, ratio
from workloads import SHAPES, programs

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "performance.md"
BEGIN, END = "<!-- scripts/bench --update writes from here -->", "<!-- to here -->"
# The fastest of many short runs is the least disturbed. Above this ratio it is no noise of the machine.
OFF_LIMIT = 1.10
OFF_ROUNDS = 4


def bytes_an_event(costs):
    return middle(costs["on"], "trace") / middle(costs["on"], "events")


def lost(costs):
    return sum(cost.lost for state in ("on", "both") for cost in costs[state])


def pairs_table(runner, runs):
    """Rows of text, the first the heads; and how many events were lost."""
    states = [state for state in runner.states() if state != "native"]
    rows = [["depth", "threads", "native ns", *(f"{state} +ns" for state in states), "B/event", "lost"]]
    losses = 0
    for count, depth, threads in SHAPES:
        costs = runner.interleaved([runner.build / "bench" / "pairs", str(count), str(depth), str(threads)], runs)
        native = middle(costs["native"], "figure")
        added = [f"{middle(costs[state], 'figure') - native:.1f}" for state in states]
        losses += lost(costs)
        rows.append([str(depth), str(threads), f"{native:.1f}", *added, f"{bytes_an_event(costs):.2f}", str(lost(costs))])
    return rows, losses


def programs_table(runner, runs):
    states = [state for state in runner.states() if state != "native"]
    rows = [["program", "native s", *(f"{state} x" for state in states), "on, CPU x", "on, peak +MiB", "M events",
             "B/event", "lost"]]
    losses, walls = 0, {state: [] for state in states}
    for name, command in programs(runner.folder).items():
        costs = runner.interleaved(command, runs)
        for state in states:
            walls[state].append(ratio(costs, state))
        grown = (middle(costs["on"], "peak") - middle(costs["native"], "peak")) / 1024
        losses += lost(costs)
        rows.append([name, f"{middle(costs['native'], 'wall'):.2f}", *(f"{walls[state][-1]:.3f}" for state in states),
                     f"{ratio(costs, 'on', 'cpu'):.3f}", f"{grown:.1f}", f"{middle(costs['on'], 'events') / 1e6:.2f}",
                     f"{bytes_an_event(costs):.2f}", str(lost(costs))])
    if len(rows) > 1:
        means = [f"{statistics.geometric_mean(walls[state]):.3f}" for state in states]
        rows.append(["geometric mean", "", *means, *[""] * 5])
    return rows, losses


def as_text(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows)


def as_markdown(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def machine(runs):
    models = [line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
              if line.startswith("model name")]
    return (f"{models[0] if models else platform.machine()}, {os.cpu_count()} processors, Linux {platform.release()}; "
            f"medians of {runs} rounds.")


def update(document, text):
    """`document` with `text` between the marks."""
    before, mark, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise ValueError("the marks for the figures are missing")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def check_off(runner, runs):
    """A price of the library shows in each round, a disturbance by other work on the machine does not."""
    command = [runner.build / "bench" / "pairs", "500000", "5", "1"]
    for _ in range(OFF_ROUNDS):
        costs = runner.interleaved(command, runs, ("native", "off"))
        native, off = (min(cost.figure for cost in costs[state]) for state in ("native", "off"))
        print(f"switched off: {off:.2f} ns a pair, native {native:.2f}, ratio {off / native:.3f} (limit {OFF_LIMIT})")
        if off / native <= OFF_LIMIT:
            return 0
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--check-off", action="store_true")
    parser.add_argument("--runs", type=int, help="rounds of a table, 5 unless given")
    parser.add_argument("--format", choices=("text", "md"), default="text")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(options.build.resolve(), pathlib.Path(folder))
        if options.check_off:
            return check_off(runner, options.runs or 21)
        runs = options.runs or 5
        shown, parts, losses = as_text, [machine(runs)], 0
        if options.update or options.format == "md":
            shown = as_markdown
        for title, table in (("A malloc and a free", pairs_table), ("Programs", programs_table)):
            rows, missing = table(runner, runs)
            losses += missing
            parts.append(f"{title}:\n\n{shown(rows)}")
    text = "\n\n".join(parts)
    print(text)
    if options.update:
        DOCUMENT.write_text(update(DOCUMENT.read_text(), text))
    if losses:
        print(f"{losses} events were lost", file=sys.stderr)
    return 1 if losses else 0


if __name__ == "__main__":
    sys.exit(main())
