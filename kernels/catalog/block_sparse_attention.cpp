// block_sparse_attention.cpp - catalog row of block_sparse_attention.h; its lists are made by attention_lists.h, on the
// device, from a band and a random mask of blocks.
#include "kernels/block_sparse_attention.h"

#include "kernels/catalog/attention_block_mask.h"
#include "kernels/catalog/rows.h"

namespace tile::kernels {
namespace {

using reference::Arithmetic;
using reference::HostTensor;

template <class T>
class BlockSparseAttentionCase : public OutputCase {
 public:
  BlockSparseAttentionCase(const Problem& p, const ConfigWords& words)
      : data_(p.sizes), mask_(p.sizes, data_), config_(block_sparse_attention_kernel<T>().from_words(words)) {
    data_.spec.mask_mod = mask_;
  }

  Status create(std::shared_ptr<Device> device) {
    auto tensor = [&](int64_t h, int64_t s, int64_t d) { return HostTensor(dtype_of<T>(), data_.placement(h, s, d)); };
    HostTensor q = tensor(data_.hq, data_.sq, data_.d), k = tensor(data_.hkv, data_.sk, data_.d),
               v = tensor(data_.hkv, data_.sk, data_.dv);
    q.fill_normal(1), k.fill_normal(2), v.fill_normal(3);
    if (const int64_t at = data_.fields()["nan_value"]) v.set({0, 0, at, 1}, NAN);  // E17
    Steps s;
    device_ = device;
    s(data_.create(device, dtype_of<T>()));
    s(q_.create(device, std::move(q)))(k_.create(device, std::move(k)))(v_.create(device, std::move(v)));
    s(o_.create(device, tensor(data_.hq, data_.sq, data_.dv)));
    s(lse_.create(device, HostTensor(DType::f32, {data_.b, data_.hq, data_.sq})));
    s(lists_.create(device, data_, mask_, config_, /*transposed=*/false));
    return s.status();
  }
  Status launch(Stream& stream) override {
    return block_sparse_attention<T>(stream, q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(),
                                     o_.view<T, 4>(), lse_.view<float, 3>(), lists_.views(), data_.options<float>(),
                                     config_);
  }
  bool set_config(const ConfigWords& words) override {
    config_ = block_sparse_attention_kernel<T>().from_words(words);
    return lists_.create(device_, data_, mask_, config_, /*transposed=*/false).ok();
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Arithmetic working = Arithmetic::working(dtype_of<T>());
    working.tf32 = config_.tf32;
    const int64_t heads = data_.b * data_.hq;
    const double row_cost = 2.0 * static_cast<double>(data_.sk * (data_.d + data_.dv));
    const int64_t rows_wanted = std::max<int64_t>(static_cast<int64_t>(budget / std::max(row_cost, 1.0)), 16);
    const std::vector<int64_t> chosen = sample(heads, data_.sq * heads <= rows_wanted ? heads : 8);
    Gathered o, lse;
    for (int64_t bh : chosen) {
      const int64_t b = bh / data_.hq, h = bh % data_.hq;
      const std::vector<int64_t> rows = sample(data_.sq, rows_wanted / static_cast<int64_t>(chosen.size()));
      const auto exact = attention_rows(data_.spec, q_.host, k_.host, v_.host, b, h, rows, Arithmetic::exact());
      const auto base = attention_rows(data_.spec, q_.host, k_.host, v_.host, b, h, rows, working);
      for (size_t r = 0; r < rows.size(); ++r) {
        o.add(o_.host.row({b, h, rows[r]}), exact[r].o, base[r].o);
        lse.add({lse_.host.at({b, h, rows[r]})}, {exact[r].lse}, {base[r].lse});
      }
    }
    const double lse_bound = config_.tf32 ? 1e-2 : sizeof(T) == 4 ? 1e-4 : 1e-3;
    return std::vector<Check>{
        with_gaps("O", o.compare(reference::tolerance(dtype_of<T>(), data_.sk, config_.tf32)), o_.host),
        with_gaps("LSE", reference::compare_absolute(lse.actual, lse.exact, lse_bound), lse_.host)};
  }
  Work work() const override {
    const auto queries = static_cast<double>(data_.b * data_.hq * data_.sq),
               keys = static_cast<double>(data_.b * data_.hkv * data_.sk);
    const auto d = static_cast<double>(data_.d), dv = static_cast<double>(data_.dv);
    return {2 * mask_.pairs(data_) * (d + dv), sizeof(T) * ((queries + keys) * d + (queries + keys) * dv) + 4 * queries};
  }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&o_, &lse_}; }

  AttentionProblemData data_;
  BlockMask mask_;
  AttentionConfig config_;
  std::shared_ptr<Device> device_;
  DeviceTensor q_, k_, v_, o_, lse_;
  MaskLists lists_;
};

