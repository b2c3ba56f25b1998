// value.h - Tile: a mutable C++ variable that holds a tile while a kernel is traced, and Expr: a tile or a literal
// together with the line the user wrote it on.
#pragma once
#include <concepts>
#include <exception>
#include <type_traits>
#include <utility>

#include "detail/emit.h"

namespace tile {

template <class T>
concept Arithmetic = std::is_arithmetic_v<T>;
/// An enumerator of a plain `enum`, which is a number in C++, too: states, kinds, flags.
template <class T>
concept Enumerator = std::is_enum_v<T> && std::is_convertible_v<T, std::underlying_type_t<T>>;
/// What may stand for a literal: C++'s own numbers, enumerators, and half, bfloat16 and the f8 types (templates over
/// element types).
template <class T>
concept Number = Arithmetic<T> || Enumerator<T> || (kHasDType<T> && std::is_class_v<T>);

class Tile;

namespace detail {
Tile make_tile(Value v, SrcLoc loc);
Slot slot_of(const Tile&);
template <Number A>
constexpr Operand literal_operand(A a, SrcLoc loc) {
  Operand o;
  o.loc = loc;
  if constexpr (Enumerator<A>)
    return literal_operand(+a, loc);
  else if constexpr (!Arithmetic<A>)
    o.kind = Operand::floating, o.f = static_cast<float>(a);
  else if constexpr (std::is_same_v<A, bool>)
    o.kind = Operand::boolean, o.b = a;
  else if constexpr (std::is_floating_point_v<A>)
    o.kind = Operand::floating, o.f = static_cast<double>(a);
  else if constexpr (std::is_signed_v<A>)
    o.kind = Operand::integer, o.i = static_cast<int64_t>(a);
  else
    o.kind = Operand::uinteger, o.u = static_cast<uint64_t>(a);
  return o;
}
}  // namespace detail

/// A variable of the kernel: copying makes a new variable with the same value, assigning gives this one another value,
/// and loops and branches carry exactly the variables that are assigned in them. Rank 0 is a scalar. Nothing is
/// computed while tracing, so a Tile cannot steer a C++ `if`: use if_, when, where.
class Tile {
 public:
  /// Declared, without a value yet.
  Tile(SrcLoc loc = SrcLoc::current()) : slot_(detail::new_empty_slot(loc)) {}
  Tile(const Tile& other, SrcLoc loc = SrcLoc::current()) : slot_(detail::copy_slot(other.slot_, loc)) {}
  // No move constructor on purpose: moving would change which variable a loop carries (std::swap inside a loop).
  template <Number A>
  requires(Arithmetic<A> || Enumerator<A>) Tile(A literal, SrcLoc loc = SrcLoc::current())
      : slot_(detail::new_slot(detail::literal(detail::literal_operand(literal, loc)), loc)) {}
  template <Number A>
  requires(!Arithmetic<A> && !Enumerator<A>) Tile(A literal, SrcLoc loc = SrcLoc::current())
      : slot_(detail::new_slot(detail::literal_as(detail::literal_operand(literal, loc), dtype_of<A>()), loc)) {}
  explicit Tile(std::nullptr_t) = delete;
  ~Tile() { detail::kill_slot(slot_); }

  Tile& operator=(const Tile& other) {
    detail::assign_slot(slot_, other.slot_);
    return *this;
  }

  TileType type(SrcLoc loc = SrcLoc::current()) const { return detail::type_of(detail::read_slot(slot_, loc)); }
  Shape shape(SrcLoc loc = SrcLoc::current()) const { return type(loc).shape; }
  DType dtype(SrcLoc loc = SrcLoc::current()) const { return type(loc).dtype; }
  int rank(SrcLoc loc = SrcLoc::current()) const { return type(loc).shape.rank(); }

  /// x[:, None] and x[None, :]: a rank-1 tile as a column (Nx1) or a row (1xN); for others there is expand_dims.
  [[nodiscard]] Tile col(SrcLoc loc = SrcLoc::current()) const;
  [[nodiscard]] Tile row(SrcLoc loc = SrcLoc::current()) const;
  /// The same values in another element type (also narrowing).
  [[nodiscard]] Tile to(DType, SrcLoc loc = SrcLoc::current()) const;

  template <class B>
  requires std::same_as<B, bool>
  explicit operator B() const {
    static_assert(
        detail::kAlwaysFalse<B>,
        "a tile has no value while the kernel is being traced, so it cannot drive a C++ if, while, &&, || or ?: "
        "-> use if_(cond, ...), when(cond), where(cond, a, b), & and | instead; for std::max and std::min max(a, b) "
        "and min(a, b)");
    return false;
  }
  /// int(x), static_cast<float>(x).
  template <Arithmetic A>
  requires(!std::same_as<A, bool>) explicit operator A() const {
    static_assert(detail::kAlwaysFalse<A>,
                  "a tile has no value while the kernel is being traced, so it cannot become a C++ number "
                  "-> cast(x, i32) or cast(x, f32) converts its elements");
    return {};
  }
  /// p[i], x[i] as in CUDA C++.
  template <class I>
  Tile& operator[](const I&) const {
    static_assert(detail::kAlwaysFalse<I>,
                  "pointers and tiles have no [] -> load(p + i) and store(p + i, x) reach memory, extract, take and "
                  "where the elements of a tile");
    return const_cast<Tile&>(*this);
  }
  template <class I = int>
  Tile& operator*() const {
    static_assert(detail::kAlwaysFalse<I>, "pointers have no * -> load(p) and store(p, x)");
    return const_cast<Tile&>(*this);
  }
  template <class I = int>
  Tile& operator++() {
    static_assert(detail::kAlwaysFalse<I>, "tiles have no ++ -> x += 1; loops that run on the device are range(...)");
    return *this;
  }
  template <class I = int>
  Tile& operator++(int) {
    static_assert(detail::kAlwaysFalse<I>, "tiles have no ++ -> x += 1; loops that run on the device are range(...)");
    return *this;
  }

