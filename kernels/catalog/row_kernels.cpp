// row_kernels.cpp - catalog rows of the kernels that treat every matrix row by itself: softmax, reductions, norms.
#include "kernels/catalog/case.h"
#include "kernels/catalog/rows.h"
#include "kernels/norms.h"
#include "kernels/reductions.h"
#include "kernels/reference/rows.h"
#include "kernels/softmax.h"

namespace tile::kernels {
namespace {

using reference::Arithmetic;
using reference::HostTensor;
using reference::Placement;

/// X [M, N] with `gap` unused elements after every row, values N(0, amp^2).
class RowCase : public OutputCase {
 protected:
  RowCase(const Problem& p, DType dtype)
      : m_(p.sizes["M"]), n_(p.sizes["N"]), gap_(p.sizes["gap"]), amp_(p.sizes.get("amp", 1)), dtype_(dtype) {}

  Placement matrix() const { return Placement::ordered({m_, n_}, {0, 1}, gap_); }
  Status create_x(const std::shared_ptr<Device>& device) {
    HostTensor x(dtype_, matrix());
    x.fill_normal(1, static_cast<double>(amp_));
    return x_.create(device, std::move(x));
  }
  /// Rows to compare: a row costs the reference about 40 operations per element.
  std::vector<int64_t> rows(double budget) const {
    return sample(m_, static_cast<int64_t>(budget / (40.0 * static_cast<double>(n_))));
  }
  double traffic(double passes) const {
    return passes * static_cast<double>(m_ * n_ * static_cast<int64_t>(size_of(dtype_)));
  }

  int64_t m_, n_, gap_, amp_;
  DType dtype_;
  DeviceTensor x_;
};

// ---- softmax
template <class T>
class SoftmaxCase : public RowCase {
 public:
  SoftmaxCase(const Problem& p, const ConfigWords& words)
      : RowCase(p, dtype_of<T>()), masked_(p.sizes["masked"]), config_(softmax_kernel<T>().from_words(words)) {}

  Status create(std::shared_ptr<Device> device) {
    Steps s;
    s(create_x(device))(y_.create(device, HostTensor(dtype_, matrix())));
    // E12: the first blocks of a row hold only -inf.
    for (int64_t j = 0; j < std::min(masked_, n_); ++j) x_.host.set({0, j}, -INFINITY);
    if (masked_) s(x_.upload());
    return s.status();
  }
  bool set_config(const ConfigWords& words) override { return config_ = softmax_kernel<T>().from_words(words), true; }
  Status launch(Stream& stream) override {
    return softmax_rows<T>(stream, x_.view<const T, 2>(), y_.view<T, 2>(), config_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Gathered g;
    for (int64_t r : rows(budget)) {
      std::vector<double> x = x_.host.row({r});
      g.add(y_.host.row({r}), softmax_safe(x, Arithmetic::exact()), softmax_safe(x, Arithmetic::working(dtype_)));
    }
    return std::vector<Check>{with_gaps("Y", g.compare(reference::tolerance(dtype_, n_)), y_.host)};
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"x", &x_.host}, {"y", &y_.host}};
  }
  Work work() const override { return {5.0 * static_cast<double>(m_ * n_), traffic(2)}; }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&y_}; }

  int64_t masked_;
  SoftmaxConfig config_;
  DeviceTensor y_;
};

// ---- reductions
template <class T, class Out>
class ReductionCase : public RowCase {
 public:
  ReductionCase(const Problem& p, const ConfigWords& words)
      : RowCase(p, dtype_of<T>()), ties_(p.sizes["ties"]), config_(row_reduction_kernel<T>().from_words(words)) {}

  Status create(std::shared_ptr<Device> device) {
    Steps s;
    s(create_x(device))(y_.create(device, HostTensor(dtype_of<Out>(), {m_})));
    if (config_.op == RowReduction::prod) x_.host.fill_uniform(1, 0.9, 1.1);  // a product of normals underflows
    if (ties_) x_.host.fill_integers(1, -2, 2);
    s(x_.upload());
    return s.status();
  }
  bool set_config(const ConfigWords& words) override {
    return config_ = row_reduction_kernel<T>().from_words(words), true;
  }
  Status launch(Stream& stream) override {
    if constexpr (std::is_same_v<Out, int32_t>)
      return arg_rows<T>(stream, x_.view<const T, 2>(), y_.view<int32_t, 1>(), config_);
    else
      return reduce_rows<T>(stream, x_.view<const T, 2>(), y_.view<T, 1>(), config_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    auto op = static_cast<reference::Reduction>(config_.op);  // the two lists have one order
    Gathered g;
    for (int64_t r : rows(budget)) {
      std::vector<double> x = x_.host.row({r});
      g.add({y_.host.at({r})}, {reduce_row(op, x, Arithmetic::exact())},
            {reduce_row(op, x, Arithmetic::working(dtype_))});
    }
    bool selects = op == reference::Reduction::max || op == reference::Reduction::min || std::is_same_v<Out, int32_t>;
    return std::vector<Check>{with_gaps(
        "Y", selects ? reference::compare_equal(g.actual, g.exact) : g.compare(reference::tolerance(dtype_, n_)),
        y_.host)};
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"x", &x_.host}, {"y", &y_.host}};
  }
  Work work() const override { return {static_cast<double>(m_ * n_), traffic(1)}; }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&y_}; }

  int64_t ties_;
  RowReductionConfig config_;
  DeviceTensor y_;
};

