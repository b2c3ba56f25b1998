// memory.h - loads, stores and atomics, in both styles: views with bounds and padding, pointers with masks.
#pragma once
#include <array>
#include <concepts>

#include "math.h"

namespace tile {

// ---- views
/// Index of a dim that a box does not have, wherever it stands: K.load({n, only(head), 0}, {64, 128}) is a tile of 64 x 128,
/// and K.store({n, only(head), 0}, x) takes one.
[[nodiscard]] inline Expr only(Expr index) {
  index.drops_dim = true;
  return index;
}

/// What a box load reads outside the tensor, and how it uses the caches. Under a mask (of the box's shape, or one that
/// broadcasts to it) elements are reached one by one: where it is false they are not touched, and a load reads `pad`.
struct BoxLoad {
  double pad = 0;
  Cache cache = Cache::none;
  OptionalExpr mask{};
};
struct BoxStore {
  Cache cache = Cache::none;
  OptionalExpr mask{};
};

/// Kernel parameter: a tensor in global memory, R dims of elements T (const T for inputs): pointer, shape and strides
/// as one value. A box is named by the coordinates of its first element and its shape; index arithmetic is 64-bit
/// inside. Elements outside the tensor (also at negative coordinates) are not touched: loads read `pad`, stores skip
/// them.
template <class T, int R>
class Tensor {
  static_assert(R >= 1 && R <= Shape::kMaxRank, "a Tensor has 1 to 8 dims");

 public:
  using element = T;
  static constexpr int kRank = R;
  explicit Tensor(detail::ParamValue p) : view_(p.v) {
    if constexpr (std::is_const_v<T>) detail::set_read_only(view_);
  }
  Tensor(const Tensor&) = default;
  /// Memory that may be written may be read: a device function that reads takes Tensor<const T, R>.
  template <class U>
    requires(std::is_const_v<T> && std::is_same_v<U, std::remove_const_t<T>>)
  Tensor(const Tensor<U, R>& other) : view_(other.view_) {}
  Tensor& operator=(const Tensor&) = delete;  // not a variable: a loop could not carry it

