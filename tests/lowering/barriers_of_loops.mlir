// Boxes that a loop's counter moves on by more than they reach do not meet from one iteration to the next.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers | FileCheck %s

// Rows of a matrix, one after the other, in place; the loop around moves along the other dim.
// CHECK-LABEL: func.func @rows
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @rows(%x: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c512 = arith.constant 512 : i32
  %id = tile.program_id 0
  scf.for %j = %c0 to %n step %c512 : i32 {
    scf.for %i = %c0 to %n step %c1 : i32 {
      %row = arith.addi %i, %id : i32
      %v = tile.load %x[%row, %j : i32, i32] : !tile.view<2xf32> -> tensor<512xf32>
      %w = arith.addf %v, %v : tensor<512xf32>
      tile.store %w, %x[%row, %j : i32, i32] : tensor<512xf32>, !tile.view<2xf32>
    }
  }
  return
}

// -----
// Boxes that overlap the next ones; boxes read one row ahead of where they were written, a column beside; and an outer
// loop that comes back to the same rows a column further, once for all iterations of the inner one.
// CHECK-LABEL: func.func @overlaps
// CHECK: tile.barrier
// CHECK-NEXT: tile.store
// CHECK: scf.for
// CHECK: tile.barrier
// CHECK: scf.for
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: scf.for
// CHECK-NEXT: tile.store
func.func @overlaps(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>, %z: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c256 = arith.constant 256 : i32
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  scf.for %i = %c0 to %n step %c256 : i32 {
    tile.store %zero, %x[%c0, %i : i32, i32] : tensor<512xf32>, !tile.view<2xf32>
  }
  scf.for %i = %c0 to %n step %c1 : i32 {
    %next = arith.addi %i, %c1 : i32
    %v = tile.load %y[%i, %c1 : i32, i32] : !tile.view<2xf32> -> tensor<512xf32>
    tile.store %v, %y[%next, %c0 : i32, i32] : tensor<512xf32>, !tile.view<2xf32>
  }
  scf.for %j = %c0 to %n step %c1 : i32 {
    scf.for %i = %c0 to %n step %c1 : i32 {
      tile.store %zero, %z[%i, %j : i32, i32] : tensor<512xf32>, !tile.view<2xf32>
    }
  }
  return
}

// -----
// From the end, and in blocks that the counter numbers.
// CHECK-LABEL: func.func @backwards
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @backwards(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c512 = arith.constant 512 : i32
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  %dim = tile.view_dim %x, 0 : !tile.view<1xf32>
  %size = arith.trunci %dim overflow<nsw> : i64 to i32
  %blocks = arith.ceildivui %size, %c512 : i32
  %last = arith.subi %blocks, %c1 : i32
  scf.for %i = %c0 to %blocks step %c1 : i32 {
    %block = arith.subi %last, %i : i32
    %at = arith.muli %block, %c512 : i32
    tile.store %zero, %x[%at : i32] : tensor<512xf32>, !tile.view<1xf32>
  }
  scf.for %i = %c0 to %n step %c512 : i32 {
    %at = arith.subi %n, %i : i32
    tile.store %zero, %y[%at : i32] : tensor<512xf32>, !tile.view<1xf32>
  }
  return
}

// -----
// Blocks that overlap; numbers whose product may wrap; but not a place that the counter leaves alone: every thread
// comes back to its own.
// CHECK-LABEL: func.func @meet
// CHECK: tile.barrier
// CHECK-NEXT: tile.store
// CHECK: tile.barrier
// CHECK-NEXT: tile.store
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @meet(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>, %z: !tile.view<1xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c100 = arith.constant 100 : i32
  %c256 = arith.constant 256 : i32
  %c512 = arith.constant 512 : i32
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  scf.for %i = %c0 to %c100 step %c1 : i32 {
    %at = arith.muli %i, %c256 : i32
    tile.store %zero, %x[%at : i32] : tensor<512xf32>, !tile.view<1xf32>
  }
  scf.for %i = %c0 to %n step %c1 : i32 {
    %at = arith.muli %i, %c512 : i32
    tile.store %zero, %y[%at : i32] : tensor<512xf32>, !tile.view<1xf32>
  }
  scf.for %i = %c0 to %n step %c512 : i32 {
    %twice = arith.addi %i, %n : i32
    %at = arith.subi %twice, %i : i32
    tile.store %zero, %z[%at : i32] : tensor<512xf32>, !tile.view<1xf32>
  }
  return
}

