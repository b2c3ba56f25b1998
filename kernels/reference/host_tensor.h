// host_tensor.h - a strided tensor in host memory with poison around and between its elements.
// Every byte that is not an element (gaps left by strides, guard bands at both ends) holds NaN or an absurd integer: a
// kernel that reads one shows it in its result, a kernel that writes one is caught by `gaps_intact`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "runtime/dtype.h"

namespace tile::reference {

using Dims = std::vector<int64_t>;

/// Where the elements lie: shape, strides in elements, and the distance of element 0 from the start of the allocation.
struct Placement {
  Dims shape, strides;
  int64_t offset = 0;
  int64_t count() const;

  static Placement dense(Dims shape);
  /// Element order in memory given slowest dim first, e.g. {0, 2, 1, 3} stores a [B,H,S,D] tensor as [B,S,H,D];
  /// `row_gap` unused elements follow every row of the fastest dim, `shift` moves element 0 (misaligned bases).
  static Placement ordered(Dims shape, const std::vector<int>& order, int64_t row_gap = 0, int64_t shift = 0);
};

class HostTensor {
 public:
  HostTensor() = default;
  HostTensor(DType type, Placement placement);  ///< poisoned throughout
  HostTensor(DType type, Dims shape) : HostTensor(type, Placement::dense(std::move(shape))) {}

  DType dtype() const { return dtype_; }
  const Dims& shape() const { return place_.shape; }
  const Dims& strides() const { return place_.strides; }
  int64_t dim(size_t i) const { return place_.shape[i]; }
  int64_t count() const { return place_.count(); }

  double at(std::initializer_list<int64_t> index) const { return at(std::span(index.begin(), index.size())); }
  double at(std::span<const int64_t> index) const;
  void set(std::initializer_list<int64_t> index, double value) { set(std::span(index.begin(), index.size()), value); }
  void set(std::span<const int64_t> index, double value);
  /// The elements along the last dim at the leading coordinates `lead`.
  std::vector<double> row(std::initializer_list<int64_t> lead) const;

  void fill(double value);
  void poison();
  /// N(0, scale^2), rounded to the dtype. Deterministic per seed. Beyond a million elements the values repeat with a
  /// prime period: generating gigabytes must not take longer than the kernel under test.
  void fill_normal(uint64_t seed, double scale = 1.0);
  void fill_uniform(uint64_t seed, double low, double high);
  void fill_integers(uint64_t seed, int64_t low, int64_t high);  ///< inclusive

  /// The whole allocation, guard bands included: what is copied to and from a device.
  std::span<std::byte> bytes() { return memory_; }
  std::span<const std::byte> bytes() const { return memory_; }
  /// Bytes from the start of the allocation to element 0.
  int64_t origin_bytes() const { return place_.offset * static_cast<int64_t>(size_of(dtype_)); }
  /// True when everything outside the elements still holds the poison.
  bool gaps_intact() const;

 private:
  template <class Next>
  void fill_sequence(Next next);
  bool is_dense() const;

  DType dtype_ = DType::f32;
  Placement place_;
  std::vector<std::byte> memory_;
};

/// Calls fn(index) for every index of `shape`, last dim fastest.
template <class Fn>
void for_each_index(const Dims& shape, Fn fn) {
  Dims index(shape.size(), 0);
  for (int64_t extent : shape)
    if (extent == 0) return;
  while (true) {
    fn(std::span<const int64_t>(index));
    size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace tile::reference
