// gla_layer.h - the gated linear attention layer (Yang et al. 2024, section 4.4) composed from kernels of this library:
//   q = x Wq, k = x Wk, v = x Wv                            four products of x [rows, D]
//   g = log sigmoid((x W1) W2) / 16                         gates through a low rank: D -> R -> H K
//   o = gated linear attention of every head                gla_forward
//   y = (rms norm of o per head * w) * silu(x Wr)           one kernel
//   out = y Wo
// rows = B L in the layout [B, L, H, D] of projections: heads are views, nothing is transposed.
#pragma once
#include "gemm.h"
#include "gla_forward.h"

namespace tile::kernels {

/// Sizes of a layer. Its published form: width D, K = D / 2 / H, V = D / H, rank 16.
struct GlaLayerSizes {
  int64_t batch = 1, length = 1, width = 1024, heads = 4, k = 128, v = 256, rank = 16;
  int64_t rows() const { return batch * length; }
};

struct GlaOutputGateConfig {
  int ROWS = 4, BV = 64;  ///< rows (of all heads) per program; BV covers V
  int warps = 4;
};

/// Y = O rstd * W * silu(R) per row: O, R, Y are [rows, V], rows of all heads; rstd = 1 / sqrt(mean(O^2) + eps).
/// Grid {ceil(rows / ROWS)}.
template <class T>
void gla_output_gate_program(const GlaOutputGateConfig& c, Tensor<const T, 2> O, Tensor<const T, 2> R,
                             Tensor<const T, 1> W, Tensor<T, 2> Y, F32 eps) {
  num_warps(c.warps);
  auto row = program_id(0) * c.ROWS;
  auto o = cast(O.load({row, 0}, {c.ROWS, c.BV}), f32), r = cast(R.load({row, 0}, {c.ROWS, c.BV}), f32);
  auto rstd = rsqrt(sum(o * o, axis(1)) / cast(O.dim(1), f32) + eps);
  auto w = cast(W.load({0}, {c.BV}), f32).row();
  Y.store({row, 0}, cast(o * rstd * w * silu(r), dtype_of<T>()));
}

template <class T>
const auto& gla_output_gate_kernel() {
  static const auto k = kernel(typed_name("gla_output_gate", dtype_of<T>()), gla_output_gate_program<T>)
                            .grid([](const GlaOutputGateConfig& c, const auto& o, const auto&...) {
                              return Grid{cdiv(o.shape[0], c.ROWS)};
                            });
  return k;
}

inline GlaOutputGateConfig default_gla_output_gate_config(int64_t v, const Machine& machine) {
  GlaOutputGateConfig c;
  c.BV = machine.gpu ? std::max(32, power_of_two_above(v)) : round_up(v, 16);
  c.ROWS = std::max(1, 2048 / c.BV), c.warps = machine.gpu ? 4 : 1;
  return c;
}

/// Y = rms norm(O) * W * silu(R), eps as in the published layer.
template <class T>
Status gla_output_gate(StreamAt stream, Input<T, 2> O, Input<T, 2> R, Input<T, 1> W, TensorView<T, 2> Y, float eps,
                       const GlaOutputGateConfig& config) {
  ShapeCheck check("gla_output_gate");
  check.shape("R", R, {O.shape[0], O.shape[1]}, "that of O")
      .shape("W", W, {O.shape[1]}, "[V]")
      .shape("Y", Y, {O.shape[0], O.shape[1]}, "that of O")
      .require(config.BV >= O.shape[1], "a program holds whole rows: BV = {} is less than V = {}", config.BV,
               O.shape[1]);
  if (!check.ok()) return stream.refuse(check.error());
  return gla_output_gate_kernel<T>().try_call(stream, config, O, R, W, Y, eps);
}

namespace detail {
/// log sigmoid(x) / 16 without overflow on either side; the normaliser keeps decays close to 1.
struct LogSigmoidGate {
  Tile operator()(const Tile& x) const {
    auto small = exp2(-abs(x) * kLog2E);
    return (min(x, 0.f) - log2(small + 1.f) * kLn2) * (1.f / 16);
  }
};
template <class T>
const auto& gla_gate_gemm() {
  static const auto k = make_gemm_kernel<T, float>("gemm_log_sigmoid", LogSigmoidGate{});
  return k;
}
}  // namespace detail

/// Weights of a layer.
template <class T>
struct GlaLayerWeights {
  TensorView<const T, 2> Wq, Wk;  ///< [D, H K]
  TensorView<const T, 2> Wv, Wr;  ///< [D, H V]
  TensorView<const T, 2> W1;      ///< [D, R]
  TensorView<const T, 2> W2;      ///< [R, H K]
  TensorView<const T, 1> norm;    ///< [V]
  TensorView<const T, 2> Wo;      ///< [H V, D]
};

/// Everything between x and the output.
template <class T>
struct GlaLayerWorkspace {
  TensorView<T, 2> q, k;   ///< [rows, H K]
  TensorView<T, 2> v, r;   ///< [rows, H V]
  TensorView<T, 2> low;    ///< [rows, R]
  TensorView<float, 2> g;  ///< [rows, H K]
  TensorView<T, 2> o, y;   ///< [rows, H V]
  GlaPlan plan;
  GlaChunkWorkspace<T> chunks;

