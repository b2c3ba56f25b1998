// differences.h - one run of a kernel with roles, compared with what it must read.
#pragma once
#include "tests/protocol/machine.h"

namespace tile::ir::protocol {

/// Empty when nothing went wrong and every consumer of every position read what the law says; else what is wrong first.
std::string differences(mlir::func::FuncOp func, const Inputs& inputs, const std::vector<Reads>& law,
                        const MachineOptions& options);

}  // namespace tile::ir::protocol
