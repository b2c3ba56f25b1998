// block_sparse_attention_backward.cpp - catalog rows of block_sparse_attention_backward.h: the fast and the
// deterministic variant. O and LSE come from the forward kernel, over lists of its own.
#include "kernels/block_sparse_attention_backward.h"

#include "kernels/catalog/attention_block_mask.h"
#include "kernels/catalog/rows.h"

namespace tile::kernels {
namespace {

using reference::Arithmetic;
using reference::AttentionStats;
using reference::HostTensor;

/// The configs of a problem. The words of a row are those of the keys' program (fast) or of the queries' one.
AttentionBackwardConfig default_of(const AttentionProblemData& data, const Problem& p, bool deterministic,
                                   const Machine& machine) {
  AttentionBackwardConfig c = default_block_sparse_attention_backward_config(
      storage_of(p.dtype), data.sq, data.sk, data.d, data.dv, data.spec.causal, deterministic, machine);
  for (AttentionConfig* one : {&c.keys, &c.queries}) {
    data.complete(*one);
    one->tf32 = p.dtype == "tf32", one->split = data.sk % one->BN == 0;
  }
  c.keys.group = static_cast<int>(data.hq / data.hkv);
  return c;
}

template <class T, bool kDeterministic>
class BlockSparseAttentionBackwardCase : public OutputCase {
 public:
  BlockSparseAttentionBackwardCase(const Problem& p, const ConfigWords& words)
      : problem_(p),
        data_(p.sizes),
        mask_(p.sizes, data_),
        words_(block_sparse_attention_backward_kernels<T>().keys.from_words(words)) {
    data_.spec.mask_mod = mask_;
  }

