// RUN: tilec compile %s --target host:x86-64 --emit llvm | FileCheck %s --check-prefix=HOST
// RUN: tilec compile %s --target sm_80 --ptxas none --emit llvm | FileCheck %s --check-prefix=GPU

// A step that comes with the launch: the host reports one that is not positive and ends the program, a GPU makes no
// iteration of it; no pass divides by it.
// HOST-LABEL: define void @tile.k
// HOST: %[[OK:.*]] = icmp sgt i32 %{{.*}}, 0
// HOST: asserted:
// HOST: for:
// GPU-LABEL: define ptx_kernel void @k(
// GPU: %[[OK:.*]] = icmp sgt i32 %2, 0
// GPU-DAG: select i1 %[[OK]], i32 %2, i32 1073741824
// GPU-DAG: select i1 %[[OK]], i32 %1, i32 0
// GPU: for:
func.func @k(%p: !tile.ptr<i32>, %n: i32, %step: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  scf.for %i = %c0 to %n step %step : i32 {
    %at = tile.ptr_add %p, %i : !tile.ptr<i32>, i32
    tile.scatter %i, %at : i32, !tile.ptr<i32>
  }
  return
}
