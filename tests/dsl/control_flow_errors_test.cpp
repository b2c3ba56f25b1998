// control_flow_errors_test.cpp - mistakes with variables, loops and branches that the tracer finds, each at the user's
// line.
#include <deque>
#include <memory>
#include <optional>

#include "traced.h"

using namespace tile;
using namespace tile::testing;

// __LINE__ and the mistake it names stand on one line:
// clang-format off

TEST(Errors, NoValueYet) {
  const int line = __LINE__ + 3;
  auto found = errors_of([](Ptr<float> p) {
    Tile x;
    store(p, x);
  });
  expect_error(found, line, "tile variable is read before it has a value", __FILE__);
  ASSERT_EQ(found[0].notes.size(), 1u);
  EXPECT_EQ(static_cast<int>(found[0].notes[0].line), line - 1);
}

TEST(Errors, LoopCarriedTypeChange) {
  const int line = __LINE__ + 5;
  auto found = errors_of([](Ptr<half> p, I32 n) {
    Tile acc = zeros({16}, f16);
    for (auto i : range(n)) {
      auto x = cast(load(p + i + arange(0, 16)), f32);
      acc = acc + x;
    }
    store(p + arange(0, 16), acc);
  });
  expect_error(found, line, "loop-carried tile variable changes type from tile<16xf16> to tile<16xf32> inside the loop", __FILE__);
  ASSERT_EQ(found[0].notes.size(), 3u);
  EXPECT_NE(found[0].notes[0].message.find("variable declared here"), std::string::npos);
  EXPECT_EQ(static_cast<int>(found[0].notes[0].line), line - 3);
  EXPECT_EQ(static_cast<int>(found[0].notes[1].line), line - 2);
  EXPECT_NE(found[0].notes[2].message.find("begin with the wider type, e.g. x = cast(value, f32)"), std::string::npos);
}

TEST(Errors, LoopCarriedWiderType) {
  auto found = errors_of([](Ptr<double> p, I32 n) { Tile acc = 0.f; for (auto i : range(n)) acc = cast(acc, f64) + load(p + i); store(p, cast(acc, f64)); });
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].notes.size(), 3u);
  EXPECT_EQ(found[0].notes[2].message, "hint: begin with the wider type, e.g. x = cast(value, f64) in front of the loop");
}

TEST(Errors, DestroyedInALoop) {
  EXPECT_TILE_ERROR(__LINE__, "tile variable declared outside this loop is destroyed inside it", [](Ptr<float> p, I32 n) { std::deque<Tile> w; w.push_back(load(p)); w.push_back(load(p + 1)); for (auto i : range(n)) { w.pop_front(); w.push_back(load(p + i)); } store(p, w[0]); });
  EXPECT_TILE_ERROR(__LINE__, "tile variable declared outside this loop is destroyed inside it", [](Ptr<float> p, I32 n) { std::optional<Tile> start = load(p); Tile acc = 0.f; for (auto i : range(n)) { if (start) { acc += *start; start.reset(); } acc += 1.f; } store(p, acc); });
  EXPECT_TILE_ERROR(__LINE__, "tile variable declared outside this loop is destroyed inside it", [](Ptr<float> p, I32 n) { std::vector<Tile> v{load(p)}; for (auto i : range(n)) if_(i > 2, [&] { v.pop_back(); }); });
  // Tiles of the iteration, temporaries, copies, and what a vector leaves behind when it grows.
  EXPECT_TRUE(trace_of([](Ptr<float> p, I32 n) {
    std::vector<Tile> held{load(p)}, made;
    for (auto i : range(n)) {
      std::deque<Tile> w;
      w.push_back(load(p + i)), w.push_back(held[0]), w.pop_front();
      Tile copy = held[0];
      held.push_back(copy + 1.f), held.push_back(w[0]);
      made.push_back(copy), made.push_back(copy), made.clear();
      store(p + i, held[0] + held[1] + w[0]);
    }
  }).ok());
}

TEST(Errors, LoopCarriedShapeChange) {
  auto hint = [](auto kernel) {
    auto found = errors_of(kernel);
    return found.size() == 1 && found[0].notes.size() == 3 ? found[0].notes[2].message : "";
  };
  EXPECT_EQ(hint([](Ptr<float> p, I32 n) { Tile a = 0.f; for (auto i : range(n)) a = a + load(p + arange(0, 16)); }), "hint: start with a tile of that shape, e.g. x = zeros({...}, dtype)");
  EXPECT_EQ(hint([](Ptr<float> p, I32 n) { Tile a = zeros({16}, f32); for (auto i : range(n)) a = a.col(); }), "hint: keep the shape, with reshape, broadcast_to or squeeze, or use another variable");
}

