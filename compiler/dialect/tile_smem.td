// tile_smem.td - tiles in shared memory, asynchronous copies into them, and matrix products that read them.
//
// Two levels. place_operands writes the value level: load_shared, gather_shared and share give a tile in shared memory as
// an SSA value, readable by every thread of the program. stage turns these into buffers: smem_alloc, async_copy, smem_store,
// async_wait, barrier; loops get rings of several stages. Back ends see only the buffer level.
#ifndef TILE_SMEM_TD
#define TILE_SMEM_TD

include "compiler/dialect/tile_ops.td"

def Tile_SmemType : Tile_Type<"Smem", "smem"> {
  let summary = "a rank-2 tile in shared memory, or a ring of `stages` of them";
  let description = [{
    `!tile.smem<128x64xf16, minor = 1, stages = 3>`. `minor` is the dim whose elements are neighbours in memory; addresses
    are those of layout::swizzledTile over (other dim, minor dim). The shape may exceed the tile it holds: what is outside
    the tile reads as zero when a product may read it along k, and as anything elsewhere.
    `interleaved` (8-bit elements): in every 16 bytes along `minor`, byte 4 t + 2 x + c holds element 8 x + 2 t + c, as a
    quad of threads t holds the columns of accumulators. Such tiles are written by smem_turn and read by products whose
    first operand is in registers, which is what makes the two fit without exchanging elements between threads.
    `panel`: at most so many elements of a row lie together, 0: as many as the widest swizzle holds. Boxes that are copied
    row of pixels by row of pixels ask for panels of one. Where panels do not divide the row, the last one has room that
    nothing fills or reads: rows of 80 f16 are five panels of 16, or a panel of 64 and a quarter of another.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType, "int64_t":$minor, "int64_t":$stages,
                        "bool":$interleaved, "int64_t":$panel);
  let builders = [TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType, "int64_t":$minor, "int64_t":$stages), [{
    return $_get($_ctxt, shape, elementType, minor, stages, /*interleaved=*/false, /*panel=*/0);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isRing() const { return getStages() > 1; }
    /// One stage of a ring; the type itself otherwise.
    SmemType slotType() const;
    SmemType withStages(int64_t stages) const;
    SmemType transposed() const;
    SmemType withInterleaved(bool interleaved) const;
    SmemType withPanel(int64_t panel) const;
    int64_t elementBytes() const;
    /// Addresses inside one slot: rows run along the major dim.
    ::tile::layout::SharedTile slot() const;
    int64_t slotBytes() const;   ///< one stage, rounded up to the alignment
    int64_t bytes() const { return slotBytes() * getStages(); }
    int64_t alignment() const;
    /// Of a box that is copied into one stage: how many of its last dims make a row. Several where it fills the tile that
    /// way (pixels of a patch side by side, channels its rows), else one.
    int64_t columnDims(::llvm::ArrayRef<int64_t> box) const;
  }];
}

def Tile_Tile2D : 2DTensorOf<[Tile_Number]>;

// ---- value level
def Tile_LoadSharedOp : Tile_Op<"load_shared", [MemoryEffects<[MemRead]>]> {
  let summary = "tile.load whose result lives in shared memory; `box` is the tile (all its dims but the last, or the last few, are rows: columnDims), the rest of the result's shape is padding";
  let arguments = (ins Tile_ViewType:$view, Variadic<AnyTypeOf<[I32, I64]>>:$indices, DenseI64ArrayAttr:$box,
                       DefaultValuedAttr<Tile_CacheHintAttr, "CacheHint::none">:$cache);
  let results = (outs Tile_SmemType:$result);
  let assemblyFormat = "$view `[` $indices `:` type($indices) `]` `box` $box (`cache` $cache^)? attr-dict `:` type($view) `->` type($result)";
  let hasVerifier = 1;
}
def Tile_GatherSharedOp : Tile_Op<"gather_shared", [MemoryEffects<[MemRead]>]> {
  let summary = "tile.gather whose result lives in shared memory; lanes with mask false read 0";
  let arguments = (ins Tile_PtrType:$ptr, TensorOf<[I32, I64]>:$offsets, Optional<TensorOf<[I1]>>:$mask,
                       DefaultValuedAttr<Tile_CacheHintAttr, "CacheHint::none">:$cache);
  let results = (outs Tile_SmemType:$result);
  let assemblyFormat = "$ptr `offsets` $offsets `:` type($offsets) (`mask` $mask^ `:` type($mask))? (`cache` $cache^)? attr-dict `:` type($ptr) `->` type($result)";
  let hasVerifier = 1;
}
def Tile_ShareOp : Tile_Op<"share", [Pure]> {
  let summary = "a register tile, stored where every thread of the program can read it";
  let arguments = (ins Tile_Tile2D:$source);
  let results = (outs Tile_SmemType:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

// ---- buffer level
def Tile_SmemAllocOp : Tile_Op<"smem_alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "a buffer in shared memory; contents undefined. place_buffers sets `offset` (bytes)";
  let arguments = (ins OptionalAttr<I32Attr>:$offset);
  let results = (outs Tile_SmemType:$result);
  let assemblyFormat = "(`at` $offset^)? attr-dict `:` type($result)";
}
def Tile_SmemSlotOp : Tile_Op<"smem_slot", [Pure]> {
  let summary = "one stage of a ring; the index must be below the number of stages";
  let description = "A stage holds any tile that fits, of whatever type: loops one behind the other share rings.";
  let arguments = (ins Tile_SmemType:$ring, I32:$index);
  let results = (outs Tile_SmemType:$result);
  let assemblyFormat = "$ring `[` $index `]` attr-dict `:` type($ring) `->` type($result)";
  let hasVerifier = 1;
}
def Tile_SmemTransOp : Tile_Op<"smem_trans", [Pure]> {
  let summary = "the same bytes with the two dims swapped";
  let arguments = (ins Tile_SmemType:$source);
  let results = (outs Tile_SmemType:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}
def Tile_SmemLoadOp : Tile_Op<"smem_load", [MemoryEffects<[MemRead]>]> {
  let summary = "the tile at the origin of a buffer, into registers";
  let arguments = (ins Tile_SmemType:$source);
  let results = (outs Tile_Tile2D:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}
def Tile_SmemStoreOp : Tile_Op<"smem_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "a register tile, to the origin of a buffer; padding of the buffer is not touched";
  let arguments = (ins Tile_Tile2D:$value, Tile_SmemType:$target);
  let assemblyFormat = "$value `,` $target attr-dict `:` type($value) `,` type($target)";
  let hasVerifier = 1;
}
def Tile_SmemTurnOp : Tile_Op<"smem_turn", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "the turner of a tile.specialize: the same tile with another minor dim, from one buffer to another";
  let description = [{
    Of 8-bit or 32-bit elements, whole 32x32 blocks: `source` and `target` have one shape and different `minor` dims. The warps of
    the turner divide the tile; those of other roles see it behind their ring_acquire.
  }];
  let arguments = (ins Tile_SmemType:$source, Tile_SmemType:$target);
  let extraClassDeclaration = [{
    static bool turns(int64_t elementBytes) { return elementBytes == 1 || elementBytes == 4; }
  }];
  let assemblyFormat = "$source `to` $target attr-dict `:` type($source) `,` type($target)";
  let hasVerifier = 1;
}
def Tile_SmemZeroOp : Tile_Op<"smem_zero", [MemoryEffects<[MemWrite]>]> {
  let summary = "zero bytes in every stage of a buffer, padding included; with a box, only outside of it";
  let description = "What is written into the box may be written at the same time: no byte is both.";
  let arguments = (ins Tile_SmemType:$target, OptionalAttr<DenseI64ArrayAttr>:$box);
  let assemblyFormat = "$target (`outside` $box^)? attr-dict `:` type($target)";
  let hasVerifier = 1;
}
def Tile_SmemCountOp : Tile_Op<"smem_count", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "adds to a row of numbers how many elements are 0, 1, .. below its length, or their weights; others are not counted";
  let description = [{
    Atomic additions: several such ops in a row need no barrier between them. Of each number the row has `copies` side by
    side, whose sum it is: neighbouring threads add to different ones.
  }];
  let arguments = (ins Tile_Of<[I32]>:$source, Optional<Tile_Summed>:$weights, Tile_SmemType:$target,
                       DefaultValuedAttr<ConfinedAttr<I32Attr, [IntMinValue<1>, IntMaxValue<32>]>, "1">:$copies);
  let assemblyFormat = "$source (`weights` $weights^ `:` type($weights))? `in` $target (`copies` $copies^)? attr-dict `:` type($source) `,` type($target)";
  let hasVerifier = 1;
}
def Tile_AsyncCopyOp : Tile_Op<"async_copy", [MemoryEffects<[MemRead, MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "starts copying a box of a view to the origin of a buffer; zeros outside the view, and everywhere when `enable` is false";
  let description = "Done for the copying thread after async_wait, for the other threads after a barrier behind that.";
  let arguments = (ins Tile_ViewType:$view, Variadic<AnyTypeOf<[I32, I64]>>:$indices, Tile_SmemType:$target,
                       Optional<I1>:$enable, DenseI64ArrayAttr:$box, DefaultValuedAttr<Tile_CacheHintAttr, "CacheHint::none">:$cache);
  let assemblyFormat = "$view `[` $indices `:` type($indices) `]` `to` $target (`if` $enable^)? `box` $box (`cache` $cache^)? attr-dict `:` type($view) `,` type($target)";
  let hasVerifier = 1;
}
def Tile_AsyncGatherOp : Tile_Op<"async_gather", [MemoryEffects<[MemRead, MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "starts copying gathered elements to the origin of a buffer; masked lanes, or `enable` false, give zeros";
  let arguments = (ins Tile_PtrType:$ptr, TensorOf<[I32, I64]>:$offsets, Optional<TensorOf<[I1]>>:$mask, Tile_SmemType:$target,
                       Optional<I1>:$enable, DefaultValuedAttr<Tile_CacheHintAttr, "CacheHint::none">:$cache);
  let assemblyFormat = "$ptr `offsets` $offsets `:` type($offsets) (`mask` $mask^ `:` type($mask))? `to` $target (`if` $enable^)? (`cache` $cache^)? attr-dict `:` type($ptr) `,` type($target)";
  let hasVerifier = 1;
}
def Tile_AsyncCommitOp : Tile_Op<"async_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "closes the group of this thread's async copies so far";
  let assemblyFormat = "attr-dict";
}
def Tile_AsyncWaitOp : Tile_Op<"async_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until at most `pending` of this thread's groups are unfinished";
  let arguments = (ins ConfinedAttr<I32Attr, [IntMinValue<0>]>:$pending);
  let assemblyFormat = "$pending attr-dict";
}
def Tile_BarrierOp : Tile_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "all threads of the program; orders their shared-memory accesses";
  let assemblyFormat = "attr-dict";
}

