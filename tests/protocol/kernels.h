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

/// A nest of loops and branches.
TestKernel randomKernel(uint64_t seed);

/// A kernel of `warpgroups` consumers with arguments %a, %b, %c (f16 views), %out, %table and %n; the body makes %r.
/// ACC, SMEM, BOX, PRODUCT, SS and RS are short for types and ops on tiles of 64x64.
std::string kernelText(const std::string& body, int warpgroups = 1);
/// %n counts up to these, on a grid.
std::vector<Inputs> trips(std::initializer_list<int64_t> counts, std::array<int64_t, 3> grid);

}  // namespace tile::ir::protocol
