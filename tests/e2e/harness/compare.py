"""The recorded run against the plain one: the program must not be able to tell the difference."""

import collections
import hashlib
import re

from .context import CheckFailed

SLOWEST = 10  # times the plain wall time
FLOOR_SECONDS = 10.0  # below this time says nothing on a busy machine


def files_of(folder):
    """Name -> digest of each file under `folder`."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[str(path.relative_to(folder))] = "folder" if path.is_dir() else "special"
    return found


def check_same(plain, recorded, what=""):
    """Exit status, stdout and wall time."""
    if recorded.status != plain.status:
        tail = recorded.stderr.decode(errors="replace")[-2000:]
        raise CheckFailed(f"{what}exit status {recorded.status}, plain {plain.status}; stderr:\n{tail}")
    if recorded.stdout != plain.stdout:
        raise CheckFailed(f"{what}stdout differs: {recorded.stdout[-500:]!r}, plain {plain.stdout[-500:]!r}")
    limit = max(FLOOR_SECONDS, SLOWEST * plain.seconds)
    if recorded.seconds > limit:
        raise CheckFailed(f"{what}{recorded.seconds:.1f} s, plain {plain.seconds:.1f} s")


def check_stderr(plain, recorded, expected):
    """`expected` has one regular expression for each line that the recorded run wrote and the plain one did not."""
    before = collections.Counter(plain.stderr.decode(errors="replace").splitlines())
    after = collections.Counter(recorded.stderr.decode(errors="replace").splitlines())
    missing = list((before - after).elements())
    if missing:
        raise CheckFailed(f"stderr lacks lines of the plain run: {missing[:5]}")
    added = list((after - before).elements())
    if len(added) != len(expected):
        raise CheckFailed(f"stderr has {len(added)} lines more than the plain run, expected {len(expected)}: {added[:5]}")
    for pattern in expected:
        if not any(re.search(pattern, line) for line in added):
            raise CheckFailed(f"no line of stderr matches {pattern!r}: {added}")


def check_same_files(plain, recorded):
    if plain != recorded:
        differing = {name for name in plain.keys() | recorded.keys() if plain.get(name) != recorded.get(name)}
        raise CheckFailed(f"files in the working directory differ from the plain run: {sorted(differing)}")
