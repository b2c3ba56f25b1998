// attention_tiled_v1.h - attention forward as first published (Dao et al. 2022, FlashAttention, Algorithm 1): blocks of
// keys outside, blocks of queries inside, and O, l, m in memory, divided and multiplied again at every step. Slow; kept
// to compare with attention.h, which turned the loops around.
#pragma once
#include "parts/online_softmax.h"
#include "parts/shapes.h"

namespace tile::kernels {

struct AttentionV1Config {
  int BR = 64, BC = 64;  ///< queries and keys per block
  int D = 64, DV = 64;   ///< tile widths: head dims rounded up to a multiple of 16
  bool causal = false;   ///< query i sees key j where j <= i + Sk - Sq
  int warps = 4;
};

/// The inner loop for block `block` of keys. Q [B, H, Sq, D], K [B, H, Sk, D], V [B, H, Sk, Dv]; O [B, H, Sq, Dv], L
/// and M [B, H, Sq], all f32: output, sums and maxima over the keys so far. Scores are masked but no block is skipped.
/// Grid {1, H, B}, one launch for each block of keys: what one wrote, the next one reads.
template <class T>
void attention_v1_program(const AttentionV1Config& c, Tensor<const T, 4> Q, Tensor<const T, 4> K, Tensor<const T, 4> V,
                          Tensor<float, 4> O, Tensor<float, 3> L, Tensor<float, 3> M, F32 scale, I32 block) {
  num_warps(c.warps);
  auto head = program_id(1), batch = program_id(2);
  auto sq = Q.dim(2), sk = K.dim(2), n0 = block * c.BC;
  auto first = block == 0;
  auto k = K.load({batch, head, n0, 0}, {c.BC, c.D});
  auto v = V.load({batch, head, n0, 0}, {c.BC, c.DV});
  for (auto m0 : range(0, sq, c.BR)) {
    auto q = Q.load({batch, head, m0, 0}, {c.BR, c.D});
    auto o = where(first, 0.f, O.load({batch, head, m0, 0}, {c.BR, c.DV}));
    auto l = where(first, 0.f, L.load({batch, head, m0}, {c.BR}).col());
    auto m = where(first, -INFINITY, M.load({batch, head, m0}, {c.BR}).col());

    auto s = dot(q, trans(k)) * scale;
    auto column = n0 + arange(0, c.BC).row();
    auto visible = broadcast_to(column < sk, {c.BR, c.BC});
    if (c.causal) visible = visible & (column <= m0 + (sk - sq) + arange(0, c.BR).col());
    s = where(visible, s, -INFINITY);
    auto finite = [](const Tile& x) { return where(x == -INFINITY, 0.f, x); };  // -inf - -inf is NaN
    auto m_block = max(s, axis(1));
    auto p = exp2((s - finite(m_block)) * kLog2E);
    auto l_block = sum(p, axis(1));
    auto m_new = max(m, m_block);
    auto old_factor = exp2((m - finite(m_new)) * kLog2E), block_factor = exp2((m_block - finite(m_new)) * kLog2E);
    auto l_new = old_factor * l + block_factor * l_block;
    auto sum_o = l * old_factor * o + block_factor * dot(cast(p, dtype_of<T>()), v);

    O.store({batch, head, m0, 0}, sum_o * where(l_new == 0.f, 0.f, 1.f / l_new));
    L.store({batch, head, m0}, reshape(l_new, {c.BR}));
    M.store({batch, head, m0}, reshape(m_new, {c.BR}));
  }
}

template <class T>
const auto& attention_v1_kernel() {
  static const auto k = kernel(typed_name("attention_v1", dtype_of<T>()), attention_v1_program<T>)
                            .grid([](const AttentionV1Config&, const auto& q, const auto&...) {
                              return Grid{1, q.shape[1], q.shape[0]};
                            });
  return k;
}

/// The paper's blocks for `elements` values of fast memory: BC = ceil(M / 4 d), BR = min(BC, d), as multiples of 16.
inline AttentionV1Config attention_v1_config(int64_t elements, int64_t d, int64_t dv, bool causal,
                                             const Machine& machine) {
  AttentionV1Config c;
  c.D = round_up(d, 16), c.DV = round_up(dv, 16), c.causal = causal;
  auto multiple = [](int64_t n) { return static_cast<int>(std::max<int64_t>(n / 16 * 16, 16)); };
  c.BC = std::min(multiple(cdiv<int64_t>(elements, 4 * std::max(d, dv))), 128);
  c.BR = std::min(c.BC, multiple(d));
  c.warps = machine.gpu ? 4 : 1;
  return c;
}

/// Q [B, H, Sq, D], K [B, H, Sk, D], V [B, H, Sk, Dv], O [B, H, Sq, Dv], L, M [B, H, Sq]; LSE would be M + ln L. f16,
/// bf16 and f32.
template <class T>
Status attention_v1(StreamAt stream, Input<T, 4> Q, Input<T, 4> K, Input<T, 4> V, TensorView<float, 4> O,
                    TensorView<float, 3> L, TensorView<float, 3> M, float scale, const AttentionV1Config& config) {
  const int64_t b = Q.shape[0], h = Q.shape[1], sq = Q.shape[2], d = Q.shape[3], sk = K.shape[2], dv = V.shape[3];
  ShapeCheck check("attention_v1");
  check.shape("K", K, {b, h, -1, d}, "[B, H, Sk, D]")
      .shape("V", V, {b, h, sk, -1}, "[B, H, Sk, Dv]")
      .shape("O", O, {b, h, sq, dv}, "[B, H, Sq, Dv]")
      .shape("L", L, {b, h, sq}, "[B, H, Sq]")
      .shape("M", M, {b, h, sq}, "[B, H, Sq]")
      .require(config.D >= d && config.DV >= dv, "config.D = {}, DV = {} must cover head dims {} and {}", config.D,
               config.DV, d, dv);
  if (!check.ok()) return stream.refuse(check.error());
  // Without keys, too, the outputs are to be written.
  for (int block = 0; block < std::max<int64_t>(cdiv<int64_t>(sk, config.BC), 1); ++block)
    if (Status s = attention_v1_kernel<T>().try_call(stream, config, Q, K, V, O, L, M, scale, block); !s) return s;
  return Ok{};
}

}  // namespace tile::kernels
