#!/usr/bin/env python3
"""Our numbers against memcheck's, which counts allocations, frees and bytes on its own: independent_counts.py --build FOLDER.

Each program runs once under valgrind without our library and once recorded. Both runs see the same environment, down
to the lengths of its strings, and the same layout of memory as far as valgrind allows it, because programs hash
addresses and copy their environment. A difference is allowed only where PROGRAMS names its cause, and then only by whole multiples of what that cause changes.
"""

import argparse
import dataclasses
import os
import re
import shutil
import subprocess
import sys

from harness import report
from harness.context import CheckFailed, Context

SKIP_STATUS = 77
KEYS = ("allocations", "frees", "allocated_bytes", "live_blocks", "live_bytes")

SQL = """create table t(id integer primary key, name text, v real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000)
insert into t select i, 'name ' || (i * 7919 % 5000), i / 3.0 from n;
create index by_name on t(name);
select count(*), sum(v), max(name) from t where name > 'name 3';
select substr(name, 1, 6), count(*) from t group by 1 order by 2 desc limit 5;
"""

PERL = """my %h; for my $i (1 .. 5000) { push @{$h{$i % 97}}, "value $i" }
my $n = 0; for my $k (sort keys %h) { $n += length join ',', grep { /7/ } @{$h{$k}} } print "$n\\n";"""

CXX = """template <int N> struct Fib { static constexpr long value = Fib<N - 1>::value + Fib<N - 2>::value; };
template <> struct Fib<0> { static constexpr long value = 0; };
template <> struct Fib<1> { static constexpr long value = 1; };
long answer(int n) { long sum = Fib<40>::value; for (int i = 0; i < n; ++i) sum += i * sum; return sum; }
"""

PYTHON = "import json; print(len(json.dumps([{'k%d' % i: list(range(i % 20))} for i in range(2000)])))"


def prepare_git(folder, env):
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True, capture_output=True, env=env)
    for number in range(20):
        (folder / "file").write_text(f"line {number}\n" * number)
        subprocess.run([*git, "add", "file"], check=True, capture_output=True, env=env)
        subprocess.run([*git, "commit", "-q", "-m", f"change {number}"], check=True, capture_output=True, env=env)


def prepare_cxx(folder, _):
    (folder / "small.cc").write_text(CXX)


def prepare_sql(folder, _):
    (folder / "q.sql").write_text(SQL)


def cc1plus():
    return subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True, check=True).stdout.strip()


@dataclasses.dataclass
class Cause:
    """Why a program makes some block in one of the two runs and not in the other, and what that changes."""

    reason: str
    change: dict  # key -> by how much, once
    most: int  # times, in either direction


# gcc's collector keeps, for each 4 GiB of addresses in which it has pages, a table of 4096 pointers that it never frees.
# valgrind places mappings elsewhere than the kernel does, so their number differs.
GGC_TABLE = Cause(
    "a page table of gcc's collector for each 4 GiB of addresses that are in use",
    {"allocations": 1, "frees": 0, "allocated_bytes": 32768, "live_blocks": 1, "live_bytes": 32768},
    1,
)

# name, command ({e2e} is the folder of our programs), what to do before, and the cause of a difference, if there is one.
PROGRAMS = [
    ("ends", ["{e2e}/ends", "return"], None, None),
    ("exec_chain", ["{e2e}/exec_chain", "0", "5"], None, None),
    ("realloc_ladder", ["{e2e}/realloc_ladder"], None, None),
    ("containers", ["{e2e}/containers"], None, None),
    ("sqlite3", ["sqlite3", ":memory:", ".read q.sql"], prepare_sql, None),
    ("perl", ["perl", "-e", PERL], None, None),
    ("git", ["git", "--no-pager", "log", "--stat", "-p"], prepare_git, None),
    ("cc1plus", [cc1plus, "-quiet", "-O1", "small.cc", "-o", "small.s"], prepare_cxx, GGC_TABLE),
    ("python3", ["/usr/bin/python3", "-I", "-S", "-c", PYTHON], None, None),
]


def base_environment(context):
    """The same for both runs; TRACEALLOCFREE is there under valgrind too, where nobody reads it."""
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(context.cwd),
        "LC_ALL": "C",
        "PERL_HASH_SEED": "0",
        "PYTHONHASHSEED": "0",
        "PYTHONMALLOC": "malloc",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
        "TRACEALLOCFREE": f"1,guard=1,follow=0,out={context.out}/%e.%p.%n.traf",
    }


