// same_memory.cpp - one memory under several names inside a kernel: const copies of pointers and views that are
// written, views made of them, pointers that change places in a loop, addresses from memory, ways through device
// functions.
#include "dsl/address.h"
#include "tests/users/use.h"
namespace users {
namespace same_memory {

// --- two buffers that change places in a loop: every pass reads what the pass before wrote
struct Pass {
  int B = 256;
};
auto ping_pong = kernel("user_ping_pong", [](const Pass& c, Ptr<float> a, Ptr<float> b, I32 passes, I32 n) {
                   auto i = arange(0, c.B), at = i + program_id(0) * c.B;
                   Ptr<float> from = a, to = b;
                   for (auto pass : range(passes)) {
                     Tile left = load(from + (at - 1), {.mask = i > 0}), mid = load(from + at),
                          right = load(from + (at + 1), {.mask = i < c.B - 1});
                     store(to + at, 0.25f * left + 0.5f * mid + 0.25f * right);
                     std::swap(from, to);
                   }
                   if_(passes % 2 == 0, [&] { store(b + at, load(from + at)); });
                 }).grid([](const Pass& c, float*, float*, int, int n) { return Grid{cdiv(n, c.B)}; });
Register s1("ping_pong", [](Env& e) {
  const int P = e.big ? 4096 : 3, B = 256, n = P * B, passes = 5;
  auto a = random<float>(e, n), b = constant<float>(e, n, 9), a2 = random<float>(e, n), b2 = constant<float>(e, n, 9);
  Job j;
  restore(e, j, a, a2);
  j.add(ping_pong, Pass{}, a.p, b.p, passes, n);
  j.add(ping_pong, Pass{}, a2.p, b2.p, passes + 1, n);
  j.check = [=]() -> std::string {
    for (int odd = 0; odd < 2; ++odd) {
      std::vector<double> want;
      for (int p = 0; p < P; ++p) {
        std::vector<double> x(B), y(B);
        for (int i = 0; i < B; ++i) x[i] = (odd ? a2 : a)[p * B + i];
        for (int s = 0; s < passes + odd; ++s) {
          for (int i = 0; i < B; ++i) y[i] = 0.25 * (i ? x[i - 1] : 0) + 0.5 * x[i] + 0.25 * (i < B - 1 ? x[i + 1] : 0);
          std::swap(x, y);
        }
        want.insert(want.end(), x.begin(), x.end());
      }
      if (auto s = agree((odd ? b2 : b).now(), want, 1e-5, 1e-5); !s.empty()) return std::to_string(odd) + ": " + s;
    }
    return "";
  };
  return j;
});

// --- a running sum written through a pointer and read back through a const copy of it, in a device function
Tile before(Ptr<const float> p, const Tile& at) { return load(p + at); }
auto read_back = kernel("user_read_back", [](Ptr<const float> x, Ptr<float> y, I32 rows) {
                   auto i = arange(0, 64);
                   store(y + i, load(x + i));
                   for (auto r : range(1, rows))
                     store(y + (r * 64 + i), before(y, (r - 1) * 64 + (i + 1) % 64) + load(x + (r * 64 + i)));
                 }).grid([](NoConfig, const float*, float*, int) { return Grid{1}; });
Register s2("read_back", [](Env& e) {
  const int R = e.big ? 4096 : 9;
  auto x = random<float>(e, R * 64), y = constant<float>(e, R * 64, 9);
  Job j;
  j.add(read_back, {}, x.p, y.p, R);
  j.check = [=] {
    std::vector<double> want(R * 64);
    for (int r = 0; r < R; ++r)
      for (int i = 0; i < 64; ++i) want[r * 64 + i] = x[r * 64 + i] + (r ? want[(r - 1) * 64 + (i + 1) % 64] : 0);
    return agree(y.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- the same of views: a const copy, a view made of its pointer, one made of a part of it
auto view_back = kernel("user_view_back", [](Tensor<const float, 2> x, Tensor<float, 2> y) {
                   Tensor<const float, 2> same = y;
                   auto rows = y.dim(0);
                   y.store({0, 0}, x.load({0, 0}, {64}));
                   for (auto r : range(1, rows)) {
                     auto part = make_view<const float>(y.ptr() + (r - 1) * 64, {1, 64}, {64, 1});
                     Tile last = where(r % 2 == 0, same.load({r - 1, 1}, {64}), part.load({0, -1}, {64}));
                     y.store({r, 0}, last + x.load({r, 0}, {64}));
                   }
                 }).grid([](NoConfig, const auto&, const auto&) { return Grid{1}; });
Register s3("view_back", [](Env& e) {
  const int R = e.big ? 4096 : 9;
  auto x = random<float>(e, R * 64), y = constant<float>(e, R * 64, 9);
  Job j;
  j.add(view_back, {}, x.view(R, 64), y.view(R, 64));
  j.check = [=] {
    std::vector<double> want(R * 64);
    for (int r = 0; r < R; ++r)
      for (int i = 0; i < 64; ++i) {
        const int from = r % 2 == 0 ? i + 1 : i - 1;
        want[r * 64 + i] = x[r * 64 + i] + (r && from >= 0 && from < 64 ? want[(r - 1) * 64 + from] : 0);
      }
    return agree(y.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- squarings of a matrix in place of memory: products of a loop whose operands the loop itself stores, behind a
// const view made of the pointer
struct Squared {
  int N = 32, times = 3;
};
auto stored_squares =
    kernel("user_stored_squares", [](const Squared& c, Tensor<half, 3> x, I32 times) {
      auto b = program_id(0);
      for (auto t : range(times)) {
        auto now = make_view<const half>(x.ptr() + (b * (times + 1) + t) * (c.N * c.N), {c.N, c.N}, {c.N, 1});
        Tile a = now.load({0, 0}, {c.N, c.N});
        x.store({b * (times + 1) + t + 1, 0, 0}, reshape(cast(dot(a, a), f16), {1, c.N, c.N}));
      }
    }).grid([](const Squared&, const auto& x, int times) { return Grid{x.shape[0] / (times + 1)}; });
Register s4("stored_squares", [](Env& e) {
  const int N = 32, T = 3, P = e.big ? 4096 : 3;
  auto x = filled<half>(e, size_t(P) * (T + 1) * N * N, [&](size_t i) {
    return half(i / (N * N) % (T + 1) ? 9.f : float((e.uniform() - 0.5) * 0.5 + (i / N % N == i % N) * 0.9));
  });
  Job j;
  j.add(stored_squares, Squared{}, x.view(P * (T + 1), N, N), T);
  j.check = [=] {
    std::vector<double> want(x.n);
    for (int p = 0; p < P; ++p)
      for (int t = 0; t <= T; ++t) {
        double* to = &want[size_t(p * (T + 1) + t) * N * N];
        const double* of = to - N * N;
        for (int m = 0; m < N; ++m)
          for (int n = 0; n < N; ++n) {
            double s = 0;
            if (t == 0) s = x[size_t(p * (T + 1)) * N * N + m * N + n];
            for (int k = 0; t && k < N; ++k) s += of[m * N + k] * of[k * N + n];
            to[m * N + n] = in_half(s);
          }
      }
    return agree(x.now(), want, 2e-2, 1e-2);
  };
  return j;
});

// --- an address that the host kept in memory names what the kernel writes through an argument
auto named_twice = kernel("user_named_twice", [](Ptr<float> y, Ptr<const int64_t> table, I32 n) {
                     auto i = arange(0, 32);
                     auto again = pointer_to<float>(load(table));
                     store(again + i, 1.f);
                     for (auto k : range(1, n)) {
                       Tile last = load(again + ((k - 1) * 32 + i));
                       store(again + (k * 32 + i), last * 2.f + 1.f);
                     }
                     store(y + i, cast(i, f32));
                   }).grid([](NoConfig, float*, const int64_t*, int) { return Grid{1}; });
Register s5("named_twice", [](Env& e) {
  const int n = e.big ? 20 : 9;
  auto y = constant<float>(e, 32, 9), z = constant<float>(e, 32 * n, 9);
  auto table = repeated<int64_t>(e, 1, {int64_t(reinterpret_cast<uintptr_t>(z.p))});
  Job j;
  j.add(named_twice, {}, y.p, table.p, n);
  j.check = [=] {
    std::vector<double> want;
    for (int k = 0; k < n; ++k) want.insert(want.end(), 32, std::exp2(k + 1) - 1);
    return agree(z.now(), want, 1e-6, 1e-6);
  };
  return j;
});

// --- loads under a const name that stand before, between and behind stores to the same places, and a counter that is
// read plainly after atomics of the same program
auto between = kernel("user_between_stores", [](Ptr<int32_t> p, Ptr<int32_t> seen, Ptr<int32_t> count) {
                 auto i = arange(0, 64), b = program_id(0) * 64;
                 Ptr<const int32_t> look = p;
                 Tile first = load(look + (b + i));
                 store(p + (b + 63 - i), first + 1);
                 Tile second = load(look + (b + i));
                 store(p + (b + (i + 7) % 64), second * 3);
                 Tile third = load(look + (b + (63 - i)));
                 store(seen + (b + i), first * 10000 + second * 100 + third);
                 auto mine = count + program_id(0);
                 atomic_add(mine, 5);
                 Tile a = load(mine);
                 atomic_add(mine, to_scalar(max(first, axis(0))));
                 store(mine, load(mine) * 2 + a);
               }).grid([](NoConfig, int32_t*, int32_t*, int32_t*) { return Grid{3}; });
Register s6("between_stores", [](Env& e) {
  auto p = integers<int32_t>(e, 3 * 64, 0, 10), seen = constant<int32_t>(e, 3 * 64, 9),
       count = constant<int32_t>(e, 3, 1);
  Job j;
  restore(e, j, p, count);
  j.add(between, {}, p.p, seen.p, count.p);
  j.check = [=]() -> std::string {
    std::vector<double> ws, wp(3 * 64), wc;
    for (int b = 0; b < 3; ++b) {
      std::vector<int> one(&p.h[b * 64], &p.h[b * 64] + 64), two(64), three(64);
      for (int i = 0; i < 64; ++i) two[63 - i] = one[i] + 1;
      for (int i = 0; i < 64; ++i) three[(i + 7) % 64] = two[i] * 3;
      for (int i = 0; i < 64; ++i)
        ws.push_back(one[i] * 10000 + two[i] * 100 + three[63 - i]), wp[b * 64 + i] = three[i];
      wc.push_back((6 + *std::max_element(one.begin(), one.end())) * 2 + 6);
    }
    if (auto s = agree(p.now(), wp, 0.1, 0); !s.empty()) return "p: " + s;
    if (auto s = agree(count.now(), wc, 0.1, 0); !s.empty()) return "count: " + s;
    return agree(seen.now(), ws, 0.1, 0);
  };
  return j;
});

}  // namespace same_memory
}  // namespace users
