#!/usr/bin/env bash
# test.sh - sets up, builds everything and runs every test (GoogleTest and lit, through ctest). Arguments go to ctest,
# e.g. `tools/test.sh -R layout`.
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
build
say "testing"
cd "$TILE_BUILD"
ctest --output-on-failure -j "$(nproc)" "$@"
