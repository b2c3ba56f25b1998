// gla_backward.h - backward pass of gated linear attention: gradients of q, k, v, g and of the initial state from those
// of o and of the final state. Nothing of the forward pass is needed but its inputs; states are f32 while they walk and
// are kept once per chunk in the type they are multiplied in. Deterministic.
#pragma once
#include "gla_forward.h"
#include "gla_gradients.h"

namespace tile::kernels {

/// Tiles of each kernel of the backward pass; one BT.
struct GlaBackwardPlan {
  GlaChunkConfig prepare, pass, scores, values, keys;
  /// Both walks make what their chunks need on the way (gla_fused_states, gla_fused_values): neither prepare, pass nor
  /// values run. With few heads they are cut into segments of `walk.segment` chunks, whose effects come first.
  bool fused = false;
  GlaChunkConfig walk, states, effects, scan;  ///< walk: of gla_fused_values

  int64_t segments(const GlaSizes& s) const {
    return fused && walk.segment ? std::max<int64_t>(1, cdiv(cdiv(s.longest, int64_t{walk.BT}), int64_t{walk.segment}))
                                 : 1;
  }
};

namespace detail {
/// The walks of whole sequences, or of segments of them, by one program each, where all of a chunk has room on chip and
/// the programs fill the machine: a chunk takes one program about as long as 0.6 chunks take all kernels that prepare
/// chunks in parallel, as 0.7 with the effects of segments. Sequences that are packed begin anywhere, which takes
/// registers that a walk does not have (it would spill 1 KB).
inline bool gla_backward_walks(const GlaSizes& s, const Machine& machine, const GlaChunkConfig& walk) {
  if (s.varlen) return false;
  const int64_t chunks = cdiv(s.longest, int64_t{walk.BT}), length = walk.segment ? walk.segment : chunks;
  const int64_t programs = s.sequences * s.heads * std::max<int64_t>(1, cdiv(chunks, std::max<int64_t>(1, length)));
  const int64_t machines = cdiv(programs, machine.multiprocessors) * machine.multiprocessors;
  return walk.segment ? 7 * machines < 10 * programs : 5 * machines < 8 * programs;
}
}  // namespace detail

inline GlaBackwardPlan gla_backward_plan(DType dtype, const GlaSizes& s, const Machine& machine) {
  GlaBackwardPlan p;
  GlaPlan forward = gla_prepared_plan(dtype, s, machine);
  p.prepare = forward.prepare;
  p.pass = detail::gla_pass_config(dtype, s, machine), p.pass.chunk_states = true;
  int64_t heads = s.sequences * s.heads;
  auto programs = [&] { return heads * cdiv(s.k, int64_t{p.pass.BK}) * cdiv(s.v, int64_t{p.pass.BV}); };
  // A walk is a chain: with few heads narrow states keep the machine busier.
  while (machine.gpu && p.pass.BK > 64 && programs() < machine.multiprocessors) p.pass.BK /= 2;
  p.scores = p.values = p.keys = p.pass;
  p.scores.chunk_states = p.values.chunk_states = p.keys.chunk_states = false;
  p.scores.BV = p.values.BV = p.keys.BV = std::min(64, round_up(s.v, 16));
  p.values.BK = std::min(64, round_up(s.k, 16));
  p.keys.BK = std::min(machine.gpu ? 32 : 64, round_up(s.k, 16));
  if (machine.gpu && !machine.warpgroups) p.keys.warps = 8;  // products of single warps keep more in registers
  if (machine.warpgroups && dtype != DType::f32) {
    p.keys.programs = 2;
    if (s.v <= 128) {
      // A chunk's blocks of K one after the other, dO and V stay; a producer reads the next block's states meanwhile.
      p.keys.one_block = false, p.keys.one_v = p.keys.roles = true;
      p.keys.BV = round_up(s.v, 64), p.keys.stages = 1;
    } else {
      p.keys.stages = 3;
    }
  } else if (machine.gpu && dtype == DType::f32) {
    p.keys.one_v = s.v <= p.keys.BV;
  }
  if (auto fused = gla_fused_plan(dtype, s, machine)) {
    p.walk = fused->output, p.walk.mild = false;  // what it writes takes the decays of every chunk
    p.states = p.effects = fused->pass, p.scan = fused->scan;
    // Every chunk's state has to leave before the next, what comes can wait for it (8 x 2048 x 16 rows, on an H200:
    // 0.105 ms; with two stages 0.109).
    p.states.stages = 1;
    p.fused = detail::gla_backward_walks(s, machine, p.walk);
  }
  return p;
}

/// What the kernels pass to each other; made for sizes and a plan.
template <class T>
struct GlaBackwardWorkspace {
  GlaChunkWorkspace<T> chunks;           ///< as the forward pass leaves it (its q_g, k_g, a, decay)
  TensorView<T, 4> states, from_behind;  ///< [C, H, K, V]: before each chunk; gradients of those behind it
  TensorView<T, 4> da;                   ///< [B, H, L, BT]; none where keys.one_v
  TensorView<float, 4> starts;           ///< [sequences * segments, H, K, V]: of walks from behind, cut into segments

