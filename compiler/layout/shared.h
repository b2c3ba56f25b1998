// shared.h - where element (row, col) of a tile sits in shared memory. The one address function behind shared-memory
// stores, loads, ldmatrix, cp.async and bulk copies. Pure C++.
//
// Rows are cut into panels of `swizzle` bytes; a panel holds all rows before the next panel starts. Inside a panel the
// 16-byte chunks of a row are permuted by XOR with bits 7.. of the row's offset, so that 8 rows of one chunk column
// fall into 8 different bank groups:  chunk' = chunk ^ ((row * swizzle >> 7) & (swizzle / 16 - 1)). This is the
// hardware's own 32/64/128-byte swizzle. swizzle 0 is plain row-major with rows `pitch` bytes apart.
#pragma once
#include <cstdint>

namespace tile::layout {

/// Where in shared memory bulk copies may begin: multiples of this many bytes.
inline constexpr int64_t kBulkAlignment = 128;

struct SharedTile {
  int64_t rows = 0, cols = 0;
  int elementBytes = 0;
  int swizzle = 0;      ///< 0, 32, 64, 128
  int64_t pitch = 0;    ///< bytes from row to row when swizzle is 0; >= cols * elementBytes

  int64_t rowBytes() const { return cols * elementBytes; }
  int64_t panels() const { return swizzle ? (rowBytes() + swizzle - 1) / swizzle : 1; }
  int64_t bytes() const { return swizzle ? panels() * rows * swizzle : rows * pitch; }
  int64_t alignment() const { return swizzle ? 8 * swizzle : 16; }  ///< where the tile may start
  /// Byte offset of an element from the tile's start. Elements of one aligned 16-byte run of a row stay together.
  int64_t address(int64_t row, int64_t col) const;

  bool operator==(const SharedTile&) const = default;
};

/// Widest swizzle, of at most `widest` bytes, whose panels divide the row exactly (no bytes wasted); none for rows that
/// are not 32-byte multiples.
SharedTile swizzledTile(int64_t rows, int64_t cols, int elementBytes, int widest = 128);
/// Plain row-major tile; rows are padded by 16 bytes when they would otherwise all start in the same bank.
SharedTile paddedTile(int64_t rows, int64_t cols, int elementBytes);

/// How many passes the 32 banks need for one access of `lanes` threads, each `bytes` wide (4, 8, 16) at
/// addresses[lane]: 1 = free of conflicts. Lanes of one pass: 32 for 4 bytes, 16 for 8, 8 for 16; equal words
/// broadcast.
int bankPasses(const int64_t* addresses, int lanes, int bytes);

}  // namespace tile::layout
