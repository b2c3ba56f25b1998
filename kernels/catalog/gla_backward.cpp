// gla_backward.cpp - catalog rows of gla_backward.h: the backward pass, and each of its own kernels as a row that runs
// the whole pass with that kernel's config (size `only` = 1: later launches run the kernel alone, for timing).
#include "kernels/gla_backward.h"

#include "kernels/catalog/gla_case.h"
#include "kernels/catalog/rows.h"

namespace tile::kernels {
namespace {

GlaSizes sizes_of(const GlaProblemSizes& s) {
  return {s.b, s.h, s.l, s.k, s.v, s.sequences(), s.longest(), s.packed > 0};
}

/// The rows of gla_fused_states and gla_fused_values.
constexpr uint32_t kFusedStates = kGlaBackwardStates, kFused = kGlaBackwardReverse;
bool isWalk(uint32_t part) { return part == kFusedStates || part == kFused; }

GlaBackwardPlan plan_of(const Problem& p, const Machine& machine, uint32_t part) {
  const GlaSizes s = sizes_of(GlaProblemSizes(p.sizes));
  GlaBackwardPlan plan = gla_backward_plan(storage_of(p.dtype), s, machine);
  if (part == kGlaBackwardValues || p.sizes["prepared"]) plan.fused = false;
  if ((isWalk(part) || p.sizes["segment"]) && !plan.fused && !s.varlen) {  // few heads; on other machines in tests only
    const auto fused = gla_fused_plan(storage_of(p.dtype), s, machine);
    plan.fused = true, plan.walk = fused ? fused->output : plan.pass;
    plan.walk.segment = 0, plan.walk.mild = false;
    if (!fused) {
      plan.walk.BK = detail::gla_whole_k(s, machine), plan.walk.BV = std::min(32, round_up(s.v, 16));
      plan.walk.stages = 1, plan.walk.warps = 8, plan.walk.chunk_states = false;
      plan.states = plan.effects = detail::gla_effects_config(storage_of(p.dtype), s, machine);
      plan.scan = detail::gla_scan_config(plan.prepare, machine);
    }
  }
  if (p.sizes.has("segment")) plan.walk.segment = static_cast<int>(p.sizes["segment"]);
  plan.states.segment = plan.walk.segment;
  if (part == kGlaBackwardScores) plan.keys.one_v = false;  // which would make them itself
  if (p.sizes.has("BT"))
    for (GlaChunkConfig* c :
         {&plan.prepare, &plan.pass, &plan.scores, &plan.values, &plan.keys, &plan.walk, &plan.states, &plan.effects})
      c->BT = static_cast<int>(p.sizes["BT"]);
  return plan;
}

GlaChunkConfig& config_of(GlaBackwardPlan& plan, uint32_t part) {
  switch (part) {
    case kGlaBackwardScores:
      return plan.scores;
    case kGlaBackwardValues:
      return plan.values;
    case kFusedStates:
      return plan.states;
    case kFused:
      return plan.walk;
    default:
      return plan.keys;
  }
}

template <class T>
class BackwardCase : public GlaCase {
 public:
  BackwardCase(const Problem& p, const ConfigWords& words, uint32_t part, const Machine& machine)
      : GlaCase(p, dtype_of<T>()),
        part_(part),
        from_state_(p.sizes["state"] & 1),
        from_end_(p.sizes["state"] & 2),
        only_(p.sizes["only"]) {
    plan_ = plan_of(p, machine, part);
    config_of(plan_, part) = gla_gradient_keys_kernel<T>().from_words(words);
  }

