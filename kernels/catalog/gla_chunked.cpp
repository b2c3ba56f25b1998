// gla_chunked.cpp - catalog rows of gla_forward.h: the fast forward, and each of its kernels as a row of its own.
// A kernel's row runs the whole forward with this kernel's config (and the strategy that needs it); with size `only` =
// 1 later launches run that kernel alone on what the first run left: for timing.
#include "kernels/catalog/gla_case.h"
#include "kernels/catalog/rows.h"
#include "kernels/gla_forward.h"

namespace tile::kernels {
namespace {

/// The kernels of the forward pass; `all` is the row of the whole.
enum class Part { all, prepare, pass, scan, output, chunk_output, fused, effects };

GlaSizes sizes_of(const GlaProblemSizes& s) {
  return {s.b, s.h, s.l, s.k, s.v, s.sequences(), s.longest(), s.packed > 0};
}

/// Part of the plan that makes everything of a chunk in one kernel.
bool is_fused(Part part) { return part == Part::fused || part == Part::effects; }

GlaPlan plan_of(const Problem& p, const Machine& machine, Part part) {
  const GlaSizes s = sizes_of(GlaProblemSizes(p.sizes));
  const DType dtype = storage_of(p.dtype);
  // Sizes choose strategies for tests: chunks prepared first, "segment" chunks, or states in memory.
  const bool in_memory = part == Part::chunk_output || p.sizes["in_memory"];
  const bool prepared = in_memory || p.sizes["prepared"] || (part != Part::all && !is_fused(part));
  auto fused = prepared ? std::nullopt : gla_fused_plan(dtype, s, machine);
  GlaPlan plan = fused ? *fused : gla_prepared_plan(dtype, s, machine);
  if (is_fused(part) && !fused) {  // on other machines in tests only
    plan.states = GlaStates::fused;
    plan.output.BK = detail::gla_whole_k(s, machine), plan.output.BV = std::min(32, round_up(s.v, 16));
    plan.output.stages = 1, plan.output.warps = 8;
    plan.pass = detail::gla_effects_config(dtype, s, machine),
    plan.scan = detail::gla_scan_config(plan.prepare, machine);
  }
  if (p.sizes.has("BT")) plan.prepare.BT = plan.pass.BT = plan.output.BT = static_cast<int>(p.sizes["BT"]);
  int64_t chunks = cdiv(std::max<int64_t>(s.longest, 1), int64_t{plan.output.BT});
  if (in_memory) {
    plan.states = GlaStates::in_memory, plan.output.segment = 0;
    plan.output.BK = std::min(64, plan.output.BK);
  } else if (part == Part::all && plan.states == GlaStates::by_row && !p.sizes.has("BT") && !p.sizes.has("segment")) {
    return plan;
  } else if (plan.states != GlaStates::in_memory) {
    if (p.sizes.has("segment")) plan.output.segment = static_cast<int>(p.sizes["segment"]);
    if ((part == Part::scan || part == Part::effects) && !plan.output.segment)
      plan.output.segment = static_cast<int>(std::max<int64_t>(1, chunks / 4));
    if (plan.states != GlaStates::fused) plan.states = plan.output.segment ? GlaStates::segments : GlaStates::on_chip;
  }
  plan.pass.segment = plan.scan.segment = plan.output.segment;
  return plan;
}

GlaChunkConfig& config_of(GlaPlan& plan, Part part) {
  switch (part) {
    case Part::prepare:
      return plan.prepare;
    case Part::pass:
    case Part::effects:
      return plan.pass;
    case Part::scan:
      return plan.scan;
    default:
      return plan.output;
  }
}

template <class T>
class ForwardCase : public GlaCase {
 public:
  ForwardCase(const Problem& p, const ConfigWords& words, Part part, const Machine& machine)
      : GlaCase(p, dtype_of<T>()), part_(part), state_(p.sizes["state"]), only_(p.sizes["only"]) {
    plan_ = plan_of(p, machine, part);
    config_of(plan_, part) = gla_scan_output_kernel<T>().from_words(words);
  }

