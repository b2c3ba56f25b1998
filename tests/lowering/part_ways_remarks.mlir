// What keeps all warps in a loop until the last is done is named: here the other factor may be infinite.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-part-ways -verify-diagnostics -o /dev/null

func.func @unmasked_factor(%x: !tile.ptr<f32>, %e: !tile.ptr<i32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %one = arith.constant dense<1> : tensor<256xi32>
  %end = tile.gather %e offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %first = arith.constant dense<0.0> : tensor<256xf32>
  %r:2 = scf.while (%j = %o, %a = %first) : (tensor<256xi32>, tensor<256xf32>) -> (tensor<256xi32>, tensor<256xf32>) {
    %on = arith.cmpi slt, %j, %end : tensor<256xi32>
    %s = tile.reduce %on axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
    ^bb0(%p: i1, %q: i1):
      %t = arith.ori %p, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %s : tensor<1xi1> -> i1
    scf.condition(%c) %j, %a : tensor<256xi32>, tensor<256xf32>
  } do {
  ^bb0(%j: tensor<256xi32>, %a: tensor<256xf32>):
    %on = arith.cmpi slt, %j, %end : tensor<256xi32>
    %v = tile.gather %x offsets %j : tensor<256xi32> mask %on : tensor<256xi1> : !tile.ptr<f32> -> tensor<256xf32>
    %w = tile.gather %y offsets %j : tensor<256xi32> : !tile.ptr<f32> -> tensor<256xf32>
    %m = arith.mulf %v, %w : tensor<256xf32>
    // expected-remark @+1 {{all warps stay in the loop until the last is done: this is not known to stay as it is where the loop's condition no longer holds}}
    %b = arith.addf %a, %m : tensor<256xf32>
    %i = arith.addi %j, %one : tensor<256xi32>
    scf.yield %i, %b : tensor<256xi32>, tensor<256xf32>
  }
  tile.scatter %r#1, %y offsets %o : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}
