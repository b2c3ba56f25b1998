// debug_site.h - what the host must know of a tile.print or tile.assert to read its records (runtime/abi.h).
#pragma once
#include "compiler/dialect/dialect.h"
#include "runtime/abi.h"

namespace tile::ir {

/// Of the printed value its dtype and, for a tile, its shape; the place is the op's.
DebugSite debugSite(PrintOp op);
DebugSite debugSite(AssertOp op);

}  // namespace tile::ir
