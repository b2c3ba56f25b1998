// gla_layer.cpp - catalog rows of gla_layer.h: the whole layer, and its output gate.
#include "kernels/gla_layer.h"

#include "kernels/catalog/case.h"
#include "kernels/catalog/rows.h"
#include "kernels/reference/gla_layer.h"

namespace tile::kernels {
namespace {

using reference::Arithmetic;
using reference::HostTensor;
using reference::Matrix;

Matrix matrix_of(const HostTensor& t, int64_t first = 0, int64_t count = -1) {
  Matrix m(count < 0 ? t.dim(0) : count, t.dim(1));
  for (int64_t i = 0; i < m.rows; ++i)
    for (int64_t j = 0; j < m.cols; ++j) m(i, j) = t.at({first + i, j});
  return m;
}

template <class T>
class LayerCase : public OutputCase {
 public:
  LayerCase(const Problem& p, const ConfigWords&)
      : s_{p.sizes.get("B", 1), p.sizes["L"], p.sizes["D"],        p.sizes["H"],
           p.sizes["K"],        p.sizes["V"], p.sizes.get("R", 16)} {}

  Status create(std::shared_ptr<Device> device) {
    const int64_t keys = s_.heads * s_.k, values = s_.heads * s_.v;
    Steps s;
    // Weights of variance 1 / inputs keep every intermediate tensor near 1; the gates get stronger than in a fresh
    // layer.
    auto make = [&](DeviceTensor& t, int64_t rows, int64_t cols, uint64_t seed, double factor = 1) {
      HostTensor host(dtype_of<T>(), {rows, cols});
      host.fill_normal(seed, factor / std::sqrt(static_cast<double>(rows)));
      s(t.create(device, std::move(host)));
    };
    HostTensor x(dtype_of<T>(), {s_.rows(), s_.width}), norm(dtype_of<T>(), {s_.v});
    x.fill_normal(1), norm.fill_uniform(2, 0.5, 1.5);
    s(x_.create(device, std::move(x)))(norm_.create(device, std::move(norm)));
    make(wq_, s_.width, keys, 3), make(wk_, s_.width, keys, 4), make(wv_, s_.width, values, 5);
    make(wr_, s_.width, values, 6), make(w1_, s_.width, s_.rank, 7), make(w2_, s_.rank, keys, 8, 3);
    make(wo_, values, s_.width, 9);
    s(out_.create(device, HostTensor(dtype_of<T>(), {s_.rows(), s_.width})));
    Result<GlaLayerWorkspace<T>> w = GlaLayerWorkspace<T>::create(device, s_);
    s(w);
    if (w) workspace_ = std::move(*w);
    return s.status();
  }
  Status launch(Stream& stream) override {
    auto in = [](const DeviceTensor& t) { return t.view<const T, 2>(); };
    GlaLayerWeights<T> w{in(wq_), in(wk_), in(wv_), in(wr_), in(w1_), in(w2_), norm_.view<const T, 1>(), in(wo_)};
    return gla_layer<T>(stream, s_, in(x_), w, out_.view<T, 2>(), workspace_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    reference::GlaLayerMatrices w{matrix_of(wq_.host), matrix_of(wk_.host), matrix_of(wv_.host), matrix_of(wr_.host),
                                  matrix_of(w1_.host), matrix_of(w2_.host), matrix_of(wo_.host), norm_.host.row({})};
    Gathered out;
    double work = static_cast<double>(s_.length * s_.width) * static_cast<double>(s_.heads * (2 * s_.k + 3 * s_.v));
    for (int64_t b : sample(s_.batch, static_cast<int64_t>(budget / (4 * work)))) {
      Matrix x = matrix_of(x_.host, b * s_.length, s_.length);
      out.add(matrix_of(out_.host, b * s_.length, s_.length).values,
              gla_layer(x, w, s_.heads, 0, Arithmetic::exact()).values,
              gla_layer(x, w, s_.heads, workspace_.plan.output.BT, Arithmetic::working(dtype_of<T>())).values);
    }
    // Six rounded tensors lie between x and the output.
    reference::Tolerance t = reference::tolerance(dtype_of<T>(), s_.width + s_.length);
    t.rmse_ratio *= 3;
    return std::vector<Check>{with_gaps("OUT", out.compare(t), out_.host)};
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"x", &x_.host},   {"wq", &wq_.host}, {"wk", &wk_.host}, {"wv", &wv_.host},     {"wr", &wr_.host},
            {"w1", &w1_.host}, {"w2", &w2_.host}, {"wo", &wo_.host}, {"norm", &norm_.host}, {"out", &out_.host}};
  }
  Work work() const override {
    double n = static_cast<double>(s_.rows()), d = static_cast<double>(s_.width),
           keys = static_cast<double>(s_.heads * s_.k), values = static_cast<double>(s_.heads * s_.v),
           rank = static_cast<double>(s_.rank);
    double weights = d * (2 * keys + 3 * values + rank) + rank * keys;
    return {2 * n * weights + 4 * n * keys * static_cast<double>(s_.v), sizeof(T) * (weights + 2 * n * d)};
  }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&out_}; }

  GlaLayerSizes s_;
  GlaLayerWorkspace<T> workspace_;
  DeviceTensor x_, wq_, wk_, wv_, wr_, w1_, w2_, wo_, norm_, out_;
};

