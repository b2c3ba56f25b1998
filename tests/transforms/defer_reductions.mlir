// Sums that a loop only accumulates are taken across threads behind it.
// RUN: tile-opt %s -split-input-file --tile-reduce-whole --tile-defer-reductions | FileCheck %s

#tile = #tile.layout<128x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:8*16]>
#row = #tile.layout<128x1 regs [0:2*8] lanes [rep:4, 0:8*1] warps [0:8*16]>

// The row sums of a softmax: four lanes share a row.
// CHECK-LABEL: func.func @rescaled
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<128x64xf32, {{[^>]*}}>>, %[[ALPHA:[a-z0-9]+]]: tensor<128x1xf32, {{[^>]*}}>>, %[[INIT:[a-z0-9]+]]: tensor<128x1xf32,
// CHECK: %[[SHARES:.*]] = tile.broadcast %[[INIT]] : {{.*}} -> tensor<128x4xf32, #tile.layout<128x4 regs [0:2*8] lanes [1:4*1, 0:8*1] warps [0:8*16]>>
// CHECK: %[[QUARTER:.*]] = arith.constant dense<2.500000e-01>
// CHECK: %[[START:.*]] = arith.mulf %[[SHARES]], %[[QUARTER]]
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[L:.*]] = %[[START]]) -> (tensor<128x4xf32
// CHECK: %[[SPLIT:.*]] = tile.reshape %[[P]] : {{.*}} -> tensor<128x8x4x2xf32
// CHECK: %[[PAIRS:.*]] = tile.reduce %[[SPLIT]] axis 3
// CHECK: %[[REST:.*]] = tile.reduce %[[PAIRS]] axis 1
// CHECK: %[[SUM:.*]] = tile.reshape %[[REST]] : {{.*}} -> tensor<128x4xf32
// CHECK: %[[FACTOR:.*]] = tile.broadcast %[[ALPHA]] : {{.*}} -> tensor<128x4xf32
// CHECK: %[[NEXT:.*]] = math.fma %[[L]], %[[FACTOR]], %[[SUM]]
// CHECK-NOT: tile.reduce
// CHECK: scf.yield %[[NEXT]]
// CHECK: %[[TOTAL:.*]] = tile.reduce %[[R]] axis 1 : {{.*}} -> tensor<128x1xf32
// CHECK: return %[[TOTAL]]
func.func @rescaled(%p: tensor<128x64xf32, #tile>, %alpha: tensor<128x1xf32, #row>, %init: tensor<128x1xf32, #row>, %n: i32) -> tensor<128x1xf32, #row> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%l = %init) -> (tensor<128x1xf32, #row>) : i32 {
    %s = tile.reduce %p axis 1 : (tensor<128x64xf32, #tile>) -> tensor<128x1xf32, #row> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %next = math.fma %l, %alpha, %s : tensor<128x1xf32, #row>
    scf.yield %next : tensor<128x1xf32, #row>
  }
  return %r : tensor<128x1xf32, #row>
}

// -----

#tile = #tile.layout<128x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:8*16]>
#row = #tile.layout<128x1 regs [0:2*8] lanes [rep:4, 0:8*1] warps [0:8*16]>
#wide = #tile.layout<16x256 regs [1:2*1, 0:8*2] lanes [1:32*2] warps [1:4*64, 0:2*1]>
#rows = #tile.layout<16x1 regs [0:8*2] lanes [rep:32] warps [rep:4, 0:2*1]>

// Product and sum apart, without a factor, with warps that share the axis; a maximum that is added, a sum that is read in the loop and
// one that is used twice stay.
// CHECK-LABEL: func.func @forms
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[X:.*]] = %{{.*}}, %[[Y:.*]] = %{{.*}}) -> (tensor<128x4xf32{{.*}}, tensor<128x4xf32
// CHECK-DAG: %[[SCALED:.*]] = arith.mulf %[[X]], %{{.*}} : tensor<128x4xf32
// CHECK-DAG: arith.addf %{{.*}}, %[[SCALED]] : tensor<128x4xf32
// CHECK-DAG: arith.addf %[[Y]], %{{.*}} : tensor<128x4xf32
// CHECK: scf.yield
// CHECK-LABEL: func.func @read
// CHECK: scf.for {{.*}} -> (tensor<128x1xf32
// CHECK-NOT: tile.reshape
// CHECK-LABEL: func.func @maximum
// CHECK: scf.for {{.*}} -> (tensor<128x1xf32
// CHECK-NOT: tile.reshape
func.func @forms(%p: tensor<128x64xf32, #tile>, %alpha: tensor<128x1xf32, #row>, %init: tensor<128x1xf32, #row>, %n: i32) -> (tensor<128x1xf32, #row>, tensor<128x1xf32, #row>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %j = %c0 to %n step %c1 iter_args(%x = %init, %y = %init) -> (tensor<128x1xf32, #row>, tensor<128x1xf32, #row>) : i32 {
    %s = tile.reduce %p axis 1 : (tensor<128x64xf32, #tile>) -> tensor<128x1xf32, #row> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %t = tile.reduce %p axis 1 : (tensor<128x64xf32, #tile>) -> tensor<128x1xf32, #row> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %m = arith.mulf %x, %alpha : tensor<128x1xf32, #row>
    %x2 = arith.addf %s, %m : tensor<128x1xf32, #row>
    %y2 = arith.addf %y, %t : tensor<128x1xf32, #row>
    scf.yield %x2, %y2 : tensor<128x1xf32, #row>, tensor<128x1xf32, #row>
  }
  return %r#0, %r#1 : tensor<128x1xf32, #row>, tensor<128x1xf32, #row>
}
func.func @read(%p: tensor<128x64xf32, #tile>, %init: tensor<128x1xf32, #row>, %n: i32) -> (tensor<128x1xf32, #row>, tensor<128x1xf32, #row>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %j = %c0 to %n step %c1 iter_args(%x = %init, %y = %init) -> (tensor<128x1xf32, #row>, tensor<128x1xf32, #row>) : i32 {
    %s = tile.reduce %p axis 1 : (tensor<128x64xf32, #tile>) -> tensor<128x1xf32, #row> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %x2 = arith.addf %s, %x : tensor<128x1xf32, #row>
    %y2 = arith.mulf %y, %x2 : tensor<128x1xf32, #row>
    scf.yield %x2, %y2 : tensor<128x1xf32, #row>, tensor<128x1xf32, #row>
  }
  return %r#0, %r#1 : tensor<128x1xf32, #row>, tensor<128x1xf32, #row>
}
func.func @maximum(%p: tensor<128x64xf32, #tile>, %init: tensor<128x1xf32, #row>, %n: i32) -> tensor<128x1xf32, #row> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%x = %init) -> (tensor<128x1xf32, #row>) : i32 {
    %s = tile.reduce %p axis 1 : (tensor<128x64xf32, #tile>) -> tensor<128x1xf32, #row> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.maximumf %a, %b : f32
      tile.yield %c : f32
    }
    %x2 = arith.addf %s, %x : tensor<128x1xf32, #row>
    scf.yield %x2 : tensor<128x1xf32, #row>
  }
  return %r : tensor<128x1xf32, #row>
}

