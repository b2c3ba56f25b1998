// vector_add.cpp - catalog row of vector_add.h.
#include "kernels/vector_add.h"

#include "kernels/catalog/case.h"
#include "kernels/catalog/rows.h"

namespace tile::kernels {
namespace {

using reference::HostTensor;
using reference::Placement;

template <class T>
class VectorAddCase : public OutputCase {
 public:
  VectorAddCase(const Problem& p, const ConfigWords& words)
      : n_(p.sizes["n"]),
        shift_(p.sizes["shift"]),
        gap_(p.sizes["gap"]),
        config_(vector_add_kernel<T>().from_words(words)) {}

  Status create(std::shared_ptr<Device> device) {
    Placement place = Placement::dense({n_});
    place.offset += shift_;
    if (gap_) place.strides[0] = 1 + gap_;
    HostTensor x(dtype_of<T>(), place), y(dtype_of<T>(), place);
    if (std::is_integral_v<T>)
      x.fill_integers(1, -1000000, 1000000), y.fill_integers(2, -1000000, 1000000);
    else
      x.fill_normal(1), y.fill_normal(2);
    Steps s;
    s(x_.create(device, std::move(x)))(y_.create(device, std::move(y)))(
        z_.create(device, HostTensor(dtype_of<T>(), place)));
    return s.status();
  }
  bool set_config(const ConfigWords& words) override {
    return config_ = vector_add_kernel<T>().from_words(words), true;
  }
  Status launch(Stream& stream) override {
    return vector_add<T>(stream, x_.view<const T, 1>(), y_.view<const T, 1>(), z_.view<T, 1>(), config_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    std::vector<double> actual, expected;
    for (int64_t i : sample(n_, static_cast<int64_t>(budget / 100))) {
      actual.push_back(z_.host.at({i}));
      expected.push_back(
          reference::round_to(dtype_of<T>(), x_.host.at({i}) + y_.host.at({i})));  // one rounding, nothing to tolerate
    }
    return std::vector<Check>{with_gaps("z", reference::compare_equal(actual, expected), z_.host)};
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"x", &x_.host}, {"y", &y_.host}, {"z", &z_.host}};
  }
  Work work() const override { return {static_cast<double>(n_), 3.0 * static_cast<double>(n_) * sizeof(T)}; }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&z_}; }

  int64_t n_, shift_, gap_;
  VectorAddConfig config_;
  DeviceTensor x_, y_, z_;
};

template <class Fn>
auto with_type(std::string_view dtype, Fn fn) {
  if (dtype == "f64") return fn(double{});
  if (dtype == "i32") return fn(int32_t{});
  return with_float_type(dtype, fn);
}

}  // namespace

CatalogRow vector_add_row() {
  CatalogRow row;
  row.name = "vector_add";
  row.summary = "z = x + y";
  row.peers = "device copy, Triton tutorial 01";
  row.dtypes = {"f32", "f16", "bf16", "f64", "i32"};
  row.sizes = {"n: elements", "shift: elements by which the base is misaligned",
               "gap: unused elements between neighbours"};
  for (const std::string& d : row.dtypes)
    for (int64_t n : {1, 1000, 4096, 10007}) row.problems.push_back({d, {{"n", n}}});
  row.problems.push_back({"f32", {{"n", 5000}, {"shift", 1}}, Purpose::edge});
  row.problems.push_back({"f16", {{"n", 5000}, {"shift", 1}}, Purpose::edge});
  row.problems.push_back({"f32", {{"n", 777}, {"gap", 2}}, Purpose::edge});
  row.problems.push_back({"f32", {{"n", 1 << 28}}, Purpose::bench});
  row.problems.push_back({"f16", {{"n", 1 << 28}}, Purpose::bench});
  row.problems.push_back({"f32", {{"n", 1 << 24}}, Purpose::bench_host});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_type(d, [](auto t) -> const AnyKernel* { return &vector_add_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem&, const Machine& machine) {
    return vector_add_kernel<float>().words(default_vector_add_config(machine));
  };
  row.tuning = [](const Problem&, const Machine& machine) {
    return Tuning{
        "vector_add", TuningKey(),
        words_of(vector_add_kernel<float>(), vector_add_space(default_vector_add_config(untuned(machine)), machine))};
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_type(p.dtype, [&](auto t) { return make_case<VectorAddCase<decltype(t)>>(device, p, c); });
  };
  return row;
}

}  // namespace tile::kernels