// ---- products
def Tile_Engine : Tile_Enum<"Engine", "how a product is computed; rows of compiler/gpu/forms/mma_table.cpp", [
  I32EnumAttrCase<"fma", 0>, I32EnumAttrCase<"m16n8k16_f16", 1>, I32EnumAttrCase<"m16n8k16_bf16", 2>,
  I32EnumAttrCase<"m16n8k8_tf32", 3>, I32EnumAttrCase<"m16n8k8_tf32x3", 4>, I32EnumAttrCase<"m16n8k32_s8", 5>,
  I32EnumAttrCase<"m16n8k32_f8", 6>, I32EnumAttrCase<"m8n8k4_f64", 7>, I32EnumAttrCase<"m16n8k8_f64", 8>,
  I32EnumAttrCase<"m16n8k256_b1", 9>, I32EnumAttrCase<"wgmma_f16", 10>, I32EnumAttrCase<"wgmma_bf16", 11>,
  I32EnumAttrCase<"wgmma_tf32", 12>, I32EnumAttrCase<"wgmma_s8", 13>, I32EnumAttrCase<"wgmma_f8", 14>,
  I32EnumAttrCase<"wgmma_b1", 15>]>;
def Tile_EngineAttr : Tile_EnumAttr<Tile_Engine, "engine">;

