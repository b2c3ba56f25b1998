// simt_test.cpp - the simulated machine itself: a hand-written TMA + wgmma GEMM computes the right numbers under every
// schedule, element type, operand form and trip count; and each fault put into it is found and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "compiler/layout/shared.h"
#include "tests/gpu/kernels.h"
#include "tests/gpu/simt/numbers.h"
#include "tests/gpu/simt/wgmma.h"
#include "tests/gpu/simt_gemm.h"

namespace tile::testing {
namespace {

uint32_t encode(const std::string& type, int x) {
  if (type == "f16") return half(x).bits;
  if (type == "bf16") return bfloat16(x).bits;
  if (type == "e4m3") return fp8_e4m3(x).bits;
  if (type == "e5m2") return fp8_e5m2(x).bits;
  if (type == "tf32") return std::bit_cast<uint32_t>(static_cast<float>(x));
  return static_cast<uint8_t>(x);
}

/// rows x cols small integers in memory, row-major.
struct Stored {
  int rows, cols;
  std::vector<int> values;
  GuardedBuffer memory;
  Stored(int r, int c, const GemmCase& g, uint32_t seed)
      : rows(r), cols(c), values(static_cast<size_t>(r * c)), memory(static_cast<size_t>(r * c * g.bytes())) {
    std::mt19937 random(seed);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<int>(random() % 7) - 3;
      uint32_t bits = encode(g.type, values[i]);
      std::memcpy(memory.as<char>() + i * static_cast<size_t>(g.bytes()), &bits, static_cast<size_t>(g.bytes()));
    }
  }
  std::vector<uint64_t> slots() const {
    return {slot(memory.as<char>()), static_cast<uint64_t>(rows), static_cast<uint64_t>(cols),
            static_cast<uint64_t>(cols), 1};
  }
};

/// How many elements are wrong. M, N: sizes of the product, any; K is kTiles stages.
int wrongElements(const GemmCase& g, int M, int N, int kTiles, uint32_t seed) {
  SimtKernel kernel = GemmIr(g).kernel();
  int K = std::max(kTiles, 1) * g.k();
  Stored a(g.aTransposed ? K : M, g.aTransposed ? M : K, g, 1), b(g.bTransposed ? K : N, g.bTransposed ? N : K, g, 2);
  GuardedBuffer c(static_cast<size_t>(M * N * 4));
  std::fill_n(c.as<float>(), M * N, -1.0f);
  std::vector<uint64_t> slots;
  for (const auto& list : {a.slots(), b.slots(),
                           std::vector<uint64_t>{slot(c.as<char>()), static_cast<uint64_t>(M), static_cast<uint64_t>(N),
                                                 static_cast<uint64_t>(N), 1}})
    slots.insert(slots.end(), list.begin(), list.end());
  slots.push_back(static_cast<uint64_t>(kTiles));
  kernel.run(slots, (M + g.m() - 1) / g.m(), (N + g.n - 1) / g.n, 1, seed);
  int wrong = 0;
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      int sum = 0;
      for (int k = 0; k < kTiles * g.k(); ++k)
        sum += a.values[static_cast<size_t>(g.aTransposed ? k * M + i : i * K + k)] *
               b.values[static_cast<size_t>(g.bTransposed ? k * N + j : j * K + k)];
      double found = g.integer() ? c.as<int32_t>()[i * N + j] : c.as<float>()[i * N + j];
      wrong += found != sum;
    }
  return wrong;
}

void runGemm(const GemmCase& g, int M, int N, int kTiles, uint32_t seed) {
  SCOPED_TRACE(fmt::format(
      "{} n {} swizzle {} stages {} consumers {} transposed {:d}{:d} registers {:d} sizes {}x{}, {} k tiles, seed {}",
      g.type, g.n, g.swizzle, g.stages, g.consumers, g.aTransposed, g.bTransposed, g.aInRegisters, M, N, kTiles, seed));
  EXPECT_EQ(wrongElements(g, M, N, kTiles, seed), 0);
}

GemmCase of(const std::string& type, DType dtype) {
  GemmCase g;
  g.type = type;
  g.dtype = dtype;
  return g;
}

TEST(SimtGemm, EveryTripCountAndSchedule) {
  for (int stages : {2, 3}) {
    GemmCase g;
    g.stages = stages;
    for (int kTiles : {0, 1, stages - 1, stages, stages + 1, 2 * stages + 1})
      for (uint32_t seed : {0u, 1u, 2u, 3u}) runGemm(g, 128, 64, kTiles, seed);
  }
}

TEST(SimtGemm, EveryElementType) {
  for (auto [type, dtype] : {std::pair<const char*, DType>{"f16", DType::f16},
                             {"bf16", DType::bf16},
                             {"tf32", DType::f32},
                             {"s8", DType::i8},
                             {"e4m3", DType::f8e4m3},
                             {"e5m2", DType::f8e5m2}})
    for (int swizzle : {32, 64, 128}) {
      GemmCase g = of(type, dtype);
      g.swizzle = swizzle;
      runGemm(g, 128, 64, 3, static_cast<uint32_t>(swizzle));
    }
}

TEST(SimtGemm, TransposedOperandsOfEverySwizzle) {
  for (int swizzle : {32, 64, 128})
    for (int which : {1, 2, 3}) {
      GemmCase g;
      g.swizzle = swizzle;
      g.aTransposed = which & 1;
      g.bTransposed = which & 2;
      if (swizzle != 128 && which != 3) continue;  // the other operand's rows would be 64 k wide: several panels
      runGemm(g, 128, 64, 3, static_cast<uint32_t>(which));
    }
}

