// What is looked up at addresses that were loaded is read as well under any layout: it takes that of the loads and stores
// around it, which stay wide.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: .entry table
// CHECK-NOT: ld.global{{.*}}b8
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK-NOT: {{st.shared|st.global.b8}}
// CHECK: ret;
func.func @table(%x: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 64, 64>}, %t: !tile.ptr<i32>, %y: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 64, 64>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<64x64xi8>
  %i = arith.extui %a : tensor<64x64xi8> to tensor<64x64xi32>
  %v = tile.gather %t offsets %i : tensor<64x64xi32> : !tile.ptr<i32> -> tensor<64x64xi32>
  %b = arith.trunci %v : tensor<64x64xi32> to tensor<64x64xi8>
  tile.store %b, %y[%c0, %c0 : i32, i32] : tensor<64x64xi8>, !tile.view<2xi8>
  return
}

// -----
// Vectors that are looked up for the rows of a tile, and what is computed from them, are in lanes, an element each, and
// pass to the threads of the rows through bytes of the warp's own: no thread computes the weights of all its rows.
// What a thread adds to every row's address is added to the pointer once, in front of the loop.
// CHECK-LABEL: .entry weighed
// CHECK: add.s64 %[[COLUMNS:rd[0-9]+]], %{{rd[0-9]+}}, %{{rd[0-9]+}};
// CHECK: [[LOOP:.*BB.*]]:
// CHECK: ex2.approx
// CHECK-NOT: ex2
// CHECK: st.shared.b64
// CHECK-COUNT-4: ld.shared.v2.b64
// CHECK-COUNT-8: add.s64 %{{rd[0-9]+}}, %[[COLUMNS]], %{{rd[0-9]+}};
// CHECK: st.shared.b32
// CHECK-COUNT-2: ld.shared.v4.b32
// CHECK-NOT: ex2
// CHECK: bra [[LOOP]]
// CHECK: ret;
func.func @weighed(%at: !tile.ptr<i32> {tile.align = 16 : i32}, %s: !tile.ptr<f32> {tile.align = 16 : i32}, %x: !tile.ptr<f16> {tile.align = 16 : i32}, %y: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<1x64xf32>
  %i = tile.iota : tensor<32xi32>
  %j = tile.iota : tensor<64xi64>
  %row = tile.reshape %j : tensor<64xi64> -> tensor<1x64xi64>
  %columns = tile.broadcast %row : tensor<1x64xi64> -> tensor<32x64xi64>
  %total = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<1x64xf32>) : i32 {
    %ks = tile.splat %k : i32 -> tensor<32xi32>
    %e = arith.addi %i, %ks : tensor<32xi32>
    %r = tile.gather %at offsets %e : tensor<32xi32> : !tile.ptr<i32> -> tensor<32xi32>
    %v = tile.gather %s offsets %r : tensor<32xi32> : !tile.ptr<f32> -> tensor<32xf32>
    %w = math.exp2 %v : tensor<32xf32>
    %long = arith.extsi %r : tensor<32xi32> to tensor<32xi64>
    %c64 = arith.constant dense<64> : tensor<32xi64>
    %first = arith.muli %long, %c64 : tensor<32xi64>
    %column = tile.reshape %first : tensor<32xi64> -> tensor<32x1xi64>
    %rows = tile.broadcast %column : tensor<32x1xi64> -> tensor<32x64xi64>
    %offsets = arith.addi %rows, %columns : tensor<32x64xi64>
    %h = tile.gather %x offsets %offsets : tensor<32x64xi64> : !tile.ptr<f16> -> tensor<32x64xf16>
    %f = arith.extf %h : tensor<32x64xf16> to tensor<32x64xf32>
    %weight = tile.reshape %w : tensor<32xf32> -> tensor<32x1xf32>
    %weights = tile.broadcast %weight : tensor<32x1xf32> -> tensor<32x64xf32>
    %p = arith.mulf %f, %weights : tensor<32x64xf32>
    %sum = tile.reduce %p axis 0 : (tensor<32x64xf32>) -> tensor<1x64xf32> {
    ^bb0(%a: f32, %b: f32):
      %t = arith.addf %a, %b : f32
      tile.yield %t : f32
    }
    %next = arith.addf %acc, %sum : tensor<1x64xf32>
    scf.yield %next : tensor<1x64xf32>
  }
  tile.store %total, %y[%c0, %c0 : i32, i32] : tensor<1x64xf32>, !tile.view<2xf32>
  return
}

// -----
// Words of flags, a bit for each element: a thread's four neighbours share a word and ask for it once.
// CHECK-LABEL: .entry flags
// CHECK-COUNT-1: ld.global.b32
// CHECK-NOT: ld.global.b32
// CHECK: st.global.v4.b32
// CHECK: ret;
func.func @flags(%words: !tile.ptr<i32> {tile.align = 4 : i32}, %y: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 512>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %i = tile.iota : tensor<512xi32>
  %each = arith.constant dense<32> : tensor<512xi32>
  %one = arith.constant dense<1> : tensor<512xi32>
  %word = arith.divsi %i, %each : tensor<512xi32>
  %bit = arith.remsi %i, %each : tensor<512xi32>
  %w = tile.gather %words offsets %word : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
  %moved = arith.shrui %w, %bit : tensor<512xi32>
  %flag = arith.andi %moved, %one : tensor<512xi32>
  tile.store %flag, %y[%c0 : i32] : tensor<512xi32>, !tile.view<1xi32>
  return
}