// Warps share the axis, too: no shared memory in the loop.
// CHECK-LABEL: func.func @warps
// CHECK: scf.for {{.*}} -> (tensor<16x128xf32
// CHECK: tile.reshape %{{.*}} -> tensor<16x4x32x2xf32
// CHECK: tile.reduce %{{.*}} axis 3
// CHECK: tile.reshape %{{.*}} -> tensor<16x128xf32
// CHECK: scf.yield
// CHECK: tile.reduce %{{.*}} axis 1 : {{.*}} -> tensor<16x1xf32
func.func @warps(%p: tensor<16x256xf32, #wide>, %init: tensor<16x1xf32, #rows>, %n: i32) -> tensor<16x1xf32, #rows> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%x = %init) -> (tensor<16x1xf32, #rows>) : i32 {
    %s = tile.reduce %p axis 1 : (tensor<16x256xf32, #wide>) -> tensor<16x1xf32, #rows> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %x2 = arith.addf %s, %x : tensor<16x1xf32, #rows>
    scf.yield %x2 : tensor<16x1xf32, #rows>
  }
  return %r : tensor<16x1xf32, #rows>
}

// -----

#tile = #tile.layout<128x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:8*16]>
#row = #tile.layout<128x1 regs [0:2*8] lanes [rep:4, 0:8*1] warps [0:8*16]>