  /// Box of `shape` at `offsets` (one per dim). Dims of which it has `only(i)` are not part of the shape. A shape of lower
  /// rank than that means extent 1 in the leading dims, which are dropped.
  [[nodiscard]] Tile load(std::array<Expr, R> offsets, Shape shape, BoxLoad options = {},
                          SrcLoc loc = SrcLoc::current()) const {
    return detail::make_tile(
        detail::load_box(view_, operands(offsets).data(), R, shape, options.pad, options.mask, options.cache, loc),
        loc);
  }
  template <class I>
  Tile operator[](const I&) const {
    static_assert(detail::kAlwaysFalse<I>,
                  "a Tensor has no [] -> A.load({row, column}) is an element, and A.load({row, column}, {rows, "
                  "columns}) a box; A.store({row, column}, x)");
    return {};
  }
  /// One element as a scalar.
  [[nodiscard]] Tile load(std::array<Expr, R> offsets, SrcLoc loc = SrcLoc::current()) const {
    return load(offsets, Shape{}, {}, loc);
  }
  /// Writes the box that starts at `offsets` and has the value's shape, and dims with `only(i)` beside; a value of lower
  /// rank has extent 1 in the leading dims. The value must already be of type T (or narrower).
  void store(std::array<Expr, R> offsets, Expr value, BoxStore options = {}, SrcLoc loc = SrcLoc::current()) const {
    static_assert(!std::is_const_v<T>,
                  "store through a Tensor<const T, R>: declare the kernel parameter as Tensor<T, R>");
    detail::store_box(view_, operands(offsets).data(), R, value, options.mask, options.cache, loc);
  }
  /// Adds the value to the box that starts at `offsets`, every element atomically, relaxed and in no particular order
  /// (so sums of floats may differ from run to run). T: a float of 16 to 64 bits, or an integer of 32 or 64.
  void atomic_add(std::array<Expr, R> offsets, Expr value, SrcLoc loc = SrcLoc::current()) const {
    static_assert(!std::is_const_v<T>,
                  "atomic_add to a Tensor<const T, R>: declare the kernel parameter as Tensor<T, R>");
    detail::add_to_box(view_, operands(offsets).data(), R, value, loc);
  }
  /// Rows chosen by number: `rows`, a tile of N integers, gives an N x columns tile that begins at `column`. Elements
  /// outside the tensor (rows below 0 too) read `pad`.
  [[nodiscard]] Tile gather(Expr rows, Expr column, int64_t columns, BoxLoad o = {}) const {
    static_assert(R == 2, "gather takes rows of a tensor of 2 dims: Tensor<T, 2>");
    return detail::make_tile(detail::gather_rows(view_, rows, column, columns, o.pad, o.mask, o.cache), rows.loc);
  }
  /// Writes the rows of `value` (N x columns) to the rows that `rows` names, from `column` on; elements outside are
  /// skipped. Of rows named twice one remains.
  void scatter(Expr rows, Expr column, Expr value, BoxStore o = {}) const {
    static_assert(R == 2, "scatter writes rows of a tensor of 2 dims: Tensor<T, 2>");
    static_assert(!std::is_const_v<T>,
                  "scatter through a Tensor<const T, R>: declare the kernel parameter as Tensor<T, R>");
    detail::scatter_rows(view_, rows, column, value, o.mask, o.cache);
  }
  /// Size of a dim as i32 (what loops count with) or i64; distance in elements between neighbours along a dim, i64.
  [[nodiscard]] Tile dim(int i, SrcLoc loc = SrcLoc::current()) const {
    return detail::make_tile(detail::view_dim(view_, i, i32, loc), loc);
  }
  [[nodiscard]] Tile dim64(int i, SrcLoc loc = SrcLoc::current()) const {
    return detail::make_tile(detail::view_dim(view_, i, i64, loc), loc);
  }
  [[nodiscard]] Tile stride(int i, SrcLoc loc = SrcLoc::current()) const {
    return detail::make_tile(detail::view_stride(view_, i, loc), loc);
  }
  /// The part of `length` along a dim that begins at `begin`: x.narrow(0, first, last - first) are the rows of one
  /// sequence of many. Offsets count from `begin`, and what is behind the part is outside; it must lie in the tensor.
  [[nodiscard]] Tensor narrow(int dim, Expr begin, Expr length, SrcLoc loc = SrcLoc::current()) const {
    return Tensor(detail::ParamValue{detail::narrow_view(view_, dim, begin, length, loc), loc});
  }
  /// The tensor of one dim less at an index of it: x.select(1, head) of [tokens, heads, 64] is [tokens, 64].
  [[nodiscard]] Tensor<T, (R > 1 ? R - 1 : 1)> select(int dim, Expr index, SrcLoc loc = SrcLoc::current()) const {
    static_assert(R > 1, "select leaves a tensor of at least one dim: an element is x.load({i})");
    return Tensor<T, (R > 1 ? R - 1 : 1)>(detail::ParamValue{detail::select_view(view_, dim, index, loc), loc});
  }
  /// Address of element 0.
  [[nodiscard]] Tile ptr(SrcLoc loc = SrcLoc::current()) const {
    const detail::Value p = detail::view_pointer(view_, loc);
    if constexpr (std::is_const_v<T>) detail::set_read_only(p);  // the view may be one that is written elsewhere
    return detail::make_tile(p, loc);
  }

