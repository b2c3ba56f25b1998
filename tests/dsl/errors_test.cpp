// errors_test.cpp - mistakes that the tracer finds: one error each, at the user's line, with a caret, and no cascades;
// those of control flow are in control_flow_errors_test.cpp.
#include <cmath>
#include <memory>
#include <thread>

#include "dsl/address.h"
#include "dsl/message.h"
#include "traced.h"

using namespace tile;
using namespace tile::testing;

// __LINE__ and the mistake it names stand on one line:
// clang-format off

// ---- values and types

TEST(Errors, Ranks) {
  EXPECT_TILE_ERROR(__LINE__, "operands have different ranks: 16 and 16x16", [](Ptr<float> p) { auto r = load(p + arange(0, 16)) + zeros({16, 16}, f32); });
}
TEST(Errors, Broadcast) {
  EXPECT_TILE_ERROR(__LINE__, "operands cannot be broadcast: 16 and 32 differ in dim 0", [](Ptr<float> p) { auto r = load(p + arange(0, 16)) + zeros({32}, f32); });
}
TEST(Errors, MixedKinds) {
  EXPECT_TILE_ERROR(__LINE__, "'+' mixes i32 and f32; convert one side with cast", [](I32 n, F32 x) { auto r = n + x; });
  EXPECT_TILE_ERROR(__LINE__, "'*' mixes i32 and u32; signed and unsigned do not mix", [](I32 n, U32 u) { auto r = n * u; });
  EXPECT_TILE_ERROR(__LINE__, "mixes tile<4xf16> and tile<4xbf16>; neither holds every value of the other", [] { auto r = zeros({4}, f16) + zeros({4}, bf16); });
  EXPECT_TILE_ERROR(__LINE__, "'+' mixes i1 and i32; an i1 is not a number", [](I32 n) { auto r = (n < 3) + n; });
}
TEST(Errors, NumbersThatAreNoEnumerators) {
  EXPECT_TILE_ERROR(__LINE__, "this number is no enumerator of Choice", [](Ptr<float> p, I32 n) { for (auto i : range(0, n, {.specialize = Choice(5)})) store(p + i, 1.f); });
  EXPECT_TILE_ERROR(__LINE__, "this number is no enumerator of Prec", [] { auto r = dot(zeros({16, 16}, f32), zeros({16, 16}, f32), Prec(9)); });
  EXPECT_TILE_ERROR(__LINE__, "this number is no enumerator of Cache", [](Ptr<float> p) { store(p, 1.f, {.cache = Cache(7)}); });
  EXPECT_TILE_ERROR(__LINE__, "this number is no enumerator of Cache", [](Tensor<float, 1> a) { auto r = a.load({0}, {4}, {.cache = Cache(7)}); });
  EXPECT_TILE_ERROR(__LINE__, "this number is no enumerator of Rounding", [](F32 x) { auto r = cast(x, f16, Rounding(4)); });
  EXPECT_TILE_ERROR(__LINE__, "this number is no enumerator of Order", [](Ptr<float> p) { atomic_add(p, 1.f, {.order = Order(8)}); });
  EXPECT_TILE_ERROR(__LINE__, "this number is no enumerator of Scope", [](Ptr<int32_t> p) { atomic_cas(p, 1, 2, {.scope = Scope(8)}); });
  EXPECT_TILE_ERROR(__LINE__, "this number is no enumerator of DType", [] { auto r = zeros({4}, DType(99)) + 1; });
  EXPECT_TILE_ERROR(__LINE__, "this number is no enumerator of DType", [](F32 x) { auto r = cast(x, DType(99)); });
  EXPECT_TILE_ERROR(__LINE__, "this number is no enumerator of DType", [](F32 x) { auto r = cast(x, DType(99), Rounding::down); });
  EXPECT_TILE_ERROR(__LINE__, "this number is no enumerator of DType", [](F32 x) { auto r = bitcast(x, DType(99)); });
  EXPECT_TILE_ERROR(__LINE__, "this number is no enumerator of DType", [](F32 x) { auto r = saturate(x, DType(99)); });
}
TEST(Errors, MultiplesThatAreNone) {
  EXPECT_TILE_ERROR(__LINE__, "multiple_of(7, 4): the number is known while tracing, and is no multiple", [](Ptr<float> p) { store(p + multiple_of(7, 4), 1.f); });
  EXPECT_TRUE(trace_of([](Ptr<float> p) { store(p + multiple_of(8, 4), 1.f); }).ok());
}
TEST(Errors, LikeWhatFailed) {
  EXPECT_TILE_ERROR(__LINE__, "mixes i32 and f32", [](I32 n, F32 x) { auto bad = n + x; auto r = zeros_like(bad) + ones_like(bad) + full_like(bad, 3) + zeros({4}, i32); });
}
TEST(Errors, MasksOfOnePlace) {
  EXPECT_TILE_ERROR(__LINE__, "a mask of tile<4xi1> for load at one place, ptr<f32>", [](Ptr<float> p, I32 n) { auto r = load(p, {.mask = arange(0, 4) < n}); });
  EXPECT_TILE_ERROR(__LINE__, "a mask of tile<4xi1> for store at one place, ptr<f32>", [](Ptr<float> p, I32 n) { store(p, 1.f, {.mask = arange(0, 4) < n}); });
  EXPECT_TRUE(trace_of([](Ptr<float> p, I32 n) { store(p, load(p, {.mask = n > 3}), {.mask = n > 4}); atomic_add(p, 1.f, {.mask = arange(0, 4) < n}); }).ok());
}
TEST(Errors, PointersOfArithmetic) {
  EXPECT_TILE_ERROR(__LINE__, "a Ptr to elements of f32 begins with an address of such, found ptr<f16>", [](Ptr<half> p, I32 n) { Ptr<float> q = p + n; });
  EXPECT_TILE_ERROR(__LINE__, "a Ptr to elements of f32 begins with an address of such, found i32", [](I32 n) { Ptr<const float> q = n + 1; });
  EXPECT_TILE_ERROR(__LINE__, "a Ptr<T> of an address of const elements", [](Ptr<const float> p, I32 n) { Ptr<float> q = p + n; });
  EXPECT_TILE_ERROR(__LINE__, "through a pointer to const elements", [](Ptr<float> p, I32 n) { Ptr<const float> q = p + n; store(q, 1.f); });
  const auto first = [](Ptr<const float> p) { return load(p); };
  EXPECT_TRUE(trace_of([&](Ptr<float> p, Ptr<const float> x, I32 n) {
    Ptr<float> row = p + n * 16;
    Ptr<const float> from = x + n;
    for (auto i : range(n)) row += 1, from = from + i;
    store(row, first(from) + first(x + n) + first(p + 1) + first(row));
  }).ok());
}
TEST(Errors, WhereOfLiterals) {
  EXPECT_TILE_ERROR(__LINE__, "'^' mixes tile<4xu8> and tile<4xi32>; signed and unsigned do not mix; convert one side with cast(x, dtype) (where() of two literals is i32 on its own)", [] { auto x = zeros({4}, u8); auto r = x ^ where(x > 3, 29, 0); });
}
TEST(Errors, SumsThatBeginAsNumbers) {
  EXPECT_TILE_ERROR(__LINE__, "'+' mixes i32 and tile<4xf32>; convert one side with cast(x, dtype); a tile that a loop adds to begins as one, e.g. zeros_like(x)", [](I32 n) { Tile m = 0; for (auto k : range(n)) m += zeros({4}, f32) + cast(k, f32); });
}
TEST(Errors, OnceForEveryPlace) {
  EXPECT_TILE_ERROR(__LINE__, "'+' mixes i32 and f32", [](I32 n, F32 x) { for (int i = 0; i < 4; ++i) auto r = n + x; });
}
TEST(Errors, FloatLiteralOnIntegers) {
  EXPECT_TILE_ERROR(__LINE__, "floating-point literal 0.5 used with a tile of i32", [](I32 n) { auto r = n * 0.5f; });
}
TEST(Errors, LiteralsOutOfRange) {
  EXPECT_TILE_ERROR(__LINE__, "literal 300 is out of range of i8 (-128 to 127)", [] { auto r = zeros({4}, i8) + 300; });
  EXPECT_TILE_ERROR(__LINE__, "literal -1 is out of range of u32 (0 to 4294967295)", [](U32 n) { auto r = n + -1; });
  EXPECT_TILE_ERROR(__LINE__, "literal 70000 is out of range of f16 (largest 65504)", [] { auto r = zeros({4}, f16) * 70000; });
  EXPECT_TILE_ERROR(__LINE__, "literal 3000000000 is out of range of i32", [](I32 n) { auto r = n + 3000000000; });
  EXPECT_TILE_ERROR(__LINE__, "bool literal used with a tile of f32", [](F32 x) { auto r = x + true; });
  EXPECT_TILE_ERROR(__LINE__, "f8e4m3 has no infinity", [] { auto r = full({4}, INFINITY, f8e4m3); });
}
TEST(Errors, OperationsAndElementTypes) {
  EXPECT_TILE_ERROR(__LINE__, "'&' is not defined on f32; it takes integers", [](F32 x) { auto r = x & x; });
  EXPECT_TILE_ERROR(__LINE__, "'exp2' is not defined on i32; it takes floats", [](I32 n) { auto r = exp2(n); });
  EXPECT_TILE_ERROR(__LINE__, "'<' is not defined on i1; an i1 is not a number", [](I32 n) { auto r = (n < 3) < (n > 4); });
  EXPECT_TILE_ERROR(__LINE__, "'!' is not defined on i32; it takes i1", [](I32 n) { auto r = !(n + 1); });
  EXPECT_TILE_ERROR(__LINE__, "'+' is not defined on f8e4m3; compute in a wider type", [] { auto r = zeros({4}, f8e4m3) + 1; });
  EXPECT_TILE_ERROR(__LINE__, "'mulhi' is not defined on f32; it takes integers", [](F32 x) { auto r = mulhi(x, x); });
}
TEST(Errors, Orders) {
  EXPECT_TILE_ERROR(__LINE__, "axis 1 is out of range for tile<16xi32>", [] { auto r = sort(arange(0, 16), axis(1)); });
  EXPECT_TILE_ERROR(__LINE__, "sort is not defined on tile<16xf8e4m3>; it takes integers, f16, bf16, f32 and f64", [] { auto r = argsort(zeros({16}, f8e4m3), axis(0)); });
  EXPECT_TILE_ERROR(__LINE__, "axis 2 is out of range for tile<16xi32>", [] { auto [v, i] = topk(arange(0, 16), 4, axis(2)); });
  EXPECT_TILE_ERROR(__LINE__, "topk of 17 along an axis of 16 elements: tile<16xi32>", [] { auto [v, i] = topk(arange(0, 16), 17, axis(0)); });
  EXPECT_TILE_ERROR(__LINE__, "axis -2 is out of range for tile<16xi32>", [] { auto r = flip(arange(0, 16), axis(-2)); });
  EXPECT_TILE_ERROR(__LINE__, "'floor_mod' of i32 by the literal 0", [](I32 n) { auto r = floor_mod(n, 0); });
}
TEST(Errors, Histograms) {
  EXPECT_TILE_ERROR(__LINE__, "histogram counts the values of an i32 tile, found tile<16xf32>", [](Ptr<float> p) { auto r = histogram(load(p + arange(0, 16)), 4); });
  EXPECT_TILE_ERROR(__LINE__, "histogram needs a tile, found the scalar i32", [](I32 n) { auto r = histogram(n, 4); });
  EXPECT_TILE_ERROR(__LINE__, "tile dims must be positive, found 0", [] { auto r = histogram(arange(0, 16), 0); });
  EXPECT_TILE_ERROR(__LINE__, "weights are numbers, found ptr<f32>; load() gives what is there", [](Ptr<float> p) { auto r = histogram(arange(0, 16), 4, {.weight = p}); });
  EXPECT_TILE_ERROR(__LINE__, "operands cannot be broadcast: 16 and 8 differ in dim 0", [] { auto r = histogram(arange(0, 16), 4, {.weight = arange(0, 8)}); });
}
TEST(Errors, Pointers) {
  EXPECT_TILE_ERROR(__LINE__, "'*' is not defined on pointers", [](Ptr<float> p) { auto r = p * 2; });
  EXPECT_TILE_ERROR(__LINE__, "'+' is not defined on pointers", [](Ptr<float> p, Ptr<float> q) { auto r = p + q; });
  EXPECT_TILE_ERROR(__LINE__, "must be an integer, found f32", [](Ptr<float> p, F32 x) { auto r = p + x; });
  EXPECT_TILE_ERROR(__LINE__, "'exp' is not defined on pointers", [](Ptr<float> p) { auto r = exp(p); });
}
TEST(Errors, Casts) {
  EXPECT_TILE_ERROR(__LINE__, "cast expects numbers, found ptr<f32>", [](Ptr<float> p) { auto r = cast(p, i64); });
  EXPECT_TILE_ERROR(__LINE__, "saturate converts numbers to numbers, found tile<4xi1> to i8", [] { auto r = saturate(arange(0, 4) < 2, i8); });
  EXPECT_TILE_ERROR(__LINE__, "bitcast needs elements of equal size: f32 to i64", [](F32 x) { auto r = bitcast(x, i64); });
  EXPECT_TILE_ERROR(__LINE__, "scalar must be i32 (or narrower, of the same kind), found i64", [](I64 n) { I32 r = n; });
  EXPECT_TILE_ERROR(__LINE__, "expected a scalar of i32, found tile<4xi32>", [] { I32 r = arange(0, 4); });
}
TEST(Errors, Where) {
  EXPECT_TILE_ERROR(__LINE__, "the condition of where must be i1", [](I32 n) { auto r = where(n, 1, 2); });
  EXPECT_TILE_ERROR(__LINE__, "'where' mixes", [](I32 n, F32 x) { auto r = where(n > 0, n, x); });
}

