// gla_case.h - what the catalog's cases of gated linear attention share: sizes, inputs with gates as models make them,
// sequences packed one behind the other, and references of one head.
#pragma once
#include <cmath>

#include "kernels/catalog/case.h"
#include "kernels/gated_linear_attention.h"
#include "kernels/gla_forward.h"
#include "kernels/reference/gated_linear_attention.h"

namespace tile::kernels {

using reference::Arithmetic;
using reference::HostTensor;
using reference::Matrix;
using reference::Placement;

struct GlaProblemSizes {
  int64_t b, h, l, k, v, packed;
  float scale;
  explicit GlaProblemSizes(const Fields& f)
      : b(f.get("B", 1)),
        h(f.get("H", 1)),
        l(f["L"]),
        k(f["K"]),
        v(f.get("V", k)),
        packed(f["packed"]),
        scale(1.f / std::sqrt(static_cast<float>(k))) {}

  /// Independent sequences of one head, and their first rows with the total behind them. Packed ones have uneven
  /// lengths, among them empty ones.
  int64_t sequences() const { return packed ? packed : b; }
  std::vector<int64_t> boundaries() const {
    std::vector<int64_t> at{0};
    constexpr int64_t kWeights[] = {5, 0, 1, 13, 0, 2, 8, 3};
    int64_t sum = 0, done = 0;
    for (int64_t i = 0; i < packed; ++i) sum += kWeights[i % 8];
    for (int64_t i = 0; i < packed; ++i) done += kWeights[i % 8], at.push_back(i + 1 == packed ? l : l * done / sum);
    return at;
  }
  int64_t longest() const {
    int64_t most = 0;
    std::vector<int64_t> at = boundaries();
    for (size_t i = 1; i < at.size(); ++i) most = std::max(most, at[i] - at[i - 1]);
    return packed ? most : l;
  }
};

/// Rows [first, first + count) of one (batch, head) of a [B, H, L, D] tensor; all rows without `count`.
inline Matrix matrix_of(const HostTensor& t, int64_t b, int64_t h, int64_t first = 0, int64_t count = -1) {
  Matrix m(count < 0 ? t.dim(2) : count, t.dim(3));
  for (int64_t i = 0; i < m.rows; ++i)
    for (int64_t j = 0; j < m.cols; ++j) m(i, j) = t.at({b, h, first + i, j});
  return m;
}

/// Inputs q, k, v, g on the device and the (sequence, head) pairs to compare.
class GlaCase : public OutputCase {
 protected:
  GlaCase(const Problem& p, DType dtype)
      : s_(p.sizes),
        gate_(p.sizes.get("gate", 16)),
        strength_(p.sizes.get("strength", 1)),
        layout_(p.sizes["layout"]),
        dtype_(dtype) {}

