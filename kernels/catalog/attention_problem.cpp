// attention_problem.cpp - the data of attention problems.
#include "kernels/catalog/attention_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tile::kernels {
namespace {

using reference::HostTensor;
using reference::Placement;

/// How a [B, H, S, D] tensor lies in memory.
enum class Layout : int64_t { bhsd, bshd, packed, transposed };

/// Lengths of packed sequences, queries and keys, by the number in the problem.
struct Lengths {
  std::vector<int64_t> q, k;
};
const Lengths& packed_lengths(int64_t pattern) {
  static const Lengths patterns[] = {
      {{}, {}},
      {{13, 0, 100, 1, 70}, {13, 0, 100, 1, 70}},
      {{5, 64, 0, 129, 33}, {20, 64, 33, 0, 100}},  // other lengths, a sequence without keys
      {{0, 0, 0}, {0, 0, 0}},                       // E05
      {{1, 1, 1, 1}, {130, 0, 1, 64}},              // a decode step, one sequence still empty
      {{64, 65}, {128, 127}},
      {{4096, 1024, 2500, 300, 8192, 272}, {4096, 1024, 2500, 300, 8192, 272}},
  };
  return patterns[std::clamp<int64_t>(pattern, 0, std::ssize(patterns) - 1)];
}
/// Row numbers at which the sequences start, with unused rows before the first and (the tensors are longer) behind the
/// last.
std::vector<int64_t> starts(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> cu = {3};
  for (int64_t n : lengths) cu.push_back(cu.back() + n);
  return cu;
}
constexpr int64_t kUnusedBehind = 5;

}  // namespace

AttentionProblemData::AttentionProblemData(const Fields& f)
    : b(f.get("B", 1)),
      hq(f.get("Hq", 1)),
      hkv(f.get("Hkv", hq)),
      sq(f["Sq"]),
      sk(f.get("Sk", sq)),
      d(f["D"]),
      dv(f.get("DV", d)),
      scale((f["negative_scale"] ? -1.f : 1.f) / std::sqrt(static_cast<float>(d))),
      bias_kind(static_cast<BiasKind>(f["bias"])),
      fields_(f) {
  sequences = b, max_sq = sq, max_sk = sk;
  if (f["varlen"]) {
    const Lengths& lengths = packed_lengths(f["varlen"]);
    spec.cu_q = starts(lengths.q), spec.cu_k = starts(lengths.k);
    b = 1, sequences = std::ssize(lengths.q);
    sq = spec.cu_q.back() + kUnusedBehind, sk = spec.cu_k.back() + kUnusedBehind;
    max_sq = std::max<int64_t>(1, *std::max_element(lengths.q.begin(), lengths.q.end()));
    max_sk = std::max<int64_t>(1, *std::max_element(lengths.k.begin(), lengths.k.end()));
  }
  spec.causal = f["causal"] != 0, spec.top_left = f["top_left"] != 0;
  spec.left = f.get("left", -1), spec.right = f.get("right", -1);
  spec.softcap = static_cast<double>(f["softcap"]);
  spec.scale = scale;
  guard_values = f["nan_value"] != 0;
  spec.dropout = static_cast<float>(f["dropout"]) / 100, spec.seed = 0x123456789abcdef0ull, spec.offset = 77;
}

Placement AttentionProblemData::placement(int64_t h, int64_t s, int64_t width) const {
  const reference::Dims shape = {b, h, s, width};
  const int64_t shift = fields_["shift"];
  switch (static_cast<Layout>(fields_["layout"])) {
    case Layout::bhsd:
      return Placement::ordered(shape, {0, 1, 2, 3}, 0, shift);
    case Layout::bshd:
      return Placement::ordered(shape, {0, 2, 1, 3}, 0, shift);
    case Layout::packed: {  // one third of [B, S, 3, H, D]
      Placement p = Placement::ordered(shape, {0, 2, 1, 3}, 0, shift);
      p.strides = {s * 3 * h * width, width, 3 * h * width, 1};
      return p;
    }
    case Layout::transposed:
      return Placement::ordered(shape, {0, 1, 3, 2}, 1, shift);  // neighbours along D are far apart
  }
  return Placement::dense(shape);
}

void AttentionProblemData::fill_bias(HostTensor& bias) const {
  bias.fill_normal(7);
  const double lowest = bias.dtype() == DType::f16 ? -65504.0 : -static_cast<double>(std::numeric_limits<float>::max());
  auto value = [&](int64_t i, int64_t j, double random) -> double {
    switch (bias_kind) {
      case BiasKind::holes:
        if (i % 7 == 3) return -INFINITY;
        return j % 5 == 1 ? -INFINITY : j % 11 == 4 ? 100.0 : random;
      case BiasKind::causal_lowest:
        return j <= i + sk - sq ? 0.0 : lowest;
      case BiasKind::mask:
        return (i * 31 + j * 17) % 3 != 0 && (j < 64 || j >= 128) ? 1.0 : 0.0;
      case BiasKind::lowest_rows:
        return i % 3 == 1 ? lowest : random;
      default:
        return random;
    }
  };
  if (bias_kind != BiasKind::random)
    reference::for_each_index(bias.shape(), [&](std::span<const int64_t> at) {
      bias.set(at, value(at[2], at[3], bias_kind == BiasKind::mask ? 0.0 : bias.at(at)));
    });
}

