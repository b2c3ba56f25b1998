// block_sparse_attention_backward.cpp - catalog rows of block_sparse_attention_backward.h: the fast and the
// deterministic variant. O and LSE come from the forward kernel, over lists of its own.
#include "kernels/block_sparse_attention_backward.h"

#include "kernels/catalog/attention_block_mask.h"
#include "kernels/catalog/attention_case.h"
#include "kernels/catalog/rows.h"

namespace tile::kernels {
namespace {

/// The configs of a problem. The words of a row are those of the keys' program (fast) or of the queries' one.
AttentionBackwardConfig default_of(const AttentionProblemData& data, const Problem& p, bool deterministic,
                                   const Machine& machine) {
  AttentionConfig features;
  data.complete(features);
  features.left = features.right = false;
  AttentionBackwardConfig c =
      default_block_sparse_attention_backward_config(storage_of(p.dtype), data.sq, data.sk, data.d, data.dv,
                                                     data.spec.causal, attention_is_plain(features), deterministic,
                                                     machine);
  if (data.spec.dropout != 0) c = fit_dropout(c, storage_of(p.dtype), machine);
  for (AttentionConfig* one : {&c.keys, &c.queries}) {
    data.complete(*one);
    one->tf32 = p.dtype == "tf32", one->split = data.sk % one->BN == 0;
  }
  c.keys.group = static_cast<int>(data.hq / data.hkv);
  return c;
}

template <class T, bool kDeterministic>
class BlockSparseAttentionBackwardCase : public AttentionGradientCase {
 public:
  BlockSparseAttentionBackwardCase(const Problem& p, const ConfigWords& words)
      : AttentionGradientCase(p, dtype_of<T>()), problem_(p), mask_(p.sizes, data_), words_(words) {
    data_.spec.mask_mod = mask_;
  }

  Status create(std::shared_ptr<Device> device) {
    const Machine machine = Machine::of(device->properties());
    device_ = device;
    config_ = default_of(data_, problem_, kDeterministic, machine);
    main_config() = from_words(words_);
    AttentionConfig forward = default_block_sparse_attention_config(dtype_of<T>(), data_.sq, data_.d, data_.dv,
                                                                    data_.spec.causal, data_.scale, machine);
    data_.complete(forward);
    MaskLists forward_lists;
    Stream& stream = device->default_stream();
    Steps s;
    s(create_tensors(device, kDeterministic));
    if (s.ok()) s(forward_lists.create(device, data_, mask_, forward, /*transposed=*/false))(make_lists());
    if (!s.ok()) return s.status();
    s(block_sparse_attention<T>(stream, q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(),
                                o_.view<T, 4>(), lse_.view<float, 3>(), forward_lists.views(), data_.options<float>(),
                                forward));
    if (s.ok()) s(forward_ran(stream));
    return s.status();
  }
  Status launch(Stream& stream) override {
    return block_sparse_attention_backward<T>(
        stream, q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(), o_.view<const T, 4>(),
        do_.view<const T, 4>(), lse_.view<const float, 3>(), dq_.view<T, 4>(), dk_.view<T, 4>(), dv_.view<T, 4>(),
        workspace_.view<float, 1>(), {keys_.views(), queries_.views()}, data_.options<float>(), config_);
  }
  bool set_config(const ConfigWords& words) override {
    main_config() = from_words(words);
    return make_lists().ok();
  }

  std::vector<NamedTensor> tensors() const override {
    std::vector<NamedTensor> all = AttentionGradientCase::tensors();
    all.push_back({"blocks", &blocks_});
    return all;
  }

 private:
  double pairs() const override { return mask_.pairs(data_); }
  AttentionConfig& main_config() { return kDeterministic ? config_.queries : config_.keys; }
  static AttentionConfig from_words(const ConfigWords& words) {
    return block_sparse_attention_backward_kernels<T>().keys.from_words(words);
  }
  Status make_lists() {
    if (Status s = keys_.create(device_, data_, mask_, config_.keys, /*transposed=*/true); !s) return s;
    return queries_.create(device_, data_, mask_, config_.queries, /*transposed=*/false);
  }

