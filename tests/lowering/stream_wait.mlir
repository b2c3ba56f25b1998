// Kernels for sm_90 and later wait themselves for what is in front of them in their stream, before they touch memory, and
// say so by a symbol: the runtime launches them early where that does not crowd them (runtime/cuda/early_launch.h; those
// of few instructions without loops are short). Kernels with roles prepare their barriers first. Of programs that start
// and end by the hundred thousand, only the last ones, which may run at the same time, let the next kernel come.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s
// RUN: tile-opt %s --tile-target=sm_80 -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s --check-prefix=OLD

// CHECK: .visible .global .align 1 .u8 tile_waits_for_stream = 1;
// CHECK: .visible .global .align 1 .u8 tile_short = 1;
// CHECK: .entry copy
// CHECK-NOT: ld.global
// CHECK: griddepcontrol.wait;
// CHECK: mov.u32 %[[AT:r[0-9]+]], %ctaid.x;
// CHECK: setp.lt.s32 %[[LAST:p[0-9]+]], %{{r[0-9]+}}, 0;
// CHECK: @%[[LAST]] griddepcontrol.launch_dependents;
// CHECK: ld.global
// OLD-NOT: tile_waits_for_stream
// OLD-NOT: griddepcontrol
func.func @copy(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<128xf32>
  tile.store %a, %y[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}

// Of smaller programs more run at the same time.
// CHECK: .entry small
// CHECK: griddepcontrol.wait;
// CHECK: setp.lt.s32 %[[LAST:p[0-9]+]], %{{r[0-9]+}}, 0;
// CHECK: @%[[LAST]] griddepcontrol.launch_dependents;
// CHECK: ld.global
func.func @small(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<128xf32>
  tile.store %a, %y[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}

// Programs with loops may be long: the runtime is not told otherwise.
// CHECK: tile_waits_for_stream
// CHECK-NOT: tile_short
// CHECK: .entry looping
func.func @looping(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  scf.for %i = %c0 to %n step %c128 : i32 {
    %a = tile.load %x[%i : i32] : !tile.view<1xf32> -> tensor<128xf32>
    tile.store %a, %y[%i : i32] : tensor<128xf32>, !tile.view<1xf32>
  }
  return
}