def Tile_MmaOp : Tile_Op<"mma", [MemoryEffects<[MemRead]>, AllTypesMatch<["acc", "result"]>]> {
  let summary = "acc + a * b by one engine over a grid of warpsM x warpsN warps";
  let description = [{
    a is MxK in shared memory, or a register tile in the engine's fragment layout (operandALayout); b is KxN in shared
    memory. Shapes in shared memory are at least the warps' cover of M and N, and `k` rounded up to the engine's k, with
    zeros from `k` on; an interleaved b (of 8-bit elements) wants a in registers. The accumulator's register layout is accumulatorLayout (compiler/gpu/forms/mma_table.h).
    wgmma engines: warpsM is a multiple of 4 (warpgroups along M times 4), the result is ready behind mma_wait. With b of
    other than 16-bit elements that lie along n, the transposed product is computed (products.h): warpsN is the multiple
    of 4.
  }];
  let arguments = (ins Tile_EngineAttr:$engine, AnyTypeOf<[Tile_SmemType, Tile_Tile2D]>:$a, Tile_SmemType:$b, Tile_Tile2D:$acc,
                       I32Attr:$k, I32Attr:$warpsM, I32Attr:$warpsN);
  let results = (outs Tile_Tile2D:$result);
  let assemblyFormat = "$engine `k` $k `warps` `(` $warpsM `,` $warpsN `)` $a `,` $b `,` $acc attr-dict `:` type($a) `,` type($b) `->` type($acc)";
  let hasVerifier = 1;
}

// ---- products of single warps
def Tile_BatchMmaOp : Tile_Op<"batch_mma", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "acc[i] + a[i] * b[i], each product by one warp (or a few side by side), all of it in registers";
  let description = [{
    Matrices are dealt out to the warps in turn. The register layouts of operands and result are those of the engine's
    fragments (batchLayouts, compiler/gpu/forms/mma_table.h): an operand that is the transpose of the other lies as that one does.
  }];
  let arguments = (ins Tile_EngineAttr:$engine, Tile_OfRank<3, [Tile_Number]>:$a, Tile_OfRank<3, [Tile_Number]>:$b,
                       Tile_OfRank<3, [Tile_Number]>:$acc);
  let results = (outs Tile_OfRank<3, [Tile_Number]>:$result);
  let assemblyFormat = "$engine $a `,` $b `,` $acc attr-dict `:` type($a) `,` type($b) `->` type($acc)";
  let hasVerifier = 1;
}

#endif
