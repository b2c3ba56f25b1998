// gla.cpp - catalog rows of gated_linear_attention.h: the recurrence, each of the five steps by itself (fed with the
// reference's result of the step before), and the whole chunked forward.
#include "kernels/catalog/gla_case.h"
#include "kernels/catalog/rows.h"

namespace tile::kernels {
namespace {

/// A case of kernels that take a GlaConfig.
class WindowCase : public GlaCase {
 protected:
  WindowCase(const Problem& p, DType dtype, const GlaConfig& config) : GlaCase(p, dtype), config_(config) {}
  int64_t bt() const { return config_.BT; }
  int64_t nk() const { return cdiv(s_.k, int64_t{config_.BK}); }

  GlaConfig config_;
};

// ---- the recurrence
template <class T>
class RecurrentCase : public WindowCase {
 public:
  RecurrentCase(const Problem& p, const ConfigWords& words)
      : WindowCase(p, dtype_of<T>(), gla_recurrent_kernel<T>().from_words(words)) {}

  Status create(std::shared_ptr<Device> device) {
    Steps s;
    HostTensor h0(DType::f32, {s_.sequences(), s_.h, s_.k, s_.v}), gv = tensor(DType::f32, s_.v);
    if (config_.initial_state) h0.fill_normal(5);
    if (config_.value_gates) fill_gates(gv, 6);
    s(create_inputs(device))(o_.create(device, tensor(dtype_, s_.v)))(h0_.create(device, std::move(h0)));
    s(ht_.create(device, HostTensor(DType::f32, {s_.sequences(), s_.h, s_.k, s_.v})));
    s(gv_.create(device, std::move(gv)))(cu_.create(device, boundaries()));
    return s.status();
  }
  Status launch(Stream& stream) override {
    return gla_recurrent<T>(stream, q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(),
                            g_.view<const float, 4>(), o_.view<T, 4>(), h0_.view<const float, 4>(),
                            ht_.view<float, 4>(), s_.scale, config_, gv_.view<const float, 4>(),
                            cu_.view<const int32_t, 1>());
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Gathered o, state;
    for (int64_t index : heads(budget)) {
      int64_t n = index / s_.h, h = index % s_.h;
      Matrix q = rows(q_.host, n, h), k = rows(k_.host, n, h), v = rows(v_.host, n, h), g = rows(g_.host, n, h), gv;
      if (config_.value_gates) gv = rows(gv_.host, n, h);
      Matrix exact_state(s_.k, s_.v), base_state(s_.k, s_.v);
      if (config_.initial_state) exact_state = base_state = matrix_of(h0_.host, n, h);
      auto run = [&](Matrix& end, Arithmetic how) {
        return gla_recurrent(q, k, v, g, s_.scale, end, how, config_.value_gates ? &gv : nullptr, config_.reverse);
      };
      o.add(rows(o_.host, n, h).values, run(exact_state, Arithmetic::exact()).values,
            run(base_state, Arithmetic::working(dtype_)).values);
      if (config_.final_state) state.add(matrix_of(ht_.host, n, h).values, exact_state.values, base_state.values);
    }
    std::vector<Check> checks{with_gaps("O", o.compare(o_tolerance(dtype_)), o_.host)};
    if (config_.final_state)
      checks.push_back(with_gaps("HT", state.compare(reference::tolerance(DType::f32, s_.l + s_.k)), ht_.host));
    return checks;
  }
  std::vector<NamedTensor> tensors() const override {
    return forward_tensors(o_);
  }
  Work work() const override {
    double t = static_cast<double>(s_.b * s_.h * s_.l);
    return {5 * t * static_cast<double>(s_.k * s_.v),
            t * (sizeof(T) * static_cast<double>(2 * s_.k + 2 * s_.v) + 4 * static_cast<double>(s_.k))};
  }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&o_, &ht_}; }

  DeviceTensor o_, h0_, ht_, gv_, cu_;
};

// ---- the chunked forward, whole
template <class T>
class ChunkCase : public WindowCase {
 public:
  ChunkCase(const Problem& p, const ConfigWords& words)
      : WindowCase(p, dtype_of<T>(), gla_recurrent_kernel<T>().from_words(words)) {}