  static Result<GlaLayerWorkspace> create(const std::shared_ptr<Device>& device, const GlaLayerSizes& s) {
    GlaLayerWorkspace w;
    GlaSizes sizes{s.batch, s.heads, s.length, s.k, s.v, s.batch, s.length};
    w.plan = gla_plan(dtype_of<T>(), sizes, Machine::of(device->properties()));
    Result<GlaChunkWorkspace<T>> made = GlaChunkWorkspace<T>::create(device, sizes, w.plan);
    if (!made) return made.error();
    w.chunks = std::move(*made);
    int64_t keys = s.heads * s.k, values = s.heads * s.v, n = s.rows();
    auto& c = w.chunks;
    if (c.take(device, w.q, {n, keys}) && c.take(device, w.k, {n, keys}) && c.take(device, w.v, {n, values}) &&
        c.take(device, w.r, {n, values}) && c.take(device, w.low, {n, s.rank}) && c.take(device, w.g, {n, keys}) &&
        c.take(device, w.o, {n, values}) && c.take(device, w.y, {n, values}))
      return w;
    return *c.error();
  }
};

namespace detail {
/// Rows of a projection [B L, H C] as [B, H, L, C].
template <class T>
TensorView<T, 4> heads_of(const TensorView<T, 2>& rows, const GlaLayerSizes& s, int64_t channels) {
  int64_t step = s.heads * channels;
  return TensorView<T, 4>(rows.data, {s.batch, s.heads, s.length, channels}, {s.length * step, channels, step, 1});
}
/// D = epilogue(A B) with the default tiles.
template <class K, class TIn, class TOut>
Status project(const K& k, StreamAt stream, TensorView<const TIn, 2> A, TensorView<const TIn, 2> B,
               TensorView<TOut, 2> D) {
  GemmConfig c = default_gemm_config(dtype_of<TIn>(), false, D.shape[0], D.shape[1], Machine::of(stream),
                                     /*along_k=*/false, A.shape[1]);
  return run_gemm(k, stream, A, B, TensorView<const TOut, 2>(D), D, 1.f, 0.f, c);
}
}  // namespace detail

/// OUT [rows, D] from X [rows, D].
template <class T>
Status gla_layer(StreamAt stream, const GlaLayerSizes& s, Input<T, 2> X, const GlaLayerWeights<T>& w,
                 TensorView<T, 2> OUT, const GlaLayerWorkspace<T>& space) {
  const int64_t keys = s.heads * s.k, values = s.heads * s.v;
  ShapeCheck check("gla_layer");
  check.shape("X", X, {s.rows(), s.width}, "[B L, D]")
      .shape("Wq", w.Wq, {s.width, keys}, "[D, H K]")
      .shape("Wk", w.Wk, {s.width, keys}, "[D, H K]")
      .shape("Wv", w.Wv, {s.width, values}, "[D, H V]")
      .shape("Wr", w.Wr, {s.width, values}, "[D, H V]")
      .shape("W1", w.W1, {s.width, s.rank}, "[D, R]")
      .shape("W2", w.W2, {s.rank, keys}, "[R, H K]")
      .shape("norm", w.norm, {s.v}, "[V]")
      .shape("Wo", w.Wo, {values, s.width}, "[H V, D]")
      .shape("OUT", OUT, {s.rows(), s.width}, "[B L, D]")
      .shape("workspace.q", space.q, {s.rows(), keys}, "[B L, H K]");
  if (!check.ok()) return stream.refuse(check.error());
  const auto& plain = gemm_kernel<T, T>();
  Status done = Ok{};
  auto then = [&](auto&& step) {
    if (done) done = step();
  };
  using In = TensorView<const T, 2>;
  auto project = [&](const In& from, const In& weights, const TensorView<T, 2>& to) {
    then([&] { return detail::project(plain, stream, from, weights, to); });
  };
  project(X, w.Wq, space.q);
  project(X, w.Wk, space.k);
  project(X, w.Wv, space.v);
  project(X, w.Wr, space.r);
  project(X, w.W1, space.low);
  then([&] { return detail::project(detail::gla_gate_gemm<T>(), stream, In(space.low), w.W2, space.g); });
  then([&] {
    GlaInputs<T> in{detail::heads_of(space.q, s, s.k), detail::heads_of(space.k, s, s.k),
                    detail::heads_of(space.v, s, s.v), detail::heads_of(space.g, s, s.k),
                    1.f / std::sqrt(static_cast<float>(s.k))};
    return gla_forward<T>(stream, in, detail::heads_of(space.o, s, s.v), {}, space.chunks, space.plan);
  });
  then([&] {
    auto per_head = [&](const TensorView<T, 2>& t) { return TensorView<T, 2>(t.data, {s.rows() * s.heads, s.v}); };
    return gla_output_gate<T>(stream, per_head(space.o), per_head(space.r), w.norm, per_head(space.y), 1e-5f,
                              default_gla_output_gate_config(s.v, Machine::of(stream)));
  });
  project(In(space.y), w.Wo, OUT);
  return done;
}

}  // namespace tile::kernels
