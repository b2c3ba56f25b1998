// gemm.cpp - catalog rows of gemm.h: plain products, and one with an epilogue passed as a lambda.
#include "kernels/gemm.h"

#include "kernels/catalog/case.h"
#include "kernels/catalog/rows.h"
#include "kernels/reference/gemm.h"

namespace tile::kernels {
namespace {

using reference::Arithmetic;
using reference::HostTensor;
using reference::Placement;

/// The example epilogue: leaky ReLU. A lambda of tiles, traced into the kernel.
constexpr auto leaky_relu = [](const Tile& x) { return where(x > 0.f, x, x * 0.25f); };
double leaky_relu_reference(double x) { return x > 0 ? x : 0.25 * x; }

template <class TIn, class TOut>
const auto& leaky_gemm_kernel() {
  static const auto k = make_gemm_kernel<TIn, TOut>("gemm_leaky_relu", leaky_relu);
  return k;
}

template <class TIn, class TOut, bool kEpilogue>
const auto& kernel_of() {
  if constexpr (kEpilogue)
    return leaky_gemm_kernel<TIn, TOut>();
  else
    return gemm_kernel<TIn, TOut>();
}

template <class TIn, class TOut, bool kEpilogue>
class GemmCase : public OutputCase {
 public:
  GemmCase(const Problem& p, const ConfigWords& words)
      : batch_(p.sizes.get("batch", 1)),
        m_(p.sizes["M"]),
        n_(p.sizes["N"]),
        k_(p.sizes["K"]),
        gap_(p.sizes["gap"]),
        shift_(p.sizes["shift"]),
        alpha_(p.sizes.get("alpha", 1)),
        beta_(p.sizes["beta"]),
        config_(gemm_kernel<TIn, TOut>().product.from_words(words)) {}

