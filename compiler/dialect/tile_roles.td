// tile_roles.td - programs whose warps have different jobs: a producer that copies tiles with the tensor memory
// accelerator (TMA) or, where tiles are no boxes of views, by asynchronous copies of threads; consumers that compute,
// rings of stages between them, and a loop over work items around both.
//
// specialize makes these ops from a plain tile loop; the producer is the slice of the kernel that says what is copied where.
// A ring is a queue: the k-th reserve of the producer is the k-th acquire and the k-th release of every consumer. Who
// keeps that order on every path needs no phases or counters in the IR; the lowering keeps them (one cursor per end).
#ifndef TILE_ROLES_TD
#define TILE_ROLES_TD

include "compiler/dialect/tile_smem.td"

def Tile_RingType : Tile_Type<"Ring", "ring"> {
  let summary = "the full and empty barriers of a queue of `stages` stages in shared memory";
  let parameters = (ins "int64_t":$stages);
  let assemblyFormat = "`<` $stages `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t bytes() const { return 16 * getStages(); }  ///< a full and an empty barrier for each stage
  }];
}

// ---- roles
def Tile_SpecializeOp : Tile_Op<"specialize", [SingleBlock, NoTerminator, NoRegionArguments, RecursiveMemoryEffects]> {
  let summary = "one warpgroup runs `producer`, one of its threads or all; tile.num_warps other warps run `consumer`";
  let description = [{
    The last op of the kernel but the return. Consumers are the warps 0 .. tile.num_warps - 1, so layouts, thread
    coordinates and warp grids mean the same inside as without roles; the producer's warpgroup comes behind them. In the
    producer there are scalars, views and control flow on scalars, ring_reserve, tma_load and reads of scalars. One with a
    ring_commit runs on all threads of its warpgroup (one of them starts the bulk copies): it also has async_copy,
    async_gather and the tiles these need, laid out over its four warps; of tiles only what a thread computes by itself.
    `turner` runs on the other three warps of a producer that is one thread. It takes tiles from rings that the producer
    fills, turns them (smem_turn) into stages of rings that the consumers read, and is a program of its own between the
    two: it acquires and releases the former, reserves and commits the latter, and has control flow on scalars.
    `producerRegs` and `consumerRegs` are registers per thread (multiples of 8 from 24 to 256) that the roles change to; 0:
    what they enter with. Threads of all roles together must not ask for more than the program entered with: that would
    wait for ever. A program enters with its share of the multiprocessor's registers when `programs` of them run there.
  }];
  let arguments = (ins I32Attr:$producerRegs, I32Attr:$consumerRegs,
                       DefaultValuedAttr<ConfinedAttr<I32Attr, [IntPositive]>, "1">:$programs);
  let regions = (region SizedRegion<1>:$producer, SizedRegion<1>:$consumer, MaxSizedRegion<1>:$turner);
  let assemblyFormat = "`regs` `(` $producerRegs `,` $consumerRegs `)` (`programs` $programs^)? `producer` $producer (`turner` $turner^)? `consumer` $consumer attr-dict";
  let extraClassDeclaration = [{
    static constexpr int kTurnerWarps = 3;
    bool hasTurner() { return !getTurner().empty(); }
  }];
  let hasVerifier = 1;
}
def Tile_WorkLoopOp : Tile_Op<"work_loop", [SingleBlock, NoTerminator, RecursiveMemoryEffects, AttrSizedOperandSegments]> {
  let summary = "runs the body for program ids (x, y, z) until the grid is done: fewer programs than the grid has positions";
  let description = [{
    The kernel is launched with as many programs as the machine runs at a time; the true grid comes as hidden arguments.
    Without a queue, program p takes positions p, p + programs, ... (x fastest). With one, the producer draws tickets from a
    counter in global memory and hands them to the consumers through the queue's stages: positions start in order, whoever
    is free takes the next. Both roles of a kernel must have the same kind. `band`: the grid is divided along x into bands
    of about so many positions (at least 1), as even as can be; a band is finished (x fastest) before the next begins.
  }];
  let arguments = (ins Optional<Tile_RingType>:$queue, Optional<I32>:$band);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`queue` $queue^ `:` type($queue))? (`band` $band^)? $body attr-dict";
  let hasVerifier = 1;
}