  Status create(std::shared_ptr<Device> device) {
    Steps s;
    s(create_inputs(device))(o_.create(device, tensor(dtype_, s_.v)));
    Result<GlaWorkspace<T>> w = GlaWorkspace<T>::create(device, s_.b, s_.h, s_.l, s_.k, s_.v, config_);
    s(w);
    if (w) workspace_ = std::move(*w);
    return s.status();
  }
  Status launch(Stream& stream) override {
    return gla_chunk_forward<T>(stream, q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(),
                                g_.view<const float, 4>(), o_.view<T, 4>(), s_.scale, workspace_, config_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Gathered o;
    for (int64_t bh : heads(budget)) {
      int64_t b = bh / s_.h, h = bh % s_.h;
      Matrix q = matrix_of(q_.host, b, h), k = matrix_of(k_.host, b, h), v = matrix_of(v_.host, b, h),
             g = matrix_of(g_.host, b, h), state;
      // The oracle is the recurrence; the baseline takes the five steps, rounding where they write memory.
      Matrix exact = gla_recurrent(q, k, v, g, s_.scale, state, Arithmetic::exact());
      Arithmetic working = Arithmetic::working(dtype_);
      Matrix sums = gla_decay_cumsum(g, bt(), working), q_g, k_g;
      gla_prepare(q, k, sums, s_.scale, bt(), q_g, k_g, working);
      Matrix inter = gla_inter_chunk(q_g, k_g, v, sums, bt(), working);
      Matrix base = gla_combine(inter, gla_inner_scores(q, k, sums, s_.scale, bt(), working), v, bt(), working);
      o.add(matrix_of(o_.host, b, h).values, exact.values, base.values);
    }
    return std::vector<Check>{with_gaps("O", o.compare(o_tolerance(dtype_)), o_.host)};
  }
  std::vector<NamedTensor> tensors() const override {
    return forward_tensors(o_);
  }
  Work work() const override {
    double t = static_cast<double>(s_.b * s_.h * s_.l), k = static_cast<double>(s_.k), v = static_cast<double>(s_.v);
    return {4 * t * k * v + t * static_cast<double>(bt()) * (k + v), t * (sizeof(T) * (2 * k + 2 * v) + 4 * k)};
  }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&o_}; }

  GlaWorkspace<T> workspace_;
  DeviceTensor o_;
};

// ---- one step
enum class Step { cumsum, prepare, inter, scores, combine };

template <class T, Step kStep>
const auto& step_kernel() {
  if constexpr (kStep == Step::cumsum)
    return gla_decay_cumsum_kernel();
  else if constexpr (kStep == Step::prepare)
    return gla_prepare_kernel<T>();
  else if constexpr (kStep == Step::inter)
    return gla_inter_chunk_kernel<T>();
  else if constexpr (kStep == Step::scores)
    return gla_inner_scores_kernel<T>();
  else
    return gla_combine_kernel<T>();
}

template <class T, Step kStep>
class StepCase : public WindowCase {
 public:
  StepCase(const Problem& p, const ConfigWords& words)
      : WindowCase(p, dtype_of<T>(), gla_recurrent_kernel<T>().from_words(words)) {}

