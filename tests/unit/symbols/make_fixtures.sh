#!/bin/bash
# Compiles the fixtures in each form of debug information that the symbolizer reads or refuses.
# Usage: make_fixtures.sh SOURCES OUTPUT. A tool that is not installed leaves its fixtures out and a line in OUTPUT/missing.
set -euo pipefail
sources=$(cd "$1" && pwd)
rm -rf "$2"
mkdir -p "$2"
cd "$2"
: > missing

have() {
  if command -v "$1" > /dev/null 2>&1; then return 0; fi
  echo "$1 is not installed" >> missing
  return 1
}

# build NAME CXX FLAGS...: a program of both sources, each in its own folder (split debug files lie there).
link_flags=()
build() {
  local name=$1 cxx=$2
  shift 2
  local cc=${cxx/clang++/clang}
  cc=${cc/g++/gcc}
  mkdir -p "$name"
  (
    cd "$name"
    "$cc" -std=gnu11 "$@" -c "$sources/plain.c" -o plain.o
    "$cxx" -std=c++17 "$@" -c "$sources/shapes.cc" -o shapes.o
    "$cxx" "$@" shapes.o plain.o -o program -Wl,--build-id=sha1 "${link_flags[@]}"
  )
}

build gcc-dwarf4 g++ -O2 -gdwarf-4
build gcc-dwarf5 g++ -O2 -gdwarf-5
build gcc-O0 g++ -O0 -g
build gcc-no-pie g++ -O2 -g -no-pie -fno-pie
build gcc-types g++ -O2 -g -fdebug-types-section
build gcc-zlib g++ -O2 -g -gz=zlib
build gcc-zlib-gnu g++ -O2 -g -gz=zlib-gnu
build gcc-split4 g++ -O2 -gdwarf-4 -gsplit-dwarf
build gcc-split5 g++ -O2 -gdwarf-5 -gsplit-dwarf
build gcc-lto g++ -O2 -g -flto=1
build gcc-none g++ -O2 -g0
if have clang++; then
  build clang-dwarf4 clang++ -O2 -gdwarf-4
  build clang-dwarf5 clang++ -O2 -gdwarf-5 -gno-pubnames
  build clang-O0 clang++ -O0 -g
  build clang-reduced clang++ -O2 -gline-tables-only
  build clang-split4 clang++ -O2 -gdwarf-4 -gsplit-dwarf
  build clang-split5 clang++ -O2 -gdwarf-5 -gsplit-dwarf
fi
link_flags=("-Wl,--gc-sections")
build gcc-discarded g++ -O2 -g -ffunction-sections
if command -v clang++ > /dev/null 2>&1; then build clang-discarded clang++ -O2 -g -ffunction-sections; fi
link_flags=()

mkdir -p gcc-shared
(
  cd gcc-shared
  g++ -std=c++17 -O2 -g -fPIC -c "$sources/shapes.cc" -o shapes.o
  gcc -std=gnu11 -O2 -g -fPIC -c "$sources/plain.c" -o plain.o
  g++ -shared shapes.o plain.o -o program -Wl,--build-id=sha1
)

mkdir -p rangeless
(cd rangeless && gcc -c "$sources/rangeless.s" -o rangeless.o && ld rangeless.o -o program --build-id=sha1)

# Split debug files that are gone, or packed into one .dwp.
mkdir -p split-lost
(
  cd split-lost
  g++ -std=c++17 -O2 -g -gsplit-dwarf -c "$sources/shapes.cc" -o shapes.o
  gcc -std=gnu11 -O2 -g -c "$sources/plain.c" -o plain.o
  g++ shapes.o plain.o -o program -Wl,--build-id=sha1
  rm ./*.dwo
)
if have dwp; then
  mkdir -p split-packed
  (
    cd split-packed
    g++ -std=c++17 -O2 -gdwarf-4 -gsplit-dwarf -c "$sources/shapes.cc" -o shapes.o
    gcc -std=gnu11 -O2 -gdwarf-4 -gsplit-dwarf -c "$sources/plain.c" -o plain.o
    g++ shapes.o plain.o -o program -Wl,--build-id=sha1
    dwp -e program -o program.dwp
    rm ./*.dwo
  )
fi

# Debug information in a file of its own: beside the program, by build id, by checksum alone, and one that belongs elsewhere.
strip_to() {  # strip_to PROGRAM DEBUGFILE
  objcopy --only-keep-debug "$1" "$2"
  objcopy --strip-all "$1"
}
mkdir -p debug-link/.debug
cp gcc-dwarf5/program debug-link/program
(cd debug-link && strip_to program .debug/other-name.debug &&
  cd .debug && objcopy --add-gnu-debuglink=other-name.debug ../program)
mkdir -p debug-link-no-id
(
  cd debug-link-no-id
  cp ../gcc-dwarf5/program program
  objcopy --remove-section=.note.gnu.build-id program
  strip_to program program.debug
  objcopy --add-gnu-debuglink=program.debug program
  mkdir damaged
  cp program damaged/program
  cp program.debug damaged/program.debug
  printf 'x' >> damaged/program.debug
)
mkdir -p by-build-id
cp clang-dwarf5/program by-build-id/program 2> /dev/null || cp gcc-dwarf5/program by-build-id/program
(
  cd by-build-id
  id=$(readelf -n program | sed -n 's/.*Build ID: //p')
  mkdir -p "debug/.build-id/${id:0:2}"
  strip_to program "debug/.build-id/${id:0:2}/${id:2}.debug"
)

# The debug file was made before the addresses of the program moved (as prelink does): two links of the same objects.
mkdir -p moved/.debug
(
  cd moved
  link() { g++ ../gcc-dwarf5/shapes.o ../gcc-dwarf5/plain.o -Wl,--build-id=0x0123456789abcdef0123456789abcdef01234567 "$@"; }
  link -o before
  link -o program -Wl,-Ttext-segment=0x5000000
  strip_to before .debug/program.debug
  objcopy --strip-all program
  (cd .debug && objcopy --add-gnu-debuglink=program.debug ../program)
  rm before
)

# Symbol tables only.
mkdir -p symtab-only dynsym-only
cp gcc-none/program symtab-only/program
cp gcc-shared/program dynsym-only/program
objcopy --strip-all dynsym-only/program

# Functions without .symtab in xz-compressed .gnu_debugdata.
if have xz; then
  mkdir -p mini
  (
    cd mini
    cp ../gcc-dwarf5/program program
    objcopy --only-keep-debug --strip-debug program program.mini
    objcopy --strip-all program
    xz -k program.mini
    objcopy --add-section .gnu_debugdata=program.mini.xz program
    rm program.mini program.mini.xz
  )
fi

mkdir -p zstd
if ! objcopy --compress-debug-sections=zstd gcc-dwarf5/program zstd/program 2> /dev/null; then
  echo "objcopy cannot compress with zstd" >> missing
  rm -r zstd
fi

# Two programs that share a part of their debug information.
if have dwz; then
  mkdir -p dwz
  cp gcc-dwarf4/program dwz/program
  cp gcc-dwarf4/program dwz/second
  (cd dwz && dwz -m common.debug -M common.debug program second 2> dwz.log) || {
    echo "dwz cannot share debug information" >> missing
    rm -r dwz
  }
fi

if have rustc; then
  mkdir -p rust
  rustc -g -C opt-level=2 "$sources/rusty.rs" -o rust/program 2> rust/log || {
    echo "rustc cannot compile" >> missing
    rm -r rust
  }
fi
cat missing
