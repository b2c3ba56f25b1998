// attention_case.h - what the cases of attention's kernels share, whatever pairs these visit: inputs, outputs, and the
// comparison with the reference, forward and backward. Cases add the launch.
#pragma once
#include "kernels/attention_backward.h"
#include "kernels/catalog/attention_problem.h"

namespace tile::kernels {

/// Forward: O and LSE.
class AttentionForwardCase : public OutputCase {
 public:
  Result<std::vector<Check>> check(Stream& stream, double budget) override;
  Work work() const override;
  std::vector<NamedTensor> tensors() const override {
    return {{"q", &q_.host}, {"k", &k_.host}, {"v", &v_.host}, {"o", &o_.host}, {"lse", &lse_.host}};
  }

 protected:
  /// `in`: of Q, K and V; `out`: of O.
  AttentionForwardCase(const Problem& p, DType in, DType out) : data_(p.sizes), in_(in), out_(out) {}
  Status create_tensors(const std::shared_ptr<Device>& device);
  /// Pairs of (query, key) that are computed, over all heads.
  virtual double pairs() const { return data_.pairs(); }
  std::vector<DeviceTensor*> outputs() override { return {&o_, &lse_}; }

  AttentionProblemData data_;
  AttentionConfig config_;
  DeviceTensor q_, k_, v_, o_, lse_;

 private:
  reference::Tolerance tolerance() const;
  double lse_bound() const;

  DType in_, out_;
};

/// Backward: dQ, dK and dV from what forward wrote.
class AttentionGradientCase : public OutputCase {
 public:
  Result<std::vector<Check>> check(Stream& stream, double budget) override;
  Work work() const override;
  std::vector<NamedTensor> tensors() const override {
    return {{"q", &q_.host}, {"k", &k_.host}, {"v", &v_.host}, {"o", &o_.host}, {"lse", &lse_.host}, {"do", &do_.host},
            {"dq", &dq_.host}, {"dk", &dk_.host}, {"dv", &dv_.host}};
  }

 protected:
  AttentionGradientCase(const Problem& p, DType type) : data_(p.sizes), type_(type) {}
  /// Everything but what forward writes into O and LSE; call forward_ran() behind it.
  Status create_tensors(const std::shared_ptr<Device>& device, bool deterministic);
  Status forward_ran(Stream& stream);
  virtual double pairs() const { return data_.pairs(); }
  std::vector<DeviceTensor*> outputs() override { return {&dq_, &dk_, &dv_}; }

  AttentionProblemData data_;
  AttentionBackwardConfig config_;
  DeviceTensor q_, k_, v_, o_, do_, lse_, dq_, dk_, dv_, workspace_;

 private:
  reference::AttentionStats stats(int64_t b, int64_t head, bool whole, reference::Arithmetic how) const;

  DType type_;
};

}  // namespace tile::kernels
