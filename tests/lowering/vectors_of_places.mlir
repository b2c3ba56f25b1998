// Vectors that are all there is and say where memory is read are shared out among the warps, though they are scanned:
// every warp would read all of it otherwise.
// RUN: tilec compile %s -t sm_80 -e mlir:gpu | FileCheck %s
// CHECK-LABEL: func.func @places
// CHECK: tile.scan {{.*}}tensor<128xi32, #tile.layout<128 regs [] lanes [0:32*1] warps [0:4*32]>>
// CHECK: tile.gather {{.*}} -> tensor<128xf32, #tile.layout<128 regs [] lanes [0:32*1] warps [0:4*32]>>
// CHECK-NOT: tile.convert
// CHECK: return
func.func @places(%n: !tile.ptr<i32> {tile.align = 16 : i32}, %x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<128xi32>
  %v = tile.gather %n offsets %i : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
  %s = tile.scan %v axis 0 : (tensor<128xi32>) -> tensor<128xi32> {
  ^bb0(%p: i32, %q: i32):
    %r = arith.addi %p, %q : i32
    tile.yield %r : i32
  }
  %at = arith.subi %s, %v : tensor<128xi32>
  %e = tile.gather %x offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  tile.scatter %e, %y offsets %s : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}
