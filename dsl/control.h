// control.h - control flow that depends on values known only when the kernel runs. A body is recorded once; assignments
// to tiles declared outside become values the loop carries or the branch merges. Plain C++ `if` and `for` on
// configuration values still work, at trace time: they choose and unroll.
#pragma once
#include <exception>
#include <utility>

#include "value.h"

namespace tile {

/// A decision of the compiler's that a kernel may make itself. What is not legal stays off, with a remark.
enum class Choice : int8_t { automatic = -1, never = 0, always = 1 };

/// Hints for one loop on GPUs; none changes results, and hosts ignore all of them.
struct LoopOptions {
  int stages = 0;  ///< copies of the loads in flight; 0: the compiler chooses
  int unroll = 0;  ///< bodies per iteration; 0: the compiler chooses
  Choice specialize = Choice::automatic;  ///< loads by a producer warp (bulk copies; `always`: gathers, too)
  Choice overlap = Choice::automatic;     ///< a product that feeds another runs one iteration ahead of it
  Choice pingpong = Choice::automatic;    ///< warpgroups take turns at the tensor cores
};

/// What range() returns: a loop for one range-based `for`.
class Range {
 public:
  struct End {};
  class Iterator {
   public:
    explicit Iterator(const Range& r) : range_(r) {}
    Iterator(const Iterator&) = delete;
    Iterator& operator=(const Iterator&) = delete;
    bool operator!=(End) const { return !done_; }
    /// Opens the body: everything until ++ is recorded once.
    Tile operator*() {
      open_ = true;
      const detail::Value counter =
          detail::open_for(range_.low_, range_.high_, range_.step_, {range_.options_.stages, range_.options_.unroll,
                            static_cast<int>(range_.options_.specialize), static_cast<int>(range_.options_.overlap),
                            static_cast<int>(range_.options_.pingpong)},
                           range_.loc_, handle_);
      return detail::make_tile(counter, range_.loc_);
    }
    Iterator& operator++() {
      open_ = false, done_ = true;
      detail::close_for(handle_);
      return *this;
    }
    /// Left without ++: a C++ break, return or goto, or an exception of the user's.
    ~Iterator() {
      if (!open_) return;
      if (std::uncaught_exceptions() > exceptions_)
        detail::unwind(handle_, range_.loc_);
      else
        detail::abandon_for(handle_, range_.loc_);
    }

   private:
    const Range& range_;
    uint32_t handle_ = 0;
    bool open_ = false, done_ = false;
    int exceptions_ = std::uncaught_exceptions();
  };
  Range(const Expr& low, const Expr& high, const Expr& step, LoopOptions options, SrcLoc loc)
      : low_(low), high_(high), step_(step), options_(options), loc_(loc) {}
  Iterator begin() const { return Iterator(*this); }
  End end() const { return {}; }

