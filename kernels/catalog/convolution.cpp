// convolution.cpp - catalog row of convolution.h.
#include "kernels/convolution.h"

#include "kernels/catalog/case.h"
#include "kernels/catalog/rows.h"
#include "kernels/reference/feed_forward.h"

namespace tile::kernels {
namespace {

using reference::Arithmetic;
using reference::HostTensor;
using reference::Placement;

template <class T>
class ConvolutionCase : public OutputCase {
 public:
  ConvolutionCase(const Problem& p, const ConfigWords& words)
      : n_(p.sizes["N"]),
        h_(p.sizes["H"]),
        w_(p.sizes["W"]),
        c_(p.sizes["C"]),
        k_(p.sizes["K"]),
        r_(p.sizes.get("R", 3)),
        gap_(p.sizes["gap"]),
        config_(convolution_kernel<T>().from_words(words)) {
    auto outputs = [&](int64_t size) {
      return (size + 2 * config_.pad - config_.dilation * (r_ - 1) - 1) / config_.stride + 1;
    };
    p_ = outputs(h_), q_ = outputs(w_);
  }
  Status create(std::shared_ptr<Device> device) {
    auto tensor = [&](int64_t a, int64_t b, int64_t c, int64_t d) {
      return HostTensor(dtype_of<T>(), Placement::ordered({a, b, c, d}, {0, 1, 2, 3}, gap_));
    };
    HostTensor x = tensor(n_, h_, w_, c_), f = tensor(r_, r_, c_, k_);
    x.fill_normal(1), f.fill_normal(2);
    Steps s;
    s(x_.create(device, std::move(x)))(f_.create(device, std::move(f)))(y_.create(device, tensor(n_, p_, q_, k_)));
    return s.status();
  }
  Status launch(Stream& stream) override {
    return convolution<T>(stream, x_.view<const T, 4>(), f_.view<const T, 4>(), y_.view<T, 4>(), config_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Gathered g;
    const double cost = 4.0 * static_cast<double>(r_ * r_ * c_ * k_);
    for (int64_t pixel : sample(n_ * p_ * q_, static_cast<int64_t>(budget / cost))) {
      const int64_t n = pixel / (p_ * q_), p = pixel / q_ % p_, q = pixel % q_;
      auto of = [&](Arithmetic how) {
        return convolution_pixel(x_.host, f_.host, n, p, q, config_.stride, config_.pad, config_.dilation, how);
      };
      g.add(y_.host.row({n, p, q}), of(Arithmetic::exact()), of(Arithmetic::working(dtype_of<T>())));
    }
    return std::vector<Check>{with_gaps("Y", g.compare(reference::tolerance(dtype_of<T>(), r_ * r_ * c_)), y_.host)};
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"x", &x_.host}, {"f", &f_.host}, {"y", &y_.host}};
  }
  Work work() const override {
    const auto pixels = static_cast<double>(n_ * p_ * q_);
    return {
        2 * pixels * static_cast<double>(r_ * r_ * c_ * k_),
        sizeof(T) * (static_cast<double>(n_ * h_ * w_ * c_ + r_ * r_ * c_ * k_) + pixels * static_cast<double>(k_))};
  }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&y_}; }

  int64_t n_, h_, w_, c_, k_, r_, gap_, p_ = 0, q_ = 0;
  ConvolutionConfig config_;
  DeviceTensor x_, f_, y_;
};

template <class Fn>
auto with_half_type(std::string_view dtype, Fn fn) {
  return dtype == "f16" ? fn(half{}) : fn(bfloat16{});
}

}  // namespace

CatalogRow convolution_row() {
  CatalogRow row;
  row.name = "convolution";
  row.summary = "2-D convolution, channels last, as a product over taps and channels";
  row.peers = "cuDNN through torch conv2d";
  row.dtypes = {"f16", "bf16"};
  row.sizes = {"N: images",
               "H",
               "W",
               "C: channels",
               "K: filters",
               "R: taps along H and W (3)",
               "stride: (1)",
               "pad",
               "dilation: (1)",
               "gap: unused elements after the channels",
               "gather: pixels gathered one by one, not in patches",
               "producer: gathered by warps of their own"};
  for (const std::string& d : row.dtypes) {
    row.problems.push_back({d, {{"N", 2}, {"H", 12}, {"W", 10}, {"C", 32}, {"K", 48}, {"pad", 1}}});
    row.problems.push_back(
        {d, {{"N", 1}, {"H", 13}, {"W", 9}, {"C", 24}, {"K", 40}, {"stride", 2}, {"pad", 1}}, Purpose::edge});
    row.problems.push_back({d, {{"N", 3}, {"H", 5}, {"W", 7}, {"C", 3}, {"K", 5}, {"gap", 1}}, Purpose::edge});
    row.problems.push_back(
        {d, {{"N", 1}, {"H", 11}, {"W", 11}, {"C", 16}, {"K", 16}, {"pad", 2}, {"dilation", 2}}, Purpose::edge});
    row.problems.push_back({d, {{"N", 1}, {"H", 6}, {"W", 6}, {"C", 70}, {"K", 8}, {"R", 1}}, Purpose::edge});
    row.problems.push_back({d, {{"N", 2}, {"H", 12}, {"W", 10}, {"C", 72}, {"K", 80}, {"pad", 1}, {"producer", 1}}});
    row.problems.push_back(
        {d, {{"N", 3}, {"H", 5}, {"W", 7}, {"C", 3}, {"K", 5}, {"gap", 1}, {"producer", 1}}, Purpose::edge});
  }
  const Fields bench{{"N", 32}, {"H", 56}, {"W", 56}, {"C", 128}, {"K", 256}, {"pad", 1}};
  row.problems.push_back({"f16", bench, Purpose::bench});
  for (const char* how : {"gather", "producer"}) {
    Fields sizes = bench;
    sizes.set(how, 1);
    row.problems.push_back({"f16", sizes, Purpose::bench});
  }
  row.problems.push_back(
      {"f16", {{"N", 4}, {"H", 56}, {"W", 56}, {"C", 64}, {"K", 64}, {"pad", 1}}, Purpose::bench_host});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_half_type(d, [](auto t) -> const AnyKernel* { return &convolution_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    const int stride = static_cast<int>(p.sizes.get("stride", 1)), pad = static_cast<int>(p.sizes["pad"]);
    const int dilation = static_cast<int>(p.sizes.get("dilation", 1));
    auto outputs = [&](int64_t size) {
      return std::max<int64_t>(0, (size + 2 * pad - dilation * (p.sizes.get("R", 3) - 1) - 1) / stride + 1);
    };
    ConvolutionSizes sizes{p.sizes["N"], outputs(p.sizes["H"]), outputs(p.sizes["W"]),
                           p.sizes["C"], p.sizes["K"],          stride};
    sizes.aligned = p.sizes["gap"] % 8 == 0;
    ConvolutionConfig c = default_convolution_config(sizes, machine);
    c.producer = p.sizes.get("producer", 0) != 0;
    if (c.PN && (c.producer || p.sizes.get("gather", 0) != 0))
      c.PN = c.PH = c.PW = 0, c.BM = 128, c.BN = p.sizes["K"] <= 64 ? 64 : 128, c.warps = 4, c.stages = 3;
    c.pad = pad, c.dilation = dilation;
    return convolution_kernel<half>().words(c);
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_half_type(p.dtype, [&](auto t) { return make_case<ConvolutionCase<decltype(t)>>(device, p, c); });
  };
  return row;
}

}  // namespace tile::kernels
