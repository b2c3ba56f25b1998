// tile_counts.td - counting in a table that stays in shared memory (gpu/overlap/count_in_place.cpp). Few files see it:
// count_ops.h is no part of dialect.h.
#ifndef TILE_COUNTS_TD
#define TILE_COUNTS_TD

include "compiler/dialect/tile_smem.td"

def Tile_SmemCountOp : Tile_Op<"smem_count", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "adds to a row of numbers in shared memory how many elements are 0, 1, .. below its length; others are not counted";
  let description = "Atomic additions: several such ops in a row need no barrier between them.";
  let arguments = (ins Tile_Of<[I32]>:$source, Tile_SmemType:$target);
  let assemblyFormat = "$source `in` $target attr-dict `:` type($source) `,` type($target)";
  let hasVerifier = 1;
}

#endif