// ---- norms
template <class T, bool kLayer>
class NormCase : public RowCase {
 public:
  NormCase(const Problem& p, const ConfigWords& words)
      : RowCase(p, dtype_of<T>()), mean_shift_(p.sizes["mean"]), config_(rms_norm_kernel<T>().from_words(words)) {}

  Status create(std::shared_ptr<Device> device) {
    Steps s;
    s(create_x(device));
    if (mean_shift_) {  // a mean far from 0 cancels in E[x^2] - mean^2
      reference::for_each_index({m_, n_}, [&](std::span<const int64_t> i) {
        x_.host.set(i, x_.host.at(i) + static_cast<double>(mean_shift_));
      });
      s(x_.upload());
    }
    HostTensor w(dtype_, {n_}), b(dtype_, {n_});
    w.fill_normal(2), b.fill_normal(3);
    s(w_.create(device, std::move(w)))(b_.create(device, std::move(b)))(
        y_.create(device, HostTensor(dtype_, matrix())));
    s(mean_.create(device, HostTensor(DType::f32, {m_})))(rstd_.create(device, HostTensor(DType::f32, {m_})));
    return s.status();
  }
  bool set_config(const ConfigWords& words) override { return config_ = rms_norm_kernel<T>().from_words(words), true; }
  Status launch(Stream& stream) override {
    auto x = x_.view<const T, 2>();
    auto w = w_.view<const T, 1>();
    if constexpr (kLayer)
      return layer_norm<T>(stream, x, w, b_.view<const T, 1>(), y_.view<T, 2>(), mean_.view<float, 1>(),
                           rstd_.view<float, 1>(), kEps, config_);
    else
      return rms_norm<T>(stream, x, w, y_.view<T, 2>(), rstd_.view<float, 1>(), kEps, config_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Gathered y, mean, rstd;
    std::vector<double> w = w_.host.row({}), b = b_.host.row({});
    for (int64_t r : rows(budget)) {
      std::vector<double> x = x_.host.row({r}), exact, base;
      double m[2] = {0, 0}, i[2];
      if (kLayer) {
        exact = reference::layer_norm(x, w, b, kEps, Arithmetic::exact(), &m[0], &i[0]);
        base = reference::layer_norm(x, w, b, kEps, Arithmetic::working(dtype_), &m[1], &i[1]);
      } else {
        exact = reference::rms_norm(x, w, kEps, Arithmetic::exact(), &i[0]);
        base = reference::rms_norm(x, w, kEps, Arithmetic::working(dtype_), &i[1]);
      }
      y.add(y_.host.row({r}), exact, base);
      rstd.add({rstd_.host.at({r})}, {i[0]}, {i[1]});
      if (kLayer) mean.add({mean_.host.at({r})}, {m[0]}, {m[1]});
    }
    std::vector<Check> checks{with_gaps("Y", y.compare(reference::tolerance(dtype_, n_)), y_.host),
                              with_gaps("RSTD", rstd.compare(reference::tolerance(DType::f32, n_)), rstd_.host)};
    if (kLayer) checks.push_back(with_gaps("MEAN", mean.compare(reference::tolerance(DType::f32, n_)), mean_.host));
    return checks;
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"x", &x_.host}, {"w", &w_.host},       {"b", &b_.host},
            {"y", &y_.host}, {"mean", &mean_.host}, {"rstd", &rstd_.host}};
  }
  Work work() const override { return {(kLayer ? 8.0 : 4.0) * static_cast<double>(m_ * n_), traffic(2)}; }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&y_, &mean_, &rstd_}; }

  static constexpr float kEps = 1e-5f;
  int64_t mean_shift_;
  NormConfig config_;
  DeviceTensor w_, b_, y_, mean_, rstd_;
};

std::vector<std::string> float_types() { return {"f16", "bf16", "f32"}; }

