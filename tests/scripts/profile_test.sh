#!/usr/bin/env bash
# scripts/profile passes the command's output and exit status on and prints a summary of what it did.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
  echo "FAILED: $*" >&2
  cat "$folder"/out "$folder"/err >&2 || true
  exit 1
}

status=0
"$top/scripts/profile" sh -c 'echo one line; exit 3' >out 2>err || status=$?
[ "$status" = 3 ] || fail "exit status $status, expected 3"
grep -qx 'one line' out || fail "the command's output is missing"
grep -q 'sh -c' out || fail "no summary of the command"
grep -qi 'peak' out || fail "the summary shows no peak"
[ -n "$(find . -name 'traceaf.*.traf')" ] || fail "no trace in the working directory"
[ -z "$(find . -name '*.tail')" ] || fail "a tail was left"

status=0
"$top/scripts/profile" >out 2>err || status=$?
[ "$status" = 2 ] || fail "without a command: exit status $status, expected 2"
echo passed
