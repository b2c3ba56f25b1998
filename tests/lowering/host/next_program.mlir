// A program that goes over its row twice asks for the next program's row on the second way.
// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// CHECK-LABEL: define void @tile.centred
// CHECK: %[[ROWS:.+]] = mul i64 %{{.*}}, %{{.*}}
// CHECK: select i1 %{{.*}}, i64 %{{.*}}, i64 0
// CHECK: accumulate:
// CHECK-NOT: prefetch
// CHECK: done
// CHECK: call void @llvm.prefetch.p0(ptr %{{.*}}, i32 0, i32 2, i32 1)
// CHECK: store <{{[0-9]+}} x float>
func.func @centred(%X: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %W: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}, %Y: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %row = tile.program_id 0
  %x = tile.load %X[%row, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<1x1024xf32>
  %w = tile.load %W[%c0 : i32] : !tile.view<1 x f32> -> tensor<1024xf32>
  %sum = tile.reduce %x axis 1 : (tensor<1x1024xf32>) -> tensor<1x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  %all = tile.broadcast %sum : tensor<1x1xf32> -> tensor<1x1024xf32>
  %v = tile.reshape %w : tensor<1024xf32> -> tensor<1x1024xf32>
  %d = arith.subf %x, %all : tensor<1x1024xf32>
  %y = arith.mulf %d, %v : tensor<1x1024xf32>
  tile.store %y, %Y[%row, %c0 : i32, i32] : tensor<1x1024xf32>, !tile.view<2 x f32>
  return
}
