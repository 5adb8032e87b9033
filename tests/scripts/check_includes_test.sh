#!/usr/bin/env bash
# scripts/check-includes lets what is allowed pass and names each include that is not, by file and line.
set -euo pipefail
check=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/check-includes
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# What is allowed.
mkdir -p "$tree"/{preload,emitter/wire,emitter/unwind,reader/views}
echo '#include "emitter/recorder.h"' >"$tree/preload/malloc.cc"
echo '#include "emitter/wire/rows.h"' >"$tree/emitter/unwind/walk.cc"
echo '#include "emitter/wire/events.inc"' >"$tree/emitter/wire/events.h"
printf '#include <vector>\n#include "emitter/wire/rows.h"\n#include "reader/profile.h"\n' >"$tree/reader/views/top.cc"
"$check" "$tree" || fail "a good tree is refused"

# What is not: file, include, and the line that must be named.
refuse() {
  local file=$1 include=$2 copy said
  copy=$(mktemp -d -p "$tree")
  cp -r "$tree"/{preload,emitter,reader} "$copy"
  printf '\n#include "%s"\n' "$include" >"$copy/$file"
  if said=$("$check" "$copy"); then fail "$file may include $include"; fi
  if [[ $said != "$file:2:"* || $said == *$'\n'* ]]; then fail "$file with $include: it says '$said'"; fi
}
refuse reader/read.cc emitter/recorder.h
refuse reader/read.cc preload/hooks.h
refuse emitter/slots.cc preload/hooks.h
refuse emitter/slots.cc reader/profile.h
refuse emitter/wire/rows.h emitter/slots.h
refuse emitter/wire/rows.h reader/profile.h
refuse preload/malloc.cc reader/profile.h
refuse reader/read.cc ../emitter/slots.h
refuse reader/read.cc status.h

mkdir "$tree/empty"
"$check" "$tree/empty" 2>/dev/null && fail "a folder without our parts passes"
echo passed
