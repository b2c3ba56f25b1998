// Words that several rows share: the rows of one word are in one thread, which asks for it once, all its columns at a
// time.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse | FileCheck %s
// RUN: tile-opt %s -split-input-file -mlir-disable-threading --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s --check-prefix=PTX

// CHECK-LABEL: func.func @packed
// CHECK: tile.gather {{.*}} -> tensor<64x128xi32, #tile.layout<64x128 regs [1:4*1, 0:8*1] lanes [1:32*4] warps [0:8*8]>>
// PTX: .entry packed
// PTX-COUNT-1: ld.global{{.*}}v4.b32
// PTX-NOT: ld.global
// PTX: ret;
func.func @packed(%w: !tile.ptr<i32> {tile.align = 16 : i32}, %out: !tile.view<2xi32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %m: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %pitch = arith.constant dense<128> : tensor<64x128xi32>
  %eights = arith.constant dense<8> : tensor<64xi32>
  %fours = arith.constant dense<4> : tensor<64xi32>
  %low = arith.constant dense<15> : tensor<64x128xi32>
  %rows = tile.iota : tensor<64xi32>
  %limit = tile.splat %m : i32 -> tensor<64xi32>
  %in = arith.cmpi slt, %rows, %limit : tensor<64xi32>
  %inColumn = tile.reshape %in : tensor<64xi1> -> tensor<64x1xi1>
  %mask = tile.broadcast %inColumn : tensor<64x1xi1> -> tensor<64x128xi1>
  %within = arith.remsi %rows, %eights : tensor<64xi32>
  %by = arith.muli %within, %fours : tensor<64xi32>
  %byColumn = tile.reshape %by : tensor<64xi32> -> tensor<64x1xi32>
  %shift = tile.broadcast %byColumn : tensor<64x1xi32> -> tensor<64x128xi32>
  %word = arith.divsi %rows, %eights : tensor<64xi32>
  %column = tile.reshape %word : tensor<64xi32> -> tensor<64x1xi32>
  %down = tile.broadcast %column : tensor<64x1xi32> -> tensor<64x128xi32>
  %lines = arith.muli %down, %pitch : tensor<64x128xi32>
  %columns = tile.iota : tensor<128xi32>
  %row = tile.reshape %columns : tensor<128xi32> -> tensor<1x128xi32>
  %across = tile.broadcast %row : tensor<1x128xi32> -> tensor<64x128xi32>
  %offsets = arith.addi %lines, %across : tensor<64x128xi32>
  %words = tile.gather %w offsets %offsets : tensor<64x128xi32> mask %mask : tensor<64x128xi1> : !tile.ptr<i32> -> tensor<64x128xi32>
  %moved = arith.shrsi %words, %shift : tensor<64x128xi32>
  %cut = arith.andi %moved, %low : tensor<64x128xi32>
  tile.store %cut, %out[%c0, %c0 : i32, i32] : tensor<64x128xi32>, !tile.view<2xi32>
  return
}
