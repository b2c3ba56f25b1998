// Kernels in text form with random damage: whatever comes out, the compiler answers with code or an error, never a crash.
// TILE_FUZZ_ITERATIONS makes the run longer, TILE_FUZZ_FIRST starts it at a later seed, TILE_FUZZ_TRACE prints each text,
// TILE_FUZZ_FILES=directory damages the .mlir files there instead (what TILE_DUMP=traced prints of the random kernels).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "compiler/compiler.h"

namespace tile::ir {
namespace {

const char* const kSeeds[] = {
    R"(func.func @add(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
  %c256 = arith.constant 256 : i32
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c256 : i32
  %starts = tile.splat %start : i32 -> tensor<256xi32>
  %iota = tile.iota : tensor<256xi32>
  %offs = arith.addi %starts, %iota : tensor<256xi32>
  %ns = tile.splat %n : i32 -> tensor<256xi32>
  %mask = arith.cmpi slt, %offs, %ns : tensor<256xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>>
  %xp = tile.ptr_add %xs, %offs : tensor<256x!tile.ptr<f32>>, tensor<256xi32>
  %a = tile.gather %xp mask %mask : tensor<256xi1> : tensor<256x!tile.ptr<f32>> -> tensor<256xf32>
  %b = arith.addf %a, %a : tensor<256xf32>
  tile.scatter %b, %xp mask %mask : tensor<256xi1> : tensor<256xf32>, tensor<256x!tile.ptr<f32>>
  return
}
)",
    R"(func.func @rows(%v: !tile.view<2xf16> {tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %w: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %pid = tile.program_id 0
  %row = arith.muli %pid, %c16 : i32
  %x = tile.load %v[%row, %c0 : i32, i32] pad 0.0 : !tile.view<2xf16> -> tensor<16x64xf16>
  %f = arith.extf %x : tensor<16x64xf16> to tensor<16x64xf32>
  %m = tile.reduce %f axis 1 : (tensor<16x64xf32>) -> tensor<16x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.maximumf %a, %b : f32
    tile.yield %s : f32
  }
  %mb = tile.broadcast %m : tensor<16x1xf32> -> tensor<16x64xf32>
  %d = arith.subf %f, %mb : tensor<16x64xf32>
  %e = math.exp %d : tensor<16x64xf32>
  tile.store %e, %w[%row, %c0 : i32, i32] : tensor<16x64xf32>, !tile.view<2xf32>
  return
}
)",
    R"(func.func @product(%a: !tile.view<2xf16>, %b: !tile.view<2xf16>, %c: !tile.view<2xf32>, %k: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %r = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
    %x = tile.load %a[%c0, %i : i32, i32] : !tile.view<2xf16> -> tensor<32x32xf16>
    %y = tile.load %b[%i, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<32x32xf16>
    %t = tile.trans %y, [1, 0] : tensor<32x32xf16> -> tensor<32x32xf16>
    %next = tile.dot %x, %t, %acc : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<32x32xf32>, !tile.view<2xf32>
  return
}
)",
    R"(func.func @control(%p: !tile.ptr<i32>, %q: !tile.ptr<f16>, %n: i32 {tile.multiple_of = 16 : i32}, %c: i1) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %eight = arith.constant dense<8> : tensor<8x4xi32>
  %iota = tile.iota : tensor<32xi32>
  %square = tile.reshape %iota : tensor<32xi32> -> tensor<8x4xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<8x4x!tile.ptr<i32>>
  %pp = tile.ptr_add %ps, %square : tensor<8x4x!tile.ptr<i32>>, tensor<8x4xi32>
  %r:2 = scf.while (%i = %c0, %at = %pp) : (i32, tensor<8x4x!tile.ptr<i32>>) -> (i32, tensor<8x4x!tile.ptr<i32>>) {
    %more = arith.cmpi slt, %i, %n : i32
    scf.condition(%more) %i, %at : i32, tensor<8x4x!tile.ptr<i32>>
  } do {
  ^bb0(%i: i32, %at: tensor<8x4x!tile.ptr<i32>>):
    %old = tile.atomic_rmw add acq_rel gpu %at, %square : tensor<8x4x!tile.ptr<i32>>, tensor<8x4xi32> -> tensor<8x4xi32>
    %next = arith.addi %i, %c1 : i32
    %moved = scf.if %c -> (tensor<8x4x!tile.ptr<i32>>) {
      %far = tile.ptr_add %at, %eight : tensor<8x4x!tile.ptr<i32>>, tensor<8x4xi32>
      scf.yield %far : tensor<8x4x!tile.ptr<i32>>
    } else {
      %near = tile.ptr_add %at, %old : tensor<8x4x!tile.ptr<i32>>, tensor<8x4xi32>
      scf.yield %near : tensor<8x4x!tile.ptr<i32>>
    }
    scf.yield %next, %moved : i32, tensor<8x4x!tile.ptr<i32>>
  }
  %last = tile.gather %r#1 : tensor<8x4x!tile.ptr<i32>> -> tensor<8x4xi32>
  %sums = tile.scan %last axis 0 : (tensor<8x4xi32>) -> tensor<8x4xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  tile.scatter %sums, %pp : tensor<8x4xi32>, tensor<8x4x!tile.ptr<i32>>
  return
}
)",
    R"(func.func @shapes(%v: !tile.view<1xf32>, %q: !tile.ptr<i64>) attributes {tile.kernel, tile.num_warps = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %x = tile.load %v[%c0 : i32] cache streaming : !tile.view<1xf32> -> tensor<96xf32>
  %m = tile.reshape %x : tensor<96xf32> -> tensor<12x8xf32>
  %t = tile.trans %m, [1, 0] : tensor<12x8xf32> -> tensor<8x12xf32>
  %e = tile.extract %t [2, 4] : tensor<8x12xf32> -> tensor<4x8xf32>
  %d = tile.cat %e, %e axis 1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x16xf32>
  %i = tile.iota : tensor<64xi32>
  %ii = tile.reshape %i : tensor<64xi32> -> tensor<4x16xi32>
  %c15 = arith.constant dense<15> : tensor<4x16xi32>
  %idx = arith.andi %ii, %c15 : tensor<4x16xi32>
  %g = tile.take %d, %idx axis 1 : tensor<4x16xf32>, tensor<4x16xi32> -> tensor<4x16xf32>
  %m0:2 = tile.reduce %g, %idx axis 0 : (tensor<4x16xf32>, tensor<4x16xi32>) -> (tensor<1x16xf32>, tensor<1x16xi32>) {
  ^bb0(%a: f32, %ia: i32, %b: f32, %ib: i32):
    %gt = arith.cmpf ogt, %a, %b : f32
    %mx = arith.select %gt, %a, %b : f32
    %ix = arith.select %gt, %ia, %ib : i32
    tile.yield %mx, %ix : f32, i32
  }
  %one = tile.reduce %m0#0 axis 1 : (tensor<1x16xf32>) -> tensor<1x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  %item = tile.item %one : tensor<1x1xf32> -> f32
  %pos = arith.cmpf ogt, %item, %item : f32
  scf.if %pos {
    tile.print "sum" %one : tensor<1x1xf32>
  }
  %ok = arith.cmpi sge, %m0#1, %m0#1 : tensor<1x16xi32>
  tile.assert %ok, "ordered" : tensor<1x16xi1>
  %w = arith.fptosi %g : tensor<4x16xf32> to tensor<4x16xi64>
  %qs = tile.splat %q : !tile.ptr<i64> -> tensor<4x16x!tile.ptr<i64>>
  %qq = tile.ptr_add %qs, %ii : tensor<4x16x!tile.ptr<i64>>, tensor<4x16xi32>
  %cas = tile.atomic_cas relaxed cta %qq, %w, %w : tensor<4x16x!tile.ptr<i64>>, tensor<4x16xi64>, tensor<4x16xi64> -> tensor<4x16xi64>
  tile.scatter %cas, %qq : tensor<4x16xi64>, tensor<4x16x!tile.ptr<i64>>
  return
}
)"};

