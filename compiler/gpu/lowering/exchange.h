// exchange.h - tiles through shared memory, as LLVM IR.
#pragma once
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

/// The tile under another layout of the same shape, through the layout::Exchange at `base`. Contains the wait between
/// writing and reading, none before or after; when `warpLocal`, only the warp waits, and also before writing.
Regs exchangeThrough(Emitter& e, llvm::Value* base, llvm::ArrayRef<llvm::Value*> values, const layout::Layout& from,
                     const layout::Layout& to, bool warpLocal);

/// Its halves, between which all warps have to meet.
void putExchange(Emitter& e, llvm::Value* base, llvm::ArrayRef<llvm::Value*> values, const layout::Layout& from,
                 const layout::Layout& to, bool warpLocal = false);
Regs getExchange(Emitter& e, llvm::Value* base, llvm::Type* element, const layout::Layout& from,
                 const layout::Layout& to);

/// Widest access of a row-major buffer: along its minor dim, never across the tile's edge or an odd row or offset.
int linearVector(const layout::Layout& layout, const layout::Shape& shape, const layout::Coord& offset, int bytes);

/// A row-major buffer of `shape`: writes a tile's elements at coordinate + offset; no waits.
void storeLinear(Emitter& e, llvm::Value* base, const layout::Shape& shape, const layout::Layout& layout,
                 llvm::ArrayRef<llvm::Value*> values, const layout::Coord& offset);
/// A row-major buffer of `box`: writes the elements of a larger tile that lie in the box at `offset`; no waits.
void storeBox(Emitter& e, llvm::Value* base, const layout::Shape& box, const layout::Layout& layout,
              llvm::ArrayRef<llvm::Value*> values, const layout::Coord& offset);
Regs loadLinear(Emitter& e, llvm::Value* base, const layout::Shape& shape, const layout::Layout& layout,
                llvm::Type* element, const layout::Coord& offset);

}  // namespace tile::ir
