// ir_test.cpp - what the verbs become, and that control flow carries and merges exactly what it must.
#include <array>
#include <cmath>
#include <utility>

#include "dsl/address.h"
#include "traced.h"

using namespace tile;
using namespace tile::testing;

// ---- operations

TEST(Ir, ArithmeticFollowsTheElementType) {
  EXPECT_IR("arith.addf %arg0, %cst fastmath<contract> : f32", [](F32 x) { auto r = x + 1; });
  EXPECT_IR("arith.divsi", [](I32 n) { auto r = n / 2; });
  EXPECT_IR("arith.divui", [](U32 n) { auto r = n / 2; });
  EXPECT_IR("arith.remui", [](U32 n) { auto r = n % 2; });
  EXPECT_IR("arith.shrsi", [](I32 n) { auto r = n >> 2; });
  EXPECT_IR("arith.shrui", [](U32 n) { auto r = n >> 2; });
  // Counts of either sign: what is moved says how.
  EXPECT_IR("arith.shrui %arg0, %arg1 : i32", [](U32 n, I32 by) { auto r = n >> by; });
  EXPECT_IR("arith.shrsi %arg0, %arg1 : i32", [](I32 n, U32 by) { auto r = n >> by; });
  EXPECT_IR("arith.maxui", [](U32 n) { auto r = max(n, 2); });
  EXPECT_IR("arith.maxnumf", [](F32 x) { auto r = max(x, 2); });
  EXPECT_IR("arith.cmpi ult", [](U32 n) { auto r = n < 2; });
  EXPECT_IR("arith.cmpf une", [](F32 x) { auto r = x != 2; });
  EXPECT_IR("math.exp2 %arg0 fastmath<contract>", [](F32 x) { auto r = exp2(x); });
  EXPECT_IR("math.fma", [](F32 x) { auto r = fma(x, x, 1); });
  EXPECT_IR("arith.mului_extended", [](U32 n) { auto r = mulhi(n, n); });
  EXPECT_IR("arith.ceildivui", [](I32 n) { auto r = cdiv(n, 64); });
}

TEST(Ir, NarrowerOperandsWidenInsideAKind) {
  EXPECT_IR("arith.extsi %arg0 : i32 to i64", [](I32 n, I64 m) { auto r = n + m; });
  EXPECT_IR("arith.extui %arg0 : i32 to i64", [](U32 n, U64 m) { auto r = n + m; });
  EXPECT_IR("arith.extf %cst : tensor<4xf16> to tensor<4xf32>", [](F32 x) { auto r = zeros({4}, f16) + x; });
}

TEST(Ir, Casts) {
  EXPECT_IR("arith.sitofp %arg0 : i32 to f32", [](I32 n) { auto r = cast(n, f32); });
  EXPECT_IR("arith.uitofp %arg0 : i32 to f32", [](U32 n) { auto r = cast(n, f32); });
  EXPECT_IR("arith.fptoui %arg0 : f32 to i32", [](F32 x) { auto r = cast(x, u32); });
  EXPECT_IR("arith.truncf %arg0 : f32 to f16", [](F32 x) { auto r = x.to(f16); });
  EXPECT_IR("arith.extui", [](I32 n) { auto r = cast(n > 3, i32); });
  EXPECT_IR("arith.cmpi ne", [](I32 n) { auto r = cast(n, i1); });
  EXPECT_IR("arith.bitcast %arg0 : f32 to i32", [](F32 x) { auto r = bitcast(x, u32); });
  const std::string through_f32 = ir_of([] { auto r = cast(zeros({4}, f16), bf16); });
  EXPECT_EQ(count_of(through_f32, "arith.extf"), 1);
  EXPECT_EQ(count_of(through_f32, "arith.truncf"), 1);
  EXPECT_EQ(count_of(ir_of([](I32 n) { auto r = cast(n, u32) >> 1; }), "arith.ext"), 0);  // signedness costs nothing
}

