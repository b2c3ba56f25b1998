// gated_linear_attention.h - gated linear attention forward (Yang et al. 2024): the recurrence, and the chunked form in
// five steps. q, k, g are [B, H, L, K], v and o are [B, H, L, V]; g (f32, <= 0) is the natural log of the decay of each
// key channel:
//   h_t = diag(e^{g_t}) h_{t-1} + k_t v_t^T        o_t = scale q_t^T h_t
//
// The chunked form cuts L into windows of BT rows and K into NK blocks of BK channels. With G the inclusive sums of g /
// ln 2 inside a window (so that decays are powers of two) and G_end its last row:
//   1 gla_decay_cumsum     G
//   2 gla_prepare          q_g = scale q 2^G,  k_g = k 2^{G_end - G}
//   3 gla_inter_chunk      o = q_g h,  then h = diag(2^{G_end}) h + k_g^T v, window after window; one partial o per K
//   block 4 gla_inner_scores     A_tj = scale sum_k q_t k_j 2^{G_t - G_j} for j <= t in one window; one partial A per K
//   block 5 gla_combine          o = sum of the partial o + (sum of the partial A) v
// No exponent in it is positive, so nothing overflows however strong the decay. Rows of g past L read as 0, which
// decays nothing.
#pragma once
#include "parts/gla_chunks.h"