// ---- shapes

TEST(Errors, Shapes) {
  EXPECT_TILE_ERROR(__LINE__, "tile dims must be positive, found 0 as dim 1", [] { auto r = zeros({4, 0}, f32); });
  EXPECT_TILE_ERROR(__LINE__, "a tile has at most 4194304 elements", [] { auto r = zeros({1 << 20, 1 << 20, 1 << 20, 1 << 20}, f32); });
  EXPECT_TILE_ERROR(__LINE__, "a tile has at most 8 dims, found 9", [] { auto r = zeros({1, 1, 1, 1, 1, 1, 1, 1, 1}, f32); });
  EXPECT_TILE_ERROR(__LINE__, "arange needs low < high", [] { auto r = arange(4, 4); });
  EXPECT_TILE_ERROR(__LINE__, "reshape keeps the number of elements: tile<4x4xf32> has 16, the new shape 8", [] { auto r = reshape(zeros({4, 4}, f32), {8}); });
  EXPECT_TILE_ERROR(__LINE__, "squeeze drops dims of size 1; dim 0 of tile<4x1xf32> has size 4", [] { auto r = squeeze(zeros({4, 1}, f32), 0); });
  EXPECT_TILE_ERROR(__LINE__, ".col() makes a Nx1 tile of one with 1 dim, found tile<4x4xf32>", [] { auto r = zeros({4, 4}, f32).col(); });
  EXPECT_TILE_ERROR(__LINE__, ".row() makes a 1xN tile of one with 1 dim, found tile<4x4xf32>", [] { auto r = zeros({4, 4}, f32).row(); });
  EXPECT_TILE_ERROR(__LINE__, ".row() needs a tile, found the scalar f32", [](F32 x) { auto r = x.row(); });
  EXPECT_TILE_ERROR(__LINE__, "axis 3 is out of range for tile<4x1xf32>", [] { auto r = squeeze(zeros({4, 1}, f32), 3); });
  EXPECT_TILE_ERROR(__LINE__, "broadcast_to only repeats dims of size 1", [] { auto r = broadcast_to(zeros({4, 4}, f32), {4, 1}); });
  EXPECT_TILE_ERROR(__LINE__, "trans needs at least 2 dims, found tile<4xf32>", [] { auto r = trans(zeros({4}, f32)); });
  EXPECT_TILE_ERROR(__LINE__, "permute must name each of the 2 dims of tile<4x2xf32> once, found {0, 0}", [] { auto r = permute(zeros({4, 2}, f32), {0, 0}); });
  EXPECT_TILE_ERROR(__LINE__, "tiles put together along axis 0 must agree in everything else", [] { auto r = cat(zeros({4, 2}, f32), zeros({4, 3}, f32)); });
  EXPECT_TILE_ERROR(__LINE__, "extract needs one offset and one size per dim, inside tile<4x4xf32>, found offsets {2, 0} and sizes {4, 4}", [] { auto r = extract(zeros({4, 4}, f32), {2, 0}, {4, 4}); });
  EXPECT_TILE_ERROR(__LINE__, "inside tile<4xf32>, found offsets {9223372036854775807} and sizes {4}", [] { auto r = extract(zeros({4}, f32), {INT64_MAX}, {4}); });
  EXPECT_TILE_ERROR(__LINE__, "insert needs a part of the same element type and one offset per dim, inside tile<4x4xf32>, found tile<2x2xf32> and offsets {3, 0}", [] { auto r = insert(zeros({4, 4}, f32), zeros({2, 2}, f32), {3, 0}); });
  EXPECT_TILE_ERROR(__LINE__, "inside tile<4xf32>, found tile<2xf16> and offsets {0}", [] { auto r = insert(zeros({4}, f32), zeros({2}, f16), {0}); });
  EXPECT_TILE_ERROR(__LINE__, "inside tile<4xf32>, found tile<2xf32> and offsets {9223372036854775807}", [] { auto r = insert(zeros({4}, f32), zeros({2}, f32), {INT64_MAX}); });
  EXPECT_TILE_ERROR(__LINE__, "inside tile<4xf32>, found tile<2xf32> and offsets {0, 0}", [] { auto r = insert(zeros({4}, f32), zeros({2}, f32), {0, 0}); });
  EXPECT_TILE_ERROR(__LINE__, "found tile<4xi64>; convert with cast(x, i32)", [] { auto r = take(zeros({4}, f32), zeros({4}, i64), 0); });
  EXPECT_TILE_ERROR(__LINE__, "take needs i32 indices: one number, a list of one dim, or a tile that agrees with tile<4x8xf32> outside axis 1, found tile<2x8xi32>", [] { auto r = take(zeros({4, 8}, f32), zeros({2, 8}, i32), 1); });
  EXPECT_TILE_ERROR(__LINE__, "found tile<2x2x2xi32>", [] { auto r = take(zeros({4, 8}, f32), zeros({2, 2, 2}, i32), 1); });
  EXPECT_TILE_ERROR(__LINE__, "found i64; convert with cast(x, i32)", [](I64 k) { auto r = take(zeros({4, 8}, f32), k, 1); });
  EXPECT_TILE_ERROR(__LINE__, "lower_bound needs a table of one dim, numbers in ascending order, found tile<4x2xf32>", [] { auto r = lower_bound(zeros({4, 2}, f32), 1.f); });
  EXPECT_TILE_ERROR(__LINE__, "what upper_bound looks for must be i32 (or narrower, of the same kind), found f32", [](F32 x) { auto r = upper_bound(arange(0, 4), x); });
  EXPECT_TILE_ERROR(__LINE__, "put needs i32 indices, found tile<4xi64>; convert with cast(x, i32)", [] { auto r = put(zeros({4}, f32), zeros({4}, i64), 1.f, 0); });
  EXPECT_TILE_ERROR(__LINE__, "what is put into tile<4xf16> must be f16 (or narrower, of the same kind), found tile<8xf32>; convert with cast(x, f16)", [] { auto r = put(zeros({4}, f16), zeros({8}, i32), zeros({8}, f32), 0); });
  EXPECT_TILE_ERROR(__LINE__, "put needs indices and values that agree with tile<4x2xf32> outside axis 0, found tile<8xi32> and tile<8xf32>", [] { auto r = put(zeros({4, 2}, f32), zeros({8}, i32), zeros({8}, f32), 0); });
  EXPECT_TILE_ERROR(__LINE__, "the mask of put must be i1, found tile<8xi32>; compare, e.g. x != 0", [] { auto r = put(zeros({4}, f32), zeros({8}, i32), 1.f, 0, {.mask = zeros({8}, i32)}); });
  EXPECT_TILE_ERROR(__LINE__, "unpack takes integers, found tile<4xf32>", [] { auto r = unpack(zeros({4}, f32), 4, axis(0), i32); });
  EXPECT_TILE_ERROR(__LINE__, "unpack takes numbers of bits that divide a word of 32, found 5", [] { auto r = unpack(zeros({4}, u32), 5, axis(0), i32); });
  EXPECT_TILE_ERROR(__LINE__, "unpack takes numbers of bits that divide a word of 8, found 8", [] { auto r = unpack(zeros({4}, u8), 8, axis(0), i32); });
  EXPECT_TILE_ERROR(__LINE__, "a tile has at most 8 dims, found 9", [] { auto r = repeat(zeros({1, 1, 1, 1, 1, 1, 1, 2}, f32), 2, axis(7)); });
  EXPECT_TILE_ERROR(__LINE__, "repeat needs a positive number, found 0", [] { auto r = repeat(zeros({4}, f32), 0, axis(0)); });
  EXPECT_TILE_ERROR(__LINE__, "repeat makes too large a tile", [] { auto r = repeat(zeros({4}, f32), INT64_MAX, axis(0)); });
  EXPECT_TILE_ERROR(__LINE__, "the filling of shift is a scalar, found tile<4xf32>", [] { auto r = shift(zeros({4}, f32), 1, axis(0), {.fill = zeros({4}, f32)}); });
  EXPECT_TILE_ERROR(__LINE__, "the filling of shift must be i32 (or narrower, of the same kind), found f32", [](F32 x) { auto r = shift(zeros({4}, i32), 1, axis(0), {.fill = x}); });
  EXPECT_TILE_ERROR(__LINE__, "axis 1 is out of range for tile<4xf32>", [] { auto r = shift(zeros({4}, f32), 1, axis(1)); });
  EXPECT_TILE_ERROR(__LINE__, "a box has at most as many dims as its tensor (3, of which 1 with only(..)), found 3", [](Tensor<const float, 3> A) { auto r = A.load({0, only(1), 0}, {4, 4, 4}); });
  EXPECT_TILE_ERROR(__LINE__, "a box has at most as many dims as its tensor (2, of which 1 with only(..)), found tile<4x4xf32>", [](Tensor<float, 2> A) { A.store({0, only(1)}, zeros({4, 4}, f32)); });
  EXPECT_TILE_ERROR(__LINE__, "split needs a tile whose last dim has size 2", [] { auto r = split(zeros({4}, f32)); });
  EXPECT_TILE_ERROR(__LINE__, "trans needs a tile, found the scalar f32", [](F32 x) { auto r = trans(x); });
  EXPECT_TILE_ERROR(__LINE__, "to_scalar needs a tile of one element, found tile<4xf32>", [] { auto r = to_scalar(zeros({4}, f32)); });
  EXPECT_TILE_ERROR(__LINE__, "program_id takes axis 0, 1 or 2, found 3", [] { auto r = program_id(3); });
  EXPECT_TILE_ERROR(__LINE__, "num_programs takes axis 0, 1 or 2, found -1", [] { auto r = num_programs(-1); });
}