TEST(Ir, Shapes) {
  EXPECT_IR("tile.reshape %0 : tensor<8xi32> -> tensor<8x1xi32>", [] { auto r = arange(0, 8).col(); });
  EXPECT_IR("tile.iota from 3 : tensor<5xi32>", [] { auto r = arange(3, 8); });
  EXPECT_IR("tile.trans %cst, [1, 0]", [] { auto r = trans(zeros({4, 2}, f32)); });
  EXPECT_IR("[2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>", [] {
    auto r = permute(zeros({2, 3, 4}, f32), {2, 0, 1});
  });
  EXPECT_IR("tile.cat %0, %1 axis 0 : tensor<4xi32>, tensor<8xi32> -> tensor<12xi32>", [] {
    Tile a = arange(0, 4), b = arange(0, 8);
    auto r = cat(a, b);
  });
  EXPECT_IR("axis 1 : tensor<4x1xi32>, tensor<4x1xi32> -> tensor<4x2xi32>",
            [] { auto r = join(arange(0, 4), arange(0, 4)); });
  EXPECT_IR("tile.extract %cst [0, 1] : tensor<4x2xf32> -> tensor<4x1xf32>", [] {
    auto [a, b] = split(zeros({4, 2}, f32));
  });
  EXPECT_IR("tile.take %0, %1 axis 0", [] {
    Tile a = arange(0, 4), b = arange(0, 4);
    auto r = take(a, b, 0);
  });
  EXPECT_IR("tile.broadcast", [] { auto r = broadcast_to(arange(0, 4).col(), {4, 8}); });
  EXPECT_IR("tile.splat %arg0 : f32 -> tensor<2x2xf32>", [](F32 x) { auto r = full({2, 2}, x, f32); });
  EXPECT_IR("tile.item", [] { auto r = squeeze(sum(arange(0, 4), axis(0)), 0); });
}

TEST(Ir, Memory) {
  EXPECT_IR("tile.gather %2 mask %4 : tensor<8xi1> other %cst : tensor<8xf32>", [](Ptr<const float> p, I32 n) {
    Tile o = arange(0, 8), q = p + o, m = o < n;
    auto r = load(q, {.mask = m, .other = -1});
  });
  EXPECT_IR(
      "tile.load %arg0[%c0_i32, %arg1 : i32, i64] pad 0xFFF0000000000000 cache streaming : <2xf16> -> tensor<4x8xf16>",
      [](Tensor<const half, 2> a, I64 n) {
        auto r = a.load({0, n}, {4, 8}, {.pad = -INFINITY, .cache = Cache::streaming});
      });
  EXPECT_IR("tile.store %arg1, %arg0[%c0_i32 : i32] : f32, <1xf32>",
            [](Tensor<float, 1> a, F32 x) { a.store({0}, x); });
  EXPECT_IR("tile.view_stride %arg0, 1", [](Tensor<const half, 2> a) { auto r = a.stride(1); });
  EXPECT_IR("arith.trunci", [](Tensor<const half, 2> a) { auto r = a.dim(1); });
  EXPECT_EQ(count_of(ir_of([](Tensor<const half, 2> a) { auto r = a.dim64(1); }), "arith.trunci"), 0);
  EXPECT_IR("tile.make_view", [](Ptr<const half> p, I32 n) {
    auto r = make_view(p, {n, 8}, {8, 1}).load({0, 0}, {4, 4});
  });
  EXPECT_IR("tile.int_to_ptr %1 : <f16>",
            [](I64 address) { auto x = load(pointer_to<const half>(multiple_of(address, 16)) + arange(0, 8)); });
  EXPECT_IR("tile.atomic_rmw add acq_rel gpu", [](Ptr<float> p) { atomic_add(p, 1); });
  EXPECT_IR("tile.atomic_rmw umax relaxed sys",
            [](Ptr<uint32_t> p) { atomic_max(p, 1, {.order = Order::relaxed, .scope = Scope::sys}); });
  EXPECT_IR("tile.accumulate", [](Tensor<float, 2> t) { t.atomic_add({0, 0}, zeros({4, 4}, f32)); });
  EXPECT_IR("tile.atomic_cas", [](Ptr<int32_t> p) { atomic_cas(p, 1, 2); });
  // Unsigned 32-bit offsets reach past 2^31 elements.
  EXPECT_IR("arith.extui %arg1 : i32 to i64", [](Ptr<float> p, U32 n) { store(p + n, 0); });
}