TEST(Errors, EscapesLoop) {
  const int line = __LINE__ + 4;
  auto found = errors_of([](Ptr<float> p, I32 n) {
    std::vector<Tile> v;
    for (auto i : range(n)) v.push_back(load(p + i));
    store(p, v[0]);
  });
  expect_error(found, line, "tile value escapes the loop it was computed in", __FILE__);
}

TEST(Errors, ViewEscapesLoop) {
  const int line = __LINE__ + 4;
  auto found = errors_of([](Ptr<float> p, I32 n) {
    std::unique_ptr<Tensor<float, 1>> v;
    for (auto i : range(n)) v = std::make_unique<Tensor<float, 1>>(make_view<float>(p + i, {n}, {1}));
    v->store({0}, zeros({4}, f32));
  });
  expect_error(found, line, "tile value escapes the loop or branch it was computed in", __FILE__);
}

TEST(Errors, ViewOfTheOtherBranch) {
  const int line = __LINE__ + 3;
  auto found = errors_of([](Ptr<float> p, I32 n) {
    std::unique_ptr<Tensor<float, 1>> v;
    if_(n > 3, [&] { v = std::make_unique<Tensor<float, 1>>(make_view<float>(p + n, {n}, {1})); }, [&] { v->store({0}, zeros({4}, f32)); });
  });
  expect_error(found, line, "tile value escapes the loop or branch it was computed in", __FILE__);
}

TEST(Errors, FirstValueInsideLoop) {
  const int line = __LINE__ + 4;
  auto found = errors_of([](Ptr<float> p, I32 n) {
    Tile last;
    for (auto i : range(n)) last = load(p + i);
    store(p, last);
  });
  expect_error(found, line, "gets its first value inside a loop that may run zero times", __FILE__);
}

TEST(Errors, OneSidedIf) {
  const int line = __LINE__ + 4;
  auto found = errors_of([](Ptr<float> p, I32 n) {
    Tile r;
    if_(n > 3, [&] { r = load(p); });
    store(p, r);
  });
  expect_error(found, line, "has a value on only one side of this if", __FILE__);
}

TEST(Errors, BranchesDisagree) {
  const int line = __LINE__ + 3;
  auto found = errors_of([](F32 x, I32 n) {
    Tile r;
    if_(n > 3, [&] { r = x; }, [&] { r = n; });
  });
  expect_error(found, line, "the two sides of this if give a tile variable different types: f32 and i32", __FILE__);
}

TEST(Errors, DestroyedInsideLoop) {
  const int line = __LINE__ + 3;
  auto found = errors_of([](I32 n) {
    auto x = std::make_unique<Tile>(0);
    for (auto i : range(n)) {
      *x += i;
      x.reset();
    }
  });
  expect_error(found, line, "declared outside this loop is destroyed inside it", __FILE__);
}

TEST(Errors, HostBreak) {
  const int line = __LINE__ + 2;
  auto found = errors_of([](Ptr<float> p, I32 n) {
    for (auto i : range(n)) {
      store(p + i, 0.f);
      if (p.rank() == 0) break;
    }
  });
  expect_error(found, line, "left with a C++ break, return or goto; use break_if", __FILE__);
}

TEST(Errors, HostReturnFromNestedLoops) {
  // Two loops are left at once: both say so, and the tracer stays usable.
  auto found = errors_of([](Ptr<float> p, I32 n) {
    for (auto i : range(n))
      for (auto j : range(i)) {
        store(p + j, 0.f);
        if (p.rank() == 0) return;
      }
  });
  ASSERT_EQ(found.size(), 2u);
  for (const Diagnostic& d : found) EXPECT_NE(d.message.find("was left with a C++ break"), std::string::npos);
}

TEST(Errors, HostBreakOutOfWhen) {
  const int line = __LINE__ + 2;
  auto found = errors_of([](Ptr<float> p, I32 n) {
    for (auto _ : when(n > 3)) {
      store(p, 0.f);
      if (p.rank() == 0) break;
    }
  });
  expect_error(found, line, "the body of when() was left", __FILE__);
}

