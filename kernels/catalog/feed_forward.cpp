// feed_forward.cpp - catalog rows of products as models use them: gated, with quantised weights, by experts.
#include "kernels/reference/feed_forward.h"

#include <algorithm>

#include "kernels/catalog/case.h"
#include "kernels/catalog/rows.h"
#include "kernels/expert_gemm.h"
#include "kernels/gated_gemm.h"
#include "kernels/quantized_gemm.h"

namespace tile::kernels {
namespace {

using reference::Arithmetic;
using reference::HostTensor;
using reference::Placement;

/// Rows of D [M, N] compared with a reference of whole rows.
class ProductCase : public OutputCase {
 protected:
  ProductCase(const Problem& p, DType dtype)
      : m_(p.sizes["M"]), n_(p.sizes["N"]), k_(p.sizes["K"]), gap_(p.sizes["gap"]), dtype_(dtype) {}

  Placement matrix(int64_t rows, int64_t columns) const { return Placement::ordered({rows, columns}, {0, 1}, gap_); }
  HostTensor normal(int64_t rows, int64_t columns, uint64_t seed, double scale = 1) const {
    HostTensor t(dtype_, matrix(rows, columns));
    t.fill_normal(seed, scale);
    return t;
  }
  /// `rows_of(rows, how)` is the reference.
  template <class Rows>
  Result<std::vector<Check>> check_rows(Stream& stream, double budget, double products, Rows rows_of) {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    const double cost = 4.0 * products * static_cast<double>(n_ * k_);
    const std::vector<int64_t> rows = sample(m_, static_cast<int64_t>(budget / std::max(cost, 1.0)));
    auto exact = rows_of(rows, Arithmetic::exact()), base = rows_of(rows, Arithmetic::working(dtype_));
    Gathered g;
    for (size_t i = 0; i < rows.size(); ++i) g.add(d_.host.row({rows[i]}), exact[i], base[i]);
    return std::vector<Check>{with_gaps("D", g.compare(reference::tolerance(dtype_, k_)), d_.host)};
  }
  double elements(int64_t rows, int64_t columns) const {
    return static_cast<double>(rows) * static_cast<double>(columns);
  }
  std::vector<DeviceTensor*> outputs() override { return {&d_}; }

  int64_t m_, n_, k_, gap_;
  DType dtype_;
  DeviceTensor d_;
};

// ---- gated
template <class T>
class GatedCase : public ProductCase {
 public:
  GatedCase(const Problem& p, const ConfigWords& words)
      : ProductCase(p, dtype_of<T>()), config_(gated_gemm_kernel<T>().from_words(words)) {}
  Status create(std::shared_ptr<Device> device) {
    Steps s;
    s(a_.create(device, normal(m_, k_, 1)))(g_.create(device, normal(k_, n_, 2, 0.2)));
    s(u_.create(device, normal(k_, n_, 3, 0.2)))(d_.create(device, HostTensor(dtype_, matrix(m_, n_))));
    return s.status();
  }
  Status launch(Stream& stream) override {
    return gated_gemm<T>(stream, a_.view<const T, 2>(), g_.view<const T, 2>(), u_.view<const T, 2>(), d_.view<T, 2>(),
                         config_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    auto gate = [this](double x) {
      if (config_.gate == Gate::gelu) return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
      return (config_.gate == Gate::silu ? x : 1) / (1 + std::exp(-x));
    };
    return check_rows(stream, budget, 2, [&](const std::vector<int64_t>& rows, Arithmetic how) {
      return gated_rows(a_.host, g_.host, u_.host, gate, rows, how);
    });
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"a", &a_.host}, {"g", &g_.host}, {"u", &u_.host}, {"d", &d_.host}};
  }
  Work work() const override {
    return {4 * elements(m_, n_) * static_cast<double>(k_),
            sizeof(T) * (elements(m_, k_) + 2 * elements(k_, n_) + elements(m_, n_))};
  }

