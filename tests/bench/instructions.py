#!/usr/bin/env python3
"""Counts the instructions that libtraceaf.so adds to a malloc and to a free: instructions.py --build FOLDER [--rewrite].

Runs fast_path under callgrind in each state of CASES and compares with instructions.txt. Exit status 0: as in the table,
1: slower than it, or so much faster that the table is out of date, 77: no valgrind (a failure when CI=true). --rewrite
writes the table anew.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

TABLE = pathlib.Path(__file__).with_name("instructions.txt")
SKIP_STATUS = 77
SLOWER = 1.03  # above it the fast path has become slower
FASTER = 0.90  # below it the table hides what may be lost again
# The stamps of events differ from run to run, and with them how many bytes they take.
SLACK = 3.0
TIMEOUT_S = 120

# state, options, depth, stack
CASES = (
    ("off", "0", 20, "same"),
    ("standby", "standby", 20, "same"),
    ("on,stacks=none", "1,stacks=none", 20, "same"),
    ("on", "1", 5, "same"),
    ("on", "1", 20, "same"),
    ("on", "1", 60, "same"),
    ("on", "1", 20, "changing"),
    ("on", "1", 60, "changing"),
    ("on,stacks=both", "1,stacks=both", 20, "same"),
    ("on,stacks=both", "1,stacks=both", 20, "changing"),
)
HEAD = """\
# Instructions that libtraceaf.so adds to one malloc and one free, counted by callgrind (gcc, RelWithDebInfo).
# Written by `python3 tests/bench/instructions.py --build FOLDER --rewrite`; the test bench.instructions compares.
# The last four frames differ from call to call on a changing stack.
#
# state          depth  stack     malloc    free
"""


def own_cost(text, object_name):
    """Self cost of all functions of the objects whose file is named so, in the first event of a callgrind profile."""
    names, inside, callee_next, total = {}, False, False, 0
    for line in text.splitlines():
        named = re.match(r"(c?ob)=\((\d+)\)(?: (.*))?$", line)
        if named:
            kind, number, name = named.groups()
            if name:
                names[number] = name
            if kind == "ob":
                inside = os.path.basename(names[number]) == object_name
        elif line.startswith("calls="):
            callee_next = True  # the line after it is the cost of the function called
        elif re.match(r"[+*\-\d]", line):
            if callee_next:
                callee_next = False
            elif inside:
                total += int(line.split()[1])
    return total


def valgrind_program():
    """The program itself: Debian's `valgrind` is a shell script, which would be recorded as well."""
    return shutil.which("valgrind.bin") or shutil.which("valgrind")


def count(build, case):
    """Instructions added to one malloc and to one free."""
    _, options, depth, stack = case
    library = build / "lib" / "libtraceaf.so"
    with tempfile.TemporaryDirectory() as folder:
        env = {key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "TRACEALLOCFREE")}
        env["LD_PRELOAD"] = str(library)
        env["TRACEALLOCFREE"] = f"{options},generation=3600,generation_size=1G,out={folder}/%e.%p.traf"
        command = [valgrind_program(), "-q", "--tool=callgrind", f"--callgrind-out-file={folder}/profile",
                   "--separate-threads=yes", build / "bench" / "fast_path", str(depth), stack]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIMEOUT_S)
        if done.returncode != 0:
            raise RuntimeError(f"{case}: status {done.returncode}\n{done.stderr}")
        if options != "0" and not list(pathlib.Path(folder).glob("fast_path.*.traf")):
            raise RuntimeError(f"{case}: nothing was recorded")
        calls = int(done.stdout)
        # Dumps are numbered, then threads: 01 is the first, which makes the calls.
        costs = {"malloc": [], "free": []}
        for dump in pathlib.Path(folder).glob("profile.*-01"):
            text = dump.read_text()
            for what, rounds in costs.items():
                if f"Client Request: {what}\n" in text:
                    rounds.append(own_cost(text, library.name) / calls)
        return [min(rounds) for rounds in costs.values()]


def read_table(text):
    table = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            state, depth, stack, malloc, free = line.split()
            table[state, int(depth), stack] = (float(malloc), float(free))
    return table


def write_table(results):
    return HEAD + "".join(f"{state:16} {depth:5}  {stack:8} {malloc:8.1f} {free:7.1f}\n"
                          for (state, depth, stack), (malloc, free) in results.items())


def judge(name, golden, measured):
    """What is wrong with one figure, or None."""
    if golden is None:
        return f"{name}: {measured:.1f} instructions, and the table has no such row"
    if measured > golden * SLOWER and measured > golden + SLACK:
        return f"{name}: {measured:.1f} instructions, {golden:.1f} in the table: the fast path has become slower"
    if measured < golden * FASTER and measured < golden - SLACK:
        return f"{name}: {measured:.1f} instructions, {golden:.1f} in the table: faster; run with --rewrite and commit"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--rewrite", action="store_true")
    options = parser.parse_args()
    if valgrind_program() is None:
        print("SKIPPED: valgrind is not installed")
        return 1 if os.environ.get("CI") == "true" else SKIP_STATUS
    build = options.build.resolve()
    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(lambda case: count(build, case), CASES))
    results = {(state, depth, stack): costs for (state, _, depth, stack), costs in zip(CASES, counts)}
    if options.rewrite:
        TABLE.write_text(write_table(results))
        print(TABLE.read_text(), end="")
        return 0
    table = read_table(TABLE.read_text())
    faults = [f"{key}: in the table and no longer measured" for key in table if key not in results]
    for key, measured in results.items():
        golden = table.get(key, (None, None))
        print(f"{key[0]:16} depth {key[1]:2} {key[2]:8}  malloc {measured[0]:6.1f} ({golden[0]})"
              f"  free {measured[1]:6.1f} ({golden[1]})")
        for what, was, now in zip(("malloc", "free"), golden, measured):
            faults.append(judge(f"{what}, {key[0]}, depth {key[1]}, {key[2]} stack", was, now))
    faults = [fault for fault in faults if fault]
    print("\n".join(faults) if faults else "as in the table")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