  HostTensor tensor(DType type, int64_t channels) const {
    std::vector<int> order = layout_ == 1 ? std::vector<int>{0, 2, 1, 3} : std::vector<int>{0, 1, 2, 3};
    return HostTensor(type, Placement::ordered({s_.b, s_.h, s_.l, channels}, order));
  }
  /// Gates as models make them: log sigmoid over a normaliser. gate = 0 gives no decay at all.
  void fill_gates(HostTensor& g, uint64_t seed) const {
    g.fill_normal(seed);
    reference::for_each_index(g.shape(), [&](std::span<const int64_t> i) {
      g.set(i, gate_ ? -std::log1p(std::exp(-g.at(i))) * static_cast<double>(strength_) / static_cast<double>(gate_)
                     : 0.0);
    });
  }
  /// First rows of the packed sequences as the kernels take them; one element when nothing is packed.
  HostTensor boundaries() const {
    std::vector<int64_t> at = s_.boundaries();
    HostTensor cu(DType::i32, {static_cast<int64_t>(at.size())});
    for (size_t i = 0; i < at.size(); ++i) cu.set({static_cast<int64_t>(i)}, static_cast<double>(at[i]));
    return cu;
  }
  Status create_inputs(const std::shared_ptr<Device>& device) {
    HostTensor q = tensor(dtype_, s_.k), k = tensor(dtype_, s_.k), v = tensor(dtype_, s_.v),
               g = tensor(DType::f32, s_.k);
    q.fill_normal(1), k.fill_normal(2), v.fill_normal(3), fill_gates(g, 4);
    Steps s;
    s(q_.create(device, std::move(q)))(k_.create(device, std::move(k)))(v_.create(device, std::move(v)))(
        g_.create(device, std::move(g)));
    return s.status();
  }
  /// What a forward pass reads and writes.
  std::vector<NamedTensor> forward_tensors(const DeviceTensor& o) const {
    return {{"q", &q_.host}, {"k", &k_.host}, {"v", &v_.host}, {"g", &g_.host}, {"o", &o.host}};
  }
  std::vector<int64_t> heads(double budget) const {
    return sample(s_.sequences() * s_.h,
                  static_cast<int64_t>(budget / (8.0 * static_cast<double>(s_.l * s_.k * s_.v))));
  }
  /// Where the rows of a sequence are.
  struct Rows {
    int64_t batch, first, count;
  };
  Rows rows_of(int64_t sequence) const {
    if (!s_.packed) return {sequence, 0, s_.l};
    std::vector<int64_t> at = s_.boundaries();
    return {0, at[sequence], at[sequence + 1] - at[sequence]};
  }
  Matrix rows(const HostTensor& t, int64_t sequence, int64_t head) const {
    Rows r = rows_of(sequence);
    return matrix_of(t, r.batch, head, r.first, r.count);
  }
  /// f16/bf16: RMSE ratio of the design (4e-3 for o); bf16 rounds intermediate tensors to 8 bits.
  reference::Tolerance o_tolerance(DType type) const {
    reference::Tolerance t = reference::tolerance(type, s_.l + s_.k);
    if (type == DType::f16) t.rmse_ratio = 4e-3;
    return t;
  }

  GlaProblemSizes s_;
  int64_t gate_, strength_, layout_;
  DType dtype_;
  DeviceTensor q_, k_, v_, g_;
};

/// Names of the sizes every row takes, for its documentation.
inline std::vector<std::string> gla_size_names() {
  return {"B: batch (1)",
          "H: heads (1)",
          "L: rows",
          "K: key channels",
          "V: value channels (K)",
          "BT: rows of a window (16)",
          "gate: normaliser of the log-sigmoid gates, larger decays slower (16), 0: none",
          "strength: factor of the gates (1)",
          "layout: 0 [B,H,L,D], 1 [B,L,H,D]"};
}

/// Of a row's problems those that kernels of warpgroups take whose chunks have room on chip: 16-bit products, few enough
/// channels.
inline void keep_fused_problems(CatalogRow& row) {
  row.dtypes = {"f16", "bf16"};
  std::erase_if(row.problems, [](const Problem& p) {
    return p.dtype == "f32" || p.sizes["K"] > detail::kGlaFusedRows || p.sizes["V"] > detail::kGlaFusedColumns;
  });
  row.problems.push_back({"bf16", {{"H", 4}, {"L", 2048}, {"K", 128}, {"V", 128}}, Purpose::bench_host});
}

/// The shapes of training that chunked kernels, forward and backward, are timed with.
inline void add_gla_benches(CatalogRow& row) {
  row.problems.push_back({"bf16", {{"B", 8}, {"H", 16}, {"L", 2048}, {"K", 128}, {"V", 128}}, Purpose::bench});
  row.problems.push_back({"bf16", {{"B", 32}, {"H", 4}, {"L", 2048}, {"K", 256}, {"V", 512}}, Purpose::bench});
  row.problems.push_back({"bf16", {{"B", 32}, {"H", 4}, {"L", 2048}, {"K", 64}, {"V", 64}}, Purpose::bench});
  row.problems.push_back({"bf16", {{"B", 1}, {"H", 16}, {"L", 16384}, {"K", 128}, {"V", 128}}, Purpose::bench});
  row.problems.push_back({"f32", {{"H", 4}, {"L", 2048}, {"K", 128}, {"V", 128}}, Purpose::bench_host});
}

}  // namespace tile::kernels
