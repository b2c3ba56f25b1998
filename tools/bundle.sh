#!/usr/bin/env bash
# bundle.sh OUT.tar.xz TARGET... - a release build (LLVM inside libtile.so, stripped) packed with the libraries it needs, to
# run on a machine that has none of them: unpack anywhere, run ./run PROGRAM ARGS.
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
out=$(realpath -m "$1"); shift
TILE_BUILD=${TILE_BUILD_DIR:-$TILE_ROOT/build-release}
configure -DCMAKE_BUILD_TYPE=Release -DTILE_STATIC_LLVM=ON
build "$@"
stage=$(mktemp -d); trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage/bin" "$stage/lib"
for t in "$@"; do cp "$TILE_BUILD/bin/$t" "$stage/bin/"; done
find "$TILE_BUILD" -maxdepth 1 -name 'libtile.so.*' -type l -exec cp -L {} "$stage/lib/" \;
strip "$stage"/bin/* "$stage"/lib/*
# Everything below the C and C++ runtimes travels along.
for f in "$stage"/bin/* "$stage"/lib/*; do LD_LIBRARY_PATH="$stage/lib" ldd "$f"; done |
  awk '/=> \// {print $3}' | grep -v "^$stage" | grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux.*|libstdc\+\+|libgcc_s)\.so' | sort -u |
  xargs -r -I{} cp -L {} "$stage/lib/"
printf '#!/bin/sh\nd=$(cd "$(dirname "$0")" && pwd); p=$1; shift\nexport LD_LIBRARY_PATH="$d/lib:$LD_LIBRARY_PATH"\nexec "$d/bin/$p" "$@"\n' >"$stage/run"
chmod +x "$stage/run"
mkdir -p "$(dirname "$out")"
tar -C "$stage" -cJf "$out" .
ls -la "$out" >&2