// Of products the longest sum comes first: it is the one whose additions are parts of products.
// CHECK-LABEL: func.func @squares
// CHECK: %[[SPLIT:.*]] = tile.reshape %{{.*}} -> tensor<128x8x4x2xf32
// CHECK: %[[LONG:.*]] = tile.reduce %[[SPLIT]] axis 1
// CHECK: tile.reduce %[[LONG]] axis 3
func.func @squares(%p: tensor<128x64xf32, #tile>, %init: tensor<128x1xf32, #row>, %n: i32) -> tensor<128x1xf32, #row> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%l = %init) -> (tensor<128x1xf32, #row>) : i32 {
    %q = arith.mulf %p, %p fastmath<contract> : tensor<128x64xf32, #tile>
    %s = tile.reduce %q axis 1 : (tensor<128x64xf32, #tile>) -> tensor<128x1xf32, #row> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b fastmath<contract> : f32
      tile.yield %c : f32
    }
    %next = arith.addf %l, %s : tensor<128x1xf32, #row>
    scf.yield %next : tensor<128x1xf32, #row>
  }
  return %r : tensor<128x1xf32, #row>
}

// -----

#tile = #tile.layout<128x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:8*16]>
#row = #tile.layout<128x1 regs [0:2*8] lanes [rep:4, 0:8*1] warps [0:8*16]>
#other = #tile.layout<128x1 regs [] lanes [0:32*1] warps [0:4*32, rep:2]>

// A sum that is wanted under another layout: it is accumulated where it was made, and moves behind the loop.
// CHECK-LABEL: func.func @moved
// CHECK: %[[R:.*]] = scf.for {{.*}} -> (tensor<128x4xf32
// CHECK-NOT: tile.convert
// CHECK: scf.yield
// CHECK: %[[TOTAL:.*]] = tile.reduce %[[R]] axis 1
// CHECK: %[[MOVED:.*]] = tile.convert %[[TOTAL]]
// CHECK: return %[[MOVED]]
func.func @moved(%p: tensor<128x64xf32, #tile>, %n: i32) -> tensor<128x1xf32, #other> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x1xf32, #other>
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%l = %zero) -> (tensor<128x1xf32, #other>) : i32 {
    %s = tile.reduce %p axis 1 : (tensor<128x64xf32, #tile>) -> tensor<128x1xf32, #row> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %t = tile.convert %s : tensor<128x1xf32, #row> -> tensor<128x1xf32, #other>
    %next = arith.addf %l, %t : tensor<128x1xf32, #other>
    scf.yield %next : tensor<128x1xf32, #other>
  }
  return %r : tensor<128x1xf32, #other>
}

// -----

#vector = #tile.layout<64 regs [0:2*1] lanes [0:32*2] warps []>
#one = #tile.layout<1 regs [] lanes [rep:32] warps []>

// A scalar that the sums of vectors are added to is a tile of one element; one that something else reads stays.
// CHECK-LABEL: func.func @scalars
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} -> (tensor<32xf32, {{.*}}, f32)
// CHECK: tile.item
// CHECK-NOT: tile.item
// CHECK: %[[BY:.*]] = tile.splat %arg1 : f32 -> tensor<1xf32
// CHECK: %[[WIDE:.*]] = tile.broadcast %[[BY]] : {{.*}} -> tensor<32xf32
// CHECK: arith.mulf %{{.*}}, %[[WIDE]] : tensor<32xf32
// CHECK-NOT: tile.item
// CHECK: scf.yield
// CHECK: %[[T:.*]] = tile.reduce %[[R]]#0 axis 0
// CHECK: %[[S:.*]] = tile.item %[[T]]
// CHECK: return %[[S]], %[[R]]#1
func.func @scalars(%p: tensor<64xf32, #vector>, %by: f32, %n: i32) -> (f32, f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %r:2 = scf.for %j = %c0 to %n step %c1 iter_args(%x = %zero, %y = %zero) -> (f32, f32) : i32 {
    %s = tile.reduce %p axis 0 : (tensor<64xf32, #vector>) -> tensor<1xf32, #one> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %t = tile.reduce %p axis 0 : (tensor<64xf32, #vector>) -> tensor<1xf32, #one> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %u = tile.item %s : tensor<1xf32, #one> -> f32
    %v = tile.item %t : tensor<1xf32, #one> -> f32
    %scaled = arith.mulf %x, %by : f32
    %next = arith.addf %scaled, %u : f32
    %twice = arith.mulf %y, %y : f32
    %other = arith.addf %twice, %v : f32
    scf.yield %next, %other : f32, f32
  }
  return %r#0, %r#1 : f32, f32
}

// -----