  Status create(std::shared_ptr<Device> device) {
    constexpr DType type = dtype_of<T>();
    const Machine machine = Machine::of(device->properties());
    device_ = device;
    config_ = default_of(data_, problem_, kDeterministic, machine);
    (kDeterministic ? config_.queries : config_.keys) = words_;
    auto tensor = [&](int64_t h, int64_t s, int64_t d) { return HostTensor(type, data_.placement(h, s, d)); };
    HostTensor q = tensor(data_.hq, data_.sq, data_.d), k = tensor(data_.hkv, data_.sk, data_.d),
               v = tensor(data_.hkv, data_.sk, data_.dv), d_o = tensor(data_.hq, data_.sq, data_.dv);
    q.fill_normal(1), k.fill_normal(2), v.fill_normal(3), d_o.fill_normal(4);
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
    AttentionConfig forward = default_block_sparse_attention_config(type, data_.sq, data_.d, data_.dv,
                                                                    data_.spec.causal, data_.scale, machine);
    data_.complete(forward);
    MaskLists forward_lists;
    s(forward_lists.create(device, data_, mask_, forward, /*transposed=*/false))(make_lists());
    if (!s.ok()) return s.error();
    Stream& stream = device->default_stream();
    s(block_sparse_attention<T>(stream, q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(),
                                o_.view<T, 4>(), lse_.view<float, 3>(), forward_lists.views(), data_.options<float>(),
                                forward));
    if (s.ok()) s(stream.synchronize())(o_.download())(lse_.download());
    return s.status();
  }
  Status launch(Stream& stream) override {
    return block_sparse_attention_backward<T>(
        stream, q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(), o_.view<const T, 4>(),
        do_.view<const T, 4>(), lse_.view<const float, 3>(), dq_.view<T, 4>(), dk_.view<T, 4>(), dv_.view<T, 4>(),
        workspace_.view<float, 1>(), {keys_.views(), queries_.views()}, data_.options<float>(), config_);
  }
  bool set_config(const ConfigWords& words) override {
    (kDeterministic ? config_.queries : config_.keys) =
        block_sparse_attention_backward_kernels<T>().keys.from_words(words);
    return make_lists().ok();
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status s = workspace_.poison(); !s) return s.error();
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Arithmetic working = Arithmetic::working(dtype_of<T>());
    working.tf32 = config_.keys.tf32;
    const int64_t group = data_.hq / data_.hkv, kv_heads = data_.b * data_.hkv;
    const double row_cost = 4.0 * static_cast<double>((data_.d + data_.dv) * std::max(data_.sq, data_.sk));
    const int64_t rows_wanted = std::max<int64_t>(static_cast<int64_t>(budget / row_cost), 16);
    const bool whole = kv_heads * group * data_.sq <= rows_wanted;
    const std::vector<int64_t> heads = sample(kv_heads, whole ? kv_heads : 2);
    const int64_t rows_per_head = std::max<int64_t>(rows_wanted / (group * std::ssize(heads)), 2);
    Gathered dq, dk, dv;
    for (int64_t bh : heads) {
      const int64_t b = bh / data_.hkv, h = bh % data_.hkv;
      std::vector<AttentionStats> exact_stats, base_stats;
      for (int64_t head = h * group; head < (h + 1) * group; ++head) {
        exact_stats.push_back(stats(b, head, whole, Arithmetic::exact()));
        base_stats.push_back(stats(b, head, whole, working));
        const std::vector<int64_t> rows = sample(data_.sq, rows_per_head);
        const auto exact = attention_query_gradients(data_.spec, q_.host, k_.host, v_.host, do_.host, b, head, rows,
                                                     exact_stats.back(), Arithmetic::exact());
        const auto base = attention_query_gradients(data_.spec, q_.host, k_.host, v_.host, do_.host, b, head, rows,
                                                    base_stats.back(), working);
        for (size_t r = 0; r < rows.size(); ++r) dq.add(dq_.host.row({b, head, rows[r]}), exact[r], base[r]);
      }
      const std::vector<int64_t> keys = sample(data_.sk, rows_per_head);
      const auto exact = attention_key_gradients(data_.spec, q_.host, k_.host, v_.host, do_.host, b, h, keys,
                                                 exact_stats, Arithmetic::exact());
      const auto base = attention_key_gradients(data_.spec, q_.host, k_.host, v_.host, do_.host, b, h, keys, base_stats,
                                                working);
      for (size_t r = 0; r < keys.size(); ++r) {
        dk.add(dk_.host.row({b, h, keys[r]}), exact.dk[r], base.dk[r]);
        dv.add(dv_.host.row({b, h, keys[r]}), exact.dv[r], base.dv[r]);
      }
    }
    reference::Tolerance t =
        reference::tolerance(dtype_of<T>(), std::max(data_.sq, data_.sk), config_.keys.tf32);
    t.max_factor = 3;
    if (sizeof(T) == 2) t.rmse_ratio = 1.5e-2;
    return std::vector<Check>{with_gaps("dQ", dq.compare(t), dq_.host), with_gaps("dK", dk.compare(t), dk_.host),
                              with_gaps("dV", dv.compare(t), dv_.host)};
  }
  Work work() const override {
    const auto rows = static_cast<double>(data_.b * data_.hq * data_.sq),
               keys = static_cast<double>(data_.b * data_.hkv * data_.sk),
               width = static_cast<double>(data_.d + data_.dv);
    return {2 * mask_.pairs(data_) * static_cast<double>(3 * data_.d + 2 * data_.dv),
            sizeof(T) * 2 * width * (rows + keys) + 8 * rows};
  }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&dq_, &dk_, &dv_}; }

  Status make_lists() {
    if (Status s = keys_.create(device_, data_, mask_, config_.keys, /*transposed=*/true); !s) return s;
    return queries_.create(device_, data_, mask_, config_.queries, /*transposed=*/false);
  }
  /// What the pass starts from: computed from the definition, or for large problems from the tensors forward wrote.
  AttentionStats stats(int64_t b, int64_t head, bool whole, Arithmetic how) const {
    if (whole) return attention_stats(data_.spec, q_.host, k_.host, v_.host, do_.host, b, head, how);
    AttentionStats s;
    for (int64_t i = 0; i < data_.sq; ++i) {
      const std::vector<double> o = o_.host.row({b, head, i}), d_o = do_.host.row({b, head, i});
      double delta = 0;
      for (size_t c = 0; c < o.size(); ++c) delta += o[c] * d_o[c];
      s.lse.push_back(lse_.host.at({b, head, i})), s.delta.push_back(delta);
    }
    return s;
  }

  Problem problem_;
  AttentionProblemData data_;
  BlockMask mask_;
  AttentionConfig words_;
  AttentionBackwardConfig config_;
  std::shared_ptr<Device> device_;
  DeviceTensor q_, k_, v_, o_, do_, lse_, dq_, dk_, dv_, workspace_;
  MaskLists keys_, queries_;
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
  for (int64_t layout : {1, 2})
    add("f16", Purpose::edge,
        {{"B", 2}, {"Hq", 2}, {"Sq", 150}, {"D", 64}, {"causal", 1}, {"density", 50}, {"layout", layout}});
  const Fields size = {{"B", 4}, {"Hq", 16}, {"Sq", 8192}, {"D", 128}};
  add("f16", Purpose::bench, Fields(size).set("causal", 1));
  if (deterministic) return;
  add("f16", Purpose::bench, Fields(size).set("causal", 1).set("left", 1024));
  add("f16", Purpose::bench, Fields(size).set("density", 26));
  add("f16", Purpose::bench_host, {{"Hq", 4}, {"Sq", 1024}, {"D", 64}, {"density", 25}});
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
