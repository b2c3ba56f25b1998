// A tile added to memory whose old values nobody reads: neighbours go in one instruction where their mask is the same.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: tile-opt %s -split-input-file --tile-target=sm_80 -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s --check-prefixes=CHECK,SM80

// CHECK-LABEL: .entry rows(
// SM90-NOT: atom.
// SM90-COUNT-4: @%{{.*}} red.relaxed.gpu.global.add.v4.f32
// SM90-NOT: red.
// SM80-COUNT-16: @%{{.*}} red.relaxed.gpu.global.add.f32
// SM80-NOT: red.
// CHECK: ret;
func.func @rows(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 32, 64>}, %at: !tile.ptr<i32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0> : tensor<32x64xi32>
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<32x64xf32>
  %i = tile.iota : tensor<32xi32>
  %r = tile.gather %at offsets %i : tensor<32xi32> : !tile.ptr<i32> -> tensor<32xi32>
  %c64 = arith.constant dense<64> : tensor<32xi32>
  %first = arith.muli %r, %c64 : tensor<32xi32>
  %column = tile.reshape %first : tensor<32xi32> -> tensor<32x1xi32>
  %rows = tile.broadcast %column : tensor<32x1xi32> -> tensor<32x64xi32>
  %k = tile.iota : tensor<64xi32>
  %row = tile.reshape %k : tensor<64xi32> -> tensor<1x64xi32>
  %columns = tile.broadcast %row : tensor<1x64xi32> -> tensor<32x64xi32>
  %offsets = arith.addi %rows, %columns : tensor<32x64xi32>
  %live = arith.cmpi sge, %rows, %zero : tensor<32x64xi32>
  %o = tile.atomic_rmw add relaxed gpu %y offsets %offsets : tensor<32x64xi32>, %v mask %live : tensor<32x64xi1> : !tile.ptr<f32>, tensor<32x64xf32> -> tensor<32x64xf32>
  return
}

// -----
// An order is kept by fences around all of them; 16-bit floats go in pairs, several at a time where they can.
// CHECK-LABEL: .entry halves(
// CHECK: bar.sync
// CHECK: fence.acq_rel.sys
// SM90: red.relaxed.sys.global.add.noftz.v4.f16x2
// SM80-COUNT-4: red.relaxed.sys.global.add.noftz.f16x2
// CHECK-NOT: red.
// CHECK: fence.acq_rel.sys
// CHECK: bar.sync
func.func @halves(%x: !tile.view<1xf16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 1024>}, %y: !tile.ptr<f16> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0 : i32] : !tile.view<1xf16> -> tensor<1024xf16>
  %i = tile.iota : tensor<1024xi32>
  %o = tile.atomic_rmw add acq_rel sys %y offsets %i : tensor<1024xi32>, %v : !tile.ptr<f16>, tensor<1024xf16> -> tensor<1024xf16>
  return
}

// -----
// An accumulator's lanes hold pieces of eight rows: a warp deals whole lines out among them first, through few bytes and
// with no other warp, and adds four columns at once. Where additions are no wider for that they go as they are.
// CHECK-LABEL: .entry products(
// CHECK: ldmatrix
// SM90-COUNT-2: bar.warp.sync
// SM90: ld.shared.v4.b32
// SM90-NOT: {{bar.sync| red[.]}}
// SM90-COUNT-8: @%{{.*}} red.relaxed.gpu.global.add.v4.f32
// SM80-NOT: bar.warp.sync
// SM80-COUNT-32: @%{{.*}} red.relaxed.gpu.global.add.f32
// CHECK-NOT: red.
// CHECK: ret;
func.func @products(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 64, 16>}, %w: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 16, 64>}, %at: !tile.ptr<i32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %zero = arith.constant dense<0> : tensor<64x64xi32>
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x16xf16>
  %b = tile.load %w[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<16x64xf16>
  %sb = tile.smem_alloc : !tile.smem<16x64xf16, minor = 1>
  tile.smem_store %b, %sb : tensor<16x64xf16>, !tile.smem<16x64xf16, minor = 1>
  %v = tile.mma m16n8k16_f16 k 16 warps(4, 1) %a, %sb, %none : tensor<64x16xf16>, !tile.smem<16x64xf16, minor = 1> -> tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %r = tile.gather %at offsets %i : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
  %c64 = arith.constant dense<64> : tensor<64xi32>
  %first = arith.muli %r, %c64 : tensor<64xi32>
  %column = tile.reshape %first : tensor<64xi32> -> tensor<64x1xi32>
  %rows = tile.broadcast %column : tensor<64x1xi32> -> tensor<64x64xi32>
  %k = tile.iota : tensor<64xi32>
  %row = tile.reshape %k : tensor<64xi32> -> tensor<1x64xi32>
  %columns = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
  %offsets = arith.addi %rows, %columns : tensor<64x64xi32>
  %live = arith.cmpi sge, %rows, %zero : tensor<64x64xi32>
  %o = tile.atomic_rmw add relaxed gpu %y offsets %offsets : tensor<64x64xi32>, %v mask %live : tensor<64x64xi1> : !tile.ptr<f32>, tensor<64x64xf32> -> tensor<64x64xf32>
  return
}
