// interpreter.h - executes traced IR over 32-bit integers one op at a time: an independent check of the tracer that
// needs no code generation, so thousands of random programs run per second.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tile::fuzz {

struct Interpreted {
  std::string problem;  ///< empty: ran to the end
  size_t operations = 0, loops = 0, carried = 0;
};
/// Parameter 0 is a pointer to `memory`.
Interpreted interpret(mlir::func::FuncOp kernel, std::vector<int32_t>& memory);

}  // namespace tile::fuzz
