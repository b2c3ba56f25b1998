// RUN: tile-opt %s --pass-pipeline='builtin.module(func.func(tile-raise-boxes,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s
// Rows past the end of a matrix that are others (`rows % M`, `where(rows < M, rows, 0)`, `min(rows, M - 1)`) are zeros of
// a box where nobody looks at them.

// Rows that wrap around: nobody stores what is computed of those past the end.
// CHECK-LABEL: func.func @wrapped(
// CHECK: %[[VIEW:.*]] = tile.make_view %arg0
// CHECK: scf.for %[[I:.*]] = %c0_i32
// CHECK: tile.load %[[VIEW]][%{{.*}}, %[[I]] : i32, i32]
// CHECK-NOT: tile.gather
func.func @wrapped(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %m: i32, %n: i32,
                  %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %row = arith.muli %pid, %c64 : i32
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rs = tile.splat %row : i32 -> tensor<64xi32>
  %r = arith.addi %rs, %i64 : tensor<64xi32>
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  %around = arith.remsi %r, %ms : tensor<64xi32>
  %rows = tile.reshape %around : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %ks = tile.splat %k : i32 -> tensor<64x1xi32>
  %ao = arith.muli %rows, %ks : tensor<64x1xi32>
  %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
  %c32l = arith.constant 32 : i64
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %p = %a) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    %left = arith.subi %k, %i : i32
    %ls = tile.splat %left : i32 -> tensor<1x32xi32>
    %in = arith.cmpi slt, %along, %ls : tensor<1x32xi32>
    %mask = tile.broadcast %in : tensor<1x32xi1> -> tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %mask : tensor<64x32xi1> : !tile.ptr<f16> -> tensor<64x32xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32l : !tile.ptr<f16>, i64
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %to = tile.reshape %r : tensor<64xi32> -> tensor<64x1xi32>
  %ys = tile.broadcast %to : tensor<64x1xi32> -> tensor<64x64xi32>
  %bound = tile.splat %m : i32 -> tensor<64x1xi32>
  %inside = arith.cmpi slt, %to, %bound : tensor<64x1xi32>
  %inside2 = tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> mask %inside2 : tensor<64x64xi1> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}

// A mask may say so, too: it bounds the rows where they wrap around.
// CHECK-LABEL: func.func @wrapped_masked(
// CHECK: %[[VIEW:.*]] = tile.make_view %arg0
// CHECK: scf.for %[[I:.*]] = %c0_i32
// CHECK: tile.load %[[VIEW]][%{{.*}}, %[[I]] : i32, i32]
// CHECK-NOT: tile.gather
func.func @wrapped_masked(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %m: i32, %n: i32,
                  %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %row = arith.muli %pid, %c64 : i32
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rs = tile.splat %row : i32 -> tensor<64xi32>
  %r = arith.addi %rs, %i64 : tensor<64xi32>
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  %around = arith.remsi %r, %ms : tensor<64xi32>
  %rows = tile.reshape %around : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %ks = tile.splat %k : i32 -> tensor<64x1xi32>
  %ao = arith.muli %rows, %ks : tensor<64x1xi32>
  %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
  %rows1 = tile.reshape %r : tensor<64xi32> -> tensor<64x1xi32>
  %end = tile.splat %m : i32 -> tensor<64x1xi32>
  %inrows = arith.cmpi slt, %rows1, %end : tensor<64x1xi32>
  %inrows2 = tile.broadcast %inrows : tensor<64x1xi1> -> tensor<64x32xi1>
  %c32l = arith.constant 32 : i64
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %p = %a) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    %left = arith.subi %k, %i : i32
    %ls = tile.splat %left : i32 -> tensor<1x32xi32>
    %in = arith.cmpi slt, %along, %ls : tensor<1x32xi32>
    %in2 = tile.broadcast %in : tensor<1x32xi1> -> tensor<64x32xi1>
    %mask = arith.andi %inrows2, %in2 : tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %mask : tensor<64x32xi1> : !tile.ptr<f16> -> tensor<64x32xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32l : !tile.ptr<f16>, i64
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %to = tile.reshape %r : tensor<64xi32> -> tensor<64x1xi32>
  %ys = tile.broadcast %to : tensor<64x1xi32> -> tensor<64x64xi32>
  %bound = tile.splat %m : i32 -> tensor<64x1xi32>
  %inside = arith.cmpi slt, %to, %bound : tensor<64x1xi32>
  %inside2 = tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> mask %inside2 : tensor<64x64xi1> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}

