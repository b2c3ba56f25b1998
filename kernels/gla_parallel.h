// gla_parallel.h - gated linear attention in its parallel form: every row of o at once, O = (P o M) V with
// P_tu = scale sum_k q_tk k_uk e^{B_tk - B_uk}, B the sums of g from the first row. Work grows with L^2, nothing walks
// from chunk to chunk. Written as (q e^B) (k e^{-B})^T it overflows as soon as the gates of a sequence add up to -88
// (f32); here, from the results of gla_prepare_chunks, the decay between two chunks is a product of numbers <= 1.
#pragma once
#include "gla_forward.h"

namespace tile::kernels {

/// O [B, H, L, V] from Q_G, K_G, A, DECAY of gla_prepare_chunks; BK covers K. A program makes one chunk of rows and
/// goes back over the chunks before it. Grid {B * H * ceil(V / BV), chunks}.
template <class T>
void gla_parallel_program(const GlaChunkConfig& c, Tensor<const T, 4> Q_G, Tensor<const T, 4> K_G, Tensor<const T, 4> V,
                          Tensor<const T, 4> A, Tensor<const float, 3> DECAY, Tensor<T, 4> O) {
  num_warps(c.warps);
  auto v_blocks = cdiv(V.dim(3), c.BV);
  auto v0 = program_id(0) % v_blocks * c.BV, index = program_id(0) / v_blocks;
  auto batch = index / V.dim(1), head = index % V.dim(1);
  auto chunk = program_id(1), first_chunk = batch * cdiv(V.dim(2), c.BT);
  auto q = Q_G.load({batch, head, chunk * c.BT, 0}, {c.BT, c.BK});
  Tile o = zeros({c.BT, c.BV}, f32);
  Tile between = ones({1, c.BK}, f32);  // decay over the chunks between the two
  for (auto i : range(0, chunk, 1, {.stages = c.stages})) {
    auto other = chunk - 1 - i;
    auto k = cast(K_G.load({batch, head, other * c.BT, 0}, {c.BT, c.BK}), f32) * between;
    auto v = V.load({batch, head, other * c.BT, v0}, {c.BT, c.BV});
    auto scores = dot(q, trans(cast(k, dtype_of<T>())));
    o = dot(cast(scores, dtype_of<T>()), v, o);
    between *= DECAY.load({first_chunk + other, head, 0}, {c.BK}).row();
  }
  auto a = A.load({batch, head, chunk * c.BT, 0}, {c.BT, c.BT});
  auto v = V.load({batch, head, chunk * c.BT, v0}, {c.BT, c.BV});
  O.store({batch, head, chunk * c.BT, v0}, cast(dot(a, v, o), dtype_of<T>()));
}

template <class T>
const auto& gla_parallel_kernel() {
  static const auto k =
      kernel(typed_name("gla_parallel", dtype_of<T>()), gla_parallel_program<T>)
          .grid([](const GlaChunkConfig& c, const auto& q, const auto&, const auto& v, const auto&...) {
            return Grid{q.shape[0] * q.shape[1] * cdiv(v.shape[3], c.BV), cdiv(q.shape[2], c.BT)};
          });
  return k;
}

/// Tiles from a plan that prepares chunks first (gla_prepared_plan). Few channels make short steps, which need no
/// second stage.
inline GlaChunkConfig default_gla_parallel_config(const GlaPlan& plan) {
  GlaChunkConfig c = plan.output;
  c.segment = 0;
  if (c.BK <= 32) c.stages = 1;
  return c;
}

/// O of whole batches without states; the workspace is one of a gla_prepared_plan. The plan's output config gives the
/// tiles.
template <class T>
Status gla_parallel(StreamAt stream, const std::type_identity_t<GlaInputs<T>>& in, TensorView<T, 4> O,
                    const GlaChunkWorkspace<T>& w, const GlaPlan& p) {
  if (Status s = detail::check_gla_forward<T>(in, O, {}, w, p); !s) return stream.refuse(s.error());
  ShapeCheck check("gla_parallel");
  check.require(w.q_g.data, "needs chunks that are prepared first: a workspace of a gla_prepared_plan")
      .require(!in.cu_seqlens.data && !in.H0.data, "takes no packed sequences and no initial state")
      .require(p.output.BK >= in.Q.shape[3], "rows on chip hold all of K: BK = {} is less than K = {}", p.output.BK,
               in.Q.shape[3]);
  if (!check.ok()) return stream.refuse(check.error());
  if (Status s = detail::gla_prepare_launch<T>(stream, in, w, p.prepare); !s) return s;
  return gla_parallel_kernel<T>().try_call(stream, p.output, w.q_g, w.k_g, in.V, w.a, w.decay, O);
}

}  // namespace tile::kernels
