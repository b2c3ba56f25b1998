// linear_attention.cpp - catalog rows of linear attention with feature maps, of the parallel form of gated linear
// attention, and of its decoding step.
#include "kernels/linear_attention.h"

#include "kernels/catalog/gla_case.h"
#include "kernels/catalog/rows.h"
#include "kernels/gla_decode.h"
#include "kernels/gla_parallel.h"
#include "kernels/reference/linear_attention.h"

namespace tile::kernels {
namespace {

// ---- feature maps and normaliser
template <class T>
class LinearCase : public GlaCase {
 public:
  LinearCase(const Problem& p, const ConfigWords& words)
      : GlaCase(p, dtype_of<T>()), config_(linear_attention_kernel<T>().from_words(words)) {}

  Status create(std::shared_ptr<Device> device) {
    Steps s;
    HostTensor s0(DType::f32, {s_.b, s_.h, s_.k, s_.v}), z0(DType::f32, {s_.b, s_.h, s_.k});
    if (config_.initial_state) s0.fill_normal(5), z0.fill_uniform(6, 1, 3);
    s(create_inputs(device))(o_.create(device, tensor(dtype_, s_.v)));
    s(s0_.create(device, std::move(s0)))(z0_.create(device, std::move(z0)));
    s(st_.create(device, HostTensor(DType::f32, {s_.b, s_.h, s_.k, s_.v})));
    s(zt_.create(device, HostTensor(DType::f32, {s_.b, s_.h, s_.k})));
    return s.status();
  }
  Status launch(Stream& stream) override {
    return linear_attention<T>(stream, q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(),
                               o_.view<T, 4>(), s0_.view<const float, 4>(), z0_.view<const float, 3>(),
                               st_.view<float, 4>(), zt_.view<float, 3>(), s_.scale, config_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Gathered o, state, sums;
    auto map = static_cast<reference::Feature>(config_.map);
    for (int64_t bh : heads(budget)) {
      int64_t b = bh / s_.h, h = bh % s_.h;
      Matrix q = matrix_of(q_.host, b, h), k = matrix_of(k_.host, b, h), v = matrix_of(v_.host, b, h);
      Matrix exact_state, base_state;
      std::vector<double> exact_z, base_z;
      if (config_.initial_state) {
        exact_state = base_state = matrix_of(s0_.host, b, h);
        if (config_.normalize) exact_z = base_z = z0_.host.row({b, h});
      }
      Matrix exact = reference::linear_attention(q, k, v, map, config_.normalize, s_.scale, exact_state, exact_z,
                                                 Arithmetic::exact());
      Matrix base = reference::linear_attention(q, k, v, map, config_.normalize, s_.scale, base_state, base_z,
                                                Arithmetic::working(dtype_));
      o.add(matrix_of(o_.host, b, h).values, exact.values, base.values);
      if (config_.final_state) {
        state.add(matrix_of(st_.host, b, h).values, exact_state.values, base_state.values);
        if (config_.normalize) sums.add(zt_.host.row({b, h}), exact_z, base_z);
      }
    }
    // The numerator of a signed map cancels; its error is measured against the sums it comes from.
    std::vector<Check> checks{with_gaps("O", o.compare(o_tolerance(dtype_)), o_.host)};
    if (config_.final_state) {
      checks.push_back(with_gaps("ST", state.compare(o_tolerance(dtype_)), st_.host));
      if (config_.normalize) checks.push_back(with_gaps("ZT", sums.compare(o_tolerance(dtype_)), zt_.host));
    }
    return checks;
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"q", &q_.host}, {"k", &k_.host}, {"v", &v_.host}, {"o", &o_.host}};
  }
  Work work() const override {
    double t = static_cast<double>(s_.b * s_.h * s_.l), k = static_cast<double>(s_.k), v = static_cast<double>(s_.v);
    return {4 * t * k * v + t * 64 * (k + v), t * sizeof(T) * (2 * k + 2 * v)};
  }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&o_, &st_, &zt_}; }

  LinearAttentionConfig config_;
  DeviceTensor o_, s0_, z0_, st_, zt_;
};