 private:
  static std::array<detail::Operand, R> operands(const std::array<Expr, R>& e) {
    std::array<detail::Operand, R> o;
    for (int i = 0; i < R; ++i) o[i] = e[i];
    return o;
  }
  template <class, int>
  friend class Tensor;
  detail::Value view_;
};

/// A view of elements T at a pointer computed in the kernel: make_view<const half>(p + start, {rows, cols}, {ld, 1}).
template <class T, size_t R>
Tensor<T, int(R)> make_view(Expr pointer, const Expr (&dims)[R], const Expr (&strides)[R]) {
  detail::Operand d[R], s[R];
  for (size_t i = 0; i < R; ++i) d[i] = dims[i], s[i] = strides[i];
  return Tensor<T, int(R)>(
      detail::ParamValue{detail::make_view(pointer, dtype_of<T>(), d, s, int(R), pointer.loc), pointer.loc});
}
/// The elements of a Ptr are known. Of a Ptr itself only: with Ptr<T>, what converts to one would be meant, too.
template <class P, size_t R>
requires std::same_as<P, Ptr<typename P::element>>
Tensor<typename P::element, int(R)> make_view(const P& pointer, const Expr (&dims)[R], const Expr (&strides)[R],
                                              SrcLoc loc = SrcLoc::current()) {
  return make_view<typename P::element, R>(Expr(pointer, loc), dims, strides);
}
template <size_t R>
Tensor<float, int(R)> make_view(const Tile&, const Expr (&)[R], const Expr (&)[R]) {
  static_assert(detail::kAlwaysFalse<Tensor<float, int(R)>>,
                "a computed address does not say what its elements are -> make_view<const half>(p + i, {rows, columns}, "
                "{stride, 1})");
  return Tensor<float, int(R)>(detail::ParamValue{});
}

// ---- pointers
struct LoadOptions {
  OptionalExpr mask{};   ///< lanes where it is false touch no memory and read `other`
  OptionalExpr other{};  ///< default 0: masked-off lanes are always defined
  Cache cache = Cache::none;
};
struct StoreOptions {
  OptionalExpr mask{};
  Cache cache = Cache::none;
};
/// Elements at a pointer or a tile of pointers (p + offsets, offsets counted in elements).
[[nodiscard]] inline Tile load(Expr pointer, LoadOptions o = {}) {
  return detail::make_tile(detail::load(pointer, o.mask, o.other, o.cache), pointer.loc);
}
/// Writes a value of the pointer's element type (or narrower, of the same kind).
inline void store(Expr pointer, Expr value, StoreOptions o = {}) { detail::store(pointer, value, o.mask, o.cache); }

namespace detail {
template <class M>
concept Mask = std::convertible_to<M, Expr> && !std::convertible_to<M, LoadOptions>;
}  // namespace detail
template <detail::Mask M, class... Other>
Tile load(const Expr& pointer, const M&, const Other&...) {
  static_assert(detail::kAlwaysFalse<M>,
                "masks and what masked-off lanes read are named -> load(p, {.mask = m, .other = 0})");
  return detail::make_tile({}, pointer.loc);
}
template <detail::Mask M>
void store(const Expr&, const Expr&, const M&) {
  static_assert(detail::kAlwaysFalse<M>, "masks are named -> store(p, value, {.mask = m})");
}

// ---- atomics: each updates the elements at a pointer or a tile of pointers and returns the values before it
// (undefined in masked-off lanes). Elements are integers, or floats of 16 bits and more; and, or, xor and cas take
// integers only. The defaults make a lock or a counter right: everything before is visible to who sees the update.
struct AtomicOptions {
  OptionalExpr mask{};
  Order order = Order::acq_rel;
  Scope scope = Scope::gpu;
};
inline Tile atomic_add(Expr p, Expr v, AtomicOptions o = {}) {
  return detail::make_tile(detail::atomic_rmw(detail::Rmw::add, p, v, o.mask, o.order, o.scope), p.loc);
}
inline Tile atomic_max(Expr p, Expr v, AtomicOptions o = {}) {
  return detail::make_tile(detail::atomic_rmw(detail::Rmw::max, p, v, o.mask, o.order, o.scope), p.loc);
}
inline Tile atomic_min(Expr p, Expr v, AtomicOptions o = {}) {
  return detail::make_tile(detail::atomic_rmw(detail::Rmw::min, p, v, o.mask, o.order, o.scope), p.loc);
}
inline Tile atomic_and(Expr p, Expr v, AtomicOptions o = {}) {
  return detail::make_tile(detail::atomic_rmw(detail::Rmw::bit_and, p, v, o.mask, o.order, o.scope), p.loc);
}
inline Tile atomic_or(Expr p, Expr v, AtomicOptions o = {}) {
  return detail::make_tile(detail::atomic_rmw(detail::Rmw::bit_or, p, v, o.mask, o.order, o.scope), p.loc);
}
inline Tile atomic_xor(Expr p, Expr v, AtomicOptions o = {}) {
  return detail::make_tile(detail::atomic_rmw(detail::Rmw::bit_xor, p, v, o.mask, o.order, o.scope), p.loc);
}
inline Tile atomic_exchange(Expr p, Expr v, AtomicOptions o = {}) {
  return detail::make_tile(detail::atomic_rmw(detail::Rmw::exchange, p, v, o.mask, o.order, o.scope), p.loc);
}
/// Where *p == expected, *p becomes desired. Integers only.
inline Tile atomic_cas(Expr p, Expr expected, Expr desired, AtomicOptions o = {}) {
  return detail::make_tile(detail::atomic_cas(p, expected, desired, o.mask, o.order, o.scope), p.loc);
}

}  // namespace tile