  Status create(std::shared_ptr<Device> device) {
    auto matrix = [&](DType type, int64_t rows, int64_t columns) {
      return HostTensor(type, Placement::ordered({batch_, rows, columns}, {0, 1, 2}, gap_, shift_));
    };
    HostTensor a = config_.trans_a ? matrix(dtype_of<TIn>(), k_, m_) : matrix(dtype_of<TIn>(), m_, k_);
    HostTensor b = config_.trans_b ? matrix(dtype_of<TIn>(), n_, k_) : matrix(dtype_of<TIn>(), k_, n_);
    HostTensor c = matrix(dtype_of<TOut>(), m_, n_);
    if constexpr (std::is_integral_v<TIn>)
      a.fill_integers(1, -128, 127), b.fill_integers(2, -128, 127);
    else
      a.fill_normal(1), b.fill_normal(2);
    if (beta_) c.fill_normal(3);  // else it stays NaN: reading it would show
    Steps s;
    s(a_.create(device, std::move(a)))(b_.create(device, std::move(b)))(c_.create(device, std::move(c)));
    s(d_.create(device, matrix(dtype_of<TOut>(), m_, n_)));
    machine_ = Machine::of(device->properties());
    if (!s.ok()) return s.status();
    const size_t bytes = gemm_workspace_bytes(config_, batch_, m_, n_, machine_, dtype_of<TIn>());
    Result<DeviceMemory> memory = DeviceMemory::allocate(device, bytes);
    if (!memory) return memory.error();
    workspace_ = std::move(*memory);
    return Ok{};
  }
  bool set_config(const ConfigWords& words) override {
    const GemmConfig c = gemm_kernel<TIn, TOut>().product.from_words(words);
    if (gemm_workspace_bytes(c, batch_, m_, n_, machine_, dtype_of<TIn>()) > workspace_.bytes()) return false;
    return config_ = c, true;
  }
  Status launch(Stream& stream) override {
    return run_batched_gemm(kernel_of<TIn, TOut, kEpilogue>(), stream, a_.view<const TIn, 3>(),
                            b_.view<const TIn, 3>(), c_.view<const TOut, 3>(), d_.view<TOut, 3>(),
                            static_cast<GemmScale<TIn>>(alpha_), static_cast<GemmScale<TIn>>(beta_), config_,
                            workspace_.data());
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    reference::GemmSpec spec{
        config_.trans_a, config_.trans_b, static_cast<double>(alpha_), static_cast<double>(beta_), {}, 0};
    if (kEpilogue) spec.epilogue = leaky_relu_reference;
    Arithmetic working = std::is_integral_v<TIn> ? Arithmetic::exact() : Arithmetic::working(dtype_of<TOut>());
    working.tf32 = config_.tf32;
    double row_cost = 2.0 * static_cast<double>(n_) * static_cast<double>(k_);
    Gathered g;
    for (spec.batch = 0; spec.batch < batch_; ++spec.batch) {
      auto wanted = static_cast<int64_t>(budget / std::max(row_cost * static_cast<double>(batch_), 1.0));
      std::vector<int64_t> rows = sample(m_, wanted);
      auto exact = gemm_rows(spec, a_.host, b_.host, &c_.host, rows, Arithmetic::exact());
      auto base = gemm_rows(spec, a_.host, b_.host, &c_.host, rows, working);
      for (size_t r = 0; r < rows.size(); ++r) g.add(d_.host.row({spec.batch, rows[r]}), exact[r], base[r]);
    }
    reference::Comparison c = std::is_integral_v<TIn>
                                  ? reference::compare_equal(g.actual, g.exact)
                                  : g.compare(reference::tolerance(dtype_of<TOut>(), k_, config_.tf32));
    return std::vector<Check>{with_gaps("D", c, d_.host)};
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"a", &a_.host}, {"b", &b_.host}, {"c", &c_.host}, {"d", &d_.host}};
  }
  Work work() const override {
    double m = static_cast<double>(m_), n = static_cast<double>(n_), k = static_cast<double>(k_);
    auto batch = static_cast<double>(batch_);
    return {2 * batch * m * n * k,
            batch * (sizeof(TIn) * (m * k + k * n) + sizeof(TOut) * m * n * (beta_ ? 2 : 1))};
  }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&d_}; }

  int64_t batch_, m_, n_, k_, gap_, shift_, alpha_, beta_;
  GemmConfig config_;
  Machine machine_;
  DeviceTensor a_, b_, c_, d_;
  DeviceMemory workspace_;
};

/// Calls fn(TIn{}, TOut{}).
template <class Fn>
auto with_types(std::string_view dtype, Fn fn) {
  if (dtype == "i8") return fn(int8_t{}, int32_t{});
  if (dtype == "f64") return fn(double{}, double{});
  if (dtype == "f8e4m3") return fn(fp8_e4m3{}, bfloat16{});
  if (dtype == "f8e5m2") return fn(fp8_e5m2{}, half{});
  return with_float_type(dtype, [&](auto t) { return fn(t, t); });
}

/// The config of a problem: tiles by its size, flags by what it asks for.
GemmConfig default_of(const Problem& p, const Machine& machine) {
  const int64_t batch = p.sizes.get("batch", 1), m = p.sizes["M"], n = p.sizes["N"], k = p.sizes["K"];
  GemmConfig c = p.dtype == "tf32x3" ? tf32x3_gemm_config(batch, m, n, k, machine)
                                     : split_gemm_config(storage_of(p.dtype), p.dtype == "tf32", batch, m, n, k, machine,
                                                         !p.sizes["ta"] && p.sizes["tb"]);
  c.trans_a = p.sizes["ta"] != 0, c.trans_b = p.sizes["tb"] != 0;
  c.use_alpha = p.sizes.get("alpha", 1) != 1, c.use_c = p.sizes["beta"] != 0;
  if (p.sizes["splits"]) c.splits = static_cast<int>(p.sizes["splits"]), c.cluster = c.cluster_n = 1;
  return c;
}

