// shared.cpp - shared-memory addresses of tiles and their bank conflicts.
#include "compiler/layout/shared.h"

#include <algorithm>
#include <set>

namespace tile::layout {

int64_t SharedTile::address(int64_t row, int64_t col) const {
  int64_t byte = col * elementBytes;
  if (!swizzle) return row * pitch + byte;
  int64_t panel = byte / swizzle, inside = byte % swizzle;
  int64_t chunk = (inside / 16) ^ ((row * swizzle >> 7) & (swizzle / 16 - 1));
  return panel * rows * swizzle + row * swizzle + chunk * 16 + inside % 16;
}

SharedTile swizzledTile(int64_t rows, int64_t cols, int elementBytes, int widest) {
  if (rows == 1) return paddedTile(rows, cols, elementBytes);  // its chunks lie in different banks as they are
  for (int swizzle : {128, 64, 32})
    if (swizzle <= widest && cols * elementBytes % swizzle == 0) return {rows, cols, elementBytes, swizzle, 0};
  return paddedTile(rows, cols, elementBytes);
}

SharedTile paddedTile(int64_t rows, int64_t cols, int elementBytes) {
  int64_t pitch = cols * elementBytes;
  // 16-byte rows stay vectors; a pitch that is an odd number of 16-byte chunks visits all bank groups.
  if (pitch >= 16) pitch = (pitch + 15) / 16 * 16;
  if (rows > 1 && pitch >= 32 && pitch / 16 % 2 == 0) pitch += 16;
  return {rows, cols, elementBytes, 0, pitch};
}

int bankPasses(const int64_t* addresses, int lanes, int bytes) {
  int perPass = std::max(1, std::min(32, 128 / bytes)), total = 0;
  for (int first = 0; first < lanes; first += perPass) {
    std::set<int64_t> words[32];
    for (int lane = first; lane < std::min(lanes, first + perPass); ++lane)
      for (int64_t word = addresses[lane] / 4; word * 4 < addresses[lane] + bytes; ++word)
        words[word % 32].insert(word);
    size_t worst = 1;
    for (const auto& bank : words) worst = std::max(worst, bank.size());
    total += static_cast<int>(worst);
  }
  int ideal = (lanes + perPass - 1) / perPass;
  return (total + ideal - 1) / ideal;
}

}  // namespace tile::layout