namespace tile::kernels {

struct GlaConfig {
  int BT = 16;           ///< rows of a window
  int BK = 64, BV = 64;  ///< channels of K and V per program; the recurrence needs BK >= K
  // The recurrence only:
  bool initial_state = false, final_state = false;
  int together = 1;          ///< rows in one pass over the state: more arithmetic that is not on the state, less on it
  bool value_gates = false;  ///< decays of value channels too
  bool reverse = false;      ///< from the last row to the first
  bool varlen = false;       ///< B = 1; sequence n is rows [cu_seqlens[n], cu_seqlens[n + 1])
  int stages = 2;
  int warps = 2;
};

namespace detail {

/// program_id(2) counts batch * heads.
struct BatchHead {
  Tile batch, head;
  explicit BatchHead(const Tile& heads) : batch(program_id(2) / heads), head(program_id(2) % heads) {}
};

/// What the recurrence reads of one row, keys and queries as columns, values as rows of the state.
struct GlaRow {
  Tile q, k, decay, v, value_decay;
};

/// The outputs of rows that follow each other; `h` becomes the state behind them. Of the state in front of all of them
/// each query, decayed from the first row on, takes its part; of each other the rows themselves, keys and values
/// decayed from the one row to the other. So the state is read once and written once for all rows.
inline std::vector<Tile> gla_rows_together(const GlaConfig& c, Tile& h, std::vector<GlaRow> rows) {
  std::vector<Tile> queries, inside, value_decays;
  Tile decay, value_decay;
  for (size_t t = 0; t < rows.size(); ++t) {
    decay = t ? decay * rows[t].decay : rows[t].decay;
    if (c.value_gates) value_decay = t ? value_decay * rows[t].value_decay : rows[t].value_decay;
    for (size_t u = 0; u < t; ++u) {
      rows[u].k = rows[u].k * rows[t].decay;
      if (c.value_gates) rows[u].v = rows[u].v * rows[t].value_decay;
    }
    Tile o;
    for (size_t u = 0; u <= t; ++u) {
      Tile part = sum(rows[t].q * rows[u].k, axis(0)) * rows[u].v;
      o = u ? o + part : part;
    }
    inside.push_back(o);
    queries.push_back(rows[t].q * decay);
    value_decays.push_back(value_decay);
  }
  std::vector<Tile> outputs;
  for (size_t t = 0; t < rows.size(); ++t) {
    Tile before = sum(queries[t] * h, axis(0));
    outputs.push_back(inside[t] + (c.value_gates ? before * value_decays[t] : before));
  }
  h = c.value_gates ? h * value_decay * decay : h * decay;
  for (const GlaRow& row : rows) h = fma(row.k, row.v, h);
  return outputs;
}

}  // namespace detail

/// The recurrence, `together` rows at a time with the state [BK, BV] on chip. H0 and HT are [sequences, H, K, V] f32:
/// state before the first and after the last row walked; GV is [B, H, L, V], log decays of value channels (any valid
/// view where the config does not use them). Grid {1, ceil(V / BV), sequences * H}.
template <class T>
void gla_recurrent_program(const GlaConfig& c, Tensor<const T, 4> Q, Tensor<const T, 4> K, Tensor<const T, 4> V,
                           Tensor<const float, 4> G, Tensor<T, 4> O, Tensor<const float, 4> H0, Tensor<float, 4> HT,
                           F32 scale, Tensor<const float, 4> GV, Tensor<const int32_t, 1> CU_SEQLENS) {
  num_warps(c.warps);
  detail::GlaSpan at(c.varlen, c.BT, program_id(2), Q.dim(1), Q.dim(2), CU_SEQLENS);
  auto v0 = program_id(1) * c.BV;
  auto q_rows = at.rows(Q), k_rows = at.rows(K), v_rows = at.rows(V);
  auto g_rows = at.rows(G), gv_rows = at.rows(GV);
  auto o_rows = at.rows(O);
  Tile h = c.initial_state ? H0.load({at.sequence, at.head, 0, v0}, {c.BK, c.BV}) : zeros({c.BK, c.BV}, f32);
  auto row_at = [&](const Tile& t) {
    detail::GlaRow row;
    row.q = cast(q_rows.load({at.batch, at.head, t, 0}, {c.BK}), f32).col() * scale;
    row.k = cast(k_rows.load({at.batch, at.head, t, 0}, {c.BK}), f32).col();
    row.decay = exp2(g_rows.load({at.batch, at.head, t, 0}, {c.BK}) * kLog2E).col();
    row.v = cast(v_rows.load({at.batch, at.head, t, v0}, {c.BV}), f32).row();
    if (c.value_gates) row.value_decay = exp2(gv_rows.load({at.batch, at.head, t, v0}, {c.BV}) * kLog2E).row();
    return row;
  };
  auto store = [&](const Tile& t, const Tile& o) {
    o_rows.store({at.batch, at.head, t, v0}, cast(reshape(o, {c.BV}), dtype_of<T>()));
  };
  for (auto i : range(0, at.length, c.together, {.stages = c.stages})) {
    auto t = c.reverse ? at.length - 1 - i : Tile(i);
    if (c.together > 1) {
      // Rows behind the last one are 0: they decay nothing, and are not stored.
      std::vector<Tile> numbers;
      std::vector<detail::GlaRow> rows;
      for (int n = 0; n < c.together; ++n) numbers.push_back(n ? (c.reverse ? t - n : t + n) : Tile(t));
      for (const Tile& number : numbers) rows.push_back(row_at(number));
      const std::vector<Tile> outputs = detail::gla_rows_together(c, h, rows);
      for (int n = 0; n < c.together; ++n) store(numbers[n], outputs[n]);
      continue;
    }
    const detail::GlaRow row = row_at(t);
    if (c.value_gates) h *= row.value_decay;
    h = fma(h, row.decay, row.k * row.v);
    store(t, sum(row.q * h, axis(0)));
  }
  if (c.final_state) HT.store({at.sequence, at.head, 0, v0}, h);
}

/// Step 1. G_SUM is [B, H, L, K] f32. Grid {ceil(K / BK), ceil(L / BT), B H}.
inline void gla_decay_cumsum_program(const GlaConfig& c, Tensor<const float, 4> G, Tensor<float, 4> G_SUM) {
  num_warps(c.warps);
  detail::BatchHead at(G.dim(1));
  auto k0 = program_id(0) * c.BK, t0 = program_id(1) * c.BT;
  auto g = G.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
  G_SUM.store({at.batch, at.head, t0, k0}, cumsum(g * kLog2E, axis(0)));
}

/// Step 2. Q_G and K_G are [B, H, L, K] of q's type. Grid {ceil(K / BK), ceil(L / BT), B H}.
template <class T>
void gla_prepare_program(const GlaConfig& c, Tensor<const T, 4> Q, Tensor<const T, 4> K, Tensor<const float, 4> G_SUM,
                         Tensor<T, 4> Q_G, Tensor<T, 4> K_G, F32 scale) {
  num_warps(c.warps);
  detail::BatchHead at(Q.dim(1));
  auto k0 = program_id(0) * c.BK, t0 = program_id(1) * c.BT;
  auto last = min(t0 + c.BT, Q.dim(2)) - 1;  // a short last window ends before BT rows
  auto g = G_SUM.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
  auto g_end = G_SUM.load({at.batch, at.head, last, k0}, {c.BK}).row();
  auto q = cast(Q.load({at.batch, at.head, t0, k0}, {c.BT, c.BK}), f32);
  auto k = cast(K.load({at.batch, at.head, t0, k0}, {c.BT, c.BK}), f32);
  Q_G.store({at.batch, at.head, t0, k0}, cast(q * exp2(g) * scale, dtype_of<T>()));
  K_G.store({at.batch, at.head, t0, k0}, cast(k * exp2(g_end - g), dtype_of<T>()));
}

/// Step 3. O_PART is [NK, B H, L, V] f32, NK = ceil(K / BK): the part of o that comes from earlier windows, one partial
/// sum for each block of key channels. Grid {NK, ceil(V / BV), B H}.
template <class T>
void gla_inter_chunk_program(const GlaConfig& c, Tensor<const T, 4> Q_G, Tensor<const T, 4> K_G, Tensor<const T, 4> V,
                             Tensor<const float, 4> G_SUM, Tensor<float, 4> O_PART) {
  num_warps(c.warps);
  detail::BatchHead at(V.dim(1));
  auto block = program_id(0), k0 = block * c.BK, v0 = program_id(1) * c.BV, length = V.dim(2);
  Tile h = zeros({c.BK, c.BV}, f32);
  for (auto t0 : range(0, length, c.BT, {.stages = c.stages})) {
    auto q_g = Q_G.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
    auto k_g = K_G.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
    auto v = V.load({at.batch, at.head, t0, v0}, {c.BT, c.BV});
    auto g_end = G_SUM.load({at.batch, at.head, min(t0 + c.BT, length) - 1, k0}, {c.BK});
    O_PART.store({block, program_id(2), t0, v0}, dot(q_g, cast(h, dtype_of<T>())));
    h = dot(trans(k_g), v, h * exp2(g_end).col());
  }
}

/// Step 4. A_PART is [NK, B H, L, BT] f32: row t holds the scores of t against the rows of its window, 0 right of t.
/// Grid {NK, ceil(L / BT), B H}.
template <class T>
void gla_inner_scores_program(const GlaConfig& c, Tensor<const T, 4> Q, Tensor<const T, 4> K,
                              Tensor<const float, 4> G_SUM, Tensor<float, 4> A_PART, F32 scale) {
  num_warps(c.warps);
  detail::BatchHead at(Q.dim(1));
  auto block = program_id(0), k0 = block * c.BK, t0 = program_id(1) * c.BT;
  auto k = cast(K.load({at.batch, at.head, t0, k0}, {c.BT, c.BK}), f32);
  auto row = arange(0, c.BT).col();
  // Keys are decayed from row to row: one exponential for each row, not for each pair of rows.
  Tile keys = zeros({c.BT, c.BK}, f32), before = zeros({1, c.BK}, f32);
  for (auto i : range(0, min(Q.dim(2) - t0, c.BT))) {
    auto q_i = cast(Q.load({at.batch, at.head, t0 + i, k0}, {c.BK}), f32).row();
    auto g_i = G_SUM.load({at.batch, at.head, t0 + i, k0}, {c.BK}).row();
    keys = where(row == i, k, keys * exp2(g_i - before));
    before = g_i;
    auto scores = sum(q_i * keys, axis(1)) * scale;
    A_PART.store({block, program_id(2), t0 + i, 0}, reshape(scores, {c.BT}));
  }
}

/// Step 5. O is [B, H, L, V] of v's type. Grid {ceil(V / BV), ceil(L / BT), B H}.
template <class T>
void gla_combine_program(const GlaConfig& c, Tensor<const T, 4> V, Tensor<const float, 4> O_PART,
                         Tensor<const float, 4> A_PART, Tensor<T, 4> O) {
  num_warps(c.warps);
  detail::BatchHead at(V.dim(1));
  auto v0 = program_id(0) * c.BV, t0 = program_id(1) * c.BT;
  Tile a = zeros({c.BT, c.BT}, f32), o = zeros({c.BT, c.BV}, f32);
  for (auto block : range(0, A_PART.dim(0))) {
    a += A_PART.load({block, program_id(2), t0, 0}, {c.BT, c.BT});
    o += O_PART.load({block, program_id(2), t0, v0}, {c.BT, c.BV});
  }
  auto v = V.load({at.batch, at.head, t0, v0}, {c.BT, c.BV});
  O.store({at.batch, at.head, t0, v0}, cast(dot(cast(a, dtype_of<T>()), v, o), dtype_of<T>()));
}

template <class T>
const auto& gla_recurrent_kernel() {
  static const auto k = kernel(typed_name("gla_recurrent", dtype_of<T>()), gla_recurrent_program<T>)
                            .grid([](const GlaConfig& c, const auto&, const auto&, const auto& v, const auto&,
                                     const auto&, const auto&, const auto&, const auto&, const auto&, const auto& cu) {
                              int64_t sequences = c.varlen ? cu.shape[0] - 1 : v.shape[0];
                              return Grid{1, cdiv(v.shape[3], c.BV), sequences * v.shape[1]};
                            });
  return k;
}
inline const auto& gla_decay_cumsum_kernel() {
  static const auto k =
      kernel("gla_decay_cumsum", gla_decay_cumsum_program).grid([](const GlaConfig& c, const auto& g, const auto&) {
        return Grid{cdiv(g.shape[3], c.BK), cdiv(g.shape[2], c.BT), g.shape[0] * g.shape[1]};
      });
  return k;
}
template <class T>
const auto& gla_prepare_kernel() {
  static const auto k = kernel(typed_name("gla_prepare", dtype_of<T>()), gla_prepare_program<T>)
                            .grid([](const GlaConfig& c, const auto& q, const auto&...) {
                              return Grid{cdiv(q.shape[3], c.BK), cdiv(q.shape[2], c.BT), q.shape[0] * q.shape[1]};
                            });
  return k;
}
template <class T>
const auto& gla_inter_chunk_kernel() {
  static const auto k = kernel(typed_name("gla_inter_chunk", dtype_of<T>()), gla_inter_chunk_program<T>)
                            .grid([](const GlaConfig& c, const auto& q, const auto&, const auto& v, const auto&...) {
                              return Grid{cdiv(q.shape[3], c.BK), cdiv(v.shape[3], c.BV), v.shape[0] * v.shape[1]};
                            });
  return k;
}
template <class T>
const auto& gla_inner_scores_kernel() {
  static const auto k = kernel(typed_name("gla_inner_scores", dtype_of<T>()), gla_inner_scores_program<T>)
                            .grid([](const GlaConfig& c, const auto& q, const auto&...) {
                              return Grid{cdiv(q.shape[3], c.BK), cdiv(q.shape[2], c.BT), q.shape[0] * q.shape[1]};
                            });
  return k;
}
template <class T>
const auto& gla_combine_kernel() {
  static const auto k = kernel(typed_name("gla_combine", dtype_of<T>()), gla_combine_program<T>)
                            .grid([](const GlaConfig& c, const auto& v, const auto&...) {
                              return Grid{cdiv(v.shape[3], c.BV), cdiv(v.shape[2], c.BT), v.shape[0] * v.shape[1]};
                            });
  return k;
}

inline GlaConfig default_gla_config(int64_t k, int64_t v, const Machine& machine) {
  // Work inside windows grows with their length: GPUs take windows that fill an operand of their products, hosts half
  // of them. Fewer blocks of K make fewer partial sums.
  GlaConfig c;
  c.BT = machine.gpu ? 16 : 8;
  const int widest = machine.gpu ? 64 : 128;
  c.BK = std::min(widest, round_up(k, 16)), c.BV = std::min(widest, round_up(v, 16));
  c.warps = machine.gpu ? 2 : 1, c.stages = machine.gpu ? 2 : 1;
  return c;
}
inline GlaConfig default_gla_recurrent_config(int64_t k, int64_t v, const Machine& machine) {
  GlaConfig c = default_gla_config(k, v, machine);
  c.BK = round_up(k, 16);
  // On hosts rows go together: the state is walked once for all of them, out of the caches next to the core.
  c.together = machine.gpu ? 1 : 4;
  c.BV = std::min(machine.gpu ? 32 : std::clamp(16384 / std::max(c.BK, 16) / 16 * 16, 16, 128), round_up(v, 16));
  c.warps = machine.gpu ? 4 : 1;
  return c;
}

namespace detail {
/// Shapes every entry point shares: q, k, g are [B, H, L, K], v and o are [B, H, L, V].
template <class T>
Status check_gla(const char* name, const Input<T, 4>& Q, const Input<T, 4>& K, const Input<T, 4>& V,
                 const TensorView<const float, 4>& G, const TensorView<T, 4>& O) {
  auto [b, h, l, k] = Q.shape;
  ShapeCheck check(name);
  check.shape("K", K, {b, h, l, k}, "[B, H, L, K]")
      .shape("G", G, {b, h, l, k}, "[B, H, L, K]")
      .shape("V", V, {b, h, l, -1}, "[B, H, L, V]")
      .shape("O", O, {b, h, l, V.shape[3]}, "[B, H, L, V]");
  return check.ok() ? Status(Ok{}) : Status(check.error());
}
}  // namespace detail

/// The recurrence. H0 (read with config.initial_state) and HT (written with config.final_state) are [sequences, H, K,
/// V], GV (with config.value_gates) is [B, H, L, V], cu_seqlens (with config.varlen) has one entry more than sequences.
template <class T>
Status gla_recurrent(StreamAt stream, Input<T, 4> Q, Input<T, 4> K, Input<T, 4> V, TensorView<const float, 4> G,
                     TensorView<T, 4> O, TensorView<const float, 4> H0, TensorView<float, 4> HT, float scale,
                     const GlaConfig& config, TensorView<const float, 4> GV = {},
                     TensorView<const int32_t, 1> cu_seqlens = {}) {
  if (Status s = detail::check_gla<T>("gla_recurrent", Q, K, V, G, O); !s) return stream.refuse(s.error());
  auto [b, h, l, k] = Q.shape;
  int64_t v = V.shape[3], sequences = config.varlen ? cu_seqlens.shape[0] - 1 : b;
  ShapeCheck check("gla_recurrent");
  check.require(!config.varlen || (b == 1 && sequences >= 1),
                "packed sequences need B = 1 and two boundaries, found B = {} and {}", b, cu_seqlens.shape[0]);
  if (config.initial_state) check.shape("H0", H0, {sequences, h, k, v}, "[sequences, H, K, V]");
  if (config.final_state) check.shape("HT", HT, {sequences, h, k, v}, "[sequences, H, K, V]");
  if (config.value_gates) check.shape("GV", GV, {b, h, l, v}, "[B, H, L, V]");
  check.require(config.BK >= k, "the state holds all of K: BK = {} is less than K = {}", config.BK, k);
  if (!check.ok()) return stream.refuse(check.error());
  using detail::or_unused;
  return gla_recurrent_kernel<T>().try_call(stream, config, Q, K, V, G, O, or_unused(H0, G.data), or_unused(HT, G.data),
                                            scale, or_unused(GV, G.data), or_unused(cu_seqlens, G.data));
}

/// What the five steps pass to each other.
template <class T>
struct GlaWorkspace {
  TensorView<float, 4> g_sum;   ///< [B, H, L, K]
  TensorView<T, 4> q_g, k_g;    ///< [B, H, L, K]
  TensorView<float, 4> o_part;  ///< [NK, B H, L, V]
  TensorView<float, 4> a_part;  ///< [NK, B H, L, BT]

