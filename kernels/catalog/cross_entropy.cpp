// cross_entropy.cpp - catalog rows of cross_entropy.h: the loss of rows of logits, and its gradient.
#include "kernels/cross_entropy.h"

#include "kernels/catalog/case.h"
#include "kernels/catalog/rows.h"
#include "kernels/reference/losses.h"

namespace tile::kernels {
namespace {

using reference::Arithmetic;
using reference::HostTensor;
using reference::Placement;

constexpr int64_t kIgnore = -100;

/// Logits N(0, amp^2), labels anywhere; every fifth row is ignored where the problem says so.
template <class T, bool kBackward>
class CrossEntropyCase : public OutputCase {
 public:
  CrossEntropyCase(const Problem& p, const ConfigWords& words)
      : m_(p.sizes["M"]),
        v_(p.sizes["V"]),
        gap_(p.sizes["gap"]),
        amp_(p.sizes.get("amp", 3)),
        ignored_(p.sizes["ignored"]),
        masked_(p.sizes["masked"]),
        config_(cross_entropy_kernel<T>().from_words(words)) {}

  Status create(std::shared_ptr<Device> device) {
    const auto matrix = Placement::ordered({m_, v_}, {0, 1}, gap_);
    HostTensor x(dtype_of<T>(), matrix), labels(DType::i64, {m_}), upstream(DType::f32, {m_});
    x.fill_normal(1, static_cast<double>(amp_));
    labels.fill_integers(2, 0, v_ - 1), upstream.fill_normal(3);
    for (int64_t j = 0; j < std::min(masked_, v_ - 1); ++j) x.set({0, j}, -INFINITY);
    if (masked_) labels.set({0}, static_cast<double>(v_ - 1));
    if (ignored_)
      for (int64_t i = 0; i < m_; i += 5) labels.set({i}, kIgnore);
    Steps s;
    HostTensor lse(DType::f32, {m_});
    if (kBackward)
      for (int64_t i = 0; i < m_; ++i) lse.set({i}, cross_entropy(x.row({i}), 0, false, Arithmetic::exact()).lse);
    s(x_.create(device, std::move(x)))(labels_.create(device, std::move(labels)))(lse_.create(device, std::move(lse)));
    if (kBackward)
      s(upstream_.create(device, std::move(upstream)))(dx_.create(device, HostTensor(dtype_of<T>(), matrix)));
    else
      s(loss_.create(device, HostTensor(DType::f32, {m_})));
    return s.status();
  }
  bool set_config(const ConfigWords& words) override {
    return config_ = cross_entropy_kernel<T>().from_words(words), true;
  }
  Status launch(Stream& stream) override {
    auto labels = labels_.view<const int64_t, 1>();
    if constexpr (kBackward)
      return cross_entropy_backward<T>(stream, x_.view<const T, 2>(), labels, lse_.view<const float, 1>(),
                                       upstream_.view<const float, 1>(), dx_.view<T, 2>(), kIgnore, config_);
    else
      return cross_entropy<T>(stream, x_.view<const T, 2>(), labels, loss_.view<float, 1>(), lse_.view<float, 1>(),
                              kIgnore, config_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Gathered first, second;
    for (int64_t i : sample(m_, static_cast<int64_t>(budget / (40.0 * static_cast<double>(v_))))) {
      const std::vector<double> x = x_.host.row({i});
      const auto label = static_cast<int64_t>(labels_.host.at({i}));
      const bool ignored = label == kIgnore;
      if (kBackward) {
        const double lse = lse_.host.at({i}), up = upstream_.host.at({i});
        first.add(dx_.host.row({i}), cross_entropy_gradient(x, label, ignored, lse, up, Arithmetic::exact()),
                  cross_entropy_gradient(x, label, ignored, lse, up, Arithmetic::working(dtype_of<T>())));
      } else {
        const auto exact = reference::cross_entropy(x, label, ignored, Arithmetic::exact()),
                   base = reference::cross_entropy(x, label, ignored, Arithmetic::working(DType::f32));
        first.add({loss_.host.at({i})}, {exact.loss}, {base.loss});
        second.add({lse_.host.at({i})}, {exact.lse}, {base.lse});
      }
    }
    if (kBackward)
      return std::vector<Check>{with_gaps("DX", first.compare(reference::tolerance(dtype_of<T>(), 1)), dx_.host)};
    const auto tolerance = reference::tolerance(DType::f32, v_);
    return std::vector<Check>{with_gaps("LOSS", first.compare(tolerance), loss_.host),
                              with_gaps("LSE", second.compare(tolerance), lse_.host)};
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"x", &x_.host},       {"labels", &labels_.host}, {"lse", &lse_.host}, {"upstream", &upstream_.host},
            {"loss", &loss_.host}, {"dx", &dx_.host}};
  }
  Work work() const override {
    const auto elements = static_cast<double>(m_ * v_);
    return {(kBackward ? 4.0 : 5.0) * elements, (kBackward ? 2.0 : 1.0) * elements * sizeof(T)};
  }