  Status create(std::shared_ptr<Device> device) {
    Steps s;
    s(create_inputs(device))(o_.create(device, tensor(dtype_, s_.v)));
    HostTensor h0(DType::f32, {s_.sequences(), s_.h, s_.k, s_.v});
    if (state_) h0.fill_normal(5);
    s(h0_.create(device, std::move(h0)));
    s(ht_.create(device, HostTensor(DType::f32, {s_.sequences(), s_.h, s_.k, s_.v})));
    s(cu_.create(device, boundaries()));
    Result<GlaChunkWorkspace<T>> w = GlaChunkWorkspace<T>::create(device, sizes_of(s_), plan_);
    s(w);
    if (w) workspace_ = std::move(*w);
    return s.status();
  }
  /// Segments and chunks stay: the workspace was made for them.
  bool set_config(const ConfigWords& words) override {
    const GlaChunkConfig c = gla_scan_output_kernel<T>().from_words(words), &now = config_of(plan_, part_);
    if (c.BT != now.BT || c.segment != now.segment) return false;
    config_of(plan_, part_) = c;
    filled_ = false;
    return true;
  }
  Status launch(Stream& stream) override {
    if (only_ && filled_) return launch_part(stream);
    filled_ = true;
    TensorView<float, 4> end = state_ ? ht_.view<float, 4>() : TensorView<float, 4>();
    return gla_forward<T>(stream, inputs(), o_.view<T, 4>(), end, workspace_, plan_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    filled_ = false;
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Gathered o, state;
    for (int64_t index : heads(budget)) {
      int64_t sequence = index / s_.h, h = index % s_.h;
      Matrix q = rows(q_.host, sequence, h), k = rows(k_.host, sequence, h), v = rows(v_.host, sequence, h),
             g = rows(g_.host, sequence, h), exact_state(s_.k, s_.v), base_state(s_.k, s_.v);
      if (state_) exact_state = base_state = matrix_of(h0_.host, sequence, h);
      Matrix exact = gla_recurrent(q, k, v, g, s_.scale, exact_state, Arithmetic::exact());
      Matrix base = gla_chunked(q, k, v, g, s_.scale, plan_.output.BT, base_state, Arithmetic::working(dtype_));
      o.add(rows(o_.host, sequence, h).values, exact.values, base.values);
      if (state_) state.add(matrix_of(ht_.host, sequence, h).values, exact_state.values, base_state.values);
    }
    std::vector<Check> checks{with_gaps("O", o.compare(o_tolerance(dtype_)), o_.host)};
    if (state_) checks.push_back(with_gaps("HT", state.compare(o_tolerance(dtype_)), ht_.host));
    return checks;
  }
  std::vector<NamedTensor> tensors() const override { return forward_tensors(o_); }
  Work work() const override {
    double t = static_cast<double>(s_.b * s_.h * s_.l), k = static_cast<double>(s_.k), v = static_cast<double>(s_.v);
    return {4 * t * k * v + t * 64 * (k + v), t * (sizeof(T) * (2 * k + 2 * v) + 4 * k)};
  }

 private:
  std::vector<DeviceTensor*> outputs() override {
    return state_ ? std::vector<DeviceTensor*>{&o_, &ht_} : std::vector<DeviceTensor*>{&o_};
  }
  GlaInputs<T> inputs() const {
    GlaInputs<T> in{q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(), g_.view<const float, 4>(),
                    s_.scale};
    if (state_) in.H0 = h0_.view<const float, 4>();
    if (s_.packed) in.cu_seqlens = cu_.view<const int32_t, 1>(), in.longest = s_.longest();
    return in;
  }
  Status launch_part(Stream& stream) {
    TensorView<float, 4> end = state_ ? ht_.view<float, 4>() : TensorView<float, 4>();
    return gla_forward<T>(stream, inputs(), o_.view<T, 4>(), end, workspace_, plan_, part_mask());
  }
  uint32_t part_mask() const {
    switch (part_) {
      case Part::prepare:
        return kGlaPrepare;
      case Part::pass:
      case Part::effects:
        return kGlaPass;
      case Part::scan:
        return kGlaScan;
      case Part::all:
        return kGlaAll;
      default:
        return kGlaOutput;
    }
  }

  Part part_;
  bool state_, only_, filled_ = false;
  GlaPlan plan_;
  GlaChunkWorkspace<T> workspace_;
  DeviceTensor o_, h0_, ht_, cu_;
};

/// L around chunk sizes, K and V off the tile sizes, weak and strong gates, packed sequences, every strategy.
void add_problems(CatalogRow& row) {
  auto edge = [&](const char* dtype, Fields f) { row.problems.push_back({dtype, std::move(f), Purpose::edge}); };
  for (const char* d : {"f16", "bf16", "f32"}) {
    row.problems.push_back({d, {{"B", 2}, {"H", 2}, {"L", 128}, {"K", 64}, {"V", 64}, {"state", 1}}});
    row.problems.push_back({d, {{"H", 2}, {"L", 100}, {"K", 128}, {"V", 96}, {"layout", 1}}});
    for (int64_t l : {1, 15, 16, 17, 63, 64, 65})  // E38
      edge(d, {{"H", 1}, {"L", l}, {"K", 60}, {"V", 33}, {"BT", 64}, {"state", l % 2}});
    edge(d, {{"H", 2}, {"L", 200}, {"K", 48}, {"V", 80}, {"packed", 6}, {"state", 1}});
  }
  edge("f32", {{"H", 1}, {"L", 70}, {"K", 64}, {"V", 32}, {"gate", 0}});
  edge("f16", {{"H", 1}, {"L", 70}, {"K", 100}, {"V", 64}, {"gate", 1}});
  // Decays down to 2^-1700 inside a chunk: any positive exponent anywhere would be infinite.
  for (const char* d : {"f16", "bf16", "f32"})
    edge(d, {{"H", 1}, {"L", 100}, {"K", 32}, {"V", 32}, {"gate", 1}, {"strength", 20}, {"BT", 64}});
  edge("bf16", {{"H", 1}, {"L", 90}, {"K", 320}, {"V", 48}, {"state", 1}});  // K beyond one program
  edge("f32", {{"H", 1}, {"L", 50}, {"K", 512}, {"V", 32}, {"packed", 3}});
  edge("f32", {{"H", 1}, {"L", 300}, {"K", 32}, {"V", 32}, {"BT", 32}, {"segment", 3}, {"state", 1}});
  edge("f16", {{"H", 2}, {"L", 300}, {"K", 64}, {"V", 32}, {"BT", 16}, {"segment", 1}, {"packed", 4}, {"state", 1}});
  edge("bf16", {{"H", 2}, {"L", 150}, {"K", 64}, {"V", 64}, {"in_memory", 1}, {"state", 1}});
  for (int64_t prepared : {0, 1}) {
    edge("bf16", {{"H", 2}, {"L", 330}, {"K", 64}, {"V", 128}, {"segment", 2}, {"state", 1}, {"prepared", prepared}});
    edge("f16", {{"H", 1}, {"L", 200}, {"K", 128}, {"V", 64}, {"state", 1}, {"prepared", prepared}});
  }
  edge("f32", {{"H", 1}, {"L", 150}, {"K", 40}, {"V", 64}, {"in_memory", 1}, {"packed", 5}, {"layout", 1}});
  edge("bf16", {{"H", 1}, {"L", 300}, {"K", 32}, {"V", 16}, {"BT", 128}});
}

std::vector<std::string> forward_size_names() {
  std::vector<std::string> names = gla_size_names();
  for (std::string& name : names)
    if (name.starts_with("BT:")) name = "BT: rows of a chunk (the plan's)";
  names.push_back("state: 1 starts from given states and returns the last ones");
  names.push_back("packed: so many sequences of uneven length in L rows, with cu_seqlens (0: none)");
  names.push_back("segment: chunks per segment (the plan's), 0: state on chip throughout");
  names.push_back("in_memory: 1 keeps the states of all chunks in memory");
  names.push_back("prepared: 1 prepares all chunks first");
  names.push_back("only: 1 times this row's kernel alone");
  return names;
}

template <Part kPart>
CatalogRow part_row(const char* name, const char* summary) {
  CatalogRow row;
  row.name = name;
  row.summary = summary;
  row.dtypes = {"f16", "bf16", "f32"};
  row.sizes = forward_size_names();
  row.default_config = [](const Problem& p, const Machine& machine) {
    GlaPlan plan = plan_of(p, machine, kPart);
    return gla_scan_output_kernel<float>().words(config_of(plan, kPart));
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p,
                   const ConfigWords& c) -> Result<std::unique_ptr<Case>> {
    return with_float_type(p.dtype, [&](auto t) -> Result<std::unique_ptr<Case>> {
      auto made = std::make_unique<ForwardCase<decltype(t)>>(p, c, kPart, Machine::of(device->properties()));
      if (Status s = made->create(device); !s) return s.error();
      return std::unique_ptr<Case>(std::move(made));
    });
  };
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* {
      using T = decltype(t);
      if constexpr (kPart == Part::prepare) return &gla_prepare_chunks_kernel<T>();
      if constexpr (kPart == Part::pass) return &gla_state_pass_kernel<T>();
      if constexpr (kPart == Part::scan) return &gla_segment_scan_kernel();
      if constexpr (kPart == Part::output) return &gla_scan_output_kernel<T>();
      if constexpr (kPart == Part::fused) return &gla_fused_kernel<T>();
      if constexpr (kPart == Part::effects) return &gla_segment_effects_kernel<T>();
      if constexpr (kPart == Part::chunk_output) return &gla_chunk_output_kernel<T>();
      return nullptr;
    });
  };
  if constexpr (kPart == Part::prepare || kPart == Part::output || kPart == Part::fused)
    row.tuning = [](const Problem& p, const Machine& machine) {
      const GlaSizes s = sizes_of(GlaProblemSizes(p.sizes));
      GlaPlan plan = plan_of(p, untuned(machine), kPart);
      if (kPart == Part::output && plan.states == GlaStates::in_memory) return Tuning{};
      const GlaChunkConfig& base = config_of(plan, kPart);
      const char* table = kPart == Part::prepare  ? "gla_prepare_chunks"
                          : kPart == Part::output ? "gla_scan_output"
                                                  : "gla_fused";
      const std::vector<GlaChunkConfig> space = kPart == Part::prepare  ? gla_prepare_space(base, s, machine)
                                                : kPart == Part::output ? gla_scan_space(base, machine)
                                                                        : gla_fused_space(base);
      return Tuning{table, gla_tuning_key(storage_of(p.dtype), s), words_of(gla_scan_output_kernel<float>(), space)};
    };
  add_gla_benches(row);
  return row;
}

/// Kernels of warpgroups and 16-bit products.
template <Part kPart>
CatalogRow fused_row(const char* name, const char* summary) {
  CatalogRow row = part_row<kPart>(name, summary);
  keep_fused_problems(row);
  return row;
}

}  // namespace