// -----
// A volatile read is made as often as it is written.
// CHECK-LABEL: .entry volatile_flags
// CHECK-COUNT-4: ld.volatile.global.b32
// CHECK: ret;
func.func @volatile_flags(%words: !tile.ptr<i32> {tile.align = 4 : i32}, %y: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 512>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %i = tile.iota : tensor<512xi32>
  %each = arith.constant dense<32> : tensor<512xi32>
  %word = arith.divsi %i, %each : tensor<512xi32>
  %w = tile.gather %words offsets %word : tensor<512xi32> cache volatile : !tile.ptr<i32> -> tensor<512xi32>
  tile.store %w, %y[%c0 : i32] : tensor<512xi32>, !tile.view<1xi32>
  return
}

// -----
// Four columns share a word of packed weights: they are in one thread, which reads it once and hands it on.
// CHECK-LABEL: .entry shared_words
// CHECK-COUNT-8: ld.global{{.*}}b32
// CHECK-NOT: ld.global
// CHECK-COUNT-8: st.shared.b32
// CHECK-NOT: st.shared{{.*}}b8
// CHECK: ret;
func.func @shared_words(%t: !tile.ptr<i32>, %y: !tile.view<2xi32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %four = arith.constant dense<4> : tensor<1x64xi32>
  %eight = arith.constant dense<8> : tensor<1x64xi32>
  %width = arith.constant dense<1000> : tensor<64x1xi32>
  %rows = tile.iota : tensor<64xi32>
  %column = tile.reshape %rows : tensor<64xi32> -> tensor<64x1xi32>
  %starts = arith.muli %column, %width : tensor<64x1xi32>
  %row = tile.reshape %rows : tensor<64xi32> -> tensor<1x64xi32>
  %word = arith.divsi %row, %four : tensor<1x64xi32>
  %in = arith.remsi %row, %four : tensor<1x64xi32>
  %shift = arith.muli %in, %eight : tensor<1x64xi32>
  %a = tile.broadcast %starts : tensor<64x1xi32> -> tensor<64x64xi32>
  %b = tile.broadcast %word : tensor<1x64xi32> -> tensor<64x64xi32>
  %c = tile.broadcast %shift : tensor<1x64xi32> -> tensor<64x64xi32>
  %offsets = arith.addi %a, %b : tensor<64x64xi32>
  %w = tile.gather %t offsets %offsets : tensor<64x64xi32> : !tile.ptr<i32> -> tensor<64x64xi32>
  %byte = arith.shrui %w, %c : tensor<64x64xi32>
  %n = arith.trunci %byte : tensor<64x64xi32> to tensor<64x64xi8>
  %s = tile.smem_alloc : !tile.smem<64x64xi8, minor = 1>
  tile.smem_store %n, %s : tensor<64x64xi8>, !tile.smem<64x64xi8, minor = 1>
  %v = tile.smem_load %s : !tile.smem<64x64xi8, minor = 1> -> tensor<64x64xi8>
  %i = arith.extui %v : tensor<64x64xi8> to tensor<64x64xi32>
  tile.store %i, %y[%c0, %c0 : i32, i32] : tensor<64x64xi32>, !tile.view<2xi32>
  return
}

// -----
// Places that copies brought to shared memory are read there in vectors, whatever is looked up with them.
// CHECK-LABEL: .entry of_copies
// CHECK-NOT: ld.shared{{.*}}b8
// CHECK-COUNT-2: ld.shared.v4.b32
// CHECK-NOT: ld.shared
// CHECK-COUNT-32: ld.global{{.*}}b16
// CHECK-NOT: st.shared{{.*}}b16
// CHECK-COUNT-4: st.shared.v4.b32
// CHECK: ret;
func.func @of_copies(%t: !tile.ptr<bf16>, %x: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 64, 64>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %on = arith.constant true
  %s = tile.smem_alloc : !tile.smem<64x64xi8, minor = 1>
  %made = tile.smem_alloc : !tile.smem<64x64xbf16, minor = 1>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %row = arith.muli %i, %c64 : i32
    tile.async_copy %x[%row, %c0 : i32, i32] to %s if %on box [64, 64] : !tile.view<2xi8>, !tile.smem<64x64xi8, minor = 1>
    tile.async_commit
    tile.async_wait 0
    %codes = tile.smem_load %s : !tile.smem<64x64xi8, minor = 1> -> tensor<64x64xi8>
    %at = arith.extui %codes : tensor<64x64xi8> to tensor<64x64xi32>
    %v = tile.gather %t offsets %at : tensor<64x64xi32> : !tile.ptr<bf16> -> tensor<64x64xbf16>
    tile.smem_store %v, %made : tensor<64x64xbf16>, !tile.smem<64x64xbf16, minor = 1>
  }
  return
}