  Status create(std::shared_ptr<Device> device) {
    Steps s;
    HostTensor d_o = tensor(dtype_, s_.v), h0 = states(), dht = states();
    d_o.fill_normal(7);
    if (from_state_) h0.fill_normal(5);
    if (from_end_) dht.fill_normal(8);
    s(create_inputs(device))(do_.create(device, std::move(d_o)))(h0_.create(device, std::move(h0)));
    s(dht_.create(device, std::move(dht)))(dh0_.create(device, states()))(cu_.create(device, boundaries()));
    s(dq_.create(device, tensor(dtype_, s_.k)))(dk_.create(device, tensor(dtype_, s_.k)));
    s(dv_.create(device, tensor(dtype_, s_.v)))(dg_.create(device, tensor(DType::f32, s_.k)));
    Result<GlaBackwardWorkspace<T>> w = GlaBackwardWorkspace<T>::create(device, sizes_of(s_), plan_);
    s(w);
    if (w) workspace_ = std::move(*w);
    return s.status();
  }
  Status launch(Stream& stream) override {
    GlaInputs<T> in{q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(), g_.view<const float, 4>(),
                    s_.scale};
    if (from_state_) in.H0 = h0_.view<const float, 4>();
    if (s_.packed) in.cu_seqlens = cu_.view<const int32_t, 1>(), in.longest = s_.longest();
    GlaGradients<T> out{dq_.view<T, 4>(), dk_.view<T, 4>(), dv_.view<T, 4>(), dg_.view<float, 4>()};
    TensorView<const float, 4> dht;
    if (from_end_) dht = dht_.view<const float, 4>();
    if (from_state_) out.DH0 = dh0_.view<float, 4>();
    uint32_t parts = only_ && filled_ ? part_ : uint32_t{kGlaBackwardAll};
    filled_ = true;
    return gla_backward<T>(stream, in, do_.view<const T, 4>(), dht, out, workspace_, plan_, parts);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    filled_ = false;
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Gathered dq, dk, dv, dg, dh0;
    for (int64_t index : heads(budget / 4)) {
      int64_t n = index / s_.h, h = index % s_.h;
      Matrix q = rows(q_.host, n, h), k = rows(k_.host, n, h), v = rows(v_.host, n, h), g = rows(g_.host, n, h),
             d_o = rows(do_.host, n, h), start, end;
      if (from_state_) start = matrix_of(h0_.host, n, h);
      if (from_end_) end = matrix_of(dht_.host, n, h);
      auto exact = gla_backward(q, k, v, g, s_.scale, start, d_o, end, Arithmetic::exact());
      auto base =
          gla_chunked_backward(q, k, v, g, s_.scale, plan_.keys.BT, start, d_o, end, Arithmetic::working(dtype_));
      dq.add(rows(dq_.host, n, h).values, exact.dq.values, base.dq.values);
      dk.add(rows(dk_.host, n, h).values, exact.dk.values, base.dk.values);
      dv.add(rows(dv_.host, n, h).values, exact.dv.values, base.dv.values);
      dg.add(rows(dg_.host, n, h).values, exact.dg.values, base.dg.values);
      if (from_state_) dh0.add(matrix_of(dh0_.host, n, h).values, exact.dh0.values, base.dh0.values);
    }
    reference::Tolerance t = o_tolerance(dtype_);
    t.max_factor = 3;  // gradients are sums of more roundings
    std::vector<Check> checks{with_gaps("DQ", dq.compare(t), dq_.host), with_gaps("DK", dk.compare(t), dk_.host),
                              with_gaps("DV", dv.compare(t), dv_.host), with_gaps("DG", dg.compare(t), dg_.host)};
    if (from_state_) checks.push_back(with_gaps("DH0", dh0.compare(t), dh0_.host));
    return checks;
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"q", &q_.host},   {"k", &k_.host},   {"v", &v_.host},   {"g", &g_.host},  {"do", &do_.host},
            {"dq", &dq_.host}, {"dk", &dk_.host}, {"dv", &dv_.host}, {"dg", &dg_.host}};
  }
  Work work() const override {
    double t = static_cast<double>(s_.b * s_.h * s_.l), k = static_cast<double>(s_.k), v = static_cast<double>(s_.v);
    return {12 * t * k * v + t * 64 * 2.5 * (k + v), t * (sizeof(T) * (4 * k + 3 * v) + 8 * k)};
  }

