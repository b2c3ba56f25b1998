#!/usr/bin/env bash
# setup.sh - installs what the build needs and leaves a configured build tree. Sourced by demo.sh and test.sh.
# A second call finds everything in place and takes well under a second.
set -euo pipefail
TILE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TILE_BUILD=${TILE_BUILD_DIR:-$TILE_ROOT/build}
LLVM_VERSION=22

packages=(cmake ninja-build g++ ccache mold pkg-config python3
  "llvm-$LLVM_VERSION-dev" "libmlir-$LLVM_VERSION-dev" "mlir-$LLVM_VERSION-tools" "llvm-$LLVM_VERSION-tools"
  libfmt-dev libgtest-dev libcli11-dev libtbb-dev nlohmann-json3-dev libxxhash-dev
  zlib1g-dev libzstd-dev libxml2-dev libcurl4-openssl-dev libedit-dev libffi-dev)

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }

install_packages() {
  local missing=()
  for p in "${packages[@]}"; do
    dpkg-query -W -f='${db:Status-Abbrev}' "$p" 2>/dev/null | grep -q '^ii' || missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && return
  local sudo=""
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "Missing packages: ${missing[*]}. Install them as root and run this again." >&2; exit 3; }
    sudo=sudo
  fi
  say "installing ${missing[*]}"
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -q >/dev/null
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" >/dev/null
}

if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
  install_packages
elif [ ! -d "/usr/lib/llvm-$LLVM_VERSION" ] && ! command -v "llvm-config-$LLVM_VERSION" >/dev/null; then
  cat >&2 <<MESSAGE
This script installs packages on Debian and Ubuntu only. On this system please install, then run it again:
  C++20 compiler (g++ >= 12), cmake >= 3.25, ninja, LLVM and MLIR $LLVM_VERSION.1 with headers (set CMAKE_PREFIX_PATH if they
  are not in /usr/lib/llvm-$LLVM_VERSION), fmt, GoogleTest, CLI11, oneTBB, nlohmann-json, xxHash; optional: ccache, mold.
Debian's names for them: ${packages[*]}
MESSAGE
  exit 3
fi

# The CUDA toolkit is optional: ptxas makes cubins (else the driver does), NVRTC compiles a user's own CUDA C++.
if [ -d /usr/local/cuda/bin ]; then export PATH="$PATH:/usr/local/cuda/bin"; fi

configure() {
  local stamp="$TILE_BUILD/build.ninja"
  if [ ! -f "$stamp" ]; then
    say "configuring $TILE_BUILD"
    cmake -G Ninja -S "$TILE_ROOT" -B "$TILE_BUILD" "$@" >"${TMPDIR:-/tmp}/tile-configure.log" 2>&1 ||
      { cat "${TMPDIR:-/tmp}/tile-configure.log" >&2; exit 1; }
  fi
}

# build TARGET... : quiet when there is nothing to do, the compiler's own words when something fails.
build() {
  configure
  say "building: ${*:-everything}"
  ninja -C "$TILE_BUILD" "$@" >"$TILE_BUILD/build.log" 2>&1 ||
    { grep -E "error|FAILED" -A5 "$TILE_BUILD/build.log" | head -80 >&2; echo "full log: $TILE_BUILD/build.log" >&2; exit 1; }
}
