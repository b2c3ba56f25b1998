// Numbers that the lanes of a warp find together: one instruction of the warp combines them.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: .entry numbers(
// CHECK: redux.sync.min.s32
// CHECK: redux.sync.max.u32
// CHECK: redux.sync.add.s32
// CHECK-NOT: bar.sync
// CHECK: ret;
func.func @numbers(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %least = tile.ballot combined min {
  ^bb0(%lane: i32):
    %p = tile.ptr_add %x, %lane : !tile.ptr<i32>, i32
    %n = tile.gather %p : !tile.ptr<i32> -> i32
    tile.yield %n : i32
  }
  %q = tile.ptr_add %y, %least : !tile.ptr<i32>, i32
  %most = tile.ballot combined umax {
  ^bb0(%lane: i32):
    %r = tile.ptr_add %q, %lane : !tile.ptr<i32>, i32
    %n = tile.gather %r : !tile.ptr<i32> -> i32
    tile.yield %n : i32
  }
  %s = tile.ptr_add %y, %most : !tile.ptr<i32>, i32
  %sum = tile.ballot combined add {
  ^bb0(%lane: i32):
    %r = tile.ptr_add %s, %lane : !tile.ptr<i32>, i32
    %n = tile.gather %r : !tile.ptr<i32> -> i32
    tile.yield %n : i32
  }
  tile.scatter %sum, %s : i32, !tile.ptr<i32>
  return
}
