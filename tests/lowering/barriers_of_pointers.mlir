// Stores through pointers that move on evenly: whether iterations meet is known in front of the loop.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -canonicalize | FileCheck %s

// The pointer moves on by what a tile has: no barrier, and nothing to ask.
// CHECK-LABEL: func.func @blocks
// CHECK-NOT: scf.if
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @blocks(%x: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1024 = arith.constant 1024 : i32
  %o = tile.iota : tensor<1024xi32>
  %v = arith.constant dense<1.0> : tensor<1024xf32>
  scf.for %i = %c0 to %n step %c1024 : i32 {
    %at = arith.extsi %i : i32 to i64
    %p = tile.ptr_add %x, %at : !tile.ptr<f32>, i64
    tile.scatter %v, %p offsets %o : tensor<1024xi32> : tensor<1024xf32>, !tile.ptr<f32>
  }
  return
}

// -----
// By one element less: every iteration meets the one before.
// CHECK-LABEL: func.func @overlapping
// CHECK: tile.barrier
// CHECK-NEXT: tile.scatter
// CHECK: return
func.func @overlapping(%x: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1023 = arith.constant 1023 : i32
  %o = tile.iota : tensor<1024xi32>
  %v = arith.constant dense<1.0> : tensor<1024xf32>
  scf.for %i = %c0 to %n step %c1023 : i32 {
    %at = arith.extsi %i : i32 to i64
    %p = tile.ptr_add %x, %at : !tile.ptr<f32>, i64
    tile.scatter %v, %p offsets %o : tensor<1024xi32> : tensor<1024xf32>, !tile.ptr<f32>
  }
  return
}

// -----
// Rows: the distance is an argument, and so is how much of a row the mask lets through. The loop stands there twice, and
// the one that is taken unless rows overlap has no barrier.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: %[[X:[a-z0-9]+]]: !tile.ptr<f32>, %[[N:[a-z0-9]+]]: i32, %[[LD:[a-z0-9]+]]: i32
// CHECK: %[[LIMIT:.*]] = arith.extsi %[[N]] : i32 to i64
// CHECK: %[[LAST:.*]] = arith.subi %[[LIMIT]], {{.*}} : i64
// CHECK: %[[REACH:.*]] = arith.minsi %[[LAST]], %c1023_i64 : i64
// CHECK: arith.cmpi sle, {{.*}}, %[[REACH]] : i64
// CHECK: scf.if
// CHECK: scf.for
// CHECK: tile.barrier
// CHECK-NEXT: tile.scatter
// CHECK: } else {
// CHECK: scf.for
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @rows(%x: !tile.ptr<f32>, %n: i32, %ld: i32, %rows: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %o = tile.iota : tensor<1024xi32>
  %ns = tile.splat %n : i32 -> tensor<1024xi32>
  %m = arith.cmpi slt, %o, %ns : tensor<1024xi32>
  %v = arith.constant dense<1.0> : tensor<1024xf32>
  scf.for %i = %c0 to %rows step %c1 : i32 {
    %at = arith.muli %i, %ld : i32
    %p = tile.ptr_add %x, %at : !tile.ptr<f32>, i32
    tile.scatter %v, %p offsets %o : tensor<1024xi32> mask %m : tensor<1024xi1> : tensor<1024xf32>, !tile.ptr<f32>
  }
  return
}

// -----
// What limits rows does not limit columns: offsets of both, a mask of one.
// CHECK-LABEL: func.func @columns
// CHECK-DAG: %[[C31:.*]] = arith.constant 31 : i64
// CHECK-NOT: arith.minsi {{.*}}, %[[C31]] : i64
// CHECK: arith.muli {{.*}}, %[[C31]] : i64
// CHECK: arith.maxsi
// CHECK: arith.minsi {{.*}}, %[[C31]] : i64
// CHECK-NOT: arith.minsi {{.*}}, %[[C31]] : i64
// CHECK: scf.if
// CHECK: return
func.func @columns(%x: !tile.ptr<f32>, %n: i32, %ld: i32, %rows: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %o = tile.iota : tensor<32xi32>
  %r = tile.reshape %o : tensor<32xi32> -> tensor<32x1xi32>
  %c = tile.reshape %o : tensor<32xi32> -> tensor<1x32xi32>
  %ns = tile.splat %n : i32 -> tensor<1x32xi32>
  %m = arith.cmpi slt, %c, %ns : tensor<1x32xi32>
  %mask = tile.broadcast %m : tensor<1x32xi1> -> tensor<32x32xi1>
  %lds = tile.splat %ld : i32 -> tensor<32x1xi32>
  %rl = arith.muli %r, %lds : tensor<32x1xi32>
  %ro = tile.broadcast %rl : tensor<32x1xi32> -> tensor<32x32xi32>
  %co = tile.broadcast %c : tensor<1x32xi32> -> tensor<32x32xi32>
  %off = arith.addi %ro, %co : tensor<32x32xi32>
  %v = arith.constant dense<1.0> : tensor<32x32xf32>
  scf.for %i = %c0 to %rows step %c32 : i32 {
    %at = arith.muli %i, %ld : i32
    %p = tile.ptr_add %x, %at : !tile.ptr<f32>, i32
    tile.scatter %v, %p offsets %off : tensor<32x32xi32> mask %mask : tensor<32x32xi1> : tensor<32x32xf32>, !tile.ptr<f32>
  }
  return
}

