"""The parts of the end-to-end runner: cases, execution, reports and checks."""