// ---- rings
def Tile_RingAllocOp : Tile_Op<"ring_alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "barriers of a ring, all stages empty; place_buffers sets `offset` (bytes). `arrivals` releases empty a stage";
  let description = [{
    `arrivals`: releases per stage and round: the number of consumer warpgroups when each releases once (`perWarp` false),
    the number of consumer warps when every warp does. A queue of a producer of several warps is read by them, too: their
    number comes on top; so is it by a turner. A ring that a turner reads is released by its warps alone. The stages' memory is smem_alloc's; which buffers a ring guards shows in the copies.
    `payload`: bytes of plain data per stage behind the barriers (queues of work_loop).
    `fills`: arrivals that fill a stage: 1 of the thread that announces bulk copies, 4 of the producer's warps where its
    threads copy, 5 of both. `turned`: the turner's warps fill it, 3 of them, or 4 with bulk copies beside.
  }];
  let arguments = (ins I32Attr:$arrivals, UnitAttr:$perWarp, DefaultValuedAttr<I32Attr, "0">:$payload,
                       DefaultValuedAttr<I32Attr, "1">:$fills, UnitAttr:$turned, OptionalAttr<I32Attr>:$offset);
  let results = (outs Tile_RingType:$result);
  let assemblyFormat = "`arrivals` $arrivals (`per_warp` $perWarp^)? (`payload` $payload^)? (`fills` $fills^)? (`turned` $turned^)? (`at` $offset^)? attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    static constexpr uint32_t kBulkFill = 1, kThreadFills = 4, kTurnFills = 3;
    bool isFilledByThreads() { return !getTurned() && getFills() >= kThreadFills; }
    bool isFilledInBulk() { return getFills() != (getTurned() ? kTurnFills : kThreadFills); }
  }];
}
def Tile_RingReserveOp : Tile_Op<"ring_reserve", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "producer, turner: waits until the next stage is empty; the producer announces `bytes` of copies into it";
  let arguments = (ins Tile_RingType:$ring, I32Attr:$bytes);
  let results = (outs I32:$slot);
  let assemblyFormat = "$ring `bytes` $bytes attr-dict `:` type($ring)";
}
def Tile_RingCommitOp : Tile_Op<"ring_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "producer: copies that its threads have started for this stage count there when they have landed; turner: it is full";
  let description = [{
    Does not wait: the hardware counts a stage for each of the producer's threads when what the thread has started has landed
    (lowering/filling.cpp). Every async_copy and async_gather into the stage stands between its ring_reserve and
    this op, which follows on every path. A turner's tiles are written when it gets here, and every warp counts at once.
  }];
  let arguments = (ins Tile_RingType:$ring, I32:$slot);
  let assemblyFormat = "$ring `[` $slot `]` attr-dict `:` type($ring)";
}
def Tile_RingAcquireOp : Tile_Op<"ring_acquire", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "consumer, turner: waits until the copies of the next stage have landed; returns its index";
  let arguments = (ins Tile_RingType:$ring);
  let results = (outs I32:$slot);
  let assemblyFormat = "$ring attr-dict `:` type($ring)";
}
def Tile_RingReleaseOp : Tile_Op<"ring_release", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "consumer, turner: the oldest acquired stage has been read; nothing happens when `enable` is false";
  let arguments = (ins Tile_RingType:$ring, Optional<I1>:$enable);
  let assemblyFormat = "$ring (`if` $enable^)? attr-dict `:` type($ring)";
}

// ---- scalars
def Tile_HandOverOp : Tile_Op<"hand_over", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "producer: waits until the next stage of `ring` is empty, writes the scalars into it and counts it as full";
  let description = [{
    The k-th hand_over meets the k-th take_over of every consumer warp. The stage's payload holds the values in 32-bit
    words, one behind the other.
  }];
  let arguments = (ins Tile_RingType:$ring, Variadic<AnyTypeOf<[AnyInteger, F32, F64]>>:$values);
  let assemblyFormat = "$values `through` $ring attr-dict `:` type($values) `through` type($ring)";
  let extraClassDeclaration = [{
    static int64_t wordsOf(::mlir::TypeRange types);  ///< 32-bit words of scalars of these types
  }];
  let hasVerifier = 1;
}
def Tile_TakeOverOp : Tile_Op<"take_over", [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["values", "results"]>]> {
  let summary = "consumer: the scalars of the producer's hand_over, which are `values`, without computing them";
  let description = [{
    Every warp waits for the next stage of `ring`, reads it and gives it back. To analyses the results are the operands:
    what is known of these holds. The lowering reads the stage, so that whatever only the operands need is dead.
  }];
  let arguments = (ins Tile_RingType:$ring, Variadic<AnyTypeOf<[AnyInteger, F32, F64]>>:$values);
  let results = (outs Variadic<AnyTypeOf<[AnyInteger, F32, F64]>>:$results);
  let assemblyFormat = "$values `through` $ring attr-dict `:` type($values) `through` type($ring)";
  let hasVerifier = 1;
}

