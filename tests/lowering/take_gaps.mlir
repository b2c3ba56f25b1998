// Threads that write runs of neighbours 512 bytes apart meet in four banks: a gap of 16 bytes behind every 512 keeps the
// vectors, and the banks apart.
// RUN: tile-opt %s --tile-target=sm_90a -tile-place-buffers -tile-insert-barriers | FileCheck %s
// RUN: tile-opt %s --tile-target=sm_90a -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s --check-prefix=PTX

#far = #tile.layout<16x2x32 regs [2:4*1, 2:2*16] lanes [0:8*2, 2:4*4] warps [1:2*1, 0:2*1]>
#near = #tile.layout<16x1x32 regs [2:4*1] lanes [2:8*4, 0:4*1] warps [0:4*4]>
// CHECK-LABEL: func.func @runs
// CHECK: tile.take {{.*}}tile.scratch_gaps = array<i64: 16, 512>
// PTX-LABEL: .entry runs(
// PTX-COUNT-2: st.shared.v4
// PTX-NOT: {{(st|ld)}}.shared.b32
// PTX: ld.shared.v4
// PTX-NOT: {{(st|ld)}}.shared.b32
// PTX: ret;
func.func @runs(%x: !tile.view<3xf32>, %y: !tile.view<3xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %second = arith.constant dense<1> : tensor<16x1x32xi32, #near>
  %a = tile.load %x[%c0, %c0, %c0 : i32, i32, i32] : !tile.view<3xf32> -> tensor<16x2x32xf32, #far>
  %b = tile.take %a, %second axis 1 : tensor<16x2x32xf32, #far>, tensor<16x1x32xi32, #near> -> tensor<16x1x32xf32, #near>
  tile.store %b, %y[%c0, %c0, %c0 : i32, i32, i32] : tensor<16x1x32xf32, #near>, !tile.view<3xf32>
  return
}
