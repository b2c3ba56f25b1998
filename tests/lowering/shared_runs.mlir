// Elements that are neighbours in shared memory go in one access, whatever registers of the thread hold them: here the
// last of five bits of a register's number says which of two neighbours it is, as in tiles made by joining two.
// RUN: tile-opt %s -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx --tile-target=sm_90a -o /dev/null | FileCheck %s

#joined = #tile.layout<32x128 regs [1:16*2, 1:2*1] lanes [1:4*32, 0:8*1] warps [0:4*8]>

// CHECK-LABEL: .entry joined(
// CHECK-NOT: st.shared.b8
// CHECK-COUNT-2: st.shared.v4.b32
// CHECK-NOT: st.shared
// CHECK: bar.sync
// CHECK-NOT: ld.shared.b8
// CHECK-COUNT-2: ld.shared.v4.b32
// CHECK-NOT: ld.shared
// CHECK: ret;
func.func @joined(%x: !tile.ptr<i8>, %y: !tile.ptr<i8>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %k = tile.iota : tensor<4096xi32, #tile.layout<4096 regs [0:16*2, 0:2*1] lanes [0:4*32, 0:8*128] warps [0:4*1024]>>
  %v = tile.gather %x offsets %k : tensor<4096xi32, #tile.layout<4096 regs [0:16*2, 0:2*1] lanes [0:4*32, 0:8*128] warps [0:4*1024]>> : !tile.ptr<i8> -> tensor<4096xi8, #tile.layout<4096 regs [0:16*2, 0:2*1] lanes [0:4*32, 0:8*128] warps [0:4*1024]>>
  %t = tile.reshape %v : tensor<4096xi8, #tile.layout<4096 regs [0:16*2, 0:2*1] lanes [0:4*32, 0:8*128] warps [0:4*1024]>> -> tensor<32x128xi8, #joined>
  %s = tile.smem_alloc : !tile.smem<32x128xi8, minor = 1>
  tile.smem_store %t, %s : tensor<32x128xi8, #joined>, !tile.smem<32x128xi8, minor = 1>
  %r = tile.smem_load %s : !tile.smem<32x128xi8, minor = 1> -> tensor<32x128xi8, #joined>
  %b = tile.reshape %r : tensor<32x128xi8, #joined> -> tensor<4096xi8, #tile.layout<4096 regs [0:16*2, 0:2*1] lanes [0:4*32, 0:8*128] warps [0:4*1024]>>
  tile.scatter %b, %y offsets %k : tensor<4096xi32, #tile.layout<4096 regs [0:16*2, 0:2*1] lanes [0:4*32, 0:8*128] warps [0:4*1024]>> : tensor<4096xi8, #tile.layout<4096 regs [0:16*2, 0:2*1] lanes [0:4*32, 0:8*128] warps [0:4*1024]>>, !tile.ptr<i8>
  return
}
