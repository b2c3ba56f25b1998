// law.h - what a kernel must read, from its value level read as a plain program: for each position of the grid, the
// tiles its products (and reads into registers) find in shared memory, in order.
#pragma once
#include "tests/protocol/walker.h"

namespace tile::ir::protocol {

using Reads = std::vector<std::string>;

/// What each position reads. Faults are thrown.
std::vector<Reads> lawOf(mlir::func::FuncOp func, const Inputs& inputs);

/// What is read into registers only to be shared again: the reader of the share reads it.
bool onlyMoves(SmemLoadOp load);
/// Of a tile shared from registers that hold `source`.
std::string shareName(const Val& source);
/// "A * B" of a product, whatever its operands in shared memory are named.
std::string productName(MmaOp mma, const std::function<std::string(mlir::Value)>& nameOf);

}  // namespace tile::ir::protocol