template <bool kEpilogue>
CatalogRow row_of(const char* name, const char* summary) {
  CatalogRow row;
  row.name = name;
  row.summary = summary;
  row.sizes = {"M",
               "N",
               "K",
               "ta: A is stored [K, M]",
               "tb: B is stored [N, K]",
               "alpha: integer factor",
               "beta: integer factor of C",
               "gap: unused elements after a row",
               "shift: elements by which the base is misaligned",
               "batch: products side by side (1)",
               "splits: parts of K of tiles that fill no round of the machine, 0: by size"};
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_types(
        d, [](auto in, auto out) -> const AnyKernel* { return &kernel_of<decltype(in), decltype(out), kEpilogue>().product; });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    return gemm_kernel<float, float>().product.words(default_of(p, machine));
  };
  row.tuning = [](const Problem& p, const Machine& machine) {
    const DType in = storage_of(p.dtype);
    return Tuning{
        "gemm", gemm_tuning_key(in, p.dtype == "tf32", p.sizes["M"], p.sizes["N"], p.dtype == "tf32x3"),
        words_of(gemm_kernel<float, float>().product, gemm_space(default_of(p, untuned(machine)), in, machine))};
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_types(p.dtype, [&](auto in, auto out) {
      return make_case<GemmCase<decltype(in), decltype(out), kEpilogue>>(device, p, c);
    });
  };
  return row;
}

}  // namespace

