// attention_problem.h - what the problems of the attention rows mean: sizes, layouts in memory, masks and biases, as
// data for the kernels (options) and for the reference (spec). Shared by forward and backward.
#pragma once
#include "kernels/catalog/case.h"
#include "kernels/parts/attention_options.h"
#include "kernels/reference/attention.h"

namespace tile::kernels {

/// Elements of the tensor of a problem's "bias".
enum class BiasKind : int64_t {
  none,
  random,         ///< f32, N(0, 1)
  holes,          ///< f32, some columns -inf, some +100, every seventh query hidden whole
  causal_lowest,  ///< of Q's type: 0 on and left of the diagonal, the lowest finite number right of it
  mask,           ///< u8: hides about a third, and the whole second block of keys
  lowest_rows,    ///< f32: every third query has the lowest finite number everywhere, which leaves an average of V
};

class AttentionProblemData {
 public:
  explicit AttentionProblemData(const Fields& f);

  int64_t b, hq, hkv, sq, sk, d, dv;  ///< shapes of the tensors
  int64_t sequences, max_sq, max_sk;  ///< b, sq, sk; or of the packed sequences
  float scale;
  reference::AttentionSpec spec;  ///< pointers into this object once create() ran
  BiasKind bias_kind;
  bool guard_values;
  const Fields& fields() const { return fields_; }

  /// Placement of a [B, H, S, D] tensor in the problem's layout.
  reference::Placement placement(int64_t h, int64_t s, int64_t d) const;
  Status create(std::shared_ptr<Device> device, DType type);
  template <class TBias>
  AttentionOptions<TBias> options() const {
    AttentionOptions<TBias> o;
    fill(o);
    if (bias_kind != BiasKind::none) o.bias = bias_.view<const TBias, 4>();
    return o;
  }
  /// Rows of sequence `batch` in the packed tensors start here.
  int64_t first_query(int64_t batch) const { return spec.cu_q.empty() ? 0 : spec.cu_q[batch]; }
  int64_t first_key(int64_t batch) const { return spec.cu_k.empty() ? 0 : spec.cu_k[batch]; }
  int64_t queries(int64_t batch) const { return spec.cu_q.empty() ? sq : spec.cu_q[batch + 1] - spec.cu_q[batch]; }
  int64_t keys(int64_t batch) const { return spec.cu_k.empty() ? sk : spec.cu_k[batch + 1] - spec.cu_k[batch]; }
  int64_t tensor_batch(int64_t batch) const { return spec.cu_q.empty() ? batch : 0; }
  /// NaN in the rows of a packed tensor that belong to no sequence.
  void poison_unused(reference::HostTensor& t, const std::vector<int64_t>& cu) const;
  /// Pairs of (query, key) over all heads and sequences.
  double pairs() const;
  /// Features of the config that follow from the problem.
  void complete(AttentionConfig& c) const;

 private:
  template <class TBias>
  void fill(AttentionOptions<TBias>& o) const {
    o.scale = scale;
    o.causal = spec.causal, o.top_left = spec.top_left;
    o.left = static_cast<int>(spec.left), o.right = static_cast<int>(spec.right);
    o.softcap = static_cast<float>(spec.softcap);
    o.guard_values = guard_values;
    o.dropout = spec.dropout, o.seed = spec.seed, o.offset = spec.offset;
    if (spec.slopes) o.slopes = slopes_.view<const float, 2>();
    if (!spec.cu_q.empty()) {
      o.cu_q = cu_q_.view<const int32_t, 1>(), o.cu_k = cu_k_.view<const int32_t, 1>();
      o.max_sq = static_cast<int>(max_sq), o.max_sk = static_cast<int>(max_sk);
    }
    if (spec.q_scale)
      o.q_scale = q_scale_.view<const float, 2>(), o.k_scale = k_scale_.view<const float, 2>(),
      o.v_scale = v_scale_.view<const float, 2>();
  }
  void fill_bias(reference::HostTensor& bias) const;

  Fields fields_;
  DeviceTensor slopes_, bias_, cu_q_, cu_k_, q_scale_, k_scale_, v_scale_;
};

/// The names of the fields, for a row's list.
std::vector<std::string> attention_field_names();

/// Calls fn(T{}, TBias{}): biases are f32, of Q's type, or u8 masks.
template <class Fn>
auto with_backward_types(const Problem& p, Fn fn) {
  const auto kind = static_cast<BiasKind>(p.sizes["bias"]);
  if (p.dtype == "f16" && kind == BiasKind::causal_lowest) return fn(half{}, half{});
  if (p.dtype == "f16" && kind == BiasKind::mask) return fn(half{}, uint8_t{});
  return with_float_type(p.dtype, [&](auto t) { return fn(t, float{}); });
}
/// Calls fn(T{}, TOut{}, TBias{}): f8 has outputs of f16.
template <class Fn>
auto with_attention_types(const Problem& p, Fn fn) {
  if (p.dtype == "f8e4m3") return fn(fp8_e4m3{}, half{}, float{});
  return with_backward_types(p, [&](auto t, auto bias) { return fn(t, t, bias); });
}

}  // namespace tile::kernels
