// Sums of products are taken in chains of eight in a thread, where every addition is part of a product's instruction;
// other sums are balanced trees.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-place-buffers -tile-insert-barriers -tile-emit=as=llvm -o /dev/null | FileCheck %s

#tile = #tile.layout<128x8 regs [1:8*1] lanes [0:32*1] warps [0:4*32]>
#row = #tile.layout<128x1 regs [] lanes [0:32*1] warps [0:4*32]>

// CHECK-LABEL: @squares(
// CHECK-COUNT-8: fmul contract float
// CHECK: %[[S1:.*]] = fadd contract float %{{.*}}, %{{.*}}
// CHECK-NEXT: %[[S2:.*]] = fadd contract float %[[S1]],
// CHECK-NEXT: %[[S3:.*]] = fadd contract float %[[S2]],
// CHECK-NEXT: %[[S4:.*]] = fadd contract float %[[S3]],
// CHECK-NEXT: %[[S5:.*]] = fadd contract float %[[S4]],
// CHECK-NEXT: %[[S6:.*]] = fadd contract float %[[S5]],
// CHECK-NEXT: %[[S7:.*]] = fadd contract float %[[S6]],
func.func @squares(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %t = tile.load %x[%i, %i : i32, i32] : !tile.view<2xf32> -> tensor<128x8xf32, #tile>
  %p = arith.mulf %t, %t fastmath<contract> : tensor<128x8xf32, #tile>
  %s = tile.reduce %p axis 1 : (tensor<128x8xf32, #tile>) -> tensor<128x1xf32, #row> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b fastmath<contract> : f32
    tile.yield %c : f32
  }
  tile.store %s, %y[%i, %i : i32, i32] : tensor<128x1xf32, #row>, !tile.view<2xf32>
  return
}

// -----

#tile = #tile.layout<128x4 regs [1:4*1] lanes [0:32*1] warps [0:4*32]>
#row = #tile.layout<128x1 regs [] lanes [0:32*1] warps [0:4*32]>

// CHECK-LABEL: @plain(
// CHECK: %[[A:.*]] = fadd contract float
// CHECK-NEXT: %[[B:.*]] = fadd contract float
// CHECK-NEXT: fadd contract float %[[A]], %[[B]]
func.func @plain(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %t = tile.load %x[%i, %i : i32, i32] : !tile.view<2xf32> -> tensor<128x4xf32, #tile>
  %s = tile.reduce %t axis 1 : (tensor<128x4xf32, #tile>) -> tensor<128x1xf32, #row> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b fastmath<contract> : f32
    tile.yield %c : f32
  }
  tile.store %s, %y[%i, %i : i32, i32] : tensor<128x1xf32, #row>, !tile.view<2xf32>
  return
}