 private:
  GatedGemmConfig config_;
  DeviceTensor a_, g_, u_;
};

// ---- quantised weights
template <class T, class W>
class QuantizedCase : public ProductCase {
 public:
  static constexpr bool kPacked = std::is_same_v<W, uint8_t>;
  QuantizedCase(const Problem& p, const ConfigWords& words)
      : ProductCase(p, dtype_of<T>()), config_(quantized_gemm_kernel<T, W>().from_words(words)) {}
  Status create(std::shared_ptr<Device> device) {
    HostTensor weights(dtype_of<W>(), matrix(kPacked ? k_ / 2 : k_, n_)),
        scales(dtype_, matrix(k_ / config_.GROUP, n_));
    if (kPacked)
      weights.fill_integers(2, 0, 255), scales.fill_uniform(3, 0.02, 0.2);
    else
      weights.fill_integers(2, -128, 127), scales.fill_uniform(3, 0.001, 0.01);
    Steps s;
    s(a_.create(device, normal(m_, k_, 1)))(w_.create(device, std::move(weights)));
    s(s_.create(device, std::move(scales)))(d_.create(device, HostTensor(dtype_, matrix(m_, n_))));
    if (size_t bytes = quantized_gemm_workspace_bytes(config_, m_, n_); bytes && s.ok()) {
      auto memory = DeviceMemory::allocate(device, bytes);
      if (!memory) return memory.error();
      workspace_ = std::move(*memory);
    }
    return s.status();
  }
  Status launch(Stream& stream) override {
    return quantized_gemm<T, W>(stream, a_.view<const T, 2>(), w_.view<const W, 2>(), s_.view<const T, 2>(),
                                d_.view<T, 2>(), config_, config_.splits > 1 ? workspace_.data() : nullptr);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    return check_rows(stream, budget, 1, [&](const std::vector<int64_t>& rows, Arithmetic how) {
      return quantized_rows(a_.host, w_.host, kPacked, s_.host, config_.GROUP, rows, how);
    });
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"a", &a_.host}, {"w", &w_.host}, {"s", &s_.host}, {"d", &d_.host}};
  }
  Work work() const override {
    return {2 * elements(m_, n_) * static_cast<double>(k_),
            sizeof(T) * (elements(m_, k_) + elements(m_, n_)) + elements(k_, n_) * (kPacked ? 0.5 : 1.0)};
  }

 private:
  QuantizedGemmConfig config_;
  DeviceTensor a_, w_, s_;
  DeviceMemory workspace_;
};

// ---- experts
template <class T>
class ExpertCase : public ProductCase {
 public:
  ExpertCase(const Problem& p, const ConfigWords& words)
      : ProductCase(p, dtype_of<T>()),
        experts_(p.sizes["E"]),
        top_(p.sizes.get("top", 2)),
        config_(expert_gemm_kernel<T>().from_words(words)) {
    tokens_ = m_, m_ *= top_;
  }
  Status create(std::shared_ptr<Device> device) {
    HostTensor choice(DType::i32, {m_}), scale(DType::f32, {m_}), w(dtype_, {experts_, k_, n_});
    choice.fill_integers(4, 0, std::max<int64_t>(experts_ - 2, 0));  // the last expert has no rows
    scale.fill_uniform(5, 0.1, 1), w.fill_normal(2);
    std::vector<int32_t> chosen;
    for (int64_t r = 0; r < m_; ++r) chosen.push_back(static_cast<int32_t>(choice.at({r})));
    const ExpertBlocks blocks = expert_blocks(chosen, static_cast<int>(experts_), config_.BM);
    auto list = [](const std::vector<int32_t>& from) {
      HostTensor t(DType::i32, {static_cast<int64_t>(from.size())});
      for (size_t i = 0; i < from.size(); ++i) t.set({static_cast<int64_t>(i)}, from[i]);
      return t;
    };
    expert_of_.assign(chosen.begin(), chosen.end());
    choice_ = std::move(choice);
    Steps s;
    s(x_.create(device, normal(tokens_, k_, 1)))(w_.create(device, std::move(w)))(
        scale_.create(device, std::move(scale)));
    s(ids_.create(device, list(blocks.ids)))(experts_list_.create(device, list(blocks.experts)));
    s(d_.create(device, HostTensor(dtype_, matrix(m_, n_))));
    return s.status();
  }
  Status launch(Stream& stream) override {
    return expert_gemm<T>(stream, x_.view<const T, 2>(), w_.view<const T, 3>(), ids_.view<const int32_t, 1>(),
                          experts_list_.view<const int32_t, 1>(), scale_.view<const float, 1>(), d_.view<T, 2>(),
                          static_cast<int>(top_), config_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    return check_rows(stream, budget, 1, [&](const std::vector<int64_t>& rows, Arithmetic how) {
      std::vector<std::vector<double>> out;
      for (int64_t r : rows)
        out.push_back(
            expert_row(x_.host, r / top_, w_.host, expert_of_[static_cast<size_t>(r)], scale_.host.at({r}), how));
      return out;
    });
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"x", &x_.host}, {"w", &w_.host}, {"scale", &scale_.host}, {"choice", &choice_}, {"d", &d_.host}};
  }
  Work work() const override {
    return {2 * elements(m_, n_) * static_cast<double>(k_),
            sizeof(T) * (elements(tokens_, k_) + static_cast<double>(experts_) * elements(k_, n_) + elements(m_, n_))};
  }

 private:
  int64_t experts_, top_, tokens_ = 0;
  ExpertGemmConfig config_;
  std::vector<int64_t> expert_of_;
  HostTensor choice_;  ///< the same as a tensor
  DeviceTensor x_, w_, scale_, ids_, experts_list_;
};

