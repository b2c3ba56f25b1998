// A user's program: a kernel of its own and one of ours.
#include <cmath>
#include <vector>

#include "dsl/tile.h"
#include "kernels/softmax.h"
#include "runtime/device.h"  // the application's
#include <tile/dsl/tile.h>   // the same file again
#include <tile/runtime/cache.h>

#ifndef APP_DEVICE_H
#error "runtime/device.h is not the application's"
#endif

using namespace tile;

struct Config {
  int N = 64;
};
const auto twice = kernel("twice", [](const Config& c, Ptr<const float> x, Ptr<float> y, I32 n) {
                     auto i = program_id(0) * c.N + arange(0, c.N);
                     store(y + i, 2 * load(x + i, {.mask = i < n}), {.mask = i < n});
                   }).grid([](const Config& c, const float*, float*, int n) { return Grid{cdiv(n, c.N)}; });
// Verbs made of others: what g++ inlines of them must warn of nothing.
const auto mixed = kernel("mixed", [](const Config& c, Ptr<const float> x, Ptr<float> y, I32 n) {
                     auto i = program_id(0) * c.N + arange(0, c.N);
                     auto v = load(x + i, {.mask = i < n});
                     store(y + i, silu(v) + sigmoid(v) + ldexp(v, 2) + rand(7u, i), {.mask = i < n});
                   }).grid([](const Config& c, const float*, float*, int n) { return Grid{cdiv(n, c.N)}; });

int main() {
  auto device = open_device("host").value_or_throw();
  auto& stream = device->default_stream();
  auto x = Buffer<float>::from(device, std::vector<float>(100, 3.f)).value_or_throw();
  auto y = Buffer<float>::allocate(device, 100).value_or_throw(), z = Buffer<float>::allocate(device, 100).value_or_throw();
  twice(stream, x.data(), y.data(), 100);
  kernels::softmax_rows<float>(stream, x.view(4, 25), z.view(4, 25)).value_or_throw();
  stream.synchronize().value_or_throw();
  const bool doubled = y.to_host().value_or_throw()[99] == 6;
  const bool normalised = std::abs(z.to_host().value_or_throw()[99] - 0.04f) < 1e-6f;
  return doubled && normalised ? 0 : 1;
}