#tile = #tile.layout<128x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:8*16]>
#row = #tile.layout<128x1 regs [0:2*8] lanes [rep:4, 0:8*1] warps [0:8*16]>

// Loops with a condition: what it reads stays whole, what it only passes on does not.
// CHECK-LABEL: func.func @while
// CHECK: %[[R:.*]]:3 = scf.while (%{{.*}} = %{{.*}}, %[[X:.*]] = %{{.*}}, %{{.*}} = %{{.*}}) : (i32, tensor<128x4xf32, {{.*}}>, tensor<128x1xf32
// CHECK: ^bb0(%{{.*}}: i32, %[[L:.*]]: tensor<128x4xf32, {{[^)]*}}tensor<128x1xf32
// CHECK: arith.addf %[[L]], %{{.*}} : tensor<128x4xf32
// CHECK: tile.reduce %[[R]]#1 axis 1
func.func @while(%p: tensor<128x64xf32, #tile>, %init: tensor<128x1xf32, #row>, %n: i32) -> (tensor<128x1xf32, #row>, tensor<128x1xf32, #row>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:3 = scf.while (%i = %c0, %x = %init, %y = %init) : (i32, tensor<128x1xf32, #row>, tensor<128x1xf32, #row>) -> (i32, tensor<128x1xf32, #row>, tensor<128x1xf32, #row>) {
    %more = arith.cmpi slt, %i, %n : i32
    %z = arith.negf %y : tensor<128x1xf32, #row>
    scf.condition(%more) %i, %x, %z : i32, tensor<128x1xf32, #row>, tensor<128x1xf32, #row>
  } do {
  ^bb0(%i: i32, %x: tensor<128x1xf32, #row>, %y: tensor<128x1xf32, #row>):
    %s = tile.reduce %p axis 1 : (tensor<128x64xf32, #tile>) -> tensor<128x1xf32, #row> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %t = tile.reduce %p axis 1 : (tensor<128x64xf32, #tile>) -> tensor<128x1xf32, #row> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %x2 = arith.addf %x, %s : tensor<128x1xf32, #row>
    %y2 = arith.addf %y, %t : tensor<128x1xf32, #row>
    %next = arith.addi %i, %c1 : i32
    scf.yield %next, %x2, %y2 : i32, tensor<128x1xf32, #row>, tensor<128x1xf32, #row>
  }
  return %r#1, %r#2 : tensor<128x1xf32, #row>, tensor<128x1xf32, #row>
}

// -----

#tile = #tile.layout<128x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:8*16]>
#row = #tile.layout<128x1 regs [0:2*8] lanes [rep:4, 0:8*1] warps [0:8*16]>
#vector = #tile.layout<512 regs [0:2*1] lanes [0:32*2] warps [0:8*64]>
#one = #tile.layout<1 regs [] lanes [rep:32] warps [rep:8]>

// The largest of all: every thread starts from the first value, whole. A largest that is scaled on its way stays.
// CHECK-LABEL: func.func @largest
// CHECK: %[[START:.*]] = tile.broadcast %{{.*}} -> tensor<128x4xf32
// CHECK-NOT: arith.mulf
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[M:.*]] = %[[START]]) -> (tensor<128x4xf32
// CHECK: tile.reduce %{{.*}} axis 3
// CHECK: %[[NEXT:.*]] = arith.maxnumf %[[M]], %{{.*}} : tensor<128x4xf32
// CHECK: scf.yield %[[NEXT]]
// CHECK: tile.reduce %[[R]] axis 1 : {{.*}} -> tensor<128x1xf32
func.func @largest(%p: tensor<128x64xf32, #tile>, %init: tensor<128x1xf32, #row>, %n: i32) -> tensor<128x1xf32, #row> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%m = %init) -> (tensor<128x1xf32, #row>) : i32 {
    %s = tile.reduce %p axis 1 : (tensor<128x64xf32, #tile>) -> tensor<128x1xf32, #row> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      tile.yield %c : f32
    }
    %next = arith.maxnumf %m, %s : tensor<128x1xf32, #row>
    scf.yield %next : tensor<128x1xf32, #row>
  }
  return %r : tensor<128x1xf32, #row>
}
// CHECK-LABEL: func.func @scaled
// CHECK: scf.for {{.*}} -> (tensor<128x1xf32
// CHECK-NOT: tile.reshape
func.func @scaled(%p: tensor<128x64xf32, #tile>, %alpha: tensor<128x1xf32, #row>, %init: tensor<128x1xf32, #row>, %n: i32) -> tensor<128x1xf32, #row> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%m = %init) -> (tensor<128x1xf32, #row>) : i32 {
    %s = tile.reduce %p axis 1 : (tensor<128x64xf32, #tile>) -> tensor<128x1xf32, #row> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      tile.yield %c : f32
    }
    %t = arith.mulf %m, %alpha : tensor<128x1xf32, #row>
    %next = arith.maxnumf %t, %s : tensor<128x1xf32, #row>
    scf.yield %next : tensor<128x1xf32, #row>
  }
  return %r : tensor<128x1xf32, #row>
}
// A scalar of whole numbers.
// CHECK-LABEL: func.func @smallest
// CHECK: %[[R:.*]] = scf.for {{.*}} -> (tensor<256xi32
// CHECK: arith.minsi %{{.*}}, %{{.*}} : tensor<256xi32
// CHECK: scf.yield
// CHECK: %[[ALL:.*]] = tile.reduce %[[R]] axis 0
// CHECK: tile.item %[[ALL]]
func.func @smallest(%p: tensor<512xi32, #vector>, %init: i32, %n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%m = %init) -> (i32) : i32 {
    %s = tile.reduce %p axis 0 : (tensor<512xi32, #vector>) -> tensor<1xi32, #one> {
    ^bb0(%a: i32, %b: i32):
      %c = arith.minsi %a, %b : i32
      tile.yield %c : i32
    }
    %x = tile.item %s : tensor<1xi32, #one> -> i32
    %next = arith.minsi %m, %x : i32
    scf.yield %next : i32
  }
  return %r : i32
}