  Status create(std::shared_ptr<Device> device) {
    Steps s;
    s(create_inputs(device));
    // What earlier steps would have written, from the reference, rounded to what memory holds.
    HostTensor sums = tensor(DType::f32, s_.k), q_g = tensor(dtype_, s_.k), k_g = tensor(dtype_, s_.k),
               o = tensor(dtype_, s_.v);
    HostTensor o_part(DType::f32, {nk(), s_.b * s_.h, s_.l, s_.v}), a_part(DType::f32, {nk(), s_.b * s_.h, s_.l, bt()});
    if (kStep == Step::combine) o_part.fill_normal(6), a_part.fill_normal(7);  // any numbers; above the diagonal 0
    for (int64_t bh = 0; bh < s_.b * s_.h; ++bh) {
      int64_t b = bh / s_.h, h = bh % s_.h;
      Matrix q = matrix_of(q_.host, b, h), k = matrix_of(k_.host, b, h), g = matrix_of(g_.host, b, h), qg, kg;
      Matrix cumsum = gla_decay_cumsum(g, bt(), Arithmetic::working(DType::f32));
      gla_prepare(q, k, cumsum, s_.scale, bt(), qg, kg, Arithmetic::working(dtype_));
      for (int64_t t = 0; t < s_.l; ++t) {
        for (int64_t c = 0; c < s_.k; ++c) {
          if (kStep != Step::cumsum) sums.set({b, h, t, c}, cumsum(t, c));
          if (kStep != Step::prepare) q_g.set({b, h, t, c}, qg(t, c)), k_g.set({b, h, t, c}, kg(t, c));
        }
        if (kStep == Step::combine)
          for (int64_t n = 0; n < nk(); ++n)
            for (int64_t j = t % bt() + 1; j < bt(); ++j) a_part.set({n, bh, t, j}, 0);
      }
    }
    s(sums_.create(device, std::move(sums)))(q_g_.create(device, std::move(q_g)))(k_g_.create(device, std::move(k_g)));
    s(o_part_.create(device, std::move(o_part)))(a_part_.create(device, std::move(a_part)))(
        o_.create(device, std::move(o)));
    return s.status();
  }
  Status launch(Stream& stream) override {
    const auto& kernel = step_kernel<T, kStep>();
    auto sums = sums_.view<const float, 4>();
    if constexpr (kStep == Step::cumsum)
      return kernel.try_call(stream, config_, g_.view<const float, 4>(), sums_.view<float, 4>());
    else if constexpr (kStep == Step::prepare)
      return kernel.try_call(stream, config_, q_.view<const T, 4>(), k_.view<const T, 4>(), sums, q_g_.view<T, 4>(),
                             k_g_.view<T, 4>(), s_.scale);
    else if constexpr (kStep == Step::inter)
      return kernel.try_call(stream, config_, q_g_.view<const T, 4>(), k_g_.view<const T, 4>(), v_.view<const T, 4>(),
                             sums, o_part_.view<float, 4>());
    else if constexpr (kStep == Step::scores)
      return kernel.try_call(stream, config_, q_.view<const T, 4>(), k_.view<const T, 4>(), sums,
                             a_part_.view<float, 4>(), s_.scale);
    else
      return kernel.try_call(stream, config_, v_.view<const T, 4>(), o_part_.view<const float, 4>(),
                             a_part_.view<const float, 4>(), o_.view<T, 4>());
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Gathered first, second;
    for (int64_t bh : heads(budget)) compare_head(bh / s_.h, bh % s_.h, first, second);
    reference::Tolerance t = o_tolerance(kStep == Step::cumsum ? DType::f32 : dtype_);
    std::vector<Check> checks{with_gaps(kStep == Step::prepare ? "q_g" : "out", first.compare(t), outputs()[0]->host)};
    if (kStep == Step::prepare) checks.push_back(with_gaps("k_g", second.compare(t), outputs()[1]->host));
    return checks;
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"q", &q_.host},           {"k", &k_.host},     {"v", &v_.host},     {"g", &g_.host},
            {"sums", &sums_.host},     {"q_g", &q_g_.host}, {"k_g", &k_g_.host}, {"o_part", &o_part_.host},
            {"a_part", &a_part_.host}, {"o", &o_.host}};
  }
  Work work() const override {
    double t = static_cast<double>(s_.b * s_.h * s_.l), k = static_cast<double>(s_.k), v = static_cast<double>(s_.v),
           bt = static_cast<double>(config_.BT);
    double e = sizeof(T), nk = static_cast<double>(cdiv(s_.k, int64_t{config_.BK}));
    switch (kStep) {
      case Step::cumsum:
        return {2 * t * k, 8 * t * k};
      case Step::prepare:
        return {6 * t * k, t * k * (4 * e + 4)};
      case Step::inter:
        return {4 * t * k * v, t * (2 * k * e + v * e + 4 * nk * v)};
      case Step::scores:
        return {2.5 * t * bt * k, t * (2 * k * e + 4 * k + 4 * nk * bt)};
      default:
        return {t * bt * v, t * (2 * v * e + 4 * nk * (v + bt))};
    }
  }

 private:
  std::vector<DeviceTensor*> outputs() override {
    switch (kStep) {
      case Step::cumsum:
        return {&sums_};
      case Step::prepare:
        return {&q_g_, &k_g_};
      case Step::inter:
        return {&o_part_};
      case Step::scores:
        return {&a_part_};
      default:
        return {&o_};
    }
  }
  /// Sum over the K blocks of one (batch, head) of a partial tensor.
  Matrix summed(const HostTensor& part, int64_t bh) const {
    Matrix m(part.dim(2), part.dim(3));
    for (int64_t n = 0; n < part.dim(0); ++n)
      for (int64_t i = 0; i < m.rows; ++i)
        for (int64_t j = 0; j < m.cols; ++j) m(i, j) += part.at({n, bh, i, j});
    return m;
  }
  void compare_head(int64_t b, int64_t h, Gathered& first, Gathered& second) {
    int64_t bh = b * s_.h + h;
    Arithmetic exact = Arithmetic::exact(), working = Arithmetic::working(dtype_);
    Matrix sums = kStep == Step::cumsum ? Matrix() : matrix_of(sums_.host, b, h);
    if constexpr (kStep == Step::cumsum) {
      Matrix g = matrix_of(g_.host, b, h);
      first.add(matrix_of(sums_.host, b, h).values, gla_decay_cumsum(g, bt(), exact).values,
                gla_decay_cumsum(g, bt(), working).values);
    } else if constexpr (kStep == Step::prepare) {
      Matrix q = matrix_of(q_.host, b, h), k = matrix_of(k_.host, b, h), eq, ek, bq, bk;
      gla_prepare(q, k, sums, s_.scale, bt(), eq, ek, exact);
      gla_prepare(q, k, sums, s_.scale, bt(), bq, bk, working);
      first.add(matrix_of(q_g_.host, b, h).values, eq.values, bq.values);
      second.add(matrix_of(k_g_.host, b, h).values, ek.values, bk.values);
    } else if constexpr (kStep == Step::inter) {
      Matrix q = matrix_of(q_g_.host, b, h), k = matrix_of(k_g_.host, b, h), v = matrix_of(v_.host, b, h);
      first.add(summed(o_part_.host, bh).values, gla_inter_chunk(q, k, v, sums, bt(), exact).values,
                gla_inter_chunk(q, k, v, sums, bt(), working).values);
    } else if constexpr (kStep == Step::scores) {
      Matrix q = matrix_of(q_.host, b, h), k = matrix_of(k_.host, b, h);
      first.add(summed(a_part_.host, bh).values, gla_inner_scores(q, k, sums, s_.scale, bt(), exact).values,
                gla_inner_scores(q, k, sums, s_.scale, bt(), working).values);
    } else {
      Matrix o = summed(o_part_.host, bh), a = summed(a_part_.host, bh), v = matrix_of(v_.host, b, h);
      first.add(matrix_of(o_.host, b, h).values, gla_combine(o, a, v, bt(), exact).values,
                gla_combine(o, a, v, bt(), working).values);
    }
  }

  DeviceTensor sums_, q_g_, k_g_, o_part_, a_part_, o_;
};