  static Result<GlaWorkspace> create(const std::shared_ptr<Device>& device, int64_t b, int64_t h, int64_t l, int64_t k,
                                     int64_t v, const GlaConfig& config) {
    GlaWorkspace w;
    int64_t nk = cdiv(k, config.BK);
    Error error;
    auto take = [&]<class E>(TensorView<E, 4>& view, std::array<int64_t, 4> shape) {
      Result<DeviceMemory> memory =
          DeviceMemory::allocate(device, shape[0] * shape[1] * shape[2] * shape[3] * sizeof(E));
      if (!memory) return error = memory.error(), false;
      view = TensorView<E, 4>(static_cast<E*>(memory->data()), shape);
      w.memory_.push_back(std::move(*memory));
      return true;
    };
    if (take(w.g_sum, {b, h, l, k}) && take(w.q_g, {b, h, l, k}) && take(w.k_g, {b, h, l, k}) &&
        take(w.o_part, {nk, b * h, l, v}) && take(w.a_part, {nk, b * h, l, config.BT}))
      return w;
    return error;
  }

 private:
  std::vector<DeviceMemory> memory_;
};

/// The chunked form: five launches. The workspace must be made for these sizes and this config.
template <class T>
Status gla_chunk_forward(StreamAt stream, Input<T, 4> Q, Input<T, 4> K, Input<T, 4> V, TensorView<const float, 4> G,
                         TensorView<T, 4> O, float scale, const GlaWorkspace<T>& w, const GlaConfig& config) {
  if (Status s = detail::check_gla<T>("gla_chunk_forward", Q, K, V, G, O); !s) return stream.refuse(s.error());
  auto [b, h, l, k] = Q.shape;
  ShapeCheck check("gla_chunk_forward");
  check.shape("workspace.g_sum", w.g_sum, {b, h, l, k}, "[B, H, L, K]")
      .shape("workspace.o_part", w.o_part, {cdiv(k, config.BK), b * h, l, V.shape[3]}, "[ceil(K/BK), B H, L, V]")
      .shape("workspace.a_part", w.a_part, {cdiv(k, config.BK), b * h, l, config.BT}, "[ceil(K/BK), B H, L, BT]");
  if (!check.ok()) return stream.refuse(check.error());
  if (Status s = gla_decay_cumsum_kernel().try_call(stream, config, G, w.g_sum); !s) return s;
  if (Status s = gla_prepare_kernel<T>().try_call(stream, config, Q, K, w.g_sum, w.q_g, w.k_g, scale); !s) return s;
  if (Status s = gla_inter_chunk_kernel<T>().try_call(stream, config, w.q_g, w.k_g, V, w.g_sum, w.o_part); !s) return s;
  if (Status s = gla_inner_scores_kernel<T>().try_call(stream, config, Q, K, w.g_sum, w.a_part, scale); !s) return s;
  return gla_combine_kernel<T>().try_call(stream, config, V, w.o_part, w.a_part, O);
}

}  // namespace tile::kernels