TEST(Ir, Across) {
  EXPECT_IR("tile.reduce %cst axis 1 : (tensor<4x8xf32>) -> tensor<4x1xf32>", [] {
    auto r = sum(zeros({4, 8}, f32), axis(-1));
  });
  EXPECT_IR("arith.extf", [] { auto r = sum(zeros({4}, f16), axis(0)); });  // accumulates in f32
  EXPECT_IR("axis 0 reverse", [] { auto r = cumsum(arange(0, 8), axis(0), {.reverse = true}); });
  // The least index of what equals the maximum, which is the one `max` gives.
  EXPECT_IR("arith.cmpf oeq, %cst, %2 : tensor<8xf32>", [] { auto r = argmax(zeros({8}, f32), axis(0)); });
  EXPECT_IR("tile.reduce %4 axis 0 : (tensor<8xi32>) -> tensor<1xi32>",
            [] { auto r = argmin(zeros({8}, f32), axis(0)); });
  // Places below keys: the smaller of two has the smaller key, or of equal ones the first place.
  EXPECT_IR("arith.minsi", [] { auto r = argsort(zeros({8}, f16), axis(0)); });
  EXPECT_IR("arith.shli %", [] { auto r = argsort(zeros({8}, f32), axis(0)); });
  EXPECT_IR("tile.put", [] { auto r = argsort(arange(0, 512) & 15, axis(0)); });  // few bits
  EXPECT_IR("arith.mulf", [] { auto r = reduce(zeros({8}, f32), axis(0), [](Tile a, Tile b) { return a * b; }); });
  const Traced two = trace_of([] {
    auto [v, i] = reduce({zeros({8}, f32), arange(0, 8)}, axis(0), [](Tile a, Tile i, Tile b, Tile j) {
      Tile t = b > a;
      return std::tuple(where(t, b, a), where(t, j, i));
    });
    static_check(v.dtype() == f32 && i.dtype() == i32 && i.shape() == Shape{1}, "types of the results");
  });
  EXPECT_TRUE(two.ok()) << two.error().to_string();
  EXPECT_IR("precision tf32", [] { auto r = dot(zeros({16, 16}, f32), zeros({16, 16}, f32), Prec::tf32); });
  EXPECT_IR("precision bits : tensor<16x8xi32>, tensor<8x16xi32> -> tensor<16x16xi32>", [] {
    auto r = dot_bits(zeros({16, 8}, u32), zeros({8, 16}, u32));
  });
  EXPECT_IR("tensor<16x8xi8>, tensor<8x16xi8> -> tensor<16x16xi32>", [] {
    auto r = dot(zeros({16, 8}, i8), zeros({8, 16}, i8));
  });
}

TEST(Ir, HintsAndDebugging) {
  EXPECT_IR("tile.assume %arg0 multiple_of 64", [](I32 n) { auto r = multiple_of(n, 64); });
  EXPECT_IR("tile.assume_true", [](I32 n) { assume(n > 0); });
  EXPECT_IR("tile.print \"x\" %arg0", [](I32 n) { device_print("x", n); });
  EXPECT_IR("tile.assert %0, \"positive\"", [](I32 n) { device_assert(n > 0, "positive"); });
  EXPECT_IR("tile.num_warps = 8 : i32", [] { num_warps(8); });
  EXPECT_IR("tile.programs = 3 : i32", [] { programs_per_multiprocessor(3); });
  EXPECT_IR("tile.cluster = 2 : i32", [] { programs_per_cluster(2); });
}

TEST(Ir, LocationsAreTheUsersLines) {
  const int line = __LINE__ + 1;
  const Traced t = trace_of([](F32 x) { auto r = x * 3; });
  EXPECT_NE(t.text(true).find(std::string(__FILE__) + "\":" + std::to_string(line)), std::string::npos) << t.text(true);
}

// ---- variables and control flow

TEST(ControlFlow, CopiesAreIndependent) {
  const std::string text = ir_of([](Ptr<float> p, F32 x) {
    Tile a = x;
    Tile b = a;
    b += 1;
    store(p, a);
    store(p + 1, b);
  });
  EXPECT_NE(text.find("tile.scatter %arg1"), std::string::npos) << text;
}

