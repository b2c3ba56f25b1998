// Integers of which few values are left become f16 or bf16 by a float's digits, two at a time: no conversion, which runs at
// a sixteenth of the rate. Others keep it.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: .entry nibbles
// CHECK-NOT: cvt.rn.f16.{{[su]}}32
// CHECK-COUNT-2: add.f16x2
// CHECK-NOT: cvt.rn.f16.{{[su]}}32
// CHECK: ret;
func.func @nibbles(%x: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %o: !tile.view<1xf16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %mask = arith.constant dense<15> : tensor<512xi32>
  %eight = arith.constant dense<8> : tensor<512xi32>
  %a = tile.load %x[%c0 : i32] : !tile.view<1xi32> -> tensor<512xi32>
  %b = arith.andi %a, %mask : tensor<512xi32>
  %c = arith.subi %b, %eight : tensor<512xi32>
  %d = arith.sitofp %c : tensor<512xi32> to tensor<512xf16>
  tile.store %d, %o[%c0 : i32] : tensor<512xf16>, !tile.view<1xf16>
  return
}

// -----

// CHECK-LABEL: .entry wide
// CHECK-COUNT-4: cvt.rn.f16.{{[su]}}32
// CHECK: ret;
func.func @wide(%x: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %o: !tile.view<1xf16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %mask = arith.constant dense<4095> : tensor<512xi32>
  %a = tile.load %x[%c0 : i32] : !tile.view<1xi32> -> tensor<512xi32>
  %b = arith.andi %a, %mask : tensor<512xi32>
  %d = arith.sitofp %b : tensor<512xi32> to tensor<512xf16>
  tile.store %d, %o[%c0 : i32] : tensor<512xf16>, !tile.view<1xf16>
  return
}

// -----

// Bytes of which seven bits are left become bf16 so, too; all values of a byte go through f32.
// CHECK-LABEL: .entry few_bytes
// CHECK-NOT: add{{.*}}.f32
// CHECK-COUNT-2: {{add|sub}}.{{(rn.)?}}bf16x2
// CHECK-NOT: add{{.*}}.f32
// CHECK: ret;
func.func @few_bytes(%x: !tile.view<1xi8> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %o: !tile.view<1xbf16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %mask = arith.constant dense<15> : tensor<512xi8>
  %eight = arith.constant dense<8> : tensor<512xi8>
  %a = tile.load %x[%c0 : i32] : !tile.view<1xi8> -> tensor<512xi8>
  %b = arith.andi %a, %mask : tensor<512xi8>
  %c = arith.subi %b, %eight : tensor<512xi8>
  %d = arith.sitofp %c : tensor<512xi8> to tensor<512xbf16>
  tile.store %d, %o[%c0 : i32] : tensor<512xbf16>, !tile.view<1xbf16>
  return
}

// -----

// CHECK-LABEL: .entry all_bytes
// CHECK-COUNT-4: {{add|sub}}{{.*}}.f32
// CHECK: ret;
func.func @all_bytes(%x: !tile.view<1xi8> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %o: !tile.view<1xbf16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xi8> -> tensor<512xi8>
  %d = arith.sitofp %a : tensor<512xi8> to tensor<512xbf16>
  tile.store %d, %o[%c0 : i32] : tensor<512xbf16>, !tile.view<1xbf16>
  return
}

// -----

// Differences are taken two at a time: two numbers of a word that lie 16 bits apart stay where they are, and zero points
// that a thread has for several rows are put beside each other once.
// CHECK-LABEL: .entry zero_points
// CHECK-COUNT-8: and.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, 983055;
// CHECK-NOT: and.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, 15;
// CHECK: ret;
func.func @zero_points(%x: !tile.view<2xi32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 32, 32>, tile.stride_multiple_of = array<i32: 16, 1>}, %z: !tile.view<2xi32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 32, 32>, tile.stride_multiple_of = array<i32: 16, 1>}, %o: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 32, 32>, tile.stride_multiple_of = array<i32: 16, 1>}) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %shift = arith.constant dense<[[[0, 16, 4, 20, 8, 24, 12, 28]]]> : tensor<1x1x8xi32>
  %shifts = tile.broadcast %shift : tensor<1x1x8xi32> -> tensor<8x4x8xi32>
  %low = arith.constant dense<15> : tensor<8x4x8xi32>
  %words = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xi32> -> tensor<8x4xi32>
  %each = tile.reshape %words : tensor<8x4xi32> -> tensor<8x4x1xi32>
  %all = tile.broadcast %each : tensor<8x4x1xi32> -> tensor<8x4x8xi32>
  %moved = arith.shrsi %all, %shifts : tensor<8x4x8xi32>
  %codes = arith.andi %moved, %low : tensor<8x4x8xi32>
  %points = tile.load %z[%c0, %c0 : i32, i32] : !tile.view<2xi32> -> tensor<1x4xi32>
  %point = tile.reshape %points : tensor<1x4xi32> -> tensor<1x4x1xi32>
  %allPoints = tile.broadcast %point : tensor<1x4x1xi32> -> tensor<8x4x8xi32>
  %movedPoints = arith.shrsi %allPoints, %shifts : tensor<8x4x8xi32>
  %zeros = arith.andi %movedPoints, %low : tensor<8x4x8xi32>
  %less = arith.subi %codes, %zeros : tensor<8x4x8xi32>
  %flat = tile.reshape %less : tensor<8x4x8xi32> -> tensor<8x32xi32>
  %d = arith.sitofp %flat : tensor<8x32xi32> to tensor<8x32xf16>
  tile.store %d, %o[%c0, %c0 : i32, i32] : tensor<8x32xf16>, !tile.view<2xf16>
  return
}
