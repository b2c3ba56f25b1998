// protocol_test.cpp - kernels with roles under random interleavings: nobody waits for ever, nothing is overwritten too
// early, and every product reads what the kernel as a plain program would have read.
#include <gtest/gtest.h>

#include "tests/protocol/compiled.h"
#include "tests/protocol/kernels.h"
#include "tests/protocol/machine.h"

namespace tile::ir::protocol {
namespace {

/// Runs one form of a kernel and compares what every consumer reads with the law.
std::string differences(mlir::func::FuncOp func, const Inputs& inputs, const std::vector<Reads>& law, const MachineOptions& options) {
  Run run = runMachine(func, inputs, options);
  if (run.fault) return *run.fault;
  const size_t consumers = static_cast<size_t>(func->getAttrOfType<mlir::IntegerAttr>("tile.num_warps").getInt()) / 4;
  for (size_t item = 0; item < law.size(); ++item) {
    const std::vector<Reads>& taken = run.reads[static_cast<int64_t>(item)];
    if (taken.size() != consumers) return "position " + std::to_string(item) + " was taken by " + std::to_string(taken.size()) + " consumers";
    for (const Reads& reads : taken) {
      if (reads == law[item]) continue;
      for (size_t i = 0; i < std::max(reads.size(), law[item].size()); ++i) {
        std::string found = i < reads.size() ? reads[i] : "nothing", expected = i < law[item].size() ? law[item][i] : "nothing";
        if (found != expected) return "position " + std::to_string(item) + ", read " + std::to_string(i) + ": found " + found + ", expected " + expected;
      }
    }
  }
  return "";
}

void checkKernel(const TestKernel& kernel, int seeds) {
  SCOPED_TRACE(kernel.name);
  Compiled compiled = compile(kernel.text);
  ASSERT_TRUE(compiled.hasRoles()) << compiled.remarks;
  size_t reads = 0;
  for (const Inputs& inputs : kernel.inputs) {
    std::vector<Reads> law;
    try {
      law = lawOf(functionOf(*compiled.plain), inputs);
    } catch (const Fault& fault) {
      FAIL() << fault.what;
    }
    for (const Reads& one : law) reads += one.size();
    for (int seed = 0; seed < seeds; ++seed) {
      MachineOptions options;
      options.seed = static_cast<uint64_t>(seed) * 7919 + 1;
      options.programs = 1 + seed % 3;
      std::string where = " with n " + std::to_string(inputs.scalars.contains(5) ? inputs.scalars.at(5) : inputs.otherDims) + ", seed " + std::to_string(seed);
      options.isAsync = false;
      ASSERT_EQ(differences(functionOf(*compiled.specialized), inputs, law, options), "") << "behind specialize" << where;
      options.isAsync = true;
      ASSERT_EQ(differences(functionOf(*compiled.waited), inputs, law, options), "") << "behind the waits" << where;
    }
  }
  EXPECT_GT(reads, 30u);  // the law is not empty
}

TEST(RoleProtocol, WrittenKernelsReadWhatTheyShould) {
  for (const TestKernel& kernel : writtenKernels()) checkKernel(kernel, 12);
}

TEST(RoleProtocol, LibraryKernelsReadWhatTheyShould) {
  for (const TestKernel& kernel : libraryKernels()) checkKernel(kernel, 4);
}

}  // namespace
}  // namespace tile::ir::protocol
