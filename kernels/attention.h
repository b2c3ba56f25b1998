// attention.h - attention forward without materialising scores: O = softmax(scale Q K^T) V (Dao 2023,
// FlashAttention-2).
#pragma once
#include "kernels/parts/online_softmax.h"
#include "kernels/parts/shapes.h"

namespace tile::kernels {

struct AttentionConfig {
  int BM = 128, BN = 64;  ///< query rows per program, key rows per step
  int D = 64, DV = 64;    ///< tile widths: head dims rounded up to a multiple of 16, columns past the end read as 0
  bool causal = false;    ///< query i sees key j where j <= i + Sk - Sq (bottom right)
  bool positive_scale = true;  ///< scale > 0, known at launch: it folds into the exponent's multiply-add
  bool tf32 = false;           ///< f32 only
  int stages = 2;
  int warps = 4;
};

/// Q is [B, Hq, Sq, D], K is [B, Hkv, Sk, D], V is [B, Hkv, Sk, Dv], O is [B, Hq, Sq, Dv], LSE is [B, Hq, Sq] f32, any
/// strides; Hq is a multiple of Hkv and query head h reads key head h / (Hq / Hkv). LSE = ln sum_j e^{scale q.k_j}. A
/// query that sees no key gives O = 0 and LSE = -inf. Grid {ceil(Sq / BM), Hq, B}.
///
/// O stays unscaled in the loop, one division at the end. Blocks of keys that every query of the tile sees whole run
/// without a mask; the loop is split where the diagonal (or the ragged end) begins.
template <class T>
void attention_program(const AttentionConfig& c, Tensor<const T, 4> Q, Tensor<const T, 4> K, Tensor<const T, 4> V,
                       Tensor<T, 4> O, Tensor<float, 3> LSE, F32 scale) {
  num_warps(c.warps);
  const Prec precision = c.tf32 ? Prec::tf32 : Prec::ieee;
  auto sq = Q.dim(2), sk = K.dim(2);
  auto head = program_id(1), batch = program_id(2);
  auto kv_head = head / (Q.dim(1) / K.dim(1));
  // Causal: the last tiles have the most keys. Starting with them leaves short ones to fill the end of the launch.
  auto m0 = (c.causal ? cdiv(sq, c.BM) - 1 - program_id(0) : Tile(program_id(0))) * c.BM;
  auto offset = sk - sq;  // query i sees keys up to i + offset

  auto q = Q.load({batch, head, m0, 0}, {c.BM, c.D});
  Tile acc = zeros({c.BM, c.DV}, f32);
  OnlineSoftmax softmax(c.BM);
  auto exponent_scale = scale * kLog2E;
  auto unit = c.positive_scale ? Tile(exponent_scale) : Tile(1.f);

  auto step = [&](const Tile& n0, bool masked) {
    auto k = K.load({batch, kv_head, n0, 0}, {c.BN, c.D});
    Tile s = dot(q, trans(k), zeros({c.BM, c.BN}, f32), precision);
    if (!c.positive_scale) s *= exponent_scale;  // the maximum must be that of the scaled scores
    if (masked) {
      auto column = n0 + arange(0, c.BN).row();
      auto visible = column < sk;
      if (c.causal) visible = visible & (column <= m0 + offset + arange(0, c.BM).col());
      s = where(visible, s, -INFINITY);
    }
    Tile rescale;
    auto p = softmax.update(s, unit, rescale, masked);
    acc *= rescale;
    auto v = V.load({batch, kv_head, n0, 0}, {c.BN, c.DV});
    acc = dot(cast(p, dtype_of<T>()), v, acc, precision);
  };

  // Keys [0, whole) are seen by every query of the tile, [whole, end) by some.
  auto end = c.causal ? max(min(m0 + c.BM + offset, sk), 0) : sk;
  auto whole = (c.causal ? max(min(m0 + offset + 1, sk), 0) : sk) / c.BN * c.BN;
  for (auto n0 : range(0, whole, c.BN, {.stages = c.stages})) step(n0, false);
  for (auto n0 : range(whole, end, c.BN, {.stages = c.stages})) step(n0, true);

  // d is 0 only where no key was visible; NaN (from NaN inputs) must survive, hence == and not >.
  auto empty = softmax.d == 0.f;
  O.store({batch, head, m0, 0}, cast(acc * where(empty, 0.f, 1.f / softmax.d), dtype_of<T>()));
  auto lse = where(empty, -INFINITY, fma(softmax.m, unit, log2(softmax.d)) * kLn2);
  LSE.store({batch, head, m0}, reshape(lse, {c.BM}));
}

template <class T>
const auto& attention_kernel() {
  static const auto k = kernel(typed_name("attention_forward", dtype_of<T>()), attention_program<T>)
                            .grid([](const AttentionConfig& c, const auto& q, const auto&...) {
                              return Grid{cdiv(q.shape[2], c.BM), q.shape[1], q.shape[0]};
                            });
  return k;
}

/// Tiles for heads of d (and dv for V) channels and sq queries. Budget on a GPU: BM * (DV + BN) f32 accumulators.
inline AttentionConfig default_attention_config(DType dtype, int64_t sq, int64_t d, int64_t dv, bool causal,
                                                float scale, const Machine& machine) {
  AttentionConfig c;
  c.D = round_up(d, 16), c.DV = round_up(dv, 16);
  c.causal = causal, c.positive_scale = scale > 0;
  int widest = std::max(c.D, c.DV);
  if (!machine.gpu) {
    c.BM = 64, c.BN = 64, c.stages = 1, c.warps = 1;
  } else if (dtype == DType::f32) {
    c.BM = widest <= 128 ? 64 : 32, c.BN = 32, c.warps = widest <= 128 ? 8 : 4;
  } else if (widest > 128) {
    // One program per multiprocessor either way; with room for it, 8 warps hide each other's latency better than 4.
    int64_t bytes = static_cast<int64_t>(size_of(dtype)) * (128 * c.D + c.stages * c.BN * (c.D + c.DV)) + 2048;
    bool wide = sq > 64 && bytes <= static_cast<int64_t>(machine.shared_bytes);
    c.BM = wide ? 128 : 64, c.BN = 64, c.warps = wide ? 8 : 4;
  }
  c.BM = std::min(c.BM, std::max(16, power_of_two_above(sq)));
  return c;
}

/// Q [B, Hq, Sq, D], K [B, Hkv, Sk, D], V [B, Hkv, Sk, Dv], O [B, Hq, Sq, Dv], LSE [B, Hq, Sq]; dtypes f16, bf16, f32.
template <class T>
Status attention_forward(Stream& stream, Input<T, 4> Q, Input<T, 4> K, Input<T, 4> V, TensorView<T, 4> O,
                         TensorView<float, 3> LSE, float scale, const AttentionConfig& config) {
  int64_t b = Q.shape[0], hq = Q.shape[1], sq = Q.shape[2], d = Q.shape[3], hkv = K.shape[1], sk = K.shape[2],
          dv = V.shape[3];
  ShapeCheck check("attention_forward");
  check.shape("K", K, {b, -1, -1, d}, "[B, Hkv, Sk, D]")
      .shape("V", V, {b, hkv, sk, -1}, "[B, Hkv, Sk, Dv]")
      .shape("O", O, {b, hq, sq, dv}, "[B, Hq, Sq, Dv]")
      .shape("LSE", LSE, {b, hq, sq}, "[B, Hq, Sq]")
      .require(hkv > 0 && hq % hkv == 0, "the {} query heads must be a multiple of the {} key heads", hq, hkv)
      .require(config.D >= d && config.DV >= dv, "config.D = {}, DV = {} must cover head dims {} and {}", config.D,
               config.DV, d, dv)
      .require(config.positive_scale == (scale > 0), "config.positive_scale is {} but scale is {}",
               config.positive_scale, scale);
  if (!check.ok()) return check.error();
  return attention_kernel<T>().try_call(stream, config, Q, K, V, O, LSE, scale);
}
template <class T>
Status attention_forward(Stream& stream, Input<T, 4> Q, Input<T, 4> K, Input<T, 4> V, TensorView<T, 4> O,
                         TensorView<float, 3> LSE, float scale, bool causal) {
  return attention_forward<T>(
      stream, Q, K, V, O, LSE, scale,
      default_attention_config(dtype_of<T>(), Q.shape[2], Q.shape[3], V.shape[3], causal, scale, Machine::of(stream)));
}

}  // namespace tile::kernels
