"""Tests of what the scripts of this folder compute."""

import unittest

import bench
import instructions
import runner

PROFILE = """\
desc: Trigger: Client Request: malloc
events: Ir

ob=(1) /lib/libtraceaf.so
fl=(1) malloc.cc
fn=(1) malloc
10 7
+2 3
cob=(2) /lib/libc.so.6
cfn=(2) malloc
calls=1 0
* 500
11 5

ob=(2)
fn=(2)
20 490

ob=(1)
fn=(3) record
30 100
calls=2 31
+1 44
"""


class Instructions(unittest.TestCase):
    def test_counts_own_cost_of_one_object_without_its_callees(self):
        self.assertEqual(instructions.own_cost(PROFILE, "libtraceaf.so"), 7 + 3 + 5 + 100)
        self.assertEqual(instructions.own_cost(PROFILE, "libc.so.6"), 490)
        self.assertEqual(instructions.own_cost(PROFILE, "other.so"), 0)

    def test_judges_slower_faster_and_unknown(self):
        self.assertIsNone(instructions.judge("x", 200, 206))
        self.assertIn("slower", instructions.judge("x", 200, 206.1))
        self.assertIsNone(instructions.judge("x", 4, 7))  # within the slack of stamps
        self.assertIn("slower", instructions.judge("x", 4, 7.1))
        self.assertIsNone(instructions.judge("x", 200, 180))
        self.assertIn("--rewrite", instructions.judge("x", 200, 179.9))
        self.assertIn("no such row", instructions.judge("x", None, 5))

    def test_table_is_read_as_it_is_written(self):
        results = {("on,stacks=none", 20, "same"): (41.5, 30.0), ("on", 60, "changing"): (212.0, 33.2)}
        self.assertEqual(instructions.read_table(instructions.write_table(results)), results)

    def test_table_has_a_row_for_each_case(self):
        table = instructions.read_table(instructions.TABLE.read_text())
        self.assertEqual(list(table), [(state, depth, stack) for state, _, depth, stack in instructions.CASES])


class Bench(unittest.TestCase):
    @staticmethod
    def cost(wall, lost=0):
        return runner.Cost(wall=wall, cpu=2 * wall, peak=0, figure=0, events=1000, trace=4500, lost=lost)

    def test_ratio_is_the_median_of_the_rounds(self):
        costs = {"native": [self.cost(w) for w in (1, 10, 1)], "on": [self.cost(w) for w in (1.2, 11, 5)]}
        self.assertAlmostEqual(runner.ratio(costs, "on"), 1.2)

    def test_losses_of_all_rounds_count(self):
        costs = {"on": [self.cost(1), self.cost(1, lost=3)], "both": [self.cost(1, lost=4)]}
        self.assertEqual(bench.lost(costs), 7)
        self.assertAlmostEqual(bench.bytes_an_event(costs), 4.5)

    def test_document_is_changed_between_the_marks_only(self):
        document = f"# Title\n{bench.BEGIN}\nold\n{bench.END}\nrest\n"
        self.assertEqual(bench.update(document, "new"), f"# Title\n{bench.BEGIN}\nnew\n{bench.END}\nrest\n")
        with self.assertRaises(ValueError):
            bench.update("# Title\n", "new")
        self.assertIn(bench.BEGIN, bench.DOCUMENT.read_text())

    def test_markdown_has_one_line_a_row(self):
        self.assertEqual(bench.as_markdown([["a", "b"], ["1", "2"]]), "| a | b |\n|---|---|\n| 1 | 2 |")


if __name__ == "__main__":
    unittest.main()
