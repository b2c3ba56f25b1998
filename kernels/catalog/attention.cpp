// attention.cpp - catalog row of attention.h.
#include "kernels/attention.h"

#include "kernels/catalog/attention_problem.h"
#include "kernels/catalog/case.h"
#include "kernels/catalog/rows.h"
#include "kernels/reference/attention.h"

namespace tile::kernels {
namespace {

using reference::Arithmetic;
using reference::HostTensor;

template <class T, class TOut, class TBias>
class AttentionCase : public OutputCase {
 public:
  AttentionCase(const Problem& p, const ConfigWords& words)
      : data_(p.sizes), config_(attention_kernel<T, TOut, TBias>().from_words(words)) {}

  Status create(std::shared_ptr<Device> device) {
    auto tensor = [&](DType type, int64_t h, int64_t s, int64_t d) {
      return HostTensor(type, data_.placement(h, s, d));
    };
    constexpr DType in = dtype_of<T>();
    const Fields& f = data_.fields();
    HostTensor q = tensor(in, data_.hq, data_.sq, data_.d), k = tensor(in, data_.hkv, data_.sk, data_.d),
               v = tensor(in, data_.hkv, data_.sk, data_.dv);
    q.fill_normal(1, static_cast<double>(f.get("amp", 1))), k.fill_normal(2), v.fill_normal(3);
    if (f["nan_key"])  // E18: only the queries that see this key may turn NaN
      for (int64_t c = 0; c < data_.d; ++c) k.set({0, 0, f["nan_key"], c}, NAN);
    if (f["nan_value"]) v.set({0, 0, f["nan_value"], 1}, NAN);  // E17: only those that see it, in this channel
    data_.poison_unused(q, data_.spec.cu_q), data_.poison_unused(k, data_.spec.cu_k);
    data_.poison_unused(v, data_.spec.cu_k);
    Steps s;
    s(data_.create(device, in));
    s(q_.create(device, std::move(q)))(k_.create(device, std::move(k)))(v_.create(device, std::move(v)));
    s(o_.create(device, tensor(dtype_of<TOut>(), data_.hq, data_.sq, data_.dv)))(
        lse_.create(device, HostTensor(DType::f32, {data_.b, data_.hq, data_.sq})));
    return s.status();
  }
  bool set_config(const ConfigWords& words) override {
    return config_ = attention_kernel<T, TOut, TBias>().from_words(words), true;
  }
  Status launch(Stream& stream) override {
    return attention_forward<T, TOut, TBias>(stream, q_.view<const T, 4>(), k_.view<const T, 4>(),
                                             v_.view<const T, 4>(), o_.view<TOut, 4>(), lse_.view<float, 3>(),
                                             data_.options<TBias>(), config_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Arithmetic working = Arithmetic::working(dtype_of<TOut>());
    working.tf32 = config_.tf32;
    const int64_t heads_and_sequences = data_.sequences * data_.hq;
    double row_cost = 2.0 * static_cast<double>(data_.max_sk * (data_.d + data_.dv));
    int64_t rows_wanted = std::max<int64_t>(static_cast<int64_t>(budget / std::max(row_cost, 1.0)), 16);
    std::vector<int64_t> heads =
        sample(heads_and_sequences, data_.max_sq * heads_and_sequences <= rows_wanted ? heads_and_sequences : 8);
    Gathered o, lse;
    for (int64_t bh : heads) {
      int64_t b = bh / data_.hq, h = bh % data_.hq;
      std::vector<int64_t> rows = sample(data_.queries(b), rows_wanted / static_cast<int64_t>(heads.size()));
      auto exact = attention_rows(data_.spec, q_.host, k_.host, v_.host, b, h, rows, Arithmetic::exact());
      auto base = attention_rows(data_.spec, q_.host, k_.host, v_.host, b, h, rows, working);
      for (size_t r = 0; r < rows.size(); ++r) {
        const int64_t at = data_.tensor_batch(b), row = data_.first_query(b) + rows[r];
        o.add(o_.host.row({at, h, row}), exact[r].o, base[r].o);
        lse.add({lse_.host.at({at, h, row})}, {exact[r].lse}, {base[r].lse});
      }
    }
    if (!data_.spec.cu_q.empty()) check_unused(o, lse);
    return std::vector<Check>{
        with_gaps("O", o.compare(tolerance()), o_.host),
        with_gaps("LSE", reference::compare_absolute(lse.actual, lse.exact, lse_bound()), lse_.host)};
  }
  Work work() const override {
    double queries = static_cast<double>(data_.b * data_.hq * data_.sq);
    double elements = queries * static_cast<double>(data_.d) +
                      static_cast<double>(data_.b * data_.hkv * data_.sk * (data_.d + data_.dv));
    return {2 * data_.pairs() * static_cast<double>(data_.d + data_.dv),
            sizeof(T) * elements + (sizeof(TOut) * static_cast<double>(data_.dv) + 4) * queries};
  }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&o_, &lse_}; }

