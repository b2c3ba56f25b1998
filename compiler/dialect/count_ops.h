// count_ops.h - tile.smem_count (tile_counts.td).
#pragma once
#include "compiler/dialect/dialect.h"

#define GET_OP_CLASSES
#include "compiler/dialect/tile_counts.h.inc"