// One that leaves out other rows is a second bound.
// CHECK-LABEL: func.func @wrapped_masked_before(
// CHECK-NOT: tile.make_view
// CHECK: tile.gather
func.func @wrapped_masked_before(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %m: i32, %n: i32,
                  %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %row = arith.muli %pid, %c64 : i32
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rs = tile.splat %row : i32 -> tensor<64xi32>
  %r = arith.addi %rs, %i64 : tensor<64xi32>
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  %around = arith.remsi %r, %ms : tensor<64xi32>
  %rows = tile.reshape %around : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %ks = tile.splat %k : i32 -> tensor<64x1xi32>
  %ao = arith.muli %rows, %ks : tensor<64x1xi32>
  %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
  %rows1 = tile.reshape %r : tensor<64xi32> -> tensor<64x1xi32>
  %end = tile.splat %n : i32 -> tensor<64x1xi32>
  %inrows = arith.cmpi slt, %rows1, %end : tensor<64x1xi32>
  %inrows2 = tile.broadcast %inrows : tensor<64x1xi1> -> tensor<64x32xi1>
  %c32l = arith.constant 32 : i64
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %p = %a) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    %left = arith.subi %k, %i : i32
    %ls = tile.splat %left : i32 -> tensor<1x32xi32>
    %in = arith.cmpi slt, %along, %ls : tensor<1x32xi32>
    %in2 = tile.broadcast %in : tensor<1x32xi1> -> tensor<64x32xi1>
    %mask = arith.andi %inrows2, %in2 : tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %mask : tensor<64x32xi1> : !tile.ptr<f16> -> tensor<64x32xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32l : !tile.ptr<f16>, i64
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %to = tile.reshape %r : tensor<64xi32> -> tensor<64x1xi32>
  %ys = tile.broadcast %to : tensor<64x1xi32> -> tensor<64x64xi32>
  %bound = tile.splat %m : i32 -> tensor<64x1xi32>
  %inside = arith.cmpi slt, %to, %bound : tensor<64x1xi32>
  %inside2 = tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> mask %inside2 : tensor<64x64xi1> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}

// So are rows of which those past the end are the first one.
// CHECK-LABEL: func.func @chosen(
// CHECK: %[[VIEW:.*]] = tile.make_view %arg0
// CHECK: scf.for %[[I:.*]] = %c0_i32
// CHECK: tile.load %[[VIEW]][%{{.*}}, %[[I]] : i32, i32]
// CHECK-NOT: tile.gather
func.func @chosen(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %m: i32, %n: i32,
                  %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %row = arith.muli %pid, %c64 : i32
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rs = tile.splat %row : i32 -> tensor<64xi32>
  %r = arith.addi %rs, %i64 : tensor<64xi32>
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  %none = arith.constant dense<0> : tensor<64xi32>
  %below = arith.cmpi slt, %r, %ms : tensor<64xi32>
  %around = arith.select %below, %r, %none : tensor<64xi1>, tensor<64xi32>
  %rows = tile.reshape %around : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %ks = tile.splat %k : i32 -> tensor<64x1xi32>
  %ao = arith.muli %rows, %ks : tensor<64x1xi32>
  %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
  %c32l = arith.constant 32 : i64
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %p = %a) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    %left = arith.subi %k, %i : i32
    %ls = tile.splat %left : i32 -> tensor<1x32xi32>
    %in = arith.cmpi slt, %along, %ls : tensor<1x32xi32>
    %mask = tile.broadcast %in : tensor<1x32xi1> -> tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %mask : tensor<64x32xi1> : !tile.ptr<f16> -> tensor<64x32xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32l : !tile.ptr<f16>, i64
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %to = tile.reshape %r : tensor<64xi32> -> tensor<64x1xi32>
  %ys = tile.broadcast %to : tensor<64x1xi32> -> tensor<64x64xi32>
  %bound = tile.splat %m : i32 -> tensor<64x1xi32>
  %inside = arith.cmpi slt, %to, %bound : tensor<64x1xi32>
  %inside2 = tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> mask %inside2 : tensor<64x64xi1> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}