TEST(ControlFlow, OnlyAssignedVariablesAreCarried) {
  const std::string text = ir_of([](Ptr<float> p, I32 n) {
    Tile used = 1.f, acc = 0.f, idle = 2.f;
    for (auto i : range(n)) acc += used * cast(i, f32);
    store(p, acc + idle);
  });
  EXPECT_EQ(count_of(text, "iter_args(%arg3 = "), 1) << text;
  EXPECT_EQ(count_of(text, "-> (f32)"), 1) << text;
}

TEST(ControlFlow, SwapCarriesBothVariables) {
  const std::string text = ir_of([](Ptr<int32_t> p, I32 n) {
    Tile x = 0, y = 1;
    for (auto i : range(n)) std::swap(x, y);
    store(p, x);
    store(p + 1, y);
  });
  EXPECT_NE(text.find("scf.yield %arg4, %arg3 : i32, i32"), std::string::npos) << text;
}

TEST(ControlFlow, ElementsOfAnArrayAreCarriedOneByOne) {
  const std::string text = ir_of([](Ptr<float> p, I32 n) {
    std::array<Tile, 3> a{1.f, 2.f, 3.f};
    for (auto i : range(n)) a[1] += a[0];
    store(p, a[1] + a[2]);
  });
  EXPECT_NE(text.find("-> (f32)"), std::string::npos) << text;
}

TEST(ControlFlow, VariablesFirstGivenAValueInTheLoopAreNotCarried) {
  const std::string ir = ir_of([](Ptr<float> p, I32 n) {
    Tile t, acc = 0.f;
    for (auto i : range(n)) {
      t = load(p + i);
      acc += t;
      for (auto j : range(i)) t = t * 2.f;  // carried by this loop, whose start is inside the other
      if_(i > 3, [&] { t = t + 1.f; });
      acc += t;
      t = acc * t;
      store(p + i, t);
    }
    store(p, acc);
  });
  EXPECT_EQ(count_of(ir, "iter_args"), 2) << ir;
  EXPECT_NE(ir.find("iter_args(%arg5 = %2)"), std::string::npos) << ir;
}

TEST(ControlFlow, BranchesMergeAssignedVariables) {
  const std::string text = ir_of([](Ptr<float> p, I32 n) {
    Tile a = 1.f, b = 2.f;
    if_(
        n > 0, [&] { a = 3.f; }, [&] { b = 4.f; });
    store(p, a + b);
  });
  EXPECT_NE(text.find("-> (f32, f32)"), std::string::npos) << text;
}

// Which pointers are of const elements: each by itself, also where a construct carries several, and however many
// constructs came and went (their blocks' memory is used again).
TEST(ControlFlow, PointersAreConstEachByItself) {
  ir_of([](Ptr<const float> from, Ptr<float> to, I32 n) {
    for (int round = 0; round < 50; ++round) {
      Tile p = from, q = to;
      for (auto i : range(n)) {
        store(q + arange(0, 8), load(p + arange(0, 8)));
        p += 8, q += 8;
      }
      store(q + arange(0, 4), 1.f);
      Tile r = to;
      if_(n > round, [&] { r = to + 4; });
      store(r, 2.f);
    }
  });
}

TEST(ControlFlow, PointerParametersAreVariables) {
  for (const std::string& text : {ir_of([](Ptr<float> p, I32 n) {
         for (auto i : range(n)) store(p, 1.f), p = p + 8;
       }), ir_of([](Ptr<float> p, I32 n) {
         for (auto i : range(n)) store(p, 1.f), p += 8;
       })})
    EXPECT_EQ(count_of(text, "iter_args(%arg3 = %arg0)"), 1) << text;
}

