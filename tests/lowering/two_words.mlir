// Numbers of two words. The larger or smaller of f64 numbers and constants: a comparison and a choice. Of others and of
// f32: the instruction.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: entry extremes(
// CHECK-NOT: max.f64
// CHECK: setp.gt.f64 %wins
// CHECK-NEXT: // end inline asm
// CHECK: setp.le.f64 %wins
// CHECK: min.f64
// CHECK: max.f32
// CHECK: ret;
func.func @extremes(%x: !tile.view<1xf64>, %y: !tile.view<1xf64>, %z: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %one = arith.constant dense<1.0> : tensor<32xf64>
  %zero = arith.constant dense<0.0> : tensor<32xf64>
  %null = arith.constant dense<0.0> : tensor<32xf32>
  %a = tile.load %x[%i : i32] : !tile.view<1xf64> -> tensor<32xf64>
  %b = tile.load %y[%i : i32] : !tile.view<1xf64> -> tensor<32xf64>
  %c = arith.maxnumf %a, %one : tensor<32xf64>
  tile.store %c, %x[%i : i32] : tensor<32xf64>, !tile.view<1xf64>
  %d = arith.minnumf %zero, %b : tensor<32xf64>
  %e = arith.minnumf %d, %a : tensor<32xf64>
  tile.store %e, %y[%i : i32] : tensor<32xf64>, !tile.view<1xf64>
  %f = arith.truncf %e : tensor<32xf64> to tensor<32xf32>
  %g = arith.maxnumf %f, %null : tensor<32xf32>
  tile.store %g, %z[%i : i32] : tensor<32xf32>, !tile.view<1xf32>
  return
}

// Products of numbers below 2^32, wherever their upper words come from; sums whose carry chooses a number.
// CHECK-LABEL: entry words(
// CHECK-DAG: mul.wide.u32
// CHECK-DAG: mul.lo.s64
// CHECK: add.cc.u64 {{.*}} addc.u32
// CHECK: sub.cc.u64 {{.*}} subc.u32
// CHECK: ret;
func.func @words(%x: !tile.view<1xi64>, %y: !tile.view<1xi64>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %low = arith.constant dense<4294967295> : tensor<32xi64>
  %c17 = arith.constant dense<17> : tensor<32xi64>
  %zero = arith.constant dense<0> : tensor<32xi64>
  %a = tile.load %x[%i : i32] : !tile.view<1xi64> -> tensor<32xi64>
  %b = tile.load %y[%i : i32] : !tile.view<1xi64> -> tensor<32xi64>
  %c = arith.andi %a, %low : tensor<32xi64>
  %d = arith.muli %c, %c17 : tensor<32xi64>
  %e = arith.muli %d, %b : tensor<32xi64>
  %s = arith.addi %e, %a : tensor<32xi64>
  %wraps = arith.cmpi ult, %s, %a : tensor<32xi64>
  %more = arith.select %wraps, %low, %zero : tensor<32xi1>, tensor<32xi64>
  %t = arith.addi %s, %more : tensor<32xi64>
  tile.store %t, %x[%i : i32] : tensor<32xi64>, !tile.view<1xi64>
  %u = arith.subi %a, %b : tensor<32xi64>
  %below = arith.cmpi ult, %a, %b : tensor<32xi64>
  %less = arith.select %below, %low, %zero : tensor<32xi1>, tensor<32xi64>
  %v = arith.subi %u, %less : tensor<32xi64>
  tile.store %v, %y[%i : i32] : tensor<32xi64>, !tile.view<1xi64>
  return
}

// Products of numbers that were cut to 32 bits and widened again, whose upper words are copies of a sign; not of one
// that keeps 40 bits.
// CHECK-LABEL: entry signs(
// CHECK: mul.wide.s32
// CHECK-NOT: mul.wide.s32
// CHECK: mul.lo.s64
// CHECK: ret;
func.func @signs(%x: !tile.view<1xi64>, %y: !tile.view<1xi64>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %c24 = arith.constant dense<24> : tensor<32xi64>
  %a = tile.load %x[%i : i32] : !tile.view<1xi64> -> tensor<32xi64>
  %b = tile.load %y[%i : i32] : !tile.view<1xi64> -> tensor<32xi64>
  %c = arith.trunci %a : tensor<32xi64> to tensor<32xi32>
  %d = arith.trunci %b : tensor<32xi64> to tensor<32xi32>
  %e = arith.extsi %c : tensor<32xi32> to tensor<32xi64>
  %f = arith.extsi %d : tensor<32xi32> to tensor<32xi64>
  %g = arith.muli %e, %f : tensor<32xi64>
  tile.store %g, %x[%i : i32] : tensor<32xi64>, !tile.view<1xi64>
  %h = arith.shrsi %a, %c24 : tensor<32xi64>
  %j = arith.muli %h, %f : tensor<32xi64>
  tile.store %j, %y[%i : i32] : tensor<32xi64>, !tile.view<1xi64>
  return
}

// Whether the number of bits set is odd: one count of a word; a number that is also looked at otherwise is counted whole.
// CHECK-LABEL: entry odd_bits(
// CHECK: xor.b32
// CHECK: popc.b32
// CHECK-NOT: shr.u64
// CHECK: popc.b64
// CHECK-NOT: popc.b32
// CHECK: ret;
func.func @odd_bits(%x: !tile.view<1xi64>, %y: !tile.view<1xi64>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %one = arith.constant dense<1> : tensor<32xi64>
  %a = tile.load %x[%i : i32] : !tile.view<1xi64> -> tensor<32xi64>
  %bits = math.ctpop %a : tensor<32xi64>
  %odd = arith.andi %bits, %one : tensor<32xi64>
  tile.store %odd, %x[%i : i32] : tensor<32xi64>, !tile.view<1xi64>
  %b = tile.load %y[%i : i32] : !tile.view<1xi64> -> tensor<32xi64>
  %more = math.ctpop %b : tensor<32xi64>
  %low = arith.andi %more, %one : tensor<32xi64>
  %sum = arith.addi %low, %more : tensor<32xi64>
  tile.store %sum, %y[%i : i32] : tensor<32xi64>, !tile.view<1xi64>
  return
}