// ... or the last one.
// CHECK-LABEL: func.func @clamped(
// CHECK: %[[VIEW:.*]] = tile.make_view %arg0
// CHECK: scf.for %[[I:.*]] = %c0_i32
// CHECK: tile.load %[[VIEW]][%{{.*}}, %[[I]] : i32, i32]
// CHECK-NOT: tile.gather
func.func @clamped(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %m: i32, %n: i32,
                  %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %row = arith.muli %pid, %c64 : i32
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rs = tile.splat %row : i32 -> tensor<64xi32>
  %r = arith.addi %rs, %i64 : tensor<64xi32>
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  %c1 = arith.constant 1 : i32
  %last = arith.subi %m, %c1 : i32
  %lasts = tile.splat %last : i32 -> tensor<64xi32>
  %around = arith.minsi %r, %lasts : tensor<64xi32>
  %rows = tile.reshape %around : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %ks = tile.splat %k : i32 -> tensor<64x1xi32>
  %ao = arith.muli %rows, %ks : tensor<64x1xi32>
  %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
  %c32l = arith.constant 32 : i64
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %p = %a) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    %left = arith.subi %k, %i : i32
    %ls = tile.splat %left : i32 -> tensor<1x32xi32>
    %in = arith.cmpi slt, %along, %ls : tensor<1x32xi32>
    %mask = tile.broadcast %in : tensor<1x32xi1> -> tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %mask : tensor<64x32xi1> : !tile.ptr<f16> -> tensor<64x32xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32l : !tile.ptr<f16>, i64
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %to = tile.reshape %r : tensor<64xi32> -> tensor<64x1xi32>
  %ys = tile.broadcast %to : tensor<64x1xi32> -> tensor<64x64xi32>
  %bound = tile.splat %m : i32 -> tensor<64x1xi32>
  %inside = arith.cmpi slt, %to, %bound : tensor<64x1xi32>
  %inside2 = tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> mask %inside2 : tensor<64x64xi1> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}

// Rows that others choose are no box.
// CHECK-LABEL: func.func @chosen_by_others(
// CHECK-NOT: tile.make_view
// CHECK: tile.gather
func.func @chosen_by_others(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %m: i32, %n: i32,
                  %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %row = arith.muli %pid, %c64 : i32
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rs = tile.splat %row : i32 -> tensor<64xi32>
  %r = arith.addi %rs, %i64 : tensor<64xi32>
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  %none = arith.constant dense<0> : tensor<64xi32>
  %ones = arith.constant dense<1> : tensor<64xi32>
  %beside = arith.addi %r, %ones : tensor<64xi32>
  %below = arith.cmpi slt, %beside, %ms : tensor<64xi32>
  %around = arith.select %below, %r, %none : tensor<64xi1>, tensor<64xi32>
  %rows = tile.reshape %around : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %ks = tile.splat %k : i32 -> tensor<64x1xi32>
  %ao = arith.muli %rows, %ks : tensor<64x1xi32>
  %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
  %c32l = arith.constant 32 : i64
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %p = %a) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    %left = arith.subi %k, %i : i32
    %ls = tile.splat %left : i32 -> tensor<1x32xi32>
    %in = arith.cmpi slt, %along, %ls : tensor<1x32xi32>
    %mask = tile.broadcast %in : tensor<1x32xi1> -> tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %mask : tensor<64x32xi1> : !tile.ptr<f16> -> tensor<64x32xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32l : !tile.ptr<f16>, i64
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %to = tile.reshape %r : tensor<64xi32> -> tensor<64x1xi32>
  %ys = tile.broadcast %to : tensor<64x1xi32> -> tensor<64x64xi32>
  %bound = tile.splat %m : i32 -> tensor<64x1xi32>
  %inside = arith.cmpi slt, %to, %bound : tensor<64x1xi32>
  %inside2 = tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> mask %inside2 : tensor<64x64xi1> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}