TEST(Errors, ExitsInTheWrongPlace) {
  EXPECT_TILE_ERROR(__LINE__, "continue_if must stand directly in the body of a traced loop", [](I32 n) { for (auto i : range(n)) if_(i > 3, [&] { continue_if(i > 5); }); });
  EXPECT_TILE_ERROR(__LINE__, "break_if must stand directly in the body of a traced loop", [](I32 n) { break_if(n > 3); });
  EXPECT_TILE_ERROR(__LINE__, "return_if must stand directly in the kernel's body", [](I32 n) { for (auto i : range(n)) return_if(i > 3); });
  EXPECT_TILE_ERROR(__LINE__, "continue_if must stand directly", [](I32 n) { while_([&] { continue_if(n > 1); return n > 3; }, [] {}); });
}

TEST(Errors, Conditions) {
  EXPECT_TILE_ERROR(__LINE__, "if_ needs a scalar i1 condition, found tile<4xi1>; choose per element with where()", [] { if_(arange(0, 4) > 2, [] {}); });
  EXPECT_TILE_ERROR(__LINE__, "found tile<1xi1>; take its element with to_scalar(x)", [] { if_(max(arange(0, 4), axis(0)) > 2, [] {}); });
  EXPECT_TILE_ERROR(__LINE__, "found tile<1xi32>; take its element and compare, e.g. to_scalar(x) != 0", [] { if_(max(arange(0, 4), axis(0)), [] {}); });
  EXPECT_TILE_ERROR(__LINE__, "if_ needs a scalar i1 condition, found i32; compare, e.g. x != 0", [](I32 n) { if_(n, [] {}); });
  EXPECT_TILE_ERROR(__LINE__, "while_ needs a scalar i1 condition", [](I32 n) { while_([&] { return n; }, [] {}); });
  EXPECT_TILE_ERROR(__LINE__, "the condition of while_ must not assign tile variables", [](I32 n) { Tile i = 0; while_([&] { i += 1; return i < n; }, [] {}); });
}

TEST(Errors, LoopsWithoutAnEnd) {
  const char* text = "the condition of while_ reads nothing that its body changes: the loop has no iteration or never ends";
  EXPECT_TILE_ERROR(__LINE__, text, [](Ptr<float> p) { while_([] { return true; }, [&] { store(p, 1.f); }); });
  EXPECT_TILE_ERROR(__LINE__, text, [](Ptr<float> p, I32 n) { while_([&] { return n > 3; }, [&] { store(p, 1.f); }); });
  EXPECT_TILE_ERROR(__LINE__, text, [](I32 n) { bool done = false; while_([&] { return !done; }, [&] { done = true; }); });
  EXPECT_TILE_ERROR(__LINE__, text, [](I32 n) { Tile i = 0, j = 0; while_([&] { return i + n < 3; }, [&] { j += 1; }); });
  EXPECT_TRUE(trace_of([](Ptr<int32_t> p) { while_([&] { return load(p) != 0; }, [] {}); }).ok());  // others may write
  EXPECT_TRUE(trace_of([](Ptr<int32_t> p, I32 n) { Tile i = 0; while_([] { return true; }, [&] { i += 1; break_if(i > n); }); }).ok());
  EXPECT_TRUE(trace_of([](I32 n) { Tile i = 0; while_([&] { return i < n; }, [&] { if_(n > 3, [&] { i += 1; }, [&] { i += 2; }); }); }).ok());
  EXPECT_TRUE(trace_of([](Ptr<float> p) { const bool more = false; while_([&] { return more; }, [&] { store(p, 1.f); }); }).ok());
}

