// What a loop chooses of a tile made in front of it by a sum of one element and zeros is looked up.
// RUN: tile-opt %s -split-input-file -tile-look-up-chosen -canonicalize | FileCheck %s

// CHECK-LABEL: @chosen
// CHECK: %[[TABLE:.*]] = arith.addf %arg0, %{{.*}} : tensor<512xf32>
// CHECK: scf.for
// CHECK: %[[AT:.*]] = tile.splat %{{.*}} : i32 -> tensor<1xi32>
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[AT]]
// CHECK: %[[TAKEN:.*]] = tile.take %[[TABLE]], %[[AT]] axis 0
// CHECK: %[[ONE:.*]] = arith.select %[[INSIDE]], %[[TAKEN]], %{{.*}} : tensor<1xi1>, tensor<1xf32>
// CHECK-NOT: tile.reduce
// CHECK: tile.item %[[ONE]]
func.func @chosen(%x: tensor<512xf32>, %n: i32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<512xf32>
  %zero = arith.constant 0.0 : f32
  %places = tile.iota : tensor<512xi32>
  %all = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> (f32) : i32 {
    %b = arith.muli %k, %k : i32
    %at = tile.splat %b : i32 -> tensor<512xi32>
    %is = arith.cmpi eq, %places, %at : tensor<512xi32>
    %one = arith.select %is, %x, %none : tensor<512xi1>, tensor<512xf32>
    %s = tile.reduce %one axis 0 : (tensor<512xf32>) -> tensor<1xf32> {
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q fastmath<contract> : f32
      tile.yield %r : f32
    }
    %item = tile.item %s : tensor<1xf32> -> f32
    %next = arith.addf %sum, %item : f32
    scf.yield %next : f32
  }
  return %all : f32
}

// -----
// The place is a tile of one element (an argmax), the tile a row.
// CHECK-LABEL: @row
// CHECK: scf.while
// CHECK: tile.take %arg0, %{{.*}} axis 1 : tensor<1x64xi32>, tensor<1x1xi32> -> tensor<1x1xi32>
// CHECK-NOT: tile.reduce
func.func @row(%x: tensor<1x64xi32>, %start: tensor<1x1xi32>) -> tensor<1x1xi32> {
  %none = arith.constant dense<0> : tensor<1x64xi32>
  %end = arith.constant 9 : i32
  %iota = tile.iota : tensor<64xi32>
  %places = tile.reshape %iota : tensor<64xi32> -> tensor<1x64xi32>
  %last = scf.while (%at = %start) : (tensor<1x1xi32>) -> tensor<1x1xi32> {
    %i = tile.item %at : tensor<1x1xi32> -> i32
    %go = arith.cmpi ne, %i, %end : i32
    scf.condition(%go) %at : tensor<1x1xi32>
  } do {
  ^bb0(%at: tensor<1x1xi32>):
    %everywhere = tile.broadcast %at : tensor<1x1xi32> -> tensor<1x64xi32>
    %is = arith.cmpi eq, %everywhere, %places : tensor<1x64xi32>
    %one = arith.select %is, %x, %none : tensor<1x64xi1>, tensor<1x64xi32>
    %next = tile.reduce %one axis 1 : (tensor<1x64xi32>) -> tensor<1x1xi32> {
    ^bb0(%p: i32, %q: i32):
      %r = arith.addi %p, %q : i32
      tile.yield %r : i32
    }
    scf.yield %next : tensor<1x1xi32>
  }
  return %last : tensor<1x1xi32>
}

// -----
// The place is a tile of one element, what is chosen a row of a matrix: every column looks there.
// CHECK-LABEL: @row_of_matrix
// CHECK: scf.for
// CHECK: %[[AT:.*]] = tile.broadcast %{{.*}} : tensor<1x1xi32> -> tensor<1x64xi32>
// CHECK: tile.take %arg0, %[[AT]] axis 0 : tensor<32x64xi32>, tensor<1x64xi32> -> tensor<1x64xi32>
// CHECK-NOT: tile.reduce
func.func @row_of_matrix(%x: tensor<32x64xi32>, %start: tensor<1x1xi32>, %n: i32) -> tensor<1x64xi32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant dense<0> : tensor<32x64xi32>
  %one = arith.constant dense<1> : tensor<1x1xi32>
  %zeros = arith.constant dense<0> : tensor<1x64xi32>
  %iota = tile.iota : tensor<32xi32>
  %places = tile.reshape %iota : tensor<32xi32> -> tensor<32x1xi32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zeros, %at = %start) -> (tensor<1x64xi32>, tensor<1x1xi32>) : i32 {
    %everywhere = tile.broadcast %at : tensor<1x1xi32> -> tensor<32x1xi32>
    %is = arith.cmpi eq, %everywhere, %places : tensor<32x1xi32>
    %mask = tile.broadcast %is : tensor<32x1xi1> -> tensor<32x64xi1>
    %row = arith.select %mask, %x, %none : tensor<32x64xi1>, tensor<32x64xi32>
    %chosen = tile.reduce %row axis 0 : (tensor<32x64xi32>) -> tensor<1x64xi32> {
    ^bb0(%p: i32, %q: i32):
      %s = arith.addi %p, %q : i32
      tile.yield %s : i32
    }
    %next = arith.addi %sum, %chosen : tensor<1x64xi32>
    %further = arith.addi %at, %one : tensor<1x1xi32>
    scf.yield %next, %further : tensor<1x64xi32>, tensor<1x1xi32>
  }
  return %r#0 : tensor<1x64xi32>
}