TEST(SimtGemm, RegistersShapesAndRaggedEdges) {
  GemmCase g;
  g.aInRegisters = true;
  runGemm(g, 128, 64, 4, 1);
  g.bTransposed = true;
  runGemm(g, 128, 64, 4, 0);
  g = {};
  g.n = 160;
  g.consumers = 3;
  runGemm(g, 192, 160, 3, 0);
  g.consumers = 1;
  g.n = 32;
  runGemm(g, 100, 52, 5, 0);  // two by two programs, all ragged
}

void expectFault(Fault fault, const std::string& words, int kTiles = 5) {
  GemmCase g;
  g.fault = fault;
  for (uint32_t seed : {0u, 1u, 2u, 3u, 6u}) {
    std::string said;
    try {
      wrongElements(g, 128, 64, kTiles, seed);
    } catch (const std::exception& error) {
      said = error.what();
    }
    EXPECT_THAT(said, ::testing::HasSubstr(words)) << "seed " << seed;
  }
}

TEST(SimtFaults, ProxyFence) { expectFault(Fault::noProxyFence, "wrote without fence.proxy.async"); }
TEST(SimtFaults, StagingOverwritten) {
  expectFault(Fault::noStagingWait, "still reads it");
}
TEST(SimtFaults, StageReleasedEarly) {
  expectFault(Fault::earlyRelease, "still reads it");
}
TEST(SimtFaults, WgmmaFence) { expectFault(Fault::noWgmmaFence, "executed no wgmma.fence"); }
TEST(SimtFaults, TooFewBytes) { expectFault(Fault::tooFewBytes, "bytes"); }
TEST(SimtFaults, TooManyBytes) { expectFault(Fault::tooManyBytes, "128 bytes"); }
TEST(SimtFaults, RegisterPool) { expectFault(Fault::poolTooLarge, "setmaxnreg.inc from 168 to 240"); }
TEST(SimtFaults, BarrierNotVisible) { expectFault(Fault::noInitFence, "without fence.mbarrier_init"); }
TEST(SimtFaults, MissingArrivalIsADeadlock) { expectFault(Fault::missingArrival, "wants 1 of 2 arrivals"); }
TEST(SimtFaults, EndsTooEarly) { expectFault(Fault::noFinalWait, "without waiting until its bulk stores"); }

// A product stays in flight while the next stage is awaited: with one stage nobody gives it back.
TEST(SimtFaults, OneStageIsADeadlock) {
  GemmCase g;
  g.stages = 1;
  EXPECT_EQ(wrongElements(g, 128, 64, 1, 1), 0);
  EXPECT_THROW(wrongElements(g, 128, 64, 2, 1), std::runtime_error);
}

// What is read too early is garbage, if the schedule does not report it first: never silent.
TEST(SimtFaults, MissingWaitForTheCopies) {
  GemmCase g;
  g.fault = Fault::noFullWait;
  EXPECT_THROW(wrongElements(g, 128, 64, 5, 1), std::runtime_error);
}
TEST(SimtFaults, AccumulatorsReadInFlight) {
  GemmCase g;
  g.fault = Fault::readsInFlight;
  for (uint32_t seed : {0u, 1u, 2u}) EXPECT_EQ(wrongElements(g, 128, 64, 3, seed), 128 * 64);
}

// A kernel that takes its argument to be a multiple of 16 bytes reads vectors.
TEST(SimtFaults, MisalignedVector) {
  SimtKernel kern(kernel("%x: !tile.ptr<f32> {tile.align = 16 : i32}",
                         readTile("v", "x", {512}, "f32") + "  %w = arith.addf %v, %v : tensor<512xf32>\n" +
                             writeTile("w", "x", {512}, "f32")));
  alignas(16) float x[516] = {1.f, 2.f};
  kern.run({slot(&x[0])}, 1);
  EXPECT_EQ(x[1], 4.f);
  try {
    kern.run({slot(&x[2])}, 1);
    FAIL() << "not noticed";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("is no multiple of 16 bytes"));
  }
}

// The descriptor's addresses are those of layout/shared.h, whoever made them.
TEST(SimtDescriptor, AgreesWithSharedTiles) {
  for (int swizzle : {32, 64, 128})
    for (int bytes : {1, 2, 4}) {
      layout::SharedTile tile{64, 2 * swizzle / bytes, bytes, swizzle, 0};
      uint64_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : 3;
      MatrixDescriptor rows(mode << 62 | static_cast<uint64_t>(8 * swizzle >> 4) << 32 | 1 << 16 | 4096 >> 4);
      for (int mn = 0; mn < 64; ++mn)
        for (int k = 0; k < swizzle / bytes; ++k)
          ASSERT_EQ(rows.address(mn, k, bytes, false), 4096 + tile.address(mn, k));
      uint64_t panel = static_cast<uint64_t>(64 * swizzle);
      MatrixDescriptor columns(mode << 62 | static_cast<uint64_t>(8 * swizzle >> 4) << 32 | panel >> 4 << 16 |
                               4096 >> 4);
      for (int k = 0; k < 64; ++k)
        for (int mn = 0; mn < 2 * swizzle / bytes; ++mn)
          ASSERT_EQ(columns.address(mn, k, bytes, true), 4096 + tile.address(k, mn));
    }
}
TEST(SimtDescriptor, RefusesStrayBits) {
  EXPECT_THROW(MatrixDescriptor(uint64_t{1} << 14), std::runtime_error);
  EXPECT_THROW(MatrixDescriptor(uint64_t{1} << 49), std::runtime_error);
}

}  // namespace
}  // namespace tile::testing
