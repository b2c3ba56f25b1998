// attention_backward.cpp - catalog rows of attention_backward.h: the fast and the deterministic variant.
#include "kernels/attention_backward.h"

#include "kernels/attention.h"
#include "kernels/catalog/attention_problem.h"
#include "kernels/catalog/rows.h"

namespace tile::kernels {
namespace {

using reference::Arithmetic;
using reference::AttentionStats;
using reference::HostTensor;

/// The configs of a problem. The words of a row are those of the keys' program (fast) or of the queries' one.
AttentionBackwardConfig default_config(const AttentionProblemData& data, const Problem& p, bool deterministic,
                                       const Machine& machine) {
  AttentionConfig features;
  data.complete(features);
  AttentionBackwardConfig c = default_attention_backward_config(storage_of(p.dtype), data.max_sq, data.max_sk, data.d,
                                                                data.dv, data.spec.causal || data.spec.right == 0,
                                                                attention_is_plain(features), deterministic, machine);
  for (AttentionConfig* one : {&c.keys, &c.queries}) {
    data.complete(*one);
    one->tf32 = p.dtype == "tf32";
  }
  c.keys.group = static_cast<int>(data.hq / data.hkv);
  return c;
}

template <class T, class TBias, bool kDeterministic>
class AttentionBackwardCase : public OutputCase {
 public:
  AttentionBackwardCase(const Problem& p, const ConfigWords& words)
      : problem_(p), data_(p.sizes), words_(attention_backward_kernels<T, TBias>().keys.from_words(words)) {}

