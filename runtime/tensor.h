// tensor.h - a typed pointer with shape and strides (in elements): what a kernel's Tensor<T, R> parameter is launched
// with. It owns nothing and never reads the data, so the pointer may be a device address of any origin.
#pragma once
#include <array>
#include <cstdint>
#include <type_traits>

#include "float_types.h"

namespace tile {

template <class T, int R>
struct TensorView {
  static_assert(R >= 1 && R <= 8, "tensor views have rank 1 to 8");
  static_assert(kHasDType<T>, "element type of a tensor view must be a tile dtype");
  using Element = T;
  static constexpr int kRank = R;

  T* data = nullptr;
  std::array<int64_t, R> shape{};
  std::array<int64_t, R>
      strides{};  ///< in elements; may be 0 (broadcast, inputs only) or negative (then data is the [0,..,0] element)

  TensorView() = default;
  TensorView(T* data, std::array<int64_t, R> shape, std::array<int64_t, R> strides)
      : data(data), shape(shape), strides(strides) {}
  /// Row-major and dense.
  TensorView(T* data, std::array<int64_t, R> shape) : data(data), shape(shape), strides(dense_strides(shape)) {}
  /// A view for writing is also one for reading.
  template <class U>
  requires(std::is_same_v<T, const U>) TensorView(const TensorView<U, R>& other)
      : data(other.data), shape(other.shape), strides(other.strides) {}

  static TensorView contiguous(T* data, std::array<int64_t, R> shape) { return TensorView(data, shape); }
  /// From an address of unknown type, e.g. a framework's data pointer or a CUdeviceptr.
  static TensorView from_address(uint64_t address, std::array<int64_t, R> shape) {
    return TensorView(reinterpret_cast<T*>(static_cast<uintptr_t>(address)), shape);
  }
  static TensorView from_address(uint64_t address, std::array<int64_t, R> shape, std::array<int64_t, R> strides) {
    return TensorView(reinterpret_cast<T*>(static_cast<uintptr_t>(address)), shape, strides);
  }

  /// Row-major strides; wraps instead of trapping for absurd shapes, the launch refuses those.
  static constexpr std::array<int64_t, R> dense_strides(const std::array<int64_t, R>& shape) {
    std::array<int64_t, R> out{};
    uint64_t step = 1;
    for (int d = R - 1; d >= 0; --d) {
      out[d] = static_cast<int64_t>(step);
      step *= static_cast<uint64_t>(shape[d]);
    }
    return out;
  }

  int64_t size() const {
    uint64_t n = 1;
    for (int64_t s : shape) n *= static_cast<uint64_t>(s);
    return static_cast<int64_t>(n);
  }
  bool is_contiguous() const {
    int64_t step = 1;
    for (int d = R - 1; d >= 0; --d) {
      if (shape[d] != 1 && strides[d] != step) return false;
      step *= shape[d];
    }
    return true;
  }
  /// The view with dimensions i and j swapped (the last two by default). No data moves.
  TensorView transposed(int i = R - 2, int j = R - 1) const {
    static_assert(R >= 2, "transposed() needs two dimensions");
    TensorView out = *this;
    std::swap(out.shape[i], out.shape[j]);
    std::swap(out.strides[i], out.strides[j]);
    return out;
  }
  /// The view with dimension d of the result being dimension order[d] of this one.
  TensorView permuted(std::array<int, R> order) const {
    TensorView out = *this;
    for (int d = 0; d < R; ++d) {
      out.shape[d] = shape[order[d]];
      out.strides[d] = strides[order[d]];
    }
    return out;
  }
  /// Elements [begin, end) of dimension `dim`.
  TensorView sliced(int dim, int64_t begin, int64_t end) const {
    TensorView out = *this;
    out.data = data + begin * strides[dim];
    out.shape[dim] = end - begin;
    return out;
  }
  template <class... I>
  requires(sizeof...(I) == R) T& operator()(I... index) const {
    const std::array<int64_t, R> at{static_cast<int64_t>(index)...};
    int64_t offset = 0;
    for (int d = 0; d < R; ++d) offset += at[d] * strides[d];
    return data[offset];
  }
};

}  // namespace tile
