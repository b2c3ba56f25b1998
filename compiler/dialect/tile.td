// tile.td - everything TableGen makes classes from.
include "compiler/dialect/tile_ops.td"
include "compiler/dialect/tile_gpu.td"
include "compiler/dialect/tile_smem.td"
include "compiler/dialect/tile_roles.td"
