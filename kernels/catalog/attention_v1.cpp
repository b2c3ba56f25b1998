// attention_v1.cpp - catalog row of attention_tiled_v1.h.
#include "kernels/attention_tiled_v1.h"
#include "kernels/catalog/attention_problem.h"
#include "kernels/catalog/rows.h"

namespace tile::kernels {
namespace {

using reference::Arithmetic;
using reference::HostTensor;

template <class T>
class AttentionV1Case : public OutputCase {
 public:
  AttentionV1Case(const Problem& p, const ConfigWords& words)
      : data_(p.sizes), config_(attention_v1_kernel<T>().from_words(words)) {}

  Status create(std::shared_ptr<Device> device) {
    HostTensor q(dtype_of<T>(), data_.placement(data_.hq, data_.sq, data_.d)),
        k(dtype_of<T>(), data_.placement(data_.hq, data_.sk, data_.d)),
        v(dtype_of<T>(), data_.placement(data_.hq, data_.sk, data_.dv));
    q.fill_normal(1), k.fill_normal(2), v.fill_normal(3);
    Steps s;
    s(q_.create(device, std::move(q)))(k_.create(device, std::move(k)))(v_.create(device, std::move(v)));
    s(o_.create(device, HostTensor(DType::f32, data_.placement(data_.hq, data_.sq, data_.dv))));
    s(l_.create(device, HostTensor(DType::f32, {data_.b, data_.hq, data_.sq})));
    s(m_.create(device, HostTensor(DType::f32, {data_.b, data_.hq, data_.sq})));
    return s.status();
  }
  Status launch(Stream& stream) override {
    return attention_v1<T>(stream, q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(),
                           o_.view<float, 4>(), l_.view<float, 3>(), m_.view<float, 3>(), data_.scale, config_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    const double row_cost = 2.0 * static_cast<double>(std::max<int64_t>(data_.sk * (data_.d + data_.dv), 1));
    const std::vector<int64_t> rows =
        sample(data_.sq, static_cast<int64_t>(budget / row_cost) / (data_.b * data_.hq) + 2);
    Gathered o, lse;
    for (int64_t b = 0; b < data_.b; ++b)
      for (int64_t h = 0; h < data_.hq; ++h) {
        auto exact = attention_rows(data_.spec, q_.host, k_.host, v_.host, b, h, rows, Arithmetic::exact());
        auto base =
            attention_rows(data_.spec, q_.host, k_.host, v_.host, b, h, rows, Arithmetic::working(dtype_of<T>()));
        for (size_t r = 0; r < rows.size(); ++r) {
          o.add(o_.host.row({b, h, rows[r]}), exact[r].o, base[r].o);
          lse.add({m_.host.at({b, h, rows[r]}) + std::log(l_.host.at({b, h, rows[r]}))}, {exact[r].lse}, {base[r].lse});
        }
      }
    return std::vector<Check>{with_gaps("O", o.compare(reference::tolerance(dtype_of<T>(), data_.sk)), o_.host),
                              with_gaps("M + ln L", reference::compare_absolute(lse.actual, lse.exact, 1e-3), l_.host)};
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"q", &q_.host}, {"k", &k_.host}, {"v", &v_.host}, {"o", &o_.host}};
  }
  Work work() const override {
    const double queries = static_cast<double>(data_.b * data_.hq * data_.sq),
                 keys = static_cast<double>(data_.b * data_.hq * data_.sk),
                 width = static_cast<double>(data_.d + data_.dv);
    return {2 * data_.pairs() * width, sizeof(T) * keys * width + queries * (sizeof(T) * width + 8)};
  }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&o_, &l_, &m_}; }

  AttentionProblemData data_;
  AttentionV1Config config_;
  DeviceTensor q_, k_, v_, o_, l_, m_;
};

}  // namespace

CatalogRow attention_v1_row() {
  CatalogRow row;
  row.name = "attention_v1";
  row.summary = "attention forward as first published: blocks of keys outside, O, l and m in memory";
  row.dtypes = {"f16", "bf16", "f32"};
  row.sizes = {"B: batch (1)",
               "Hq: heads (1)",
               "Sq: queries",
               "Sk: keys (Sq)",
               "D: channels of Q and K",
               "DV: channels of V (D)",
               "causal: 0 or 1",
               "layout: 0 [B,H,S,D], 1 [B,S,H,D], 2 part of [B,S,3,H,D]"};
  for (const char* d : {"f16", "bf16", "f32"})  // S0.6
    for (int64_t causal : {0, 1}) row.problems.push_back({d, {{"Hq", 2}, {"Sq", 130}, {"D", 64}, {"causal", causal}}});
  row.problems.push_back({"f16", {{"Hq", 1}, {"Sq", 203}, {"Sk", 113}, {"D", 32}, {"causal", 1}}, Purpose::edge});
  row.problems.push_back(
      {"f16", {{"Hq", 1}, {"Sq", 70}, {"Sk", 90}, {"D", 59}, {"DV", 40}, {"layout", 1}}, Purpose::edge});
  row.problems.push_back({"f16", {{"B", 4}, {"Hq", 16}, {"Sq", 4096}, {"D", 64}}, Purpose::bench});
  row.problems.push_back({"f32", {{"Hq", 4}, {"Sq", 1024}, {"D", 64}}, Purpose::bench_host});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* { return &attention_v1_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    const AttentionProblemData data(p.sizes);
    // The paper's M, in elements of the type: what a program of the time had, 100 KB.
    const int64_t elements = 102400 / static_cast<int64_t>(size_of(storage_of(p.dtype)));
    return attention_v1_kernel<float>().words(
        attention_v1_config(elements, data.d, data.dv, data.spec.causal, machine));
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_float_type(p.dtype, [&](auto t) { return make_case<AttentionV1Case<decltype(t)>>(device, p, c); });
  };
  return row;
}

}  // namespace tile::kernels
