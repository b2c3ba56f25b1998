// linear_attention.h - causal linear attention with a feature map (Katharopoulos et al. 2020), in chunks with the state
// on chip:
//   S_t = S_{t-1} + phi(k_t) v_t^T,  z_t = z_{t-1} + phi(k_t)
//   o_t = phi(q_t)^T S_t / phi(q_t)^T z_t   with the normaliser,   o_t = scale phi(q_t)^T S_t   without
// q, k are [B, H, L, K], v and o are [B, H, L, V]; f16, bf16, f32. Where the normaliser is 0, o is 0.
#pragma once
#include "parts/online_softmax.h"
#include "parts/shapes.h"

namespace tile::kernels {

enum class FeatureMap : int { identity, elu_plus_one, relu, exp };

struct LinearAttentionConfig {
  int BT = 64;           ///< rows of a chunk
  int BK = 64, BV = 64;  ///< BK covers K
  FeatureMap map = FeatureMap::identity;
  bool normalize = false;
  bool initial_state = false, final_state = false;
  int stages = 2;
  int warps = 4;
};

namespace detail {
inline Tile feature(FeatureMap map, const Tile& x) {
  switch (map) {
    case FeatureMap::elu_plus_one:
      return where(x > 0.f, x + 1.f, exp2(min(x, 0.f) * kLog2E));
    case FeatureMap::relu:
      return max(x, 0.f);
    case FeatureMap::exp:
      return exp2(x * kLog2E);
    default:
      return x;
  }
}
}  // namespace detail

/// S0, ST are [B, H, K, V] f32 and Z0, ZT [B, H, K] f32: sums before the first and after the last row (any valid views
/// where the config does not use them; Z only with the normaliser). Grid {ceil(V / BV), H, B}.
template <class T>
void linear_attention_program(const LinearAttentionConfig& c, Tensor<const T, 4> Q, Tensor<const T, 4> K,
                              Tensor<const T, 4> V, Tensor<T, 4> O, Tensor<const float, 4> S0,
                              Tensor<const float, 3> Z0, Tensor<float, 4> ST, Tensor<float, 3> ZT, F32 scale) {
  num_warps(c.warps);
  auto v0 = program_id(0) * c.BV, head = program_id(1), batch = program_id(2), length = Q.dim(2);
  Tile state = c.initial_state ? S0.load({batch, head, 0, v0}, {c.BK, c.BV}) : zeros({c.BK, c.BV}, f32);
  Tile z = c.initial_state && c.normalize ? Z0.load({batch, head, 0}, {c.BK}) : zeros({c.BK}, f32);
  auto t = arange(0, c.BT).col(), u = arange(0, c.BT).row();
  // Rows and channels past the end read as 0, which most maps turn into something.
  auto phi = [&](const Tile& x, const Tile& t0, const Tile& channels) {
    auto mapped = detail::feature(c.map, cast(x, f32));
    if (c.map != FeatureMap::identity && c.map != FeatureMap::relu)
      mapped = where((t0 + t < length) & (arange(0, c.BK).row() < channels), mapped, 0.f);
    return cast(mapped, dtype_of<T>());
  };
  for (auto t0 : range(0, length, c.BT, {.stages = c.stages})) {
    auto q = phi(Q.load({batch, head, t0, 0}, {c.BT, c.BK}), t0, Q.dim(3));
    auto k = phi(K.load({batch, head, t0, 0}, {c.BT, c.BK}), t0, Q.dim(3));
    auto v = V.load({batch, head, t0, v0}, {c.BT, c.BV});
    auto before = cast(state, dtype_of<T>());
    state = dot(trans(k), v, state);  // in flight beside the products of this chunk's output
    auto scores = where(u <= t, dot(q, trans(k)), 0.f);
    Tile o = dot(cast(scores, dtype_of<T>()), v, dot(q, before));
    if (c.normalize) {
      auto weight = sum(cast(q, f32) * z.row(), axis(1)) + sum(scores, axis(1));
      o *= where(weight == 0.f, 0.f, 1.f / weight);
      z += reshape(sum(cast(k, f32), axis(0)), {c.BK});
    } else {
      o *= scale;
    }
    O.store({batch, head, t0, v0}, cast(o, dtype_of<T>()));
  }
  if (c.final_state) {
    ST.store({batch, head, 0, v0}, state);
    if (c.normalize) {
      for (auto _ : when(v0 == 0)) ZT.store({batch, head, 0}, z);
    }
  }
}

template <class T>
const auto& linear_attention_kernel() {
  static const auto k =
      kernel(typed_name("linear_attention", dtype_of<T>()), linear_attention_program<T>)
          .grid([](const LinearAttentionConfig& c, const auto&, const auto&, const auto& v, const auto&...) {
            return Grid{cdiv(v.shape[3], c.BV), v.shape[1], v.shape[0]};
          });
  return k;
}

inline LinearAttentionConfig default_linear_attention_config(DType dtype, int64_t k, int64_t v,
                                                             const Machine& machine) {
  LinearAttentionConfig c;
  c.BT = machine.gpu ? (dtype == DType::f32 ? 32 : 64) : 16;
  c.BK = machine.gpu && k > 32 ? round_up(k, 64) : round_up(k, 16);
  c.BV = std::min(!machine.gpu ? 128 : dtype == DType::f32 ? 32 : 64, round_up(v, 16));
  // Products of single warps keep more in registers than those of a warpgroup.
  c.warps = !machine.gpu ? 1 : machine.warpgroups && dtype != DType::f32 ? 4 : 8, c.stages = machine.gpu ? 2 : 1;
  if (c.BK > 128 && machine.short_of_shared()) {
    c.BV = std::min(c.BV, 32);
    if (dtype == DType::f32) c.BT = 16, c.warps = 4;
  }
  return c;
}

/// S0, Z0 are read with config.initial_state, ST, ZT written with config.final_state.
template <class T>
Status linear_attention(StreamAt stream, Input<T, 4> Q, Input<T, 4> K, Input<T, 4> V, TensorView<T, 4> O,
                        TensorView<const float, 4> S0, TensorView<const float, 3> Z0, TensorView<float, 4> ST,
                        TensorView<float, 3> ZT, float scale, const LinearAttentionConfig& config) {
  auto [b, h, l, k] = Q.shape;
  int64_t v = V.shape[3];
  ShapeCheck check("linear_attention");
  check.shape("K", K, {b, h, l, k}, "[B, H, L, K]")
      .shape("V", V, {b, h, l, -1}, "[B, H, L, V]")
      .shape("O", O, {b, h, l, v}, "[B, H, L, V]")
      .require(config.BK >= k, "the state holds all of K: BK = {} is less than K = {}", config.BK, k);
  if (config.initial_state) check.shape("S0", S0, {b, h, k, v}, "[B, H, K, V]");
  if (config.final_state) check.shape("ST", ST, {b, h, k, v}, "[B, H, K, V]");
  if (config.initial_state && config.normalize) check.shape("Z0", Z0, {b, h, k}, "[B, H, K]");
  if (config.final_state && config.normalize) check.shape("ZT", ZT, {b, h, k}, "[B, H, K]");
  if (!check.ok()) return stream.refuse(check.error());
  using detail::or_unused;
  return linear_attention_kernel<T>().try_call(stream, config, Q, K, V, O, or_unused(S0, O.data), or_unused(Z0, O.data),
                                               or_unused(ST, O.data), or_unused(ZT, O.data), scale);
}

}  // namespace tile::kernels
