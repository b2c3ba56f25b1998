// attention_backward.h - dQ, dK and dV of attention (the programs are in parts/attention_gradient.h): a fast variant,
// in which dQ is summed in memory by atomic additions, and one that gives the same bits every time.
#pragma once
#include "attention.h"
#include "parts/attention_gradient.h"

namespace tile::kernels {

template <class T>
const auto& attention_backward_prepare_kernel() {
  static const auto k =
      kernel(typed_name("attention_backward_prepare", dtype_of<T>()), attention_backward_prepare_program<T>)
          .grid([](const AttentionConfig& c, const auto& o, const auto&...) {
            return Grid{cdiv(o.shape[2], c.BM), o.shape[1], o.shape[0]};
          });
  return k;
}
template <class T>
const auto& attention_backward_convert_kernel() {
  static const auto k =
      kernel(typed_name("attention_backward_convert", dtype_of<T>()), [](const AttentionConfig& c,
                                                                         Tensor<const float, 4> DQ_SUM, Tensor<T, 4> DQ,
                                                                         F32 scale, I32 max_sq,
                                                                         Tensor<const int32_t, 1> cu_q) {
        attention_backward_convert_program<T>(c, DQ_SUM, DQ, scale, cu_q);
      }).grid([](const AttentionConfig& c, const auto&, const auto& dq, float, int max_sq, const auto& cu_q) {
        return attention_grid(c, dq.shape, c.varlen ? cu_q.shape[0] - 1 : dq.shape[0], max_sq);
      });
  return k;
}

/// The two main kernels of a backward pass, with the callables that forward ran with. A score_mod needs its derivative:
/// a callable of the same arguments that gives d(score_mod)/dt at t. Keep the object: it holds the compiled code.
template <class T, class TBias, class ScoreMod, class ScoreGradient, class MaskMod>
struct AttentionBackwardKernels {
  using Keys = Kernel<AttentionConfig, Tensor<const T, 4>, Tensor<const T, 4>, Tensor<const T, 4>, Tensor<const T, 4>,
                      Tensor<const float, 3>, Tensor<const float, 3>, Tensor<T, 4>, Tensor<T, 4>, Tensor<float, 4>, F32,
                      F32, I32, I32, I32, Tensor<const float, 2>, Tensor<const TBias, 4>, Tensor<const int32_t, 1>,
                      Tensor<const int32_t, 1>, F32, U64, U64, I32>;
  using Queries =
      Kernel<AttentionConfig, Tensor<const T, 4>, Tensor<const T, 4>, Tensor<const T, 4>, Tensor<const T, 4>,
             Tensor<const float, 3>, Tensor<const float, 3>, Tensor<T, 4>, F32, F32, I32, I32, I32,
             Tensor<const float, 2>, Tensor<const TBias, 4>, Tensor<const int32_t, 1>, Tensor<const int32_t, 1>, F32,
             U64, U64, I32>;
  Keys keys;
  Queries queries;
};

template <class T, class TBias = float, class ScoreMod = NoScoreMod, class ScoreGradient = NoScoreGradient,
          class MaskMod = NoMaskMod>
AttentionBackwardKernels<T, TBias, ScoreMod, ScoreGradient, MaskMod> make_attention_backward_kernels(
    const std::string& name, ScoreMod score_mod = {}, ScoreGradient score_gradient = {}, MaskMod mask_mod = {}) {
  static_assert(kGiven<ScoreMod, NoScoreMod> == kGiven<ScoreGradient, NoScoreGradient>,
                "a score_mod and its derivative come together");
  return {kernel(typed_name((name + "_keys").c_str(), dtype_of<T>()),
                 [=](const AttentionConfig& c, Tensor<const T, 4> Q, Tensor<const T, 4> K, Tensor<const T, 4> V,
                     Tensor<const T, 4> DO, Tensor<const float, 3> ROW, Tensor<const float, 3> DELTA, Tensor<T, 4> DK,
                     Tensor<T, 4> DV, Tensor<float, 4> DQ_SUM, F32 scale, F32 softcap, I32 left, I32 right, I32 max_sk,
                     Tensor<const float, 2> slopes, Tensor<const TBias, 4> bias, Tensor<const int32_t, 1> cu_q,
                     Tensor<const int32_t, 1> cu_k, F32 p_drop, U64 seed, U64 offset, I32 together) {
                   attention_backward_keys_program<T, TBias>(c, score_mod, score_gradient, mask_mod, Q, K, V, DO, ROW,
                                                             DELTA, DK, DV, DQ_SUM, scale, softcap, left, right, slopes,
                                                             bias, cu_q, cu_k, p_drop, seed, offset, together);
                 })
              .grid([](const AttentionConfig& c, const auto&, const auto& k, const auto&, const auto&, const auto&,
                       const auto&, const auto&, const auto&, const auto&, float, float, int, int, int max_sk,
                       const auto&, const auto&, const auto&, const auto& cu_k, const auto&...) {
                return Grid{cdiv<int64_t>(c.varlen ? max_sk : k.shape[2], c.BN), k.shape[1],
                            c.varlen ? cu_k.shape[0] - 1 : k.shape[0]};
              }),
          kernel(typed_name((name + "_queries").c_str(), dtype_of<T>()),
                 [=](const AttentionConfig& c, Tensor<const T, 4> Q, Tensor<const T, 4> K, Tensor<const T, 4> V,
                     Tensor<const T, 4> DO, Tensor<const float, 3> ROW, Tensor<const float, 3> DELTA, Tensor<T, 4> DQ,
                     F32 scale, F32 softcap, I32 left, I32 right, I32 max_sq, Tensor<const float, 2> slopes,
                     Tensor<const TBias, 4> bias, Tensor<const int32_t, 1> cu_q, Tensor<const int32_t, 1> cu_k,
                     F32 p_drop, U64 seed, U64 offset, I32 together) {
                   attention_backward_queries_program<T, TBias>(c, score_mod, score_gradient, mask_mod, Q, K, V, DO,
                                                                ROW, DELTA, DQ, scale, softcap, left, right, slopes,
                                                                bias, cu_q, cu_k, p_drop, seed, offset, together);
                 })
              .grid([](const AttentionConfig& c, const auto& q, const auto&, const auto&, const auto&, const auto&,
                       const auto&, const auto&, float, float, int, int, int max_sq, const auto&, const auto&,
                       const auto& cu_q, const auto&...) {
                return attention_grid(c, q.shape, c.varlen ? cu_q.shape[0] - 1 : q.shape[0], max_sq);
              })};
}
template <class T, class TBias = float>
const auto& attention_backward_kernels() {
  static const auto k = make_attention_backward_kernels<T, TBias>("attention_backward");
  return k;
}

struct AttentionBackwardConfig {
  AttentionConfig keys;     ///< of the program for blocks of keys; with `accumulate` the only main one
  AttentionConfig queries;  ///< of the program for blocks of queries; its BM and warps are also those of the small ones