TEST(Errors, LiteralsOnTheRight) {
  EXPECT_TILE_ERROR(__LINE__, "'<<' moves the bits of i32 by 0 to 31, found 40", [](I32 n) { auto r = n << 40; });
  EXPECT_TILE_ERROR(__LINE__, "'>>' moves the bits of u8 by 0 to 7, found 8", [] { auto r = zeros({4}, u8) >> 8; });
  EXPECT_TILE_ERROR(__LINE__, "'<<' moves the bits of i64 by 0 to 63, found -1", [](I64 n) { auto r = n << -1; });
  EXPECT_TILE_ERROR(__LINE__, "'/' of i32 by the literal 0", [](I32 n) { auto r = n / 0; });
  EXPECT_TILE_ERROR(__LINE__, "'%' of i32 by the literal 0", [](I32 n) { auto r = n % 0; });
}
TEST(Errors, VerbsMadeOfOthers) {
  EXPECT_TILE_ERROR(__LINE__, "'softmax' is not defined on tile<4xi32>; it takes floats", [] { auto r = softmax(arange(0, 4), axis(0)); });
  EXPECT_TILE_ERROR(__LINE__, "'sigmoid' is not defined on i32; it takes floats", [](I32 n) { auto r = sigmoid(n); });
  EXPECT_TILE_ERROR(__LINE__, "'offset of random numbers' is not defined on f32; it takes integers", [](F32 x) { auto r = rand(3, x); });
}

