// assembly.h - PTX in a kernel, element by element, and what stands in for it on hosts.
#pragma once
#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "control.h"
#include "math.h"

namespace tile {

/// How a piece of assembly takes elements.
struct AsmOptions {
  /// Elements of every argument and result that one instance gets (1, 2, 4, 8 or 16): those narrower than 32 bits share
  /// registers of 32 bits, the first one lowest. Which elements come together is the compiler's choice.
  int pack = 1;
  /// It may be repeated, moved and left out. If false its effects happen, in order with other effects, for every
  /// element at least once: threads that hold copies of an element run it, too.
  bool pure = true;
};

namespace detail {
struct NoHostForm {};
struct AsmText {
  const std::string& text;
  const std::string& constraints;
  AsmOptions options;
  SrcLoc loc;
};

template <class Made, size_t... I>
void take_results(const Made& made, const AsmText& a, const TileType* types, Tile* out, std::index_sequence<I...>) {
  auto take = [&](const Tile& t, size_t i) {
    if (check_host_form(Expr(t, a.loc), types[i], static_cast<int>(i), a.loc))
      out[i] = t;
    else
      write_slot(slot_of(out[i]), {0}, a.loc);
  };
  (take(std::get<I>(made), I), ...);
}

template <size_t N, class H, size_t... I>
std::array<Tile, N> assembly(const AsmText& a, const Operand* args, const DType (&dtypes)[N], H& host,
                             std::index_sequence<I...>) {
  constexpr int kArgs = sizeof...(I);
  Value spread[kArgs + 1] = {};
  TileType types[N];
  auto empty = [&](size_t) { return Tile(a.loc); };
  auto results = [&]<size_t... R>(std::index_sequence<R...>) { return std::array<Tile, N>{empty(R)...}; }
  (std::make_index_sequence<N>{});
  auto set = [&](size_t i, Value v) { write_slot(slot_of(results[i]), v, a.loc); };
  if (!spread_arguments(args, kArgs, a.loc, spread)) {
    for (size_t i = 0; i < N; ++i) set(i, {0});
    return results;
  }
  auto on_gpus = [&] {
    Value made[N];
    inline_asm(a.text, a.constraints, spread, kArgs, dtypes, N, a.options.pack, a.options.pure, a.loc, made);
    for (size_t i = 0; i < N; ++i) set(i, made[i]);
  };
  if constexpr (std::is_same_v<H, NoHostForm>) {
    on_gpus();
  } else {
    static_assert(std::is_invocable_v<H&, decltype((void)I, Tile())...>,
                  "the form for hosts takes as many tiles as the assembly has arguments");
    for (size_t i = 0; i < N; ++i) types[i] = result_type(spread, kArgs, dtypes[i]);
    if_(
        Expr(make_tile(on_host(a.loc), a.loc), a.loc),
        [&] {
          auto made = host(make_tile(spread[I], a.loc)...);
          if constexpr (std::is_convertible_v<decltype(made), Tile>) {
            static_assert(N == 1, "the form for hosts returns as many tiles as the assembly has results");
            take_results(std::tuple<const Tile&>(made), a, types, results.data(), std::index_sequence<0>{});
          } else {
            static_assert(std::tuple_size_v<decltype(made)> == N,
                          "the form for hosts returns as many tiles as the assembly has results");
            take_results(made, a, types, results.data(), std::make_index_sequence<N>{});
          }
        },
        on_gpus);
  }
  return results;
}

template <size_t A>
std::array<Operand, A> operands_of(const Expr (&args)[A]) {
  std::array<Operand, A> out;
  for (size_t i = 0; i < A; ++i) out[i] = args[i];
  return out;
}
}  // namespace detail

/// PTX on the elements of tiles of one shape (or that broadcast to one), giving a tile of `result` elements:
///
///     auto y = inline_asm("cvt.rna.tf32.f32 $0, $1;", "=r,f", {x}, u32, {}, [](Tile x) { return bitcast(x, u32); });
///
/// In `text`, $0, $1 .. are registers, results first; a dollar is $$, and registers of one's own want a { } around all.
/// `constraints` says what they are, separated by commas, results with `=` first: r (32 bits), l (64), f (f32), d
/// (f64), h (16); "~{memory}" at the end if it reads or writes memory. Every argument and result takes a register for
/// `pack` elements of up to 32 / pack bits, else one for as many elements as 32 bits hold: four u8 with pack = 4 are
/// one r, two f32 with pack = 2 two f. A single narrow element has zeros above it. i1 is cast first.
///
/// `host` computes the same on tiles, for hosts; a kernel without it compiles for GPUs only. Scalars (no arguments, or
/// scalars alone) must come out the same in every thread. What the constraints show is checked here; what ptxas finds
/// comes with the line of this call.
template <size_t A, class H = detail::NoHostForm>
Tile inline_asm(const std::string& text, const std::string& constraints, const Expr (&args)[A], DType result,
                AsmOptions o = {}, H host = {}, SrcLoc loc = SrcLoc::current()) {
  const DType types[] = {result};
  const auto operands = detail::operands_of(args);
  return detail::assembly({text, constraints, o, loc}, operands.data(), types, host, std::make_index_sequence<A>{})[0];
}
/// The same with several results: auto [low, high] = inline_asm("..", "=r,=r,r", {x}, {u32, u32}); `host` returns a
/// std::pair or std::tuple.
template <size_t A, size_t N, class H = detail::NoHostForm>
std::array<Tile, N> inline_asm(const std::string& text, const std::string& constraints, const Expr (&args)[A],
                               const DType (&results)[N], AsmOptions o = {}, H host = {},
                               SrcLoc loc = SrcLoc::current()) {
  const auto operands = detail::operands_of(args);
  return detail::assembly({text, constraints, o, loc}, operands.data(), results, host, std::make_index_sequence<A>{});
}
/// Without arguments, a scalar: inline_asm("mov.u64 $0, %globaltimer;", "=l", u64, {.pure = false}).
template <class H = detail::NoHostForm>
Tile inline_asm(const std::string& text, const std::string& constraints, DType result, AsmOptions o = {}, H host = {},
                SrcLoc loc = SrcLoc::current()) {
  const DType types[] = {result};
  return detail::assembly({text, constraints, o, loc}, nullptr, types, host, std::index_sequence<>{})[0];
}

/// Cycles of this multiprocessor, nanoseconds that all of a GPU agree on (within a microsecond or so), and the number
/// of the multiprocessor this program runs on, read where they stand among the kernel's effects. 0 on hosts.
inline Tile clock64(SrcLoc loc = SrcLoc::current()) {
  auto none = [loc] { return cast(Expr(0, loc), u64); };
  return inline_asm("mov.u64 $0, %clock64;", "=l", u64, {.pure = false}, none, loc);
}
inline Tile globaltimer(SrcLoc loc = SrcLoc::current()) {
  auto none = [loc] { return cast(Expr(0, loc), u64); };
  return inline_asm("mov.u64 $0, %globaltimer;", "=l", u64, {.pure = false}, none, loc);
}
inline Tile smid(SrcLoc loc = SrcLoc::current()) {
  auto none = [loc] { return cast(Expr(0, loc), u32); };
  return inline_asm("mov.u32 $0, %smid;", "=r", u32, {.pure = false}, none, loc);
}

}  // namespace tile