  static Result<GlaBackwardWorkspace> create(const std::shared_ptr<Device>& device, const GlaSizes& s,
                                             const GlaBackwardPlan& p) {
    GlaBackwardWorkspace w;
    GlaPlan plain;  // no states of the forward pass
    plain.prepare = plain.output = p.prepare;
    plain.output.segment = 0;
    if (p.fused) plain.states = GlaStates::fused, plain.output = p.walk;
    Result<GlaChunkWorkspace<T>> made = GlaChunkWorkspace<T>::create(device, s, plain);
    if (!made) return made.error();
    w.chunks = std::move(*made);
    int64_t chunks = s.chunks(p.prepare.BT);
    if ((!p.fused || w.chunks.take(device, w.chunks.decay, {chunks, s.heads, s.k})) &&
        w.chunks.take(device, w.states, {chunks, s.heads, s.k, s.v}) &&
        w.chunks.take(device, w.from_behind, {chunks, s.heads, s.k, s.v}) &&
        (!plain.is_cut() || w.chunks.take(device, w.starts, {s.sequences * p.segments(s), s.heads, s.k, s.v})) &&
        (p.keys.one_v || w.chunks.take(device, w.da, {s.batch, s.heads, s.rows, p.prepare.BT})))
      return w;
    return *w.chunks.error();
  }
};

/// Gradients to write: shapes of q, k, v, g and [sequences, H, K, V]; DH0 only where it has data.
template <class T>
struct GlaGradients {
  TensorView<T, 4> DQ, DK, DV;
  TensorView<float, 4> DG;
  TensorView<float, 4> DH0{};
};

/// The launches of a backward pass, to time one of them alone or to keep what the forward pass prepared.
enum GlaBackwardPart : uint32_t {
  kGlaBackwardPrepare = 1,
  kGlaBackwardStates = 2,
  kGlaBackwardReverse = 4,
  kGlaBackwardScores = 8,
  kGlaBackwardValues = 16,
  kGlaBackwardKeys = 32,
  kGlaBackwardEffects = 64,  ///< of segments, where walks are cut, and what they begin with
  kGlaBackwardAll = 127
};

namespace detail {
template <class T>
Status check_gla_backward(const GlaInputs<T>& in, const TensorView<const T, 4>& DO,
                          const TensorView<const float, 4>& DHT, const GlaGradients<T>& out,
                          const GlaBackwardWorkspace<T>& w, const GlaBackwardPlan& p) {
  if (Status s = check_gla_inputs("gla_backward", in); !s) return s;
  const GlaSizes s = in.sizes();
  const int64_t chunks = s.chunks(p.prepare.BT);
  ShapeCheck check("gla_backward");
  check.shape("DO", DO, {s.batch, s.heads, s.rows, s.v}, "[B, H, L, V]")
      .shape("DQ", out.DQ, {s.batch, s.heads, s.rows, s.k}, "[B, H, L, K]")
      .shape("DK", out.DK, {s.batch, s.heads, s.rows, s.k}, "[B, H, L, K]")
      .shape("DV", out.DV, {s.batch, s.heads, s.rows, s.v}, "[B, H, L, V]")
      .shape("DG", out.DG, {s.batch, s.heads, s.rows, s.k}, "[B, H, L, K]")
      .shape("workspace.states", w.states, {chunks, s.heads, s.k, s.v}, "[chunks, H, K, V]");
  if (!p.keys.one_v) check.shape("workspace.da", w.da, {s.batch, s.heads, s.rows, p.prepare.BT}, "[B, H, L, BT]");
  check.require(!p.keys.one_v || p.keys.BV >= s.v, "keys.one_v needs BV >= V, found {} and {}", p.keys.BV, s.v);
  if (DHT.data) check.shape("DHT", DHT, {s.sequences, s.heads, s.k, s.v}, "[sequences, H, K, V]");
  if (out.DH0.data) check.shape("DH0", out.DH0, {s.sequences, s.heads, s.k, s.v}, "[sequences, H, K, V]");
  if (p.fused) {
    check.require(!s.varlen, "packed sequences are not walked: fused is for whole batches")
        .require(p.walk.BK >= s.k && p.walk.BT == p.prepare.BT,
                 "walk needs BK >= K, found {} and {}, and the BT of the others", p.walk.BK, s.k)
        .require(p.states.BT == p.walk.BT && (!p.walk.segment || p.effects.BT == p.walk.BT),
                 "walk, states and effects have one BT, found {}, {} and {}", p.walk.BT, p.states.BT, p.effects.BT);
    if (p.walk.segment)
      check.shape("workspace.starts", w.starts, {s.sequences * p.segments(s), s.heads, s.k, s.v},
                  "[sequences * segments, H, K, V]");
  }
  for (const GlaChunkConfig* c : {&p.pass, &p.scores, &p.values, &p.keys})
    check.require(c->BT == p.prepare.BT, "all kernels of a plan have one BT, found {} and {}", p.prepare.BT, c->BT)
        .require(c->varlen == s.varlen && p.prepare.varlen == s.varlen,
                 "a plan is made for packed sequences (varlen) or for whole batches, this one for the other");
  return check.ok() ? Status(Ok{}) : Status(check.error());
}
}  // namespace detail

/// DO is the gradient of o, DHT that of the final state (absent: zero). Of `parts` only those run; the others must have
/// left their results in the workspace before.
template <class T>
Status gla_backward(StreamAt stream, const GlaInputs<T>& in, Input<T, 4> DO, TensorView<const float, 4> DHT,
                    const GlaGradients<T>& out, const GlaBackwardWorkspace<T>& w, const GlaBackwardPlan& p,
                    uint32_t parts = kGlaBackwardAll) {
  if (Status s = detail::check_gla_backward<T>(in, DO, DHT, out, w, p); !s) return stream.refuse(s.error());
  const GlaSizes s = in.sizes();
  const auto& made = w.chunks;
  const void* memory = made.decay.data;
  const auto cu_seqlens = detail::or_unused(in.cu_seqlens, memory);
  const int64_t heads = s.sequences * s.heads, chunks = cdiv(s.longest, int64_t{p.prepare.BT});

  detail::GlaStateLaunch<T> forward{p.pass, s, 1, made.k_g, in.V, made.decay, in.cu_seqlens};
  forward.config.chunk_states = true, forward.config.initial_state = in.H0.data != nullptr;
  forward.start = in.H0, forward.states = w.states;
  detail::GlaStateLaunch<T> reverse{p.pass, s, 1, made.q_g, DO, made.decay, in.cu_seqlens};
  reverse.config.chunk_states = reverse.config.reverse = true;
  reverse.config.initial_state = DHT.data != nullptr, reverse.config.final_state = out.DH0.data != nullptr;
  reverse.start = DHT, reverse.end = out.DH0, reverse.states = w.from_behind;

  Status done = Ok{};
  auto run = [&](uint32_t part, auto&& launch) {
    if (done && (parts & part)) done = launch();
  };
  if (p.fused) {
    GlaChunkConfig walk = p.walk;
    walk.chunk_states = true;
    const bool cut = walk.segment != 0;
    const int64_t segments = p.segments(s);
    const Grid grid{heads * cdiv(s.v, int64_t{walk.BV}), segments};
    TensorView<const float, 4> first = in.H0, last = DHT;
    if (cut) {
      first = made.starts, last = w.starts;
      auto begin = [&](const detail::GlaSegmentLaunch<T>& segment) {
        run(kGlaBackwardEffects, [&] { return segment.run_effects(stream); });
        run(kGlaBackwardEffects, [&] { return segment.run_scan(stream); });
      };
      begin({p.effects,
             p.scan,
             s,
             segments,
             walk.segment,
             in.K,
             in.V,
             in.G,
             in.cu_seqlens,
             in.H0,
             {},
             made.effects,
             made.starts,
             made.total});
      begin({p.effects, p.scan, s, segments, walk.segment, in.Q, DO, in.G, in.cu_seqlens, DHT, out.DH0, made.effects,
             w.starts, made.total, true, in.scale});
    }
    run(kGlaBackwardStates, [&] {
      GlaChunkConfig states = p.states;
      states.segment = walk.segment, states.initial_state = first.data != nullptr;
      const Grid all{heads * cdiv(s.k, int64_t{states.BK}) * cdiv(s.v, int64_t{states.BV}), segments};
      return gla_fused_states_kernel<T>().try_launch(stream, states, all, in.K, in.V, in.G, cu_seqlens,
                                                     detail::or_unused(first, memory), w.states);
    });
    run(kGlaBackwardReverse, [&] {
      walk.initial_state = last.data != nullptr, walk.final_state = !cut && out.DH0.data != nullptr;
      return gla_fused_values_kernel<T>().try_launch(
          stream, walk, grid, in.Q, in.K, in.G, DO, cu_seqlens, detail::or_unused(last, memory),
          detail::or_unused(out.DH0, memory), w.from_behind, made.decay, out.DV, in.scale);
    });
  } else {
    run(kGlaBackwardPrepare, [&] { return detail::gla_prepare_launch<T>(stream, in, made, p.prepare); });
    run(kGlaBackwardStates, [&] { return forward.run(stream); });
    run(kGlaBackwardReverse, [&] { return reverse.run(stream); });
  }
  run(kGlaBackwardScores, [&]() -> Status {
    if (p.keys.one_v) return Ok{};  // made where they are read
    return gla_gradient_scores_kernel<T>().try_launch(stream, p.scores, Grid{heads, chunks}, DO, in.V, cu_seqlens,
                                                      w.da);
  });
  run(kGlaBackwardValues, [&]() -> Status {
    if (p.fused) return Ok{};
    return gla_gradient_values_kernel<T>().try_launch(stream, p.values,
                                                      Grid{heads * cdiv(s.v, int64_t{p.values.BV}), chunks}, DO, made.a,
                                                      made.k_g, w.from_behind, cu_seqlens, out.DV);
  });
  run(kGlaBackwardKeys, [&] {
    const int64_t k_blocks = p.keys.one_block ? cdiv(s.k, int64_t{p.keys.BK}) : 1;
    return gla_gradient_keys_kernel<T>().try_launch(stream, p.keys, Grid{heads * k_blocks, chunks}, in.Q, in.K, in.V,
                                                    in.G, DO, detail::or_unused(w.da, memory), w.states, w.from_behind,
                                                    made.decay, cu_seqlens, out.DQ, out.DK, out.DG, in.scale);
  });
  return done;
}

}  // namespace tile::kernels
