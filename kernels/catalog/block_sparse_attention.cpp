// block_sparse_attention.cpp - catalog row of block_sparse_attention.h; its lists are made by attention_lists.h, on the
// device, from a band and a random mask of blocks.
#include "kernels/block_sparse_attention.h"

#include "kernels/catalog/attention_problem.h"
#include "kernels/catalog/rows.h"

namespace tile::kernels {
namespace {

using reference::Arithmetic;
using reference::HostTensor;

/// Which blocks of queries and keys may meet.
struct BlockMask {
  int64_t block, rows, columns, batches, heads;
  std::vector<char> present;  ///< [batches, heads, rows, columns]

  BlockMask(const Fields& f, const AttentionProblemData& data)
      : block(f.get("block", 128)),
        rows(cdiv(data.sq, block)),
        columns(cdiv(data.sk, block)),
        batches(f["per_head"] ? data.b : 1),
        heads(f["per_head"] ? data.hq : 1) {
    HostTensor draw(DType::f32, {batches, heads, rows, columns});
    draw.fill_uniform(5, 0, 100);
    const auto density = static_cast<double>(f.get("density", 100));
    reference::for_each_index(draw.shape(), [&](std::span<const int64_t> at) {
      present.push_back(draw.at(at) < density && !(f["hole"] && at[2] == 1));
    });
  }
  bool operator()(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const int64_t row = ((batches > 1 ? b : 0) * heads + (heads > 1 ? h : 0)) * rows + i / block;
    return present[static_cast<size_t>(row * columns + j / block)];
  }
  HostTensor tensor() const {
    HostTensor t(DType::i32, {batches, heads, rows, columns});
    size_t next = 0;
    reference::for_each_index(t.shape(), [&](std::span<const int64_t> at) { t.set(at, present[next++]); });
    return t;
  }
};

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
    Steps s;
    s(data_.create(device, dtype_of<T>()));
    s(q_.create(device, std::move(q)))(k_.create(device, std::move(k)))(v_.create(device, std::move(v)));
    s(o_.create(device, tensor(data_.hq, data_.sq, data_.dv)));
    s(lse_.create(device, HostTensor(DType::f32, {data_.b, data_.hq, data_.sq})));
    const reference::Dims row = {mask_.batches, mask_.heads, cdiv<int64_t>(data_.sq, config_.BM)};
    const reference::Dims matrix = {row[0], row[1], row[2], cdiv<int64_t>(data_.sk, config_.BN)};
    s(mask_tensor_.create(device, mask_.tensor()));
    for (DeviceTensor* t : {&kinds_, &partial_blocks_, &full_blocks_})
      s(t->create(device, HostTensor(DType::i32, matrix)));
    for (DeviceTensor* t : {&partial_counts_, &full_counts_}) s(t->create(device, HostTensor(DType::i32, row)));
    if (s.ok()) s(make_lists(device->default_stream()));
    return s.status();
  }
  Status launch(Stream& stream) override {
    return block_sparse_attention<T>(stream, q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(),
                                     o_.view<T, 4>(), lse_.view<float, 3>(), lists(), data_.options<float>(), config_);
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
    return {2 * pairs() * (d + dv), sizeof(T) * ((queries + keys) * d + (queries + keys) * dv) + 4 * queries};
  }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&o_, &lse_}; }

  Status make_lists(Stream& stream) {
    AttentionListsConfig c = attention_lists_config(config_);
    c.MASK_BM = c.MASK_BN = static_cast<int>(mask_.block);
    if (Status s = attention_block_kinds(attention_block_kinds_kernel(), stream, kinds_.view<int32_t, 4>(),
                                         mask_tensor_.view<const int32_t, 4>(), data_.sq, data_.sk,
                                         static_cast<int>(data_.spec.left), static_cast<int>(data_.spec.right), c);
        !s)
      return s;
    return attention_lists(stream, kinds_.view<const int32_t, 4>(), lists(), c);
  }
  AttentionLists<int32_t> lists() const {
    return {partial_counts_.view<int32_t, 3>(), partial_blocks_.view<int32_t, 4>(), full_counts_.view<int32_t, 3>(),
            full_blocks_.view<int32_t, 4>()};
  }
  /// Visible pairs over all heads; of heads that share a mask one is counted.
  double pairs() const {
    int64_t visible = 0;
    for (int64_t b = 0; b < mask_.batches; ++b)
      for (int64_t h = 0; h < mask_.heads; ++h)
        for (int64_t i = 0; i < data_.sq; ++i)
          for (int64_t j0 = 0; j0 < data_.sk; j0 += mask_.block)
            if (mask_(b, h, i, j0)) visible += visible_in_block(i, j0);
    return static_cast<double>(visible) * static_cast<double>(data_.b * data_.hq) /
           static_cast<double>(mask_.batches * mask_.heads);
  }
  int64_t visible_in_block(int64_t i, int64_t j0) const {
    const reference::AttentionSpec& s = data_.spec;
    const int64_t aligned = s.top_left ? i : i + data_.sk - data_.sq, right = s.causal ? 0 : s.right;
    const int64_t begin = s.left < 0 ? j0 : std::max(j0, aligned - s.left);
    const int64_t end = std::min(j0 + mask_.block, data_.sk);
    return std::max<int64_t>(0, (right < 0 ? end : std::min(end, aligned + right + 1)) - begin);
  }

  AttentionProblemData data_;
  BlockMask mask_;
  AttentionConfig config_;
  DeviceTensor q_, k_, v_, o_, lse_, mask_tensor_, kinds_, partial_counts_, partial_blocks_, full_counts_, full_blocks_;
};

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
  for (const char* name : {"density: percent of blocks present (100)", "block: size of those blocks (128)",
                           "per_head: every head has its own blocks", "hole: the second row of blocks is empty"})
    row.sizes.push_back(name);
  add_problems(row);
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* { return &block_sparse_attention_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    const AttentionProblemData data(p.sizes);
    AttentionConfig c = default_block_sparse_attention_config(storage_of(p.dtype), data.sq, data.d, data.dv,
                                                              data.spec.causal, data.scale, machine);
    data.complete(c);
    c.tf32 = p.dtype == "tf32", c.split = data.sk % c.BN == 0;
    return block_sparse_attention_kernel<float>().words(c);
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_float_type(p.dtype,
                           [&](auto t) { return make_case<BlockSparseAttentionCase<decltype(t)>>(device, p, c); });
  };
  return row;
}

}  // namespace tile::kernels