Status AttentionProblemData::create(std::shared_ptr<Device> device, DType type) {
  Steps s;
  if (fields_["alibi"]) {
    HostTensor slopes(DType::f32, {sequences, hq});
    reference::for_each_index(slopes.shape(), [&](std::span<const int64_t> at) {
      slopes.set(at, std::exp2(-8.0 * static_cast<double>(at[1] + 1) / static_cast<double>(hq)) *
                         (1 + static_cast<double>(at[0])));
    });
    s(slopes_.create(device, std::move(slopes)));
    spec.slopes = &slopes_.host;
  }
  if (bias_kind != BiasKind::none) {
    const DType element = bias_kind == BiasKind::causal_lowest && type == DType::f16 ? DType::f16
                          : bias_kind == BiasKind::mask                              ? DType::u8
                                                                                     : DType::f32;
    HostTensor bias(element, {sequences, hq, max_sq, max_sk});
    fill_bias(bias);
    s(bias_.create(device, std::move(bias)));
    spec.bias = &bias_.host;
  }
  if (!spec.cu_q.empty()) {
    auto upload = [&](DeviceTensor& to, const std::vector<int64_t>& cu) {
      HostTensor t(DType::i32, {std::ssize(cu)});
      for (int64_t i = 0; i < std::ssize(cu); ++i) t.set({i}, static_cast<double>(cu[i]));
      s(to.create(device, std::move(t)));
    };
    upload(cu_q_, spec.cu_q), upload(cu_k_, spec.cu_k);
  }
  if (fields_["descale"]) {
    auto upload = [&](DeviceTensor& to, int64_t heads, uint64_t seed) {
      HostTensor t(DType::f32, {sequences, heads});
      t.fill_uniform(seed, 0.5, 1.5);
      s(to.create(device, std::move(t)));
    };
    upload(q_scale_, hq, 11), upload(k_scale_, hkv, 12), upload(v_scale_, hkv, 13);
    spec.q_scale = &q_scale_.host, spec.k_scale = &k_scale_.host, spec.v_scale = &v_scale_.host;
  }
  return s.status();
}

void AttentionProblemData::poison_unused(HostTensor& t, const std::vector<int64_t>& cu) const {
  if (cu.empty()) return;
  reference::for_each_index(t.shape(), [&](std::span<const int64_t> at) {
    if (at[2] < cu.front() || at[2] >= cu.back()) t.set(at, NAN);
  });
}

double AttentionProblemData::pairs() const {
  double pairs = 0;
  for (int64_t s = 0; s < sequences; ++s)
    pairs += static_cast<double>(reference::visible_pairs(spec, queries(s), keys(s)));
  return pairs * static_cast<double>(hq);
}

void AttentionProblemData::complete(AttentionConfig& c) const {
  c.causal = spec.causal || spec.right == 0, c.top_left = spec.top_left;
  c.left = spec.left >= 0, c.right = spec.right > 0 && !spec.causal;
  c.softcap = spec.softcap != 0, c.alibi = fields_["alibi"], c.bias = bias_kind != BiasKind::none;
  c.varlen = !spec.cu_q.empty(), c.descale = fields_["descale"], c.dropout = spec.dropout != 0;
  c.positive_scale = scale > 0;
}

std::vector<std::string> attention_field_names() {
  return {"B: batch (1)",
          "Hq: query heads (1)",
          "Hkv: key heads (Hq)",
          "Sq: queries",
          "Sk: keys (Sq)",
          "D: channels of Q and K",
          "DV: channels of V (D)",
          "causal: 0 or 1",
          "top_left: the band starts at the first query and key, not at the last",
          "left: window before the aligned key (-1, no limit)",
          "right: window behind it (-1, no limit)",
          "softcap: 0 for none",
          "alibi: 0 or 1",
          "bias: 1 random, 2 with infinities, 3 causal by lowest numbers, 4 u8 mask, 5 rows of lowest numbers",
          "varlen: number of a list of lengths of packed sequences",
          "descale: factors per head",
          "dropout: percent of the weights that are dropped",
          "layout: 0 [B,H,S,D], 1 [B,S,H,D], 2 part of [B,S,3,H,D], 3 [B,H,D,S]",
          "shift: elements by which bases are misaligned",
          "amp: standard deviation of Q",
          "nan_key: this key is NaN",
          "nan_value: one channel of this key's value is NaN; values are guarded (forward)",
          "negative_scale: scale is -1/sqrt(D)"};
}

}  // namespace tile::kernels