// -----
// Offsets that the loop computes could be anywhere.
// CHECK-LABEL: func.func @anywhere
// CHECK-NOT: scf.if
// CHECK: tile.barrier
// CHECK-NEXT: tile.scatter
func.func @anywhere(%x: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1024 = arith.constant 1024 : i32
  %o = tile.iota : tensor<1024xi32>
  %v = arith.constant dense<1.0> : tensor<1024xf32>
  scf.for %i = %c0 to %n step %c1024 : i32 {
    %is = tile.splat %i : i32 -> tensor<1024xi32>
    %off = arith.xori %o, %is : tensor<1024xi32>
    tile.scatter %v, %x offsets %off : tensor<1024xi32> : tensor<1024xf32>, !tile.ptr<f32>
  }
  return
}

// -----
// In place, through a pointer.
// CHECK-LABEL: func.func @in_place
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @in_place(%x: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c2048 = arith.constant 2048 : i32
  %o = tile.iota : tensor<1024xi32>
  scf.for %i = %c0 to %n step %c2048 : i32 {
    %at = arith.extsi %i : i32 to i64
    %p = tile.ptr_add %x, %at : !tile.ptr<f32>, i64
    %v = tile.gather %p offsets %o : tensor<1024xi32> : !tile.ptr<f32> -> tensor<1024xf32>
    %w = arith.addf %v, %v : tensor<1024xf32>
    tile.scatter %w, %p offsets %o : tensor<1024xi32> : tensor<1024xf32>, !tile.ptr<f32>
  }
  return
}

// -----
// Fields of records of eight do not meet, whichever records they are of, in other iterations either; what lies a whole
// record further on may be the same field of another one.
// CHECK-LABEL: func.func @fields
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @fields(%x: !tile.ptr<f32>, %places: !tile.view<1xi32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %eight = arith.constant dense<8> : tensor<128xi32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %r = tile.load %places[%i : i32] : !tile.view<1xi32> -> tensor<128xi32>
    %o = arith.muli %r, %eight : tensor<128xi32>
    %v = tile.gather %x offsets %o : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
    %p = tile.ptr_add %x, %c3 : !tile.ptr<f32>, i32
    %w = tile.atomic_rmw add relaxed gpu %p offsets %o : tensor<128xi32>, %v : !tile.ptr<f32>, tensor<128xf32> -> tensor<128xf32>
  }
  return
}

// -----
// CHECK-LABEL: func.func @records
// CHECK: tile.gather
// CHECK: tile.barrier
// CHECK-NEXT: tile.scatter
func.func @records(%x: !tile.ptr<f32>, %places: !tile.view<1xi32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %eight = arith.constant dense<8> : tensor<128xi32>
  %r = tile.load %places[%c0 : i32] : !tile.view<1xi32> -> tensor<128xi32>
  %o = arith.muli %r, %eight : tensor<128xi32>
  %v = tile.gather %x offsets %o : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %p = tile.ptr_add %x, %c8 : !tile.ptr<f32>, i32
  tile.scatter %v, %p offsets %o : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}

// -----
// Two numbers side by side.
// CHECK-LABEL: func.func @numbers
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @numbers(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %i: i32, %a: f32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c1 = arith.constant 1 : i32
  %p = tile.ptr_add %x, %i : !tile.ptr<f32>, i32
  %q = tile.ptr_add %p, %c1 : !tile.ptr<f32>, i32
  tile.scatter %a, %p : f32, !tile.ptr<f32>
  %b = tile.gather %q : !tile.ptr<f32> -> f32
  tile.scatter %b, %y : f32, !tile.ptr<f32>
  return
}

