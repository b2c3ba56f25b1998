// host_tensor.cpp - placement arithmetic, poison and data generation.
#include "kernels/reference/host_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>

#include "kernels/reference/number.h"

namespace tile::reference {
namespace {

constexpr int64_t kGuardElements = 64;  // at both ends; keeps element 0 aligned as the allocation is
constexpr int64_t kPeriod = 1'048'573;  // prime: rows of any usual length see different values

std::byte poison_byte(DType type) {
  // All ones is a NaN in every float format; 0x7f7f.. is an index no tensor has.
  return is_float(type) ? std::byte{0xff} : std::byte{0x7f};
}

uint64_t mix(uint64_t x) {  // splitmix64's finaliser: a counter in, independent bits out
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

double unit(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace

int64_t Placement::count() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

Placement Placement::dense(Dims shape) {
  std::vector<int> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  return ordered(std::move(shape), order);
}

Placement Placement::ordered(Dims shape, const std::vector<int>& order, int64_t row_gap, int64_t shift) {
  Placement p{std::move(shape), {}, kGuardElements + shift};
  p.strides.assign(p.shape.size(), 0);
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    p.strides[order[i]] = step;
    step *= std::max<int64_t>(p.shape[order[i]], 1);
    if (i + 1 == order.size()) step += row_gap;
  }
  return p;
}

HostTensor::HostTensor(DType type, Placement placement) : dtype_(type), place_(std::move(placement)) {
  int64_t last = 0;
  for (size_t d = 0; d < place_.shape.size(); ++d)
    last += std::max<int64_t>(place_.shape[d] - 1, 0) * place_.strides[d];
  memory_.resize((place_.offset + last + 1 + kGuardElements) * size_of(type));
  poison();
}

void HostTensor::poison() { std::fill(memory_.begin(), memory_.end(), poison_byte(dtype_)); }

double HostTensor::at(std::span<const int64_t> index) const {
  int64_t element = place_.offset;
  for (size_t d = 0; d < index.size(); ++d) element += index[d] * place_.strides[d];
  return decode(dtype_, memory_.data() + element * size_of(dtype_));
}

void HostTensor::set(std::span<const int64_t> index, double value) {
  int64_t element = place_.offset;
  for (size_t d = 0; d < index.size(); ++d) element += index[d] * place_.strides[d];
  encode(dtype_, value, memory_.data() + element * size_of(dtype_));
}

std::vector<double> HostTensor::row(std::initializer_list<int64_t> lead) const {
  int64_t element = place_.offset;
  size_t d = 0;
  for (int64_t i : lead) element += i * place_.strides[d++];
  std::vector<double> values(place_.shape.back());
  for (size_t i = 0; i < values.size(); ++i, element += place_.strides.back())
    values[i] = decode(dtype_, memory_.data() + element * size_of(dtype_));
  return values;
}

bool HostTensor::is_dense() const {
  int64_t step = 1;
  for (size_t d = place_.shape.size(); d-- > 0;) {
    if (place_.shape[d] != 1 && place_.strides[d] != step) return false;
    step *= place_.shape[d];
  }
  return true;
}

template <class Next>
void HostTensor::fill_sequence(Next next) {
  int64_t n = count(), fresh = std::min(n, kPeriod), i = 0;
  size_t size = size_of(dtype_);
  if (!is_dense()) {
    for_each_index(place_.shape, [&](std::span<const int64_t> index) { set(index, next(i++ % kPeriod)); });
    return;
  }
  std::byte* first = memory_.data() + place_.offset * size;
  for (i = 0; i < fresh; ++i) encode(dtype_, next(i), first + i * size);
  for (i = fresh; i < n; i += kPeriod) std::memcpy(first + i * size, first, std::min(kPeriod, n - i) * size);
}

void HostTensor::fill(double value) {
  fill_sequence([&](int64_t) { return value; });
}

void HostTensor::fill_normal(uint64_t seed, double scale) {
  uint64_t base = mix(seed);
  fill_sequence([&](int64_t i) {  // Box and Muller
    double u = 1.0 - unit(mix(base + 2 * i)), v = unit(mix(base + 2 * i + 1));
    return scale * std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
  });
}

void HostTensor::fill_uniform(uint64_t seed, double low, double high) {
  uint64_t base = mix(seed);
  fill_sequence([&](int64_t i) { return low + (high - low) * unit(mix(base + i)); });
}

void HostTensor::fill_integers(uint64_t seed, int64_t low, int64_t high) {
  uint64_t base = mix(seed), span = static_cast<uint64_t>(high - low + 1);
  fill_sequence([&](int64_t i) { return static_cast<double>(low + static_cast<int64_t>(mix(base + i) % span)); });
}

bool HostTensor::gaps_intact() const {
  size_t size = size_of(dtype_);
  std::byte poison = poison_byte(dtype_);
  if (is_dense()) {  // only the guard bands, however large the tensor
    auto first = memory_.begin() + place_.offset * size, last = first + count() * size;
    auto is_poison = [&](std::byte b) { return b == poison; };
    return std::all_of(memory_.begin(), first, is_poison) && std::all_of(last, memory_.end(), is_poison);
  }
  std::vector<bool> element(memory_.size() / size, false);
  for_each_index(place_.shape, [&](std::span<const int64_t> index) {
    int64_t e = place_.offset;
    for (size_t d = 0; d < index.size(); ++d) e += index[d] * place_.strides[d];
    element[e] = true;
  });
  for (size_t e = 0; e < element.size(); ++e)
    if (!element[e])
      for (size_t b = 0; b < size; ++b)
        if (memory_[e * size + b] != poison) return false;
  return true;
}

}  // namespace tile::reference