AttentionConfig default_of(const Problem& p, const Machine& machine) {
  const AttentionProblemData data(p.sizes);
  AttentionConfig c = default_block_sparse_attention_config(storage_of(p.dtype), data.sq, data.d, data.dv,
                                                            data.spec.causal, data.scale, machine);
  data.complete(c);
  if (data.guard_values) c = fit_guard(c, machine);
  c.tf32 = p.dtype == "tf32", c.split = data.sk % c.BN == 0;
  return c;
}

void add_problems(CatalogRow& row) {
  auto add = [&](const char* dtype, Purpose purpose, Fields f) {
    row.problems.push_back({dtype, std::move(f), purpose});
  };
  for (const char* d : {"f16", "bf16", "f32", "tf32"}) {
    add(d, Purpose::test, {{"B", 2}, {"Hq", 2}, {"Sq", 512}, {"D", 64}, {"density", 50}});
    add(d, Purpose::test,
        {{"Hq", 4}, {"Hkv", 2}, {"Sq", 300}, {"Sk", 430}, {"D", 64}, {"causal", 1}, {"density", 60}, {"per_head", 1}});
  }
  add("f16", Purpose::test, {{"Hq", 2}, {"Sq", 600}, {"D", 128}, {"causal", 1}, {"left", 200}});
  add("f16", Purpose::edge, {{"Sq", 1}, {"D", 32}});
  add("f16", Purpose::edge, {{"Hq", 2}, {"Sq", 300}, {"D", 64}, {"density", 0}});                    // nothing visible
  add("f16", Purpose::edge, {{"Hq", 2}, {"Sq", 400}, {"D", 64}, {"density", 70}, {"hole", 1}});      // empty rows
  add("f32", Purpose::edge, {{"Sq", 600}, {"Sk", 200}, {"D", 32}, {"causal", 1}, {"density", 50}});  // before key 0
  add("f16", Purpose::edge, {{"Sq", 300}, {"Sk", 500}, {"D", 32}, {"left", 150}, {"right", 40}, {"density", 70}});
  add("f16", Purpose::edge, {{"Sq", 260}, {"Sk", 390}, {"D", 32}, {"causal", 1}, {"top_left", 1}});
  add("bf16", Purpose::edge,
      {{"Hq", 6}, {"Hkv", 2}, {"Sq", 300}, {"D", 40}, {"DV", 72}, {"density", 40}, {"per_head", 1}});
  add("f16", Purpose::edge, {{"Hq", 2}, {"Sq", 300}, {"D", 256}, {"causal", 1}, {"density", 50}});
  add("f16", Purpose::edge, {{"Hq", 2}, {"Sq", 300}, {"D", 64}, {"causal", 1}, {"softcap", 15}, {"alibi", 1}});
  add("f32", Purpose::edge, {{"Sq", 200}, {"D", 32}, {"density", 50}, {"negative_scale", 1}});
  for (const char* d : {"f16", "f32"})  // E17
    add(d, Purpose::edge, {{"Hq", 1}, {"Sq", 300}, {"D", 64}, {"causal", 1}, {"nan_value", 140}});
  for (int64_t layout : {1, 2, 3})
    add("f16", Purpose::edge,
        {{"B", 2}, {"Hq", 2}, {"Sq", 200}, {"D", 64}, {"causal", 1}, {"density", 50}, {"layout", layout}});
  const Fields size = {{"B", 4}, {"Hq", 16}, {"Sq", 8192}, {"D", 128}};
  add("f16", Purpose::bench, Fields(size).set("causal", 1));
  add("f16", Purpose::bench, Fields(size).set("causal", 1).set("left", 1024));
  add("f16", Purpose::bench, Fields(size).set("density", 26));
  add("f16", Purpose::bench_host, {{"Hq", 8}, {"Sq", 2048}, {"D", 64}, {"density", 25}});
}

}  // namespace

CatalogRow block_sparse_attention_row() {
  CatalogRow row;
  row.name = "block_sparse_attention";
  row.summary = "O = softmax(scale Q K^T) V and LSE over listed blocks, full and partial";
  row.peers = "flex_attention";
  row.dtypes = {"f16", "bf16", "f32", "tf32"};
  row.sizes = attention_field_names();
  for (const std::string& name : block_mask_field_names()) row.sizes.push_back(name);
  add_problems(row);
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* { return &block_sparse_attention_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    return block_sparse_attention_kernel<float>().words(default_of(p, machine));
  };
  row.tuning = [](const Problem& p, const Machine& machine) {
    const AttentionProblemData data(p.sizes);
    const DType dtype = storage_of(p.dtype);
    const AttentionConfig base = default_of(p, untuned(machine));
    return Tuning{"block_sparse_attention", attention_tuning_key(dtype, data.sq, data.d, data.dv, base.causal),
                  words_of(block_sparse_attention_kernel<float>(), block_sparse_attention_space(base, dtype, machine))};
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_float_type(p.dtype,
                           [&](auto t) { return make_case<BlockSparseAttentionCase<decltype(t)>>(device, p, c); });
  };
  return row;
}

}  // namespace tile::kernels
