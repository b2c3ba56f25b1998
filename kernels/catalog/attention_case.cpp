// attention_case.cpp - inputs and comparisons of attention, forward and backward.
#include "kernels/catalog/attention_case.h"

#include <algorithm>
#include <cmath>

#include "kernels/reference/attention.h"

namespace tile::kernels {

using reference::Arithmetic;
using reference::AttentionStats;
using reference::HostTensor;

namespace {

/// Q, K and V of a problem, with what is wrong with some of their elements.
Status create_inputs(const std::shared_ptr<Device>& device, const AttentionProblemData& data, DType type,
                     DeviceTensor& q_, DeviceTensor& k_, DeviceTensor& v_) {
  const Fields& f = data.fields();
  HostTensor q(type, data.placement(data.hq, data.sq, data.d)), k(type, data.placement(data.hkv, data.sk, data.d)),
      v(type, data.placement(data.hkv, data.sk, data.dv));
  q.fill_normal(1, static_cast<double>(f.get("amp", 1))), k.fill_normal(2), v.fill_normal(3);
  if (f["nan_key"])  // E18: only the queries that see this key may turn NaN
    for (int64_t c = 0; c < data.d; ++c) k.set({0, 0, f["nan_key"], c}, NAN);
  if (f["nan_value"]) v.set({0, 0, f["nan_value"], 1}, NAN);  // E17: only those that see it, in this channel
  data.poison_unused(q, data.spec.cu_q);
  for (HostTensor* t : {&k, &v}) data.poison_unused(*t, data.spec.cu_k);
  Steps s;
  s(q_.create(device, std::move(q)))(k_.create(device, std::move(k)))(v_.create(device, std::move(v)));
  return s.status();
}

/// Rows of no sequence still hold what they held before.
void add_unused(Gathered& g, const HostTensor& t, const std::vector<int64_t>& cu) {
  if (cu.empty()) return;
  const bool vectors = t.shape().size() == 4;
  const std::vector<double> untouched(vectors ? static_cast<size_t>(t.dim(3)) : 1, NAN);
  for (int64_t h = 0; h < t.dim(1); ++h)
    for (int64_t row = 0; row < t.dim(2); ++row) {
      if (row >= cu.front() && row < cu.back()) continue;
      g.add(vectors ? t.row({0, h, row}) : std::vector<double>{t.at({0, h, row})}, untouched, untouched);
    }
}

}  // namespace

// ---- forward

Status AttentionForwardCase::create_tensors(const std::shared_ptr<Device>& device) {
  Steps s;
  s(data_.create(device, in_))(create_inputs(device, data_, in_, q_, k_, v_));
  s(o_.create(device, HostTensor(out_, data_.placement(data_.hq, data_.sq, data_.dv))));
  s(lse_.create(device, HostTensor(DType::f32, {data_.b, data_.hq, data_.sq})));
  return s.status();
}

Result<std::vector<Check>> AttentionForwardCase::check(Stream& stream, double budget) {
  if (Status ran = run_poisoned(stream); !ran) return ran.error();
  Arithmetic working = Arithmetic::working(out_);
  working.tf32 = config_.tf32;
  const int64_t heads_and_sequences = data_.sequences * data_.hq;
  const double row_cost = 2.0 * static_cast<double>(data_.max_sk * (data_.d + data_.dv));
  const int64_t rows_wanted = std::max<int64_t>(static_cast<int64_t>(budget / std::max(row_cost, 1.0)), 16);
  const std::vector<int64_t> heads =
      sample(heads_and_sequences, data_.max_sq * heads_and_sequences <= rows_wanted ? heads_and_sequences : 8);
  Gathered o, lse;
  for (int64_t bh : heads) {
    const int64_t b = bh / data_.hq, h = bh % data_.hq;
    const std::vector<int64_t> rows = sample(data_.queries(b), rows_wanted / static_cast<int64_t>(heads.size()));
    const auto exact = attention_rows(data_.spec, q_.host, k_.host, v_.host, b, h, rows, Arithmetic::exact());
    const auto base = attention_rows(data_.spec, q_.host, k_.host, v_.host, b, h, rows, working);
    for (size_t r = 0; r < rows.size(); ++r) {
      const int64_t at = data_.tensor_batch(b), row = data_.first_query(b) + rows[r];
      o.add(o_.host.row({at, h, row}), exact[r].o, base[r].o);
      lse.add({lse_.host.at({at, h, row})}, {exact[r].lse}, {base[r].lse});
    }
  }
  add_unused(o, o_.host, data_.spec.cu_q), add_unused(lse, lse_.host, data_.spec.cu_q);
  return std::vector<Check>{
      with_gaps("O", o.compare(tolerance()), o_.host),
      with_gaps("LSE", reference::compare_absolute(lse.actual, lse.exact, lse_bound()), lse_.host)};
}

Work AttentionForwardCase::work() const {
  const auto queries = static_cast<double>(data_.b * data_.hq * data_.sq),
             keys = static_cast<double>(data_.b * data_.hkv * data_.sk);
  const auto d = static_cast<double>(data_.d), dv = static_cast<double>(data_.dv);
  return {2 * pairs() * (d + dv), static_cast<double>(size_of(in_)) * (queries * d + keys * (d + dv)) +
                                      (static_cast<double>(size_of(out_)) * dv + 4) * queries};
}

reference::Tolerance AttentionForwardCase::tolerance() const {
  reference::Tolerance t = reference::tolerance(out_, data_.max_sk, config_.tf32);
  // Weights of f8 have 3 bits behind the point: each is off by up to 1/16.
  if (size_of(in_) == 1) t.floor_relative = 0.0625, t.rmse_ratio = 5e-2;
  return t;
}

/// LSE is an f32 sum of f32 products of exact inputs, whatever their type; large logits cost their own rounding.
double AttentionForwardCase::lse_bound() const {
  const double bound = config_.tf32 || size_of(in_) == 1 ? 1e-2 : size_of(in_) == 4 ? 1e-4 : 1e-3;
  double largest = static_cast<double>(data_.fields().get("amp", 1)) / 8;
  if (data_.bias_kind == BiasKind::holes) largest = 2;
  return bound * std::max(1.0, largest);
}

// ---- backward

Status AttentionGradientCase::create_tensors(const std::shared_ptr<Device>& device, bool deterministic) {
  auto tensor = [&](int64_t h, int64_t s, int64_t d) { return HostTensor(type_, data_.placement(h, s, d)); };
  HostTensor d_o(type_, data_.fields()["transposed_do"]
                            ? reference::Placement::ordered({data_.b, data_.hq, data_.sq, data_.dv}, {0, 1, 3, 2})
                            : data_.placement(data_.hq, data_.sq, data_.dv));
  d_o.fill_normal(4);
  data_.poison_unused(d_o, data_.spec.cu_q);
  Steps s;
  s(data_.create(device, type_))(create_inputs(device, data_, type_, q_, k_, v_));
  s(do_.create(device, std::move(d_o)))(o_.create(device, tensor(data_.hq, data_.sq, data_.dv)));
  s(lse_.create(device, HostTensor(DType::f32, {data_.b, data_.hq, data_.sq})));
  s(dq_.create(device, tensor(data_.hq, data_.sq, data_.d)));
  s(dk_.create(device, tensor(data_.hkv, data_.sk, data_.d)))(
      dv_.create(device, tensor(data_.hkv, data_.sk, data_.dv)));
  const int64_t floats = attention_backward_workspace(data_.b, data_.hq, data_.sq, data_.d, deterministic);
  s(workspace_.create(device, HostTensor(DType::f32, {std::max<int64_t>(floats, 1)})));
  return s.status();
}

Status AttentionGradientCase::forward_ran(Stream& stream) {
  Steps s;
  s(stream.synchronize());
  if (s.ok()) s(o_.download())(lse_.download());
  return s.status();
}

Result<std::vector<Check>> AttentionGradientCase::check(Stream& stream, double budget) {
  if (Status s = workspace_.poison(); !s) return s.error();
  if (Status ran = run_poisoned(stream); !ran) return ran.error();
  Arithmetic working = Arithmetic::working(type_);
  working.tf32 = config_.keys.tf32;
  const int64_t group = data_.hq / data_.hkv, kv_heads = data_.sequences * data_.hkv,
                longest = std::max(data_.max_sq, data_.max_sk);
  const double row_cost = 4.0 * static_cast<double>((data_.d + data_.dv) * longest);
  const int64_t rows_wanted = std::max<int64_t>(static_cast<int64_t>(budget / row_cost), 16);
  const bool whole = kv_heads * group * data_.max_sq <= rows_wanted;
  const std::vector<int64_t> heads = sample(kv_heads, whole ? kv_heads : 2);
  const int64_t rows_per_head = std::max<int64_t>(rows_wanted / (group * std::ssize(heads)), 2);
  Gathered dq, dk, dv;
  for (int64_t bh : heads) {
    const int64_t b = bh / data_.hkv, h = bh % data_.hkv, at = data_.tensor_batch(b);
    std::vector<AttentionStats> exact_stats, base_stats;
    for (int64_t head = h * group; head < (h + 1) * group; ++head) {
      exact_stats.push_back(stats(b, head, whole, Arithmetic::exact()));
      base_stats.push_back(stats(b, head, whole, working));
      const std::vector<int64_t> rows = sample(data_.queries(b), rows_per_head);
      const auto exact = attention_query_gradients(data_.spec, q_.host, k_.host, v_.host, do_.host, b, head, rows,
                                                   exact_stats.back(), Arithmetic::exact());
      const auto base = attention_query_gradients(data_.spec, q_.host, k_.host, v_.host, do_.host, b, head, rows,
                                                  base_stats.back(), working);
      for (size_t r = 0; r < rows.size(); ++r)
        dq.add(dq_.host.row({at, head, data_.first_query(b) + rows[r]}), exact[r], base[r]);
    }
    const std::vector<int64_t> keys = sample(data_.keys(b), rows_per_head);
    const auto exact = attention_key_gradients(data_.spec, q_.host, k_.host, v_.host, do_.host, b, h, keys, exact_stats,
                                               Arithmetic::exact());
    const auto base =
        attention_key_gradients(data_.spec, q_.host, k_.host, v_.host, do_.host, b, h, keys, base_stats, working);
    for (size_t r = 0; r < keys.size(); ++r) {
      const int64_t row = data_.first_key(b) + keys[r];
      dk.add(dk_.host.row({at, h, row}), exact.dk[r], base.dk[r]);
      dv.add(dv_.host.row({at, h, row}), exact.dv[r], base.dv[r]);
    }
  }
  add_unused(dq, dq_.host, data_.spec.cu_q), add_unused(dk, dk_.host, data_.spec.cu_k);
  add_unused(dv, dv_.host, data_.spec.cu_k);
  reference::Tolerance t = reference::tolerance(type_, longest, config_.keys.tf32);
  t.max_factor = 3;
  if (size_of(type_) == 2) t.rmse_ratio = 1.5e-2;
  return std::vector<Check>{with_gaps("dQ", dq.compare(t), dq_.host), with_gaps("dK", dk.compare(t), dk_.host),
                            with_gaps("dV", dv.compare(t), dv_.host)};
}

Work AttentionGradientCase::work() const {
  const auto rows = static_cast<double>(data_.b * data_.hq * data_.sq),
             keys = static_cast<double>(data_.b * data_.hkv * data_.sk),
             width = static_cast<double>(data_.d + data_.dv);
  return {2 * pairs() * static_cast<double>(3 * data_.d + 2 * data_.dv),
          static_cast<double>(size_of(type_)) * 2 * width * (rows + keys) + 8 * rows};
}

/// What the pass starts from: computed from the definition, or for large problems from the tensors forward wrote.
AttentionStats AttentionGradientCase::stats(int64_t b, int64_t head, bool whole, Arithmetic how) const {
  if (whole) return attention_stats(data_.spec, q_.host, k_.host, v_.host, do_.host, b, head, how);
  AttentionStats s;
  const int64_t at = data_.tensor_batch(b);
  for (int64_t i = 0; i < data_.queries(b); ++i) {
    const int64_t row = data_.first_query(b) + i;
    const std::vector<double> o = o_.host.row({at, head, row}), d_o = do_.host.row({at, head, row});
    double delta = 0;
    for (size_t c = 0; c < o.size(); ++c) delta += o[c] * d_o[c];
    s.lse.push_back(lse_.host.at({at, head, row})), s.delta.push_back(delta);
  }
  return s;
}

}  // namespace tile::kernels
