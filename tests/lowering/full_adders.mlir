// Carry and sum of three words are an instruction each, also of words that are computed: `x & y` is made once for both.
// A carry alone is left to the assembler.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s

// CHECK-LABEL: .entry adds(
// CHECK: and.b32 %[[X:r[0-9]+]]
// CHECK-NOT: {{(or|xor)\.b32}}
// CHECK-DAG: lop3.b32 %[[SUM:r[0-9]+]], %{{.*}}, 0x96;
// CHECK-DAG: lop3.b32 %[[CARRY:r[0-9]+]], %{{.*}}, 0xE8;
// CHECK: st.global{{.*}} %[[SUM]]
// CHECK: st.global{{.*}} %[[CARRY]]
// CHECK-COUNT-2: lop3.b32
// CHECK-NOT: lop3
// CHECK: ret;
func.func @adds(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>, %low: !tile.ptr<i32>, %high: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = tile.iota : tensor<32xi32>
  %a = tile.gather %x offsets %i : tensor<32xi32> : !tile.ptr<i32> -> tensor<32xi32>
  %b = tile.gather %y offsets %i : tensor<32xi32> : !tile.ptr<i32> -> tensor<32xi32>
  %c = tile.gather %low offsets %i : tensor<32xi32> : !tile.ptr<i32> -> tensor<32xi32>
  %d = tile.gather %high offsets %i : tensor<32xi32> : !tile.ptr<i32> -> tensor<32xi32>
  %w = arith.andi %a, %b : tensor<32xi32>
  %cw = arith.andi %c, %w : tensor<32xi32>
  %cd = arith.andi %c, %d : tensor<32xi32>
  %wd = arith.andi %w, %d : tensor<32xi32>
  %two = arith.ori %cw, %cd : tensor<32xi32>
  %carry = arith.ori %two, %wd : tensor<32xi32>
  %half = arith.xori %c, %w : tensor<32xi32>
  %sum = arith.xori %half, %d : tensor<32xi32>
  tile.scatter %sum, %low offsets %i : tensor<32xi32> : tensor<32xi32>, !tile.ptr<i32>
  tile.scatter %carry, %high offsets %i : tensor<32xi32> : tensor<32xi32>, !tile.ptr<i32>
  %part = arith.xori %a, %sum : tensor<32xi32>
  %all = arith.xori %part, %carry : tensor<32xi32>
  %kept = arith.andi %part, %carry : tensor<32xi32>
  %both = arith.andi %a, %sum : tensor<32xi32>
  %next = arith.xori %kept, %both : tensor<32xi32>
  %ab = arith.andi %a, %b : tensor<32xi32>
  %a_b = arith.ori %a, %b : tensor<32xi32>
  %some = arith.andi %a_b, %d : tensor<32xi32>
  %alone = arith.ori %ab, %some : tensor<32xi32>
  %behind = tile.iota from 32 : tensor<32xi32>
  tile.scatter %alone, %x offsets %behind : tensor<32xi32> : tensor<32xi32>, !tile.ptr<i32>
  tile.scatter %all, %x offsets %i : tensor<32xi32> : tensor<32xi32>, !tile.ptr<i32>
  tile.scatter %next, %y offsets %i : tensor<32xi32> : tensor<32xi32>, !tile.ptr<i32>
  return
}