def valgrind_program():
    """The program itself: Debian's `valgrind` is a script that adds variables of its own."""
    return shutil.which("valgrind.bin") or shutil.which("valgrind")


def preload_of_valgrind(env, cwd):
    shown = subprocess.run(
        [valgrind_program(), "-q", "env"], env=env, cwd=cwd, capture_output=True, text=True, check=True
    ).stdout
    return re.search(r"^LD_PRELOAD=(.*)$", shown, re.MULTILINE)[1]


def run(command, env, cwd):
    """Without address randomisation. The environment begins at the command itself, so that setarch is not recorded."""
    words = ["setarch", "-R", "env", "-i", *(f"{key}={value}" for key, value in env.items()), *command]
    done = subprocess.run(
        words, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=600
    )
    if done.returncode < 0:
        raise CheckFailed(f"{command[0]} ended by signal {-done.returncode}: {done.stderr.decode(errors='replace')[-1000:]}")
    return done


def memcheck_counts(command, env, cwd):
    """Memcheck's totals, with a block's realloc counted as one free and one allocation, as we do."""
    log = cwd.parent / "memcheck.log"
    options = ["--tool=memcheck", "--run-libc-freeres=no", "--run-cxx-freeres=no", "--undef-value-errors=no",
               "--leak-check=no", f"--log-file={log}"]
    done = run([valgrind_program(), *options, *command], env, cwd)
    text = log.read_text().replace(",", "")
    heap = re.search(r"total heap usage: (\d+) allocs (\d+) frees (\d+) bytes allocated", text)
    live = re.search(r"in use at exit: (\d+) bytes in (\d+) blocks", text)
    if not heap or not live:
        raise CheckFailed(f"memcheck told no totals: {text[-1000:]}")
    counts = (int(heap[1]), int(heap[2]), int(heap[3]), int(live[2]), int(live[1]))
    return dict(zip(KEYS, counts)), done


def recorded_counts(context, command, env, preload):
    """Ours, with LD_PRELOAD as long as valgrind's: colons at its end mean nothing to the loader."""
    library = str(context.library)
    if len(library) > len(preload):
        raise CheckFailed("the path of the library is longer than valgrind's LD_PRELOAD; build in a shorter folder")
    env = {**env, "LD_PRELOAD": library.ljust(len(preload), ":")}
    done = run(command, env, context.cwd)
    traces = report.traces_in(context.out)
    if len(traces) != 1:
        raise CheckFailed(f"{len(traces)} traces; stderr: {done.stderr.decode(errors='replace')[-500:]}")
    numbers = report.summary(context, traces[0])
    report.check_invariants(numbers, traces[0].name)
    return numbers, done


def compare(context, command, prepare, cause):
    """A text for the table; raises CheckFailed when a number differs without a cause."""
    command = [word() if callable(word) else word.replace("{e2e}", str(context.build / "e2e")) for word in command]
    env = base_environment(context)

    def begin_again():
        context.fresh_folders()
        if prepare:
            prepare(context.cwd, env)

    begin_again()
    preload = preload_of_valgrind(env, context.cwd)
    theirs, plain = memcheck_counts(command, env, context.cwd)
    begin_again()
    ours, recorded = recorded_counts(context, command, env, preload)
    if plain.stdout != recorded.stdout or plain.returncode != recorded.returncode:
        raise CheckFailed("the recorded run behaves differently from the run under valgrind")
    differences = {key: ours[key] - theirs[key] for key in KEYS}
    told = " ".join(f"{key}={ours[key]}" for key in KEYS)
    if not any(differences.values()):
        return told
    for times in range(-cause.most, cause.most + 1) if cause else ():
        if differences == {key: times * cause.change[key] for key in KEYS}:
            return f"{told}\n    {times:+} times: {cause.reason}"
    raise CheckFailed("; ".join(f"{key}: {ours[key]}, memcheck {theirs[key]}" for key in KEYS if differences[key]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("names", nargs="*", help="programs; default: all")
    options = parser.parse_args()
    if not valgrind_program():
        print("SKIPPED: valgrind is not installed")
        return 1 if os.environ.get("CI") == "true" else SKIP_STATUS
    failures = 0
    for name, command, prepare, cause in PROGRAMS:
        if options.names and name not in options.names:
            continue
        context = Context(options.build, f"count_{name}")
        try:
            print(f"equal   {name}: {compare(context, command, prepare, cause)}", flush=True)
        except CheckFailed as error:
            print(f"FAILED  {name}: {error}", flush=True)
            failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
