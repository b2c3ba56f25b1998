// attention_backward.cpp - catalog rows of attention_backward.h: the fast and the deterministic variant.
#include "kernels/attention_backward.h"

#include "kernels/catalog/attention_case.h"
#include "kernels/catalog/rows.h"

namespace tile::kernels {
namespace {

/// The configs of a problem. The words of a row are those of the keys' program (fast) or of the queries' one.
AttentionBackwardConfig default_config(const AttentionProblemData& data, const Problem& p, bool deterministic,
                                       const Machine& machine) {
  AttentionConfig features;
  data.complete(features);
  AttentionBackwardConfig c = default_attention_backward_config(storage_of(p.dtype), data.max_sq, data.max_sk, data.d,
                                                                data.dv, data.spec.causal || data.spec.right == 0,
                                                                attention_is_plain(features), deterministic, machine);
  if (data.spec.dropout != 0) c = fit_dropout(c, storage_of(p.dtype), machine);
  for (AttentionConfig* one : {&c.keys, &c.queries}) {
    data.complete(*one);
    one->tf32 = p.dtype == "tf32";
  }
  c.keys.group = static_cast<int>(data.hq / data.hkv);
  return c;
}

template <class T, class TBias, bool kDeterministic>
class AttentionBackwardCase : public AttentionGradientCase {
 public:
  AttentionBackwardCase(const Problem& p, const ConfigWords& words)
      : AttentionGradientCase(p, dtype_of<T>()), problem_(p), words_(words) {}

  Status create(std::shared_ptr<Device> device) {
    config_ = default_config(data_, problem_, kDeterministic, Machine::of(device->properties()));
    set_config(words_);
    Stream& stream = device->default_stream();
    Steps s;
    s(create_tensors(device, kDeterministic));
    if (!s.ok()) return s.status();
    s(attention_forward<T, T, TBias>(stream, q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(),
                                     o_.view<T, 4>(), lse_.view<float, 3>(), data_.options<TBias>()));
    if (s.ok()) s(forward_ran(stream));
    return s.status();
  }
  Status launch(Stream& stream) override {
    return attention_backward<T, TBias>(stream, q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(),
                                        o_.view<const T, 4>(), do_.view<const T, 4>(), lse_.view<const float, 3>(),
                                        dq_.view<T, 4>(), dk_.view<T, 4>(), dv_.view<T, 4>(),
                                        workspace_.view<float, 1>(), data_.options<TBias>(), config_);
  }
  bool set_config(const ConfigWords& words) override {
    (kDeterministic ? config_.queries : config_.keys) = attention_backward_kernels<T, TBias>().keys.from_words(words);
    return true;
  }

 private:
  Problem problem_;
  ConfigWords words_;
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
  add("f16", Purpose::test, {{"Hq", 2}, {"Sq", 200}, {"D", 64}, {"causal", 1}, {"dropout", 10}});  // E25, S1.3
  add("bf16", Purpose::edge, {{"B", 2}, {"Hq", 4}, {"Hkv", 2}, {"Sq", 113}, {"Sk", 203}, {"D", 128}, {"dropout", 50}});
  add("f32", Purpose::edge, {{"Hq", 1}, {"Sq", 70}, {"Sk", 90}, {"D", 32}, {"dropout", 80}});
  add("f16", Purpose::edge, {{"Hq", 1}, {"D", 64}, {"varlen", 2}, {"left", 30}, {"dropout", 30}});

  for (int64_t causal : {0, 1}) {
    add("f16", Purpose::bench, {{"B", 16}, {"Hq", 16}, {"Sq", 1024}, {"D", 128}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 4}, {"Hq", 16}, {"Sq", 4096}, {"D", 128}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 1}, {"Hq", 16}, {"Sq", 16384}, {"D", 128}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 16}, {"Hq", 32}, {"Sq", 1024}, {"D", 64}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 4}, {"Hq", 32}, {"Sq", 4096}, {"D", 64}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 1}, {"Hq", 32}, {"Sq", 16384}, {"D", 64}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 4}, {"Hq", 48}, {"Sq", 4096}, {"D", 32}, {"causal", causal}});  // S0.14
    for (int64_t d : {72, 80, 112})
      add("f16", Purpose::bench, {{"B", 4}, {"Hq", 16}, {"Sq", 4096}, {"D", d}, {"causal", causal}});
  }
  for (int64_t d : {64, 128})
    add("f16", Purpose::bench, {{"B", 4}, {"Hq", 2048 / d}, {"Sq", 4096}, {"D", d}, {"causal", 1}, {"dropout", 10}});
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