  Status create(std::shared_ptr<Device> device) {
    constexpr DType type = dtype_of<T>();
    config_ = default_config(data_, problem_, kDeterministic, Machine::of(device->properties()));
    (kDeterministic ? config_.queries : config_.keys) = words_;
    auto tensor = [&](int64_t h, int64_t s, int64_t d) { return HostTensor(type, data_.placement(h, s, d)); };
    const double amp = static_cast<double>(data_.fields().get("amp", 1));
    HostTensor q = tensor(data_.hq, data_.sq, data_.d), k = tensor(data_.hkv, data_.sk, data_.d),
               v = tensor(data_.hkv, data_.sk, data_.dv),
               d_o(type, data_.fields()["transposed_do"]
                             ? reference::Placement::ordered({data_.b, data_.hq, data_.sq, data_.dv}, {0, 1, 3, 2})
                             : data_.placement(data_.hq, data_.sq, data_.dv));
    q.fill_normal(1, amp), k.fill_normal(2), v.fill_normal(3), d_o.fill_normal(4);
    for (HostTensor* t : {&q, &d_o}) data_.poison_unused(*t, data_.spec.cu_q);
    for (HostTensor* t : {&k, &v}) data_.poison_unused(*t, data_.spec.cu_k);
    Steps s;
    s(data_.create(device, type));
    s(q_.create(device, std::move(q)))(k_.create(device, std::move(k)))(v_.create(device, std::move(v)));
    s(do_.create(device, std::move(d_o)))(o_.create(device, tensor(data_.hq, data_.sq, data_.dv)));
    s(lse_.create(device, HostTensor(DType::f32, {data_.b, data_.hq, data_.sq})));
    s(dq_.create(device, tensor(data_.hq, data_.sq, data_.d)))(
        dk_.create(device, tensor(data_.hkv, data_.sk, data_.d)));
    s(dv_.create(device, tensor(data_.hkv, data_.sk, data_.dv)));
    const int64_t floats = attention_backward_workspace(data_.b, data_.hq, data_.sq, data_.d, kDeterministic);
    s(workspace_.create(device, HostTensor(DType::f32, {std::max<int64_t>(floats, 1)})));
    if (!s.ok()) return s.error();
    Stream& stream = device->default_stream();
    s(attention_forward<T, T, TBias>(stream, q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(),
                                     o_.view<T, 4>(), lse_.view<float, 3>(), data_.options<TBias>()));
    if (s.ok()) s(stream.synchronize())(o_.download())(lse_.download());
    return s.status();
  }
  Status launch(Stream& stream) override {
    return attention_backward<T, TBias>(stream, q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(),
                                        o_.view<const T, 4>(), do_.view<const T, 4>(), lse_.view<const float, 3>(),
                                        dq_.view<T, 4>(), dk_.view<T, 4>(), dv_.view<T, 4>(),
                                        workspace_.view<float, 1>(), data_.options<TBias>(), config_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status s = workspace_.poison(); !s) return s.error();
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Arithmetic working = Arithmetic::working(dtype_of<T>());
    working.tf32 = config_.keys.tf32;
    const int64_t group = data_.hq / data_.hkv;
    const double pair_cost = 4.0 * static_cast<double>(data_.d + data_.dv);
    const int64_t rows_wanted = std::max<int64_t>(
        static_cast<int64_t>(budget / (pair_cost * static_cast<double>(std::max<int64_t>(data_.max_sq, data_.max_sk)))),
        16);
    const int64_t kv_heads = data_.sequences * data_.hkv;
    const bool whole = kv_heads * group * data_.max_sq <= rows_wanted;
    std::vector<int64_t> heads = sample(kv_heads, whole ? kv_heads : 2);
    const int64_t rows_per_head = std::max<int64_t>(rows_wanted / (group * std::ssize(heads)), 2);
    Gathered dq, dk, dv;
    for (int64_t bh : heads) {
      const int64_t b = bh / data_.hkv, h = bh % data_.hkv, at = data_.tensor_batch(b);
      std::vector<AttentionStats> exact_stats, base_stats;
      for (int64_t g = 0; g < group; ++g) {
        const int64_t head = h * group + g;
        exact_stats.push_back(stats(b, head, whole, Arithmetic::exact()));
        base_stats.push_back(stats(b, head, whole, working));
        const std::vector<int64_t> rows = sample(data_.queries(b), rows_per_head);
        auto exact = attention_query_gradients(data_.spec, q_.host, k_.host, v_.host, do_.host, b, head, rows,
                                               exact_stats.back(), Arithmetic::exact());
        auto base = attention_query_gradients(data_.spec, q_.host, k_.host, v_.host, do_.host, b, head, rows,
                                              base_stats.back(), working);
        for (size_t r = 0; r < rows.size(); ++r)
          dq.add(dq_.host.row({at, head, data_.first_query(b) + rows[r]}), exact[r], base[r]);
      }
      const std::vector<int64_t> keys = sample(data_.keys(b), rows_per_head);
      auto exact = attention_key_gradients(data_.spec, q_.host, k_.host, v_.host, do_.host, b, h, keys, exact_stats,
                                           Arithmetic::exact());
      auto base =
          attention_key_gradients(data_.spec, q_.host, k_.host, v_.host, do_.host, b, h, keys, base_stats, working);
      for (size_t r = 0; r < keys.size(); ++r) {
        const int64_t row = data_.first_key(b) + keys[r];
        dk.add(dk_.host.row({at, h, row}), exact.dk[r], base.dk[r]);
        dv.add(dv_.host.row({at, h, row}), exact.dv[r], base.dv[r]);
      }
    }
    add_unused(dq, dq_.host, data_.spec.cu_q), add_unused(dk, dk_.host, data_.spec.cu_k);
    add_unused(dv, dv_.host, data_.spec.cu_k);
    reference::Tolerance t =
        reference::tolerance(dtype_of<T>(), std::max(data_.max_sq, data_.max_sk), config_.keys.tf32);
    t.max_factor = 3;
    if (sizeof(T) == 2) t.rmse_ratio = 1.5e-2;
    return std::vector<Check>{with_gaps("dQ", dq.compare(t), dq_.host), with_gaps("dK", dk.compare(t), dk_.host),
                              with_gaps("dV", dv.compare(t), dv_.host)};
  }
  bool set_config(const ConfigWords& words) override {
    (kDeterministic ? config_.queries : config_.keys) = attention_backward_kernels<T, TBias>().keys.from_words(words);
    return true;
  }
  Work work() const override {
    const double rows = static_cast<double>(data_.b * data_.hq * data_.sq),
                 keys = static_cast<double>(data_.b * data_.hkv * data_.sk),
                 width = static_cast<double>(data_.d + data_.dv);
    return {2 * data_.pairs() * static_cast<double>(3 * data_.d + 2 * data_.dv),
            sizeof(T) * 2 * width * (rows + keys) + 8 * rows};
  }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&dq_, &dk_, &dv_}; }

