// gla_forward.h - fast gated linear attention forward: o_t = scale q_t^T S_t, S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T
// (Yang et al. 2024), in chunks. q, k, g are [B, H, L, K], v and o are [B, H, L, V], g f32 <= 0, any strides ([B, L, H,
// D] memory is a view), any L, K, V; f16, bf16, f32. With cu_seqlens B is 1 and L holds sequences one behind the other.
//
// Five ways to the states, chosen by gla_plan's estimate of the time:
//   fused      one program walks a whole sequence of one head, or a segment of it, and makes everything that its chunks
//              need on the way: nothing but o goes to memory. Where a state has room beside that
//   on_chip    chunks are prepared in parallel first, then one program walks a whole sequence; needs many heads
//   segments   the same, the walk cut into segments: their effect on a zero state, a short scan, then on_chip in every
//              segment
//   in_memory  the states of all chunks go to memory, then o of all chunks in parallel; any K
//   by_row     the recurrence itself (gla_recurrent), a few rows at a time: little more arithmetic than products of
//              chunks, no decayed copies, no workspace. For hosts, whose products are no faster than other arithmetic
#pragma once
#include "gated_linear_attention.h"
#include "gla_chunked.h"
#include "gla_segments.h"

namespace tile::kernels {

enum class GlaStates : int { on_chip, segments, in_memory, by_row, fused };

/// Sizes of a problem. Without cu_seqlens: sequences = batch, longest = rows.
struct GlaSizes {
  int64_t batch = 1, heads = 1, rows = 0, k = 0, v = 0;
  int64_t sequences = 1, longest = 0;
  bool varlen = false;

  int64_t chunks(int bt) const { return varlen ? rows / bt + sequences : batch * cdiv(rows, int64_t{bt}); }
};

/// Inputs of the forward and backward pass. Views with null data are absent.
template <class T>
struct GlaInputs {
  TensorView<const T, 4> Q, K, V;  ///< [B, H, L, K], [B, H, L, K], [B, H, L, V]
  TensorView<const float, 4> G;    ///< [B, H, L, K]
  float scale = 1;
  TensorView<const float, 4> H0{};            ///< [sequences, H, K, V]
  TensorView<const int32_t, 1> cu_seqlens{};  ///< [sequences + 1]
  int64_t longest = 0;                        ///< with cu_seqlens: rows of the longest sequence, or more

  GlaSizes sizes() const {
    GlaSizes s{Q.shape[0], Q.shape[1], Q.shape[2], Q.shape[3], V.shape[3], Q.shape[0], Q.shape[2], false};
    if (cu_seqlens.data) s.varlen = true, s.sequences = cu_seqlens.shape[0] - 1, s.longest = longest;
    return s;
  }
};

/// What runs: the strategy and the tiles of each kernel.
struct GlaPlan {
  GlaStates states = GlaStates::on_chip;
  GlaChunkConfig prepare, pass, output;  ///< fused: pass (of gla_segment_effects) and output
  GlaChunkConfig scan;                   ///< of segments
  GlaConfig recurrence;                  ///< by_row only