// -----
// What was written in front of a loop is read in every iteration: the barrier is in front, too.
// CHECK-LABEL: func.func @walk
// CHECK: tile.scatter
// CHECK: tile.barrier
// CHECK-NEXT: scf.for
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @walk(%x: !tile.ptr<i32>, %y: !tile.view<1xi32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tile.iota : tensor<512xi32>
  tile.scatter %i, %x offsets %i : tensor<512xi32> : tensor<512xi32>, !tile.ptr<i32>
  %end = scf.for %t = %c0 to %n step %c1 iter_args(%at = %c0) -> (i32) : i32 {
    %place = tile.ptr_add %x, %at : !tile.ptr<i32>, i32
    %next = tile.gather %place : !tile.ptr<i32> -> i32
    tile.store %next, %y[%t : i32] : i32, !tile.view<1xi32>
    scf.yield %next : i32
  }
  return
}

// -----
// Threads lie along the last dim and stay there: which level of the table they read and write is nobody else's concern.
// CHECK-LABEL: func.func @levels
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @levels(%x: !tile.view<3xf32>, %from: !tile.ptr<i32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c128 = arith.constant 128 : i32
  %id = tile.program_id 0
  %at = arith.muli %id, %c128 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile.ptr_add %from, %i : !tile.ptr<i32>, i32
    %level = tile.gather %p : !tile.ptr<i32> -> i32
    %a = tile.load %x[%level, %c0, %at : i32, i32, i32] : !tile.view<3xf32> -> tensor<1x128xf32>
    %b = tile.load %x[%level, %c1, %at : i32, i32, i32] : !tile.view<3xf32> -> tensor<1x128xf32>
    %c = arith.addf %a, %b : tensor<1x128xf32>
    tile.store %c, %x[%i, %c0, %at : i32, i32, i32] : tensor<1x128xf32>, !tile.view<3xf32>
    tile.store %a, %x[%i, %c1, %at : i32, i32, i32] : tensor<1x128xf32>, !tile.view<3xf32>
  }
  return
}

// -----
// The same at a place that moves, under another layout, and with several threads for an element: they meet.
// CHECK-LABEL: func.func @moved
// CHECK: scf.for
// CHECK: tile.barrier
// CHECK: scf.yield
// CHECK-LABEL: func.func @narrow
// CHECK: scf.for
// CHECK: tile.barrier
func.func @moved(%x: !tile.view<2xf32>, %from: !tile.ptr<i32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128xf32>) : i32 {
    %p = tile.ptr_add %from, %i : !tile.ptr<i32>, i32
    %level = tile.gather %p : !tile.ptr<i32> -> i32
    %a = tile.load %x[%level, %i : i32, i32] : !tile.view<2xf32> -> tensor<128xf32>
    tile.store %sum, %x[%i, %i : i32, i32] : tensor<128xf32>, !tile.view<2xf32>
    scf.yield %a : tensor<128xf32>
  }
  tile.store %r, %x[%n, %c0 : i32, i32] : tensor<128xf32>, !tile.view<2xf32>
  return
}
func.func @narrow(%x: !tile.view<2xf32>, %from: !tile.ptr<i32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile.ptr_add %from, %i : !tile.ptr<i32>, i32
    %level = tile.gather %p : !tile.ptr<i32> -> i32
    %a = tile.load %x[%level, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<32xf32>
    %b = arith.addf %a, %a : tensor<32xf32>
    tile.store %b, %x[%i, %c0 : i32, i32] : tensor<32xf32>, !tile.view<2xf32>
  }
  return
}

