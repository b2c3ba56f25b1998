// Every type and kind of atomic assembles; what the hardware has is one predicated instruction, ordered as asked;
// additions whose old values nobody reads are reductions.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: tilec compile %s -t sm_80 -e ptx | FileCheck %s --check-prefixes=CHECK,SM80
// RUN: tilec compile %s -t sm_80,sm_90a -e json | FileCheck %s --check-prefix=RES
// REQUIRES: ptxas

// RES-COUNT-2: "spill_store_bytes": 0

// CHECK-LABEL: .entry atomics(
// CHECK: red.relaxed.gpu.global.add.f32
// CHECK: bar.sync
// CHECK: atom.release.sys.global.add.u32
// CHECK: atom.acquire.cta.global.max.s32
// CHECK: bar.sync
// CHECK: atom.relaxed.gpu.global.max.s32
// CHECK: atom.relaxed.gpu.global.min.u32
// CHECK: red.relaxed.gpu.global.add.noftz.f16
// SM90: red.relaxed.gpu.global.add.noftz.bf16
// SM80: cas.b
// CHECK: cas.b
// CHECK: cas.b
// CHECK: atom.relaxed.gpu.global.exch.b64
// CHECK: atom.acq_rel.gpu.global.cas.b32
func.func @atomics(%f: !tile.ptr<f32>, %i: !tile.ptr<i32>, %h: !tile.ptr<f16>, %b: !tile.ptr<bf16>, %c: !tile.ptr<i8>, %l: !tile.ptr<i64>, %fx: f32)
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %at = tile.iota : tensor<128xi32>
  %fv = tile.splat %fx : f32 -> tensor<128xf32>
  %r0 = tile.atomic_rmw add relaxed gpu %f offsets %at : tensor<128xi32>, %fv : !tile.ptr<f32>, tensor<128xf32> -> tensor<128xf32>
  %r1 = tile.atomic_rmw add release sys %i offsets %at : tensor<128xi32>, %at : !tile.ptr<i32>, tensor<128xi32> -> tensor<128xi32>
  %r2 = tile.atomic_rmw max acquire cta %i offsets %at : tensor<128xi32>, %at : !tile.ptr<i32>, tensor<128xi32> -> tensor<128xi32>
  %r3 = tile.atomic_rmw max relaxed gpu %f offsets %at : tensor<128xi32>, %fv : !tile.ptr<f32>, tensor<128xf32> -> tensor<128xf32>
  %hv = arith.truncf %fv : tensor<128xf32> to tensor<128xf16>
  %r4 = tile.atomic_rmw add relaxed gpu %h offsets %at : tensor<128xi32>, %hv : !tile.ptr<f16>, tensor<128xf16> -> tensor<128xf16>
  %bv = arith.truncf %fv : tensor<128xf32> to tensor<128xbf16>
  %r5 = tile.atomic_rmw add relaxed gpu %b offsets %at : tensor<128xi32>, %bv : !tile.ptr<bf16>, tensor<128xbf16> -> tensor<128xbf16>
  %r6 = tile.atomic_rmw max relaxed gpu %h offsets %at : tensor<128xi32>, %hv : !tile.ptr<f16>, tensor<128xf16> -> tensor<128xf16>
  %cv = arith.trunci %at : tensor<128xi32> to tensor<128xi8>
  %r7 = tile.atomic_rmw add acq_rel gpu %c offsets %at : tensor<128xi32>, %cv : !tile.ptr<i8>, tensor<128xi8> -> tensor<128xi8>
  %lv = arith.extsi %at : tensor<128xi32> to tensor<128xi64>
  %r8 = tile.atomic_rmw exchange relaxed gpu %l offsets %at : tensor<128xi32>, %lv : !tile.ptr<i64>, tensor<128xi64> -> tensor<128xi64>
  %r9 = tile.atomic_cas acq_rel gpu %i offsets %at : tensor<128xi32>, %at, %r1 : !tile.ptr<i32>, tensor<128xi32>, tensor<128xi32> -> tensor<128xi32>
  %s = arith.addi %r9, %r2 : tensor<128xi32>
  tile.scatter %s, %i offsets %at : tensor<128xi32> : tensor<128xi32>, !tile.ptr<i32>
  return
}
