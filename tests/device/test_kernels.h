// test_kernels.h - the conformance suite's kernels as KernelBinaries for any device, and small helpers around launches.
#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <vector>

#include "runtime/buffer.h"
#include "runtime/device.h"
#include "tests/device/host_kernels.h"

namespace tile::testing_kernels {

/// A kernel by its name in host_kernels.cpp.
KernelBinary binary_for(const Device& device, const std::string& name);
/// Makes the host device find the kernels; called once per test program.
void install_host_loader();

inline uint64_t slot(const void* p) { return reinterpret_cast<uint64_t>(p); }
inline uint64_t slot(float f) { return std::bit_cast<uint32_t>(f); }
inline uint64_t slot(int32_t i) { return static_cast<uint64_t>(static_cast<int64_t>(i)); }
inline uint64_t slot(int64_t i) { return static_cast<uint64_t>(i); }

inline Status launch(Stream& stream, const Module& module, const Grid& grid, std::initializer_list<uint64_t> slots) {
  return stream.launch(module, grid, slots.begin(), slots.size());
}
/// The outcome of the launch, wherever the device reports it.
inline Status launch_and_wait(Stream& stream, const Module& module, const Grid& grid,
                              std::initializer_list<uint64_t> slots) {
  Status launched = launch(stream, module, grid, slots);
  return launched ? stream.synchronize() : launched;
}

#define ASSERT_OK(expression)                                 \
  do {                                                        \
    const auto& status_ = (expression);                       \
    ASSERT_TRUE(status_.ok()) << status_.error().to_string(); \
  } while (false)
#define EXPECT_OK(expression)                                 \
  do {                                                        \
    const auto& status_ = (expression);                       \
    EXPECT_TRUE(status_.ok()) << status_.error().to_string(); \
  } while (false)

/// Runs `body` in a new process of this test program (which repeats the test up to here), expecting no failure in it.
#define RUN_IN_FRESH_PROCESS(...)                                                                           \
  do {                                                                                                      \
    GTEST_FLAG_SET(death_test_style, "threadsafe");                                                         \
    const auto body_ = __VA_ARGS__;                                                                         \
    EXPECT_EXIT((body_(), std::exit(testing::Test::HasFailure() ? 1 : 0)), testing::ExitedWithCode(0), ""); \
  } while (false)

/// The value, or a failed test.
template <class T>
T must(Result<T> result) {
  if (!result.ok()) {
    ADD_FAILURE() << result.error().to_string();
    throw Exception(result.error());
  }
  return std::move(*result);
}

inline void expect_error(const Status& status, ErrorKind kind, const std::string& part) {
  ASSERT_FALSE(status.ok()) << "expected an error with: " << part;
  EXPECT_EQ(kind, status.error().kind) << status.error().message;
  EXPECT_NE(std::string::npos, status.error().message.find(part))
      << "message: " << status.error().message << "\nexpected: " << part;
}
template <class T>
void expect_error(const Result<T>& result, ErrorKind kind, const std::string& part) {
  expect_error(result.ok() ? ok() : Status(result.error()), kind, part);
}

}  // namespace tile::testing_kernels
