"""The checks themselves: each must be able to fail."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from harness import compare, report  # noqa: E402
from harness.case import Condition, load_broken, load_cases  # noqa: E402
from harness.context import CheckFailed, Outcome  # noqa: E402

GOOD = {
    "allocations": 10, "frees": 4, "inherited_blocks": 2, "live_blocks": 8, "live_bytes": 80, "peak_bytes": 90,
    "lost_events": 0, "unknown_frees": 0, "double_births": 0, "unknown_types": 0, "frees_before": 0,
    "counters": {"toggles": 0, "nested_events": 0, "lost_threads": 0, "lost_rows": 0, "stuck_threads": 0, "output_errors": 0},
}


class Conditions(unittest.TestCase):
    def test_each_operator_holds_and_fails(self):
        for text, good, bad in (("a==3", 3, 4), ("a>=3", 3, 2), ("a<=3", 3, 4)):
            self.assertTrue(Condition.parse(text).holds(good))
            self.assertFalse(Condition.parse(text).holds(bad))

    def test_nonsense_is_refused(self):
        for text in ("a", "a=3", "a==x", "==3", "a==3 b"):
            with self.assertRaises(ValueError):
                Condition.parse(text)

    def test_a_missing_number_fails(self):
        with self.assertRaises(CheckFailed):
            report.check_conditions({}, [Condition.parse("a==0")], "x")


class Invariants(unittest.TestCase):
    def test_good_books_pass(self):
        report.check_invariants(GOOD, "x")

    def test_each_fault_fails(self):
        for key, value in (("lost_events", 1), ("unknown_frees", 1), ("double_births", 1), ("live_blocks", 7),
                           ("frees", 5), ("allocations", 11), ("peak_bytes", 79), ("unknown_types", 1),
                           ("counters", {**GOOD["counters"], "lost_rows": 1})):
            with self.subTest(key), self.assertRaises(CheckFailed):
                report.check_invariants({**GOOD, key: value}, "x")


    def test_books_need_not_balance_over_a_time_without_recording(self):
        switched = {**GOOD, "live_blocks": 7, "counters": {**GOOD["counters"], "toggles": 2}}
        report.check_invariants(switched, "x")


class Comparison(unittest.TestCase):
    PLAIN = Outcome(3, b"out\n", b"warning\n", 1.0)

    def test_equal_runs_pass(self):
        compare.check_same(self.PLAIN, Outcome(3, b"out\n", b"", 1.0))
        compare.check_stderr(self.PLAIN, Outcome(3, b"out\n", b"warning\ntraceaf: full\n", 1.0), ["full"])

    def test_each_difference_fails(self):
        for other in (Outcome(4, b"out\n", b"", 1.0), Outcome(3, b"out", b"", 1.0), Outcome(3, b"out\n", b"", 11.0)):
            with self.assertRaises(CheckFailed):
                compare.check_same(self.PLAIN, other)

    def test_unexpected_stderr_fails(self):
        for errors, expected in ((b"warning\nmore\n", []), (b"", []), (b"warning\n", ["full"]),
                                 (b"warning\nother\n", ["full"]), (b"warning\nfull\nfull\n", ["full"])):
            with self.subTest(errors), self.assertRaises(CheckFailed):
                compare.check_stderr(self.PLAIN, Outcome(3, b"", errors, 1.0), expected)

    def test_a_new_or_changed_file_fails(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "a").write_text("1")
            before = compare.files_of(folder)
            compare.check_same_files(before, compare.files_of(folder))
            (folder / "a").write_text("2")
            with self.assertRaises(CheckFailed):
                compare.check_same_files(before, compare.files_of(folder))


class Tables(unittest.TestCase):
    def test_broken_builds_name_cases_that_exist(self):
        cases = load_cases()
        for kind, names in load_broken().items():
            self.assertTrue(names, kind)
            for name in names:
                self.assertIn(name, cases)


if __name__ == "__main__":
    unittest.main()
