// shared_address.h - layout::SharedTile::address as LLVM IR.
#pragma once
#include "compiler/gpu/lowering/emitter.h"
#include "compiler/layout/shared.h"

namespace tile::ir {

/// Pointer to element (row, col) of a tile that starts at `base`. row and col are i32 values; the constants are added to
/// them. Constants that leave the swizzle pattern as it is (rows: multiples of 8; columns: of a panel) become immediate
/// offsets when they are exact.
llvm::Value* sharedElement(Emitter& e, const layout::SharedTile& tile, llvm::Value* base, llvm::Value* row, int64_t rowConstant,
                           llvm::Value* col, int64_t colConstant);

}  // namespace tile::ir
