// Short rows at places that are looked up (strings of a dictionary): each warp looks up those of the rows that it reads
// and writes, which are consecutive, and hands them to its lanes itself, four at a time. Long rows are worth more than
// their places: every warp has all of these. Places that are reduced as well stay as they are loaded.
// RUN: split-file %s %t
// RUN: tilec compile %t/short.mlir -t sm_90a -e mlir:gpu | FileCheck %s
// RUN: tilec compile %t/short.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=PTX
// RUN: tilec compile %t/long.mlir -t sm_90a -e mlir:gpu | FileCheck %s --check-prefix=LONG
// RUN: tilec compile %t/reduced.mlir -t sm_90a -e mlir:gpu | FileCheck %s --check-prefix=REDUCED

// CHECK-NOT: tile.barrier
// CHECK: tile.gather {{.*}} -> tensor<64xi32, #tile.layout<64 regs [] lanes [0:16*1, rep:2] warps [0:4*16]>>
// CHECK: tile.gather {{.*}} -> tensor<64xi32, #tile.layout<64 regs [] lanes [0:16*1, rep:2] warps [0:4*16]>>
// CHECK: tile.gather {{.*}} -> tensor<64xi32, #tile.layout<64 regs [] lanes [0:16*1, rep:2] warps [0:4*16]>>
// CHECK: tile.gather {{.*}} -> tensor<64x32xi8, #tile.layout<64x32 regs [0:16*1] lanes [1:32*1] warps [0:4*16]>>
// CHECK-NOT: tile.barrier
// CHECK: return
// PTX-NOT: bar.sync
// PTX: ld.shared.v4
// PTX-NOT: bar.sync
// PTX: ret;
// LONG: tile.gather {{.*}} -> tensor<64xi32, #tile.layout<64 regs [0:2*1] lanes [0:32*2] warps [rep:4]>>
// REDUCED: tile.gather {{.*}} -> tensor<64xi32, #tile.layout<64 regs [] lanes [0:32*1] warps [0:2*32, rep:2]>>

//--- short.mlir
func.func @short(%codes: !tile.ptr<i32>, %starts: !tile.ptr<i32>, %bytes: !tile.ptr<i8>, %places: !tile.ptr<i32>, %out: !tile.ptr<i8>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<64xi32>
  %b = tile.iota : tensor<32xi32>
  %code = tile.gather %codes offsets %i : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
  %from = tile.gather %starts offsets %code : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
  %to = tile.gather %places offsets %i : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
  %row = tile.reshape %b : tensor<32xi32> -> tensor<1x32xi32>
  %columns = tile.broadcast %row : tensor<1x32xi32> -> tensor<64x32xi32>
  %fromColumn = tile.reshape %from : tensor<64xi32> -> tensor<64x1xi32>
  %fromRows = tile.broadcast %fromColumn : tensor<64x1xi32> -> tensor<64x32xi32>
  %toColumn = tile.reshape %to : tensor<64xi32> -> tensor<64x1xi32>
  %toRows = tile.broadcast %toColumn : tensor<64x1xi32> -> tensor<64x32xi32>
  %at = arith.addi %fromRows, %columns : tensor<64x32xi32>
  %into = arith.addi %toRows, %columns : tensor<64x32xi32>
  %x = tile.gather %bytes offsets %at : tensor<64x32xi32> : !tile.ptr<i8> -> tensor<64x32xi8>
  tile.scatter %x, %out offsets %into : tensor<64x32xi32> : tensor<64x32xi8>, !tile.ptr<i8>
  return
}

//--- long.mlir
func.func @long(%codes: !tile.ptr<i32>, %starts: !tile.ptr<i32>, %bytes: !tile.ptr<i32>, %out: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<64xi32>
  %b = tile.iota : tensor<64xi32>
  %code = tile.gather %codes offsets %i : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
  %from = tile.gather %starts offsets %code : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
  %row = tile.reshape %b : tensor<64xi32> -> tensor<1x64xi32>
  %columns = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
  %fromColumn = tile.reshape %from : tensor<64xi32> -> tensor<64x1xi32>
  %fromRows = tile.broadcast %fromColumn : tensor<64x1xi32> -> tensor<64x64xi32>
  %at = arith.addi %fromRows, %columns : tensor<64x64xi32>
  %x = tile.gather %bytes offsets %at : tensor<64x64xi32> : !tile.ptr<i32> -> tensor<64x64xi32>
  tile.scatter %x, %out offsets %at : tensor<64x64xi32> : tensor<64x64xi32>, !tile.ptr<i32>
  return
}

//--- reduced.mlir
func.func @reduced(%codes: !tile.ptr<i32>, %starts: !tile.ptr<i32>, %bytes: !tile.ptr<i8>, %places: !tile.ptr<i32>, %out: !tile.ptr<i8>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<64xi32>
  %b = tile.iota : tensor<32xi32>
  %code = tile.gather %codes offsets %i : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
  %from = tile.gather %starts offsets %code : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
  %to = tile.gather %places offsets %i : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
  %most = tile.reduce %from axis 0 : (tensor<64xi32>) -> tensor<1xi32> {
  ^bb0(%p: i32, %q: i32):
    %r = arith.maxsi %p, %q : i32
    tile.yield %r : i32
  }
  %last = tile.item %most : tensor<1xi32> -> i32
  tile.scatter %last, %places : i32, !tile.ptr<i32>
  %row = tile.reshape %b : tensor<32xi32> -> tensor<1x32xi32>
  %columns = tile.broadcast %row : tensor<1x32xi32> -> tensor<64x32xi32>
  %fromColumn = tile.reshape %from : tensor<64xi32> -> tensor<64x1xi32>
  %fromRows = tile.broadcast %fromColumn : tensor<64x1xi32> -> tensor<64x32xi32>
  %toColumn = tile.reshape %to : tensor<64xi32> -> tensor<64x1xi32>
  %toRows = tile.broadcast %toColumn : tensor<64x1xi32> -> tensor<64x32xi32>
  %at = arith.addi %fromRows, %columns : tensor<64x32xi32>
  %into = arith.addi %toRows, %columns : tensor<64x32xi32>
  %x = tile.gather %bytes offsets %at : tensor<64x32xi32> : !tile.ptr<i8> -> tensor<64x32xi8>
  tile.scatter %x, %out offsets %into : tensor<64x32xi32> : tensor<64x32xi8>, !tile.ptr<i8>
  return
}
