// types.h - what a tile holds: element types by their short names, shapes, and where the user wrote something.
// Included by every header of the language; no MLIR, no LLVM.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>
#include <version>
#if __has_include(<source_location>)
#include <source_location>
#endif

#include "../runtime/dtype.h"
#include "../runtime/float_types.h"

namespace tile {

#if defined(__cpp_lib_source_location)
/// A place in the user's C++; a defaulted last argument of every verb, so that IR and errors point at the caller's
/// line.
using SrcLoc = std::source_location;
#else
/// clang 14 with libstdc++ lacks std::source_location; its builtins give file and line, without a column.
struct SrcLoc {
  const char* file = "";
  const char* function = "";
  unsigned at = 0;
  static constexpr SrcLoc current(const char* f = __builtin_FILE(), const char* fn = __builtin_FUNCTION(),
                                  unsigned l = __builtin_LINE()) noexcept {
    SrcLoc s;
    s.file = f, s.function = fn, s.at = l;
    return s;
  }
  constexpr const char* file_name() const { return file; }
  constexpr const char* function_name() const { return function; }
  constexpr unsigned line() const { return at; }
  constexpr unsigned column() const { return 0; }
};
#endif

inline constexpr DType i1 = DType::i1, i8 = DType::i8, i16 = DType::i16, i32 = DType::i32, i64 = DType::i64,
                       u8 = DType::u8, u16 = DType::u16, u32 = DType::u32, u64 = DType::u64, f8e4m3 = DType::f8e4m3,
                       f8e5m2 = DType::f8e5m2, f16 = DType::f16, bf16 = DType::bf16, f32 = DType::f32, f64 = DType::f64;

namespace detail {
template <class...>
inline constexpr bool kAlwaysFalse = false;
}
class Tile;

/// The element type a C++ type stands for: dtype_of<const half>() == f16.
template <class T>
constexpr DType dtype_of() {
  static_assert(kHasDType<T>,
                "no tile element type for this C++ type: use bool, a fixed-width integer, half, bfloat16, "
                "fp8_e4m3, fp8_e5m2, float or double");
  if constexpr (kHasDType<T>)
    return kDTypeOf<T>;
  else
    return f32;
}

/// Sizes of a tile, outermost first; rank 0 is a scalar. Plain integers, known while tracing; any positive size is
/// allowed.
class Shape {
 public:
  static constexpr int kMaxRank = 8;
  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<int64_t> dims) {
    for (int64_t d : dims) push_back(d);
  }
  /// {n, 4} where n is known only when the kernel runs.
  template <class... D>
  requires(std::is_base_of_v<Tile, D> || ...) Shape(const D&...) {
    static_assert(detail::kAlwaysFalse<D...>,
                  "the sizes of a tile are known while tracing, and this is the value of a tile or an argument of the "
                  "launch -> take a field of the configuration, and mask or bound what is beyond the end; the part of a tile "
                  "at such a place is take(x, place + arange(0, n), axis)");
  }
  constexpr int rank() const { return rank_; }
  constexpr int64_t operator[](int i) const { return dims_[i]; }
  constexpr int64_t& operator[](int i) { return dims_[i]; }
  constexpr const int64_t* begin() const { return dims_.data(); }
  constexpr const int64_t* end() const { return dims_.data() + (rank_ < kMaxRank ? rank_ : kMaxRank); }
  /// Ranks past kMaxRank are counted but not stored: the tracer reports them at the verb that got the shape.
  constexpr void push_back(int64_t d) {
    if (rank_ < kMaxRank) dims_[rank_] = d;
    ++rank_;
  }
  constexpr void insert(int at, int64_t d) {
    push_back(d);
    for (int i = rank_ - 1; i > at && i < kMaxRank; --i) dims_[i] = dims_[i - 1], dims_[i - 1] = d;
  }
  constexpr void erase(int at) {
    for (int i = at; i + 1 < rank_; ++i) dims_[i] = dims_[i + 1];
    --rank_;
    dims_[rank_] = 0;
  }
  constexpr int64_t elements() const {
    int64_t n = 1;
    for (int64_t d : *this) n *= d;
    return n;
  }
  constexpr bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

/// Element type and shape of a tile; `pointer`: elements are addresses of `dtype`.
struct TileType {
  DType dtype = f32;
  bool pointer = false;
  Shape shape;
  bool operator==(const TileType&) const = default;
  /// "tile<128x64xf16>", "ptr<f32>", "i32".
  std::string to_string() const;
};

/// A dimension by number, so that max(x, axis(1)) reduces while max(x, 1) is elementwise. Negative counts from the
/// last.
struct axis {
  int index;
  explicit constexpr axis(int i) : index(i) {}
};

}  // namespace tile