TEST(Errors, Ranges) {
  EXPECT_TILE_ERROR(__LINE__, "found f32; convert with cast(x, i32)", [](F32 x) { for (auto i : range(x)) (void)i; });
  EXPECT_TILE_ERROR(__LINE__, "found tile<1xi32>; take its element with to_scalar(x)", [] { for (auto i : range(max(arange(0, 4), axis(0)))) (void)i; });
  EXPECT_TILE_ERROR(__LINE__, "the end of a range must be an integer scalar", [] { for (auto i : range(0.5)) (void)i; });
  EXPECT_TILE_ERROR(__LINE__, "the step of a range must not be 0", [](I32 n) { for (auto i : range(0, n, 0)) (void)i; });
  EXPECT_TILE_ERROR(__LINE__, "the step of a range of i32 must be above -2147483648, found -2147483648", [](I32 n) { for (auto i : range(n, 0, INT32_MIN)) (void)i; });
  EXPECT_TILE_ERROR(__LINE__, "the step of a range of i64 must be above -9223372036854775808, found", [](I64 n) { for (auto i : range(n, 0, INT64_MIN)) (void)i; });
  EXPECT_TRUE(trace_of([](I64 n, I32 m) { for (auto i : range(n, 0, INT32_MIN)) (void)i; for (auto i : range(m, 0, -INT32_MAX)) (void)i; }).ok());
  EXPECT_TILE_ERROR(__LINE__, "the start of a range must be an integer scalar (up to i64 or u32), found tile<4xi32>", [](I32 n) { for (auto i : range(arange(0, 4), n)) (void)i; });
  EXPECT_TILE_ERROR(__LINE__, "stages and unroll of a range are 0 (the compiler chooses) to 1024, found -1 and 0", [](I32 n) { for (auto i : range(0, n, 1, {.stages = -1})) (void)i; });
  EXPECT_TILE_ERROR(__LINE__, "stages and unroll of a range are 0 (the compiler chooses) to 1024, found 0 and 1025", [](I32 n) { for (auto i : range(0, n, 1, {.unroll = 1025})) (void)i; });
}

TEST(Errors, Hints) {
  EXPECT_TILE_ERROR(__LINE__, "multiple_of is about integers, found f32", [](F32 x) { auto r = multiple_of(x, 4); });
  EXPECT_TILE_ERROR(__LINE__, "multiple_of needs a positive number, found 0", [](I32 n) { auto r = multiple_of(n, 0); });
  EXPECT_TILE_ERROR(__LINE__, "num_warps must be 1, 2 or a multiple of 4 up to 32, found 3", [] { num_warps(3); });
  EXPECT_TILE_ERROR(__LINE__, "programs_per_multiprocessor must be 1 to 32, found 0", [] { programs_per_multiprocessor(0); });
  EXPECT_TILE_ERROR(__LINE__, "programs_per_multiprocessor(32) of num_warps(32) are 1024 warps; a multiprocessor holds 64, so at most 2 of these programs", [] { num_warps(32); programs_per_multiprocessor(32); });
  EXPECT_TILE_ERROR(__LINE__, "programs_per_multiprocessor(9) of num_warps(8) are 72 warps", [] { programs_per_multiprocessor(9); num_warps(8); });
  EXPECT_TRUE(trace_of([] { num_warps(8); programs_per_multiprocessor(8); }).ok());
  EXPECT_TILE_ERROR(__LINE__, "the group of swizzle2d must be at least 1, found 0", [](I32 n) { auto [i, j] = swizzle2d(program_id(0), program_id(1), n, n, 0); });
  EXPECT_TILE_ERROR(__LINE__, "store through a pointer to const elements", [](Ptr<float> p) { Ptr<const float> q = p; store(q + arange(0, 4), 1.f); });
  EXPECT_TILE_ERROR(__LINE__, "store through a pointer to const elements", [](Tensor<float, 1> x) { Tensor<const float, 1> y = x; store(y.ptr() + 1, 1.f); });
  EXPECT_TRUE(trace_of([](Tensor<float, 1> x) { Tensor<const float, 1> y = x; store(x.ptr() + 1, load(y.ptr())); }).ok());
  EXPECT_TILE_ERROR(__LINE__, "an atomic through a pointer to const elements", [](Ptr<float> p) { Ptr<const float> q = p; atomic_add(q, 1.f); });
  EXPECT_TRUE(trace_of([](Ptr<float> p) { Ptr<const float> q = p; store(p + arange(0, 4), load(q + arange(0, 4))); }).ok());
  EXPECT_TILE_ERROR(__LINE__, "programs_per_cluster must be 1, 2, 4 or 8, found 6", [] { programs_per_cluster(6); });
  EXPECT_TILE_ERROR(__LINE__, "device_print takes numbers, found ptr<f32>", [](Ptr<float> p) { device_print("p", p); });
  EXPECT_TILE_ERROR(__LINE__, "the condition of device_assert must be i1", [](I32 n) { device_assert(n, "n"); });
  EXPECT_TILE_ERROR(__LINE__, "assume(false): the condition is known while tracing, and does not hold", [] { assume(1 > 2); });
  EXPECT_TRUE(trace_of([] { assume(2 > 1); }).ok());
  EXPECT_TILE_ERROR(__LINE__, "static_check failed: BM must be a multiple of BN", [] { static_check(false, "BM must be a multiple of BN"); });
}
