// use.h - kernels as users write them: a case prepares its data, its launches, and a comparison with float64 loops.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dsl/tile.h"

namespace users {
using namespace tile;

/// Data of one case. Without a device nothing is allocated: addresses are made up, for compiling only.
struct Env {
  std::shared_ptr<Device> device;
  bool big = false;
  std::map<std::string, int> fields;  ///< of the configuration, as the command line wants them
  uint64_t state = 0x9E3779B97F4A7C15ull;
  std::shared_ptr<std::vector<DeviceMemory>> keep = std::make_shared<std::vector<DeviceMemory>>();
  uintptr_t next = 0x10000000;

  int field(const std::string& name, int otherwise) const {
    auto it = fields.find(name);
    return it == fields.end() ? otherwise : it->second;
  }
  double uniform() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<double>(state >> 40) * 0x1p-24;
  }
};

/// The four words that the language's random numbers make of element `offset` of stream `seed` (Salmon et al., SC 2011:
/// Philox 4x32, ten rounds), in plain integers.
inline std::array<uint32_t, 4> reference_philox(uint64_t seed, uint64_t offset) {
  std::array<uint32_t, 4> x{uint32_t(offset), uint32_t(offset >> 32), 0, 0};
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    const uint64_t p = uint64_t(x[0]) * 0xD2511F53u, q = uint64_t(x[2]) * 0xCD9E8D57u;
    x = {uint32_t(q >> 32) ^ x[1] ^ k0, uint32_t(q), uint32_t(p >> 32) ^ x[3] ^ k1, uint32_t(p)};
  }
  return x;
}

template <class T>
struct Array {
  T* p = nullptr;
  std::vector<T> h;  ///< what it was filled with, or the beginning that it repeats
  std::shared_ptr<Device> device;
  size_t n = 0;
  std::vector<T> now() const {
    std::vector<T> out(n);
    device->default_stream().copy_to_host(out.data(), p, n * sizeof(T)).value_or_throw();
    device->default_stream().synchronize().value_or_throw();
    return out;
  }
  template <class... I>
  TensorView<T, sizeof...(I)> view(I... shape) const {
    return TensorView<T, sizeof...(I)>(p, std::array<int64_t, sizeof...(I)>{static_cast<int64_t>(shape)...});
  }
  const T& at(size_t i) const { return h[i < h.size() ? i : i % h.size()]; }
  double operator[](size_t i) const {
    if constexpr (std::is_same_v<T, double>)
      return at(i);
    else
      return static_cast<double>(static_cast<float>(at(i)));
  }
};

/// n elements on the device: those given, again and again.
template <class T>
Array<T> repeated(Env& env, size_t n, std::vector<T> first) {
  Array<T> a;
  a.n = n, a.device = env.device, a.h = std::move(first);
  if (!env.device) {
    a.p = reinterpret_cast<T*>(env.next);
    env.next += (n * sizeof(T) + 511) / 256 * 256;
    return a;
  }
  env.keep->push_back(DeviceMemory::allocate(env.device, n * sizeof(T)).value_or_throw());
  if (n) env.keep->back().copy_from(a.h.data(), std::min(n, a.h.size()) * sizeof(T)).value_or_throw();
  a.p = static_cast<T*>(env.keep->back().data());
  Stream& stream = env.device->default_stream();
  for (size_t have = a.h.size(); have < n; have *= 2)  // whole repetitions, and what is left of one
    stream.copy(a.p + have, a.p, std::min(have, n - have) * sizeof(T)).value_or_throw();
  stream.synchronize().value_or_throw();
  return a;
}
template <class T, class F>
Array<T> filled(Env& env, size_t n, F f) {
  std::vector<T> all;
  if (env.device) {
    all.reserve(n);
    for (size_t i = 0; i < n; ++i) all.push_back(f(i));
  }
  return repeated(env, n, std::move(all));
}
/// Values drawn one after the other; big problems, which nobody checks, repeat the first million of them.
template <class T, class F>
Array<T> drawn(Env& env, size_t n, F f) {
  constexpr size_t kMost = 1'000'003;
  std::vector<T> first(std::min(n, env.big ? kMost : n));
  if (env.device)
    for (T& x : first) x = f();
  return repeated(env, n, std::move(first));
}
template <class T>
Array<T> random(Env& env, size_t n, double low = -1, double high = 1) {
  return drawn<T>(env, n, [&] { return static_cast<T>(static_cast<float>(low + (high - low) * env.uniform())); });
}
template <class T>
Array<T> integers(Env& env, size_t n, int64_t low, int64_t high) {  // [low, high)
  return drawn<T>(env, n, [&] {
    return static_cast<T>(low + static_cast<int64_t>(env.uniform() * double(high - low)));
  });
}
template <class T>
Array<T> constant(Env& env, size_t n, double v) {
  const size_t given = env.big ? std::min<size_t>(n, 4096) : n;
  return repeated(env, n, std::vector<T>(given, static_cast<T>(static_cast<float>(v))));
}