// -----
// A pointer that comes round moved on by an argument: asked in front of the loop, too.
// CHECK-LABEL: func.func @carried
// CHECK-SAME: %[[X:[a-z0-9]+]]: !tile.ptr<f32>, %[[N:[a-z0-9]+]]: i32, %[[LD:[a-z0-9]+]]: i32
// CHECK: %[[STEP:.*]] = arith.extsi %[[LD]] : i32 to i64
// CHECK: arith.maxsi %[[STEP]]
// CHECK: scf.if
// CHECK: scf.for
// CHECK: tile.barrier
// CHECK: } else {
// CHECK: scf.for
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @carried(%x: !tile.ptr<f32>, %n: i32, %ld: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %o = tile.iota : tensor<1024xi32>
  %v = arith.constant dense<1.0> : tensor<1024xf32>
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x) -> (!tile.ptr<f32>) : i32 {
    tile.scatter %v, %p offsets %o : tensor<1024xi32> : tensor<1024xf32>, !tile.ptr<f32>
    %next = tile.ptr_add %p, %ld : !tile.ptr<f32>, i32
    scf.yield %next : !tile.ptr<f32>
  }
  return
}

// -----
// At one place all the time every thread meets itself.
// CHECK-LABEL: func.func @stays
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @stays(%x: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %o = tile.iota : tensor<1024xi32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %v = tile.gather %x offsets %o : tensor<1024xi32> : !tile.ptr<f32> -> tensor<1024xf32>
    %twice = arith.addf %v, %v : tensor<1024xf32>
    tile.scatter %twice, %x offsets %o : tensor<1024xi32> : tensor<1024xf32>, !tile.ptr<f32>
  }
  return
}

// -----
// Where several lanes hold an element, one of them writes it.
// CHECK-LABEL: func.func @replicated
// CHECK: tile.barrier
// CHECK: return
func.func @replicated(%x: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %o = tile.iota : tensor<16xi32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %v = tile.gather %x offsets %o : tensor<16xi32> : !tile.ptr<f32> -> tensor<16xf32>
    %twice = arith.addf %v, %v : tensor<16xf32>
    tile.scatter %twice, %x offsets %o : tensor<16xi32> : tensor<16xf32>, !tile.ptr<f32>
  }
  return
}

// -----
// A number in memory, of every iteration: what another thread has written may be read behind a barrier only.
// CHECK-LABEL: func.func @counter
// CHECK: scf.for
// CHECK: tile.barrier
// CHECK: return
func.func @counter(%p: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.for %j = %c0 to %n step %c1 : i32 {
      %old = tile.gather %p : !tile.ptr<f32> -> f32
      %new = arith.addf %old, %one : f32
      tile.scatter %new, %p : f32, !tile.ptr<f32>
    }
  }
  return
}

// -----
// Offsets of 16 bits wrap at their own ends: then iterations far from each other may meet.
// CHECK-LABEL: func.func @narrow
// CHECK-DAG: %[[LEAST:.*]] = arith.constant -32768 : i64
// CHECK-DAG: %[[MOST:.*]] = arith.constant 32767 : i64
// CHECK-DAG: arith.cmpi slt, %{{.*}}, %[[LEAST]] : i64
// CHECK-DAG: arith.cmpi sgt, %{{.*}}, %[[MOST]] : i64
// CHECK: scf.if
// CHECK: tile.barrier
func.func @narrow(%x: !tile.ptr<f32>, %start: i16, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c13107 = arith.constant 13107 : i32
  %i = tile.iota : tensor<128xi16>
  %s = tile.splat %start : i16 -> tensor<128xi16>
  %short = arith.addi %i, %s : tensor<128xi16>
  %o = arith.extsi %short : tensor<128xi16> to tensor<128xi32>
  %v = arith.constant dense<1.0> : tensor<128xf32>
  scf.for %k = %c0 to %n step %c13107 : i32 {
    %at = arith.extsi %k : i32 to i64
    %p = tile.ptr_add %x, %at : !tile.ptr<f32>, i64
    tile.scatter %v, %p offsets %o : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  }
  return
}

// -----
// Sums of bytes wrap: 100 before x and 100 behind it may be 56 apart.
// CHECK-LABEL: func.func @bytes
// CHECK: tile.store
// CHECK: tile.barrier
// CHECK-NEXT: tile.load
func.func @bytes(%v: !tile.view<1xf32>, %w: !tile.view<1xf32>, %x: i8) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c100 = arith.constant 100 : i8
  %c0 = arith.constant 0 : i32
  %one = arith.constant dense<1.0> : tensor<128xf32>
  %less = arith.subi %x, %c100 : i8
  %more = arith.addi %x, %c100 : i8
  %i = arith.extsi %less : i8 to i32
  %j = arith.extsi %more : i8 to i32
  tile.store %one, %v[%i : i32] : tensor<128xf32>, !tile.view<1xf32>
  %l = tile.load %v[%j : i32] : !tile.view<1xf32> -> tensor<128xf32>
  tile.store %l, %w[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}