  /// The walk is cut into segments.
  bool is_cut() const { return states == GlaStates::segments || (states == GlaStates::fused && output.segment); }
  int64_t segments(const GlaSizes& s) const {
    return output.segment ? std::max<int64_t>(1, cdiv(cdiv(s.longest, int64_t{output.BT}), int64_t{output.segment}))
                          : 1;
  }
};

namespace detail {

/// Widest K whose state stays on chip, and columns of V beside it: K * columns f32 values among the program's threads.
inline constexpr int64_t kGlaStateRows = 256;

/// Columns of V and multiples of 64 channels of K whose state stays on chip beside all that chunks need.
inline constexpr int64_t kGlaFusedRows = 128, kGlaFusedColumns = 128;

/// Chunks per segment (0: no segments) that makes a launch shortest, in units of one step of the walk with output (4.4
/// us on an H200, K = V = 128). `together` programs of a multiprocessor run at a time; two take longer than one.
inline int gla_segment(int64_t programs, int64_t chunks, int64_t multiprocessors, int together) {
  constexpr double kShared = 1.6, kBegin = 2;  // a step of two programs; a program's first loads and last stores
  // What segments do to a state: memory is the bound where they fill the machine, else a step alone counts. All but the
  // last segments. Then the scan, and what launches take.
  constexpr double kEffects = 0.53, kEffectsAlone = 0.2, kScan = 0.06, kLaunches = 0.6;
  const int64_t slots = multiprocessors * together;
  auto walk = [&](int64_t count, int64_t length) {
    const double full = together > 1 ? kShared : 1;
    const int64_t rest = count % slots;
    const double rounds = static_cast<double>(count / slots) * full + (rest == 0                 ? 0
                                                                       : rest <= multiprocessors ? 1
                                                                                                 : full);
    return rounds * (static_cast<double>(length) + kBegin);
  };
  double best = walk(programs, chunks);
  int chosen = 0;
  for (int64_t segments = 2; segments * 4 <= chunks; segments *= 2) {
    const int64_t length = cdiv(chunks, segments);
    const double steps = static_cast<double>(programs * length * (segments - 1)) / static_cast<double>(multiprocessors);
    const double effects = std::max(kEffects * steps, kEffectsAlone * static_cast<double>(length));
    const double time = walk(programs * segments, length) + effects + kScan * static_cast<double>(segments) + kLaunches;
    if (time < best) best = time, chosen = static_cast<int>(length);
  }
  return chosen;
}

}  // namespace detail

/// What tuned configurations of the kernels of GLA are kept by; each kernel has its own table.
inline TuningKey gla_tuning_key(DType dtype, const GlaSizes& s) {
  return TuningKey()
      .fact("dtype", dtype)
      .fact("K", s.k)
      .fact("V", s.v)
      .size("L", s.longest)
      .size("H", s.sequences * s.heads);
}

/// Configurations of gla_prepare_chunks worth measuring.
inline std::vector<GlaChunkConfig> gla_prepare_space(const GlaChunkConfig& base, const GlaSizes& s,
                                                     const Machine& machine) {
  Space<GlaChunkConfig> space(base);
  space.vary(&GlaChunkConfig::BK, {32, 64, 128});
  if (machine.warpgroups) space.vary(&GlaChunkConfig::roles, {false, true});
  space.adjust([&](GlaChunkConfig& c) { c.one_block = c.BK >= s.k && !c.roles; });
  if (!machine.gpu) return space;
  return space.vary(&GlaChunkConfig::warps, {4, 8})
      .where([](const GlaChunkConfig& c) { return c.BK * c.BT <= 32 * 32 * c.warps; })
      .vary(&GlaChunkConfig::programs, {0, 2, 3});
}

/// Configurations of gla_fused worth measuring.
inline std::vector<GlaChunkConfig> gla_fused_space(const GlaChunkConfig& base) {
  Space<GlaChunkConfig> space(base);
  return space.vary(&GlaChunkConfig::BV, {32, 64, 128})
      .where([&](const GlaChunkConfig& c) { return c.BV <= base.BV; })
      .vary(&GlaChunkConfig::warps, {4, 8})
      .vary(&GlaChunkConfig::stages, {1, 2});
}

/// Configurations of gla_scan_output worth measuring, the state on chip.
inline std::vector<GlaChunkConfig> gla_scan_space(const GlaChunkConfig& base, const Machine& machine) {
  Space<GlaChunkConfig> space(base);
  space.vary(&GlaChunkConfig::BV, {16, 32, 64, 128});
  if (!machine.gpu) return space;
  return space.vary(&GlaChunkConfig::warps, {4, 8})
      .where([](const GlaChunkConfig& c) { return c.BK * c.BV <= 128 * 32 * c.warps; })
      .vary(&GlaChunkConfig::stages, {1, 2, 3});
}

namespace detail {

/// K as programs hold it.
inline int gla_whole_k(const GlaSizes& s, const Machine& machine) {
  return round_up(s.k, machine.gpu && s.k > 32 ? 64 : 16);
}

/// What all kernels of a problem start from. GPUs take chunks of 64 rows, which fill the matrix units (32 in f32, whose
/// products run without them), hosts 16, because work inside chunks grows with their length.
inline GlaChunkConfig gla_chunk_config(DType dtype, const GlaSizes& s, const Machine& machine) {
  GlaChunkConfig c;
  c.varlen = s.varlen;
  c.BT = !machine.gpu ? 16 : dtype == DType::f32 ? 32 : 64;
  c.stages = machine.gpu ? 2 : 1, c.warps = machine.gpu ? 4 : 1;
  return c;
}

inline GlaChunkConfig gla_pass_config(DType dtype, const GlaSizes& s, const Machine& machine) {
  GlaChunkConfig c = gla_chunk_config(dtype, s, machine);
  c.BK = std::min(128, gla_whole_k(s, machine)), c.BV = std::min(64, round_up(s.v, 16));
  return c;
}

/// A state in many small pieces: each is a chain of segments that waits for memory.
inline GlaChunkConfig gla_scan_config(GlaChunkConfig c, const Machine& machine) {
  c.BK = machine.gpu ? 16 : 64, c.BV = 64, c.stages = machine.gpu ? 4 : 1;
  return c;
}

/// Half a state of 128 x 128 for a warpgroup: two programs of a multiprocessor take turns.
inline GlaChunkConfig gla_effects_config(DType dtype, const GlaSizes& s, const Machine& machine) {
  GlaChunkConfig c = gla_chunk_config(dtype, s, machine);
  c.BK = std::min(64, gla_whole_k(s, machine));
  c.BV = machine.warpgroups ? std::min(128, round_up(s.v, s.v > 32 ? 64 : 16)) : std::min(32, round_up(s.v, 16));
  if (machine.warpgroups) c.programs = 2;
  return c;
}

}  // namespace detail

/// Tiles and strategy for a problem on a machine, chunks prepared first (or row by row).
inline GlaPlan gla_prepared_plan(DType dtype, const GlaSizes& s, const Machine& machine) {
  GlaPlan p;
  const GlaChunkConfig c = detail::gla_chunk_config(dtype, s, machine);
  const bool f32 = dtype == DType::f32;
  const int k16 = round_up(s.k, 16), whole_k = detail::gla_whole_k(s, machine);

  p.prepare = c;
  // Products of single warps keep their operands in registers, too: half the channels.
  p.prepare.BK = std::min(!machine.gpu ? 128 : f32 || (!machine.warpgroups && s.k > 64) ? 32 : 64, k16);
  p.prepare.one_block = p.prepare.BK >= s.k;
  // A chunk is a long chain of small products: two programs of a multiprocessor take turns (K = 128, 16384 x 16 rows on
  // an H100: 0.164 ms; with a producer that reads ahead 0.188, three programs 0.21).
  if (machine.warpgroups && !f32) p.prepare.programs = 2;
  p.prepare.mild = machine.warpgroups && dtype == DType::bf16;
  p.prepare = tuned("gla_prepare_chunks", machine.model, gla_tuning_key(dtype, s), p.prepare);

  p.pass = detail::gla_pass_config(dtype, s, machine);
  p.scan = detail::gla_scan_config(c, machine);

  p.output = c;
  p.output.BV = std::min(machine.gpu ? 64 : 128, round_up(s.v, 16));
  if (s.k > detail::kGlaStateRows) {
    p.states = GlaStates::in_memory;
    p.output.BK = 64;
    return p;
  }
  p.output.BK = whole_k;
  if (machine.gpu && f32) {
    p.output.BV = std::min(32, p.output.BV), p.output.warps = 8;
  } else if (machine.gpu && whole_k >= 128 && s.v > 64) {
    // Two warpgroups and 128 columns: rows of q_g, k_g and a are read half as often. Beside 256 x 128 states there is
    // room for one stage of q_g and two of the others (8 to 10 % faster than one of each); on GPUs short of it for 256
    // x 32 and one stage.
    p.output.BV = 128, p.output.warps = 8;
    if (whole_k > 128 && !machine.warpgroups) p.output.stages = 1;
    if (whole_k > 128 && machine.short_of_shared()) p.output.BV = 32, p.output.warps = 4;
  }
  p.output = tuned("gla_scan_output", machine.model, gla_tuning_key(dtype, s), p.output);
  int64_t programs = s.sequences * s.heads * cdiv(s.v, int64_t{p.output.BV});
  p.output.segment = detail::gla_segment(programs, cdiv(s.longest, int64_t{c.BT}), machine.multiprocessors,
                                         machine.gpu && p.output.warps == 4 ? 2 : 1);
  if (p.output.segment) p.states = GlaStates::segments, p.pass.segment = p.output.segment;
  if (!machine.gpu) {
    p.recurrence = default_gla_recurrent_config(s.k, s.v, machine);
    p.recurrence.varlen = s.varlen;
    // Rows follow each other: every thread needs a head, or columns of one, of its own.
    if (s.sequences * s.heads * cdiv(s.v, int64_t{p.recurrence.BV}) >= machine.multiprocessors)
      p.states = GlaStates::by_row;
  }
  return p;
}

/// Where all of a chunk has room on chip.
inline std::optional<GlaPlan> gla_fused_plan(DType dtype, const GlaSizes& s, const Machine& machine) {
  const int whole_k = detail::gla_whole_k(s, machine);
  if (!machine.warpgroups || dtype == DType::f32 || whole_k > detail::kGlaFusedRows || s.v > detail::kGlaFusedColumns)
    return std::nullopt;
  GlaPlan p;
  p.states = GlaStates::fused;
  p.prepare = p.output = detail::gla_chunk_config(dtype, s, machine);
  p.output.stages = 1;  // operands are in registers long before the next chunk's are wanted
  p.output.BK = whole_k, p.output.BV = round_up(s.v, s.v > 32 ? 64 : 16);
  p.output.warps = whole_k * p.output.BV > 64 * 64 ? 8 : 4;
  p.output.mild = dtype == DType::bf16;
  p.output = tuned("gla_fused", machine.model, gla_tuning_key(dtype, s), p.output);
  p.pass = detail::gla_effects_config(dtype, s, machine), p.scan = detail::gla_scan_config(p.prepare, machine);
  p.output.segment = p.pass.segment = detail::gla_segment(s.sequences * s.heads, cdiv(s.longest, int64_t{p.output.BT}),
                                                          machine.multiprocessors, p.output.warps == 4 ? 2 : 1);
  return p;
}

/// Tiles and strategy for a problem on a machine.
inline GlaPlan gla_plan(DType dtype, const GlaSizes& s, const Machine& machine) {
  if (auto fused = gla_fused_plan(dtype, s, machine)) return *fused;
  return gla_prepared_plan(dtype, s, machine);
}

/// What the kernels pass to each other; made for sizes and a plan.
template <class T>
struct GlaChunkWorkspace {
  TensorView<T, 4> q_g, k_g;       ///< [B, H, L, K]
  TensorView<T, 4> a;              ///< [B, H, L, BT]
  TensorView<float, 3> decay;      ///< [C, H, K]
  TensorView<T, 4> states{};       ///< [C, H, K, V], in_memory only
  TensorView<float, 4> effects{};  ///< [sequences * segments, H, K, V] of segments on a zero state, if any
  TensorView<float, 4> starts{};   ///< [sequences * segments, H, K, V]: what they begin with
  TensorView<float, 3> total{};    ///< [sequences * segments, H, K]: their decays