// ---- memory

TEST(Errors, Loads) {
  EXPECT_TILE_ERROR(__LINE__, "the offset of a box must be an integer scalar, found the literal 0.5 as offset 1", [](Tensor<const float, 2> A) { auto r = A.load({0, 0.5}, {4, 4}); });
  EXPECT_TILE_ERROR(__LINE__, "load expects a pointer or a tile of pointers, found i32", [](I32 n) { auto r = load(n); });
  EXPECT_TILE_ERROR(__LINE__, "mask must be i1", [](Ptr<float> p, I32 n) { auto r = load(p, {.mask = n}); });
  EXPECT_TILE_ERROR(__LINE__, "`other` is what masked-off lanes read: it needs a mask", [](Ptr<float> p) { auto r = load(p, {.other = 1}); });
  EXPECT_TILE_ERROR(__LINE__, "`other` must be f32", [](Ptr<float> p, I32 n) { auto r = load(p, {.mask = n > 0, .other = n}); });
  EXPECT_TILE_ERROR(__LINE__, "operands cannot be broadcast: 16 and 32", [](Ptr<float> p) { auto r = load(p + arange(0, 16), {.mask = arange(0, 32) < 3}); });
}
TEST(Errors, Stores) {
  EXPECT_TILE_ERROR(__LINE__, "the stored value must be f16 (or narrower, of the same kind), found tile<4xf32>; convert with cast(x, f16)", [](Ptr<half> p) { store(p + arange(0, 4), zeros({4}, f32)); });
  EXPECT_TILE_ERROR(__LINE__, "store expects a pointer or a tile of pointers, found tile<4xf32>; the pointer comes first, then the value", [](Ptr<float> p) { store(zeros({4}, f32), p + arange(0, 4)); });
  EXPECT_TILE_ERROR(__LINE__, "the stored value must be f32, found tile<4xptr<f32>>, an address; load() gives what is there", [](Ptr<float> p) { store(p + arange(0, 4), p + arange(0, 4)); });
  EXPECT_TILE_ERROR(__LINE__, "does not fit the pointers ptr<f32>; one place takes one value, such as sum(x)", [](Ptr<float> p) { store(p, zeros({4}, f32)); });
}
TEST(Errors, WritesToConst) {
  EXPECT_TILE_ERROR(__LINE__, "store through a pointer to const elements", [](Ptr<const float> p) { store(p + arange(0, 4), 1.f); });
  EXPECT_TILE_ERROR(__LINE__, "store through a pointer to const elements", [](Ptr<const float> p, I32 n) { for (auto i : range(n)) store(p + i, 1.f); });
  EXPECT_TILE_ERROR(__LINE__, "store through a pointer to const elements", [](Ptr<const float> p, I32 n) { Tile q = p; for (auto i : range(n)) q += 1; store(q, 1.f); });
  EXPECT_TILE_ERROR(__LINE__, "store through a pointer to const elements", [](Ptr<const float> p, Ptr<float> o, I32 n) { Tile q = o; if_(n > 3, [&] { q = p; }); store(q, 1.f); });
  EXPECT_TILE_ERROR(__LINE__, "an atomic through a pointer to const elements", [](Tensor<const float, 2> x) { atomic_add(x.ptr() + 3, 1.f); });
  EXPECT_TILE_ERROR(__LINE__, "store through a pointer to const elements", [](Ptr<const float> p, I32 n) { make_view<float>(p + n, {n}, {1}).store({0}, zeros({4}, f32)); });
  EXPECT_TILE_ERROR(__LINE__, "an atomic through a pointer to const elements", [](Ptr<const float> p, I32 n) { make_view<float>(p + n, {n}, {1}).atomic_add({0}, zeros({4}, f32)); });
  EXPECT_TILE_ERROR(__LINE__, "an atomic through a pointer to const elements", [](Ptr<const int32_t> p) { atomic_cas(p, 1, 2); });
  EXPECT_TRUE(trace_of([](Ptr<float> p, Ptr<const float> q) { store(p, load(q)); }).ok());
  // Every choice doubles the ways back to p; they are not all walked.
  EXPECT_TRUE(trace_of([](Ptr<float> p, Ptr<const float> q, B1 c) {
                Tile at = p + 0;
                for (int i = 0; i < 60; ++i) at = where(c, at, at + i);
                store(at, load(q));
              }).ok());
}
TEST(Errors, Views) {
  EXPECT_TILE_ERROR(__LINE__, "the offset of a box must be an integer scalar, found tile<4xi32> as offset 0", [](Tensor<const float, 1> a) { auto r = a.load({arange(0, 4)}, {4}); });
  EXPECT_TILE_ERROR(__LINE__, "a box has at most as many dims as its tensor (1), found 2", [](Tensor<const float, 1> a) { auto r = a.load({0}, {4, 4}); });
  EXPECT_TILE_ERROR(__LINE__, "the stored value must be f16", [](Tensor<half, 2> c) { c.store({0, 0}, zeros({4, 4}, f32)); });
  EXPECT_TILE_ERROR(__LINE__, "dim 2 is out of range for a tensor of 2 dims", [](Tensor<half, 2> c) { auto r = c.dim(2); });
  EXPECT_TILE_ERROR(__LINE__, "floating-point literal 0.5 used with a tile of i32", [](Tensor<const int32_t, 1> a) { auto r = a.load({0}, {4}, {.pad = 0.5}); });
  EXPECT_TILE_ERROR(__LINE__, "pointer_to needs addresses that are i64 or u64, found i32", [](I32 n) { auto r = pointer_to<half>(n); });
  EXPECT_TILE_ERROR(__LINE__, "make_view needs a pointer to f16, found ptr<f32>", [](Ptr<float> p, I32 n) { auto r = make_view<half>(p + 1, {n, 4}, {4, 1}); });
}
TEST(Errors, Atomics) {
  EXPECT_TILE_ERROR(__LINE__, "bitwise atomics are defined on integers, found f32", [](Ptr<float> p) { atomic_and(p, 1.f); });
  EXPECT_TILE_ERROR(__LINE__, "atomics are not defined on f8e4m3", [](Ptr<fp8_e4m3> p) { atomic_exchange(p, load(p)); });
  EXPECT_TILE_ERROR(__LINE__, "atomic_add to a tensor is defined on floats of 16 to 64 bits and integers of 32 and 64, found i8", [](Tensor<int8_t, 2> t) { t.atomic_add({0, 0}, zeros({4, 4}, i8)); });
  EXPECT_TILE_ERROR(__LINE__, "a box has at most as many dims as its tensor (1), found", [](Tensor<float, 1> t) { t.atomic_add({0}, zeros({4, 4}, f32)); });
  EXPECT_TILE_ERROR(__LINE__, "atomic_cas compares integers, found f32; take the memory as integers of that size", [](Ptr<float> p) { atomic_cas(p, 1.f, 2.f); });
}