/// L around window sizes, K and V off the tile sizes, weak and strong gates.
void add_problems(CatalogRow& row) {
  for (const std::string& d : row.dtypes) {
    row.problems.push_back({d, {{"B", 2}, {"H", 2}, {"L", 64}, {"K", 64}, {"V", 64}}});
    row.problems.push_back({d, {{"H", 2}, {"L", 100}, {"K", 128}, {"V", 96}, {"layout", 1}}});
    for (int64_t l : {1, 15, 16, 17, 63, 65})
      row.problems.push_back({d, {{"H", 1}, {"L", l}, {"K", 60}, {"V", 33}}, Purpose::edge});  // E38
  }
  row.problems.push_back({"f32", {{"H", 1}, {"L", 70}, {"K", 64}, {"V", 32}, {"gate", 0}}, Purpose::edge});
  row.problems.push_back({"f16", {{"H", 1}, {"L", 70}, {"K", 100}, {"V", 64}, {"gate", 1}}, Purpose::edge});
  // Decays down to 2^-300 inside a window: any positive exponent anywhere would be infinite.
  row.problems.push_back(
      {"f32", {{"H", 1}, {"L", 40}, {"K", 32}, {"V", 32}, {"gate", 1}, {"strength", 20}}, Purpose::edge});
}

ConfigWords chunk_config(const Problem& p, const Machine& machine) {
  GlaConfig c = default_gla_config(p.sizes["K"], p.sizes.get("V", p.sizes["K"]), machine);
  c.BT = static_cast<int>(p.sizes.get("BT", c.BT));
  return gla_decay_cumsum_kernel().words(c);
}

template <Step kStep>
CatalogRow step_row(const char* name, const char* summary, std::vector<std::string> dtypes = {"f16", "bf16", "f32"}) {
  CatalogRow row;
  row.name = name;
  row.summary = summary;
  row.dtypes = std::move(dtypes);
  row.sizes = gla_size_names();
  add_problems(row);
  row.problems.push_back({"f32", {{"H", 8}, {"L", 4096}, {"K", 64}, {"V", 64}}, Purpose::bench_host});
  std::erase_if(row.problems, [&](const Problem& p) {
    return std::find(row.dtypes.begin(), row.dtypes.end(), p.dtype) == row.dtypes.end();
  });
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* { return &step_kernel<decltype(t), kStep>(); });
  };
  row.default_config = chunk_config;
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_float_type(p.dtype, [&](auto t) { return make_case<StepCase<decltype(t), kStep>>(device, p, c); });
  };
  return row;
}

}  // namespace