CatalogRow gla_forward_row() {
  CatalogRow row = part_row<Part::all>("gla_forward", "gated linear attention, fast: chunks of 64, state on chip");
  row.kernel = nullptr;
  row.parts = {"gla_fused",        "gla_segment_effects", "gla_prepare_chunks", "gla_state_pass",
               "gla_segment_scan", "gla_scan_output",     "gla_chunk_output"};
  row.peers = "chunk_gla of flash-linear-attention";
  add_problems(row);
  return row;
}
CatalogRow gla_prepare_chunks_row() {
  CatalogRow row = part_row<Part::prepare>("gla_prepare_chunks", "decayed queries and keys, scores inside chunks");
  for (const std::string& d : row.dtypes)
    row.problems.push_back({d, {{"H", 1}, {"L", 80}, {"K", 64}, {"V", 16}}, Purpose::edge});
  row.problems.push_back({"bf16", {{"H", 1}, {"L", 80}, {"K", 160}, {"V", 16}, {"packed", 3}}, Purpose::edge});
  // Blocks of K all of which are mild; some; none.
  for (int64_t strength : {6, 13, 20})
    for (int64_t channels : {40, 160})
      row.problems.push_back(
          {"bf16", {{"H", 1}, {"L", 210}, {"K", channels}, {"V", 16}, {"strength", strength}}, Purpose::edge});
  return row;
}
CatalogRow gla_state_pass_row() {
  CatalogRow row = part_row<Part::pass>("gla_state_pass", "states at chunk starts, or what segments do to a state");
  for (const std::string& d : row.dtypes)
    row.problems.push_back({d, {{"H", 1}, {"L", 80}, {"K", 64}, {"V", 64}, {"in_memory", 1}}, Purpose::edge});
  return row;
}
CatalogRow gla_segment_scan_row() {
  CatalogRow row = part_row<Part::scan>("gla_segment_scan", "states at the starts of segments");
  row.problems.push_back({"f32", {{"H", 2}, {"L", 600}, {"K", 32}, {"V", 32}, {"state", 1}}, Purpose::edge});
  return row;
}
CatalogRow gla_scan_output_row() {
  CatalogRow row = part_row<Part::output>("gla_scan_output", "output with the state walking on chip");
  for (const std::string& d : row.dtypes) {
    row.problems.push_back({d, {{"H", 1}, {"L", 80}, {"K", 64}, {"V", 64}, {"state", 1}}, Purpose::edge});
    row.problems.push_back({d, {{"H", 1}, {"L", 80}, {"K", 32}, {"V", 32}, {"segment", 2}}, Purpose::edge});
  }
  return row;
}
CatalogRow gla_chunk_output_row() {
  CatalogRow row = part_row<Part::chunk_output>("gla_chunk_output", "output of all chunks from states in memory");
  for (const std::string& d : row.dtypes)
    row.problems.push_back({d, {{"H", 1}, {"L", 80}, {"K", 320}, {"V", 64}}, Purpose::edge});
  return row;
}