// ---- the parallel form
template <class T>
class ParallelCase : public GlaCase {
 public:
  ParallelCase(const Problem& p, const ConfigWords& words) : GlaCase(p, dtype_of<T>()) {
    plan_.output = gla_parallel_kernel<T>().from_words(words);
  }
  Status create(std::shared_ptr<Device> device) {
    GlaSizes sizes{s_.b, s_.h, s_.l, s_.k, s_.v, s_.b, s_.l};
    GlaChunkConfig output = plan_.output;
    plan_ = gla_prepared_plan(dtype_, sizes, Machine::of(device->properties()));
    plan_.states = GlaStates::on_chip, plan_.output = output;
    plan_.prepare.BT = plan_.pass.BT = output.BT;
    Steps s;
    s(create_inputs(device))(o_.create(device, tensor(dtype_, s_.v)));
    Result<GlaChunkWorkspace<T>> w = GlaChunkWorkspace<T>::create(device, sizes, plan_);
    s(w);
    if (w) workspace_ = std::move(*w);
    return s.status();
  }
  Status launch(Stream& stream) override {
    GlaInputs<T> in{q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(), g_.view<const float, 4>(),
                    s_.scale};
    return gla_parallel<T>(stream, in, o_.view<T, 4>(), workspace_, plan_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Gathered o;
    for (int64_t bh : heads(budget)) {
      int64_t b = bh / s_.h, h = bh % s_.h;
      Matrix q = matrix_of(q_.host, b, h), k = matrix_of(k_.host, b, h), v = matrix_of(v_.host, b, h),
             g = matrix_of(g_.host, b, h), state;
      Matrix exact = gla_recurrent(q, k, v, g, s_.scale, state, Arithmetic::exact());
      state = {};
      Matrix base = gla_chunked(q, k, v, g, s_.scale, plan_.output.BT, state, Arithmetic::working(dtype_));
      o.add(matrix_of(o_.host, b, h).values, exact.values, base.values);
    }
    return std::vector<Check>{with_gaps("O", o.compare(o_tolerance(dtype_)), o_.host)};
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"q", &q_.host}, {"k", &k_.host}, {"v", &v_.host}, {"g", &g_.host}, {"o", &o_.host}};
  }
  Work work() const override {
    double t = static_cast<double>(s_.b * s_.h * s_.l), k = static_cast<double>(s_.k), v = static_cast<double>(s_.v);
    return {t * static_cast<double>(s_.l) * (k + v), t * (sizeof(T) * (2 * k + 2 * v) + 4 * k)};
  }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&o_}; }

  GlaPlan plan_;
  GlaChunkWorkspace<T> workspace_;
  DeviceTensor o_;
};

// ---- one token
template <class T>
class DecodeCase : public OutputCase {
 public:
  DecodeCase(const Problem& p, const ConfigWords& words)
      : s_(p.sizes), config_(gla_decode_kernel<T>().from_words(words)), dtype_(dtype_of<T>()) {}

