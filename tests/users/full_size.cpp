// full_size.cpp - see the header.
#include "tests/users/full_size.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace users {
namespace {

using Bytes = std::vector<uint8_t>;
constexpr size_t kMostBytes = size_t{1} << 28;  ///< of an array that are looked at

std::vector<Bytes> contents(const Env& env) {
  std::vector<Bytes> all;
  for (const DeviceMemory& memory : *env.keep) {
    Bytes bytes(std::min(memory.bytes(), kMostBytes));
    if (!bytes.empty()) memory.copy_to(bytes.data(), bytes.size()).value_or_throw();
    all.push_back(std::move(bytes));
  }
  return all;
}

/// |a - b| / |a| of arrays of T; infinite where only one of two elements is finite, or they are other infinities.
template <class T>
double apart(const Bytes& a, const Bytes& b) {
  double difference = 0, size = 0;
  for (size_t at = 0; at + sizeof(T) <= a.size(); at += sizeof(T)) {
    T one, other;
    std::memcpy(&one, &a[at], sizeof(T)), std::memcpy(&other, &b[at], sizeof(T));
    double x, y;
    if constexpr (std::is_arithmetic_v<T>)
      x = static_cast<double>(one), y = static_cast<double>(other);
    else
      x = static_cast<float>(one), y = static_cast<float>(other);
    if (std::isfinite(x)) size += x * x;
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!std::isfinite(x) || !std::isfinite(y)) return INFINITY;
    difference += (x - y) * (x - y);
  }
  return difference == 0 ? 0 : std::sqrt(difference / size);
}

/// Nothing if both are the same.
std::string distance(const Bytes& a, const Bytes& b) {
  if (a.size() != b.size()) return "of other sizes";
  if (a == b) return "";
  const std::pair<const char*, double> all[] = {{"f32", apart<float>(a, b)},   {"f64", apart<double>(a, b)},
                                                {"f16", apart<half>(a, b)},    {"bf16", apart<bfloat16>(a, b)},
                                                {"i32", apart<int32_t>(a, b)}, {"i8", apart<int8_t>(a, b)}};
  const auto nearest =
      std::min_element(std::begin(all), std::end(all), [](auto& x, auto& y) { return x.second < y.second; });
  size_t differ = 0;
  for (size_t i = 0; i < a.size(); ++i) differ += a[i] != b[i];
  return fmt::format("{:.1e} as {}, {} of {} bytes", nearest->second, nearest->first, differ, a.size());
}

}  // namespace

void compare_at_full_size(const Case& c, const std::shared_ptr<Device>& device, Env env, const std::string& folder) {
  std::vector<Bytes> results[2];
  std::vector<bool> changed;
  for (auto& result : results) {
    Env own = env;
    own.keep = std::make_shared<std::vector<DeviceMemory>>();
    own.device = device, own.big = true;
    const Job job = c.prepare(own);
    const std::vector<Bytes> before = contents(own);
    Stream& stream = device->default_stream();
    for (const Step& step : job.steps) step.run(stream).value_or_throw();
    stream.synchronize().value_or_throw();
    result = contents(own);
    changed.resize(result.size());
    for (size_t i = 0; i < result.size(); ++i) changed[i] = changed[i] || result[i] != before[i];
  }
  for (size_t i = 0; i < changed.size(); ++i) {
    if (!changed[i]) continue;
    auto tell = [&](const char* what, const std::string& said) {
      if (!said.empty()) fmt::print("{} {:18} array {}: {}\n", what, c.name, i, said);
    };
    const Bytes& result = results[0][i];
    tell("AGAIN", distance(result, results[1][i]));
    const std::string file = fmt::format("{}{}.{}", folder, c.name.substr(0, c.name.find(':')), i);
    if (std::filesystem::exists(file)) {
      Bytes other(std::filesystem::file_size(file));
      std::ifstream(file, std::ios::binary)
          .read(reinterpret_cast<char*>(other.data()), static_cast<std::streamsize>(other.size()));
      std::filesystem::remove(file);
      tell("OTHER", distance(other, result));
    } else if (!folder.empty()) {
      std::ofstream(file, std::ios::binary)
          .write(reinterpret_cast<const char*>(result.data()), static_cast<std::streamsize>(result.size()));
    }
  }
  fmt::print("DONE  {:18}\n", c.name);
}

}  // namespace users