  static Result<GlaChunkWorkspace> create(const std::shared_ptr<Device>& device, const GlaSizes& s, const GlaPlan& p) {
    GlaChunkWorkspace w;
    if (p.states == GlaStates::by_row) return w;
    const bool fused = p.states == GlaStates::fused;
    int64_t chunks = s.chunks(p.prepare.BT), parts = s.sequences * p.segments(s);
    bool ok = fused || (w.take(device, w.q_g, {s.batch, s.heads, s.rows, s.k}) &&
                        w.take(device, w.k_g, {s.batch, s.heads, s.rows, s.k}) &&
                        w.take(device, w.a, {s.batch, s.heads, s.rows, p.prepare.BT}) &&
                        w.take(device, w.decay, {chunks, s.heads, s.k}));
    if (ok && p.states == GlaStates::in_memory) ok = w.take(device, w.states, {chunks, s.heads, s.k, s.v});
    if (ok && p.is_cut())
      ok = w.take(device, w.effects, {parts, s.heads, s.k, s.v}) &&
           w.take(device, w.starts, {parts, s.heads, s.k, s.v}) && w.take(device, w.total, {parts, s.heads, s.k});
    if (!ok) return *w.error_;
    return w;
  }

  template <class E, size_t R>
  bool take(const std::shared_ptr<Device>& device, TensorView<E, static_cast<int>(R)>& view,
            const int64_t (&shape)[R]) {
    std::array<int64_t, R> sizes;
    int64_t count = 1;
    for (size_t d = 0; d < R; ++d) sizes[d] = shape[d], count *= shape[d];
    Result<DeviceMemory> memory = DeviceMemory::allocate(device, static_cast<size_t>(count) * sizeof(E));
    if (!memory) return error_ = memory.error(), false;
    view = TensorView<E, static_cast<int>(R)>(static_cast<E*>(memory->data()), sizes);
    memory_.push_back(std::move(*memory));
    return true;
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  std::vector<DeviceMemory> memory_;
  std::optional<Error> error_;
};

namespace detail {

template <class T>
Status check_gla_inputs(const char* name, const GlaInputs<T>& in) {
  auto [b, h, l, k] = in.Q.shape;
  GlaSizes s = in.sizes();
  ShapeCheck check(name);
  check.shape("K", in.K, {b, h, l, k}, "[B, H, L, K]")
      .shape("G", in.G, {b, h, l, k}, "[B, H, L, K]")
      .shape("V", in.V, {b, h, l, -1}, "[B, H, L, V]")
      .require(!s.varlen || b == 1, "packed sequences need B = 1, found B = {}", b)
      .require(!s.varlen || s.sequences >= 1, "cu_seqlens needs at least 2 entries, found {}", in.cu_seqlens.shape[0])
      .require(!s.varlen || in.longest >= 1 || l == 0,
               "packed sequences need the length of the longest one, found longest = {}", in.longest);
  if (in.H0.data) check.shape("H0", in.H0, {s.sequences, h, k, s.v}, "[sequences, H, K, V]");
  return check.ok() ? Status(Ok{}) : Status(check.error());
}

/// One launch of a pass over the states (see gla_state_pass_program).
template <class T>
struct GlaStateLaunch {
  GlaChunkConfig config;
  GlaSizes sizes;
  int64_t segments = 1;
  TensorView<const T, 4> x, y;
  TensorView<const float, 3> decay;
  TensorView<const int32_t, 1> cu_seqlens{};
  TensorView<const float, 4> start{};
  TensorView<float, 4> end{};
  TensorView<float, 3> total{};
  TensorView<T, 4> states{};

