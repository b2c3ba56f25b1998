// transfer.cpp - see transfer.h.
#include "runtime/transfer.h"

#include <fmt/format.h>

namespace tile {
namespace {

Status check_addresses(const char* what, const void* dst, const char* source, const void* src, size_t bytes) {
  if (dst != nullptr && src != nullptr) return ok();
  return user_error(fmt::format("{} of {} bytes: the {} is null", what, bytes, dst == nullptr ? "destination" : source));
}

}  // namespace

Status check_copy(const char* what, const void* dst, const void* src, size_t bytes) {
  return bytes == 0 ? ok() : check_addresses(what, dst, "source", src, bytes);
}

Status check_fill(const void* dst, const void* pattern, size_t pattern_bytes, size_t count) {
  if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4 && pattern_bytes != 8)
    return user_error(fmt::format("fill takes patterns of 1, 2, 4 or 8 bytes, got {}", pattern_bytes));
  if (count == 0) return ok();
  size_t bytes = 0;
  if (__builtin_mul_overflow(pattern_bytes, count, &bytes))
    return user_error(fmt::format("fill of {} patterns of {} bytes: 2^64 bytes or more", count, pattern_bytes));
  return check_addresses("fill", dst, "pattern", pattern, bytes);
}

}  // namespace tile
