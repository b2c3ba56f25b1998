// kernels.h - kernels for the protocol tests: written by hand at the value level, and traced from the library.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tests/protocol/walker.h"

namespace tile::ir::protocol {

struct TestKernel {
  std::string name, text;
  std::vector<Inputs> inputs;  ///< trip counts around the number of stages, several positions
};

/// GEMM, attention shapes, skipped blocks, nests, loops one after another: what specialize has to keep apart.
std::vector<TestKernel> writtenKernels();
/// GEMM, attention and block-sparse products as users get them for sm_90a.
std::vector<TestKernel> libraryKernels();

}  // namespace tile::ir::protocol
