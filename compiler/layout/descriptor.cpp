// descriptor.cpp - fields and offsets of wgmma descriptors.
#include "compiler/layout/descriptor.h"

#include <algorithm>

namespace tile::layout {

namespace {

constexpr int64_t kStepBytes = 32;        // of k, every instruction
constexpr int64_t kFieldLimit = 1 << 14;  // units of 16 bytes

uint64_t field(int64_t bytes, int at) { return static_cast<uint64_t>(bytes / 16) << at; }

}  // namespace

int64_t OperandDescriptor::stepBytes(int64_t step) const {
  if (!kMinor) return step * (kStepBytes / tile.elementBytes) * tile.swizzle;
  const int64_t byte = step * kStepBytes;
  return byte / tile.swizzle * tile.rows * tile.swizzle + byte % tile.swizzle;
}

int64_t OperandDescriptor::outerBytes(int64_t element) const {
  if (kMinor) return element * tile.swizzle;
  const int64_t byte = element * tile.elementBytes;
  return byte / tile.swizzle * tile.rows * tile.swizzle + byte % tile.swizzle;
}

int OperandDescriptor::outerUnit() const { return kMinor ? 8 : tile.swizzle / tile.elementBytes; }

std::optional<OperandDescriptor> operandDescriptor(const SharedTile& tile, bool kMinor) {
  if (!tile.swizzle || tile.rows % 8 != 0 || (!kMinor && tile.elementBytes != 2)) return std::nullopt;
  const int64_t stride = 8 * tile.swizzle, panel = tile.rows * tile.swizzle;
  if (tile.bytes() / 16 > kFieldLimit) return std::nullopt;
  const uint64_t mode = tile.swizzle == 128 ? 1 : tile.swizzle == 64 ? 2 : 3;
  OperandDescriptor out;
  out.kMinor = kMinor;
  out.tile = tile;
  out.bits = mode << 62 | field(stride, 32) | field(kMinor ? 16 : panel % (16 * kFieldLimit), 16);
  return out;
}

std::vector<int> instructionColumns(int64_t n, int unit) {
  const int64_t count = (n + 255) / 256, even = (n + count - 1) / count;
  const int64_t each = std::min<int64_t>(256, (even + unit - 1) / unit * unit);
  std::vector<int> columns;
  for (int64_t done = 0; done < n; done += each) columns.push_back(static_cast<int>(std::min(each, n - done)));
  return columns;
}

}  // namespace tile::layout
