"""Cases with a course of their own: run(context, case) raises CheckFailed or Skipped."""
