// paged_attention.cpp - catalog row of paged_attention.h.
#include "kernels/paged_attention.h"

#include <numeric>

#include "kernels/catalog/case.h"
#include "kernels/catalog/rows.h"
#include "kernels/reference/feed_forward.h"

namespace tile::kernels {
namespace {

using reference::Arithmetic;
using reference::HostTensor;

/// Sequences of different lengths (one of them empty where there are three or more), pages in scattered order.
template <class T>
class PagedAttentionCase : public OutputCase {
 public:
  PagedAttentionCase(const Problem& p, const ConfigWords& words)
      : batch_(p.sizes["B"]),
        heads_(p.sizes["Hkv"]),
        longest_(p.sizes["S"]),
        config_(paged_attention_kernel<T>().from_words(words)) {
    per_ = cdiv(longest_, int64_t{config_.PAGE});
    for (int64_t b = 0; b < batch_; ++b)
      length_.push_back(b == 2 ? 0 : std::max<int64_t>(1, longest_ - b * longest_ / (2 * batch_) - 3 * (b % 2)));
    // A permutation of the pages: steps of a number without common factors.
    const int64_t pages = batch_ * per_;
    int64_t step = pages / 2 + 1;
    while (std::gcd(step, pages) != 1) ++step;
    for (int64_t i = 0; i < pages; ++i) table_.push_back(i * step % pages);
  }
  Status create(std::shared_ptr<Device> device) {
    const int64_t D = config_.D, H = heads_ * config_.GROUP, pages = batch_ * per_;
    HostTensor q(dtype_of<T>(), {batch_, H, D}), k(dtype_of<T>(), {pages, config_.PAGE, heads_, D});
    HostTensor v = k, table(DType::i32, {batch_, per_}), length(DType::i32, {batch_});
    q.fill_normal(1), k.fill_normal(2), v.fill_normal(3);
    for (int64_t b = 0; b < batch_; ++b) {
      length.set({b}, static_cast<double>(length_[static_cast<size_t>(b)]));
      for (int64_t i = 0; i < per_; ++i)
        table.set({b, i}, static_cast<double>(table_[static_cast<size_t>(b * per_ + i)]));
      // Tokens past the end of a sequence must not be looked at.
      for (int64_t t = length_[static_cast<size_t>(b)]; t < per_ * config_.PAGE; ++t)
        for (int64_t h = 0; h < heads_; ++h)
          for (int64_t d = 0; d < D; ++d)
            for (HostTensor* cache : {&k, &v})
              cache->set({table_[static_cast<size_t>(b * per_ + t / config_.PAGE)], t % config_.PAGE, h, d}, NAN);
    }
    Steps s;
    s(q_.create(device, std::move(q)))(k_.create(device, std::move(k)))(v_.create(device, std::move(v)));
    s(tables_.create(device, std::move(table)))(lengths_.create(device, std::move(length)));
    s(o_.create(device, HostTensor(DType::f32, {batch_, H, config_.splits, D})));
    s(lse_.create(device, HostTensor(DType::f32, {batch_, H, config_.splits})));
    s(y_.create(device, HostTensor(dtype_of<T>(), {batch_, H, D})));
    return s.status();
  }
  Status launch(Stream& stream) override {
    return paged_attention<T>(stream, q_.view<const T, 3>(), k_.view<const T, 4>(), v_.view<const T, 4>(),
                              tables_.view<const int32_t, 2>(), lengths_.view<const int32_t, 1>(), o_.view<float, 4>(),
                              lse_.view<float, 3>(), y_.view<T, 3>(), scale(), config_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Gathered g;
    const int64_t H = heads_ * config_.GROUP;
    const double cost = 40.0 * static_cast<double>(longest_ * config_.D);
    for (int64_t row : sample(batch_ * H, static_cast<int64_t>(budget / cost))) {
      const int64_t b = row / H, h = row % H;
      auto of = [&](Arithmetic how) {
        return paged_attention_row(q_.host.row({b, h}), k_.host, v_.host,
                                   std::span(table_).subspan(static_cast<size_t>(b * per_), static_cast<size_t>(per_)),
                                   length_[static_cast<size_t>(b)], h / config_.GROUP, static_cast<double>(scale()),
                                   how);
      };
      g.add(y_.host.row({b, h}), of(Arithmetic::exact()), of(Arithmetic::working(dtype_of<T>())));
    }
    return std::vector<Check>{with_gaps("Y", g.compare(reference::tolerance(dtype_of<T>(), longest_)), y_.host)};
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"q", &q_.host}, {"k", &k_.host}, {"v", &v_.host}, {"tables", &tables_.host}, {"lengths", &lengths_.host},
            {"y", &y_.host}};
  }
  Work work() const override {
    double tokens = 0;
    for (int64_t n : length_) tokens += static_cast<double>(n);
    const auto width = static_cast<double>(heads_ * config_.D);
    return {4 * tokens * width * config_.GROUP, 2 * tokens * width * sizeof(T)};
  }