// A number to which a loop adds counts is one: the tile of a persistent program.
// CHECK-LABEL: func.func @carried(
// CHECK: %[[VIEW:.*]] = tile.make_view %arg0
// CHECK: scf.for
// CHECK: scf.for %[[I:.*]] = %c0_i32
// CHECK: tile.load %[[VIEW]][%{{.*}}, %[[I]] : i32, i32]
// CHECK-NOT: tile.gather
func.func @carried(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %m: i32, %n: i32,
                  %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %programs = tile.num_programs 0
  %tiles = scf.for %t = %c0 to %n step %c32 iter_args(%tile = %pid) -> (i32) : i32 {
  %row = arith.muli %tile, %c64 : i32
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rs = tile.splat %row : i32 -> tensor<64xi32>
  %r = arith.addi %rs, %i64 : tensor<64xi32>
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  %around = arith.remsi %r, %ms : tensor<64xi32>
  %rows = tile.reshape %around : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %ks = tile.splat %k : i32 -> tensor<64x1xi32>
  %ao = arith.muli %rows, %ks : tensor<64x1xi32>
  %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
  %c32l = arith.constant 32 : i64
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %p = %a) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    %left = arith.subi %k, %i : i32
    %ls = tile.splat %left : i32 -> tensor<1x32xi32>
    %in = arith.cmpi slt, %along, %ls : tensor<1x32xi32>
    %mask = tile.broadcast %in : tensor<1x32xi1> -> tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %mask : tensor<64x32xi1> : !tile.ptr<f16> -> tensor<64x32xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32l : !tile.ptr<f16>, i64
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %to = tile.reshape %r : tensor<64xi32> -> tensor<64x1xi32>
  %ys = tile.broadcast %to : tensor<64x1xi32> -> tensor<64x64xi32>
  %bound = tile.splat %m : i32 -> tensor<64x1xi32>
  %inside = arith.cmpi slt, %to, %bound : tensor<64x1xi32>
  %inside2 = tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> mask %inside2 : tensor<64x64xi1> : tensor<64x64xf32>, !tile.ptr<f32>
  %after = arith.addi %tile, %programs : i32
  scf.yield %after : i32
  }
  return
}

// Sums that a later tile goes on with have what the rows past the end were; those that begin again have not.
// CHECK-LABEL: func.func @carried_sum(
// CHECK-NOT: tile.make_view
// CHECK: tile.gather
func.func @carried_sum(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %m: i32, %n: i32,
                  %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %programs = tile.num_programs 0
  %tiles:2 = scf.for %t = %c0 to %n step %c32 iter_args(%tile = %pid, %before = %zero) -> (i32, tensor<64x64xf32>) : i32 {
  %row = arith.muli %tile, %c64 : i32
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rs = tile.splat %row : i32 -> tensor<64xi32>
  %r = arith.addi %rs, %i64 : tensor<64xi32>
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  %around = arith.remsi %r, %ms : tensor<64xi32>
  %rows = tile.reshape %around : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %ks = tile.splat %k : i32 -> tensor<64x1xi32>
  %ao = arith.muli %rows, %ks : tensor<64x1xi32>
  %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
  %c32l = arith.constant 32 : i64
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %before, %p = %a) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    %left = arith.subi %k, %i : i32
    %ls = tile.splat %left : i32 -> tensor<1x32xi32>
    %in = arith.cmpi slt, %along, %ls : tensor<1x32xi32>
    %mask = tile.broadcast %in : tensor<1x32xi1> -> tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %mask : tensor<64x32xi1> : !tile.ptr<f16> -> tensor<64x32xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32l : !tile.ptr<f16>, i64
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %to = tile.reshape %r : tensor<64xi32> -> tensor<64x1xi32>
  %ys = tile.broadcast %to : tensor<64x1xi32> -> tensor<64x64xi32>
  %bound = tile.splat %m : i32 -> tensor<64x1xi32>
  %inside = arith.cmpi slt, %to, %bound : tensor<64x1xi32>
  %inside2 = tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> mask %inside2 : tensor<64x64xi1> : tensor<64x64xf32>, !tile.ptr<f32>
  %after = arith.addi %tile, %programs : i32
  scf.yield %after, %sum#0 : i32, tensor<64x64xf32>
  }
  return
}