  Status run(StreamAt stream) const {
    const void* memory = decay.data;
    Grid grid{sizes.sequences * sizes.heads * cdiv(sizes.k, int64_t{config.BK}) * cdiv(sizes.v, int64_t{config.BV}),
              segments, 1};
    return gla_state_pass_kernel<T>().try_launch(stream, config, grid, x, y, decay, or_unused(cu_seqlens, memory),
                                                 or_unused(start, memory), or_unused(end, memory),
                                                 or_unused(total, memory), or_unused(states, memory));
  }
};

/// What segments of `length` chunks do to a state (`reverse`: to the gradient of one), and the states they begin with.
template <class T>
struct GlaSegmentLaunch {
  GlaChunkConfig effects, scan;
  GlaSizes sizes;
  int64_t segments;
  int length;
  TensorView<const T, 4> x, y;
  TensorView<const float, 4> g;
  TensorView<const int32_t, 1> cu_seqlens;
  TensorView<const float, 4> start;
  TensorView<float, 4> end;
  TensorView<float, 4> made, starts;
  TensorView<float, 3> total;
  bool reverse = false;
  float scale = 1;

  Status run_effects(StreamAt stream) const {
    // That of the last one only the state behind it needs.
    const bool all = end.data != nullptr;
    const Grid grid{programs(effects), segments - (all ? 0 : 1), 1};
    GlaChunkConfig c = effects;
    c.segment = length, c.reverse = reverse;
    return gla_segment_effects_kernel<T>().try_launch(stream, c, grid, x, y, g, or_unused(cu_seqlens, g.data), made,
                                                      total, scale, static_cast<int32_t>(segments),
                                                      int32_t{reverse && !all});
  }
  Status run_scan(StreamAt stream) const {
    GlaChunkConfig c = scan;
    c.BT = effects.BT, c.varlen = effects.varlen, c.segment = length, c.reverse = reverse;
    c.initial_state = start.data != nullptr, c.final_state = end.data != nullptr;
    return gla_segment_scan_kernel().try_launch(
        stream, c, Grid{programs(scan)}, made, total, or_unused(cu_seqlens, g.data), or_unused(start, g.data), starts,
        or_unused(end, g.data), static_cast<int32_t>(sizes.rows), static_cast<int32_t>(segments));
  }