// -----
// Beside zeros below 0 an element of -0 stays one, and where there is none the sum is -0.
// CHECK-LABEL: @below_zero
// CHECK: %[[NONE:.*]] = arith.constant dense<-0.000000e+00> : tensor<1xf32>
// CHECK: %[[TAKEN:.*]] = tile.take
// CHECK-NOT: arith.addf
// CHECK: arith.select %{{.*}}, %[[TAKEN]], %[[NONE]] : tensor<1xi1>, tensor<1xf32>
func.func @below_zero(%x: tensor<512xf32>, %n: i32) -> tensor<1xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant dense<-0.0> : tensor<512xf32>
  %start = arith.constant dense<1.0> : tensor<1xf32>
  %places = tile.iota : tensor<512xi32>
  %all = scf.for %k = %c0 to %n step %c1 iter_args(%product = %start) -> (tensor<1xf32>) : i32 {
    %at = tile.splat %k : i32 -> tensor<512xi32>
    %is = arith.cmpi eq, %places, %at : tensor<512xi32>
    %one = arith.select %is, %x, %none : tensor<512xi1>, tensor<512xf32>
    %s = tile.reduce %one axis 0 : (tensor<512xf32>) -> tensor<1xf32> {
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q fastmath<contract> : f32
      tile.yield %r : f32
    }
    %next = arith.divf %product, %s : tensor<1xf32>
    scf.yield %next : tensor<1xf32>
  }
  return %all : tensor<1xf32>
}

// -----
// What the loop makes itself would be copied in every iteration; several rows choose each its own; the largest of one
// element and zeros is no sum.
// CHECK-LABEL: @stays
// CHECK-COUNT-3: tile.reduce
// CHECK-NOT: tile.take
func.func @stays(%x: tensor<64xf32>, %rows: tensor<8x64xf32>, %at: tensor<8x1xi32>, %n: i32)
    -> (tensor<64xf32>, tensor<8x1xf32>, f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %no_rows = arith.constant dense<0.0> : tensor<8x64xf32>
  %zeros = arith.constant dense<0.0> : tensor<8x1xf32>
  %zero = arith.constant 0.0 : f32
  %places = tile.iota : tensor<64xi32>
  %row = tile.reshape %places : tensor<64xi32> -> tensor<1x64xi32>
  %columns = tile.broadcast %row : tensor<1x64xi32> -> tensor<8x64xi32>
  %all:3 = scf.for %k = %c0 to %n step %c1 iter_args(%mine = %x, %sums = %zeros, %most = %zero)
      -> (tensor<64xf32>, tensor<8x1xf32>, f32) : i32 {
    %b = tile.splat %k : i32 -> tensor<64xi32>
    %is = arith.cmpi eq, %places, %b : tensor<64xi32>
    %one = arith.select %is, %mine, %none : tensor<64xi1>, tensor<64xf32>
    %s = tile.reduce %one axis 0 : (tensor<64xf32>) -> tensor<1xf32> {
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      tile.yield %r : f32
    }
    %sb = tile.broadcast %s : tensor<1xf32> -> tensor<64xf32>
    %next = arith.subf %mine, %sb : tensor<64xf32>
    %step = tile.splat %k : i32 -> tensor<8x1xi32>
    %moved = arith.addi %at, %step : tensor<8x1xi32>
    %ats = tile.broadcast %moved : tensor<8x1xi32> -> tensor<8x64xi32>
    %are = arith.cmpi eq, %columns, %ats : tensor<8x64xi32>
    %ones = arith.select %are, %rows, %no_rows : tensor<8x64xi1>, tensor<8x64xf32>
    %t = tile.reduce %ones axis 1 : (tensor<8x64xf32>) -> tensor<8x1xf32> {
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      tile.yield %r : f32
    }
    %more = arith.addf %sums, %t : tensor<8x1xf32>
    %chosen = arith.select %is, %x, %none : tensor<64xi1>, tensor<64xf32>
    %m = tile.reduce %chosen axis 0 : (tensor<64xf32>) -> tensor<1xf32> {
    ^bb0(%p: f32, %q: f32):
      %r = arith.maxnumf %p, %q : f32
      tile.yield %r : f32
    }
    %item = tile.item %m : tensor<1xf32> -> f32
    %higher = arith.maxnumf %most, %item : f32
    scf.yield %next, %more, %higher : tensor<64xf32>, tensor<8x1xf32>, f32
  }
  return %all#0, %all#1, %all#2 : tensor<64xf32>, tensor<8x1xf32>, f32
}

