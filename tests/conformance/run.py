#!/usr/bin/env python3
"""Go's own trace reader against traceaf-report, over every complete trace in BUILD/traces: run.py --build BUILD [TRACE...].

Exit status 0: they agree, 1: they do not, 77: this machine has no Go that is new enough (a failure when CI=true).
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SKIP_STATUS = 77
OLDEST_GO = (1, 26)  # as golang.org/x/exp demands in go.mod


def go_program():
    """Path of a Go that is new enough, else None with the reason."""
    go = shutil.which("go")
    if not go:
        return None, "Go is not installed"
    found = re.search(r"go(\d+)\.(\d+)", subprocess.run([go, "version"], capture_output=True, text=True, check=True).stdout)
    if not found or (int(found[1]), int(found[2])) < OLDEST_GO:
        return None, f"Go {found[0] if found else '?'} is older than {'.'.join(map(str, OLDEST_GO))}"
    return go, ""


def build_reader(go, build):
    """The counting program. go.sum pins every byte that is downloaded."""
    target = build / "conformance" / "traceafconformance"
    env = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    subprocess.run([go, "build", "-trimpath", "-o", str(target), "."], cwd=HERE, env=env, check=True)
    return target


def report(build, verb, trace, *options):
    command = [str(build / "bin" / "traceaf-report"), verb, str(trace), "--format=json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(f"{' '.join(command)}: status {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def type_tables(build, trace):
    """(rows, sum of their sizes) of each generation's type table, from the text form."""
    text = subprocess.Popen([str(build / "bin" / "traceaf-report"), "raw", str(trace)], stdout=subprocess.PIPE)
    # grep, because most lines are events and there are millions of them.
    lines = subprocess.run(["grep", "-E", r"^\s*(Type id=|EndOfGeneration)"], stdin=text.stdout, capture_output=True, text=True,
                           check=False).stdout.splitlines()
    text.stdout.close()
    if text.wait() != 0:
        raise ValueError(f"traceaf-report raw {trace.name}: status {text.returncode}")
    tables, rows, size = [], 0, 0
    for line in lines:
        if line == "EndOfGeneration":
            tables.append((rows, size))
            rows = size = 0
            continue
        rows += 1
        size += int(re.search(r" size=(\d+)", line)[1])
    return tables


def differences(go, summary, threads, info, types):
    """Each number that the two count differently, as text."""
    kinds = go["kinds"]
    pairs = [
        ("events", go["events"], summary["events"]),
        ("HeapObjectAlloc", kinds.get("HeapObjectAlloc", 0), summary["allocations"]),
        ("HeapObjectFree", kinds.get("HeapObjectFree", 0), summary["frees"]),
        ("HeapObject", kinds.get("HeapObject", 0), summary["inherited_blocks"]),
        ("allocated bytes by the type table", go["allocated_bytes"], summary["allocated_bytes"]),
        ("inherited bytes by the type table", go["inherited_bytes"], summary["inherited_bytes"]),
        ("unknown types", go["unknown_types"], 0),
        ("generations", len(go["generations"]), summary["generations"]),
        ("Sync events", go["syncs"], summary["generations"] + 1),
    ]
    for kind in sorted(kinds.keys() | (set(summary["events_by_type"]) & ALLOCFREE)):
        pairs.append((kind, kinds.get(kind, 0), summary["events_by_type"].get(kind, 0)))
    ours = {str(row["m"]): row for row in threads["threads"] if row["events"]}
    for thread in sorted(go["threads"].keys() | ours.keys()):
        counts, row = go["threads"].get(thread, {}), ours.get(thread, {})
        pairs.append((f"thread {thread}: events", sum(counts.values()), row.get("events", 0)))
        pairs.append((f"thread {thread}: HeapObjectAlloc", counts.get("HeapObjectAlloc", 0), row.get("allocations", 0)))
        pairs.append((f"thread {thread}: HeapObjectFree", counts.get("HeapObjectFree", 0), row.get("frees", 0)))
    pairs.append(("type tables", len(go["generations"]), len(types)))
    for number, (theirs, row, table) in enumerate(zip(go["generations"], info["generations"], types)):
        pairs.append((f"generation {number}: events", theirs["events"], row["events"]))
        pairs.append((f"generation {number}: info batches", theirs["infos"], 1))
        pairs.append((f"generation {number}: types, sum of sizes", (theirs["types"], theirs["type_bytes"]), table))
    return [f"{what}: Go {theirs}, traceaf-report {mine}" for what, theirs, mine in pairs if theirs != mine]


ALLOCFREE = {
    "Span", "SpanAlloc", "SpanFree", "HeapObject", "HeapObjectAlloc", "HeapObjectFree",
    "GoroutineStack", "GoroutineStackAlloc", "GoroutineStackFree",
}


def complete_traces(build, folder):
    """(trace, summary) of each complete one; what was cut short on purpose is none for Go's reader."""
    for path in sorted(folder.rglob("*.traf")):
        summary = report(build, "summary", path)
        if summary["complete"]:
            yield path, summary


def check(build, reader, path, summary):
    done = subprocess.run([str(reader), str(path)], capture_output=True, text=True, check=False)
    counted = json.loads(done.stdout or '{"error": "no output"}')
    if "error" in counted:
        return [f"Go refuses it: {counted['error']} {done.stderr[-300:]}"]
    threads, info = report(build, "threads", path, "--limit=0"), report(build, "info", path, "--limit=0")
    return differences(counted, summary, threads, info, type_tables(build, path))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("traces", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    build = options.build.resolve()
    go, reason = go_program()
    if not go or not shutil.which("zstd"):
        print(f"SKIPPED: {reason or 'zstd is not installed'}")
        return 1 if os.environ.get("CI") == "true" else SKIP_STATUS
    reader = build_reader(go, build)
    if options.traces:
        work = [(path, report(build, "summary", path)) for path in options.traces]
    else:
        work = list(complete_traces(build, build / "traces"))
    if not work:
        print(f"FAILED: there is no complete trace in {build / 'traces'}; the end-to-end tests make them")
        return 1
    failures = events = 0
    for path, summary in work:
        wrong = check(build, reader, path, summary)
        events += summary["events"]
        if wrong:
            failures += 1
            print(f"FAILED {path.name}:\n  " + "\n  ".join(wrong[:20]))
    print(f"{len(work) - failures} of {len(work)} traces with {events} events agree")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