// CHECK-LABEL: func.func @begins_again(
// CHECK: tile.make_view %arg0
// CHECK-NOT: tile.gather
func.func @begins_again(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %m: i32, %n: i32,
                  %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %programs = tile.num_programs 0
  %tiles:2 = scf.for %t = %c0 to %n step %c32 iter_args(%tile = %pid, %before = %zero) -> (i32, tensor<64x64xf32>) : i32 {
  %row = arith.muli %tile, %c64 : i32
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rs = tile.splat %row : i32 -> tensor<64xi32>
  %r = arith.addi %rs, %i64 : tensor<64xi32>
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  %around = arith.remsi %r, %ms : tensor<64xi32>
  %rows = tile.reshape %around : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %ks = tile.splat %k : i32 -> tensor<64x1xi32>
  %ao = arith.muli %rows, %ks : tensor<64x1xi32>
  %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
  %c32l = arith.constant 32 : i64
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %before, %p = %a) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    %left = arith.subi %k, %i : i32
    %ls = tile.splat %left : i32 -> tensor<1x32xi32>
    %in = arith.cmpi slt, %along, %ls : tensor<1x32xi32>
    %mask = tile.broadcast %in : tensor<1x32xi1> -> tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %mask : tensor<64x32xi1> : !tile.ptr<f16> -> tensor<64x32xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32l : !tile.ptr<f16>, i64
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %to = tile.reshape %r : tensor<64xi32> -> tensor<64x1xi32>
  %ys = tile.broadcast %to : tensor<64x1xi32> -> tensor<64x64xi32>
  %bound = tile.splat %m : i32 -> tensor<64x1xi32>
  %inside = arith.cmpi slt, %to, %bound : tensor<64x1xi32>
  %inside2 = tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> mask %inside2 : tensor<64x64xi1> : tensor<64x64xf32>, !tile.ptr<f32>
  %after = arith.addi %tile, %programs : i32
  %ends = arith.cmpi slt, %after, %programs : i32
  %begin = arith.select %ends, %zero, %sum#0 : tensor<64x64xf32>
  scf.yield %after, %begin : i32, tensor<64x64xf32>
  }
  return
}
// CHECK-LABEL: func.func @cut_off(
// CHECK-NOT: tile.make_view
// CHECK: tile.gather
func.func @cut_off(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %m: i32, %n: i32,
                  %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %programs = tile.num_programs 0
  %tiles:2 = scf.for %t = %c0 to %n step %c32 iter_args(%tile = %pid, %before = %zero) -> (i32, tensor<64x64xf32>) : i32 {
  %row = arith.muli %tile, %c64 : i32
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rs = tile.splat %row : i32 -> tensor<64xi32>
  %r = arith.addi %rs, %i64 : tensor<64xi32>
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  %around = arith.remsi %r, %ms : tensor<64xi32>
  %rows = tile.reshape %around : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %ks = tile.splat %k : i32 -> tensor<64x1xi32>
  %ao = arith.muli %rows, %ks : tensor<64x1xi32>
  %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
  %c32l = arith.constant 32 : i64
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %before, %p = %a) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    %left = arith.subi %k, %i : i32
    %ls = tile.splat %left : i32 -> tensor<1x32xi32>
    %in = arith.cmpi slt, %along, %ls : tensor<1x32xi32>
    %mask = tile.broadcast %in : tensor<1x32xi1> -> tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %mask : tensor<64x32xi1> : !tile.ptr<f16> -> tensor<64x32xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32l : !tile.ptr<f16>, i64
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %to = tile.reshape %r : tensor<64xi32> -> tensor<64x1xi32>
  %ys = tile.broadcast %to : tensor<64x1xi32> -> tensor<64x64xi32>
  %bound = tile.splat %m : i32 -> tensor<64x1xi32>
  %inside = arith.cmpi slt, %to, %bound : tensor<64x1xi32>
  %inside2 = tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> mask %inside2 : tensor<64x64xi1> : tensor<64x64xf32>, !tile.ptr<f32>
  %after = arith.addi %tile, %programs : i32
  %positive = arith.cmpf ogt, %sum#0, %zero : tensor<64x64xf32>
  %begin = arith.select %positive, %sum#0, %zero : tensor<64x64xi1>, tensor<64x64xf32>
  scf.yield %after, %begin : i32, tensor<64x64xf32>
  }
  return
}