CatalogRow gemm_row() {
  CatalogRow row = row_of<false>("gemm", "D = alpha op(A) op(B) + beta C");
  row.peers = "cuBLAS through torch.matmul";
  row.dtypes = {"f16", "bf16", "f32", "tf32", "tf32x3", "f64", "i8", "f8e4m3", "f8e5m2"};
  for (const std::string& d : row.dtypes) {
    if (d.starts_with("f8")) {
      row.problems.push_back({d, {{"M", 128}, {"N", 192}, {"K", 96}, {"tb", 1}}});
      row.problems.push_back({d, {{"M", 131}, {"N", 67}, {"K", 45}, {"ta", 1}}, Purpose::edge});
      continue;
    }
    for (int64_t ta : {0, 1})
      for (int64_t tb : {0, 1})
        row.problems.push_back({d, {{"M", 128}, {"N", 192}, {"K", 96}, {"ta", ta}, {"tb", tb}}});
    for (int64_t ta : {0, 1})
      for (int64_t tb : {0, 1})
        row.problems.push_back({d, {{"M", 131}, {"N", 67}, {"K", 45}, {"ta", ta}, {"tb", tb}}, Purpose::edge});
    row.problems.push_back({d, {{"M", 1}, {"N", 1}, {"K", 1}}, Purpose::edge});
    row.problems.push_back({d, {{"M", 1}, {"N", 300}, {"K", 1000}}, Purpose::edge});
    row.problems.push_back({d, {{"M", 100}, {"N", 90}, {"K", 72}, {"gap", 5}, {"shift", 1}}, Purpose::edge});
    if (d != "i8") row.problems.push_back({d, {{"M", 70}, {"N", 130}, {"K", 64}, {"alpha", 2}, {"beta", -3}}});
  }
  row.problems.push_back({"f32", {{"M", 64}, {"N", 64}, {"K", 1024}}, Purpose::edge});  // E37
  for (const char* d : {"f16", "f32", "f64"}) {
    row.problems.push_back({d, {{"M", 70}, {"N", 130}, {"K", 200}, {"batch", 3}}});
    row.problems.push_back({d, {{"M", 70}, {"N", 130}, {"K", 333}, {"batch", 2}, {"splits", 3}, {"beta", 2}}});
  }
  row.problems.push_back({"f16", {{"M", 64}, {"N", 64}, {"K", 40}, {"splits", 7}}, Purpose::edge});  // empty parts
  row.problems.push_back({"f16", {{"M", 64 * 135}, {"N", 70}, {"K", 130}, {"splits", 2}}, Purpose::edge});  // and whole
  for (int64_t n : {1024, 2048, 4096, 8192, 16384})
    row.problems.push_back({"f16", {{"M", n}, {"N", n}, {"K", n}}, Purpose::bench});
  for (int64_t n : {2048, 4096, 8192, 16384}) row.problems.push_back({"bf16", {{"M", n}, {"N", n}, {"K", n}}, Purpose::bench});
  row.problems.push_back({"f16", {{"M", 4096}, {"N", 4096}, {"K", 4096}, {"tb", 1}}, Purpose::bench});
  for (int64_t m : {16, 160, 300}) row.problems.push_back({"f16", {{"M", m}, {"N", 4096}, {"K", 14336}}, Purpose::bench});
  for (int64_t m : {72, 128, 600}) {
    row.problems.push_back({"f16", {{"M", m}, {"N", 14336}, {"K", 4096}, {"tb", 1}}, Purpose::bench});
    row.problems.push_back({"f8e4m3", {{"M", m}, {"N", 14336}, {"K", 4096}, {"tb", 1}}, Purpose::bench});
  }
  for (int64_t m : kRowsOfAllTiles)
    for (int64_t n : {1024, 4096, 14336}) {
      for (int64_t tb : {0, 1})
        row.problems.push_back({"f16", {{"M", m}, {"N", n}, {"K", 4096}, {"tb", tb}}, Purpose::build});
      row.problems.push_back({"f8e4m3", {{"M", m}, {"N", n}, {"K", 4096}, {"tb", 1}}, Purpose::build});
    }
  for (int64_t m : kRowsOfAllTiles)
    for (int64_t tb : {0, 1}) {
      for (const char* d : {"tf32", "i8"})
        for (int64_t n : {1024, 14336})
          row.problems.push_back({d, {{"M", m}, {"N", n}, {"K", 4096}, {"tb", tb}}, Purpose::build});
      for (const char* d : {"f32", "tf32x3", "f64"})
        for (int64_t n : {300, 14336})
          row.problems.push_back({d, {{"M", m}, {"N", n}, {"K", n == 300 ? 4096 : 256}, {"tb", tb}}, Purpose::build});
    }
  for (int64_t n : {4096, 8192})
    row.problems.push_back({"f8e4m3", {{"M", n}, {"N", n}, {"K", n}, {"tb", 1}}, Purpose::bench});
  row.problems.push_back({"tf32", {{"M", 4096}, {"N", 4096}, {"K", 4096}, {"tb", 1}}, Purpose::bench});
  row.problems.push_back({"f64", {{"M", 8192}, {"N", 8192}, {"K", 8192}}, Purpose::bench});
  row.problems.push_back({"f64", {{"M", 4096}, {"N", 4096}, {"K", 4096}, {"tb", 1}}, Purpose::bench});
  row.problems.push_back({"tf32x3", {{"M", 4096}, {"N", 4096}, {"K", 4096}, {"tb", 1}}, Purpose::bench});
  for (const char* d : {"tf32", "tf32x3", "f32", "f64", "i8"})
    row.problems.push_back({d, {{"M", 4096}, {"N", 4096}, {"K", 4096}}, Purpose::bench});
  for (const char* d : {"f32", "f16", "bf16"})
    row.problems.push_back({d, {{"M", 1024}, {"N", 1024}, {"K", 1024}}, Purpose::bench_host});
  return row;
}

CatalogRow gemm_epilogue_row() {
  CatalogRow row =
      row_of<true>("gemm_leaky_relu", "D = leaky_relu(alpha op(A) op(B) + beta C), the epilogue being a lambda");
  row.dtypes = {"f16", "bf16", "f32", "tf32"};
  for (const std::string& d : row.dtypes) {
    row.problems.push_back({d, {{"M", 128}, {"N", 128}, {"K", 64}}});
    row.problems.push_back({d, {{"M", 77}, {"N", 33}, {"K", 50}, {"beta", 1}}, Purpose::edge});
  }
  row.problems.push_back({"f32", {{"M", 1024}, {"N", 1024}, {"K", 1024}}, Purpose::bench_host});
  return row;
}

}  // namespace tile::kernels
