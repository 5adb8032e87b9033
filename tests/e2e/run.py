#!/usr/bin/env python3
"""Runs end-to-end cases: run.py --build FOLDER [--broken KIND | --list | --list-broken | CASE...].

Exit status 0: passed, 1: failed, 77: the machine lacks something (a failure when CI=true).
"""

import argparse
import importlib
import os
import sys
import traceback

from harness.case import load_broken, load_cases
from harness.context import CheckFailed, Context, Skipped, Unsound
from harness.course import check_needs, run_case

SKIP_STATUS = 77


def execute(build, case, library=None):
    """Runs one case; raises CheckFailed, Unsound or Skipped."""
    context = Context(build, case.name, library)
    for path in (context.library, context.report_program, context.launcher):
        if not path.exists():
            raise Unsound(f"{path} is not built")
    if not case.scenario:
        run_case(context, case)
        return
    check_needs(case.needs)
    context.fresh_folders()
    importlib.import_module(f"scenarios.{case.scenario}").run(context, case)


def run_good(build, case):
    try:
        execute(build, case)
    except Skipped as reason:
        if os.environ.get("CI") == "true":
            print(f"FAILED {case.name}: {reason} (a skip is a failure under CI)")
            return 1
        print(f"SKIPPED {case.name}: {reason}")
        return SKIP_STATUS
    except (CheckFailed, Unsound) as error:
        print(f"FAILED {case.name}: {error}")
        return 1
    print(f"passed {case.name}")
    return 0


def run_broken(build, kind, names, cases):
    """A broken build of the library must be noticed by every case named for it."""
    name = f"libtraceaf-break-{kind}.so"
    found = sorted(find(build, name))
    if not found:
        print(f"FAILED: {name} is not built")
        return 1
    unnoticed = []
    for case_name in names:
        try:
            execute(build, cases[case_name], found[0])
        except (Skipped, Unsound) as reason:
            print(f"FAILED {case_name}: {reason}")
            unnoticed.append(case_name)
        except CheckFailed as error:
            print(f"{case_name} notices {kind}: " + " / ".join(str(error).splitlines()[:3]))
        else:
            print(f"FAILED: {case_name} passes with {name}")
            unnoticed.append(case_name)
    return 1 if unnoticed else 0


def find(folder, name):
    for where, _, files in os.walk(folder):
        if name in files:
            yield os.path.join(where, name)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="build folder, such as build/release")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--list-broken", action="store_true", help="print the kinds of broken libraries")
    parser.add_argument("--broken", metavar="KIND", help="the cases named for this broken library must fail")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_args()
    cases, broken = load_cases(), load_broken()
    if options.list or options.list_broken:
        print("\n".join(cases if options.list else broken))
        return 0
    if options.broken:
        return run_broken(options.build, options.broken, broken[options.broken], cases)
    unknown = [name for name in options.cases if name not in cases]
    if unknown or not options.cases:
        parser.error(f"no such case: {', '.join(unknown)}" if unknown else "no case named")
    statuses = []
    for name in options.cases:
        try:
            statuses.append(run_good(options.build, cases[name]))
        except Exception:  # noqa: BLE001: a fault of the runner fails the case and lets the others run
            traceback.print_exc()
            statuses.append(1)
    return 1 if 1 in statuses else max(statuses)


if __name__ == "__main__":
    sys.exit(main())