// ---- across elements

TEST(Errors, Reductions) {
  EXPECT_TILE_ERROR(__LINE__, "axis 2 is out of range for tile<4x4xf32>", [] { auto r = max(zeros({4, 4}, f32), axis(2)); });
  EXPECT_TILE_ERROR(__LINE__, "'any' is not defined on tile<4xi32>; it takes i1", [] { auto r = any(arange(0, 4), axis(0)); });
  EXPECT_TILE_ERROR(__LINE__, "sum needs a tile of numbers, found the scalar f32", [](F32 x) { auto r = sum(x, axis(0)); });
  EXPECT_TILE_ERROR(__LINE__, "'max' is not defined on tile<4xi1>; conditions combine with any(x), all(x) or sum(x)", [] { auto r = max(zeros({4}, i1), axis(0)); });
  EXPECT_TILE_ERROR(__LINE__, "'xor_sum' is not defined on tile<4xf32>; it takes integers", [] { auto r = xor_sum(zeros({4}, f32), axis(0)); });
}
TEST(Errors, Combiners) {
  EXPECT_TILE_ERROR(__LINE__, "a combiner may use only its arguments and constants", [](F32 x) { auto r = reduce(zeros({4}, f32), axis(0), [&](Tile a, Tile b) { return a + x * b; }); });
  EXPECT_TILE_ERROR(__LINE__, "the combiner's result must be f32", [] { auto r = reduce(zeros({4}, f32), axis(0), [](Tile a, Tile b) { return a < b; }); });
  EXPECT_TILE_ERROR(__LINE__, "cannot be used inside a combiner", [](Ptr<float> p) { auto r = reduce(zeros({4}, f32), axis(0), [](Tile a, Tile b) { auto t = trans(zeros({2, 2}, f32)); return a; }); });
  EXPECT_TILE_ERROR(__LINE__, "if_ cannot be used inside a combiner; use where", [] { auto r = scan(zeros({4}, f32), axis(0), [](Tile a, Tile b) { if_(a < b, [&] { a = b; }); return a; }); });
  EXPECT_TILE_ERROR(__LINE__, "tiles combined together must have one shape", [] { auto r = reduce({arange(0, 4), arange(0, 8)}, axis(0), [](Tile a, Tile b, Tile c, Tile d) { return std::tuple(a, b); }); });
}
TEST(Errors, ExtremesWithTheirPlaces) {
  EXPECT_TILE_ERROR(__LINE__, "'max_with_index' is not defined on tile<4xi1>", [] { auto r = max_with_index(arange(0, 4) > 2, axis(0)); });
  EXPECT_TILE_ERROR(__LINE__, "axis 2 is out of range for tile<4xi32>", [] { auto r = min_with_index(arange(0, 4), axis(2)); });
}
TEST(Errors, Roundings) {
  EXPECT_TILE_ERROR(__LINE__, "cast of i64 to f32 rounds to nearest only; other roundings take integers of up to 32 bits", [](I64 n) { auto r = cast(n, f32, Rounding::up); });
  EXPECT_TILE_ERROR(__LINE__, "cast to bf16 expects numbers, found ptr<f32>", [](Ptr<float> p) { auto r = cast(p, bf16, Rounding::down); });
  EXPECT_TILE_ERROR(__LINE__, "cast_stochastic rounds floats to floats of fewer bits, found f32 to i32", [](F32 x) { auto r = cast_stochastic(x, i32, 3u); });
  EXPECT_TILE_ERROR(__LINE__, "cast_stochastic rounds floats to floats of fewer bits, found tile<4xf16> to bf16", [] { auto r = cast_stochastic(zeros({4}, f16), bf16, randint(1, arange(0, 4))); });
  EXPECT_TILE_ERROR(__LINE__, "the random bits of cast_stochastic must be u32 (or narrower, of the same kind), found f32", [](F32 x) { auto r = cast_stochastic(x, bf16, x); });
  EXPECT_TILE_ERROR(__LINE__, "'div_rn' is not defined on i32; it takes floats", [](I32 n) { auto r = div_rn(n, n); });
}
TEST(Errors, RowsByNumber) {
  EXPECT_TILE_ERROR(__LINE__, "gather takes row numbers as an integer tile of 1 dim, found tile<4xf32>", [](Tensor<float, 2> x) { auto r = x.gather(zeros({4}, f32), 0, 16); });
  EXPECT_TILE_ERROR(__LINE__, "gather takes row numbers as an integer tile of 1 dim, found i32", [](Tensor<float, 2> x, I32 n) { auto r = x.gather(n, 0, 16); });
  EXPECT_TILE_ERROR(__LINE__, "the column gather begins at is an integer scalar, found tile<16xi32>", [](Tensor<float, 2> x) { auto r = x.gather(arange(0, 4), arange(0, 16), 16); });
  EXPECT_TILE_ERROR(__LINE__, "tile dims must be positive, found -16 as dim 1", [](Tensor<float, 2> x) { auto r = x.gather(arange(0, 4), 0, -16); });
  EXPECT_TILE_ERROR(__LINE__, "operands cannot be broadcast: 4x16 and 8x16 differ in dim 0", [](Tensor<float, 2> x) { x.scatter(arange(0, 4), 0, zeros({8, 16}, f32)); });
  EXPECT_TILE_ERROR(__LINE__, "scatter writes a tile of rows and columns, found tile<4xf32>", [](Tensor<float, 2> x) { x.scatter(arange(0, 4), 0, zeros({4}, f32)); });
  EXPECT_TILE_ERROR(__LINE__, "the stored value must be f16", [](Tensor<half, 2> x) { x.scatter(arange(0, 4), 0, zeros({4, 16}, f32)); });
}
TEST(Errors, BoxesUnderMasks) {
  EXPECT_TILE_ERROR(__LINE__, "mask must be i1, found tile<4xi32>", [](Tensor<float, 1> x) { x.store({0}, zeros({4}, f32), {.mask = arange(0, 4)}); });
  EXPECT_TILE_ERROR(__LINE__, "operands cannot be broadcast: 4 and 8 differ in dim 0", [](Tensor<float, 1> x) { x.store({0}, zeros({4}, f32), {.mask = arange(0, 8) < 3}); });
  EXPECT_TILE_ERROR(__LINE__, "the stored value must be f16", [](Tensor<half, 1> x) { x.store({0}, zeros({4}, f32), {.mask = arange(0, 4) < 3}); });
  EXPECT_TILE_ERROR(__LINE__, "the offset of a box must be an integer scalar, found tile<4xi32>", [](Tensor<float, 1> x) { auto r = x.load({arange(0, 4)}, {4}, {.mask = true}); });
  EXPECT_TILE_ERROR(__LINE__, "a box has at most as many dims as its tensor (1), found 2", [](Tensor<float, 1> x) { auto r = x.load({0}, {4, 4}, {.mask = true}); });
}
TEST(Errors, Dot) {
  EXPECT_TILE_ERROR(__LINE__, "dot: inner dimensions do not agree: tile<16x32xf16> * tile<16x32xf16>; where the second has a row for every column of the result, write dot(a, trans(b))", [] { auto r = dot(zeros({16, 32}, f16), zeros({16, 32}, f16)); });
  EXPECT_TILE_ERROR(__LINE__, "dot: operands must have 2 dims", [] { auto r = dot(zeros({16}, f16), zeros({16, 16}, f16)); });
  EXPECT_TILE_ERROR(__LINE__, "dot: operands must have 2 dims, or 3", [] { auto r = dot(zeros({2, 16, 16}, f16), zeros({16, 16}, f16)); });
  EXPECT_TILE_ERROR(__LINE__, "dot: operands hold different numbers of matrices", [] { auto r = dot(zeros({2, 16, 16}, f16), zeros({3, 16, 16}, f16)); });
  EXPECT_TILE_ERROR(__LINE__, "dot: operands must have one element type", [] { auto r = dot(zeros({16, 16}, f16), zeros({16, 16}, bf16)); });
  EXPECT_TILE_ERROR(__LINE__, "dot: operands must be f16, bf16, f8, f32, f64 or i8, found i32", [] { auto r = dot(zeros({16, 16}, i32), zeros({16, 16}, i32)); });
  EXPECT_TILE_ERROR(__LINE__, "dot_bits: operands must be words of 32 bits, u32 or i32, found f32; their bits are bitcast(x, u32)", [] { auto r = dot_bits(zeros({16, 16}, f32), zeros({16, 16}, f32)); });
  EXPECT_TILE_ERROR(__LINE__, "dot_bits: operands must be words of 32 bits, u32 or i32, found u8", [] { auto r = dot_bits(zeros({16, 16}, u32), zeros({16, 16}, u8)); });
  EXPECT_TILE_ERROR(__LINE__, "dot_bits: operands must have one element type, found tile<16x16xu32> and tile<16x16xi32>", [] { auto r = dot_bits(zeros({16, 16}, u32), zeros({16, 16}, i32)); });
  EXPECT_TILE_ERROR(__LINE__, "dot_bits: inner dimensions do not agree: tile<16x32xu32> * tile<16x32xu32>; where the second has a row for every column of the result, write dot_bits(a, trans(b))", [] { auto r = dot_bits(zeros({16, 32}, u32), zeros({16, 32}, u32)); });
  EXPECT_TILE_ERROR(__LINE__, "the accumulator of dot_bits must be i32", [] { auto r = dot_bits(zeros({16, 16}, u32), zeros({16, 16}, u32), zeros({16, 16}, u32)); });
  EXPECT_TILE_ERROR(__LINE__, "dot_bits: the accumulator is tile<8x16xi32> but the product is tile<16x16xi32>", [] { auto r = dot_bits(zeros({16, 16}, u32), zeros({16, 16}, u32), zeros({8, 16}, i32)); });
  EXPECT_TILE_ERROR(__LINE__, "the accumulator is tile<8x16xf32> but the product is tile<16x16xf32>", [] { auto r = dot(zeros({16, 16}, f16), zeros({16, 16}, f16), zeros({8, 16}, f32)); });
  EXPECT_TILE_ERROR(__LINE__, "the accumulator of dot must be i32", [] { auto r = dot(zeros({16, 16}, i8), zeros({16, 16}, i8), zeros({16, 16}, f32)); });
}
TEST(Errors, ScaledProducts) {
  EXPECT_TILE_ERROR(__LINE__, "dot_scaled: the first operand must have 2 dims, found tile<16xu8>", [] { auto r = dot_scaled({zeros({16}, u8)}, {zeros({16, 16}, u8)}); });
  EXPECT_TILE_ERROR(__LINE__, "dot_scaled: the second operand must be f8e4m3, f8e5m2, f16, bf16 or u8 (two e2m1 numbers), found tile<16x16xf32>", [] { auto r = dot_scaled({zeros({16, 8}, u8)}, {zeros({16, 16}, f32)}); });
  EXPECT_TILE_ERROR(__LINE__, "dot_scaled: inner dimensions do not agree, 32 and 64 numbers: tile<16x16xu8> and tile<32x16xu8>", [] { auto r = dot_scaled({zeros({16, 16}, u8)}, {zeros({32, 16}, u8)}); });
  EXPECT_TILE_ERROR(__LINE__, "the first operand is 16x64 (rows by K): its factors are 16xG, G a divisor of 64, found tile<16x3xu8>", [] { auto r = dot_scaled({zeros({16, 32}, u8), zeros({16, 3}, u8)}, {zeros({64, 8}, bf16)}); });
  EXPECT_TILE_ERROR(__LINE__, "the second operand is 8x64 (columns of the product by K): its factors are 8xG, G a divisor of 64, found tile<2x8xu8>", [] { auto r = dot_scaled({zeros({16, 64}, bf16)}, {zeros({32, 8}, u8), zeros({2, 8}, u8)}); });
  EXPECT_TILE_ERROR(__LINE__, "its factors are 32xG, G a divisor of 32, found tile<16x2xu8>; the second operand is K by columns: trans(w)?", [] { auto r = dot_scaled({zeros({16, 32}, bf16)}, {zeros({16, 32}, u8), zeros({16, 2}, u8)}); });
  EXPECT_TILE_ERROR(__LINE__, "the second operand has factors of u8 (e8m0) or f8e4m3, found tile<8x2xf32>", [] { auto r = dot_scaled({zeros({16, 64}, bf16)}, {zeros({32, 8}, u8), zeros({8, 2}, f32)}); });
  EXPECT_TILE_ERROR(__LINE__, "the first operand holds one number per element, found .packed_along_k = false with tile<16x64xbf16>", [] { auto r = dot_scaled({.values = zeros({16, 64}, bf16), .packed_along_k = false}, {zeros({32, 8}, u8)}); });
  EXPECT_TILE_ERROR(__LINE__, "dot_scaled: f16 and bf16 do not mix", [] { auto r = dot_scaled({zeros({16, 64}, bf16)}, {zeros({64, 8}, f16), zeros({8, 2}, u8)}); });
  EXPECT_TILE_ERROR(__LINE__, "the accumulator is tile<16x16xf32> but the product is tile<16x8xf32>", [] { auto r = dot_scaled({zeros({16, 64}, bf16)}, {zeros({32, 8}, u8)}, zeros({16, 16}, f32)); });
  EXPECT_TILE_ERROR(__LINE__, "from_e2m1 takes u8, found tile<4xi32>", [] { auto r = from_e2m1(arange(0, 4), bf16); });
  EXPECT_TILE_ERROR(__LINE__, "from_e2m1 gives f16, bf16 or f32, found f64", [] { auto r = from_e2m1(zeros({4}, u8), f64); });
  EXPECT_TILE_ERROR(__LINE__, "axis 1 is out of range for tile<4xu8>", [] { auto r = from_e2m1(zeros({4}, u8), f16, axis(1)); });
  EXPECT_TILE_ERROR(__LINE__, "from_e8m0 takes u8, found f32", [](F32 x) { auto r = from_e8m0(x, bf16); });
}
TEST(Errors, Assembly) {
  EXPECT_TILE_ERROR(__LINE__, "inline_asm: argument 0 (i32) takes 1 register like \"r\", found \"l\" as constraint 1", [](I32 n) { auto r = inline_asm("mov.b32 $0, $1;", "=r,l", {n}, i32); });
  EXPECT_TILE_ERROR(__LINE__, "inline_asm: result 0 (i32) takes 1 register like \"=r\", found \"r\" as constraint 0", [](I32 n) { auto r = inline_asm("mov.b32 $0, $1;", "r,r", {n}, i32); });
  EXPECT_TILE_ERROR(__LINE__, "inline_asm: result 0 (f32) takes 4 registers like \"=r\": the constraints have too few, \"=r,=r\"", [](I32 n) { auto r = inline_asm("x;", "=r,=r", {n}, f32, {.pack = 4}); });
  EXPECT_TILE_ERROR(__LINE__, "the constraints \"=r,r,r\" have 3 registers, results and arguments take 2", [](I32 n) { auto r = inline_asm("mov.b32 $0, $1;", "=r,r,r", {n}, i32); });
  EXPECT_TILE_ERROR(__LINE__, "`$2` names no register: the constraints have 2, counted from $0", [](I32 n) { auto r = inline_asm("mov.b32 $0, $2;", "=r,r", {n}, i32); });
  EXPECT_TILE_ERROR(__LINE__, "`${0:x}` names no register: write $0, $1 .., and $$ for a dollar", [](I32 n) { auto r = inline_asm("mov.b32 ${0:x}", "=r,r", {n}, i32); });
  EXPECT_TILE_ERROR(__LINE__, "`$` names no register", [](I32 n) { auto r = inline_asm("mov.b32 $0, $1; $", "=r,r", {n}, i32); });
  EXPECT_TILE_ERROR(__LINE__, "`$99999999` names no register", [](I32 n) { auto r = inline_asm("mov.b32 $0, $99999999999999999999;", "=r,r", {n}, i32); });
  EXPECT_TILE_ERROR(__LINE__, "inline_asm: the text is empty", [](I32 n) { auto r = inline_asm(" ", "=r,r", {n}, i32); });
  EXPECT_TILE_ERROR(__LINE__, "inline_asm: the text has a zero byte", [](I32 n) { auto r = inline_asm(std::string("a\0b", 3), "=r,r", {n}, i32); });
  EXPECT_TILE_ERROR(__LINE__, "inline_asm: pack must be 1, 2, 4, 8 or 16, found 3", [](I32 n) { auto r = inline_asm("x;", "=r,r", {n}, i32, {.pack = 3}); });
  EXPECT_TILE_ERROR(__LINE__, "inline_asm: argument 0 is i1: cast it to u8 or u32", [](I32 n) { auto r = inline_asm("x;", "=r,r", {n < 3}, i32); });
  EXPECT_TILE_ERROR(__LINE__, "inline_asm takes numbers, found ptr<f32> as argument 0", [](Ptr<float> p) { auto r = inline_asm("x;", "=r,l", {p}, i32); });
  EXPECT_TILE_ERROR(__LINE__, "operands cannot be broadcast: 4 and 8 differ in dim 0", [] { auto r = inline_asm("x;", "=r,r,r", {arange(0, 4), arange(0, 8)}, i32); });
  EXPECT_TILE_ERROR(__LINE__, "inline_asm: its form for hosts gives f32 as result 0, expected i32", [](I32 n) { auto r = inline_asm("mov.b32 $0, $1;", "=r,r", {n}, i32, {}, [](Tile x) { return cast(x, f32); }); });
  EXPECT_TILE_ERROR(__LINE__, "inline_asm cannot be used inside a combiner", [] { auto r = reduce(arange(0, 4), axis(0), [](Tile a, Tile b) { return inline_asm("add.s32 $0, $1, $2;", "=r,r,r", {a, b}, i32); }); });
}