  /// Of the small programs.
  AttentionConfig small() const {
    AttentionConfig c;
    c.BM = queries.BM, c.D = queries.D, c.DV = queries.DV, c.warps = queries.warps;
    c.accumulate = keys.accumulate, c.varlen = queries.varlen;
    return c;
  }
};

/// Scores are scale q.k and hidden at most right of the diagonal: nothing else takes registers.
inline bool attention_is_plain(const AttentionConfig& c) {
  return c.positive_scale && !c.left && !c.right && !c.softcap && !c.alibi && !c.bias && !c.varlen && !c.dropout;
}

namespace detail {
inline AttentionBackwardConfig attention_backward_config_by_size(DType dtype, int64_t sq, int64_t sk, int64_t d,
                                                                 int64_t dv, bool plain, bool deterministic,
                                                                 const Machine& machine) {
  AttentionBackwardConfig c;
  AttentionConfig &keys = c.keys, &queries = c.queries;
  keys.D = queries.D = round_up(d, 16), keys.DV = queries.DV = round_up(dv, 16);
  keys.accumulate = !deterministic;
  const int widest = std::max(keys.D, keys.DV);
  auto tiles = [](AttentionConfig& a, int bm, int bn, int warps, int stages) {
    a.BM = bm, a.BN = bn, a.warps = warps, a.stages = stages;
  };
  if (!machine.gpu) {
    tiles(keys, 64, 64, 1, 1), tiles(queries, 64, 64, 1, 1);
  } else if (dtype == DType::f32) {
    tiles(keys, 32, 32, widest <= 64 ? 4 : 8, 1), tiles(queries, 32, 32, widest <= 64 ? 4 : 8, 1);
  } else if (machine.warpgroups && widest <= 128) {
    // f32 values of one of 256 threads: keys (BN (D + DV) + 2 BM BN) / 256 and a part of dQ, queries (BM D + 2 BM BN) /
    // 256. One loop, which the compiler splits, leaves ptxas more registers than three. What scores need beside their
    // products takes half the queries. Of 64 queries the two warpgroups divide the columns of dQ, which need be whole
    // pieces of 16 (4x16x4096, D = 80: 2.07 ms as 96, 2.52 as it is, 2.82 with 32 queries).
    if (widest > 64) keys.D = round_up(keys.D, 32), keys.DV = round_up(keys.DV, 32);
    const int bm = widest <= 64 ? 128 : 64;
    tiles(keys, plain ? bm : std::min(64, std::max(32, bm / 2)), 128, 8, 2), tiles(queries, 128, 64, 8, 2);
    keys.split = queries.split = false;
    return c;
  } else {
    const int wide_keys = machine.short_of_shared() ? 32 : 64;
    tiles(keys, widest <= 128 ? 64 : 32, widest <= 64 ? 128 : widest <= 128 ? 64 : wide_keys, 8, widest <= 128 ? 2 : 1);
    tiles(queries, widest <= 128 ? 128 : 64, widest <= 128 ? 64 : 32, 8, widest <= 128 ? 2 : 1);
  }
  keys.BN = std::min(keys.BN, std::max(16, power_of_two_above(sk)));
  for (AttentionConfig* a : {&keys, &queries}) a->BM = std::min(a->BM, std::max(16, power_of_two_above(sq)));
  return c;
}
}  // namespace detail

/// What tuned tiles are kept by: table "attention_backward" holds the keys' config of the fast variant,
/// "attention_backward_queries" the queries' one of the deterministic variant.
inline TuningKey attention_backward_tuning_key(DType dtype, int64_t sq, int64_t d, int64_t dv, bool causal) {
  return attention_tuning_key(dtype, sq, d, dv, causal);
}

/// `plain`: attention_is_plain holds. `deterministic`: dQ by a kernel of its own, seven products for each pair of
/// blocks instead of five. Tuned tiles where there are some for this machine, else by size.
inline AttentionBackwardConfig default_attention_backward_config(DType dtype, int64_t sq, int64_t sk, int64_t d,
                                                                 int64_t dv, bool causal, bool plain,
                                                                 bool deterministic, const Machine& machine) {
  AttentionBackwardConfig c =
      detail::attention_backward_config_by_size(dtype, sq, sk, d, dv, plain, deterministic, machine);
  const TuningKey key = attention_backward_tuning_key(dtype, sq, d, dv, causal);
  const bool accumulate = c.keys.accumulate;
  c.keys = tuned("attention_backward", machine.model, key, c.keys);
  c.queries = tuned("attention_backward_queries", machine.model, key, c.queries);
  c.keys.accumulate = accumulate;
  c.keys.dealt = c.queries.dealt = causal && machine.warpgroups && dtype != DType::f32;
  return c;
}

/// `c` with tiles of the keys' program that leave registers for dropout's generator.
inline AttentionBackwardConfig fit_dropout(AttentionBackwardConfig c, DType dtype, const Machine& machine) {
  const int widest = std::max(c.keys.D, c.keys.DV);
  if (!machine.gpu || dtype == DType::f32 || widest > 128) return c;
  if (machine.warpgroups) {
    // As many scores as the accumulators leave room for: the rest of an iteration costs the same for fewer.
    c.keys.BM = 64, c.keys.BN = widest <= 64 || widest == 128 ? 128 : 64;
    return c;
  }
  c.keys.BM = std::min(c.keys.BM, 32);
  c.keys.BN = std::min(c.keys.BN, widest <= 64 ? 128 : 64);
  return c;
}

/// Tiles worth measuring for the keys' program or the queries' one.
inline std::vector<AttentionConfig> attention_backward_space(const AttentionConfig& base, bool of_keys, DType dtype,
                                                             const Machine& machine) {
  Space<AttentionConfig> space(base);
  if (!machine.gpu) return space.vary(&AttentionConfig::BM, {32, 64}).vary(&AttentionConfig::BN, {32, 64});
  const auto bytes = static_cast<int64_t>(size_of(dtype));
  if (of_keys)
    space.vary(&AttentionConfig::BM, {32, 48, 64, 96, 128}).vary(&AttentionConfig::BN, {64, 128});
  else
    space.vary(&AttentionConfig::BM, {64, 128}).vary(&AttentionConfig::BN, {32, 48, 64, 80, 96, 128});
  return space.vary(&AttentionConfig::split, {false, true})
      .vary(&AttentionConfig::stages, {1, 2, 3})
      .where([=, &machine](const AttentionConfig& c) {
        const int held = of_keys ? c.BN * (c.D + c.DV) : c.BM * c.D, threads = 32 * c.warps;
        const int64_t fixed = static_cast<int64_t>(of_keys ? c.BN : c.BM) * (c.D + c.DV),
                      staged = static_cast<int64_t>(of_keys ? c.BM : c.BN) * (c.D + c.DV) * c.stages;
        return (held + 2 * c.BM * c.BN) / threads <= 224 &&
               bytes * (fixed + staged + c.BM * c.BN) <= static_cast<int64_t>(machine.shared_bytes);
      });
}

/// Floats of scratch memory a backward pass needs: proportional to the number of queries.
inline int64_t attention_backward_workspace(int64_t b, int64_t hq, int64_t sq, int64_t d, bool deterministic) {
  return b * hq * sq * (2 + (deterministic ? 0 : d));
}

namespace detail {
/// The scratch memory of a backward pass, as attention_backward_prepare leaves it.
struct AttentionScratch {
  TensorView<float, 3> row, delta;
  TensorView<float, 4> sums;  ///< of dQ; without elements where they are not needed
};

/// Checks what a backward pass has beside Q, K and V and lays out its scratch memory.
template <class T, class TBias>
AttentionScratch check_gradients(ShapeCheck& check, const AttentionProblem<TBias>& p,
                                 const TensorView<const T, 4>& O, const TensorView<const T, 4>& DO,
                                 const TensorView<const float, 3>& LSE, const TensorView<T, 4>& DQ,
                                 const TensorView<T, 4>& DK, const TensorView<T, 4>& DV,
                                 const TensorView<float, 1>& workspace, bool deterministic) {
  const int64_t wanted = attention_backward_workspace(p.b, p.hq, p.sq, p.d, deterministic), rows = p.b * p.hq * p.sq;
  check.shape("O", O, {p.b, p.hq, p.sq, p.dv}, "[B, Hq, Sq, Dv]")
      .shape("dO", DO, {p.b, p.hq, p.sq, p.dv}, "[B, Hq, Sq, Dv]")
      .shape("LSE", LSE, {p.b, p.hq, p.sq}, "[B, Hq, Sq]")
      .shape("dQ", DQ, {p.b, p.hq, p.sq, p.d}, "[B, Hq, Sq, D]")
      .shape("dK", DK, {p.b, p.hkv, p.sk, p.d}, "[B, Hkv, Sk, D]")
      .shape("dV", DV, {p.b, p.hkv, p.sk, p.dv}, "[B, Hkv, Sk, Dv]")
      .require(workspace.shape[0] >= wanted && (workspace.shape[0] <= 1 || workspace.strides[0] == 1),
               "the workspace must be dense and have {} floats (attention_backward_workspace), found {}", wanted,
               workspace.shape[0]);
  return {{workspace.data, {p.b, p.hq, p.sq}},
          {workspace.data + rows, {p.b, p.hq, p.sq}},
          deterministic ? TensorView<float, 4>(workspace.data, {0, 0, 0, 0})
                        : TensorView<float, 4>(workspace.data + 2 * rows, {p.b, p.hq, p.sq, p.d})};
}
}  // namespace detail

/// Launches `kernels` (from make_attention_backward_kernels) after checking shapes: Q, dQ [B, Hq, Sq, D], K, dK [B,
/// Hkv, Sk, D], V, dV [B, Hkv, Sk, Dv], O, dO [B, Hq, Sq, Dv], LSE [B, Hq, Sq] as forward gave it, any strides. Which
/// variant runs is config.keys.accumulate. The options are those of the forward pass (factors of f8 excepted).
template <class Kernels, class T, class TBias>
Status run_attention_backward(const Kernels& kernels, StreamAt stream, Input<T, 4> Q, Input<T, 4> K, Input<T, 4> V,
                              Input<T, 4> O, Input<T, 4> DO, TensorView<const float, 3> LSE, TensorView<T, 4> DQ,
                              TensorView<T, 4> DK, TensorView<T, 4> DV, TensorView<float, 1> workspace,
                              const AttentionOptions<TBias>& options, AttentionBackwardConfig config) {
  AttentionProblem<TBias> p(options, Q.shape, K.shape, V.shape);
  const bool fast = config.keys.accumulate;
  ShapeCheck check("attention_backward");
  p.check(check, K, V);
  const auto [row, delta, sums] = detail::check_gradients(check, p, O, DO, LSE, DQ, DK, DV, workspace, !fast);
  check.require(!p.options.q_scale.data, "factors of Q, K and V are for forward only")
      .require(!p.options.cu_q.data || p.options.max_sk > 0 || p.sk == 0, "packed sequences need max_sk, found {}",
               p.options.max_sk);
  for (AttentionConfig* c : {&config.keys, &config.queries}) p.complete(*c), p.check_config(check, *c);
  if (!check.ok()) return stream.refuse(check.error());
  config.keys.group = static_cast<int>(p.hq / p.hkv);

  const auto& o = p.options;
  // Scores of a bias may be so large that only differences are exact: see AttentionScores::wide.
  const bool wide = config.keys.bias && !std::is_same_v<TBias, uint8_t>;
  const AttentionConfig small = config.small();
  if (Status s = attention_backward_prepare_kernel<T>().try_call(stream, small, O, DO, LSE, row, delta, sums,
                                                                 wide ? 1.f : -kLog2E, dropout_delta_factor(o.dropout));
      !s)
    return s;
  if (Status s = kernels.keys.try_call(stream, config.keys, Q, K, V, DO, row, delta, DK, DV, sums, o.scale, o.softcap,
                                       o.left, o.right, o.max_sk, o.slopes, o.bias, o.cu_q, o.cu_k, o.dropout, o.seed,
                                       o.offset, p.keys_together(stream, config.keys, sizeof(T)));
      !s)
    return s;
  if (fast)
    return attention_backward_convert_kernel<T>().try_call(stream, small, sums, DQ,
                                                           o.scale * dropout_scale(o.dropout), o.max_sq, o.cu_q);
  return kernels.queries.try_call(stream, config.queries, Q, K, V, DO, row, delta, DQ, o.scale, o.softcap, o.left,
                                  o.right, o.max_sq, o.slopes, o.bias, o.cu_q, o.cu_k, o.dropout, o.seed, o.offset,
                                  p.queries_together(stream, config.queries, sizeof(T)));
}

/// With the kernels of these types; f16, bf16 and f32.
template <class T, class TBias = float>
Status attention_backward(StreamAt stream, Input<T, 4> Q, Input<T, 4> K, Input<T, 4> V, Input<T, 4> O, Input<T, 4> DO,
                          std::type_identity_t<TensorView<const float, 3>> LSE,
                          std::type_identity_t<TensorView<T, 4>> DQ, std::type_identity_t<TensorView<T, 4>> DK,
                          std::type_identity_t<TensorView<T, 4>> DV, TensorView<float, 1> workspace,
                          const AttentionOptions<TBias>& options, const AttentionBackwardConfig& config) {
  return run_attention_backward<decltype(attention_backward_kernels<T, TBias>()), T, TBias>(
      attention_backward_kernels<T, TBias>(), stream, Q, K, V, O, DO, LSE, DQ, DK, DV, workspace, options, config);
}
template <class T, class TBias = float>
Status attention_backward(StreamAt stream, Input<T, 4> Q, Input<T, 4> K, Input<T, 4> V, Input<T, 4> O, Input<T, 4> DO,
                          std::type_identity_t<TensorView<const float, 3>> LSE,
                          std::type_identity_t<TensorView<T, 4>> DQ, std::type_identity_t<TensorView<T, 4>> DK,
                          std::type_identity_t<TensorView<T, 4>> DV, TensorView<float, 1> workspace,
                          const AttentionOptions<TBias>& options, bool deterministic) {
  const bool packed = options.cu_q.data, causal = options.causal || options.right == 0;
  AttentionConfig features;
  AttentionProblem<TBias>(options, Q.shape, K.shape, V.shape).complete(features);
  const Machine machine = Machine::of(stream);
  AttentionBackwardConfig config = default_attention_backward_config(
      dtype_of<T>(), packed ? options.max_sq : Q.shape[2], packed ? options.max_sk : K.shape[2], Q.shape[3], V.shape[3],
      causal, attention_is_plain(features), deterministic, machine);
  if (features.dropout) config = fit_dropout(config, dtype_of<T>(), machine);
  return attention_backward<T, TBias>(stream, Q, K, V, O, DO, LSE, DQ, DK, DV, workspace, options, config);
}

}  // namespace tile::kernels
