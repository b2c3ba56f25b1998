// Arrays that every row of a tile has for itself (a stack, a board), carried by a loop, looked up and combined along one
// axis, lie in registers of the row's thread: nobody waits for anybody.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s

// CHECK-LABEL: .entry stacks(
// CHECK-NOT: {{st|ld}}.shared
// CHECK-NOT: shfl
// CHECK-NOT: bar.sync
// CHECK: vote.sync
// CHECK-NOT: {{st|ld}}.shared
// CHECK-NOT: shfl
// CHECK-NOT: bar.sync
// CHECK: ret;
func.func @stacks(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<128xi32>
  %zero = arith.constant dense<0> : tensor<128xi32>
  %one = arith.constant dense<1> : tensor<128xi32>
  %two = arith.constant dense<2> : tensor<128xi32>
  %empty = arith.constant dense<0> : tensor<128x12xi32>
  %k = tile.iota : tensor<12xi32>
  %k1 = tile.reshape %k : tensor<12xi32> -> tensor<1x12xi32>
  %level = tile.broadcast %k1 : tensor<1x12xi32> -> tensor<128x12xi32>
  %x0 = tile.gather %x offsets %o : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
  %a0 = arith.cmpi ne, %x0, %one : tensor<128xi32>
  %r:5 = scf.while (%a = %a0, %v = %x0, %top = %zero, %s = %empty, %n = %zero) : (tensor<128xi1>, tensor<128xi32>, tensor<128xi32>, tensor<128x12xi32>, tensor<128xi32>) -> (tensor<128xi1>, tensor<128xi32>, tensor<128xi32>, tensor<128x12xi32>, tensor<128xi32>) {
    %any = tile.reduce %a axis 0 : (tensor<128xi1>) -> tensor<1xi1> {
    ^bb0(%p: i1, %q: i1):
      %t = arith.ori %p, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %any : tensor<1xi1> -> i1
    scf.condition(%c) %a, %v, %top, %s, %n : tensor<128xi1>, tensor<128xi32>, tensor<128xi32>, tensor<128x12xi32>, tensor<128xi32>
  } do {
  ^bb0(%a: tensor<128xi1>, %v: tensor<128xi32>, %top: tensor<128xi32>, %s: tensor<128x12xi32>, %n: tensor<128xi32>):
    %h = arith.divsi %v, %two : tensor<128xi32>
    %top1 = tile.reshape %top : tensor<128xi32> -> tensor<128x1xi32>
    %tops = tile.broadcast %top1 : tensor<128x1xi32> -> tensor<128x12xi32>
    %h1 = tile.reshape %h : tensor<128xi32> -> tensor<128x1xi32>
    %hs = tile.broadcast %h1 : tensor<128x1xi32> -> tensor<128x12xi32>
    %a1 = tile.reshape %a : tensor<128xi1> -> tensor<128x1xi1>
    %as = tile.broadcast %a1 : tensor<128x1xi1> -> tensor<128x12xi1>
    %here = arith.cmpi eq, %level, %tops : tensor<128x12xi32>
    %mine = arith.andi %here, %as : tensor<128x12xi1>
    %t = arith.select %mine, %hs, %s : tensor<128x12xi1>, tensor<128x12xi32>
    %got1 = tile.take %t, %top1 axis 1 : tensor<128x12xi32>, tensor<128x1xi32> -> tensor<128x1xi32>
    %got = tile.reshape %got1 : tensor<128x1xi32> -> tensor<128xi32>
    %w = arith.select %a, %got, %v : tensor<128xi1>, tensor<128xi32>
    %step = arith.extui %a : tensor<128xi1> to tensor<128xi32>
    %up = arith.addi %top, %step : tensor<128xi32>
    %sum1 = tile.reduce %t axis 1 : (tensor<128x12xi32>) -> tensor<128x1xi32> {
    ^bb0(%p: i32, %q: i32):
      %z = arith.addi %p, %q : i32
      tile.yield %z : i32
    }
    %sum = tile.reshape %sum1 : tensor<128x1xi32> -> tensor<128xi32>
    %m = arith.select %a, %sum, %n : tensor<128xi1>, tensor<128xi32>
    %b = arith.cmpi sgt, %w, %one : tensor<128xi32>
    %d = arith.andi %a, %b : tensor<128xi1>
    scf.yield %d, %w, %up, %t, %m : tensor<128xi1>, tensor<128xi32>, tensor<128xi32>, tensor<128x12xi32>, tensor<128xi32>
  }
  tile.scatter %r#4, %y offsets %o : tensor<128xi32> : tensor<128xi32>, !tile.ptr<i32>
  return
}