// Shapes of all rows: one element, one below/at/above a block, the tutorials' 1823 x 781, rows with gaps.
void add_common_problems(CatalogRow& row, const Fields& extra = {}) {
  auto add = [&](const std::string& d, Fields f, Purpose purpose) {
    for (const auto& [key, value] : extra) f.set(key, value);
    row.problems.push_back({d, f, purpose});
  };
  for (const std::string& d : row.dtypes) {
    add(d, {{"M", 5}, {"N", 256}}, Purpose::test);
    add(d, {{"M", 33}, {"N", 781}}, Purpose::test);
    add(d, {{"M", 1}, {"N", 1}}, Purpose::edge);
    add(d, {{"M", 3}, {"N", 1025}, {"gap", 3}}, Purpose::edge);
  }
}

}  // namespace

CatalogRow softmax_row() {
  CatalogRow row;
  row.name = "softmax";
  row.summary = "softmax along rows: naive, safe, online, pair-tree and resident forms";
  row.peers = "device copy, torch.softmax";
  row.dtypes = float_types();
  row.sizes = {"M: rows",
               "N: columns",
               "form: 0 naive, 1 safe, 2 online, 3 pairs, 4 resident (default)",
               "gap: unused elements after a row",
               "amp: standard deviation of the data",
               "masked: leading -inf columns of row 0"};
  for (int64_t form = 0; form <= 4; ++form) add_common_problems(row, {{"form", form}});
  for (int64_t form = 1; form <= 4; ++form) {
    row.problems.push_back({"f32", {{"M", 4}, {"N", 3000}, {"form", form}, {"amp", 100}}, Purpose::edge});
    row.problems.push_back({"f16", {{"M", 4}, {"N", 3000}, {"form", form}, {"amp", 1000}}, Purpose::edge});
    row.problems.push_back({"f32", {{"M", 2}, {"N", 3000}, {"form", form}, {"masked", 2500}}, Purpose::edge});
  }
  row.problems.push_back({"f32", {{"M", 2}, {"N", 70001}}, Purpose::edge});
  for (int64_t form : {4, 3, 2, 1, 0})
    row.problems.push_back({"f16", {{"M", 8192}, {"N", 8192}, {"form", form}}, Purpose::bench});
  row.problems.push_back({"f32", {{"M", 1823}, {"N", 781}}, Purpose::bench});
  row.problems.push_back({"f32", {{"M", 4096}, {"N", 4096}}, Purpose::bench_host});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* { return &softmax_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    SoftmaxConfig c = default_softmax_config(p.sizes["N"], p.sizes.has("form") ? untuned(machine) : machine);
    if (p.sizes.has("form")) {
      c.form = static_cast<SoftmaxForm>(p.sizes["form"]);
      // The walking forms take the row in several blocks, so that tests exercise the walk.
      bool walks = c.form <= SoftmaxForm::online;
      if (walks) c.BN = std::min(c.BN, machine.gpu ? 2048 : 512);
    }
    return softmax_kernel<float>().words(c);
  };
  row.tuning = [](const Problem& p, const Machine& machine) {
    const int64_t columns = p.sizes["N"];
    if (p.sizes.has("form")) return Tuning{};  // about one form, not about the best one
    return Tuning{"softmax", softmax_tuning_key(columns),
                  words_of(softmax_kernel<float>(),
                           softmax_space(default_softmax_config(columns, untuned(machine)), columns, machine))};
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_float_type(p.dtype, [&](auto t) { return make_case<SoftmaxCase<decltype(t)>>(device, p, c); });
  };
  return row;
}

namespace {
const std::vector<std::string> kReductionSizes = {
    "M: rows", "N: columns", "op: 0 sum, 1 mean, 2 max, 3 min, 4 prod, 5 argmax, 6 argmin",
    "gap: unused elements after a row", "ties: 1 for data with many equal values"};
RowReduction reduction_of(const Problem& p, RowReduction fallback) {
  return static_cast<RowReduction>(p.sizes.get("op", static_cast<int64_t>(fallback)));
}
Tuning reduction_tuning(const Problem& p, const Machine& machine, RowReduction fallback) {
  const RowReduction op = reduction_of(p, fallback);
  const int64_t columns = p.sizes["N"];
  return {"row_reduction", row_reduction_tuning_key(op, columns),
          words_of(row_reduction_kernel<float>(),
                   row_reduction_space(default_row_reduction_config(op, columns, untuned(machine)), machine))};
}
ConfigWords reduction_config(const Problem& p, const Machine& machine, RowReduction fallback) {
  const RowReduction op = reduction_of(p, fallback);
  return row_reduction_kernel<float>().words(default_row_reduction_config(op, p.sizes["N"], machine));
}
}  // namespace