 private:
  Expr low_, high_, step_;
  LoopOptions options_;
  SrcLoc loc_;
};
/// for (auto i : range(low, high, step)): i = low, low + step, ... below high; with a negative constant, down to those
/// above high. A step that is known only when the kernel runs must be positive: where it is not, the loop has no
/// iteration, and on hosts the launch fails and names it.
[[nodiscard]] inline Range range(Expr low, Expr high, Expr step, LoopOptions o = {}) {
  return Range(low, high, step, o, high.loc);
}
[[nodiscard]] inline Range range(Expr low, Expr high, LoopOptions o = {}) {
  return Range(low, high, Expr(1, high.loc), o, high.loc);
}
[[nodiscard]] inline Range range(Expr high, LoopOptions o = {}) {
  return Range(Expr(0, high.loc), high, Expr(1, high.loc), o, high.loc);
}

namespace detail {
/// A body that assigns its copies of tiles would leave those outside as they were.
template <class Body>
constexpr bool is_body() {
  static_assert(std::is_invocable_v<std::remove_reference_t<Body>&>,
                "the bodies of if_ and while_, and the condition of while_, are lambdas without parameters -> if_(c, [&] { "
                "... }), while_([&] { return c; }, [&] { ... })");
  static_assert(std::is_invocable_v<const std::remove_reference_t<Body>&> ||
                    !std::is_invocable_v<std::remove_reference_t<Body>&>,
                "the body of if_ or while_ is a `mutable` lambda: it would assign copies of the tiles it names -> "
                "write it with [&] and without `mutable`");
  return true;
}
}  // namespace detail

/// if (condition) then(); else otherwise(); for a scalar i1. Write the lambdas with [&]: they assign the enclosing
/// tiles.
template <class Then>
void if_(Expr condition, Then&& then) {
  static_assert(detail::is_body<Then>());
  uint32_t handle = 0;
  detail::open_then(condition, handle);
  const detail::Unwinding guard(handle, condition.loc);
  std::forward<Then>(then)();
  detail::close_if(handle);
}
template <class Then, class Else>
void if_(Expr condition, Then&& then, Else&& otherwise) {
  static_assert(detail::is_body<Then>() && detail::is_body<Else>());
  uint32_t handle = 0;
  detail::open_then(condition, handle);
  const detail::Unwinding guard(handle, condition.loc);
  std::forward<Then>(then)();
  detail::open_else(handle);
  std::forward<Else>(otherwise)();
  detail::close_if(handle);
}

/// The statement form: for (auto _ : when(condition)) { ... }. No lambda, and a dangling else is a syntax error.
class When {
 public:
  struct Token {
    ~Token() {}  // not trivial: no warning about an unused `_`
  };
  struct End {};
  class Iterator {
   public:
    explicit Iterator(const When& w) : when_(w) {}
    Iterator(const Iterator&) = delete;
    Iterator& operator=(const Iterator&) = delete;
    bool operator!=(End) const { return !done_; }
    Token operator*() {
      open_ = true;
      detail::open_then(when_.condition_, handle_);
      return {};
    }
    Iterator& operator++() {
      open_ = false, done_ = true;
      detail::close_if(handle_);
      return *this;
    }
    ~Iterator() {
      if (!open_) return;
      if (std::uncaught_exceptions() > exceptions_)
        detail::unwind(handle_, when_.condition_.loc);
      else
        detail::abandon_when(handle_, when_.condition_.loc);
    }

   private:
    const When& when_;
    uint32_t handle_ = 0;
    bool open_ = false, done_ = false;
    int exceptions_ = std::uncaught_exceptions();
  };
  explicit When(const Expr& condition) : condition_(condition) {}
  Iterator begin() const { return Iterator(*this); }
  End end() const { return {}; }

 private:
  Expr condition_;
};
/// `condition`: a scalar i1. Tiles that the body assigns keep their value where it does not hold.
[[nodiscard]] inline When when(Expr condition) { return When(condition); }

/// while (condition()) body(); the condition may read tiles but not assign them.
///
/// A condition that is a tile of i1 makes it a loop of each element, for as long as its own condition holds: elements that
/// are done keep what the tiles assigned here had, and loads, stores and atomics leave them out (a load is 0 there).
/// while_([&] { return n >= 0; }, [&] { sum += load(x + n); n = load(next + n); }) follows a list for each element of n.
/// Tiles that the body assigns, and of pointers that it uses, have the shape of the condition, or one that it broadcasts
/// to. Scalars are the program's: they are assigned as long as any element goes on. Reductions see all elements.
template <class Condition, class Body>
void while_(Condition&& condition, Body&& body, SrcLoc loc = SrcLoc::current()) {
  static_assert(detail::is_body<Condition>() && detail::is_body<Body>());
  uint32_t handle = 0;
  detail::open_while(loc, handle);
  const detail::Unwinding guard(handle, loc);
  {
    const Tile c = std::forward<Condition>(condition)();
    detail::while_condition(handle, Expr(c, loc));
  }
  std::forward<Body>(body)();
  detail::close_while(handle);
}

/// Directly in a traced loop body: skip the rest of this iteration / leave the loop when the condition holds.
inline void continue_if(Expr condition) { detail::continue_if(condition); }
inline void break_if(Expr condition) { detail::break_if(condition); }
/// Directly in the kernel body (or a function it calls there): this program is finished when the condition holds.
inline void return_if(Expr condition) { detail::return_if(condition); }
/// The same behind `last`: return_if(label < 0, [&] { store(loss + row, 0.f); }).
template <class Last>
void return_if(Expr condition, Last&& last) {
  static_assert(detail::is_body<Last>());
  if_(condition, std::forward<Last>(last));
  detail::return_if(condition);
}

}  // namespace tile