  /// Rows of no sequence still hold what they held before.
  void check_unused(Gathered& o, Gathered& lse) const {
    for (int64_t h = 0; h < data_.hq; ++h)
      for (int64_t row = 0; row < data_.sq; ++row) {
        if (row >= data_.spec.cu_q.front() && row < data_.spec.cu_q.back()) continue;
        const std::vector<double> untouched(static_cast<size_t>(data_.dv), NAN);
        o.add(o_.host.row({0, h, row}), untouched, untouched);
        lse.add({lse_.host.at({0, h, row})}, {NAN}, {NAN});
      }
  }
  reference::Tolerance tolerance() const {
    reference::Tolerance t = reference::tolerance(dtype_of<TOut>(), data_.max_sk, config_.tf32);
    // Weights of f8 have 3 bits behind the point: each is off by up to 1/16.
    if (sizeof(T) == 1) t.floor_relative = 0.0625, t.rmse_ratio = 5e-2;
    return t;
  }
  /// LSE is an f32 sum of f32 products of exact inputs, whatever their type; large logits cost their own rounding.
  double lse_bound() const {
    double bound = config_.tf32 || sizeof(T) == 1 ? 1e-2 : sizeof(T) == 4 ? 1e-4 : 1e-3;
    double largest = static_cast<double>(data_.fields().get("amp", 1)) / 8;
    if (data_.bias_kind == BiasKind::holes) largest = 2;
    return bound * std::max(1.0, largest);
  }

  AttentionProblemData data_;
  AttentionConfig config_;
  DeviceTensor q_, k_, v_, o_, lse_;
};

/// Windows, softcap, alibi, biases, packed sequences, f8.
void add_feature_problems(CatalogRow& row) {
  auto add = [&](const char* dtype, Purpose purpose, Fields f) {
    row.problems.push_back({dtype, std::move(f), purpose});
  };
  const std::pair<int64_t, int64_t> windows[] = {{0, 0}, {150, 150}, {3, 0}, {0, 5}, {-1, 4}, {40, 20}, {70, -1}};
  for (auto [left, right] : windows)  // E20
    add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 150}, {"Sk", 140}, {"D", 32}, {"left", left}, {"right", right}});
  add("f16", Purpose::test, {{"Hq", 2}, {"Hkv", 1}, {"Sq", 200}, {"D", 64}, {"causal", 1}, {"left", 50}});
  add("bf16", Purpose::edge, {{"Hq", 1}, {"Sq", 90}, {"Sk", 200}, {"D", 64}, {"left", 64}, {"right", 63}});
  add("f32", Purpose::edge,
      {{"Hq", 1}, {"Sq", 200}, {"Sk", 60}, {"D", 32}, {"left", 10}, {"right", 0}});  // before key 0
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 100}, {"Sk", 150}, {"D", 32}, {"causal", 1}, {"top_left", 1}});
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 150}, {"Sk", 70}, {"D", 32}, {"left", 20}, {"top_left", 1}});
  for (int64_t cap : {15, 50})  // E22
    add(cap == 15 ? "f16" : "bf16", Purpose::test,
        {{"Hq", 2}, {"Sq", 130}, {"D", 64}, {"causal", 1}, {"softcap", cap}, {"amp", 30}});
  add("f32", Purpose::edge, {{"Hq", 1}, {"Sq", 70}, {"D", 32}, {"softcap", 2}, {"negative_scale", 1}});
  for (int64_t causal : {0, 1})
    add("f16", Purpose::edge,
        {{"B", 2}, {"Hq", 4}, {"Sq", 70}, {"Sk", 90}, {"D", 32}, {"causal", causal}, {"alibi", 1}});
  for (int64_t kind : {1, 2, 3, 4, 5})  // E12, E14, E15, S1.8
    add(kind == 5 ? "f32" : "f16", Purpose::edge,
        {{"B", 1}, {"Hq", 2}, {"Sq", 90}, {"Sk", 200}, {"D", 32}, {"bias", kind}});
  add("f16", Purpose::edge,
      {{"Hq", 2}, {"Sq", 130}, {"D", 64}, {"causal", 1}, {"bias", 1}, {"alibi", 1}, {"softcap", 20}});
  for (int64_t pattern : {1, 2, 3, 4, 5})  // E05
    for (int64_t causal : {0, 1})
      add("f16", Purpose::edge,
          {{"Hq", 4}, {"Hkv", 2}, {"D", 64}, {"causal", causal}, {"varlen", pattern}, {"layout", pattern % 3}});
  add("bf16", Purpose::test,
      {{"Hq", 2}, {"D", 64}, {"varlen", 2}, {"left", 30}, {"right", 10}, {"softcap", 30}, {"alibi", 1}});
  add("f32", Purpose::edge, {{"Hq", 2}, {"D", 32}, {"varlen", 1}, {"bias", 2}, {"causal", 1}});
  for (int64_t causal : {0, 1}) {
    add("f8e4m3", Purpose::test, {{"B", 1}, {"Hq", 2}, {"Sq", 128}, {"D", 64}, {"causal", causal}});
    add("f8e4m3", Purpose::edge,
        {{"B", 2}, {"Hq", 4}, {"Hkv", 2}, {"Sq", 113}, {"Sk", 203}, {"D", 128}, {"causal", causal}, {"descale", 1}});
  }
}