// -----
// A nest of twenty loops is walked a few times for each of them, not a million times for the innermost. What was read in
// front of it, perhaps by other threads, is written in it.
// CHECK-LABEL: func.func @deep
// CHECK: tile.load
// CHECK: tile.barrier
// CHECK: tile.store
func.func @deep(%p: !tile.view<1xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = tile.load %p[%c0 : i32] : !tile.view<1xf32> -> tensor<128xf32>
  scf.for %i0 = %c0 to %n step %c1 : i32 {
  scf.for %i1 = %c0 to %n step %c1 : i32 {
  scf.for %i2 = %c0 to %n step %c1 : i32 {
  scf.for %i3 = %c0 to %n step %c1 : i32 {
  scf.for %i4 = %c0 to %n step %c1 : i32 {
  scf.for %i5 = %c0 to %n step %c1 : i32 {
  scf.for %i6 = %c0 to %n step %c1 : i32 {
  scf.for %i7 = %c0 to %n step %c1 : i32 {
  scf.for %i8 = %c0 to %n step %c1 : i32 {
  scf.for %i9 = %c0 to %n step %c1 : i32 {
  scf.for %i10 = %c0 to %n step %c1 : i32 {
  scf.for %i11 = %c0 to %n step %c1 : i32 {
  scf.for %i12 = %c0 to %n step %c1 : i32 {
  scf.for %i13 = %c0 to %n step %c1 : i32 {
  scf.for %i14 = %c0 to %n step %c1 : i32 {
  scf.for %i15 = %c0 to %n step %c1 : i32 {
  scf.for %i16 = %c0 to %n step %c1 : i32 {
  scf.for %i17 = %c0 to %n step %c1 : i32 {
  scf.for %i18 = %c0 to %n step %c1 : i32 {
  scf.for %i19 = %c0 to %n step %c1 : i32 {
  tile.store %t, %p[%c1 : i32] : tensor<128xf32>, !tile.view<1xf32>
  }}}}}}}}}}}}}}}}}}}}
  return
}

// -----
// Boxes of one iteration whose indices differ by constants of a box's size, as unrolled loops have them, meet neither
// each other nor those of the next iteration, which begin behind the last one.
// CHECK-LABEL: func.func @several
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @several(%y: !tile.view<1xf32>, %p: !tile.ptr<f32>, %n: i32, %v: f32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c512 = arith.constant 512 : i32
  %c1536 = arith.constant 1536 : i32
  %at = tile.iota : tensor<512xi32>
  %a = tile.splat %v : f32 -> tensor<512xf32>
  scf.for %i = %c0 to %n step %c1536 : i32 {
    tile.store %a, %y[%i : i32] : tensor<512xf32>, !tile.view<1xf32>
    %j = arith.addi %i, %c512 : i32
    tile.store %a, %y[%j : i32] : tensor<512xf32>, !tile.view<1xf32>
    %k = arith.addi %j, %c512 : i32
    tile.store %a, %y[%k : i32] : tensor<512xf32>, !tile.view<1xf32>
  }
  scf.for %i = %c0 to %n step %c1536 : i32 {
    %first = tile.ptr_add %p, %i : !tile.ptr<f32>, i32
    tile.scatter %a, %first offsets %at : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
    %j = arith.addi %i, %c512 : i32
    %second = tile.ptr_add %p, %j : !tile.ptr<f32>, i32
    tile.scatter %a, %second offsets %at : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
  }
  return
}

// -----
// Half a box apart they do; and where the next iteration begins in front of where this one ends.
// CHECK-LABEL: func.func @several_meet
// CHECK: scf.for
// CHECK-NEXT: tile.store
// CHECK: tile.barrier
// CHECK-NEXT: tile.store
// CHECK: scf.for
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.store
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @several_meet(%y: !tile.view<1xf32>, %z: !tile.view<1xf32>, %n: i32, %v: f32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c256 = arith.constant 256 : i32
  %c512 = arith.constant 512 : i32
  %c768 = arith.constant 768 : i32
  %c1024 = arith.constant 1024 : i32
  %a = tile.splat %v : f32 -> tensor<512xf32>
  scf.for %i = %c0 to %n step %c768 : i32 {
    tile.store %a, %y[%i : i32] : tensor<512xf32>, !tile.view<1xf32>
    %j = arith.addi %i, %c256 : i32
    tile.store %a, %y[%j : i32] : tensor<512xf32>, !tile.view<1xf32>
  }
  scf.for %i = %c0 to %n step %c512 : i32 {
    tile.store %a, %z[%i : i32] : tensor<512xf32>, !tile.view<1xf32>
    %j = arith.addi %i, %c512 : i32
    tile.store %a, %z[%j : i32] : tensor<512xf32>, !tile.view<1xf32>
  }
  return
}