template <class Fn>
auto with_half_type(std::string_view dtype, Fn fn) {
  return dtype == "f16" ? fn(half{}) : fn(bfloat16{});
}

CatalogRow product_row(const char* name, const char* summary) {
  CatalogRow row;
  row.name = name, row.summary = summary;
  row.dtypes = {"f16", "bf16"};
  row.sizes = {"M", "N", "K", "gap: unused elements after a row"};
  return row;
}

template <class W>
CatalogRow quantized_row(const char* name, const char* summary) {
  CatalogRow row = product_row(name, summary);
  row.sizes.push_back("G: rows that share a scale (128)");
  for (const std::string& d : row.dtypes) {
    row.problems.push_back({d, {{"M", 70}, {"N", 144}, {"K", 384}}});
    row.problems.push_back({d, {{"M", 1}, {"N", 96}, {"K", 256}}, Purpose::edge});
    row.problems.push_back({d, {{"M", 33}, {"N", 77}, {"K", 192}, {"G", 64}, {"gap", 3}}, Purpose::edge});
  }
  for (int64_t m : {64, 512, 4096})
    row.problems.push_back({"f16", {{"M", m}, {"N", 8192}, {"K", 8192}}, Purpose::bench});
  row.problems.push_back({"f16", {{"M", 128}, {"N", 1024}, {"K", 1024}}, Purpose::bench_host});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_half_type(d, [](auto t) -> const AnyKernel* { return &quantized_gemm_kernel<decltype(t), W>(); });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    return quantized_gemm_kernel<half, W>().words(default_quantized_gemm_config(
        p.sizes["M"], p.sizes["N"], p.sizes["K"], static_cast<int>(p.sizes.get("G", 128)), machine));
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_half_type(p.dtype, [&](auto t) { return make_case<QuantizedCase<decltype(t), W>>(device, p, c); });
  };
  return row;
}

}  // namespace

