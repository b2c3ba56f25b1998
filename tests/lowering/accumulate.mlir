// Additions to boxes of views: as wide as the machine and the alignment allow, none of them waits for a result.
// RUN: tilec compile %s --target=sm_90a --emit=ptx | FileCheck %s --check-prefixes=ALL,SM90 --implicit-check-not=atom. --implicit-check-not=bar.sync
// RUN: tilec compile %s --target=sm_80 --emit=ptx | FileCheck %s --check-prefixes=ALL,SM80 --implicit-check-not=bar.sync

// SM90-COUNT-2: red.relaxed.gpu.global.add.v4.f32
// SM90-COUNT-2: red.relaxed.gpu.global.add.noftz.v2.f16x2
// SM90-COUNT-2: red.relaxed.gpu.global.add.noftz.v2.bf16x2
// SM80-COUNT-8: red.relaxed.gpu.global.add.f32
// SM80-COUNT-4: red.relaxed.gpu.global.add.noftz.f16x2
// Older machines have no instruction for bf16.
// SM80-COUNT-8: atom.relaxed.gpu.global.cas.b32
// ALL-COUNT-8: red.relaxed.gpu.global.add.u32
func.func @accumulate(%f: !tile.ptr<f32> {tile.align = 16 : i32}, %h: !tile.ptr<f16> {tile.align = 16 : i32}, %b: !tile.ptr<bf16> {tile.align = 16 : i32},
                      %i: !tile.ptr<i32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %n = arith.constant 32 : i64
  %one = arith.constant 1 : i64
  %fv = tile.make_view %f, dims(%n, %n), strides(%n, %one) : !tile.ptr<f32> -> !tile.view<2xf32>
  %hv = tile.make_view %h, dims(%n, %n), strides(%n, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
  %bv = tile.make_view %b, dims(%n, %n), strides(%n, %one) : !tile.ptr<bf16> -> !tile.view<2xbf16>
  %iv = tile.make_view %i, dims(%n, %n), strides(%n, %one) : !tile.ptr<i32> -> !tile.view<2xi32>
  %x = tile.load %fv[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<32x32xf32>
  tile.accumulate %x, %fv[%c0, %c0 : i32, i32] : tensor<32x32xf32>, !tile.view<2xf32>
  %y = arith.truncf %x : tensor<32x32xf32> to tensor<32x32xf16>
  tile.accumulate %y, %hv[%c0, %c0 : i32, i32] : tensor<32x32xf16>, !tile.view<2xf16>
  %z = arith.truncf %x : tensor<32x32xf32> to tensor<32x32xbf16>
  tile.accumulate %z, %bv[%c0, %c0 : i32, i32] : tensor<32x32xbf16>, !tile.view<2xbf16>
  %w = arith.fptosi %x : tensor<32x32xf32> to tensor<32x32xi32>
  tile.accumulate %w, %iv[%c0, %c0 : i32, i32] : tensor<32x32xi32>, !tile.view<2xi32>
  return
}
