#!/usr/bin/env bash
# demo.sh - sets up, builds, and runs flash attention, block-sparse matmul and gated linear attention on the best device
# present (the CPU when there is no GPU), each checked against a float64 reference. Arguments go to the demo program.
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
build demo
exec "$TILE_BUILD/bin/demo" "$@"