void add_problems(CatalogRow& row) {
  auto add = [&](const char* dtype, Purpose purpose, Fields f) {
    row.problems.push_back({dtype, std::move(f), purpose});
  };
  for (const char* d : {"f16", "bf16", "f32"})
    for (int64_t causal : {0, 1}) {
      add(d, Purpose::test, {{"B", 2}, {"Hq", 2}, {"Sq", 128}, {"D", 64}, {"causal", causal}});
      add(d, Purpose::test, {{"B", 1}, {"Hq", 6}, {"Hkv", 2}, {"Sq", 113}, {"Sk", 203}, {"D", 64}, {"causal", causal}});
      add(d, Purpose::test, {{"B", 1}, {"Hq", 1}, {"Sq", 200}, {"D", 128}, {"causal", causal}});
      add(d, Purpose::edge, {{"B", 1}, {"Hq", 1}, {"Sq", 1}, {"Sk", 1}, {"D", 64}, {"causal", causal}});      // E01
      add(d, Purpose::edge, {{"B", 1}, {"Hq", 2}, {"Sq", 239}, {"Sk", 1}, {"D", 64}, {"causal", causal}});    // E03
      add(d, Purpose::edge, {{"B", 1}, {"Hq", 1}, {"Sq", 203}, {"Sk", 113}, {"D", 32}, {"causal", causal}});  // E03
      add(d, Purpose::edge, {{"B", 1}, {"Hq", 1}, {"Sq", 5}, {"Sk", 0}, {"D", 32}, {"causal", causal}});      // no keys
      add(d, Purpose::edge, {{"B", 2}, {"Hq", 3}, {"Sq", 70}, {"D", 64}, {"causal", causal}, {"layout", 1}});  // E27
      add(d, Purpose::edge, {{"B", 2}, {"Hq", 3}, {"Sq", 70}, {"D", 64}, {"causal", causal}, {"layout", 2}});  // E27
      add(d, Purpose::edge, {{"B", 1}, {"Hq", 2}, {"Sq", 70}, {"D", 64}, {"causal", causal}, {"layout", 3}});  // E27
    }
  for (int64_t sk : {1, 15, 63, 64, 65, 130})
    add("f16", Purpose::edge, {{"Hq", 2}, {"Sq", 1}, {"Sk", sk}, {"D", 64}, {"causal", 1}});  // E02
  for (int64_t d : {32, 40, 59, 80, 96, 111, 128, 160, 192, 224, 256})                        // E07
    add(d % 2 ? "bf16" : "f16", Purpose::edge, {{"Hq", 1}, {"Sq", 100}, {"Sk", 140}, {"D", d}, {"causal", 1}});
  add("f32", Purpose::edge, {{"Hq", 1}, {"Sq", 60}, {"Sk", 70}, {"D", 59}, {"DV", 40}, {"causal", 1}});
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 60}, {"Sk", 70}, {"D", 96}, {"DV", 64}});
  for (int64_t s : {63, 65, 127, 129, 257})
    add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", s}, {"D", 64}, {"causal", 1}});                                  // E09
  for (const char* d : {"f16", "bf16"}) add(d, Purpose::edge, {{"Hq", 1}, {"Sq", 128}, {"D", 64}, {"amp", 60}});  // E10
  add("f32", Purpose::edge, {{"Hq", 1}, {"Sq", 90}, {"D", 32}, {"causal", 1}, {"nan_key", 40}});                  // E18
  for (const char* d : {"f16", "f32"})  // E17
    add(d, Purpose::edge, {{"Hq", 1}, {"Sq", 200}, {"D", 64}, {"causal", 1}, {"nan_value", 140}});
  add("bf16", Purpose::edge, {{"Hq", 2}, {"Sq", 200}, {"D", 128}, {"left", 20}, {"right", 9}, {"nan_value", 77}});  // E17
  add("f16", Purpose::edge, {{"Hq", 6}, {"Hkv", 1}, {"Sq", 65}, {"D", 64}, {"causal", 1}});                       // E23
  add("f16", Purpose::edge, {{"Hq", 10}, {"Hkv", 2}, {"Sq", 33}, {"D", 64}});
  add("bf16", Purpose::edge, {{"Hq", 9}, {"Hkv", 3}, {"Sq", 33}, {"D", 64}});
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 100}, {"D", 64}, {"causal", 1}, {"shift", 1}});  // E28
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 100}, {"D", 64}, {"causal", 1}, {"negative_scale", 1}});
  add("tf32", Purpose::edge, {{"Hq", 2}, {"Sq", 100}, {"D", 64}, {"causal", 1}});
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 1023}, {"Sk", 1024}, {"D", 64}, {"causal", 1}});

  add_feature_problems(row);

  for (int64_t causal : {0, 1}) {
    add("f16", Purpose::bench, {{"B", 4}, {"Hq", 16}, {"Sq", 4096}, {"D", 128}, {"causal", causal}});
    add("bf16", Purpose::bench, {{"B", 4}, {"Hq", 16}, {"Sq", 4096}, {"D", 128}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 1}, {"Hq", 16}, {"Sq", 16384}, {"D", 128}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 16}, {"Hq", 16}, {"Sq", 1024}, {"D", 128}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 4}, {"Hq", 32}, {"Sq", 4096}, {"D", 64}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 1}, {"Hq", 32}, {"Sq", 16384}, {"D", 64}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 16}, {"Hq", 32}, {"Sq", 1024}, {"D", 64}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 4}, {"Hq", 8}, {"Sq", 4096}, {"D", 256}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 4}, {"Hq", 48}, {"Sq", 4096}, {"D", 32}, {"causal", causal}});
    add("f32", Purpose::bench_host, {{"B", 1}, {"Hq", 8}, {"Sq", 1024}, {"D", 64}, {"causal", causal}});
  }
  add("f16", Purpose::bench_host, {{"B", 1}, {"Hq", 8}, {"Sq", 1024}, {"D", 64}});
  add("f16", Purpose::bench, {{"B", 4}, {"Hq", 16}, {"Sq", 4096}, {"D", 128}, {"causal", 1}, {"left", 1024}});
  add("f16", Purpose::bench, {{"Hq", 16}, {"D", 128}, {"causal", 1}, {"varlen", 6}});
  add("f8e4m3", Purpose::bench, {{"B", 4}, {"Hq", 16}, {"Sq", 4096}, {"D", 128}});
}

