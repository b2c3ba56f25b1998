// Nothing promised about the size: bytes are taken out of their word behind the join, so that the next load need not wait.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s

// CHECK-LABEL: .entry bytes(
// CHECK: {{^[[:space:]]+}}ld.global.b32
// CHECK-NOT: {{shr|prmt|cvt.u16}}
// CHECK: bra.uni
// CHECK: @%p{{[0-9]+}} ld.global.b8
// CHECK-NOT: cvt.u32
// CHECK: $L__BB
// CHECK: shr
func.func @bytes(%x: !tile.view<1xi8> {tile.align = 16 : i32, tile.unit_stride = 0 : i32},
                 %y: !tile.view<1xi8> {tile.align = 16 : i32, tile.unit_stride = 0 : i32},
                 %z: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c512 = arith.constant 512 : i32
  %pid = tile.program_id 0
  %o = arith.muli %pid, %c512 : i32
  %a = tile.load %x[%o : i32] : !tile.view<1xi8> -> tensor<512xi8>
  %b = tile.load %y[%o : i32] : !tile.view<1xi8> -> tensor<512xi8>
  %wa = arith.extui %a : tensor<512xi8> to tensor<512xi32>
  %wb = arith.extui %b : tensor<512xi8> to tensor<512xi32>
  %s = arith.addi %wa, %wb : tensor<512xi32>
  tile.store %s, %z[%o : i32] : tensor<512xi32>, !tile.view<1xi32>
  return
}