CatalogRow gla_recurrent_row() {
  CatalogRow row;
  row.name = "gla_recurrent";
  row.summary = "gated linear attention, one row at a time";
  row.dtypes = {"f16", "bf16", "f32"};
  row.sizes = gla_size_names();
  row.sizes.push_back("state: 1 starts from a given state and returns the last one");
  row.sizes.push_back("gv: 1 decays value channels too");
  row.sizes.push_back("reverse: 1 walks from the last row to the first");
  row.sizes.push_back("packed: so many sequences of uneven length in L rows, with cu_seqlens (0: none)");
  add_problems(row);
  row.problems.push_back({"f32", {{"B", 2}, {"H", 2}, {"L", 33}, {"K", 48}, {"V", 80}, {"state", 1}}, Purpose::edge});
  for (const std::string& d : row.dtypes)
    row.problems.push_back(
        {d,
         {{"B", 2}, {"H", 1}, {"L", 21}, {"K", 32}, {"V", 40}, {"gv", 1}, {"reverse", 1}, {"state", 1}},
         Purpose::edge});
  row.problems.push_back(
      {"f16", {{"H", 2}, {"L", 60}, {"K", 48}, {"V", 33}, {"packed", 5}, {"reverse", 1}, {"state", 1}}, Purpose::edge});
  row.problems.push_back({"bf16", {{"H", 1}, {"L", 9}, {"K", 320}, {"V", 64}, {"state", 1}}, Purpose::edge});
  row.problems.push_back({"bf16", {{"B", 8}, {"H", 16}, {"L", 2048}, {"K", 128}, {"V", 128}}, Purpose::bench});
  row.problems.push_back({"f32", {{"H", 4}, {"L", 2048}, {"K", 128}, {"V", 128}}, Purpose::bench_host});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* { return &gla_recurrent_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    GlaConfig c = default_gla_recurrent_config(p.sizes["K"], p.sizes.get("V", p.sizes["K"]), machine);
    c.initial_state = c.final_state = p.sizes["state"] != 0;
    c.value_gates = p.sizes["gv"] != 0, c.reverse = p.sizes["reverse"] != 0, c.varlen = p.sizes["packed"] != 0;
    return gla_recurrent_kernel<float>().words(c);
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_float_type(p.dtype, [&](auto t) { return make_case<RecurrentCase<decltype(t)>>(device, p, c); });
  };
  return row;
}

CatalogRow gla_decay_cumsum_row() {
  return step_row<Step::cumsum>("gla_decay_cumsum", "step 1: sums of the log decays inside windows, base 2", {"f32"});
}
CatalogRow gla_prepare_row() {
  return step_row<Step::prepare>("gla_prepare", "step 2: queries and keys with their decays");
}
CatalogRow gla_inter_chunk_row() {
  return step_row<Step::inter>("gla_inter_chunk", "step 3: contributions of earlier windows");
}
CatalogRow gla_inner_scores_row() {
  return step_row<Step::scores>("gla_inner_scores", "step 4: scores inside windows");
}
CatalogRow gla_combine_row() { return step_row<Step::combine>("gla_combine", "step 5: both parts together"); }

CatalogRow gla_chunk_row() {
  CatalogRow row;
  row.name = "gla_chunk_forward";
  row.summary = "gated linear attention in chunks: the five steps";
  row.peers = "chunk_gla of flash-linear-attention";
  row.dtypes = {"f16", "bf16", "f32"};
  row.sizes = gla_size_names();
  row.parts = {"gla_decay_cumsum", "gla_prepare", "gla_inter_chunk", "gla_inner_scores", "gla_combine"};
  add_problems(row);
  row.problems.push_back({"f32", {{"H", 1}, {"L", 130}, {"K", 64}, {"V", 64}, {"BT", 32}}});
  row.problems.push_back({"bf16", {{"B", 8}, {"H", 16}, {"L", 2048}, {"K", 128}, {"V", 128}}, Purpose::bench});
  row.problems.push_back({"bf16", {{"B", 32}, {"H", 4}, {"L", 2048}, {"K", 256}, {"V", 512}}, Purpose::bench});
  row.problems.push_back({"f32", {{"H", 4}, {"L", 2048}, {"K", 128}, {"V", 128}}, Purpose::bench_host});
  row.default_config = chunk_config;
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_float_type(p.dtype, [&](auto t) { return make_case<ChunkCase<decltype(t)>>(device, p, c); });
  };
  return row;
}

}  // namespace tile::kernels
