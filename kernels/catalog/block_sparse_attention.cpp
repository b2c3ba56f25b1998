// block_sparse_attention.cpp - catalog row of block_sparse_attention.h; its lists are made by attention_lists.h, on the
// device, from a band and a random mask of blocks.
#include "kernels/block_sparse_attention.h"

#include "kernels/catalog/attention_block_mask.h"
#include "kernels/catalog/attention_case.h"
#include "kernels/catalog/rows.h"

namespace tile::kernels {
namespace {

template <class T>
class BlockSparseAttentionCase : public AttentionForwardCase {
 public:
  BlockSparseAttentionCase(const Problem& p, const ConfigWords& words)
      : AttentionForwardCase(p, dtype_of<T>(), dtype_of<T>()), mask_(p.sizes, data_) {
    config_ = block_sparse_attention_kernel<T>().from_words(words);
    data_.spec.mask_mod = mask_;
  }

  Status create(std::shared_ptr<Device> device) {
    device_ = device;
    Steps s;
    s(create_tensors(device))(make_lists());
    return s.status();
  }
  Status launch(Stream& stream) override {
    return block_sparse_attention<T>(stream, q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(),
                                     o_.view<T, 4>(), lse_.view<float, 3>(), lists_.views(), data_.options<float>(),
                                     config_);
  }
  bool set_config(const ConfigWords& words) override {
    config_ = block_sparse_attention_kernel<T>().from_words(words);
    return make_lists().ok();
  }

  std::vector<NamedTensor> tensors() const override {
    std::vector<NamedTensor> all = AttentionForwardCase::tensors();
    all.push_back({"blocks", &blocks_});
    return all;
  }

 private:
  double pairs() const override { return mask_.pairs(data_); }
  Status make_lists() { return lists_.create(device_, data_, mask_, config_, /*transposed=*/false); }

  BlockMask mask_;
  std::shared_ptr<Device> device_;
  MaskLists lists_;
  const reference::HostTensor blocks_ = mask_.tensor();
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
  add("f16", Purpose::edge, {{"Hq", 2}, {"Sq", 300}, {"D", 64}, {"causal", 1}, {"density", 60}, {"dropout", 20}});
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