 private:
  float scale() const { return 1 / std::sqrt(static_cast<float>(config_.D)); }
  std::vector<DeviceTensor*> outputs() override { return {&y_}; }

  int64_t batch_, heads_, longest_, per_ = 0;
  std::vector<int64_t> length_, table_;
  PagedAttentionConfig config_;
  DeviceTensor q_, k_, v_, tables_, lengths_, o_, lse_, y_;
};

template <class Fn>
auto with_half_type(std::string_view dtype, Fn fn) {
  return dtype == "f16" ? fn(half{}) : fn(bfloat16{});
}

}  // namespace

CatalogRow paged_attention_row() {
  CatalogRow row;
  row.name = "paged_attention";
  row.summary = "one token per sequence against keys and values in pages, split and combined (flash decoding)";
  row.dtypes = {"f16", "bf16"};
  row.sizes = {"B: sequences",
               "Hkv: heads of keys",
               "G: query heads for each (8)",
               "S: tokens of the longest sequence",
               "D: head dim (128)",
               "page: tokens of a page (16)",
               "splits: parts of a sequence, 0: by size"};
  for (const std::string& d : row.dtypes) {
    row.problems.push_back({d, {{"B", 3}, {"Hkv", 2}, {"G", 4}, {"S", 300}, {"D", 64}, {"splits", 3}}});
    row.problems.push_back({d, {{"B", 2}, {"Hkv", 1}, {"G", 1}, {"S", 1}, {"D", 64}}, Purpose::edge});
    row.problems.push_back(
        {d, {{"B", 2}, {"Hkv", 1}, {"G", 16}, {"S", 129}, {"D", 128}, {"splits", 5}}, Purpose::edge});
    row.problems.push_back({d, {{"B", 1}, {"Hkv", 2}, {"G", 3}, {"S", 200}, {"D", 32}, {"page", 1}}, Purpose::edge});
    row.problems.push_back(
        {d, {{"B", 1}, {"Hkv", 1}, {"G", 8}, {"S", 500}, {"D", 64}, {"page", 128}, {"splits", 2}}, Purpose::edge});
  }
  row.problems.push_back({"f16", {{"B", 32}, {"Hkv", 8}, {"G", 4}, {"S", 8192}}, Purpose::bench});
  row.problems.push_back({"f16", {{"B", 1}, {"Hkv", 8}, {"G", 8}, {"S", 65536}}, Purpose::bench});
  row.problems.push_back({"f16", {{"B", 8}, {"Hkv", 8}, {"G", 4}, {"S", 4096}, {"D", 64}}, Purpose::bench_host});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_half_type(d, [](auto t) -> const AnyKernel* { return &paged_attention_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    PagedAttentionConfig c = default_paged_attention_config(
        p.sizes["B"], p.sizes["Hkv"], p.sizes["S"], static_cast<int>(p.sizes.get("D", 128)),
        static_cast<int>(p.sizes.get("G", 8)), static_cast<int>(p.sizes.get("page", 16)), machine);
    if (p.sizes["splits"]) c.splits = static_cast<int>(p.sizes["splits"]);
    return paged_attention_kernel<half>().words(c);
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_half_type(p.dtype, [&](auto t) { return make_case<PagedAttentionCase<decltype(t)>>(device, p, c); });
  };
  return row;
}

}  // namespace tile::kernels