// ---- the whole

TEST(Errors, IndependentMistakesAreAllReportedOnce) {
  const int line = __LINE__ + 4;
  auto found = errors_of([](Ptr<const half> A, Ptr<float> C, I32 n) {
    auto a = load(A + arange(0, 64).col() * n + arange(0, 32).row());
    auto b = zeros({64, 64}, f16);
    auto acc = dot(a, b);                                                   // 1: inner dimensions
    acc = acc * 2.f + acc;                                                  //    silent: already reported
    for (auto i : range(n)) acc = dot(a, trans(a), acc) + i * 0.5f;         // 2: float literal on i32
    auto m = max(a, axis(2));                                               // 3: no such axis
    store(C + arange(0, 64), m);
  });
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(static_cast<int>(found[0].line), line);
  EXPECT_EQ(static_cast<int>(found[1].line), line + 2);
  EXPECT_EQ(static_cast<int>(found[2].line), line + 3);
}

TEST(Errors, TheMessageShowsTheSourceLine) {
  auto found = errors_of([](I32 n) { auto unusual_name = n * 0.5f; });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].to_string().find("auto unusual_name = n * 0.5f"), std::string::npos);
}

TEST(Errors, NamesTheKernelAndItsConfiguration) {
  struct Cfg { int BM = 8; bool causal = true; };
  auto t = kernel("named", [](const Cfg& c, I32 n) { static_check(c.BM == 9, "no"); }).trace({.BM = 16});
  EXPECT_NE(t.error().message.find("kernel 'named' {BM=16, causal=true}: 1 error while tracing"), std::string::npos) << t.error().message;
}