  /// What the pass starts from: computed from the definition, or for large problems from the tensors forward wrote.
  AttentionStats stats(int64_t b, int64_t head, bool whole, Arithmetic how) const {
    if (whole) return attention_stats(data_.spec, q_.host, k_.host, v_.host, do_.host, b, head, how);
    AttentionStats s;
    const int64_t at = data_.tensor_batch(b);
    for (int64_t i = 0; i < data_.queries(b); ++i) {
      const int64_t row = data_.first_query(b) + i;
      const std::vector<double> o = o_.host.row({at, head, row}), d_o = do_.host.row({at, head, row});
      double delta = 0;
      for (size_t c = 0; c < o.size(); ++c) delta += o[c] * d_o[c];
      s.lse.push_back(lse_.host.at({at, head, row})), s.delta.push_back(delta);
    }
    return s;
  }
  /// Rows of no sequence still hold what they held before.
  static void add_unused(Gathered& g, const HostTensor& t, const std::vector<int64_t>& cu) {
    if (cu.empty()) return;
    const std::vector<double> untouched(static_cast<size_t>(t.dim(3)), NAN);
    for (int64_t h = 0; h < t.dim(1); ++h)
      for (int64_t row = 0; row < t.dim(2); ++row)
        if (row < cu.front() || row >= cu.back()) g.add(t.row({0, h, row}), untouched, untouched);
  }

  Problem problem_;
  AttentionProblemData data_;
  AttentionConfig words_;
  AttentionBackwardConfig config_;
  DeviceTensor q_, k_, v_, o_, do_, lse_, dq_, dk_, dv_, workspace_;
};

void add_problems(CatalogRow& row, bool deterministic) {
  auto add = [&](const char* dtype, Purpose purpose, Fields f) {
    row.problems.push_back({dtype, std::move(f), purpose});
  };
  for (const char* d : {"f16", "bf16", "f32"})
    for (int64_t causal : {0, 1})
      add(d, Purpose::test, {{"B", 1}, {"Hq", 2}, {"Sq", 130}, {"D", 64}, {"causal", causal}});
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 1}, {"Sk", 1}, {"D", 64}});                      // E01
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 1}, {"Sk", 130}, {"D", 32}, {"causal", 1}});     // E02
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 113}, {"Sk", 203}, {"D", 64}, {"causal", 1}});   // E03
  add("bf16", Purpose::edge, {{"Hq", 1}, {"Sq", 203}, {"Sk", 113}, {"D", 32}, {"causal", 1}});  // E03
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 239}, {"Sk", 1}, {"D", 32}, {"causal", 1}});     // E03
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 70}, {"Sk", 80}, {"D", 59}, {"DV", 40}});        // E07
  add("bf16", Purpose::edge, {{"Hq", 1}, {"Sq", 65}, {"Sk", 80}, {"D", 111}, {"causal", 1}});   // E07
  for (int64_t d : {96, 128, 192, 256})                                                         // E07
    add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 70}, {"D", d}, {"causal", 1}});
  for (int64_t s : {63, 64, 65, 129})
    add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", s}, {"D", 32}, {"causal", 1}});  // E09
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 128}, {"D", 64}, {"amp", 60}});    // E10
  const std::pair<int64_t, int64_t> windows[] = {{0, 0}, {3, 0}, {0, 5}, {-1, 4}, {40, 20}};
  for (auto [left, right] : windows)  // E20
    add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 150}, {"Sk", 140}, {"D", 32}, {"left", left}, {"right", right}});
  for (int64_t cap : {15, 50})  // E22
    add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 100}, {"D", 32}, {"causal", 1}, {"softcap", cap}, {"amp", 30}});
  add("f32", Purpose::edge, {{"Hq", 1}, {"Sq", 70}, {"D", 32}, {"softcap", 2}, {"negative_scale", 1}});
  add("f16", Purpose::edge, {{"Hq", 6}, {"Hkv", 2}, {"Sq", 65}, {"D", 32}, {"causal", 1}});  // E23
  add("bf16", Purpose::edge, {{"Hq", 5}, {"Hkv", 1}, {"Sq", 70}, {"D", 32}});                // E23
  add("f16", Purpose::edge, {{"B", 2}, {"Hq", 4}, {"Sq", 70}, {"D", 32}, {"alibi", 1}});
  add("f16", Purpose::edge, {{"Hq", 2}, {"Sq", 90}, {"Sk", 140}, {"D", 32}, {"bias", 1}});
  add("f32", Purpose::edge, {{"Hq", 1}, {"Sq", 90}, {"Sk", 140}, {"D", 32}, {"bias", 2}});  // E15
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 90}, {"D", 32}, {"bias", 3}});               // S1.8
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 90}, {"Sk", 200}, {"D", 32}, {"bias", 4}});  // E12
  for (int64_t layout : {1, 2, 3})                                                          // E27
    add("f16", Purpose::edge, {{"B", 2}, {"Hq", 2}, {"Sq", 70}, {"D", 32}, {"causal", 1}, {"layout", layout}});
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 70}, {"D", 32}, {"transposed_do", 1}, {"shift", 1}});  // E27, E28
  add("tf32", Purpose::edge, {{"Hq", 1}, {"Sq", 70}, {"D", 64}, {"causal", 1}});
  for (int64_t pattern : {1, 2, 3, 4})  // E05
    add("f16", Purpose::edge, {{"Hq", 2}, {"Hkv", 1}, {"D", 32}, {"causal", pattern % 2}, {"varlen", pattern}});
  add("f32", Purpose::edge,
      {{"Hq", 1}, {"D", 32}, {"varlen", 2}, {"left", 30}, {"right", 10}, {"softcap", 30}, {"alibi", 1}});

  for (int64_t causal : {0, 1}) {
    add("f16", Purpose::bench, {{"B", 16}, {"Hq", 16}, {"Sq", 1024}, {"D", 128}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 4}, {"Hq", 16}, {"Sq", 4096}, {"D", 128}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 1}, {"Hq", 16}, {"Sq", 16384}, {"D", 128}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 16}, {"Hq", 32}, {"Sq", 1024}, {"D", 64}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 4}, {"Hq", 32}, {"Sq", 4096}, {"D", 64}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 1}, {"Hq", 32}, {"Sq", 16384}, {"D", 64}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 4}, {"Hq", 48}, {"Sq", 4096}, {"D", 32}, {"causal", causal}});  // S0.14
  }
  if (!deterministic)
    add("f16", Purpose::bench, {{"B", 1}, {"Hq", 2}, {"Sq", 100000}, {"D", 128}, {"causal", 1}});  // S4.9
  add("f32", Purpose::bench_host, {{"B", 1}, {"Hq", 8}, {"Sq", 1024}, {"D", 64}});
}