 private:
  HostTensor states() const { return HostTensor(DType::f32, {s_.sequences(), s_.h, s_.k, s_.v}); }
  std::vector<DeviceTensor*> outputs() override {
    std::vector<DeviceTensor*> out{&dq_, &dk_, &dv_, &dg_};
    if (from_state_) out.push_back(&dh0_);
    return out;
  }

  uint32_t part_;
  bool from_state_, from_end_, only_, filled_ = false;
  GlaBackwardPlan plan_;
  GlaBackwardWorkspace<T> workspace_;
  DeviceTensor do_, h0_, dht_, cu_, dq_, dk_, dv_, dg_, dh0_;
};

void add_problems(CatalogRow& row) {
  auto edge = [&](const char* dtype, Fields f) { row.problems.push_back({dtype, std::move(f), Purpose::edge}); };
  for (const char* d : {"f16", "bf16", "f32"}) {
    row.problems.push_back({d, {{"B", 2}, {"H", 2}, {"L", 80}, {"K", 64}, {"V", 64}, {"state", 3}}});
    row.problems.push_back({d, {{"H", 2}, {"L", 100}, {"K", 60}, {"V", 33}, {"layout", 1}}});
    for (int64_t l : {1, 15, 16, 17, 63, 64, 65})  // E38; with h0 only, dht only, both, neither
      edge(d, {{"H", 1}, {"L", l}, {"K", 32}, {"V", 16}, {"BT", 64}, {"state", l % 4}});
    edge(d, {{"H", 1}, {"L", 150}, {"K", 48}, {"V", 40}, {"packed", 6}, {"state", 3}});
    edge(d, {{"H", 1}, {"L", 70}, {"K", 32}, {"V", 32}, {"gate", 1}, {"strength", 20}, {"BT", 32}, {"state", 3}});
  }
  edge("f32", {{"H", 1}, {"L", 70}, {"K", 32}, {"V", 32}, {"gate", 0}});
  edge("bf16", {{"H", 1}, {"L", 40}, {"K", 320}, {"V", 100}, {"state", 3}});
  edge("bf16", {{"B", 2}, {"H", 66}, {"L", 70}, {"K", 64}, {"V", 64}, {"state", 3}});  // one program a head
  edge("f16", {{"B", 2}, {"H", 66}, {"L", 70}, {"K", 40}, {"V", 80}, {"prepared", 1}});
  // Walks in segments, the last one short or the only one; decays that end in the segment.
  for (int64_t state : {0, 1, 2, 3})
    edge("bf16", {{"H", 2}, {"L", 330}, {"K", 64}, {"V", 128}, {"segment", 2}, {"state", state}});
  for (int64_t strength : {6, 13, 20})
    edge("bf16", {{"H", 1}, {"L", 330}, {"K", 128}, {"V", 96}, {"segment", 4}, {"state", 3}, {"strength", strength}});
  edge("f16", {{"B", 2}, {"H", 1}, {"L", 200}, {"K", 40}, {"V", 48}, {"segment", 1}, {"gate", 1}, {"strength", 20}});
  edge("f16", {{"H", 1}, {"L", 100}, {"K", 32}, {"V", 16}, {"segment", 4}, {"state", 3}, {"layout", 1}});
}

