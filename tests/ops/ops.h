// ops.h - running one language operation on every device present, for the numeric tests of the language.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "dsl/tile.h"
#include "kernels/reference/number.h"

namespace tile::ops {

/// Every device of this machine; the host is always there.
inline std::vector<std::shared_ptr<Device>> devices() {
  static const auto all = [] {
    set_jit_policy({.use_disk = false});  // these tests are about the compiler of today
    std::vector<std::shared_ptr<Device>> out;
    for (const std::string& name : device_names())
      if (auto d = open_device(name); d.ok()) out.push_back(*d);
    return out;
  }();
  return all;
}

/// On a machine without a GPU every kernel is at least compiled for one, up to PTX: the words of what failed, or
/// nothing.
inline std::string compiled_for_gpu(const AnyKernel& kernel) {
  if (devices().size() > 1) return "";
  KernelOptions ptx;
  ptx.ptxas = "none";
  Result<KernelBinary> binary = kernel.compile_for("sm_80", kernel.default_config(), {}, ptx);
  return binary.ok() ? "" : binary.error().to_string();
}

/// Runs a kernel whose parameters are all pointers over copies of host vectors; what it wrote is copied back.
/// `make` gives the kernel; it is launched with `grid`.
template <class K, class... T>
::testing::AssertionResult run_on(const std::shared_ptr<Device>& device, const K& kernel, Grid grid,
                                  std::vector<T>&... data) {
  std::string problem = compiled_for_gpu(kernel);
  if (problem.find("on GPU targets") != std::string::npos)
    problem.clear();  // refused on purpose: the tests of refusals say which
  if (!problem.empty()) return ::testing::AssertionFailure() << "sm_80: " << problem;
  Status outcome = Ok{};
  auto buffers = std::make_tuple(Buffer<T>::from(device, std::span<const T>(data))...);
  const bool allocated = std::apply([](auto&... b) { return (b.ok() && ...); }, buffers);
  if (!allocated) return ::testing::AssertionFailure() << "allocation failed on " << device->name();
  std::apply([&](auto&... b) { outcome = kernel.try_launch(device->default_stream(), {}, grid, b->data()...); },
             buffers);
  if (!outcome.ok()) return ::testing::AssertionFailure() << device->name() << ": " << outcome.error().to_string();
  outcome = device->default_stream().synchronize();
  if (!outcome.ok()) return ::testing::AssertionFailure() << device->name() << ": " << outcome.error().to_string();
  std::apply([&](auto&... b) { (void)((data.empty() || b->copy_to(std::span<T>(data)).ok()) && ...); }, buffers);
  return ::testing::AssertionSuccess();
}

template <class T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T> || (!std::is_arithmetic_v<T> && kHasDType<T>);

/// Floats are compared as double, integers and bool as themselves.
template <class T>
using Wide = std::conditional_t<kIsFloat<T>, double, T>;
template <class T>
Wide<T> widen(T v) {
  if constexpr (!kIsFloat<T>)
    return v;
  else if constexpr (std::is_same_v<T, double>)
    return v;
  else
    return static_cast<double>(static_cast<float>(v));
}
template <class T>
T narrow(Wide<T> v) {
  return static_cast<T>(v);
}

/// Half the distance between neighbours at 1, relative: what one rounding may cost.
template <class T>
double rounding() {
  return reference::epsilon(dtype_of<T>()) / 2;
}

/// Whether `got` is `want`, up to `ulps` roundings of T relative to the larger of |want| and `scale`.
template <class T>
bool close(Wide<T> got, Wide<T> want, double ulps, double scale = 0) {
  if constexpr (!kIsFloat<T>)
    return got == want;
  else {
    if (std::isnan(want) || std::isinf(want)) return std::isnan(want) ? std::isnan(got) : got == want;
    return std::fabs(got - want) <=
           2 * rounding<T>() * ulps * std::max(std::fabs(want), scale) + (rounding<T>() > 1e-5 ? 0x1p-24 : 1e-37);
  }
}

/// Reproducible operands: floats from the interval, integers over their whole range with small ones in between.
template <class T>
std::vector<T> operands(size_t n, double low, double high, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> real(low, high);
  std::vector<T> out(n);
  for (size_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, bool>)
      out[i] = random() & 1;
    else if constexpr (kIsFloat<T>)
      out[i] = static_cast<T>(real(random));
    else
      out[i] = i % 3 == 0 ? static_cast<T>(random() % 7) : static_cast<T>(random());
  }
  return out;
}

}  // namespace tile::ops