template <bool kDeterministic>
CatalogRow backward_row(const char* name, const char* summary) {
  CatalogRow row;
  row.name = name, row.summary = summary;
  row.peers = "FlashAttention-2 and cuDNN through torch sdpa";
  row.dtypes = {"f16", "bf16", "f32", "tf32"};
  row.sizes = attention_field_names();
  row.sizes.push_back("transposed_do: neighbours of dO along D are far apart");
  row.deterministic = kDeterministic;
  add_problems(row, kDeterministic);
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* {
      const auto& kernels = attention_backward_kernels<decltype(t)>();
      if constexpr (kDeterministic) return &kernels.queries;
      return &kernels.keys;
    });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    const AttentionBackwardConfig c = default_config(AttentionProblemData(p.sizes), p, kDeterministic, machine);
    return attention_backward_kernels<float>().keys.words(kDeterministic ? c.queries : c.keys);
  };
  row.tuning = [](const Problem& p, const Machine& machine) {
    const AttentionProblemData data(p.sizes);
    const AttentionBackwardConfig base = default_config(data, p, kDeterministic, untuned(machine));
    const DType dtype = storage_of(p.dtype);
    return Tuning{
        kDeterministic ? "attention_backward_queries" : "attention_backward",
        attention_backward_tuning_key(dtype, data.max_sq, data.d, data.dv, base.keys.causal),
        words_of(attention_backward_kernels<float>().keys,
                 attention_backward_space(kDeterministic ? base.queries : base.keys, !kDeterministic, dtype, machine))};
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_backward_types(p, [&](auto t, auto bias) {
      return make_case<AttentionBackwardCase<decltype(t), decltype(bias), kDeterministic>>(device, p, c);
    });
  };
  return row;
}

}  // namespace

CatalogRow attention_backward_row() {
  return backward_row<false>("attention_backward", "dQ, dK, dV of attention, dQ by additions in memory");
}
CatalogRow attention_backward_deterministic_row() {
  return backward_row<true>("attention_backward_deterministic", "dQ, dK, dV of attention, the same bits every time");
}

}  // namespace tile::kernels
