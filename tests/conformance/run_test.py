"""The comparison itself: equal counts pass, and each number that differs is named."""

import copy
import unittest

import run

GO = {
    "events": 7, "kinds": {"HeapObjectAlloc": 4, "HeapObjectFree": 2, "Span": 1}, "syncs": 2, "allocated_bytes": 100,
    "inherited_bytes": 0, "unknown_types": 0, "threads": {"1": {"HeapObjectAlloc": 4, "HeapObjectFree": 2, "Span": 1}},
    "generations": [{"types": 3, "type_bytes": 60, "infos": 1, "events": 7}],
}
SUMMARY = {
    "events": 7, "allocations": 4, "frees": 2, "inherited_blocks": 0, "allocated_bytes": 100, "inherited_bytes": 0,
    "generations": 1, "events_by_type": {"HeapObjectAlloc": 4, "HeapObjectFree": 2, "Span": 1, "GoStatus": 1},
}
THREADS = {"threads": [{"m": 1, "events": 7, "allocations": 4, "frees": 2}, {"m": 2, "events": 0}]}
INFO = {"generations": [{"events": 7}]}
TYPES = [(3, 60)]


class Differences(unittest.TestCase):
    def test_equal_counts_pass(self):
        self.assertEqual(run.differences(GO, SUMMARY, THREADS, INFO, TYPES), [])

    def test_each_number_of_the_summary_counts(self):
        for key in ("events", "allocations", "frees", "inherited_blocks", "allocated_bytes", "inherited_bytes", "generations"):
            with self.subTest(key):
                self.assertTrue(run.differences(GO, {**SUMMARY, key: SUMMARY[key] + 1}, THREADS, INFO, TYPES))
        kinds = {**SUMMARY["events_by_type"], "SpanFree": 1}
        self.assertTrue(run.differences(GO, {**SUMMARY, "events_by_type": kinds}, THREADS, INFO, TYPES))

    def test_each_thread_counts(self):
        for key in ("m", "events", "allocations", "frees"):
            threads = copy.deepcopy(THREADS)
            threads["threads"][0][key] += 1
            with self.subTest(key):
                self.assertTrue(run.differences(GO, SUMMARY, threads, INFO, TYPES))

    def test_each_generation_and_its_type_table_count(self):
        self.assertTrue(run.differences(GO, SUMMARY, THREADS, {"generations": [{"events": 8}]}, TYPES))
        self.assertTrue(run.differences(GO, SUMMARY, THREADS, INFO, [(4, 60)]))
        self.assertTrue(run.differences(GO, SUMMARY, THREADS, INFO, [(3, 61)]))
        self.assertTrue(run.differences(GO, SUMMARY, THREADS, INFO, []))
        self.assertTrue(run.differences({**GO, "unknown_types": 1}, SUMMARY, THREADS, INFO, TYPES))


if __name__ == "__main__":
    unittest.main()