CatalogRow gated_gemm_row() {
  CatalogRow row = product_row("gated_gemm", "gate(A G) * (A U): SwiGLU and its kin, both products in one pass over A");
  row.sizes.push_back("gate: 0 silu, 1 gelu, 2 sigmoid");
  for (const std::string& d : row.dtypes) {
    for (int64_t gate : {0, 1, 2}) row.problems.push_back({d, {{"M", 130}, {"N", 144}, {"K", 200}, {"gate", gate}}});
    row.problems.push_back({d, {{"M", 1}, {"N", 1}, {"K", 1}}, Purpose::edge});
    row.problems.push_back({d, {{"M", 33}, {"N", 77}, {"K", 45}, {"gap", 3}}, Purpose::edge});
  }
  for (int64_t m : {72, 300, 4096})
    row.problems.push_back({"f16", {{"M", m}, {"N", 8192}, {"K", 4096}}, Purpose::bench});
  for (int64_t m : kRowsOfAllTiles)
    for (int64_t n : {1024, 4096, 14336})
      row.problems.push_back({"f16", {{"M", m}, {"N", n}, {"K", 4096}}, Purpose::build});
  row.problems.push_back({"f16", {{"M", 256}, {"N", 1024}, {"K", 1024}}, Purpose::bench_host});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_half_type(d, [](auto t) -> const AnyKernel* { return &gated_gemm_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    GatedGemmConfig c = default_gated_gemm_config(p.sizes["M"], p.sizes["N"], machine, p.sizes["K"]);
    c.gate = static_cast<Gate>(p.sizes["gate"]);
    return gated_gemm_kernel<half>().words(c);
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_half_type(p.dtype, [&](auto t) { return make_case<GatedCase<decltype(t)>>(device, p, c); });
  };
  return row;
}

CatalogRow gemm_w8_row() {
  return quantized_row<int8_t>("gemm_w8", "A W with 8-bit weights and scales of groups of rows");
}
CatalogRow gemm_w4_row() {
  return quantized_row<uint8_t>("gemm_w4", "A W with 4-bit weights, two in a byte, and scales of groups of rows");
}

CatalogRow expert_gemm_row() {
  CatalogRow row = product_row("expert_gemm", "mixture of experts: rows gathered by token, weights chosen by expert");
  row.sizes[0] = "M: tokens";
  row.sizes.insert(row.sizes.end(),
                   {"E: experts", "top: rows of a token (2)", "producer: rows gathered by warps of their own"});
  for (const std::string& d : row.dtypes) {
    row.problems.push_back({d, {{"M", 50}, {"N", 144}, {"K", 136}, {"E", 4}}});
    row.problems.push_back({d, {{"M", 150}, {"N", 144}, {"K", 136}, {"E", 2}, {"producer", 0}}});
    row.problems.push_back({d, {{"M", 3}, {"N", 40}, {"K", 72}, {"E", 8}, {"top", 1}}, Purpose::edge});
    row.problems.push_back({d, {{"M", 77}, {"N", 33}, {"K", 45}, {"E", 1}, {"gap", 3}}, Purpose::edge});
    row.problems.push_back(
        {d, {{"M", 77}, {"N", 33}, {"K", 45}, {"E", 1}, {"gap", 3}, {"producer", 0}}, Purpose::edge});
  }
  row.problems.push_back({"f16", {{"M", 4096}, {"N", 4096}, {"K", 2048}, {"E", 16}}, Purpose::bench});
  for (int producer : {0, 1})
    row.problems.push_back(
        {"f16", {{"M", 4096}, {"N", 4096}, {"K", 2048}, {"E", 16}, {"producer", producer}}, Purpose::bench});
  row.problems.push_back({"f16", {{"M", 128}, {"N", 1536}, {"K", 2048}, {"E", 128}, {"top", 8}}, Purpose::bench});
  for (const std::string& d : row.dtypes)
    for (int64_t m : {64, 128, 256, 384, 576, 700, 912, 8192})  // all tiles of parts/expert_tiles.h
      row.problems.push_back({d, {{"M", m}, {"N", 4096}, {"K", 4096}, {"E", 16}}, Purpose::build});
  row.problems.push_back({"f16", {{"M", 256}, {"N", 1024}, {"K", 512}, {"E", 4}}, Purpose::bench_host});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_half_type(d, [](auto t) -> const AnyKernel* { return &expert_gemm_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    const int64_t rows = p.sizes["M"] * p.sizes.get("top", 2);
    ExpertGemmConfig c = default_expert_gemm_config(rows, p.sizes["E"], p.sizes["N"], machine, p.sizes["K"]);
    if (p.sizes.has("producer")) c.producer = p.sizes["producer"] != 0, c.BN = 128, c.stages = std::min(3, c.stages);
    return expert_gemm_kernel<half>().words(c);
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_half_type(p.dtype, [&](auto t) { return make_case<ExpertCase<decltype(t)>>(device, p, c); });
  };
  return row;
}

}  // namespace tile::kernels