/// The config of a problem: tiles by its size, the rest by what it asks for.
AttentionConfig default_of(const Problem& p, const Machine& machine) {
  const AttentionProblemData data(p.sizes);
  const bool causal = p.sizes["causal"] != 0;
  AttentionConfig c =
      default_attention_config(storage_of(p.dtype), data.max_sq, data.d, data.dv, causal, data.scale, machine);
  data.complete(c);
  c.tf32 = p.dtype == "tf32";
  c = fit_features(c, machine);
  return data.guard_values ? fit_guard(c, machine) : c;
}

}  // namespace

CatalogRow attention_row() {
  CatalogRow row;
  row.name = "attention_forward";
  row.summary = "O = softmax(scale Q K^T) V and LSE, causal or full, grouped heads, any strides";
  row.peers = "FlashAttention-2 and cuDNN through torch sdpa";
  row.dtypes = {"f16", "bf16", "f32", "tf32", "f8e4m3"};
  row.sizes = attention_field_names();
  add_problems(row);
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    if (d == "f8e4m3") return &attention_kernel<fp8_e4m3, half>();
    return with_float_type(d, [](auto t) -> const AnyKernel* { return &attention_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    return attention_kernel<float>().words(default_of(p, machine));
  };
  row.tuning = [](const Problem& p, const Machine& machine) {
    const AttentionProblemData data(p.sizes);
    const DType dtype = storage_of(p.dtype);
    const AttentionConfig base = default_of(p, untuned(machine));
    return Tuning{"attention_forward", attention_tuning_key(dtype, data.max_sq, data.d, data.dv, base.causal),
                  words_of(attention_kernel<float>(), attention_space(base, dtype, machine))};
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_attention_types(p, [&](auto t, auto out, auto bias) {
      return make_case<AttentionCase<decltype(t), decltype(out), decltype(bias)>>(device, p, c);
    });
  };
  return row;
}

}  // namespace tile::kernels
