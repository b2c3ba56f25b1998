// transfer.h - what every copy and fill checks before a device sees it.
#pragma once
#include <cstddef>

#include "error.h"

namespace tile {

/// Null addresses of a copy of some bytes are user errors; `what` names the call.
Status check_copy(const char* what, const void* dst, const void* src, size_t bytes);
/// Patterns of other than 1, 2, 4 or 8 bytes are user errors, and, where there is something to fill, null addresses and
/// counts whose bytes wrap.
Status check_fill(const void* dst, const void* pattern, size_t pattern_bytes, size_t count);

}  // namespace tile