TEST(Errors, ExceptionsOfTheUserPassThrough) {
  auto k = kernel("k", [](Ptr<float> p, I32 n) {
    for (auto i : range(n)) if_(i > 3, [&] { store(p, 1.f); throw 42; });
  });
  EXPECT_THROW((void)k.trace(), int);
  EXPECT_TRUE(trace_of([](I32 n) { auto r = n + 1; }).ok());  // nothing is left behind
}

// What a loop of each element cannot say of tiles of other shapes, and what has no mask.
TEST(Errors, LoopsOfElements) {
  EXPECT_TILE_ERROR(__LINE__, "a tile that is assigned has the shape {8, 4} in a while_ over elements of the shape {8, 2}", [](Ptr<float> p) { Tile n = zeros({8, 2}, i32), x = zeros({8, 4}, f32); while_([&] { return n < 3; }, [&] { n += 1; x += 1.f; }); store(p + arange(0, 8).col() * 4 + arange(0, 4).row(), x); });
  EXPECT_TILE_ERROR(__LINE__, "load has the shape {4} in a while_ over elements of the shape {8}", [](Ptr<float> p) { Tile n = zeros({8}, i32); while_([&] { return n < 3; }, [&] { n += cast(sum(load(p + arange(0, 4))), i32); }); });
  EXPECT_TILE_ERROR(__LINE__, "a store to a Tensor has no mask, and in a while_ over elements some are done", [](Tensor<int, 1> y) { Tile n = arange(0, 8); while_([&] { return n < 3; }, [&] { n += 1; y.store({0}, n); }); });
  EXPECT_TILE_ERROR(__LINE__, "the condition of while_ has the shape {4} in a while_ over elements of the shape {8}", [](Ptr<float>) { Tile n = arange(0, 8), m = arange(0, 4); while_([&] { return n < 3; }, [&] { n += 1; while_([&] { return m < 3; }, [&] { m += 1; }); }); });
  EXPECT_TILE_ERROR(__LINE__, "the begin of narrow must be an integer scalar, found f32", [](Tensor<int, 1> y) { (void)y.narrow(0, 1.f + cast(y.load({0}), f32), 2).load({0}); });
  EXPECT_TILE_ERROR(__LINE__, "dim 2 is out of range for a tensor of 2 dims", [](Tensor<int, 2> y) { (void)y.select(2, 0).load({0}); });
}