template <class T>
class OutputGateCase : public OutputCase {
 public:
  OutputGateCase(const Problem& p, const ConfigWords& words)
      : rows_(p.sizes["M"]), v_(p.sizes["V"]), config_(gla_output_gate_kernel<T>().from_words(words)) {}

  Status create(std::shared_ptr<Device> device) {
    HostTensor o(dtype_of<T>(), {rows_, v_}), r(dtype_of<T>(), {rows_, v_}), w(dtype_of<T>(), {v_});
    o.fill_normal(1), r.fill_normal(2, 3), w.fill_uniform(3, 0.5, 1.5);
    Steps s;
    s(o_.create(device, std::move(o)))(r_.create(device, std::move(r)))(w_.create(device, std::move(w)));
    s(y_.create(device, HostTensor(dtype_of<T>(), {rows_, v_})));
    return s.status();
  }
  Status launch(Stream& stream) override {
    return gla_output_gate<T>(stream, o_.view<const T, 2>(), r_.view<const T, 2>(), w_.view<const T, 1>(),
                              y_.view<T, 2>(), 1e-5f, config_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Gathered y;
    for (int64_t i : sample(rows_, static_cast<int64_t>(budget / (20 * static_cast<double>(v_))))) {
      Matrix o = matrix_of(o_.host, i, 1), r = matrix_of(r_.host, i, 1);
      y.add(y_.host.row({i}), gla_output_gate(o, r, w_.host.row({}), 1e-5, Arithmetic::exact()).values,
            gla_output_gate(o, r, w_.host.row({}), 1e-5, Arithmetic::working(dtype_of<T>())).values);
    }
    return std::vector<Check>{with_gaps("Y", y.compare(reference::tolerance(dtype_of<T>(), v_)), y_.host)};
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"o", &o_.host}, {"r", &r_.host}, {"w", &w_.host}, {"y", &y_.host}};
  }
  Work work() const override {
    double n = static_cast<double>(rows_ * v_);
    return {12 * n, 3 * n * sizeof(T)};
  }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&y_}; }

  int64_t rows_, v_;
  GlaOutputGateConfig config_;
  DeviceTensor o_, r_, w_, y_;
};

}  // namespace

CatalogRow gla_layer_row() {
  CatalogRow row;
  row.name = "gla_layer";
  row.summary = "gated linear attention layer: projections, low-rank gates, attention, output gate";
  row.dtypes = {"f16", "bf16", "f32"};
  row.sizes = {"B: batch (1)",      "L: rows of a sequence",    "D: width", "H: heads", "K: key channels",
               "V: value channels", "R: rank of the gates (16)"};
  row.parts = {"gemm", "gla_forward", "gla_output_gate"};
  for (const std::string& d : row.dtypes) {
    row.problems.push_back({d, {{"B", 2}, {"L", 64}, {"D", 128}, {"H", 2}, {"K", 32}, {"V", 64}}});
    row.problems.push_back({d, {{"L", 37}, {"D", 72}, {"H", 3}, {"K", 20}, {"V", 24}, {"R", 8}}, Purpose::edge});
  }
  row.problems.push_back(
      {"bf16", {{"B", 8}, {"L", 2048}, {"D", 1024}, {"H", 4}, {"K", 128}, {"V", 256}}, Purpose::bench});
  row.problems.push_back({"f32", {{"L", 512}, {"D", 512}, {"H", 4}, {"K", 64}, {"V", 128}}, Purpose::bench_host});
  row.default_config = [](const Problem& p, const Machine& machine) {
    return gla_output_gate_kernel<float>().words(default_gla_output_gate_config(p.sizes["V"], machine));
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_float_type(p.dtype, [&](auto t) { return make_case<LayerCase<decltype(t)>>(device, p, c); });
  };
  return row;
}

CatalogRow gla_output_gate_row() {
  CatalogRow row;
  row.name = "gla_output_gate";
  row.summary = "rms norm of a head's rows times silu of their gates";
  row.dtypes = {"f16", "bf16", "f32"};
  row.sizes = {"M: rows of all heads", "V: value channels"};
  for (const std::string& d : row.dtypes) {
    row.problems.push_back({d, {{"M", 100}, {"V", 64}}});
    row.problems.push_back({d, {{"M", 7}, {"V", 50}}, Purpose::edge});
  }
  row.problems.push_back({"bf16", {{"M", 262144}, {"V", 256}}, Purpose::bench});
  row.problems.push_back({"f32", {{"M", 65536}, {"V", 128}}, Purpose::bench_host});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* { return &gla_output_gate_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    return gla_output_gate_kernel<float>().words(default_gla_output_gate_config(p.sizes["V"], machine));
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_float_type(p.dtype, [&](auto t) { return make_case<OutputGateCase<decltype(t)>>(device, p, c); });
  };
  return row;
}

}  // namespace tile::kernels
