// case.cpp - Fields, and the pieces of case.h.
#include "kernels/catalog/case.h"

#include <fmt/format.h>

#include <algorithm>

namespace tile::kernels {

int64_t Fields::get(std::string_view name, int64_t absent) const {
  for (const auto& [key, value] : items_)
    if (key == name) return value;
  return absent;
}
int64_t Fields::operator[](std::string_view name) const { return get(name, 0); }
bool Fields::has(std::string_view name) const {
  return std::any_of(items_.begin(), items_.end(), [&](const auto& item) { return item.first == name; });
}
Fields& Fields::set(std::string_view name, int64_t value) {
  for (auto& [key, old] : items_)
    if (key == name) {
      old = value;
      return *this;
    }
  items_.emplace_back(name, value);
  return *this;
}
std::string Fields::to_string() const {
  std::string text;
  for (const auto& [key, value] : items_) text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  return text;
}

Status DeviceTensor::create(std::shared_ptr<Device> device, reference::HostTensor tensor) {
  host = std::move(tensor);
  Result<DeviceMemory> memory = DeviceMemory::allocate(std::move(device), host.bytes().size());
  if (!memory) return memory.error();
  memory_ = std::move(*memory);
  return upload();
}
Status DeviceTensor::upload() { return memory_.copy_from(host.bytes().data(), host.bytes().size()); }
Status DeviceTensor::download() { return memory_.copy_to(host.bytes().data(), host.bytes().size()); }

Status OutputCase::run_poisoned(Stream& stream) {
  Steps s;
  for (DeviceTensor* out : outputs()) s(out->poison());
  if (s.ok()) s(launch(stream));
  if (s.ok()) s(stream.synchronize());
  for (DeviceTensor* out : outputs())
    if (s.ok()) s(out->download());
  return s.status();
}

Result<int> OutputCase::differing_runs(Stream& stream, int times) {
  auto snapshot = [&] {
    std::vector<std::byte> bits;
    for (DeviceTensor* out : outputs()) bits.insert(bits.end(), out->host.bytes().begin(), out->host.bytes().end());
    return bits;
  };
  if (Status s = run_poisoned(stream); !s) return s.error();
  const std::vector<std::byte> first = snapshot();
  int differing = 0;
  for (int i = 0; i < times; ++i) {
    if (Status s = run_poisoned(stream); !s) return s.error();
    differing += snapshot() != first;
  }
  return differing;
}

std::vector<int64_t> sample(int64_t count, int64_t wanted) {
  std::vector<int64_t> chosen;
  wanted = std::max<int64_t>(wanted, 2);
  if (count <= wanted) {
    for (int64_t i = 0; i < count; ++i) chosen.push_back(i);
    return chosen;
  }
  // Evenly spread with a jitter, so that positions inside tiles vary.
  for (int64_t i = 0; i < wanted; ++i) {
    int64_t low = count * i / wanted, high = count * (i + 1) / wanted;
    int64_t jitter = static_cast<int64_t>(static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15ull >> 33) % (high - low);
    chosen.push_back(i == 0 ? 0 : i == wanted - 1 ? count - 1 : low + jitter);
  }
  return chosen;
}

Check with_gaps(std::string output, reference::Comparison c, const reference::HostTensor& tensor) {
  if (c.pass && !tensor.gaps_intact()) {
    c.pass = false;
    c.why = "memory outside the output's elements was written";
  }
  return {std::move(output), std::move(c)};
}

DType storage_of(std::string_view dtype) {
  if (dtype == "tf32" || dtype == "tf32x3") return DType::f32;
  for (int d = 0; d < kNumDTypes; ++d)
    if (name(static_cast<DType>(d)) == dtype) return static_cast<DType>(d);
  return DType::f32;
}

}  // namespace tile::kernels