template <uint32_t kPart>
CatalogRow part_row(const char* name, const char* summary) {
  CatalogRow row;
  row.name = name;
  row.summary = summary;
  row.dtypes = {"f16", "bf16", "f32"};
  row.sizes = gla_size_names();
  for (std::string& size : row.sizes)
    if (size.starts_with("BT:")) size = "BT: rows of a chunk (the plan's)";
  row.sizes.push_back("state: 1 with an initial state, 2 with a gradient of the final one, 3 both");
  row.sizes.push_back("packed: so many sequences of uneven length in L rows, with cu_seqlens (0: none)");
  row.sizes.push_back("prepared: 1 prepares all chunks first");
  row.sizes.push_back("segment: chunks per segment of walks (the plan's), 0: whole sequences");
  row.sizes.push_back("only: 1 times this row's kernel alone");
  row.default_config = [](const Problem& p, const Machine& machine) {
    GlaBackwardPlan plan = plan_of(p, machine, kPart);
    return gla_gradient_keys_kernel<float>().words(config_of(plan, kPart));
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p,
                   const ConfigWords& c) -> Result<std::unique_ptr<Case>> {
    return with_float_type(p.dtype, [&](auto t) -> Result<std::unique_ptr<Case>> {
      auto made = std::make_unique<BackwardCase<decltype(t)>>(p, c, kPart, Machine::of(device->properties()));
      if (Status s = made->create(device); !s) return s.error();
      return std::unique_ptr<Case>(std::move(made));
    });
  };
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* {
      using T = decltype(t);
      if constexpr (kPart == kGlaBackwardScores) return &gla_gradient_scores_kernel<T>();
      if constexpr (kPart == kGlaBackwardValues) return &gla_gradient_values_kernel<T>();
      if constexpr (kPart == kFusedStates) return &gla_fused_states_kernel<T>();
      if constexpr (kPart == kFused) return &gla_fused_values_kernel<T>();
      return &gla_gradient_keys_kernel<T>();
    });
  };
  add_gla_benches(row);
  for (const std::string& d : row.dtypes)
    row.problems.push_back({d, {{"H", 1}, {"L", 40}, {"K", 64}, {"V", 48}, {"state", 3}}, Purpose::edge});
  return row;
}

/// Kernels of warpgroups and 16-bit products.
template <uint32_t kPart>
CatalogRow walk_row(const char* name, const char* summary) {
  CatalogRow row = part_row<kPart>(name, summary);
  keep_fused_problems(row);
  for (const std::string& d : row.dtypes) {
    row.problems.push_back({d, {{"H", 2}, {"L", 200}, {"K", 128}, {"V", 128}, {"state", 3}}, Purpose::edge});
    row.problems.push_back({d, {{"H", 1}, {"L", 150}, {"K", 40}, {"V", 72}, {"state", 2}}, Purpose::edge});
    row.problems.push_back(
        {d, {{"B", 2}, {"H", 1}, {"L", 290}, {"K", 128}, {"V", 128}, {"segment", 2}, {"state", 3}}, Purpose::edge});
  }
  return row;
}

}  // namespace

CatalogRow gla_backward_row() {
  CatalogRow row = part_row<kGlaBackwardAll>("gla_backward", "gradients of gated linear attention, deterministic");
  row.kernel = nullptr;
  row.parts = {"gla_segment_effects", "gla_segment_scan",    "gla_fused_states",
               "gla_fused_values",    "gla_prepare_chunks",  "gla_state_pass",
               "gla_gradient_scores", "gla_gradient_values", "gla_gradient_keys"};
  row.peers = "backward of chunk_gla of flash-linear-attention";
  add_problems(row);
  return row;
}
CatalogRow gla_gradient_scores_row() {
  return part_row<kGlaBackwardScores>("gla_gradient_scores", "gradients of the scores inside chunks");
}
CatalogRow gla_gradient_values_row() { return part_row<kGlaBackwardValues>("gla_gradient_values", "gradients of v"); }
CatalogRow gla_fused_states_row() {
  return walk_row<kFusedStates>("gla_fused_states", "states at chunk starts, from k, v and gates");
}
CatalogRow gla_fused_values_row() {
  return walk_row<kFused>("gla_fused_values", "gradients of v and of states, all made on chip");
}
CatalogRow gla_gradient_keys_row() {
  return part_row<kGlaBackwardKeys>("gla_gradient_keys", "gradients of q, k and the gates");
}

}  // namespace tile::kernels