// Under another bound somebody may store them.
// CHECK-LABEL: func.func @looked_at(
// CHECK-NOT: tile.make_view
// CHECK: tile.gather
func.func @looked_at(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %m: i32, %n: i32,
                  %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %row = arith.muli %pid, %c64 : i32
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rs = tile.splat %row : i32 -> tensor<64xi32>
  %r = arith.addi %rs, %i64 : tensor<64xi32>
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  %around = arith.remsi %r, %ms : tensor<64xi32>
  %rows = tile.reshape %around : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %ks = tile.splat %k : i32 -> tensor<64x1xi32>
  %ao = arith.muli %rows, %ks : tensor<64x1xi32>
  %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
  %c32l = arith.constant 32 : i64
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %p = %a) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    %left = arith.subi %k, %i : i32
    %ls = tile.splat %left : i32 -> tensor<1x32xi32>
    %in = arith.cmpi slt, %along, %ls : tensor<1x32xi32>
    %mask = tile.broadcast %in : tensor<1x32xi1> -> tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %mask : tensor<64x32xi1> : !tile.ptr<f16> -> tensor<64x32xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32l : !tile.ptr<f16>, i64
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %to = tile.reshape %r : tensor<64xi32> -> tensor<64x1xi32>
  %ys = tile.broadcast %to : tensor<64x1xi32> -> tensor<64x64xi32>
  %bound = tile.splat %n : i32 -> tensor<64x1xi32>
  %inside = arith.cmpi slt, %to, %bound : tensor<64x1xi32>
  %inside2 = tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> mask %inside2 : tensor<64x64xi1> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}

// So may assembly with effects.
// CHECK-LABEL: func.func @asked(
// CHECK-NOT: tile.make_view
// CHECK: tile.gather
func.func @asked(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %m: i32, %n: i32,
                  %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %row = arith.muli %pid, %c64 : i32
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rs = tile.splat %row : i32 -> tensor<64xi32>
  %r = arith.addi %rs, %i64 : tensor<64xi32>
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  %around = arith.remsi %r, %ms : tensor<64xi32>
  %rows = tile.reshape %around : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %ks = tile.splat %k : i32 -> tensor<64x1xi32>
  %ao = arith.muli %rows, %ks : tensor<64x1xi32>
  %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
  %c32l = arith.constant 32 : i64
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %p = %a) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    %left = arith.subi %k, %i : i32
    %ls = tile.splat %left : i32 -> tensor<1x32xi32>
    %in = arith.cmpi slt, %along, %ls : tensor<1x32xi32>
    %mask = tile.broadcast %in : tensor<1x32xi1> -> tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %mask : tensor<64x32xi1> : !tile.ptr<f16> -> tensor<64x32xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32l : !tile.ptr<f16>, i64
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %seen = tile.inline_asm "st.global.f32 [0], $1; mov.b32 $0, $1;", "=f,f" (%sum#0) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %to = tile.reshape %r : tensor<64xi32> -> tensor<64x1xi32>
  %ys = tile.broadcast %to : tensor<64x1xi32> -> tensor<64x64xi32>
  %bound = tile.splat %m : i32 -> tensor<64x1xi32>
  %inside = arith.cmpi slt, %to, %bound : tensor<64x1xi32>
  %inside2 = tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
  tile.scatter %seen, %y offsets %ys : tensor<64x64xi32> mask %inside2 : tensor<64x64xi1> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}