TEST(Literals, OfNarrowTypes) {
  const Traced t = trace_of([](Ptr<const half> h, Ptr<const float> f, Ptr<const fp8_e4m3> e) {
    static_check((load(h) * half(2.f) > half(1.f)).dtype() == i1, "halves meet halves");
    static_check((load(h) + bfloat16(2.f)).dtype() == f16, "they take the type they meet");
    static_check((load(f) + half(2.f)).dtype() == f32, "a wider one, too");
    static_check(load(e, {.mask = load(f) > half(0.f), .other = fp8_e4m3(1.f)}).dtype() == f8e4m3, "as options, too");
    Tile alone = bfloat16(1.f);
    static_check(alone.dtype() == bf16, "alone they are what they are");
  });
  EXPECT_TRUE(t.ok()) << t.error().to_string();
}

TEST(Literals, EnumeratorsAreNumbers) {
  enum State : int8_t { open, closed = 5 };
  enum : uint32_t { top = 0x80000000u };
  EXPECT_IR("arith.constant dense<5> : tensor<4xi8>", [](Ptr<const int8_t> p, Ptr<int8_t> out) {
    Tile state = load(p + arange(0, 4), {.mask = arange(0, 4) < 3, .other = closed});
    state = where(state == open, closed, state);
    store(out + arange(0, 4), state);
  });
  const Traced t = trace_of([](Ptr<const uint32_t> p) {
    Tile one = closed, bit = top;
    static_check(one.dtype() == i32 && bit.dtype() == u32, "alone they are what C++ makes of them");
    static_check((load(p) & top).dtype() == u32, "they take the type they meet");
    static_check(full({2}, closed, i8).dtype() == i8 && (closed | open) == 5, "two of them stay C++'s");
  });
  EXPECT_TRUE(t.ok()) << t.error().to_string();
}

// Two of them are not operands of a tile: C++ computes.
TEST(Literals, NarrowTypesOfTheHostStayNumbers) {
  constexpr half a(2.f), b(-3.f);
  constexpr bfloat16 c(.5f);
  static_assert(a + b == -1.f && a - b == 5.f && a * b == -6.f && b / a == -1.5f && -a == half(-2.f) && !half(0.f));
  static_assert(b < a && a > b && b <= b && a >= b && a != b && !(a == b));
  static_assert(a * c == 1.f && c < a && c != a && a * 2 == 4.f && 1.0 - c == .5);
  const half nan(NAN);
  EXPECT_FALSE(nan == nan || nan < a || nan >= a);
}

TEST(ControlFlow, LoopHints) {
  EXPECT_IR("{tile.stages = 3 : i32, tile.unroll = 2 : i32}", [](I32 n) {
    Tile x = 0;
    for (auto i : range(0, n, 4, {.stages = 3, .unroll = 2})) x += i;
  });
}

TEST(ControlFlow, CountersOfUnsignedAndWideRanges) {
  const Traced t = trace_of([](U32 u, I64 w) {
    for (auto i : range(u)) static_check(i.dtype() == u32, "counter of a u32 range");
    for (auto i : range(w)) static_check(i.dtype() == i64, "counter of an i64 range");
    for (auto i : range(10)) static_check(i.dtype() == i32, "counter of literals");
  });
  EXPECT_TRUE(t.ok()) << t.error().to_string();
}

TEST(ControlFlow, BreakMakesAWhileLoop) {
  const std::string text = ir_of([](Ptr<float> p, I32 n) {
    Tile s = 0.f;
    for (auto i : range(n)) {
      auto x = load(p + i);
      break_if(x < 0);
      s += x;
    }
    store(p, s);
  });
  EXPECT_EQ(count_of(text, "scf.while"), 1) << text;
  EXPECT_EQ(count_of(text, "scf.for"), 0) << text;
}

TEST(ControlFlow, AfterABreakTheConditionIsNotEvaluated) {
  // p[i] may not exist any more: the load must stand under the flag.
  const std::string text = ir_of([](Ptr<float> p, I32 n) {
    Tile i = 0;
    while_([&] { return load(p + i) > 0; },
           [&] {
             i += 1;
             break_if(i >= n);
           });
    store(p, cast(i, f32));
  });
  const size_t loop = text.find("scf.while"), guard = text.find("scf.if", loop),
               gather = text.find("tile.gather", loop);
  EXPECT_LT(guard, gather) << text;
}