CatalogRow gla_fused_row() {
  CatalogRow row = fused_row<Part::fused>("gla_fused", "output and state of chunk after chunk, all made on chip");
  for (const std::string& d : row.dtypes) {
    row.problems.push_back({d, {{"H", 1}, {"L", 80}, {"K", 64}, {"V", 64}, {"state", 1}}, Purpose::edge});
    row.problems.push_back({d, {{"H", 2}, {"L", 200}, {"K", 128}, {"V", 128}, {"state", 1}}, Purpose::edge});
    row.problems.push_back({d, {{"H", 1}, {"L", 150}, {"K", 40}, {"V", 72}, {"segment", 2}}, Purpose::edge});
  }
  // Decays that are taken every other chunk; of some chunks that levels take; of all. Of one warpgroup and of two.
  for (int64_t strength : {6, 13, 20})
    for (int64_t channels : {64, 128})
      row.problems.push_back(
          {"bf16",
           {{"H", 1}, {"L", 450}, {"K", channels}, {"V", channels}, {"state", 1}, {"strength", strength}},
           Purpose::edge});
  return row;
}
CatalogRow gla_segment_effects_row() {
  CatalogRow row = fused_row<Part::effects>("gla_segment_effects", "what segments do to a state, from k, v and gates");
  for (const std::string& d : row.dtypes) {
    row.problems.push_back({d, {{"H", 2}, {"L", 600}, {"K", 64}, {"V", 48}, {"state", 1}}, Purpose::edge});
    row.problems.push_back({d, {{"H", 1}, {"L", 300}, {"K", 128}, {"V", 128}, {"segment", 2}}, Purpose::edge});
    row.problems.push_back({d,
                            {{"H", 1}, {"L", 400}, {"K", 40}, {"V", 16}, {"segment", 2}, {"gate", 1}, {"strength", 20}},
                            Purpose::edge});
  }
  return row;
}

}  // namespace tile::kernels
