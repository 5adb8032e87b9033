#!/usr/bin/env python3
"""Prices of recording, native and recorded runs in turn: bench.py --build FOLDER [--check-off] [--runs N].

Prints ns per malloc/free pair. --check-off only demands that the preloaded library costs nothing while it is off, and
fails otherwise.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

SHAPES = ((2_000_000, 5, 1), (2_000_000, 20, 1), (1_000_000, 60, 1), (2_000_000, 20, 2), (2_000_000, 20, 4))
# The fastest of many short runs is the least disturbed. Above this ratio it is no noise of the machine.
OFF_LIMIT = 1.10
OFF_ROUNDS = 4


class Bench:
    def __init__(self, build, folder):
        self.program = build / "bench" / "pairs"
        self.library = build / "lib" / "libtraceaf.so"
        self.folder = folder

    def run(self, shape, options=None):
        """ns per pair, and bytes of trace per event. options None: without the library, "": without the variable."""
        env = {key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "TRACEALLOCFREE")}
        if options is not None:
            env["LD_PRELOAD"] = str(self.library)
        if options:
            env["TRACEALLOCFREE"] = options
        done = subprocess.run([self.program, *map(str, shape)], env=env, capture_output=True, text=True, check=True)
        written = 0
        for path in self.folder.iterdir():
            written += path.stat().st_size
            path.unlink()
        return float(done.stdout), written / (2 * shape[0])


def table(bench, runs):
    for shape in SHAPES:
        native, off, recorded, sizes = [], [], [], []
        for _ in range(runs):
            native.append(bench.run(shape)[0])
            off.append(bench.run(shape, "")[0])
            ns, size = bench.run(shape, f"1,out={bench.folder}/%p.traf")
            recorded.append(ns)
            sizes.append(size)
        plain, idle, full = map(statistics.median, (native, off, recorded))
        print(f"depth {shape[1]:2} threads {shape[2]}: native {plain:6.1f}  off {idle:6.1f}  recorded {full:6.1f}"
              f"  (+{full - plain:.1f} ns a pair, {statistics.median(sizes):.2f} bytes an event)", flush=True)


def check_off(bench, runs):
    """A price of the library shows in each round, a disturbance by other work on the machine does not."""
    shape = (500_000, 5, 1)
    for _ in range(OFF_ROUNDS):
        native, off = [], []
        for _ in range(runs):
            native.append(bench.run(shape)[0])
            off.append(bench.run(shape, "")[0])
        ratio = min(off) / min(native)
        print(f"switched off: {min(off):.2f} ns a pair, native {min(native):.2f}, ratio {ratio:.3f} (limit {OFF_LIMIT})")
        if ratio <= OFF_LIMIT:
            return 0
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--check-off", action="store_true")
    parser.add_argument("--runs", type=int)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.build.resolve(), pathlib.Path(folder))
        if options.check_off:
            return check_off(bench, options.runs or 21)
        table(bench, options.runs or 5)
    return 0


if __name__ == "__main__":
    sys.exit(main())