TEST(ControlFlow, ReturnGuardsTheRest) {
  const std::string text = ir_of([](Ptr<float> p, I32 n) {
    return_if(program_id(0) >= n);
    store(p, 1.f);
  });
  EXPECT_LT(text.find("scf.if"), text.find("tile.scatter")) << text;
}

TEST(ControlFlow, ConfigurationIsResolvedWhileTracing) {
  struct Cfg {
    bool fast = true;
    int unroll = 3;
  };
  auto k = kernel("k", [](const Cfg& c, Ptr<float> p) {
    if (c.fast) store(p, 1.f);
    for (int i = 0; i < c.unroll; ++i) store(p + i, 2.f);
  });
  EXPECT_EQ(count_of(k.trace({.fast = true, .unroll = 3}).text(), "tile.scatter"), 4);
  EXPECT_EQ(count_of(k.trace({.fast = false, .unroll = 1}).text(), "tile.scatter"), 1);
}

TEST(ControlFlow, DeviceFunctionsTakeVariablesByReference) {
  auto bump = [](Tile& x) { x += 1; };
  const std::string text = ir_of([&](Ptr<int32_t> p, I32 n) {
    Tile x = 0;
    for (auto i : range(n)) bump(x);
    store(p, x);
  });
  EXPECT_NE(text.find("-> (i32)"), std::string::npos) << text;
}

// ---- functions over parameters

TEST(Ir, WhatMayBeWrittenMayBeRead) {
  EXPECT_IR("tile.load %arg0", [](Tensor<float, 1> x) {
    auto first = [](Tensor<const float, 1> view) { return view.load({0}); };
    auto r = first(x);
  });
  EXPECT_IR("tile.ptr_add %arg0, %c0_i32", [](Ptr<float> x) {  // by itself, so that a store through it is refused
    auto first = [](Ptr<const float> p) { return load(p); };
    auto r = first(x);
  });
  static_assert(!std::is_convertible_v<Ptr<const float>, Ptr<float>>);
  static_assert(!std::is_convertible_v<Tensor<const float, 1>, Tensor<float, 1>>);
  static_assert(!std::is_convertible_v<Ptr<double>, Ptr<const float>>);
}

// ---- identity

TEST(Hash, DependsOnWhatIsComputedOnly) {
  auto a = kernel("a", [](F32 x) { auto r = x * 3; });
  auto b = kernel("b",

                  [](F32 x) { auto r = x * 3; });
  auto c = kernel("a", [](F32 x) { auto r = x * 4; });
  auto d = kernel("a", [](F64 x) { auto r = x * 3; });
  EXPECT_EQ(a.trace().hash(), b.trace().hash());  // neither the place nor the name matter
  EXPECT_NE(a.trace().hash(), c.trace().hash());
  EXPECT_NE(a.trace().hash(), d.trace().hash());
  EXPECT_EQ(a.trace().hash(), a.trace().hash());
}

TEST(Hash, SymbolIsReadable) {
  struct Cfg {
    int BM = 128;
    bool causal = true;
    DType dtype = f16;
    float scale = -0.5f;
  };
  const std::string s = kernel("attn-fwd", [](const Cfg&) {}).trace().symbol();
  EXPECT_EQ(s.substr(0, s.size() - 9), "attn_fwd_BM128_causal_dtypef16_scalem0_5") << s;
}

TEST(Ir, LikeAndPlacesInAll) {
  EXPECT_TRUE(trace_of([](Ptr<half> p) {
    const Tile x = load(p + arange(0, 6).col() * 4 + arange(0, 4).row());
    EXPECT_EQ(ones_like(x).type(), x.type());
    EXPECT_EQ(zeros_like(x).type(), x.type());
    EXPECT_EQ(full_like(x, -INFINITY).type(), x.type());
    EXPECT_EQ(full_like(2, 3).type(), (TileType{i32, false, {}}));
    const auto [low, at] = min_with_index(x);
    EXPECT_EQ(low.type(), (TileType{f16, false, {}}));
    for (const Tile& place : {at, argmax(x), argmin(x), max_with_index(x).second})
      EXPECT_EQ(place.type(), (TileType{i32, false, {}}));
  }).ok());
}