// ---- TMA
def Tile_TmaLoadOp : Tile_Op<"tma_load", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "producer: starts copying a box of a view into one stage; zeros outside the view. Counts on the ring's full barrier";
  let description = [{
    The view has a unit stride in one of the box's two dims, is 16-byte aligned, all its other strides are multiples of 16
    bytes (tma_box.h decides). Of a kernel argument the tensor map is encoded at launch and comes as a hidden argument; of a
    view made in the kernel, a tma_describe writes it.
    The box is the whole of the target's shape, or `tile.box` (tma_box.h), whose dims but the last are the target's rows.
  }];
  let arguments = (ins Tile_ViewType:$view, Variadic<AnyTypeOf<[I32, I64]>>:$indices, Tile_SmemType:$target, Tile_RingType:$ring, I32:$slot,
                       DefaultValuedAttr<Tile_CacheHintAttr, "CacheHint::none">:$cache);
  let assemblyFormat = "$view `[` $indices `:` type($indices) `]` `to` $target `signals` $ring `[` $slot `]` (`cache` $cache^)? attr-dict `:` type($view) `,` type($target) `,` type($ring)";
  let hasVerifier = 1;
}
def Tile_TmaDescribeOp : Tile_Op<"tma_describe", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "producer: from here on, the tensor maps of copies from a view that is made in the kernel describe it";
  let description = [{
    Stands behind the view's make_view, in front of every tma_load from it. A map that changes moves to another place,
    which no copy reads (lowering/made_maps.cpp); maps are put together in `memory`, a tile of kTensorMapBytes bytes.
  }];
  let arguments = (ins Tile_ViewType:$view, Tile_SmemType:$memory);
  let assemblyFormat = "$view `in` $memory attr-dict `:` type($view) `,` type($memory)";
  let hasVerifier = 1;
}
def Tile_TmaStoreOp : Tile_Op<"tma_store", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "consumers: writes (or adds) a box of a view through `staging`; elements outside the view are not written";
  let description = [{
    Every consumer warpgroup writes its own rows (or columns, where warpgroups are side by side): waits until its previous
    tma_store has read the staging buffer, stores its registers, and one of its threads starts the copy. Nobody waits for
    another warpgroup. The tile is in a wgmma accumulator layout. `staging` has the tile's rows, and as many of its columns as are copied at a time (a divisor). It may
    be a ring's stage that this kernel acquired and whose tile nobody reads any more; its release waits for the copy.
    `add`: adds instead of writing (f32, f16, bf16, i32; relaxed, in no particular order).
  }];
  let arguments = (ins Tile_Tile2D:$value, Tile_ViewType:$view, Variadic<AnyTypeOf<[I32, I64]>>:$indices, Tile_SmemType:$staging, UnitAttr:$add,
                       DefaultValuedAttr<Tile_CacheHintAttr, "CacheHint::none">:$cache);
  let assemblyFormat = "(`add` $add^)? $value `,` $view `[` $indices `:` type($indices) `]` `through` $staging (`cache` $cache^)? attr-dict `:` type($value) `,` type($view) `,` type($staging)";
  let hasVerifier = 1;
}

// ---- asynchronous products
def Tile_MmaWaitOp : Tile_Op<"mma_wait", [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["accs", "results"]>]> {
  let summary = "waits until at most `pending` of this warpgroup's groups of asynchronous products are unfinished";
  let description = [{
    Every tile.mma on a wgmma engine is one group here, of however many instruction groups. Its result may only be the
    accumulator of another such product, or pass through here, before anything reads it; nothing may write what it reads
    before. Results are the operands, readable when their groups are among the finished.
  }];
  let arguments = (ins ConfinedAttr<I32Attr, [IntMinValue<0>, IntMaxValue<7>]>:$pending, Variadic<Tile_Tile2D>:$accs);
  let results = (outs Variadic<Tile_Tile2D>:$results);
  let assemblyFormat = "$pending (`of` $accs^ `:` type($accs))? attr-dict";
}

// ---- turns
def Tile_TurnWaitOp : Tile_Op<"turn_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits for this consumer warpgroup's turn; the first turn is warpgroup 0's";
  let assemblyFormat = "attr-dict";
}
def Tile_TurnPassOp : Tile_Op<"turn_pass", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "gives the turn to the next consumer warpgroup, round robin";
  let assemblyFormat = "attr-dict";
}

#endif
