"""Where things are for one run of one case, and the running of commands."""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import time


class CheckFailed(Exception):
    """What was recorded or done is not what the case demands."""


class Unsound(Exception):
    """The case itself proves nothing here: its plain run is not stable."""


class Skipped(Exception):
    """This machine lacks something that the case needs."""


@dataclasses.dataclass
class Outcome:
    status: int  # exit status; -N: ended by signal N
    stdout: bytes
    stderr: bytes
    seconds: float


class Context:
    def __init__(self, build, case_name, library=None):
        self.build = pathlib.Path(build).resolve()
        self.library = pathlib.Path(library).resolve() if library else self.build / "lib" / "libtraceaf.so"
        self.report_program = self.build / "bin" / "traceaf-report"
        self.launcher = self.build / "bin" / "traceaf"
        self.full = os.environ.get("E2E_FULL") == "1"
        where = self.build / "e2e-runs" / (self.library.stem if library else "good") / case_name
        shutil.rmtree(where, ignore_errors=True)
        self.cwd = where / "cwd"
        self.expect_file = where / "expect" / "expect"
        # Traces of the good library are kept for the conformance test.
        self.out = where / "traces" if library else self.build / "traces" / case_name
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir(parents=True)

    def fresh_folders(self):
        """An empty working directory and an empty folder for expectations."""
        for folder in (self.cwd, self.expect_file.parent):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)

    def program(self, name):
        """Path of a program of ours, else of a command in PATH."""
        own = self.build / "e2e" / name
        if own.exists():
            return str(own)
        found = name if name.startswith("/") else shutil.which(name)
        if not found:
            raise Skipped(f"{name} is not installed")
        return found

    def environment(self, extra):
        """A small fixed environment, so that two runs differ in nothing but what the case says."""
        env = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self.cwd),
            "LC_ALL": "C.UTF-8",
            "E2E_EXPECT_FILE": str(self.expect_file),
        }
        env.update(extra)
        return env

    def run(self, command, env=None, timeout=120, cwd=None):
        """Runs to the end with an empty stdin. A command that takes too long fails the case."""
        start = time.monotonic()
        try:
            done = subprocess.run(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd=cwd or self.cwd,
                env=self.environment(env or {}),
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            raise CheckFailed(f"no end after {timeout} s: {' '.join(map(str, command))}") from late
        return Outcome(done.returncode, done.stdout, done.stderr, time.monotonic() - start)