struct Step {
  std::string name;
  std::function<Status(Stream&)> run;
  std::function<Result<KernelBinary>(const std::string&)> build;  ///< null: no kernel
};

struct Job {
  std::vector<Step> steps;
  std::function<std::string()> check;  ///< empty: right. Small problems only
  double gflop = 0, mbytes = 0;
  bool inTurn = false;  ///< steps start from what those before leave: none can be timed alone, again and again

  template <class Cfg, class... P>
  void add(const Kernel<Cfg, P...>& k, Cfg c, std::type_identity_t<HostArg<P>>... args) {
    add(k.name(), [=](Stream* stream, AheadOfTime* ahead) {
      if (stream) return k.try_call(*stream, c, args...);
      ahead->promises = k.promises(args...);
      ahead->grid = k.grid_for(c, args...);
      return ahead->compile(k, k.words(c));
    });
  }

 private:
  /// A launch that is only compiled.
  struct AheadOfTime {
    std::string target;
    Specialization promises{};
    std::optional<Grid> grid{};
    Result<KernelBinary> binary = KernelBinary{};
    Status compile(const AnyKernel& kernel, const ConfigWords& words) {
      constexpr int kMultiprocessors = 132;  // of an H100 or H200: what its launch would compile
      KernelOptions options = kernel.options();
      options.few_programs |= grid && grid->programs() <= kMultiprocessors;
      binary = kernel.compile_for(target, words, promises, options);
      return Ok{};
    }
  };
  /// One function for both: each is a dozen functions to compile, for every kernel.
  using Launch = std::function<Status(Stream*, AheadOfTime*)>;
  void add(std::string name, Launch launch) {
    steps.push_back({std::move(name), [launch](Stream& s) { return launch(&s, nullptr); },
                     [launch](const std::string& target) -> Result<KernelBinary> {
                       AheadOfTime ahead{target};
                       if (const Status made = launch(nullptr, &ahead); !made) return made.error();
                       return std::move(ahead.binary);
                     }});
  }
};

/// Steps in front of a job's own that give it back the arrays it starts from and changes.
template <class... T>
void restore(Env& env, Job& job, const Array<T>&... arrays) {
  auto one = [&](const auto& a) {
    if (!env.device) return;
    const uint64_t bytes = a.n * sizeof(a.h[0]);
    env.keep->push_back(DeviceMemory::allocate(env.device, bytes).value_or_throw());
    void* kept = env.keep->back().data();
    Stream& stream = env.device->default_stream();
    stream.copy(kept, a.p, bytes).value_or_throw();
    stream.synchronize().value_or_throw();
    job.steps.push_back({"restore", [=, to = a.p](Stream& s) { return s.copy(to, kept, bytes); }, nullptr});
  };
  (one(arrays), ...);
}

/// Element (row, column) of rows of `width` elements that start at `first`, for product().
template <class T>
auto matrix(const Array<T>& a, int width, size_t first = 0) {
  return [&a, width, first](int row, int column) { return a[first + size_t(row) * width + column]; };
}
/// The M x N sums over K of a(m, k) b(k, n), each as then(sum, m, n), in float64.
template <class A, class B, class Then>
std::vector<double> product(int M, int N, int K, A a, B b, Then then) {
  std::vector<double> c(size_t(M) * N);
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      double sum = 0;
      for (int k = 0; k < K; ++k) sum += a(m, k) * b(k, n);
      c[size_t(m) * N + n] = then(sum, m, n);
    }
  return c;
}
template <class A, class B>
std::vector<double> product(int M, int N, int K, A a, B b) {
  return product(M, N, K, a, b, [](double sum, int, int) { return sum; });
}
inline double in_half(double x) { return static_cast<double>(static_cast<float>(half(static_cast<float>(x)))); }

/// Largest |got - want| / (absolute + relative |want|); more than 1 is wrong.
template <class T>
std::string agree(const std::vector<T>& got, const std::vector<double>& want, double absolute, double relative) {
  auto number = [&](size_t i) {
    if constexpr (std::is_arithmetic_v<T>)
      return static_cast<double>(got[i]);
    else
      return static_cast<double>(static_cast<float>(got[i]));
  };
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double g = number(i);
    if (std::isinf(want[i]) && g == want[i]) continue;
    double e = std::abs(g - want[i]) / (absolute + relative * std::abs(want[i]));
    if (!(e <= worst)) worst = std::isnan(e) ? INFINITY : e, at = i;  // no later one hides a NaN
  }
  if (worst <= 1) return "";
  char text[200];
  std::snprintf(text, sizeof text, "element %zu: %g instead of %g (%g times the tolerance)", at, number(at),
                want[at], worst);
  return text;
}

struct Case {
  std::string name;
  std::function<Job(Env&)> prepare;
};
inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}
struct Register {
  Register(std::string name, std::function<Job(Env&)> f) { cases().push_back({std::move(name), std::move(f)}); }
};

}  // namespace users