  Problem problem_;
  BlockMask mask_;
  ConfigWords words_;
  std::shared_ptr<Device> device_;
  MaskLists keys_, queries_;
  const reference::HostTensor blocks_ = mask_.tensor();
};

void add_problems(CatalogRow& row, bool deterministic) {
  auto add = [&](const char* dtype, Purpose purpose, Fields f) {
    row.problems.push_back({dtype, std::move(f), purpose});
  };
  for (const char* d : {"f16", "bf16", "f32"})
    add(d, Purpose::test, {{"Hq", 2}, {"Sq", 300}, {"Sk", 430}, {"D", 64}, {"causal", 1}, {"density", 60}});
  add("f16", Purpose::test, {{"B", 2}, {"Hq", 2}, {"Sq", 384}, {"D", 64}, {"density", 50}});
  add("f16", Purpose::test, {{"Hq", 1}, {"Sq", 384}, {"D", 128}, {"causal", 1}, {"left", 150}});
  add("f16", Purpose::edge, {{"Sq", 1}, {"D", 32}});
  add("f16", Purpose::edge, {{"Hq", 2}, {"Sq", 200}, {"D", 64}, {"density", 0}});                       // no pair
  add("f16", Purpose::edge, {{"Hq", 2}, {"Sq", 400}, {"D", 32}, {"density", 70}, {"hole", 1}});         // empty rows
  add("f32", Purpose::edge, {{"Sq", 300}, {"Sk", 100}, {"D", 32}, {"causal", 1}, {"density", 50}});     // before key 0
  add("f16", Purpose::edge, {{"Sq", 300}, {"Sk", 200}, {"D", 32}, {"left", 50}, {"right", 40}, {"density", 70}});
  add("f16", Purpose::edge, {{"Sq", 140}, {"Sk", 270}, {"D", 32}, {"causal", 1}, {"top_left", 1}});
  add("bf16", Purpose::edge,
      {{"Hq", 6}, {"Hkv", 2}, {"Sq", 200}, {"D", 40}, {"DV", 72}, {"density", 40}, {"per_head", 1}});
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 200}, {"D", 256}, {"causal", 1}, {"density", 50}});
  add("f16", Purpose::edge, {{"Hq", 2}, {"Sq", 200}, {"D", 64}, {"causal", 1}, {"softcap", 15}, {"alibi", 1}});
  add("f32", Purpose::edge, {{"Sq", 150}, {"D", 32}, {"density", 50}, {"negative_scale", 1}});
  add("f16", Purpose::edge, {{"Hq", 2}, {"Sq", 200}, {"D", 64}, {"causal", 1}, {"density", 60}, {"dropout", 20}});
  for (int64_t layout : {1, 2})
    add("f16", Purpose::edge,
        {{"B", 2}, {"Hq", 2}, {"Sq", 150}, {"D", 64}, {"causal", 1}, {"density", 50}, {"layout", layout}});
  const Fields size = {{"B", 4}, {"Hq", 16}, {"Sq", 8192}, {"D", 128}};
  add("f16", Purpose::bench, Fields(size).set("causal", 1));
  add("f16", Purpose::bench_host, {{"Hq", 4}, {"Sq", 1024}, {"D", 64}, {"density", 25}});
  if (deterministic) return;
  add("f16", Purpose::bench, Fields(size).set("causal", 1).set("left", 1024));
  add("f16", Purpose::bench, Fields(size).set("density", 26));
}

template <bool kDeterministic>
CatalogRow backward_row(const char* name, const char* summary) {
  CatalogRow row;
  row.name = name, row.summary = summary;
  row.peers = "flex_attention backward";
  row.deterministic = kDeterministic;
  row.dtypes = {"f16", "bf16", "f32"};
  row.sizes = attention_field_names();
  for (const std::string& field : block_mask_field_names()) row.sizes.push_back(field);
  add_problems(row, kDeterministic);
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* {
      const auto& k = block_sparse_attention_backward_kernels<decltype(t)>();
      if constexpr (kDeterministic)
        return &k.queries;
      else
        return &k.keys;
    });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    const AttentionBackwardConfig c = default_of(AttentionProblemData(p.sizes), p, kDeterministic, machine);
    return block_sparse_attention_backward_kernels<float>().keys.words(kDeterministic ? c.queries : c.keys);
  };
  row.tuning = [](const Problem& p, const Machine& machine) {
    const AttentionProblemData data(p.sizes);
    const DType dtype = storage_of(p.dtype);
    const AttentionBackwardConfig base = default_of(data, p, kDeterministic, untuned(machine));
    const AttentionConfig& config = kDeterministic ? base.queries : base.keys;
    return Tuning{
        kDeterministic ? "block_sparse_attention_backward_queries" : "block_sparse_attention_backward",
        attention_backward_tuning_key(dtype, data.sq, data.d, data.dv, config.causal),
        words_of(block_sparse_attention_backward_kernels<float>().keys,
                 block_sparse_attention_backward_space(config, !kDeterministic, data.sk, dtype, machine))};
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_float_type(p.dtype, [&](auto t) {
      return make_case<BlockSparseAttentionBackwardCase<decltype(t), kDeterministic>>(device, p, c);
    });
  };
  return row;
}

}  // namespace

CatalogRow block_sparse_attention_backward_row() {
  return backward_row<false>("block_sparse_attention_backward",
                             "dQ, dK, dV of attention over listed blocks, dQ by additions in memory");
}
CatalogRow block_sparse_attention_backward_deterministic_row() {
  return backward_row<true>("block_sparse_attention_backward_deterministic",
                            "dQ, dK, dV of attention over listed blocks, the same bits every time");
}

}  // namespace tile::kernels
