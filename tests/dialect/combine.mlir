// Reductions and scans with their combiner.
// RUN: tile-opt %s -split-input-file -verify-diagnostics | tile-opt -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @combine(
func.func @combine(%x: tensor<8x16xf32>, %i: tensor<8x16xi32>) {
  // CHECK: tile.reduce %{{.*}} axis 1 : (tensor<8x16xf32>) -> tensor<8x1xf32>
  // CHECK: ^bb0(%{{.*}}: f32, %{{.*}}: f32):
  // CHECK: tile.yield %{{.*}} : f32
  %0 = tile.reduce %x axis 1 : (tensor<8x16xf32>) -> tensor<8x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  // CHECK: tile.reduce %{{.*}}, %{{.*}} axis 0 : (tensor<8x16xf32>, tensor<8x16xi32>) -> (tensor<1x16xf32>, tensor<1x16xi32>)
  %1:2 = tile.reduce %x, %i axis 0 : (tensor<8x16xf32>, tensor<8x16xi32>) -> (tensor<1x16xf32>, tensor<1x16xi32>) {
  ^bb0(%a: f32, %ia: i32, %b: f32, %ib: i32):
    %g = arith.cmpf ogt, %a, %b : f32
    %m = arith.select %g, %a, %b : f32
    %k = arith.select %g, %ia, %ib : i32
    tile.yield %m, %k : f32, i32
  }
  // CHECK: tile.scan %{{.*}} axis 1 reverse : (tensor<8x16xi32>) -> tensor<8x16xi32>
  %2 = tile.scan %i axis 1 reverse : (tensor<8x16xi32>) -> tensor<8x16xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  // CHECK: tile.scan
  // CHECK: tile.add_rn
  %3 = tile.scan %x axis 1 : (tensor<8x16xf32>) -> tensor<8x16xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = tile.add_rn %a, %b : f32
    tile.yield %s : f32
  }
  return
}

// -----

func.func @axis(%x: tensor<8xf32>) {
  // expected-error @+1 {{axis must be between 0 and 0, found -1}}
  %0 = tile.reduce %x axis -1 : (tensor<8xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @keeps_axis(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{result 0 must be 'tensor<8x1xf32>', found 'tensor<8xf32>'}}
  %0 = tile.reduce %x axis 1 : (tensor<8x4xf32>) -> tensor<8xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @results(%x: tensor<8xf32>, %y: tensor<8xf32>) {
  // expected-error @+1 {{expects 2 results as there are operands, found 1}}
  %0 = tile.reduce %x, %y axis 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    tile.yield %a, %b : f32, f32
  }
  return
}

// -----

func.func @shapes(%x: tensor<8xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{operands must have one shape, found 'tensor<8xf32>' and 'tensor<4xf32>'}}
  %0:2 = tile.reduce %x, %y axis 0 : (tensor<8xf32>, tensor<4xf32>) -> (tensor<1xf32>, tensor<1xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    tile.yield %a, %b : f32, f32
  }
  return
}

// -----

func.func @arguments(%x: tensor<8xf32>) {
  // expected-error @+1 {{combiner must take 2 scalars, found 1}}
  %0 = tile.reduce %x axis 0 : (tensor<8xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @argument_types(%x: tensor<8xf32>) {
  // expected-error @+1 {{combiner must work on 'f32' for operand 0, found 'f16'}}
  %0 = tile.reduce %x axis 0 : (tensor<8xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f16):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @yields(%x: tensor<8xf32>) {
  // expected-error @+1 {{combiner must yield 1 scalars, found 0}}
  %0 = tile.scan %x axis 0 : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield
  }
  return
}

// -----

func.func @no_yield(%x: tensor<8xf32>) {
  // expected-error @+1 {{combiner must be one block that ends with tile.yield}}
  %0 = tile.scan %x axis 0 : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
  }
  return
}

// -----

func.func @empty_combiner(%x: tensor<8xf32>) {
  // expected-error @+1 {{expects a non-empty block}}
  %0 = "tile.scan"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @effects(%x: tensor<8xf32>, %p: !tile.ptr<f32>) {
  %0 = tile.reduce %x axis 0 : (tensor<8xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    // expected-error @+1 {{'tile.gather' op is not allowed in a combiner: only elementwise operations on scalars are}}
    %v = tile.gather %p : !tile.ptr<f32> -> f32
    tile.yield %v : f32
  }
  return
}

// -----

func.func @tiles_inside(%x: tensor<8xf32>) {
  %0 = tile.reduce %x axis 0 : (tensor<8xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    // expected-error @+1 {{in a combiner must work on scalars, found 'tensor<8xf32>'}}
    %v = arith.addf %x, %x : tensor<8xf32>
    tile.yield %a : f32
  }
  return
}

// -----

func.func @no_operands() {
  // expected-error @+1 {{needs at least one operand}}
  "tile.reduce"() <{axis = 0 : i32}> ({
    tile.yield
  }) : () -> ()
  return
}

// -----

func.func @yield_outside() {
  // expected-error @+1 {{expects parent op to be one of 'tile.reduce, tile.scan, tile.ballot'}}
  tile.yield
}

// -----
func.func @ballot(%v: !tile.view<1xi32>) -> i32 {
  // CHECK-LABEL: func.func @ballot
  // CHECK: tile.ballot {
  %bits = tile.ballot {
  ^bb0(%lane: i32):
    %x = tile.load %v[%lane : i32] : !tile.view<1xi32> -> i32
    %p = arith.cmpi ne, %x, %lane : i32
    tile.yield %p : i1
  }
  return %bits : i32
}

// -----
// Lanes answer with numbers where it is said how these are combined.
// CHECK-LABEL: func.func @combined
func.func @combined() -> i32 {
  // CHECK: tile.ballot combined max {
  %most = tile.ballot combined max {
  ^bb0(%lane: i32):
    tile.yield %lane : i32
  }
  return %most : i32
}

// -----
func.func @combined_flags(%flag: i1) -> i32 {
  // expected-error @+1 {{must be answered by one i32}}
  %most = tile.ballot combined max {
  ^bb0(%lane: i32):
    tile.yield %flag : i1
  }
  return %most : i32
}

// -----
func.func @ballot_of_numbers() -> i32 {
  // expected-error @+1 {{must be answered by one i1}}
  %bits = tile.ballot {
  ^bb0(%lane: i32):
    tile.yield %lane : i32
  }
  return %bits : i32
}

// -----
func.func @ballot_writes(%v: !tile.view<1xi32>) -> i32 {
  %bits = tile.ballot {
  ^bb0(%lane: i32):
    // expected-error @+1 {{is not allowed in a ballot: only arithmetic and reads are}}
    tile.store %lane, %v[%lane : i32] : i32, !tile.view<1xi32>
    %p = arith.cmpi ne, %lane, %lane : i32
    tile.yield %p : i1
  }
  return %bits : i32
}
