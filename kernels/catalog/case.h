// case.h - pieces the rows' cases are made of: tensors that live on both sides, sampling, comparison bookkeeping.
#pragma once
#include <array>
#include <optional>
#include <span>

#include "kernels/catalog.h"
#include "kernels/reference/host_tensor.h"
#include "kernels/reference/number.h"
#include "runtime/buffer.h"
#include "runtime/tensor.h"

namespace tile::kernels {

/// A HostTensor with a copy of its whole allocation, poison included, in device memory.
class DeviceTensor {
 public:
  /// Uploads `host` as it is.
  Status create(std::shared_ptr<Device> device, reference::HostTensor host);
  reference::HostTensor host;

  Status upload();
  Status download();
  /// NaN (or garbage) everywhere: what an output holds before the kernel runs.
  Status poison() {
    host.poison();
    return upload();
  }
  template <class T, int R>
  TensorView<T, R> view() const {
    std::array<int64_t, R> shape, strides;
    std::copy_n(host.shape().begin(), R, shape.begin());
    std::copy_n(host.strides().begin(), R, strides.begin());
    return TensorView<T, R>(reinterpret_cast<T*>(static_cast<std::byte*>(memory_.data()) + host.origin_bytes()), shape,
                            strides);
  }

 private:
  DeviceMemory memory_;
};

/// First failure wins; later steps are skipped: Steps s; s(a.create(..)), s(b.create(..)); if (!s.ok()) return
/// s.error();
class Steps {
 public:
  template <class StatusOrResult>
  Steps& operator()(StatusOrResult&& s) {
    if (!error_ && !s.ok()) error_ = s.error();
    return *this;
  }
  bool ok() const { return !error_; }
  const Error& error() const { return *error_; }
  Status status() const { return error_ ? Status(*error_) : Status(Ok{}); }

 private:
  std::optional<Error> error_;
};

/// At most `wanted` of 0 .. count-1, ascending: all of them if they fit, else both ends and scattered ones between.
std::vector<int64_t> sample(int64_t count, int64_t wanted);

/// Values of one output gathered row by row for a comparison.
struct Gathered {
  std::vector<double> actual, exact, baseline;
  void add(const std::vector<double>& a, const std::vector<double>& e, const std::vector<double>& b) {
    actual.insert(actual.end(), a.begin(), a.end());
    exact.insert(exact.end(), e.begin(), e.end());
    baseline.insert(baseline.end(), b.begin(), b.end());
  }
  reference::Comparison compare(const reference::Tolerance& t) const {
    return reference::compare(actual, exact, baseline, t);
  }
};

/// The comparison, failed if bytes around the output's elements changed.
Check with_gaps(std::string output, reference::Comparison c, const reference::HostTensor& tensor);

/// Element type of a problem's dtype name: "tf32" and "tf32x3" are f32 in memory.
DType storage_of(std::string_view dtype);

/// A case that knows its outputs.
class OutputCase : public Case {
 public:
  Result<int> differing_runs(Stream& stream, int times) override;
  Status run_to_host(Stream& stream) override { return run_poisoned(stream); }

 protected:
  virtual std::vector<DeviceTensor*> outputs() = 0;
  /// One run on poisoned outputs, which are then in their `host` tensors.
  Status run_poisoned(Stream& stream);
};

/// The words of a list of configs of `kernel`.
template <class K, class Cfg>
std::vector<ConfigWords> words_of(const K& kernel, const std::vector<Cfg>& configs) {
  std::vector<ConfigWords> words;
  for (const Cfg& c : configs) words.push_back(kernel.words(c));
  return words;
}
/// `machine` without tuned configurations: what the tuner starts from.
inline Machine untuned(Machine machine) {
  machine.model = {};
  return machine;
}

/// Constructs a case C(problem, config) and calls its create(device).
template <class C>
Result<std::unique_ptr<Case>> make_case(const std::shared_ptr<Device>& device, const Problem& problem,
                                        const ConfigWords& config) {
  auto c = std::make_unique<C>(problem, config);
  if (Status s = c->create(device); !s) return s.error();
  return std::unique_ptr<Case>(std::move(c));
}

/// Calls fn(T{}) with the C++ storage type of a float dtype name ("f16", "bf16", "f32", "tf32", "tf32x3").
template <class Fn>
auto with_float_type(std::string_view dtype, Fn fn) {
  if (dtype == "f16") return fn(half{});
  if (dtype == "bf16") return fn(bfloat16{});
  return fn(float{});
}

}  // namespace tile::kernels
