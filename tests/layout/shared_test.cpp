// shared_test.cpp - shared-memory tiles: one address per element, 16-byte runs whole, conflict-free where promised.
#include "compiler/layout/shared.h"

#include <gtest/gtest.h>

#include <set>

namespace tile::layout {
namespace {

TEST(SharedTile, EveryElementHasItsOwnBytes) {
  for (int bytes : {1, 2, 4, 8}) {
    for (auto [rows, cols] : {std::pair<int, int>{8, 64}, {64, 80}, {16, 48}, {7, 112}, {128, 128}, {5, 7}, {1, 40}}) {
      for (const SharedTile& tile : {swizzledTile(rows, cols, bytes), paddedTile(rows, cols, bytes)}) {
        std::set<int64_t> used;
        for (int r = 0; r < rows; ++r)
          for (int c = 0; c < cols; ++c) {
            int64_t address = tile.address(r, c);
            ASSERT_EQ(address % bytes, 0);
            ASSERT_LE(address + bytes, tile.bytes());
            ASSERT_TRUE(used.insert(address).second) << rows << "x" << cols << " swizzle " << tile.swizzle;
            if (c * bytes % 16 && tile.rowBytes() % 16 == 0) {
              ASSERT_EQ(address, tile.address(r, c - 1) + bytes);
            }
          }
      }
    }
  }
}

TEST(SharedTile, SwizzleFollowsTheRowWidth) {
  EXPECT_EQ(swizzledTile(64, 64, 2).swizzle, 128);
  EXPECT_EQ(swizzledTile(64, 96, 2).swizzle, 64);
  EXPECT_EQ(swizzledTile(64, 80, 2).swizzle, 32);
  EXPECT_EQ(swizzledTile(64, 7, 2).swizzle, 0);
  EXPECT_EQ(swizzledTile(64, 176, 2).bytes(), 64 * 176 * 2);
}

// ldmatrix reads 8 rows of 16 bytes at a time; a row-wise copy reads consecutive chunks of rows.
TEST(SharedTile, EightRowsOfOneChunkColumnNeverConflict) {
  for (int64_t cols : {64, 80, 96, 112, 128, 176, 256}) {
    SharedTile tile = swizzledTile(64, cols, 2);
    for (int64_t chunk = 0; chunk < cols / 8; ++chunk) {
      int64_t addresses[8];
      for (int row = 0; row < 8; ++row) addresses[row] = tile.address(row + 8, chunk * 8);
      EXPECT_EQ(bankPasses(addresses, 8, 16), 1) << cols << " chunk " << chunk;
    }
  }
}

TEST(SharedTile, RowsOfVectorsNeverConflict) {
  for (int64_t cols : {64, 128, 256}) {
    SharedTile tile = swizzledTile(64, cols, 2);
    int64_t addresses[32];
    for (int lane = 0; lane < 32; ++lane) addresses[lane] = tile.address(lane / 8, lane % 8 * 8);
    EXPECT_EQ(bankPasses(addresses, 32, 16), 1) << cols;
  }
}

TEST(SharedTile, PaddedRowsSpreadColumns) {
  SharedTile tile = paddedTile(64, 64, 4);
  int64_t addresses[32];
  for (int lane = 0; lane < 32; ++lane) addresses[lane] = tile.address(lane, 0);
  EXPECT_LE(bankPasses(addresses, 32, 4), 4);
  SharedTile bad{64, 64, 4, 0, 256};
  for (int lane = 0; lane < 32; ++lane) addresses[lane] = bad.address(lane, 0);
  EXPECT_EQ(bankPasses(addresses, 32, 4), 32);
}

}  // namespace
}  // namespace tile::layout
