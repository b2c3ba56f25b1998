// Debug rings decoded: tiles are put together again from records in any order; assertions name their place.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <vector>

#include "runtime/debug.h"
#include "runtime/float_types.h"

namespace tile {
namespace {

class RingTest : public testing::Test {
 protected:
  explicit RingTest(uint32_t capacity = 4096) : words_(2 + 4 * capacity) { init_debug_ring(ring(), capacity); }
  DebugRing& ring() { return *reinterpret_cast<DebugRing*>(words_.data()); }
  void write(uint32_t site, std::array<uint32_t, 3> program, uint32_t element, uint64_t bits) {
    const uint32_t at = ring().next++;
    if (at < ring().capacity) records_of(&ring())[at] = {site, {program[0], program[1], program[2]}, element, 0, bits};
  }
  DebugSite site(DebugSite::Kind kind, DType dtype, std::vector<int> shape, std::string message) {
    return {kind, std::move(message), dtype, std::move(shape), "k.cpp", 12};
  }
  DebugReport read() { return read_debug_ring(kernel_, ring()); }
  void SetUp() override { kernel_.entry = "k"; }

  KernelBinary kernel_;
  std::vector<uint64_t> words_;
};

TEST_F(RingTest, Scalars) {
  kernel_.debug_sites = {site(DebugSite::print, DType::i32, {}, "n"), site(DebugSite::print, DType::f16, {}, "x")};
  write(0, {1, 2, 3}, 0, static_cast<uint32_t>(-5));
  write(1, {0, 0, 0}, 0, half(1.5).bits);
  EXPECT_EQ((std::vector<std::string>{"k (1, 2, 3): n = -5", "k (0, 0, 0): x = 1.5"}), read().prints);
}

TEST_F(RingTest, ValuesKeepTheirDigits) {
  kernel_.debug_sites = {site(DebugSite::print, DType::i32, {}, "a"), site(DebugSite::print, DType::i64, {}, "b"),
                         site(DebugSite::print, DType::u64, {}, "c"), site(DebugSite::print, DType::f32, {}, "d")};
  write(0, {}, 0, 2147483647);
  write(1, {}, 0, static_cast<uint64_t>(INT64_MIN));
  write(2, {}, 0, UINT64_MAX);
  write(3, {}, 0, std::bit_cast<uint32_t>(-INFINITY));
  EXPECT_EQ((std::vector<std::string>{"k (0, 0, 0): a = 2147483647", "k (0, 0, 0): b = -9223372036854775808",
                                      "k (0, 0, 0): c = 18446744073709551615", "k (0, 0, 0): d = -inf"}),
            read().prints);
}

TEST_F(RingTest, TileInAnyOrder) {
  kernel_.debug_sites = {site(DebugSite::print, DType::i32, {2, 3}, "t")};
  std::vector<uint32_t> order{0, 1, 2, 3, 4, 5};
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  for (uint32_t e : order) write(0, {}, e, e * 10);
  EXPECT_EQ("k (0, 0, 0): t 2x3xi32 = [[ 0, 10, 20],\n                          [30, 40, 50]]", read().prints.at(0));
}

TEST_F(RingTest, ProgramsAndRepetitionsAreKeptApart) {
  kernel_.debug_sites = {site(DebugSite::print, DType::i32, {2}, "t")};
  // Program 0 prints twice, its second lane running ahead; program 1 prints once in between.
  write(0, {0, 0, 0}, 1, 101);
  write(0, {1, 0, 0}, 0, 7);
  write(0, {0, 0, 0}, 1, 201);
  write(0, {0, 0, 0}, 0, 100);
  write(0, {1, 0, 0}, 1, 8);
  write(0, {0, 0, 0}, 0, 200);
  EXPECT_EQ((std::vector<std::string>{"k (0, 0, 0): t 2xi32 = [100, 101]", "k (1, 0, 0): t 2xi32 = [7, 8]",
                                      "k (0, 0, 0): t 2xi32 = [200, 201]"}),
            read().prints);
}

TEST_F(RingTest, LargeTilesShowTheirEdges) {
  kernel_.debug_sites = {site(DebugSite::print, DType::i32, {2048}, "t")};
  for (uint32_t e = 0; e < 2048; ++e) write(0, {}, e, e);
  EXPECT_EQ("k (0, 0, 0): t 2048xi32 = [   0,    1,    2, ..., 2045, 2046, 2047]", read().prints.at(0));
}

TEST_F(RingTest, HalfWrittenRecordsAreSkipped) {
  kernel_.debug_sites = {site(DebugSite::print, DType::i32, {4}, "t")};
  write(99, {}, 0, 1);  // no such site
  write(0, {}, 4, 1);   // no such element
  EXPECT_TRUE(read().prints.empty());
  EXPECT_TRUE(read().failed_assertions.empty());
}

TEST_F(RingTest, RecordsCountedButNeverWrittenAreNotTheLastLaunchs) {
  kernel_.debug_sites = {site(DebugSite::assertion, DType::i1, {4}, "t")};
  write(0, {}, 2, 0);
  EXPECT_EQ(1u, read().failed_assertions.size());
  clear_debug_ring(ring());
  EXPECT_TRUE(read().failed_assertions.empty());
  ring().next = 1;  // the kernel died between counting and writing
  EXPECT_TRUE(read().failed_assertions.empty());
}

class SmallRingTest : public RingTest {
 protected:
  SmallRingTest() : RingTest(2) {}
};
TEST_F(SmallRingTest, OverflowIsTold) {
  kernel_.debug_sites = {site(DebugSite::print, DType::i32, {3}, "t")};
  for (uint32_t e = 0; e < 3; ++e) write(0, {}, e, e);
  const DebugReport report = read();
  ASSERT_EQ(2u, report.prints.size());
  EXPECT_EQ("k (0, 0, 0): t 3xi32 = [0, 1, ?]", report.prints[0]);
  EXPECT_NE(std::string::npos, report.prints[1].find("1 more values were printed than the 2 kept"));
}

TEST_F(RingTest, AssertionsNameFileProgramAndFirstElement) {
  kernel_.debug_sites = {site(DebugSite::assertion, DType::i1, {2, 4}, "x > 0")};
  write(0, {5, 0, 0}, 6, 0);
  write(0, {5, 0, 0}, 3, 0);
  write(0, {6, 1, 0}, 0, 0);
  const Status status = deliver(kernel_, read());
  ASSERT_FALSE(status);
  EXPECT_EQ(ErrorKind::device, status.error().kind);
  EXPECT_EQ(
      "kernel 'k': k.cpp:12: assertion failed: x > 0 (program (5, 0, 0), element [0, 3] of 2x4xi1 and 1 more "
      "elements); "
      "failed 2 times in all",
      status.error().message);
  ASSERT_EQ(2u, status.error().diagnostics.size());
  EXPECT_EQ("asserted here", status.error().diagnostics[0].message) << "the message has the rest";
  EXPECT_EQ("k.cpp", status.error().diagnostics[1].file);
  EXPECT_EQ(12u, status.error().diagnostics[1].line);
  EXPECT_EQ("assertion failed: x > 0 (program (6, 1, 0), element [0, 0] of 2x4xi1)",
            status.error().diagnostics[1].message);
}

TEST_F(RingTest, TheSinkGetsWholeMessages) {
  kernel_.debug_sites = {site(DebugSite::print, DType::i32, {}, "n")};
  write(0, {}, 0, 1);
  write(0, {}, 0, 2);
  std::vector<std::string> got;
  set_print_sink([&](const std::string& text) { got.push_back(text); });
  EXPECT_TRUE(deliver(kernel_, read()));
  set_print_sink({});
  EXPECT_EQ((std::vector<std::string>{"k (0, 0, 0): n = 1", "k (0, 0, 0): n = 2"}), got);
}

}  // namespace
}  // namespace tile