 private:
  std::vector<DeviceTensor*> outputs() override {
    if (kBackward) return {&dx_};
    return {&loss_, &lse_};
  }

  int64_t m_, v_, gap_, amp_, ignored_, masked_;
  CrossEntropyConfig config_;
  DeviceTensor x_, labels_, lse_, upstream_, loss_, dx_;
};

template <bool kBackward>
CatalogRow row_of(const char* name, const char* summary) {
  CatalogRow row;
  row.name = name;
  row.summary = summary;
  row.dtypes = {"f16", "bf16", "f32"};
  row.sizes = {"M: rows",
               "V: classes",
               "gap: unused elements after a row",
               "amp: standard deviation of the logits",
               "ignored: 1: every fifth row's label is the ignored one",
               "masked: leading -inf columns of row 0"};
  for (const std::string& d : row.dtypes) {
    row.problems.push_back({d, {{"M", 7}, {"V", 5003}}});
    row.problems.push_back({d, {{"M", 12}, {"V", 1000}, {"ignored", 1}}});
    row.problems.push_back({d, {{"M", 2}, {"V", 1}}, Purpose::edge});
    row.problems.push_back({d, {{"M", 3}, {"V", 777}, {"gap", 5}}, Purpose::edge});
    row.problems.push_back({d, {{"M", 3}, {"V", 9000}, {"masked", 8200}}, Purpose::edge});
  }
  row.problems.push_back({"f32", {{"M", 3}, {"V", 4096}, {"amp", 100}}, Purpose::edge});
  row.problems.push_back({"bf16", {{"M", 4096}, {"V", 32000}}, Purpose::bench});
  row.problems.push_back({"bf16", {{"M", 2048}, {"V", 128256}}, Purpose::bench});
  row.problems.push_back({"f32", {{"M", 512}, {"V", 32000}}, Purpose::bench_host});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* {
      if constexpr (kBackward)
        return &cross_entropy_backward_kernel<decltype(t)>();
      else
        return &cross_entropy_kernel<decltype(t)>();
    });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    return cross_entropy_kernel<float>().words(default_cross_entropy_config(p.sizes["V"], machine));
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_float_type(p.dtype,
                           [&](auto t) { return make_case<CrossEntropyCase<decltype(t), kBackward>>(device, p, c); });
  };
  return row;
}

}  // namespace

CatalogRow cross_entropy_row() {
  CatalogRow row = row_of<false>("cross_entropy", "log(sum e^x) - x[label] of rows of logits");
  row.peers = "torch cross_entropy";
  return row;
}
CatalogRow cross_entropy_backward_row() {
  return row_of<true>("cross_entropy_backward", "gradient of cross_entropy: (softmax - onehot) * upstream");
}

}  // namespace tile::kernels
