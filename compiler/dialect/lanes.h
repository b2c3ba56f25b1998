// lanes.h - numbers that the lanes of a warp find together.
#pragma once

namespace tile::ir {

/// Of a tile.ballot whose lanes answer with numbers (i32): how they are combined, as an attribute #tile<rmw>. The
/// result is the combined number, not bits.
inline constexpr const char* kCombinedAttr = "tile.combined";

}  // namespace tile::ir
