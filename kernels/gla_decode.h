// gla_decode.h - one token of gated linear attention: S = diag(e^g) S + k v^T, o = scale q^T S for every sequence of a
// batch. It moves 8 K V bytes of state for each head and little else; the state is the whole memory of the sequence, so
// generation needs no cache of keys and values.
#pragma once
#include "parts/online_softmax.h"
#include "parts/shapes.h"

namespace tile::kernels {

struct GlaDecodeConfig {
  int BK = 64, BV = 64;   ///< block of the state at a time, multiples of 16
  bool one_block = true;  ///< K <= BK
  int warps = 4;
};

/// Q, K are [B, H, K], V and O [B, H, V], G f32 [B, H, K]; S and S_NEXT [B, H, K, V] f32 may be the same memory.
/// Grid {ceil(V / BV), H, B}.
template <class T>
void gla_decode_program(const GlaDecodeConfig& c, Tensor<const T, 3> Q, Tensor<const T, 3> K, Tensor<const T, 3> V,
                        Tensor<const float, 3> G, Tensor<const float, 4> S, Tensor<float, 4> S_NEXT, Tensor<T, 3> O,
                        F32 scale) {
  num_warps(c.warps);
  // Registers for all of the state's loads in flight; left to itself the assembler takes fewer and 10 % more time.
  if (c.one_block) programs_per_multiprocessor(4);
  auto v0 = program_id(0) * c.BV, head = program_id(1), batch = program_id(2);
  auto v = cast(V.load({batch, head, v0}, {c.BV}), f32).row();
  Tile o = zeros({1, c.BV}, f32);
  auto step = [&](const Tile& k0) {
    auto state = S.load({batch, head, k0, v0}, {c.BK, c.BV});
    auto q = cast(Q.load({batch, head, k0}, {c.BK}), f32).col() * scale;
    auto k = cast(K.load({batch, head, k0}, {c.BK}), f32).col();
    auto decay = exp2(G.load({batch, head, k0}, {c.BK}) * kLog2E).col();
    auto next = fma(state, decay, k * v);
    S_NEXT.store({batch, head, k0, v0}, next);
    o += sum(q * next, axis(0));
  };
  if (c.one_block) {
    step(0);
  } else {
    for (auto k0 : range(0, Q.dim(2), c.BK)) step(k0);
  }
  O.store({batch, head, v0}, cast(reshape(o, {c.BV}), dtype_of<T>()));
}

template <class T>
const auto& gla_decode_kernel() {
  static const auto k =
      kernel(typed_name("gla_decode", dtype_of<T>()), gla_decode_program<T>)
          .grid([](const GlaDecodeConfig& c, const auto&, const auto&, const auto& v, const auto&...) {
            return Grid{cdiv(v.shape[2], c.BV), v.shape[1], v.shape[0]};
          });
  return k;
}

/// On GPUs 32 to 64 KB of state per program: enough loads in flight, and several programs beside each other. On hosts
/// whole rows, 16 KB of them at a time: they are stored, then summed out of the first cache.
inline GlaDecodeConfig default_gla_decode_config(int64_t k, int64_t v, const Machine& machine) {
  GlaDecodeConfig c;
  c.BK = std::min(128, round_up(k, 16)), c.BV = std::min(machine.gpu ? 64 : 128, round_up(v, 16));
  if (!machine.gpu) c.BK = std::min(c.BK, std::max(16, 4096 / c.BV / 16 * 16));
  c.one_block = c.BK >= k;
  c.warps = machine.gpu ? 4 : 1;
  return c;
}

/// One token of every sequence. S_NEXT may be S.
template <class T>
Status gla_decode(StreamAt stream, Input<T, 3> Q, Input<T, 3> K, Input<T, 3> V, TensorView<const float, 3> G,
                  TensorView<const float, 4> S, TensorView<float, 4> S_NEXT, TensorView<T, 3> O, float scale,
                  const GlaDecodeConfig& config) {
  auto [b, h, k] = Q.shape;
  int64_t v = V.shape[2];
  ShapeCheck check("gla_decode");
  check.shape("K", K, {b, h, k}, "[B, H, K]")
      .shape("G", G, {b, h, k}, "[B, H, K]")
      .shape("V", V, {b, h, -1}, "[B, H, V]")
      .shape("S", S, {b, h, k, v}, "[B, H, K, V]")
      .shape("S_NEXT", S_NEXT, {b, h, k, v}, "[B, H, K, V]")
      .shape("O", O, {b, h, v}, "[B, H, V]")
      .require(!config.one_block || config.BK >= k, "one_block needs BK >= K, found {} and {}", config.BK, k);
  if (!check.ok()) return stream.refuse(check.error());
  return gla_decode_kernel<T>().try_call(stream, config, Q, K, V, G, S, S_NEXT, O, scale);
}
template <class T>
Status gla_decode(StreamAt stream, Input<T, 3> Q, Input<T, 3> K, Input<T, 3> V, TensorView<const float, 3> G,
                  TensorView<const float, 4> S, TensorView<float, 4> S_NEXT, TensorView<T, 3> O, float scale) {
  return gla_decode<T>(stream, Q, K, V, G, S, S_NEXT, O, scale,
                       default_gla_decode_config(Q.shape[2], V.shape[2], Machine::of(stream)));
}

}  // namespace tile::kernels
