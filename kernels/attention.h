// attention.h - attention forward without materialising scores: O = softmax(scale Q K^T) V (Dao 2023,
// FlashAttention-2), with masks, windows, biases, packed sequences, f8 inputs and callables on scores.
#pragma once
#include <optional>

#include "parts/attention_dropout.h"
#include "parts/attention_options.h"
#include "parts/guarded_values.h"

namespace tile::kernels {

/// Q [B, Hq, Sq, D], K [B, Hkv, Sk, D], V [B, Hkv, Sk, Dv], O [B, Hq, Sq, Dv], LSE [B, Hq, Sq] f32, any strides; Hq is
/// a multiple of Hkv and query head h reads key head h / (Hq / Hkv). LSE = ln sum_j e^{t_j} over the visible scores
/// (see attention_scores.h). A query that sees no key gives O = 0 and LSE = -inf. Grid {ceil(Sq / BM), Hq, B}.
///
/// With varlen the tensors are [1, H, total, D] (LSE [1, Hq, total]), sequence b has rows cu[b] .. cu[b + 1] - 1, and
/// the grid {ceil(max_sq / BM), Hq, sequences}. bias is [B, Hq, Sq, Sk], slopes [B, Hq]; q_scale [B, Hq], k_scale and
/// v_scale [B, Hkv] are factors of the elements of Q, K and V. Tensors that the config does not use are not read.
///
/// guard_values: see AttentionOptions.
///
/// O stays unscaled in the loop, one division at the end. Keys are walked from the last block that is visible to the
/// first, so that a causal tile masks first and then no more.
template <class TIn, class TOut, class TBias, class ScoreMod, class MaskMod>
void attention_program(const AttentionConfig& c, const ScoreMod& score_mod, const MaskMod& mask_mod, bool guard_values,
                       Tensor<const TIn, 4> Q, Tensor<const TIn, 4> K, Tensor<const TIn, 4> V, Tensor<TOut, 4> O,
                       Tensor<float, 3> LSE, F32 scale, F32 softcap, I32 left, I32 right, Tensor<const float, 2> slopes,
                       Tensor<const TBias, 4> bias, Tensor<const int32_t, 1> cu_q, Tensor<const int32_t, 1> cu_k,
                       Tensor<const float, 2> q_scale, Tensor<const float, 2> k_scale, Tensor<const float, 2> v_scale,
                       F32 p_drop, U64 seed, U64 offset, I32 together) {
  num_warps(c.warps);
  constexpr DType in = dtype_of<TIn>();
  constexpr int lift = size_of(in) == 1 ? 8 : 0;  // weights up to 256 fill the range of e4m3
  const Prec precision = c.tf32 ? Prec::tf32 : Prec::ieee;
  const HeadTile own = c.own_tile(together);
  auto head = own.head, batch = own.batch;
  auto kv_head = head / (Q.dim(1) / K.dim(1));
  const AttentionHead at = attention_head(c, Q, K, batch, head, kv_head, cu_q, cu_k, left, right);
  const Tile tensor_batch = c.varlen ? Tile(0) : batch;
  // The last tiles of a causal launch have the most keys. Starting with them leaves short ones to fill its end.
  auto m0 = (at.band.has_right ? num_programs(0) - 1 - own.tile : own.tile) * c.BM;

  Tile factor = scale;
  if (c.descale) factor = scale * q_scale.load({batch, head}) * k_scale.load({batch, kv_head});
  const AttentionScores scores(c, at, score_mod, mask_mod, factor, softcap,
                               c.alibi ? slopes.load({batch, head}) : Tile(0.f), bias);
  const Tile exponent_unit = scores.unit() * kLog2E;

  auto q = Q.load({tensor_batch, head, at.q_start + m0, 0}, {c.BM, c.D});
  Tile acc = zeros({c.BM, c.DV}, f32);
  OnlineSoftmax softmax(c.BM);
  std::optional<GuardedValues> guarded;
  if (guard_values) guarded.emplace(c.BM, c.DV);
  const std::optional<AttentionDropout> dropout = attention_dropout(c, seed, offset, p_drop);
  auto step = [&](const Tile& block, bool masked) {
    auto n0 = block * c.BN;
    auto k = K.load({tensor_batch, kv_head, at.k_start + n0, 0}, {c.BN, c.D});
    auto s = scores(dot(q, trans(k), zeros({c.BM, c.BN}, f32), precision), m0, n0, masked).s;
    Tile rescale;
    auto p = softmax.update(s, exponent_unit, rescale, masked || scores.has_holes(), scores.wide(), lift);
    acc *= rescale;
    if (dropout) p = where(dropout->kept(c, at, Q.dim(1), m0, n0, false), p, 0.f);  // softmax.d has them all
    Tile v = V.load({tensor_batch, kv_head, at.k_start + n0, 0}, {c.BN, c.DV});
    // Rows of the next sequence may hold anything, and 0 * NaN is NaN.
    if (c.varlen && masked) v = where(broadcast_to((n0 + arange(0, c.BN)).col() < at.sk, v.shape()), v, 0.f);
    if (guarded && (masked || scores.has_holes()))
      acc = guarded->template product<TIn>(cast(p, in), s, v, acc, precision);
    else
      acc = dot(cast(p, in), v, acc, precision);
  };
  for_each_block(visible_blocks(at.band, m0, c.BM, at.sq, at.sk, c.BN), at.band.has_left, true, c.split,
                 {.stages = c.stages, .pingpong = c.turns ? Choice::always : Choice::automatic}, step);

  // d is 0 only where no key was visible; NaN (from NaN inputs) must survive, hence == and not >.
  auto empty = softmax.d == 0.f;
  Tile weight = where(empty, 0.f, 1.f / softmax.d);
  if (c.descale) weight *= v_scale.load({batch, kv_head});
  if (dropout) weight *= dropout->scale();
  if (guarded) acc = guarded->apply(acc);
  auto o = cast(acc * weight, dtype_of<TOut>());
  auto sum_log = lift ? log2(softmax.d) - float(lift) : log2(softmax.d);
  auto lse = reshape(where(empty, -INFINITY, fma(softmax.m, scores.unit(), sum_log * kLn2)), {c.BM});
  if (c.varlen) {  // rows past the end of the sequence are the next one's
    auto rows = [&](auto& tensor) {
      return tensor.ptr() + cast(head, i64) * tensor.stride(1) + cast(at.q_start, i64) * tensor.stride(2);
    };
    make_view<TOut>(rows(O), {at.sq, O.dim(3)}, {O.stride(2), O.stride(3)}).store({m0, 0}, o);
    make_view<float>(rows(LSE), {at.sq}, {LSE.stride(2)}).store({m0}, lse);
  } else {
    O.store({batch, head, m0, 0}, o);
    LSE.store({batch, head, m0}, lse);
  }
}

/// A kernel with callables of the caller's on scores and visibility: keep the result (it holds the compiled code) and
/// launch it with run_attention. TBias is the element type of a bias, or uint8_t for a mask tensor.
template <class TIn, class TOut = TIn, class TBias = float, class ScoreMod = NoScoreMod, class MaskMod = NoMaskMod>
auto make_attention_kernel(const char* name, ScoreMod score_mod = {}, MaskMod mask_mod = {},
                           bool guard_values = false) {
  return kernel(typed_name(name, dtype_of<TIn>()),
                [score_mod, mask_mod, guard_values](const AttentionConfig& c, Tensor<const TIn, 4> Q, Tensor<const TIn, 4> K,
                                      Tensor<const TIn, 4> V, Tensor<TOut, 4> O, Tensor<float, 3> LSE, F32 scale,
                                      F32 softcap, I32 left, I32 right, I32 max_sq, Tensor<const float, 2> slopes,
                                      Tensor<const TBias, 4> bias, Tensor<const int32_t, 1> cu_q,
                                      Tensor<const int32_t, 1> cu_k, Tensor<const float, 2> q_scale,
                                      Tensor<const float, 2> k_scale, Tensor<const float, 2> v_scale, F32 p_drop,
                                      U64 seed, U64 offset, I32 together) {
                  attention_program<TIn, TOut, TBias>(c, score_mod, mask_mod, guard_values, Q, K, V, O, LSE, scale,
                                                      softcap, left, right, slopes, bias, cu_q, cu_k, q_scale, k_scale,
                                                      v_scale, p_drop, seed, offset, together);
                })
      .grid([](const AttentionConfig& c, const auto& q, const auto&, const auto&, const auto&, const auto&, float,
               float, int, int, int max_sq, const auto&, const auto&, const auto& cu_q, const auto&...) {
        return attention_grid(c, q.shape, c.varlen ? cu_q.shape[0] - 1 : q.shape[0], max_sq);
      });
}
template <class TIn, class TOut = TIn, class TBias = float>
const auto& attention_kernel() {
  static const auto k = make_attention_kernel<TIn, TOut, TBias>("attention_forward");
  return k;
}
template <class TIn, class TOut = TIn, class TBias = float>
const auto& guarded_attention_kernel() {
  static const auto k = make_attention_kernel<TIn, TOut, TBias>("attention_forward_guarded", {}, {}, true);
  return k;
}

namespace detail {
/// Tiles for heads of d (and dv for V) channels and sq queries. Budget on a GPU: BM * (DV + BN) f32 accumulators.
inline AttentionConfig attention_config_by_size(DType dtype, int64_t sq, int64_t d, int64_t dv, bool causal,
                                                float scale, const Machine& machine) {
  AttentionConfig c;
  c.D = round_up(d, 16), c.DV = round_up(dv, 16);
  c.causal = causal, c.positive_scale = scale > 0;
  int widest = std::max(c.D, c.DV);
  if (!machine.gpu) {
    c.BM = 64, c.BN = 64, c.stages = 1, c.warps = 1;
  } else if (dtype == DType::f32) {
    c.BM = widest <= 128 ? 64 : 32, c.BN = 32, c.warps = widest <= 128 ? 8 : 4;
  } else if (machine.warpgroups) {
    c.dealt = causal;
    // 64 rows per warpgroup; scores, their 16-bit copy and the output of one thread fit its registers.
    // Measured on an H200: three warpgroups gain 17 % at 64 channels and nothing at 32; wider heads leave them no
    // registers. Under a causal mask 1024 queries are 19 % faster in tiles of two, which reach less far past it.
    int groups = widest <= 64 && !(causal && sq <= 1024) ? 3 : 2;
    while (groups > 1 && sq <= 64 * (groups - 1)) --groups;
    c.BM = 64 * groups, c.warps = 4 * groups;
    // The widest heads: 80 keys where results leave through the memory of the queries (3 % over 64 on an H200).
    const bool alike = c.D == c.DV && size_of(dtype) == 2;
    c.BN = widest <= 128 ? 128 : widest <= 192 ? 96 : alike ? 80 : 64;
    // Bytes leave registers for 160 keys, which saves 5 % there (128 channels, 4096 queries).
    if (size_of(dtype) == 1 && !causal && widest > 64 && widest <= 128) c.BN = 160;
    c.split = false;  // the compiler's own split shares code between the loops, and compiles in half the time
    return c;
  } else if (size_of(dtype) == 1) {
    c.BM = 64, c.BN = widest <= 64 ? 64 : 32;  // elements are widened in registers
  } else if (widest > 128) {
    // One program per multiprocessor either way; with room for it, 8 warps hide each other's latency better than 4.
    int64_t bytes = static_cast<int64_t>(size_of(dtype)) * (128 * c.D + c.stages * c.BN * (c.D + c.DV)) + 2048;
    bool wide = sq > 64 && bytes <= static_cast<int64_t>(machine.shared_bytes);
    c.BM = wide ? 128 : 64, c.BN = 64, c.warps = wide ? 8 : 4;
  } else if (widest > 64) {
    c.split = causal;  // the compiler's own split: two loops instead of three, 4 % faster without a causal mask
  }
  c.BM = std::min(c.BM, std::max(16, power_of_two_above(sq)));
  return c;
}
}  // namespace detail

/// What tuned tiles are kept by (table "attention_forward").
inline TuningKey attention_tuning_key(DType dtype, int64_t sq, int64_t d, int64_t dv, bool causal) {
  return TuningKey()
      .fact("dtype", dtype)
      .fact("D", round_up(d, 16))
      .fact("DV", round_up(dv, 16))
      .fact("causal", causal)
      .size("Sq", sq);
}

/// Tuned tiles where there are some for this machine, else by size.
inline AttentionConfig default_attention_config(DType dtype, int64_t sq, int64_t d, int64_t dv, bool causal,
                                                float scale, const Machine& machine) {
  return tuned("attention_forward", machine.model, attention_tuning_key(dtype, sq, d, dv, causal),
               detail::attention_config_by_size(dtype, sq, d, dv, causal, scale, machine));
}

/// `c` with tiles for what the scores of a problem take beside a multiply-add: registers for their terms, or for three
/// loops where the kernel splits them.
inline AttentionConfig fit_features(AttentionConfig c, const Machine& machine) {
  if (machine.warpgroups && c.warps == 12 && (c.softcap || c.alibi || c.bias || c.dropout)) c.BM = 128, c.warps = 8;
  if (machine.warpgroups && c.bias) c.BN = std::min(c.BN, 64);
  if (machine.warpgroups && c.D > 192 && (c.softcap || c.varlen)) c.BN = std::min(c.BN, 64);
  const bool three_loops = c.left || c.varlen || c.dropout;  // or as much to hold
  if (machine.gpu && !machine.warpgroups && c.BM == 128 && c.warps == 4 && three_loops) c.warps = 8;
  if (machine.gpu && !machine.warpgroups && c.dropout && std::max(c.D, c.DV) > 64) c.BN = std::min(c.BN, 48);
  return c;
}

/// `c` for a kernel with guarded values: they pass through registers, and there is a second accumulator.
inline AttentionConfig fit_guard(AttentionConfig c, const Machine& machine) {
  if (machine.warpgroups) c.BM = std::min(c.BM, 128), c.warps = c.BM / 16, c.BN = std::min(c.BN, 64);
  return c;
}

/// Tiles worth measuring.
inline std::vector<AttentionConfig> attention_space(const AttentionConfig& base, DType dtype, const Machine& machine) {
  Space<AttentionConfig> space(base);
  if (!machine.gpu) return space.vary(&AttentionConfig::BM, {32, 64, 128}).vary(&AttentionConfig::BN, {32, 64, 128});
  if (machine.warpgroups && size_of(dtype) <= 2) {
    // 64 rows per warpgroup; a thread holds a row's share of scores, of their 16-bit copy and of the output.
    space.vary(&AttentionConfig::BM, {64, 128, 192})
        .vary(&AttentionConfig::BN, {64, 80, 96, 112, 128, 144, 160, 176, 192})
        .adjust([](AttentionConfig& c) { c.warps = c.BM / 16; })
        .where([](const AttentionConfig& c) { return (c.BN * 3 / 2 + c.DV) / 2 <= (c.BM == 192 ? 150 : 200); });
  } else {
    space.vary(&AttentionConfig::BM, {32, 64, 128})
        .vary(&AttentionConfig::BN, {32, 48, 64, 128})
        .vary(&AttentionConfig::warps, {4, 8})
        .where([](const AttentionConfig& c) {
          return c.BM >= 4 * c.warps && c.BM * (c.BN + c.DV) / (32 * c.warps) <= 224;
        });
  }
  const auto bytes = static_cast<int64_t>(size_of(dtype));
  return space.vary(&AttentionConfig::stages, {1, 2, 3, 4}).where([&](const AttentionConfig& c) {
    return bytes * (static_cast<int64_t>(c.BM) * c.D + static_cast<int64_t>(c.stages) * c.BN * (c.D + c.DV)) <=
           static_cast<int64_t>(machine.shared_bytes);
  });
}

/// Launches `k` (from make_attention_kernel) after checking shapes; views of Q, K and V may be of const elements. The
/// config is completed with the options.
template <class K_, class TQ, class TK, class TV, class TOut, class TBias>
Status run_attention(const K_& k, StreamAt stream, TensorView<TQ, 4> Q, TensorView<TK, 4> K, TensorView<TV, 4> V,
                     TensorView<TOut, 4> O, TensorView<float, 3> LSE, const AttentionOptions<TBias>& options,
                     AttentionConfig config) {
  AttentionProblem<TBias> problem(options, Q.shape, K.shape, V.shape);
  ShapeCheck check("attention_forward");
  problem.check(check, TensorView<const TK, 4>(K), TensorView<const TV, 4>(V));
  check.shape("O", O, {problem.b, problem.hq, problem.sq, problem.dv}, "[B, Hq, Sq, Dv]")
      .shape("LSE", LSE, {problem.b, problem.hq, problem.sq}, "[B, Hq, Sq]");
  problem.complete(config);
  problem.check_config(check, config);
  if (!check.ok()) return stream.refuse(check.error());
  const AttentionOptions<TBias>& o = problem.options;
  return k.try_call(stream, config, Q, K, V, O, LSE, o.scale, o.softcap, o.left, o.right, o.max_sq, o.slopes, o.bias,
                    o.cu_q, o.cu_k, o.q_scale, o.k_scale, o.v_scale, o.dropout, o.seed, o.offset,
                    problem.queries_together(stream, config, sizeof(TK)));
}

/// With the kernel of these types and, unless given, the default config. Types: f16, bf16, f32; f8e4m3 with O in f16 or
/// bf16.
template <class T, class TOut = T, class TBias = float>
Status attention_forward(StreamAt stream, Input<T, 4> Q, Input<T, 4> K, Input<T, 4> V,
                         std::type_identity_t<TensorView<TOut, 4>> O, TensorView<float, 3> LSE,
                         const AttentionOptions<TBias>& options, const AttentionConfig& config) {
  const auto& k =
      options.guard_values ? guarded_attention_kernel<T, TOut, TBias>() : attention_kernel<T, TOut, TBias>();
  return run_attention(k, stream, TensorView<const T, 4>(Q), TensorView<const T, 4>(K), TensorView<const T, 4>(V),
                       TensorView<TOut, 4>(O), LSE, options, config);
}
template <class T, class TOut = T, class TBias = float>
Status attention_forward(StreamAt stream, Input<T, 4> Q, Input<T, 4> K, Input<T, 4> V,
                         std::type_identity_t<TensorView<TOut, 4>> O, TensorView<float, 3> LSE,
                         const AttentionOptions<TBias>& options) {
  const Machine machine = Machine::of(stream);
  AttentionConfig config = default_attention_config(dtype_of<T>(), options.cu_q.data ? options.max_sq : Q.shape[2],
                                                    Q.shape[3], V.shape[3], options.causal, options.scale, machine);
  AttentionProblem<TBias>(options, Q.shape, K.shape, V.shape).complete(config);
  config = fit_features(config, machine);
  if (options.guard_values) config = fit_guard(config, machine);
  return attention_forward<T, TOut, TBias>(stream, Q, K, V, O, LSE, options, config);
}
template <class T>
Status attention_forward(StreamAt stream, Input<T, 4> Q, Input<T, 4> K, Input<T, 4> V, TensorView<T, 4> O,
                         TensorView<float, 3> LSE, float scale, bool causal) {
  AttentionOptions<> options;
  options.scale = scale, options.causal = causal;
  return attention_forward<T>(stream, Q, K, V, O, LSE, options);
}
template <class T>
Status attention_forward(StreamAt stream, Input<T, 4> Q, Input<T, 4> K, Input<T, 4> V, TensorView<T, 4> O,
                         TensorView<float, 3> LSE, float scale, const AttentionConfig& config) {
  AttentionOptions<> options;
  options.scale = scale, options.causal = config.causal;
  return attention_forward<T>(stream, Q, K, V, O, LSE, options, config);
}

}  // namespace tile::kernels