// Caught in the body they leave a construct without its code: the launch must not go on as if nothing had been there.
TEST(Errors, ExceptionsThatLeaveAConstruct) {
  EXPECT_TILE_ERROR(__LINE__, "an exception left this loop while it was traced", [](Ptr<float> p, I32 n) { try { for (auto i : range(n)) { store(p + i, 1.f); throw 1; } } catch (int) {} store(p, 2.f); });
  EXPECT_TILE_ERROR(__LINE__, "an exception left this loop", [](Ptr<float> p, I32 n) { Tile i = 0; try { while_([&] { return i < n; }, [&] { i += 1; throw 1; }); } catch (int) {} store(p + i, 2.f); });
  EXPECT_TILE_ERROR(__LINE__, "an exception left this loop", [](Ptr<float> p, I32 n) { try { while_([&]() -> Tile { throw 1; }, [&] { store(p, 1.f); }); } catch (int) {} });
  EXPECT_TILE_ERROR(__LINE__, "an exception left this branch", [](Ptr<float> p, I32 n) { Tile x = 0.f; try { if_(n > 3, [&] { x += 1.f; throw 1; }); } catch (int) {} store(p, x); });
  EXPECT_TILE_ERROR(__LINE__, "an exception left this branch", [](Ptr<float> p, I32 n) { Tile x = 0.f; try { if_(n > 3, [&] { x += 1.f; }, [&] { store(p, 1.f); throw 1; }); } catch (int) {} store(p, x); });
  EXPECT_TILE_ERROR(__LINE__, "an exception left this branch", [](Ptr<float> p, I32 n) { try { for (auto _ : when(n > 3)) { store(p, 1.f); throw 1; } } catch (int) {} store(p, 2.f); });
  EXPECT_TILE_ERROR(__LINE__, "an exception left this combiner", [](Ptr<float> p) { try { auto y = reduce(load(p + arange(0, 16)), axis(0), [](Tile a, Tile) -> Tile { if (a.rank() == 0) throw 1; return a; }); } catch (int) {} store(p, 2.f); });
  EXPECT_TILE_ERROR(__LINE__, "an exception left this combiner", [](Ptr<float> p) { Tile x = load(p + arange(0, 16)); try { auto y = scan({x, x}, axis(0), [](Tile a, Tile b, Tile, Tile) { if (a.rank() == 0) throw 1; return std::tuple(a, b); }); } catch (int) {} store(p, 2.f); });
  // Of several that one leaves, the innermost.
  EXPECT_TILE_ERROR(__LINE__, "an exception left this branch", [](Ptr<float> p, I32 n) { try { for (auto i : range(n)) { store(p + i, 1.f); if_(i > 3, [&] { store(p, 1.f); throw 1; }); } } catch (int) {} });
  // In a loop that goes on, which carries what the inner one assigned.
  EXPECT_TILE_ERROR(__LINE__, "an exception left this loop", [](Ptr<float> p, I32 n) { Tile x = 0.f, y = 1.f; for (auto j : range(n)) { y += x; try { for (auto i : range(j)) { break_if(i > 7); x += y; throw 1; } } catch (int) {} } store(p, x + y); });
  // Inside of one construct nothing is left.
  EXPECT_TRUE(trace_of([](Ptr<float> p, I32 n) { for (auto i : range(n)) { try { store(p + i, 1.f); throw 1; } catch (int) {} } }).ok());
  auto k = kernel("k", [](Ptr<float> p, I32 n) { try { for (auto i : range(n)) { store(p + i, 1.f); throw 1; } } catch (int) {} });
  std::vector<float> y(4);
  const Status launched = k.try_launch(open_device("host").value_or_throw()->default_stream(), {}, {1}, y.data(), 4);
  ASSERT_FALSE(launched.ok());
  EXPECT_NE(launched.error().to_string().find("an exception left this loop"), std::string::npos) << launched.error().to_string();
}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winfinite-recursion"
static void never_ends(const Tile& x) { never_ends(x + 1); }
#pragma GCC diagnostic pop
TEST(Errors, RecursionWithoutAnEnd) {
  const auto found = errors_of([](I32 n) { never_ends(n); });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].message.find("the trace is too deep: a C++ function that calls itself"), std::string::npos) << found[0].message;
  EXPECT_TRUE(trace_of([](I32 n) { auto r = n + 1; }).ok());  // nothing is left behind
}

TEST(Errors, TileOfAnotherTrace) {
  std::unique_ptr<Tile> kept;
  EXPECT_TRUE(trace_of([&](I32 n) { kept = std::make_unique<Tile>(n); }).ok());
  EXPECT_TILE_ERROR(__LINE__, "tile variable belongs to another trace", [&](I32 n) { auto r = n + *kept; });
}

TEST(Errors, KeptTilesNameALineOfTheKernel) {
  static std::vector<Tile> keep;
  const auto body = [](Ptr<float> p) { keep.push_back(load(p)); };
  EXPECT_TRUE(trace_of(body).ok());
  const auto found = errors_of(body);  // the container grows, and copies the tile of the trace before
  const int line = __LINE__ - 3;
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found[0].message.find("tile variable belongs to another trace"), std::string::npos) << found[0].message;
  ASSERT_EQ(found[0].notes.size(), 2u);
  EXPECT_EQ(found[0].notes[0].message, "the last operation before it was recorded here");
  EXPECT_EQ(found[0].notes[0].file, __FILE__);
  EXPECT_EQ(static_cast<int>(found[0].notes[0].line), line);
  EXPECT_EQ(found[0].notes[1].message, "while the kernel that is defined here was traced");
}

TEST(Errors, ThreadsInABody) {
  ::testing::internal::CaptureStderr();
  const auto found = errors_of([](Ptr<float> p, F32 x) {
    std::thread([&] { store(p, x); }).join();
  });
  (void)::testing::internal::GetCapturedStderr();
  const int line = __LINE__ - 3;
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found[0].message.find("used in another thread than the one that traces its kernel"), std::string::npos) << found[0].message;
  EXPECT_EQ(static_cast<int>(found[0].line), line);
}

TEST(Errors, TileOutsideOfAKernelIsReportedNotFatal) {
  ::testing::internal::CaptureStderr();
  Tile x = 3;
  Tile y = x + 1;
  std::thread([&] { Tile z = y; }).join();
  for (int i = 0; i < 3; ++i) Tile z = x;
  const std::string said = ::testing::internal::GetCapturedStderr();
  const std::string message = "tile operation outside of a kernel being traced", line = std::to_string(__LINE__ - 2) + ":";
  EXPECT_NE(said.find(message), std::string::npos) << said;
  const size_t first = said.find(line);
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find(line, first + 1), std::string::npos) << "once for a line:\n" << said;
}

// ---- remarks: right, and hardly meant

TEST(Remarks, BodiesThatRecordNothing) {
  const auto remarks = [](auto body) {
    const Traced t = trace_of(body);
    EXPECT_TRUE(t.ok()) << t.error().to_string();
    std::string text;
    for (const Diagnostic& d : t.remarks()) text += std::to_string(d.line) + ": " + d.message + "\n";
    return text;
  };
  const std::string left = "records nothing, so nothing happens in it: if it is left with a C++ return or continue";
  auto at = [&](int line, const std::string& what) { return std::to_string(line) + ": a body of this " + what + " " + left; };
  EXPECT_EQ(remarks([](Ptr<float> p, I32 n) { if_(n > 3, [&] { return; }); store(p, 1.f); }).find(at(__LINE__, "if_ or when")), 0u);
  EXPECT_EQ(remarks([](Ptr<float> p, I32 n) { for (auto _ : when(n == 2)) continue; store(p, 1.f); }).find(at(__LINE__, "if_ or when")), 0u);
  EXPECT_EQ(remarks([](Ptr<float> p, I32 n) { if_(n > 3, [&] { return; }, [&] { store(p, 1.f); }); }).find(at(__LINE__, "if_")), 0u);
  EXPECT_EQ(remarks([](Ptr<float> p, I32 n) { for (auto i : range(n)) continue; store(p, 1.f); }).find(at(__LINE__, "range")), 0u);
  // What a configuration leaves empty traces as before; what assigns, or only stores, says nothing.
  constexpr bool kVerbose = false;
  EXPECT_NE(remarks([](I32 n) { if_(n > 3, [&] { if constexpr (kVerbose) device_print("n", n); }); }), "");
  EXPECT_EQ(remarks([](Ptr<float> p, I32 n) { Tile x = 1.f, y = 2.f; if_(n > 3, [&] { x = y; }); store(p, x); }), "");
  EXPECT_EQ(remarks([](Ptr<float> p, I32 n) { if_(n > 3, [&] { store(p, 1.f); }); for (auto i : range(n)) store(p + i, 2.f); }), "");
  EXPECT_EQ(remarks([](Ptr<float> p, I32 n) { Tile i = 0; while_([&] { return load(p + i) > 0.f; }, [&] { i += 1; }); }), "");
  // A loop that waits for others does nothing else.
  EXPECT_EQ(remarks([](Ptr<int32_t> p) { while_([&] { return atomic_add(p, 0) == 0; }, [&] {}); }), "");
}

// What wrappers of kernels say of their arguments.
TEST(Errors, MessagesWithValues) {
  const int64_t shape[] = {2, 3};
  EXPECT_EQ(message("{} must be {}, found {}", "{}", std::span<const int64_t>(shape), std::span<const int64_t>()), "{} must be [2, 3], found []");
  EXPECT_EQ(message("{} and {} of {} {}", 0.1, 0.1f, int8_t(-3), std::string("rows")), "0.1 and 0.1 of -3 rows");
  EXPECT_EQ(message("no values"), "no values");
}