  Status create(std::shared_ptr<Device> device) {
    HostTensor q(dtype_, {s_.b, s_.h, s_.k}), k(dtype_, {s_.b, s_.h, s_.k}), v(dtype_, {s_.b, s_.h, s_.v}),
        g(DType::f32, {s_.b, s_.h, s_.k}), state(DType::f32, {s_.b, s_.h, s_.k, s_.v});
    q.fill_normal(1), k.fill_normal(2), v.fill_normal(3), g.fill_uniform(4, -2, 0), state.fill_normal(5);
    Steps s;
    s(q_.create(device, std::move(q)))(k_.create(device, std::move(k)))(v_.create(device, std::move(v)));
    s(g_.create(device, std::move(g)))(state_.create(device, std::move(state)));
    s(next_.create(device, HostTensor(DType::f32, {s_.b, s_.h, s_.k, s_.v})));
    s(o_.create(device, HostTensor(dtype_, {s_.b, s_.h, s_.v})));
    return s.status();
  }
  Status launch(Stream& stream) override {
    return gla_decode<T>(stream, q_.view<const T, 3>(), k_.view<const T, 3>(), v_.view<const T, 3>(),
                         g_.view<const float, 3>(), state_.view<const float, 4>(), next_.view<float, 4>(),
                         o_.view<T, 3>(), s_.scale, config_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Gathered o, state;
    auto row = [](const HostTensor& t, int64_t b, int64_t h) {
      Matrix m(1, t.dim(2));
      m.values = t.row({b, h});
      return m;
    };
    for (int64_t bh : sample(s_.b * s_.h, static_cast<int64_t>(budget / (8.0 * static_cast<double>(s_.k * s_.v))))) {
      int64_t b = bh / s_.h, h = bh % s_.h;
      Matrix q = row(q_.host, b, h), k = row(k_.host, b, h), v = row(v_.host, b, h), g = row(g_.host, b, h);
      Matrix exact_state = matrix_of(state_.host, b, h), base_state = exact_state;
      Matrix exact = gla_recurrent(q, k, v, g, s_.scale, exact_state, Arithmetic::exact());
      Matrix base = gla_recurrent(q, k, v, g, s_.scale, base_state, Arithmetic::working(dtype_));
      o.add(o_.host.row({b, h}), exact.values, base.values);
      state.add(matrix_of(next_.host, b, h).values, exact_state.values, base_state.values);
    }
    return std::vector<Check>{with_gaps("O", o.compare(reference::tolerance(dtype_, s_.k)), o_.host),
                              with_gaps("S_NEXT", state.compare(reference::tolerance(DType::f32, 2)), next_.host)};
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"q", &q_.host},         {"k", &k_.host},       {"v", &v_.host}, {"g", &g_.host},
            {"state", &state_.host}, {"next", &next_.host}, {"o", &o_.host}};
  }
  Work work() const override {
    double heads = static_cast<double>(s_.b * s_.h), k = static_cast<double>(s_.k), v = static_cast<double>(s_.v);
    return {heads * 5 * k * v, heads * (8 * k * v + sizeof(T) * (2 * k + 2 * v) + 4 * k)};
  }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&o_, &next_}; }

  GlaProblemSizes s_;
  GlaDecodeConfig config_;
  DType dtype_;
  DeviceTensor q_, k_, v_, g_, state_, next_, o_;
};

template <template <class> class C>
Result<std::unique_ptr<Case>> prepare_case(std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
  return with_float_type(p.dtype, [&](auto t) { return make_case<C<decltype(t)>>(device, p, c); });
}

}  // namespace

CatalogRow linear_attention_row() {
  CatalogRow row;
  row.name = "linear_attention";
  row.summary = "causal linear attention with feature map and normaliser, state on chip";
  row.dtypes = {"f16", "bf16", "f32"};
  row.sizes = {"B: batch (1)",
               "H: heads (1)",
               "L: rows",
               "K: key channels",
               "V: value channels (K)",
               "map: 0 identity, 1 elu + 1, 2 relu, 3 exp",
               "normalize: 1 divides by the sums of the weights",
               "state: 1 starts from given sums and returns the last ones",
               "layout: 0 [B,H,L,D], 1 [B,L,H,D]"};
  for (const std::string& d : row.dtypes) {
    row.problems.push_back({d, {{"B", 2}, {"H", 2}, {"L", 128}, {"K", 64}, {"V", 64}}});
    row.problems.push_back(
        {d, {{"H", 2}, {"L", 100}, {"K", 60}, {"V", 33}, {"map", 1}, {"normalize", 1}, {"layout", 1}}});
    for (int64_t map : {1, 2, 3})
      row.problems.push_back({d,
                              {{"H", 1}, {"L", 65}, {"K", 32}, {"V", 16}, {"map", map}, {"normalize", 1}, {"state", 1}},
                              Purpose::edge});
    row.problems.push_back(
        {d, {{"H", 1}, {"L", 1}, {"K", 16}, {"V", 16}, {"map", 2}, {"normalize", 1}}, Purpose::edge});
    row.problems.push_back({d, {{"H", 1}, {"L", 70}, {"K", 200}, {"V", 80}, {"state", 1}}, Purpose::edge});
  }
  row.problems.push_back({"bf16", {{"B", 8}, {"H", 16}, {"L", 2048}, {"K", 128}, {"V", 128}}, Purpose::bench});
  row.problems.push_back(
      {"bf16", {{"B", 8}, {"H", 16}, {"L", 2048}, {"K", 64}, {"V", 64}, {"map", 1}, {"normalize", 1}}, Purpose::bench});
  row.problems.push_back({"f32", {{"H", 4}, {"L", 2048}, {"K", 128}, {"V", 128}}, Purpose::bench_host});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* { return &linear_attention_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    int64_t k = p.sizes["K"];
    LinearAttentionConfig c = default_linear_attention_config(storage_of(p.dtype), k, p.sizes.get("V", k), machine);
    c.map = static_cast<FeatureMap>(p.sizes["map"]), c.normalize = p.sizes["normalize"] != 0;
    c.initial_state = c.final_state = p.sizes["state"] != 0;
    return linear_attention_kernel<float>().words(c);
  };
  row.prepare = prepare_case<LinearCase>;
  return row;
}