 private:
  int64_t programs(const GlaChunkConfig& c) const {
    return sizes.sequences * sizes.heads * cdiv(sizes.k, int64_t{c.BK}) * cdiv(sizes.v, int64_t{c.BV});
  }
};

template <class T>
Status gla_prepare_launch(StreamAt stream, const GlaInputs<T>& in, const GlaChunkWorkspace<T>& w,
                          const GlaChunkConfig& c) {
  GlaSizes s = in.sizes();
  Grid grid{s.sequences * s.heads, cdiv(s.longest, int64_t{c.BT}), 1};
  return gla_prepare_chunks_kernel<T>().try_launch(
      stream, c, grid, in.Q, in.K, in.G, or_unused(in.cu_seqlens, w.decay.data), w.q_g, w.k_g, w.a, w.decay, in.scale);
}

template <class T>
Status check_gla_forward(const GlaInputs<T>& in, const TensorView<T, 4>& O, const TensorView<float, 4>& HT,
                         const GlaChunkWorkspace<T>& w, const GlaPlan& p) {
  if (Status s = check_gla_inputs("gla_forward", in); !s) return s;
  GlaSizes s = in.sizes();
  if (p.states == GlaStates::by_row) return Ok{};  // gla_recurrent looks at everything else
  const bool fused = p.states == GlaStates::fused;
  int64_t chunks = s.chunks(p.prepare.BT);
  ShapeCheck check("gla_forward");
  check.shape("O", O, {s.batch, s.heads, s.rows, s.v}, "[B, H, L, V]");
  if (!fused)
    check.shape("workspace.q_g", w.q_g, {s.batch, s.heads, s.rows, s.k}, "[B, H, L, K]")
        .shape("workspace.a", w.a, {s.batch, s.heads, s.rows, p.prepare.BT}, "[B, H, L, BT]")
        .shape("workspace.decay", w.decay, {chunks, s.heads, s.k}, "[chunks, H, K]");
  check
      .require(p.prepare.BT == p.pass.BT && p.prepare.BT == p.output.BT,
               "all kernels of a plan have one BT, found {}, {}, {}", p.prepare.BT, p.pass.BT, p.output.BT)
      .require(fused || !p.prepare.one_block || p.prepare.BK >= s.k, "prepare.one_block needs BK >= K, found {} and {}",
               p.prepare.BK, s.k)
      .require(p.prepare.varlen == s.varlen && p.pass.varlen == s.varlen && p.output.varlen == s.varlen,
               "a plan is made for packed sequences (varlen) or for whole batches, this one for the other")
      .require(p.states == GlaStates::in_memory || p.output.BK >= s.k,
               "a state on chip holds all of K: BK = {} is less than K = {}", p.output.BK, s.k);
  if (HT.data) check.shape("HT", HT, {s.sequences, s.heads, s.k, s.v}, "[sequences, H, K, V]");
  if (p.states == GlaStates::in_memory)
    check.shape("workspace.states", w.states, {chunks, s.heads, s.k, s.v}, "[chunks, H, K, V]");
  if (p.is_cut())
    check.shape("workspace.starts", w.starts, {s.sequences * p.segments(s), s.heads, s.k, s.v},
                "[sequences * segments, H, K, V]");
  return check.ok() ? Status(Ok{}) : Status(check.error());
}

}  // namespace detail

/// The launches of a forward pass, to time one of them alone.
enum GlaPart : uint32_t { kGlaPrepare = 1, kGlaPass = 2, kGlaScan = 4, kGlaOutput = 8, kGlaAll = 15 };

/// O and, where HT has data, the states behind the last rows, [sequences, H, K, V]. Of `parts` only those run; the
/// others must have left their results in the workspace before.
template <class T>
Status gla_forward(StreamAt stream, const std::type_identity_t<GlaInputs<T>>& in, TensorView<T, 4> O,
                   TensorView<float, 4> HT, const GlaChunkWorkspace<T>& w, const GlaPlan& p, uint32_t parts = kGlaAll) {
  if (Status s = detail::check_gla_forward<T>(in, O, HT, w, p); !s) return stream.refuse(s.error());
  using detail::or_unused;
  const GlaSizes s = in.sizes();
  const void* memory = in.Q.data;
  const bool from_given = in.H0.data != nullptr, to_given = HT.data != nullptr;
  if (p.states == GlaStates::by_row) {
    GlaConfig config = p.recurrence;
    config.initial_state = from_given, config.final_state = to_given;
    if (!(parts & kGlaOutput)) return Ok{};
    return gla_recurrent<T>(stream, in.Q, in.K, in.V, in.G, O, in.H0, HT, in.scale, config, {}, in.cu_seqlens);
  }
  const auto cu_seqlens = or_unused(in.cu_seqlens, memory);
  const auto first = or_unused(in.H0, memory);
  const auto last = or_unused(HT, memory);
  const int64_t v_blocks = cdiv(s.v, int64_t{p.output.BV}), segments = p.segments(s);

  detail::GlaStateLaunch<T> pass{p.pass, s, segments, w.k_g, in.V, w.decay, in.cu_seqlens};
  if (p.states == GlaStates::in_memory) {
    pass.config.segment = 0, pass.config.chunk_states = true;
    pass.config.initial_state = from_given, pass.config.final_state = to_given;
    pass.start = in.H0, pass.end = HT, pass.states = w.states;
  } else {
    pass.config.segment = p.output.segment, pass.config.total_decay = pass.config.final_state = true;
    pass.end = w.effects, pass.total = w.total;
  }
  GlaChunkConfig output = p.output;
  const detail::GlaSegmentLaunch<T> segment{p.pass,        p.scan, s,  segments,  p.output.segment, in.K,   in.V, in.G,
                                            in.cu_seqlens, in.H0,  HT, w.effects, w.starts,         w.total};
  const bool fused = p.states == GlaStates::fused;
  const bool cut = p.is_cut();
  output.initial_state = cut || from_given, output.final_state = !cut && to_given;

  Status done = Ok{};
  auto run = [&](uint32_t part, auto&& launch) {
    if (done && (parts & part)) done = launch();
  };
  if (!fused) run(kGlaPrepare, [&] { return detail::gla_prepare_launch<T>(stream, in, w, p.prepare); });
  if (fused && cut)
    run(kGlaPass, [&] { return segment.run_effects(stream); });
  else if (p.states != GlaStates::on_chip && !fused)
    run(kGlaPass, [&] { return pass.run(stream); });
  if (cut) run(kGlaScan, [&] { return segment.run_scan(stream); });
  run(kGlaOutput, [&] {
    if (p.states == GlaStates::in_memory) {
      Grid grid{s.sequences * s.heads * v_blocks, cdiv(s.longest, int64_t{output.BT}), 1};
      return gla_chunk_output_kernel<T>().try_launch(stream, output, grid, w.q_g, in.V, w.a, w.states, cu_seqlens, O);
    }
    Grid grid{s.sequences * s.heads * v_blocks, segments, 1};
    TensorView<const float, 4> start = first;
    if (cut) start = w.starts;
    if (fused)
      return gla_fused_kernel<T>().try_launch(stream, output, grid, in.Q, in.K, in.V, in.G, cu_seqlens, O, start, last,
                                              in.scale);
    return gla_scan_output_kernel<T>().try_launch(stream, output, grid, w.q_g, w.k_g, in.V, w.a, w.decay, cu_seqlens, O,
                                                  start, last);
  });
  return done;
}

}  // namespace tile::kernels
