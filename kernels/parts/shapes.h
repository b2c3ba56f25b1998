// shapes.h - what the wrappers of all kernels share: rounding of sizes, and checks of shapes that say what was expected
// and what was found.
#pragma once
#include <array>
#include <initializer_list>
#include <string>

#include "../../dsl/message.h"
#include "../../dsl/tile.h"
#include "machine.h"

namespace tile::kernels {

constexpr int round_up(int64_t n, int64_t multiple) {
  return static_cast<int>((n + multiple - 1) / multiple * multiple);
}

/// Columns of a tile that holds rows of n, on a host: rows of nothing have a tile, too.
constexpr int block_of(int64_t n) { return round_up(n > 0 ? n : 1, 16); }

/// Smallest power of two >= n.
constexpr int power_of_two_above(int64_t n) {
  int p = 1;
  while (p < n) p *= 2;
  return p;
}

/// "softmax_f16": names of kernels carry the element type, names of catalog rows do not.
inline std::string typed_name(const char* kernel, DType dtype) { return message("{}_{}", kernel, name(dtype)); }

/// Input argument of a wrapper whose element type is deduced from its output.
template <class T, int R>
using Input = std::type_identity_t<TensorView<const T, R>>;

namespace detail {
/// A view kernels may be given where the config does not use it: launches refuse null pointers.
template <class T, int R>
TensorView<T, R> or_unused(const TensorView<T, R>& view, const void* some_memory) {
  if (view.data) return view;
  return TensorView<T, R>(static_cast<T*>(const_cast<void*>(some_memory)), {});
}
}  // namespace detail

/// Dims of size 1 become those of `shape` with stride 0; -1 leaves a dim alone.
template <class T, int R>
void stretch(TensorView<T, R>& view, const std::array<int64_t, R>& shape) {
  if (!view.data) return;
  for (int i = 0; i < R; ++i)
    if (shape[i] >= 0 && view.shape[i] == 1 && shape[i] != 1) view.shape[i] = shape[i], view.strides[i] = 0;
}

/// Collects the first violated condition; every check is skipped after it.
class ShapeCheck {
 public:
  explicit ShapeCheck(const char* kernel) : kernel_(kernel) {}

  /// `found` of tensor `what` must be `expected`; -1 in `expected` admits any size.
  template <class T, int R>
  ShapeCheck& shape(const char* what, const TensorView<T, R>& view, std::initializer_list<int64_t> expected,
                    const char* meaning) {
    bool same = expected.size() == R;
    for (int d = 0; same && d < R; ++d) same = expected.begin()[d] < 0 || expected.begin()[d] == view.shape[d];
    if (same) return *this;
    return fail(message("{} must have shape {} = {}, found {}", what, meaning,
                        std::span<const int64_t>(expected.begin(), expected.size()),
                        std::span<const int64_t>(view.shape)));
  }
  /// `text` has a {} for each of the values.
  template <class... V>
  ShapeCheck& require(bool condition, MessageText<sizeof...(V)> text, const V&... values) {
    return condition ? *this : fail(message(text, values...));
  }
  bool ok() const { return message_.empty(); }
  Error error() const { return Error{ErrorKind::user, message("{}: {}", kernel_, message_), {}}; }

 private:
  ShapeCheck& fail(std::string message) {
    if (message_.empty()) message_ = std::move(message);
    return *this;
  }
  const char* kernel_;
  std::string message_;
};

}  // namespace tile::kernels