CatalogRow gla_parallel_row() {
  CatalogRow row;
  row.name = "gla_parallel";
  row.summary = "gated linear attention, parallel form: all pairs of rows, decays between chunks as products";
  row.dtypes = {"f16", "bf16", "f32"};
  row.sizes = gla_size_names();
  for (const std::string& d : row.dtypes) {
    row.problems.push_back({d, {{"B", 2}, {"H", 2}, {"L", 128}, {"K", 64}, {"V", 64}}});
    row.problems.push_back({d, {{"H", 1}, {"L", 150}, {"K", 60}, {"V", 33}, {"layout", 1}}, Purpose::edge});
    row.problems.push_back(
        {d, {{"H", 1}, {"L", 100}, {"K", 32}, {"V", 32}, {"gate", 1}, {"strength", 20}}, Purpose::edge});
  }
  row.problems.push_back({"bf16", {{"B", 8}, {"H", 16}, {"L", 2048}, {"K", 128}, {"V", 128}}, Purpose::bench});
  row.problems.push_back({"f32", {{"H", 2}, {"L", 1024}, {"K", 64}, {"V", 64}}, Purpose::bench_host});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* { return &gla_parallel_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    GlaProblemSizes s(p.sizes);
    GlaPlan plan = gla_prepared_plan(storage_of(p.dtype), {s.b, s.h, s.l, s.k, s.v, s.b, s.l}, machine);
    if (p.sizes.has("BT")) plan.output.BT = static_cast<int>(p.sizes["BT"]);
    return gla_parallel_kernel<float>().words(default_gla_parallel_config(plan));
  };
  row.prepare = prepare_case<ParallelCase>;
  return row;
}

CatalogRow gla_decode_row() {
  CatalogRow row;
  row.name = "gla_decode";
  row.summary = "one token of gated linear attention: state in, state out";
  row.dtypes = {"f16", "bf16", "f32"};
  row.sizes = {"B: batch (1)", "H: heads (1)", "K: key channels", "V: value channels (K)"};
  for (const std::string& d : row.dtypes) {
    row.problems.push_back({d, {{"B", 2}, {"H", 3}, {"K", 64}, {"V", 64}}});
    row.problems.push_back({d, {{"B", 1}, {"H", 2}, {"K", 60}, {"V", 33}}, Purpose::edge});
    row.problems.push_back({d, {{"B", 1}, {"H", 1}, {"K", 320}, {"V", 100}}, Purpose::edge});
  }
  row.problems.push_back({"bf16", {{"B", 256}, {"H", 16}, {"K", 128}, {"V", 128}}, Purpose::bench});
  row.problems.push_back({"bf16", {{"B", 64}, {"H", 4}, {"K", 256}, {"V", 512}}, Purpose::bench});
  row.problems.push_back({"f32", {{"B", 64}, {"H", 16}, {"K", 128}, {"V", 128}}, Purpose::bench_host});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* { return &gla_decode_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    int64_t k = p.sizes["K"];
    return gla_decode_kernel<float>().words(default_gla_decode_config(k, p.sizes.get("V", k), machine));
  };
  row.prepare = prepare_case<DecodeCase>;
  return row;
}

}  // namespace tile::kernels
