// protocol_test.cpp - kernels with roles under random interleavings: nobody waits for ever, nothing is overwritten too
// early, and every product reads what the kernel as a plain program would have read.
#include <gtest/gtest.h>

#include "tests/protocol/compiled.h"
#include "tests/protocol/differences.h"
#include "tests/protocol/kernels.h"

namespace tile::ir::protocol {
namespace {

/// Runs both forms under every input; counts what products read.
void runKernel(const TestKernel& kernel, Compiled& compiled, int seeds, size_t* reads = nullptr) {
  for (const Inputs& inputs : kernel.inputs) {
    std::vector<Reads> law;
    try {
      law = lawOf(functionOf(*compiled.plain), inputs);
    } catch (const Fault& fault) {
      FAIL() << fault.what;
    }
    for (const Reads& one : law)
      if (reads) *reads += one.size();
    for (int seed = 0; seed < seeds; ++seed) {
      MachineOptions options;
      options.seed = static_cast<uint64_t>(seed) * 7919 + 1;
      options.programs = 1 + seed % 3;
      std::string where = " with n " +
                          std::to_string(inputs.scalars.contains(5) ? inputs.scalars.at(5) : inputs.otherDims) +
                          ", seed " + std::to_string(seed);
      options.isAsync = false;
      ASSERT_EQ(differences(functionOf(*compiled.specialized), inputs, law, options), "")
          << "behind specialize" << where;
      options.isAsync = true;
      ASSERT_EQ(differences(functionOf(*compiled.waited), inputs, law, options), "") << "behind the waits" << where;
    }
  }
}

void checkKernel(const TestKernel& kernel, int seeds) {
  SCOPED_TRACE(kernel.name);
  Compiled compiled = compile(kernel.text);
  ASSERT_TRUE(compiled.hasRoles()) << compiled.remarks;
  size_t reads = 0;
  runKernel(kernel, compiled, seeds, &reads);
  EXPECT_GT(reads, 30u);  // the law is not empty
}

TEST(RoleProtocol, WrittenKernelsReadWhatTheyShould) {
  for (const TestKernel& kernel : writtenKernels()) checkKernel(kernel, 12);
}

TEST(RoleProtocol, LibraryKernelsReadWhatTheyShould) {
  for (const TestKernel& kernel : libraryKernels()) checkKernel(kernel, 4);
}

TEST(RoleProtocol, RandomKernelsReadWhatTheyShould) {
  int withRoles = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    TestKernel kernel = randomKernel(seed);
    SCOPED_TRACE(kernel.name + "\n" + kernel.text);
    Compiled compiled;
    try {
      compiled = compile(kernel.text);
    } catch (const std::runtime_error& error) {
      FAIL() << error.what();
    }
    if (!compiled.hasRoles()) continue;  // rings that do not fit
    ++withRoles;
    runKernel(kernel, compiled, 2);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(withRoles, 75);
}

}  // namespace
}  // namespace tile::ir::protocol