std::vector<std::string> textsToDamage() {
  const char* directory = std::getenv("TILE_FUZZ_FILES");
  if (!directory) return {std::begin(kSeeds), std::end(kSeeds)};
  std::vector<std::string> names, texts;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".mlir") names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    std::ifstream file(name);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

class Damage {
 public:
  explicit Damage(uint64_t seed) : random_(seed) {}

  std::string apply(std::string text) {
    const bool isLong = text.size() > 4096;  // one change to whole words is enough to break it
    for (size_t n = isLong ? 1 : 1 + pick(3); n > 0; --n) text = once(std::move(text), isLong ? 2 : 6);
    return text;
  }

 private:
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  std::string once(std::string text, size_t kinds) {
    if (text.empty()) return text;
    switch (pick(kinds)) {
      case 0: return replaceToken(std::move(text), kNumbers, std::size(kNumbers), [](char c) { return c >= '0' && c <= '9'; });
      case 1: return replaceWord(std::move(text));
      case 2: {  // a line goes, or comes twice
        const size_t begin = text.rfind('\n', pick(text.size())), end = text.find('\n', begin == std::string::npos ? 0 : begin + 1);
        if (begin == std::string::npos || end == std::string::npos) return text;
        const std::string line = text.substr(begin, end - begin);
        return pick(2) ? text.erase(begin, line.size()) : text.insert(begin, line);
      }
      case 3: return text.erase(pick(text.size()), 1 + pick(4));
      case 4: return text.substr(0, pick(text.size()));
      default: text[pick(text.size())] = static_cast<char>(pick(256)); return text;
    }
  }

