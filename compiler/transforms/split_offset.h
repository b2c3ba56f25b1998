// split_offset.h - an offset tile as (one 64-bit scalar for all elements) + (what differs between elements).
//
// `pid*BM + iota` splits into the scalar pid*BM and the tile iota: the scalar goes into a base pointer, where it costs
// one 64-bit add per program and cannot overflow, and the remaining tile is small, constant over loops and often 32
// bits wide. Index arithmetic of the kernel is taken to stay within its own type (signed); what is computed here on top
// of it, in the sum of several offsets, gets 64 bits unless ranges prove that 32 suffice.
#pragma once
#include "compiler/analysis/facts.h"
#include "mlir/IR/Builders.h"

namespace tile::ir {

/// A tile of i32 or i64 offsets with the values it can take; no tile: all zero.
struct OffsetTile {
  mlir::Value tile;
  Range range{0, 0};
  explicit operator bool() const { return static_cast<bool>(tile); }
};

struct SplitOffset {
  mlir::Value scalar;  ///< i64, null: zero
  OffsetTile rest;
};

class OffsetSplitter {
 public:
  OffsetSplitter(const Facts& facts, mlir::OpBuilder& builder, mlir::Location location)
      : facts_(facts), builder_(builder), location_(location) {}

  /// `offset` is a tile of any integer type, read as signed.
  SplitOffset split(mlir::Value offset);
  /// Whether split(offset) would leave no tile; builds nothing.
  static bool isUniform(mlir::Value offset);

  mlir::Value toI64(mlir::Value scalarOrTile);
  mlir::Value addScalars(mlir::Value a, mlir::Value b);         ///< i64 or null
  mlir::Value multiplyScalars(mlir::Value a, mlir::Value b);    ///< i64
  /// Sum of two offset tiles: 32 bits when both have 32 and the exact sum provably fits, else 64.
  OffsetTile add(OffsetTile a, OffsetTile b);
  /// The tile, with `bits` (32 or 64); zeros of `shape` when there is none.
  mlir::Value materialize(const OffsetTile& offset, llvm::ArrayRef<int64_t> shape, unsigned bits);

 private:
  SplitOffset findParts(mlir::Value offset);
  OffsetTile leaf(mlir::Value offset);
  OffsetTile binary(mlir::Operation* op, const OffsetTile& a, const OffsetTile& b, unsigned bits);
  template <class MakeOp>
  OffsetTile reshape(OffsetTile tile, MakeOp&& make);
  mlir::Value constant(int64_t value, mlir::Type type);

  const Facts& facts_;
  mlir::OpBuilder& builder_;
  mlir::Location location_;
  llvm::DenseMap<mlir::Value, SplitOffset> split_;  ///< each once: sums of sums would become 2^depth operations
};

}  // namespace tile::ir
