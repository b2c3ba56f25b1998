// attention.cpp - softmax(t) v and its derivatives by their definition.
#include "kernels/reference/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tile::reference {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// First visible key and one past the last.
std::pair<int64_t, int64_t> band_of(const AttentionSpec& spec, int64_t i, int64_t sq, int64_t sk) {
  int64_t aligned = spec.top_left ? i : i + sk - sq, right = spec.causal ? 0 : spec.right;
  int64_t begin = spec.left < 0 ? 0 : std::clamp<int64_t>(aligned - spec.left, 0, sk);
  int64_t end = right < 0 ? sk : std::clamp<int64_t>(aligned + right + 1, 0, sk);
  return {begin, std::max(begin, end)};
}

using Rows = std::vector<std::vector<double>>;

/// One sequence of one key head, its rows decoded once.
class Head {
 public:
  Head(const AttentionSpec& spec, const HostTensor& q, const HostTensor& k, const HostTensor& v, const HostTensor* d_o,
       int64_t batch, int64_t head, Arithmetic how)
      : spec_(spec), how_(how), batch_(batch), head_(head), heads_(q.dim(1)) {
    const bool packed = !spec.cu_q.empty();
    const int64_t kv_head = head / (q.dim(1) / k.dim(1)), b = packed ? 0 : batch;
    const int64_t q0 = packed ? spec.cu_q[batch] : 0, k0 = packed ? spec.cu_k[batch] : 0;
    sq_ = packed ? spec.cu_q[batch + 1] - q0 : q.dim(2), sk_ = packed ? spec.cu_k[batch + 1] - k0 : k.dim(2);
    auto decode = [](const HostTensor& t, int64_t b, int64_t h, int64_t first, int64_t count) {
      Rows rows(count);
      for (int64_t i = 0; i < count; ++i) rows[i] = t.row({b, h, first + i});
      return rows;
    };
    queries = decode(q, b, head, q0, sq_), keys = decode(k, b, kv_head, k0, sk_),
    values = decode(v, b, kv_head, k0, sk_);
    if (d_o) d_outputs = decode(*d_o, b, head, q0, sq_);
    if (spec.q_scale) factor_ = spec.q_scale->at({batch, head}) * spec.k_scale->at({batch, kv_head});
    if (spec.v_scale) value_factor = spec.v_scale->at({batch, kv_head});
  }
  Rows queries, keys, values, d_outputs;
  double value_factor = 1;

  int64_t sq() const { return sq_; }
  int64_t sk() const { return sk_; }
  std::pair<int64_t, int64_t> band(int64_t i) const { return band_of(spec_, i, sq_, sk_); }
  /// What a weight is multiplied by: 1, or with dropout 0 or 1 / (1 - its probability).
  double dropout_factor(int64_t i, int64_t j) const {
    if (spec_.dropout == 0) return 1;
    return dropout_keeps(spec_, batch_, heads_, head_, i, j) ? 1 / (1 - dropout_probability(spec_)) : 0;
  }

  double product(const std::vector<double>& a, const std::vector<double>& b) const {
    double s = 0;
    for (size_t d = 0; d < a.size(); ++d) s = how_.op(s + how_.factor(a[d]) * how_.factor(b[d]));
    return s;
  }
  /// The score of a pair inside the band; -inf where a mask hides it. `slope` becomes dt / d(scale q.k).
  double score(int64_t i, int64_t j, double* slope = nullptr) const {
    double t = how_.op(product(queries[i], keys[j]) * (spec_.scale * factor_)), gradient = 1;
    if (spec_.softcap != 0) {
      double th = how_.op(std::tanh(how_.op(t / spec_.softcap)));
      t = how_.op(spec_.softcap * th), gradient = 1 - th * th;
    }
    if (spec_.slopes) {
      int64_t aligned = spec_.top_left ? i : i + sk_ - sq_;
      t = how_.op(t - spec_.slopes->at({batch_, head_}) * static_cast<double>(std::abs(aligned - j)));
    }
    const bool hides = spec_.bias && spec_.bias->dtype() == DType::u8;
    if (spec_.bias && !hides) t = how_.op(t + spec_.bias->at({batch_, head_, i, j}));
    if (spec_.score_gradient) gradient *= spec_.score_gradient(t, batch_, head_, i, j);
    if (spec_.score_mod) t = how_.op(spec_.score_mod(t, batch_, head_, i, j));
    if (slope) *slope = gradient;
    if (hides && spec_.bias->at({batch_, head_, i, j}) == 0) return -kInf;
    if (spec_.mask_mod && !spec_.mask_mod(batch_, head_, i, j)) return -kInf;
    return how_.store(t);
  }