  std::string replaceWord(std::string text) {
    static constexpr const char* words[][2] = {{"f32", "f16"}, {"f16", "i8"}, {"i32", "i64"}, {"i32", "i1"}, {"f32", "f64"}, {"addf", "mulf"}, {"arith.addf", "arith.addi"}, {"256x", ""}, {"16x64", "64x16"}, {"32x32", "48x32"}, {"tile.splat", "tile.broadcast"}, {"axis 1", "axis 0"}, {"slt", "eq"}, {"16x64", "17x61"}, {"8x4", "4x8"}, {"axis 0", "axis 1"}, {"4x16", "5x16"}, {"relaxed", "acquire"}, {"add ", "umax "}, {"arith.addi", "arith.divsi"}, {"arith.addf", "arith.remf"}, {"i32", "i16"}, {"f32", "bf16"}, {"f16", "f8E4M3FN"}, {"[1, 0]", "[0, 1]"}};
    const auto& [from, to] = words[pick(std::size(words))];
    std::vector<size_t> places;
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1)) places.push_back(at);
    if (places.empty()) return text;
    if (pick(2)) {  // everywhere: more often still a kernel
      for (auto it = places.rbegin(); it != places.rend(); ++it) text.replace(*it, std::strlen(from), to);
      return text;
    }
    return text.replace(places[pick(places.size())], std::strlen(from), to);
  }

  template <class Is>
  std::string replaceToken(std::string text, const char* const* choices, size_t count, Is&& is) {
    size_t at = pick(text.size());
    while (at < text.size() && !is(text[at])) ++at;
    size_t end = at;
    while (end < text.size() && is(text[end])) ++end;
    const std::string old = text.substr(at, end - at), fresh = choices[pick(count)];
    if (old.empty()) return text;
    if (pick(2)) return text.replace(at, old.size(), fresh);
    for (size_t p = text.find(old); p != std::string::npos; p = text.find(old, p + fresh.size())) text.replace(p, old.size(), fresh);
    return text;
  }

  static constexpr const char* kNumbers[] = {"0", "1", "2", "3", "7", "16", "48", "100", "255", "512", "-1", "65536", "4294967296", "9223372036854775807", "99999999999999999999"};
  std::mt19937_64 random_;
};

TEST(Mutation, SeedsCompileUndamaged) {
  CompileOptions options;
  options.ptxas = "none";
  for (const char* seed : kSeeds)
    for (const char* name : {"host", "sm_80", "sm_90a"}) {
      auto binary = compileText(seed, "seed.mlir", lookupTarget(name).value_or_throw(), options);
      EXPECT_TRUE(binary) << name << "\n" << seed << binary.error().to_string();
    }
}

TEST(Mutation, AnyTextIsAnsweredNotCrashed) {
  const char* more = std::getenv("TILE_FUZZ_ITERATIONS");
  const uint64_t iterations = more ? std::strtoull(more, nullptr, 10) : 400;
  const char* from = std::getenv("TILE_FUZZ_FIRST");
  const uint64_t first = from ? std::strtoull(from, nullptr, 10) : 0;
  const Target host = lookupTarget("host").value_or_throw();
  const Target gpus[] = {lookupTarget("sm_80").value_or_throw(), lookupTarget("sm_90a").value_or_throw()};
  const std::vector<std::string> texts = textsToDamage();
  ASSERT_FALSE(texts.empty());
  CompileOptions options;
  options.ptxas = "none";
  uint64_t kernels = 0;
  for (uint64_t seed = first; seed < first + iterations; ++seed) {
    const std::string text = Damage(seed).apply(texts[seed % texts.size()]);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    if (std::getenv("TILE_FUZZ_TRACE")) std::fprintf(stderr, "seed %llu\n%s\n", static_cast<unsigned long long>(seed), text.c_str());
    auto status = checkText(text, "mutated.mlir");
    if (!status) {
      EXPECT_EQ(status.error().kind, ErrorKind::user);
      EXPECT_FALSE(status.error().diagnostics.empty());
      continue;
    }
    ++kernels;
    for (const Target* target : {&host, &gpus[0], &gpus[1]}) {
      auto binary = compileText(text, "mutated.mlir", *target, options);
      // What passed the gate may exceed the target, but must not break the compiler.
      const bool broken = !binary && binary.error().kind == ErrorKind::internal;
      EXPECT_FALSE(broken) << target->name << "\n" << binary.error().to_string();
    }
  }
  EXPECT_GT(kernels, iterations / 20) << "the damage leaves too few kernels to test the back ends";
}

}  // namespace
}  // namespace tile::ir
