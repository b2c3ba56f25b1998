// Bytes that comparisons of bytes choose: the uppermost bit of each says which, copied into all of its byte; no byte is
// taken out of its word.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s

// CHECK-LABEL: .entry doubled(
// CHECK-COUNT-4: prmt.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, 0, 0xba98U;
// CHECK-NOT: prmt
// CHECK-NOT: setp
// CHECK: st.global.v4.b32
func.func @doubled(%x: !tile.ptr<i8> {tile.align = 16 : i32}, %y: !tile.ptr<i8> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<2048xi32>
  %half = arith.constant dense<-128> : tensor<2048xi8>
  %one = arith.constant dense<1> : tensor<2048xi8>
  %zero = arith.constant dense<0> : tensor<2048xi8>
  %fold = arith.constant dense<29> : tensor<2048xi8>
  %a = tile.gather %x offsets %i : tensor<2048xi32> : !tile.ptr<i8> -> tensor<2048xi8>
  %large = arith.cmpi uge, %a, %half : tensor<2048xi8>
  %add = arith.select %large, %fold, %zero : tensor<2048xi1>, tensor<2048xi8>
  %twice = arith.shli %a, %one : tensor<2048xi8>
  %r = arith.xori %twice, %add : tensor<2048xi8>
  tile.scatter %r, %y offsets %i : tensor<2048xi32> : tensor<2048xi8>, !tile.ptr<i8>
  return
}
