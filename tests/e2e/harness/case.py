"""What a case is, and the reading of cases/*.toml.

A file of cases holds tables [[case]] with these keys (all but `name` may be left out):

  name        of the test; also of the folder of its traces
  program     a program of tests/e2e/programs, or a command found in PATH; default: the name
  args        its arguments; full_args: those used when E2E_FULL=1
  files       name -> text of files made in the working directory before each run
  env         further environment, in the plain and the recorded run alike
  scenario    a module of scenarios/ whose run(context, case) replaces the usual course
  options     appended to the value of TRACEALLOCFREE, "1,guard=1,out=..."
  trace_env   replaces that value; "" leaves TRACEALLOCFREE unset. {out} is the folder for traces
  wrapper     command put before the program; {out} as above, {cwd} is the working directory
  needs       things a machine may lack: root, tmpfs, userns, or cmd:NAME
  traces      number of traces that must be left; default 1
  complete    "yes" (default): they must be complete; "no": they must not; "any"
  lossy       events may be missing (a full disk, say): the books need not balance
  expect      conditions on the summary of the first trace: "key==number", also >= and <=
  stderr      regular expressions, one for each line that the recorded run alone writes to stderr
  timeout     in seconds, default 120
"""

import dataclasses
import pathlib
import re
import tomllib
import typing

HERE = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass
class Case:
    name: str
    program: str = ""
    args: list = dataclasses.field(default_factory=list)
    full_args: list = None
    files: dict = dataclasses.field(default_factory=dict)
    env: dict = dataclasses.field(default_factory=dict)
    scenario: str = ""
    options: str = ""
    trace_env: str = None
    wrapper: list = dataclasses.field(default_factory=list)
    needs: list = dataclasses.field(default_factory=list)
    traces: int = 1
    complete: str = "yes"
    lossy: bool = False
    expect: list = dataclasses.field(default_factory=list)
    stderr: list = dataclasses.field(default_factory=list)
    timeout: float = 120


@dataclasses.dataclass
class Condition:
    """One line such as `allocations>=1000` about a number of the summary."""

    key: str
    operator: str
    value: int

    PATTERN: typing.ClassVar = re.compile(r"(\w+)\s*(==|>=|<=)\s*(-?\d+)")

    @classmethod
    def parse(cls, text):
        found = cls.PATTERN.fullmatch(text.strip())
        if not found:
            raise ValueError(f"expected KEY==NUMBER, KEY>=NUMBER or KEY<=NUMBER, found {text!r}")
        return cls(found[1], found[2], int(found[3]))

    def holds(self, number):
        if self.operator == "==":
            return number == self.value
        return number >= self.value if self.operator == ">=" else number <= self.value

    def __str__(self):
        return f"{self.key}{self.operator}{self.value}"


def load_cases(folder=HERE / "cases"):
    """Every case by name. A key that does not exist or a name given twice is an error."""
    cases = {}
    for path in sorted(folder.glob("*.toml")):
        for row in tomllib.loads(path.read_text()).get("case", []):
            try:
                case = Case(**row)
                for text in case.expect:
                    Condition.parse(text)
            except (TypeError, ValueError) as error:
                raise SystemExit(f"{path}: {error}") from error
            if case.name in cases:
                raise SystemExit(f"{path}: the case {case.name} exists twice")
            case.program = case.program or case.name
            cases[case.name] = case
    return cases


def load_broken(folder=HERE / "cases"):
    """Broken builds of the library: kind -> names of cases that must fail with it."""
    broken = {}
    for path in sorted(folder.glob("*.toml")):
        broken.update(tomllib.loads(path.read_text()).get("broken", {}))
    return broken