CatalogRow row_reduction_row() {
  CatalogRow row;
  row.name = "row_reduction";
  row.summary = "sum, mean, max, min or prod of every row";
  row.dtypes = float_types();
  row.sizes = kReductionSizes;
  for (int64_t op = 0; op <= 4; ++op) add_common_problems(row, {{"op", op}});
  row.problems.push_back({"f32", {{"M", 2}, {"N", 20000}, {"op", 0}}, Purpose::edge});
  row.problems.push_back({"f16", {{"M", 8192}, {"N", 8192}, {"op", 0}}, Purpose::bench});
  row.problems.push_back({"f32", {{"M", 4096}, {"N", 4096}, {"op", 0}}, Purpose::bench_host});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* { return &row_reduction_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem& p, const Machine& m) { return reduction_config(p, m, RowReduction::sum); };
  row.tuning = [](const Problem& p, const Machine& m) { return reduction_tuning(p, m, RowReduction::sum); };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_float_type(p.dtype,
                           [&](auto t) { return make_case<ReductionCase<decltype(t), decltype(t)>>(device, p, c); });
  };
  return row;
}

CatalogRow row_arg_row() {
  CatalogRow row;
  row.name = "row_arg";
  row.summary = "first column of every row's largest or smallest value";
  row.dtypes = float_types();
  row.sizes = kReductionSizes;
  for (int64_t op = 5; op <= 6; ++op) {
    add_common_problems(row, {{"op", op}});
    row.problems.push_back({"f16", {{"M", 7}, {"N", 5000}, {"op", op}, {"ties", 1}}, Purpose::edge});
  }
  row.problems.push_back({"f16", {{"M", 8192}, {"N", 8192}, {"op", 5}}, Purpose::bench});
  row.problems.push_back({"f32", {{"M", 4096}, {"N", 4096}, {"op", 5}}, Purpose::bench_host});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* { return &row_arg_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem& p, const Machine& m) { return reduction_config(p, m, RowReduction::argmax); };
  row.tuning = [](const Problem& p, const Machine& m) { return reduction_tuning(p, m, RowReduction::argmax); };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_float_type(p.dtype,
                           [&](auto t) { return make_case<ReductionCase<decltype(t), int32_t>>(device, p, c); });
  };
  return row;
}

namespace {
template <bool kLayer>
CatalogRow norm_row(const char* name, const char* summary) {
  CatalogRow row;
  row.name = name;
  row.summary = summary;
  row.peers = kLayer ? "device copy, torch layer_norm" : "device copy, torch rms_norm";
  row.dtypes = float_types();
  row.sizes = {"M: rows", "N: columns", "gap: unused elements after a row", "mean: added to the data"};
  add_common_problems(row);
  row.problems.push_back({"f32", {{"M", 3}, {"N", 17001}}, Purpose::edge});  // longer than a resident row
  row.problems.push_back({"f16", {{"M", 3}, {"N", 17001}}, Purpose::edge});
  if (kLayer) row.problems.push_back({"f32", {{"M", 8}, {"N", 1000}, {"mean", 1000}}, Purpose::edge});
  row.problems.push_back({"f16", {{"M", 8192}, {"N", 8192}}, Purpose::bench});
  row.problems.push_back({"bf16", {{"M", 4096}, {"N", 8192}}, Purpose::bench});
  row.problems.push_back({"f32", {{"M", 4096}, {"N", 4096}}, Purpose::bench_host});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* {
      if constexpr (kLayer)
        return &layer_norm_kernel<decltype(t)>();
      else
        return &rms_norm_kernel<decltype(t)>();
    });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    return rms_norm_kernel<float>().words(default_norm_config(p.sizes["N"], machine));
  };
  row.tuning = [](const Problem& p, const Machine& machine) {
    const int64_t columns = p.sizes["N"];
    return Tuning{"norm", norm_tuning_key(columns),
                  words_of(rms_norm_kernel<float>(),
                           norm_space(default_norm_config(columns, untuned(machine)), columns, machine))};
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_float_type(p.dtype, [&](auto t) { return make_case<NormCase<decltype(t), kLayer>>(device, p, c); });
  };
  return row;
}
}  // namespace

CatalogRow rms_norm_row() { return norm_row<false>("rms_norm", "x / sqrt(mean(x^2) + eps) * w along rows"); }
CatalogRow layer_norm_row() { return norm_row<true>("layer_norm", "(x - mean) / sqrt(var + eps) * w + b along rows"); }

}  // namespace tile::kernels