 private:
  const AttentionSpec& spec_;
  Arithmetic how_;
  int64_t batch_, head_, heads_, sq_ = 0, sk_ = 0;
  double factor_ = 1;
};

/// Output and LSE of query i.
AttentionRow forward_row(const Head& head, int64_t i, size_t dv, const Arithmetic& how) {
  auto [begin, end] = head.band(i);
  AttentionRow row{std::vector<double>(dv, 0.0), -kInf};
  std::vector<double> p(end - begin);
  double m = -kInf;
  for (int64_t j = begin; j < end; ++j) {
    double t = p[j - begin] = head.score(i, j);
    m = std::isnan(t) || std::isnan(m) ? NAN : std::max(m, t);
  }
  if (m == -kInf) return row;
  double sum = 0;
  for (double& x : p) x = how.op(std::exp(how.op(x - m))), sum = how.op(sum + x);
  for (int64_t j = begin; j < end; ++j) {
    double weight = how.store(how.op(p[j - begin] / sum) * head.dropout_factor(i, j));
    if (weight == 0) continue;  // also where a hidden value is not a number
    for (size_t d = 0; d < dv; ++d)
      row.o[d] = how.op(row.o[d] + how.factor(weight) * how.factor(head.values[j][d] * head.value_factor));
  }
  row.lse = how.op(m + how.op(std::log(sum)));
  for (double& x : row.o) x = how.store(x);
  return row;
}

/// The weight of a pair, as values are multiplied by it, and the gradient of its product q.k (without the factor scale).
struct Pair {
  double p = 0, ds = 0;
};
Pair backward_pair(const Head& head, int64_t i, int64_t j, const AttentionStats& stats, const Arithmetic& how) {
  double slope = 1, t = head.score(i, j, &slope);
  if (t == -kInf) return {};
  const double factor = head.dropout_factor(i, j);
  double p = how.store(how.op(std::exp(how.op(t - stats.lse[i]))));
  double dp = how.store(head.product(head.d_outputs[i], head.values[j]) * factor);
  return {how.store(p * factor), how.store(how.op(how.op(p * how.op(dp - stats.delta[i])) * slope))};
}

}  // namespace

double dropout_probability(const AttentionSpec& spec) {
  return std::min(std::floor(static_cast<double>(spec.dropout) * 256 + 0.5), 255.) / 256;
}