// -----

#tile = #tile.layout<16x512 regs [1:8*1, 1:2*256, 0:4*4] lanes [1:32*8] warps [0:4*1]>
#kept = #tile.layout<1x512 regs [1:8*1, 1:2*256] lanes [1:32*8] warps [rep:4]>
#row = #tile.layout<512 regs [0:8*1, 0:2*256] lanes [0:32*8] warps [rep:4]>

// Sums of columns that are added without the dim they leave (squeezed): four warps keep a share each, also where a
// factor of that shape is in front.
// CHECK-LABEL: func.func @squeezed
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[X:.*]] = %{{.*}}, %[[Y:.*]] = %{{.*}}) -> (tensor<4x512xf32{{.*}}, tensor<4x512xf32
// CHECK: arith.addf %[[X]], %{{.*}} : tensor<4x512xf32
// CHECK: math.fma %[[Y]], %{{.*}}, %{{.*}} : tensor<4x512xf32
// CHECK: scf.yield
// CHECK-DAG: %[[SUM:.*]] = tile.reduce %[[R]]#0 axis 0
// CHECK-DAG: tile.reduce %[[R]]#1 axis 0
// CHECK-DAG: tile.reshape %[[SUM]] : {{.*}} -> tensor<512xf32
func.func @squeezed(%p: tensor<16x512xf32, #tile>, %alpha: tensor<512xf32, #row>, %init: tensor<512xf32, #row>, %n: i32) -> (tensor<512xf32, #row>, tensor<512xf32, #row>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<512xf32, #row>
  %r:2 = scf.for %j = %c0 to %n step %c1 iter_args(%x = %zero, %y = %init) -> (tensor<512xf32, #row>, tensor<512xf32, #row>) : i32 {
    %s = tile.reduce %p axis 0 : (tensor<16x512xf32, #tile>) -> tensor<1x512xf32, #kept> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %t = tile.reduce %p axis 0 : (tensor<16x512xf32, #tile>) -> tensor<1x512xf32, #kept> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %s1 = tile.reshape %s : tensor<1x512xf32, #kept> -> tensor<512xf32, #row>
    %t1 = tile.reshape %t : tensor<1x512xf32, #kept> -> tensor<512xf32, #row>
    %x2 = arith.addf %x, %s1 : tensor<512xf32, #row>
    %y2 = math.fma %y, %alpha, %t1 : tensor<512xf32, #row>
    scf.yield %x2, %y2 : tensor<512xf32, #row>, tensor<512xf32, #row>
  }
  return %r#0, %r#1 : tensor<512xf32, #row>, tensor<512xf32, #row>
}

// -----

#tile = #tile.layout<16x512 regs [1:8*1, 1:2*256, 0:4*4] lanes [1:32*8] warps [0:4*1]>
#rows = #tile.layout<16x1 regs [0:4*4] lanes [rep:32] warps [0:4*1]>
#one = #tile.layout<1x1 regs [] lanes [rep:32] warps [rep:4]>

// A scalar that sums of whole tiles are added to: no lane looks at another's in the loop.
// CHECK-LABEL: func.func @whole
// CHECK: %[[R:.*]] = scf.for {{.*}} -> (tensor<128xf32
// CHECK-NOT: tile.item
// CHECK: scf.yield
// CHECK: %[[SUM:.*]] = tile.reduce %[[R]] axis 0 : {{.*}} -> tensor<1xf32
// CHECK: tile.item %[[SUM]]
func.func @whole(%p: tensor<16x512xf32, #tile>, %n: i32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%x = %zero) -> (f32) : i32 {
    %s = tile.reduce %p axis 1 : (tensor<16x512xf32, #tile>) -> tensor<16x1xf32, #rows> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %t = tile.reduce %s axis 0 : (tensor<16x1xf32, #rows>) -> tensor<1x1xf32, #one> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %i = tile.item %t : tensor<1x1xf32, #one> -> f32
    %next = arith.addf %x, %i : f32
    scf.yield %next : f32
  }
  return %r : f32
}

// -----

#tile = #tile.layout<128x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:8*16]>
#row = #tile.layout<128x1 regs [0:2*8] lanes [rep:4, 0:8*1] warps [0:8*16]>

// Counts begin at zero in every thread, what was there is added behind the loop; of flags every thread keeps its own.
// CHECK-LABEL: func.func @counts
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<128x64xi32, {{[^>]*}}>>, %{{[a-z0-9]+}}: tensor<128x64xi1, {{[^>]*}}>>, %[[INIT:[a-z0-9]+]]: tensor<128x1xi32,
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0> : tensor<128x4xi32
// CHECK-DAG: %[[NONE:.*]] = tile.broadcast %{{.*}} -> tensor<128x4xi1
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %[[ZERO]], %{{.*}} = %[[NONE]]) -> (tensor<128x4xi32{{.*}}, tensor<128x4xi1
// CHECK: scf.yield
// CHECK-DAG: %[[SUM:.*]] = tile.reduce %[[R]]#0 axis 1
// CHECK-DAG: arith.addi %[[INIT]], %[[SUM]]
// CHECK-DAG: tile.reduce %[[R]]#1 axis 1
// CHECK: return
func.func @counts(%p: tensor<128x64xi32, #tile>, %f: tensor<128x64xi1, #tile>, %init: tensor<128x1xi32, #row>, %no: tensor<128x1xi1, #row>, %n: i32) -> (tensor<128x1xi32, #row>, tensor<128x1xi1, #row>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %j = %c0 to %n step %c1 iter_args(%x = %init, %y = %no) -> (tensor<128x1xi32, #row>, tensor<128x1xi1, #row>) : i32 {
    %s = tile.reduce %p axis 1 : (tensor<128x64xi32, #tile>) -> tensor<128x1xi32, #row> {
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tile.yield %c : i32
    }
    %t = tile.reduce %f axis 1 : (tensor<128x64xi1, #tile>) -> tensor<128x1xi1, #row> {
    ^bb0(%a: i1, %b: i1):
      %c = arith.ori %a, %b : i1
      tile.yield %c : i1
    }
    %x2 = arith.addi %x, %s : tensor<128x1xi32, #row>
    %y2 = arith.ori %y, %t : tensor<128x1xi1, #row>
    scf.yield %x2, %y2 : tensor<128x1xi32, #row>, tensor<128x1xi1, #row>
  }
  return %r#0, %r#1 : tensor<128x1xi32, #row>, tensor<128x1xi1, #row>
}

// -----

#tile = #tile.layout<128x64 regs [1:4*1, 0:8*16] lanes [1:16*4, 0:2*1] warps [0:8*2]>
#row = #tile.layout<128x1 regs [0:8*16] lanes [rep:16, 0:2*1] warps [0:8*2]>
#spread = #tile.layout<128x1 regs [] lanes [0:32*1] warps [0:4*32, rep:2]>
#flat = #tile.layout<128 regs [] lanes [0:32*1] warps [0:4*32, rep:2]>

// Counts that lie otherwise than the vector of counts move once, behind the loop.
// CHECK-LABEL: func.func @moved_then_flat
// CHECK: %[[R:.*]] = scf.for {{.*}} -> (tensor<128x16xi32
// CHECK-NOT: tile.convert
// CHECK: scf.yield
// CHECK: %[[SUM:.*]] = tile.reduce %[[R]] axis 1
// CHECK: %[[MOVED:.*]] = tile.convert %[[SUM]]
// CHECK: tile.reshape %[[MOVED]]
func.func @moved_then_flat(%p: tensor<128x64xi32, #tile>, %n: i32) -> tensor<128xi32, #flat> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0> : tensor<128xi32, #flat>
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%x = %zero) -> (tensor<128xi32, #flat>) : i32 {
    %s = tile.reduce %p axis 1 : (tensor<128x64xi32, #tile>) -> tensor<128x1xi32, #row> {
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tile.yield %c : i32
    }
    %m = tile.convert %s : tensor<128x1xi32, #row> -> tensor<128x1xi32, #spread>
    %f = tile.reshape %m : tensor<128x1xi32, #spread> -> tensor<128xi32, #flat>
    %next = arith.addi %x, %f : tensor<128xi32, #flat>
    scf.yield %next : tensor<128xi32, #flat>
  }
  return %r : tensor<128xi32, #flat>
}