 protected:
  friend struct Expr;
  friend Tile detail::make_tile(detail::Value, SrcLoc);
  friend detail::Slot detail::slot_of(const Tile&);
  Tile(detail::Slot slot, int) : slot_(slot) {}
  detail::Slot slot_;
};

/// A tile or a C++ literal, and where it was written. Every verb and operator takes Expr by value: the defaulted
/// argument of these constructors is evaluated on the caller's line, which operators could not learn in another way.
/// Literals take the element type of the tile they meet and must be representable in it.
struct Expr : detail::Operand {
  Expr(const Tile& t, SrcLoc where = SrcLoc::current()) {
    v = detail::read_slot(t.slot_, where);
    kind = value;
    loc = where;
  }
  template <Number A>
  Expr(A a, SrcLoc where = SrcLoc::current()) : Operand(detail::literal_operand(a, where)) {}
};

/// An Expr that may be left out, for designated initialisers: load(p, {.mask = m}).
struct OptionalExpr : detail::Operand {
  OptionalExpr() = default;
  OptionalExpr(const Expr& e) : Operand(e) {}
  OptionalExpr(const Tile& t, SrcLoc where = SrcLoc::current()) : Operand(Expr(t, where)) {}
  template <Number A>
  OptionalExpr(A a, SrcLoc where = SrcLoc::current()) : Operand(detail::literal_operand(a, where)) {}
};

namespace detail {
inline Tile make_tile(Value v, SrcLoc loc) { return Tile(new_slot(v, loc), 0); }
inline Slot slot_of(const Tile& t) { return t.slot_; }
}  // namespace detail

inline Tile Tile::col(SrcLoc loc) const { return detail::make_tile(detail::line(Expr(*this, loc), 1), loc); }
inline Tile Tile::row(SrcLoc loc) const { return detail::make_tile(detail::line(Expr(*this, loc), 0), loc); }
inline Tile Tile::to(DType d, SrcLoc loc) const { return detail::make_tile(detail::convert(Expr(*this, loc), d), loc); }

namespace detail {
/// How kernel.h hands a parameter's value to the object the user sees.
struct ParamValue {
  Value v;
  SrcLoc loc;
};

/// Stands in a function that opens a construct, which an exception of the user's may leave before its end.
class Unwinding {
 public:
  Unwinding(const uint32_t& handle, SrcLoc loc) : handle_(handle), loc_(loc) {}
  Unwinding(const Unwinding&) = delete;
  Unwinding& operator=(const Unwinding&) = delete;
  ~Unwinding() {
    if (std::uncaught_exceptions() > exceptions_) unwind(handle_, loc_);
  }

 private:
  const uint32_t& handle_;
  SrcLoc loc_;
  int exceptions_ = std::uncaught_exceptions();
};
}  // namespace detail

/// Kernel parameter: address of elements of type T in global memory; `const T` for inputs, through which nothing can be
/// stored. Pointer arithmetic counts elements.
template <class T>
class Ptr : public Tile {
 public:
  using element = T;
  explicit Ptr(detail::ParamValue p) : Tile(detail::new_slot(p.v, p.loc), 0) {
    if constexpr (std::is_const_v<T>) detail::set_read_only(p.v);
  }
  Ptr(const Ptr& other, SrcLoc loc = SrcLoc::current()) : Tile(other, loc) {}
  /// Memory that may be written may be read: a device function that reads takes Ptr<const T>.
  template <class U>
    requires(std::is_const_v<T> && std::is_same_v<U, std::remove_const_t<T>>)
  Ptr(const Ptr<U>& other, SrcLoc loc = SrcLoc::current())
      : Tile(detail::new_slot(detail::read_only_copy(Expr(other, loc)), loc), 0) {}
  /// Ptr<T> row = p + n: the result of pointer arithmetic, which must point to elements of type T.
  template <std::same_as<Tile> A>
  Ptr(const A& address, SrcLoc loc = SrcLoc::current())
      : Tile(detail::new_slot(detail::pointer_as(Expr(address, loc), dtype_of<T>(), std::is_const_v<T>), loc), 0) {}
  Ptr& operator=(const Ptr&) = default;
  /// p = p + n: walks through memory, as p += n does.
  Ptr& operator=(const Tile& address) {
    Tile::operator=(address);
    return *this;
  }
};

/// Kernel parameter: a scalar known at launch. Also a typed local variable: I32 n = expr, from any scalar that widens
/// to T.
template <class T>
class Scalar : public Tile {
 public:
  using element = T;
  explicit Scalar(detail::ParamValue p) : Tile(detail::new_slot(p.v, p.loc), 0) {}
  Scalar(const Scalar& other, SrcLoc loc = SrcLoc::current()) : Tile(other, loc) {}
  Scalar(const Tile& t, SrcLoc loc = SrcLoc::current())
      : Scalar(detail::ParamValue{detail::scalar_as(Expr(t, loc), dtype_of<T>()), loc}) {}
  template <Number A>
  Scalar(A literal, SrcLoc loc = SrcLoc::current())
      : Scalar(detail::ParamValue{detail::scalar_as(detail::literal_operand(literal, loc), dtype_of<T>()), loc}) {}
  Scalar& operator=(const Scalar&) = default;
};
using I32 = Scalar<int32_t>;
using I64 = Scalar<int64_t>;
using U32 = Scalar<uint32_t>;
using U64 = Scalar<uint64_t>;
using F32 = Scalar<float>;
using F64 = Scalar<double>;
using B1 = Scalar<bool>;

}  // namespace tile