bool dropout_keeps(const AttentionSpec& spec, int64_t b, int64_t hq, int64_t h, int64_t i, int64_t j) {
  auto without_bits = [](int64_t x) { return static_cast<uint32_t>(x / 16 * 4 + x % 8 / 2); };
  std::array<uint32_t, 4> x = {without_bits(i), without_bits(j), static_cast<uint32_t>(b * hq + h),
                               static_cast<uint32_t>(spec.offset)};
  std::array<uint32_t, 2> key = {static_cast<uint32_t>(spec.seed),
                                 static_cast<uint32_t>(spec.seed >> 32) ^ static_cast<uint32_t>(spec.offset >> 32)};
  for (int round = 0; round < 7; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * x[0], c = uint64_t{0xCD9E8D57} * x[2];
    x = {static_cast<uint32_t>(c >> 32) ^ x[1] ^ key[0], static_cast<uint32_t>(c),
         static_cast<uint32_t>(a >> 32) ^ x[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9, key[1] += 0xBB67AE85;
  }
  const uint32_t byte = x[static_cast<size_t>(2 * (i % 2) + j % 2)] >> 8 * (2 * (i / 8 % 2) + j / 8 % 2) & 255;
  return byte >= 256 * dropout_probability(spec);
}

bool in_band(const AttentionSpec& spec, int64_t i, int64_t j, int64_t sq, int64_t sk) {
  auto [begin, end] = band_of(spec, i, sq, sk);
  return j >= begin && j < end;
}

int64_t visible_pairs(const AttentionSpec& spec, int64_t sq, int64_t sk) {
  int64_t pairs = 0;
  for (int64_t i = 0; i < sq; ++i) {
    auto [begin, end] = band_of(spec, i, sq, sk);
    pairs += end - begin;
  }
  return pairs;
}

std::vector<AttentionRow> attention_rows(const AttentionSpec& spec, const HostTensor& q, const HostTensor& k,
                                         const HostTensor& v, int64_t batch, int64_t head,
                                         std::span<const int64_t> rows, Arithmetic how) {
  const Head one(spec, q, k, v, nullptr, batch, head, how);
  std::vector<AttentionRow> result;
  for (int64_t i : rows) result.push_back(forward_row(one, i, static_cast<size_t>(v.dim(3)), how));
  return result;
}

AttentionStats attention_stats(const AttentionSpec& spec, const HostTensor& q, const HostTensor& k, const HostTensor& v,
                               const HostTensor& d_o, int64_t batch, int64_t head, Arithmetic how) {
  const Head one(spec, q, k, v, &d_o, batch, head, how);
  AttentionStats stats;
  for (int64_t i = 0; i < one.sq(); ++i) {
    AttentionRow row = forward_row(one, i, static_cast<size_t>(v.dim(3)), how);
    double delta = 0;
    for (size_t d = 0; d < row.o.size(); ++d) delta = how.op(delta + row.o[d] * one.d_outputs[i][d]);
    stats.lse.push_back(row.lse), stats.delta.push_back(delta);
  }
  return stats;
}

std::vector<std::vector<double>> attention_query_gradients(const AttentionSpec& spec, const HostTensor& q,
                                                           const HostTensor& k, const HostTensor& v,
                                                           const HostTensor& d_o, int64_t batch, int64_t head,
                                                           std::span<const int64_t> rows, const AttentionStats& stats,
                                                           Arithmetic how) {
  const Head one(spec, q, k, v, &d_o, batch, head, how);
  Rows result;
  for (int64_t i : rows) {
    std::vector<double> dq(static_cast<size_t>(q.dim(3)), 0.0);
    auto [begin, end] = one.band(i);
    for (int64_t j = begin; j < end; ++j) {
      const double ds = backward_pair(one, i, j, stats, how).ds;
      for (size_t d = 0; d < dq.size(); ++d) dq[d] = how.op(dq[d] + how.factor(ds) * how.factor(one.keys[j][d]));
    }
    for (double& x : dq) x = how.store(how.op(x * spec.scale));
    result.push_back(std::move(dq));
  }
  return result;
}

KeyGradients attention_key_gradients(const AttentionSpec& spec, const HostTensor& q, const HostTensor& k,
                                     const HostTensor& v, const HostTensor& d_o, int64_t batch, int64_t kv_head,
                                     std::span<const int64_t> keys, std::span<const AttentionStats> stats,
                                     Arithmetic how) {
  KeyGradients result{Rows(keys.size(), std::vector<double>(static_cast<size_t>(k.dim(3)), 0.0)),
                      Rows(keys.size(), std::vector<double>(static_cast<size_t>(v.dim(3)), 0.0))};
  const int64_t group = static_cast<int64_t>(stats.size());
  for (int64_t g = 0; g < group; ++g) {
    const Head one(spec, q, k, v, &d_o, batch, kv_head * group + g, how);
    for (size_t n = 0; n < keys.size(); ++n) {
      std::vector<double>&dk = result.dk[n], &dv = result.dv[n];
      for (int64_t i = 0; i < one.sq(); ++i) {
        auto [begin, end] = one.band(i);
        if (keys[n] < begin || keys[n] >= end) continue;
        const Pair pair = backward_pair(one, i, keys[n], stats[g], how);
        for (size_t d = 0; d < dk.size(); ++d)
          dk[d] = how.op(dk[d] + how.factor(pair.ds) * how.factor(one.queries[i][d]));
        for (size_t d = 0; d < dv.size(); ++d)
          dv[d] = how.op(dv[d] + how.factor(pair.p) * how.factor(one.d_outputs[i][d]));
      }
    }
  }
  for (size_t n = 0; n < keys.size(); ++n) {
    for (double& x : result.dk[n]) x = how.store(how.op(x * spec.scale));
    for (double& x : result.dv[n]) x = how.store(x);
  }
  return result;
}

}  // namespace tile::reference