// -----

#tile = #tile.layout<128x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:8*16]>
#row = #tile.layout<128x1 regs [0:2*8] lanes [rep:4, 0:8*1] warps [0:8*16]>

// In a branch: of one that adds a sum, and of one that passes on what was there. A branch whose other side changes the sum
// as well stays.
// CHECK-LABEL: func.func @branch
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[L:.*]] = %{{.*}}, %[[X:.*]] = %{{.*}}) -> (tensor<128x4xf32, {{.*}}>, tensor<128x1xf32,
// CHECK: %[[NEXT:.*]] = scf.if %{{.*}} -> (tensor<128x4xf32
// CHECK: tile.reduce %{{.*}} axis 3
// CHECK: tile.reduce %{{.*}} axis 1
// CHECK: %[[MORE:.*]] = arith.addf %[[L]], %{{.*}} : tensor<128x4xf32
// CHECK: scf.yield %[[MORE]]
// CHECK: else
// CHECK: scf.yield %[[L]]
// CHECK: %[[BOTH:.*]] = scf.if %{{.*}} -> (tensor<128x1xf32
// CHECK: scf.yield %[[NEXT]], %[[BOTH]]
// CHECK: tile.reduce %[[R]]#0 axis 1 : {{.*}} -> tensor<128x1xf32
func.func @branch(%p: tensor<128x64xf32, #tile>, %alpha: tensor<128x1xf32, #row>, %init: tensor<128x1xf32, #row>, %c: i1, %n: i32)
    -> (tensor<128x1xf32, #row>, tensor<128x1xf32, #row>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %j = %c0 to %n step %c1 iter_args(%l = %init, %x = %init) -> (tensor<128x1xf32, #row>, tensor<128x1xf32, #row>) : i32 {
    %next = scf.if %c -> (tensor<128x1xf32, #row>) {
      %s = tile.reduce %p axis 1 : (tensor<128x64xf32, #tile>) -> tensor<128x1xf32, #row> {
      ^bb0(%a: f32, %b: f32):
        %d = arith.addf %a, %b : f32
        tile.yield %d : f32
      }
      %more = arith.addf %l, %s : tensor<128x1xf32, #row>
      scf.yield %more : tensor<128x1xf32, #row>
    } else {
      scf.yield %l : tensor<128x1xf32, #row>
    }
    %both = scf.if %c -> (tensor<128x1xf32, #row>) {
      %s = tile.reduce %p axis 1 : (tensor<128x64xf32, #tile>) -> tensor<128x1xf32, #row> {
      ^bb0(%a: f32, %b: f32):
        %d = arith.addf %a, %b : f32
        tile.yield %d : f32
      }
      %more = arith.addf %x, %s : tensor<128x1xf32, #row>
      scf.yield %more : tensor<128x1xf32, #row>
    } else {
      %less = arith.mulf %x, %alpha : tensor<128x1xf32, #row>
      scf.yield %less : tensor<128x1xf32, #row>
    }
    scf.yield %next, %both : tensor<128x1xf32, #row>, tensor<128x1xf32, #row>
  }
  return %r#0, %r#1 : tensor<128x1xf32, #row>, tensor<128x1xf32, #row>
}