// -----
// A substitution: row k is made of itself and the others, and written back. What it was is what the loop began with. Where
// another row is written, or another is read, it may not be.
// CHECK-LABEL: @substitution
// CHECK: %[[TABLE:.*]] = arith.addf %arg0, %{{.*}} : tensor<32x32xf32>
// CHECK: scf.for %[[K:.*]] = {{.*}} iter_args(%[[MINE:.*]] = %arg0)
// CHECK: %[[AT:.*]] = tile.splat %[[K]] : i32 -> tensor<1x32xi32>
// CHECK: %[[ROW:.*]] = tile.take %[[TABLE]], %[[AT]] axis 0 : tensor<32x32xf32>, tensor<1x32xi32> -> tensor<1x32xf32>
// CHECK: tile.trans
// CHECK: tile.reduce
// CHECK-NOT: tile.reduce
// CHECK-LABEL: @another_row
// CHECK-NOT: tile.take
// CHECK: return
func.func @substitution(%a: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %c1 = arith.constant 1 : i32
  %n = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<32x32xf32>
  %iota = tile.iota : tensor<32xi32>
  %all = scf.for %k = %c1 to %n step %c1 iter_args(%mine = %a) -> (tensor<32x32xf32>) : i32 {
    %at = tile.splat %k : i32 -> tensor<32xi32>
    %are = arith.cmpi eq, %iota, %at : tensor<32xi32>
    %rows = tile.reshape %are : tensor<32xi1> -> tensor<32x1xi1>
    %is = tile.broadcast %rows : tensor<32x1xi1> -> tensor<32x32xi1>
    %one = arith.select %is, %mine, %none : tensor<32x32xi1>, tensor<32x32xf32>
    %row = tile.reduce %one axis 0 : (tensor<32x32xf32>) -> tensor<1x32xf32> {
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      tile.yield %r : f32
    }
    %weights = tile.trans %row, [1, 0] : tensor<1x32xf32> -> tensor<32x1xf32>
    %wide = tile.broadcast %weights : tensor<32x1xf32> -> tensor<32x32xf32>
    %parts = arith.mulf %wide, %mine : tensor<32x32xf32>
    %sum = tile.reduce %parts axis 0 : (tensor<32x32xf32>) -> tensor<1x32xf32> {
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      tile.yield %r : f32
    }
    %new = arith.addf %row, %sum : tensor<1x32xf32>
    %high = tile.broadcast %new : tensor<1x32xf32> -> tensor<32x32xf32>
    %next = arith.select %is, %high, %mine : tensor<32x32xi1>, tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  }
  return %all : tensor<32x32xf32>
}
func.func @another_row(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>) {
  %c1 = arith.constant 1 : i32
  %n = arith.constant 31 : i32
  %none = arith.constant dense<0.0> : tensor<32x32xf32>
  %iota = tile.iota : tensor<32xi32>
  %all:2 = scf.for %k = %c1 to %n step %c1 iter_args(%mine = %a, %other = %b) -> (tensor<32x32xf32>, tensor<32x32xf32>) : i32 {
    %at = tile.splat %k : i32 -> tensor<32xi32>
    %are = arith.cmpi eq, %iota, %at : tensor<32xi32>
    %rows = tile.reshape %are : tensor<32xi1> -> tensor<32x1xi1>
    %is = tile.broadcast %rows : tensor<32x1xi1> -> tensor<32x32xi1>
    %above = arith.subi %k, %c1 : i32
    %before = tile.splat %above : i32 -> tensor<32xi32>
    %were = arith.cmpi eq, %iota, %before : tensor<32xi32>
    %last = tile.reshape %were : tensor<32xi1> -> tensor<32x1xi1>
    %was = tile.broadcast %last : tensor<32x1xi1> -> tensor<32x32xi1>
    %one = arith.select %was, %mine, %none : tensor<32x32xi1>, tensor<32x32xf32>
    %row = tile.reduce %one axis 0 : (tensor<32x32xf32>) -> tensor<1x32xf32> {
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      tile.yield %r : f32
    }
    %two = arith.select %is, %other, %none : tensor<32x32xi1>, tensor<32x32xf32>
    %line = tile.reduce %two axis 0 : (tensor<32x32xf32>) -> tensor<1x32xf32> {
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      tile.yield %r : f32
    }
    %high = tile.broadcast %row : tensor<1x32xf32> -> tensor<32x32xf32>
    %deep = tile.broadcast %line : tensor<1x32xf32> -> tensor<32x32xf32>
    %next = arith.select %is, %high, %mine : tensor<32x32xi1>, tensor<32x32xf32>
    %more = arith.addf %deep, %other : tensor<32x32xf32>
    scf.yield %next, %more : tensor<32x32xf32>, tensor<32x32xf32>
  }
  return %all#0, %all#1 : tensor<32x32xf32>, tensor<32x32xf32>
}
