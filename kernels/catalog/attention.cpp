// attention.cpp - catalog row of attention.h.
#include "kernels/attention.h"

#include "kernels/catalog/attention_case.h"
#include "kernels/catalog/rows.h"

namespace tile::kernels {
namespace {

template <class T, class TOut, class TBias>
class AttentionCase : public AttentionForwardCase {
 public:
  AttentionCase(const Problem& p, const ConfigWords& words) : AttentionForwardCase(p, dtype_of<T>(), dtype_of<TOut>()) {
    set_config(words);
  }
  Status create(std::shared_ptr<Device> device) { return create_tensors(device); }
  bool set_config(const ConfigWords& words) override {
    return config_ = attention_kernel<T, TOut, TBias>().from_words(words), true;
  }
  Status launch(Stream& stream) override {
    return attention_forward<T, TOut, TBias>(stream, q_.view<const T, 4>(), k_.view<const T, 4>(),
                                             v_.view<const T, 4>(), o_.view<TOut, 4>(), lse_.view<float, 3>(),
                                             data_.options<TBias>(), config_);
  }
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
  add("f16", Purpose::test, {{"Hq", 2}, {"Sq", 200}, {"D", 64}, {"causal", 1}, {"dropout", 10}});  // E25, S1.3
  add("bf16", Purpose::edge, {{"B", 2}, {"Hq", 4}, {"Hkv", 2}, {"Sq", 113}, {"Sk", 203}, {"D", 128}, {"dropout", 50}});
  add("f32", Purpose::edge, {{"Hq", 1}, {"Sq", 70}, {"Sk", 300}, {"D", 32}, {"dropout", 99}});
  add("f16", Purpose::edge, {{"Hq", 2}, {"D", 64}, {"varlen", 2}, {"left", 30}, {"dropout", 30}});
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
    for (int64_t d : {72, 80, 112})
      add("f16", Purpose::bench, {{"B", 4}, {"Hq", 16}, {"Sq", 4096}, {"D", d}, {"causal", causal}});
    add("f32", Purpose::bench_host, {{"B", 1}, {"Hq", 8}, {"Sq", 1024}, {"D", 64}, {"causal", causal}});
  }
  add("f16", Purpose::bench_host, {{"B", 1}, {"Hq", 8}, {"Sq", 1024}, {"D", 64}});
  add("f16", Purpose::bench, {{"B", 4}, {"Hq", 16}, {"Sq", 4096}, {"D", 128}, {"causal", 1}, {"left", 1024}});
  add("f16", Purpose::bench, {{"Hq", 16}, {"D", 128}, {"causal", 1}, {"varlen", 6}});
  add("f8e4m3", Purpose::bench, {{"B", 4}, {"Hq", 16}, {"Sq", 4096}, {"D", 128}});
  for (int64_t d : {64, 128})
    add("f16", Purpose::bench, {{"B", 4}, {"Hq", 2048 / d}, {"Sq", 4096}, {"D", d}, {"causal", 1}, {"dropout", 10}});
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
