// edges.cpp - what rewrites of places and divisions must not change: quotients by numbers of the launch of either sign,
// places that wrap or lie outside, masks with values of their own, stores between reads.
#include "tests/users/use.h"
namespace users {
namespace edges {

struct Block {
  int B = 64;
};

// --- quotients and remainders in a loop, by what the launch says
template <class T>
auto quotients_of(const char* name) {
  return kernel(name, [](const Block& c, Ptr<const T> x, Ptr<const T> by, Ptr<T> out, I32 n, I32 count, I32 j) {
           auto i = program_id(0) * c.B + arange(0, c.B);
           auto d = load(by + j);
           for (auto k : range(0, 2)) {
             auto at = (j * 2 + k) * n + i;
             auto v = load(x + i, {.mask = i < n}) + cast(k, dtype_of<T>());
             store(out + at, v / d, {.mask = i < n});
             store(out + count * 2 * n + at, v % d, {.mask = i < n});
           }
         })
      .grid([](const Block& c, auto, auto, T*, int n, int, int) { return Grid{cdiv(n, c.B)}; });
}
auto quotients = quotients_of<int32_t>("user_quotients");
auto sizes = quotients_of<uint32_t>("user_sizes");
template <class T, class K>
Job divide(Env& e, const K& k, std::vector<T> x, std::vector<T> by) {
  const int n = x.size(), count = by.size();
  auto X = filled<T>(e, n, [&](size_t i) { return x[i]; }), D = filled<T>(e, count, [&](size_t i) { return by[i]; });
  auto out = constant<T>(e, size_t(4) * n * count, 0);
  Job j;
  for (int d = 0; d < count; ++d)
    if (by[d]) j.add(k, Block{}, X.p, D.p, out.p, n, count, d);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    for (int d = 0; d < count; ++d)
      for (int k = 0; k < 2; ++k)
        for (int i = 0; i < n; ++i) {
          const T v = T(uint32_t(x[i]) + k);
          if (by[d] == 0 || (int64_t(by[d]) == -1 && int64_t(v) == INT32_MIN)) continue;
          const int at = (d * 2 + k) * n + i;
          if (got[at] != v / by[d] || got[2 * n * count + at] != v % by[d])
            return std::to_string(v) + " / " + std::to_string(by[d]) + ": " + std::to_string(got[at]) + " rest " +
                   std::to_string(got[2 * n * count + at]);
        }
    return "";
  };
  return j;
}
template <class T>
std::vector<T> interesting() {
  std::vector<T> all;
  for (int64_t k = 0; k < 32; ++k)
    for (int64_t off : {-1, 0, 1})
      for (int64_t sign : {-1, 1}) all.push_back(T(sign * ((int64_t(1) << k) + off)));
  for (int64_t v : {3, 5, 7, 10, 641, 1000000007, 715827883, -3, -10, -641}) all.push_back(T(v));
  all.push_back(T(INT32_MIN)), all.push_back(T(INT32_MAX));
  uint64_t s = 1;
  for (int i = 0; i < 40; ++i)
    s = s * 6364136223846793005ull + 1442695040888963407ull, all.push_back(T(s >> 33 >> (i % 20)));
  return all;
}
Register r1("quotients", [](Env& e) { return divide(e, quotients, interesting<int32_t>(), interesting<int32_t>()); });
Register r2("sizes", [](Env& e) { return divide(e, sizes, interesting<uint32_t>(), interesting<uint32_t>()); });

// --- clamped places that start anywhere
auto clamped = kernel("user_clamped", [](const Block& c, Ptr<const float> p, Ptr<float> out, I32 start, I32 n) {
                 auto i = program_id(0) * c.B + arange(0, c.B);
                 auto x = start + i;
                 Tile s = zeros({c.B}, f32);
                 for (int k = -2; k <= 2; ++k) s = s * 2.f + load(p + clamp(x + k, 0, n - 1));
                 store(out + i, s);
               }).grid([](const Block& c, auto, float*, int, int) { return Grid{3}; });
Register r3("clamped", [](Env& e) {
  const int n = 300;
  auto p = random<float>(e, n);
  Job j;
  std::vector<int> starts{0,
                          -1,
                          -64,
                          2,
                          107,
                          108,
                          109,
                          106,
                          300,
                          INT32_MAX,
                          INT32_MAX - 64,
                          INT32_MAX - 191,
                          INT32_MAX - 300,
                          INT32_MIN,
                          INT32_MIN + 1};
  std::vector<Array<float>> outs;
  for (int s : starts) {
    outs.push_back(constant<float>(e, 192, 0));
    j.add(clamped, Block{}, p.p, outs.back().p, s, n);
  }
  j.check = [=]() -> std::string {
    for (size_t t = 0; t < starts.size(); ++t) {
      std::vector<double> want;
      for (uint32_t i = 0; i < 192; ++i) {
        double s = 0;
        for (int k = -2; k <= 2; ++k)
          s = s * 2 + p[std::clamp(int32_t(uint32_t(starts[t]) + i + uint32_t(k)), 0, n - 1)];
        want.push_back(s);
      }
      if (auto w = agree(outs[t].now(), want, 1e-5, 1e-5); !w.empty()) return std::to_string(starts[t]) + ": " + w;
    }
    return "";
  };
  return j;
});

// --- neighbours under masks of their own with values of their own, of several types; a store through another argument
// between
template <class T>
auto masked_of(const char* name) {
  return kernel(name,
                [](const Block& c, Ptr<const T> p, Ptr<T> out, Ptr<T> copy, I32 start, I32 n) {
                  auto i = program_id(0) * c.B + arange(0, c.B);
                  auto x = start + i;
                  for (int k = -2; k <= 2; ++k) {
                    auto at = x + k;
                    auto v = load(p + at, {.mask = (at >= 0) & (at < n), .other = T(k & 1)});
                    store((k & 1 ? copy : out) + (k + 2) * 192 + i, v);
                  }
                  auto in = (x > 0) & (x < n - 1);
                  auto l = load(p + x - 1, {.mask = in, .other = T(1)}), m = load(p + x, {.mask = in, .other = T(0)}),
                       r = load(p + x + 1, {.mask = in});
                  store(out + 5 * 192 + i, l), store(out + 6 * 192 + i, m), store(out + 7 * 192 + i, r, {.mask = in});
                })
      .grid([](const Block& c, auto, T*, T*, int, int) { return Grid{3}; });
}
auto masked_b = masked_of<bool>("user_masked_b");
auto masked_c = masked_of<uint8_t>("user_masked_c");
auto masked_f = masked_of<float>("user_masked_f");
auto masked_d = masked_of<double>("user_masked_d");
template <class T, class S, class K>
Job around(Env& e, const K& k) {
  const int n = 300;
  auto p = drawn<S>(e, n, [&] { return S(std::is_same_v<T, bool> ? e.uniform() > .5 : e.uniform() * 100); });
  Job j;
  std::vector<int> starts{
      0, -1, -64, 2, 107, 108, 109, 106, 110, 300, INT32_MAX - 64, INT32_MAX - 191, INT32_MIN, INT32_MIN + 1};
  std::vector<Array<S>> outs;
  for (int s : starts) {
    outs.push_back(constant<S>(e, 192 * 8, 0)), outs.push_back(constant<S>(e, 192 * 8, 0));
    j.add(k, Block{}, (const T*)p.p, (T*)outs[outs.size() - 2].p, (T*)outs.back().p, s, n);
  }
  j.check = [=]() -> std::string {
    for (size_t t = 0; t < starts.size(); ++t) {
      auto a = outs[2 * t].now(), b = outs[2 * t + 1].now();
      for (uint32_t i = 0; i < 192; ++i) {
        const int32_t x = int32_t(uint32_t(starts[t]) + i);
        for (int k = -2; k <= 2; ++k) {
          const int32_t at = int32_t(uint32_t(x) + uint32_t(k));
          const S want = at >= 0 && at < n ? p.h[at] : S(k & 1);
          if ((k & 1 ? b : a)[(k + 2) * 192 + i] != want)
            return std::to_string(starts[t]) + " + " + std::to_string(i) + " k " + std::to_string(k);
        }
        const bool in = x > 0 && x < n - 1;
        if (a[5 * 192 + i] != (in ? p.h[x - 1] : S(1)) || a[6 * 192 + i] != (in ? p.h[x] : S(0)) ||
            a[7 * 192 + i] != (in ? p.h[x + 1] : S(0)))
          return std::to_string(starts[t]) + " + " + std::to_string(i) + " in";
      }
    }
    return "";
  };
  return j;
}
Register r4("masked_b", [](Env& e) { return around<bool, uint8_t>(e, masked_b); });
Register r5("masked_c", [](Env& e) { return around<uint8_t, uint8_t>(e, masked_c); });
Register r6("masked_f", [](Env& e) { return around<float, float>(e, masked_f); });
Register r7("masked_d", [](Env& e) { return around<double, double>(e, masked_d); });

// --- what neighbours share: halves of places that start below zero, two widths
template <class T>
auto shared_of(const char* name) {
  return kernel(name,
                [](const Block& c, Ptr<const T> p, Ptr<T> out, I32 start, I32 row, I32 n) {
                  auto k = (start + arange(0, c.B)).col();
                  auto j = arange(0, 32).row();
                  auto at = k / 2 + j * row;
                  store(out + arange(0, c.B).col() * 32 + j, load(p + 100 + at, {.mask = (k < n) & (j >= 0)}));
                  auto u = cast(k, u32) / 4u;
                  store(out + c.B * 32 + arange(0, c.B).col() * 32 + j, load(p + 100 + cast(u % 64u, i32) + j * row));
                  auto g = (k >> 3) + j * row;
                  store(out + 2 * c.B * 32 + arange(0, c.B).col() * 32 + j,
                        load(p + 100 + g, {.mask = k * 2 < n + j * 0}));
                })
      .grid([](const Block& c, auto, T*, int, int, int) { return Grid{1}; });
}
auto shared_c = shared_of<uint8_t>("user_shared_c");
auto shared_d = shared_of<double>("user_shared_d");
template <class T, class K>
Job halves(Env& e, const K& k) {
  const int row = 112;
  auto p = drawn<T>(e, 200 + 32 * row, [&] { return T(e.uniform() * 100); });
  std::vector<std::pair<int, int>> starts{{0, 64},  {-16, 64}, {-64, 0},    {16, 17},
                                          {-3, 33}, {5, 48},   {-128, -60}, {64, 96}};
  std::vector<Array<T>> outs;
  Job j;
  for (auto [s, n] : starts) {
    outs.push_back(constant<T>(e, 3 * 64 * 32, 0));
    j.add(k, Block{}, p.p, outs.back().p, s, row, n);
  }
  j.check = [=]() -> std::string {
    for (size_t t = 0; t < starts.size(); ++t) {
      auto got = outs[t].now();
      auto [s, n] = starts[t];
      for (int i = 0; i < 64; ++i)
        for (int c = 0; c < 32; ++c) {
          const int x = s + i;
          const T a = x < n ? p.h[100 + x / 2 + c * row] : T(0), b = p.h[100 + uint32_t(x) / 4 % 64 + c * row],
                  g = x * 2 < n ? p.h[100 + (x >> 3) + c * row] : T(0);
          if (got[i * 32 + c] != a || got[2048 + i * 32 + c] != b || got[4096 + i * 32 + c] != g)
            return std::to_string(s) + " " + std::to_string(i) + "," + std::to_string(c);
        }
    }
    return "";
  };
  return j;
}
Register r8("shared_c", [](Env& e) { return halves<uint8_t>(e, shared_c); });
Register r9("shared_d", [](Env& e) { return halves<double>(e, shared_d); });

// --- rows by pointers in loops of no, one and some iterations; a row that the loop has written itself
auto rows_ahead =
    kernel("user_rows_ahead", [](const Block& c, Ptr<const float> k, Ptr<float> own, Ptr<float> out, I32 from, I32 to) {
      auto j = arange(0, c.B);
      Tile state = zeros({32, c.B}, f32);
      auto r = arange(0, 32);
      for (auto t : range(from, to)) {
        auto row = load(k + t * c.B + j).row();
        auto mine = load(own + t * c.B + j).row();
        state = state + row * cast(r + 1, f32).col() + mine;
        store(own + (t + 1) * c.B + j, reshape(sum(state, axis(0)), {c.B}));
        store(out + t * 32 + r, reshape(sum(state, axis(1)), {32}));
      }
    }).grid([](const Block&, auto, float*, float*, int, int) { return Grid{1}; });
Register r10("rows_ahead", [](Env& e) {
  auto k = random<float>(e, 64 * 8);
  Job j;
  std::vector<std::pair<int, int>> all{{0, 0}, {3, 2}, {2, 3}, {0, 4}};
  std::vector<Array<float>> outs, owns;
  for (auto [a, b] : all) {
    outs.push_back(constant<float>(e, 32 * 8, 0)), owns.push_back(constant<float>(e, 64 * 9, .5));
    j.add(rows_ahead, Block{}, k.p, owns.back().p, outs.back().p, a, b);
  }
  j.check = [=]() -> std::string {
    for (size_t q = 0; q < all.size(); ++q) {
      std::vector<double> state(32 * 64, 0), want(32 * 8, 0), own(64 * 9, .5);
      for (int t = all[q].first; t < all[q].second; ++t) {
        for (int r = 0; r < 32; ++r)
          for (int c = 0; c < 64; ++c)
            want[t * 32 + r] += state[r * 64 + c] += k[t * 64 + c] * (r + 1) + own[t * 64 + c];
        for (int c = 0; c < 64; ++c) {
          double s = 0;
          for (int r = 0; r < 32; ++r) s += state[r * 64 + c];
          own[(t + 1) * 64 + c] = s;
        }
      }
      if (auto w = agree(outs[q].now(), want, 1e-4, 1e-3); !w.empty()) return std::to_string(q) + ": " + w;
    }
    return "";
  };
  return j;
});

// --- places that run down, in steps of two, and between bounds of the launch; masks that are values as well
auto mirrored =
    kernel("user_mirrored", [](const Block& c, Ptr<const float> p, Ptr<float> out, I32 start, I32 low, I32 high) {
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto down = start - i, twice = i + i + start;
      auto at = [&](const Tile& x) { return load(p + 8 + min(max(x, low), high)); };
      auto inner = [&](const Tile& x) { return min(max(min(max(x, low) + 3, high), low - 2), high); };
      auto ok = (twice >= low) & (twice + 1 <= high) & (down > low - 1) & (down + 1 < high);
      auto chosen = where(down < high, 1.f, 2.f) + where(low <= twice, 4.f, 8.f);
      auto v = load(p + 8 + twice, {.mask = (twice >= low) & (twice <= high), .other = 5.f}) +
               load(p + 8 + down, {.mask = (down > low) & (down < high), .other = 6.f}) +
               load(p + 9 + down, {.mask = (low < down) & (high > down)}) + load(p + 8 + i, {.mask = ok, .other = 7.f});
      store(out + i, at(down) + 2.f * at(down - 1) + 3.f * at(twice) + 4.f * at(twice + 1) + chosen + v);
      store(out + 192 + i, load(p + 8 + inner(down)), {.mask = down < high});
    }).grid([](const Block&, auto, float*, int, int, int) { return Grid{3}; });
Register r11("mirrored", [](Env& e) {
  auto p = random<float>(e, 1100);
  Job j;
  const std::vector<std::array<int, 3>> all{{192, 0, 1000},       {200, 0, 600},  {400, 2, 900},
                                            {10, 0, 1000},        {-5, 0, 100},   {INT32_MAX, 0, 1000},
                                            {INT32_MIN, 2, 1000}, {500, 900, 700}};
  std::vector<Array<float>> outs;
  for (auto [a, b, h] : all)
    outs.push_back(constant<float>(e, 384, 0)), j.add(mirrored, Block{}, p.p, outs.back().p, a, b, h);
  j.check = [=]() -> std::string {
    for (size_t t = 0; t < all.size(); ++t) {
      auto [start, low, high] = all[t];
      std::vector<double> want(384, 0);
      for (int i = 0; i < 192; ++i) {
        auto w = [](int64_t x) { return int32_t(uint32_t(uint64_t(x))); };
        const int down = w(int64_t(start) - i), twice = w(int64_t(start) + 2 * i);
        auto cl = [&, low = low, high = high](int x) { return std::min(std::max(x, low), high); };
        auto at = [&](int x) { return p[8 + cl(x)]; };
        double v = 0;
        v += twice >= low && twice <= high ? p[8 + twice] : 5;
        v += down > low && down < high ? p[8 + down] : 6;
        v += low < down && high > down ? p[9 + down] : 0;
        v += twice >= low && w(int64_t(twice) + 1) <= high && down > low - 1 && w(int64_t(down) + 1) < high ? p[8 + i]
                                                                                                            : 7;
        want[i] = at(down) + 2 * at(w(int64_t(down) - 1)) + 3 * at(twice) + 4 * at(w(int64_t(twice) + 1)) +
                  (down < high ? 1 : 2) + (low <= twice ? 4 : 8) + v;
        if (down < high)
          want[192 + i] = p[8 + std::min(std::max(std::min(w(int64_t(std::max(down, low)) + 3), high), low - 2), high)];
      }
      if (auto w = agree(outs[t].now(), want, 1e-5, 1e-5); !w.empty()) return std::to_string(t) + ": " + w;
    }
    return "";
  };
  return j;
});

// --- bytes of which a few bits are left, as bf16 and f16
template <class T, class F>
auto few_bits_of(const char* name) {
  return kernel(name,
                [](const Block&, Ptr<const T> p, Ptr<F> out) {
                  auto i = arange(0, 256);
                  auto x = load(p + i);
                  Tile y[] = {x >> 1, x >> 4, x & T(127), x & T(63), (x << 2) >> 2, x | T(64), x >> 0, x >> 7};
                  for (int k = 0; k < 8; ++k) store(out + 256 * k + i, cast(y[k], dtype_of<F>()));
                })
      .grid([](const Block&, auto, F*) { return Grid{1}; });
}
auto bits_sb = few_bits_of<int8_t, bfloat16>("user_few_sb");
auto bits_ub = few_bits_of<uint8_t, bfloat16>("user_few_ub");
auto bits_sh = few_bits_of<int8_t, half>("user_few_sh");
template <class T, class F, class K>
Job few_bits(Env& e, const K& k) {
  auto p = filled<T>(e, 256, [](size_t i) { return T(i); });
  auto out = constant<F>(e, 2048, 0);
  Job j;
  j.add(k, Block{}, p.p, out.p);
  j.check = [=]() -> std::string {
    std::vector<double> want(2048);
    for (int i = 0; i < 256; ++i) {
      const T x = T(i);
      const T y[] = {T(x >> 1), T(x >> 4), T(x & 127), T(x & 63), T(T(x << 2) >> 2), T(x | 64), x, T(x >> 7)};
      for (int k = 0; k < 8; ++k) want[256 * k + i] = y[k];
    }
    return agree(out.now(), want, 1e-9, 0);
  };
  return j;
}
Register r12("few_sb", [](Env& e) { return few_bits<int8_t, bfloat16>(e, bits_sb); });
Register r13("few_ub", [](Env& e) { return few_bits<uint8_t, bfloat16>(e, bits_ub); });
Register r14("few_sh", [](Env& e) { return few_bits<int8_t, half>(e, bits_sh); });

// --- sines of whole numbers, and of what lies next to the zeros: small arguments find their quadrant in f32
auto near_sines = kernel("user_near_sines", [](const Block& c, Ptr<float> out) {
                    auto i = program_id(0) * c.B + arange(0, c.B);
                    auto w = cast(i % 32768, f32);
                    Tile x[] = {w, w * 1.57079637f, -w * 0.785398185f, w * 0.25f - 4000.f};
                    for (int k = 0; k < 4; ++k) {
                      store(out + (k * 3 + 0) * 32768 + i, sin(x[k]));
                      store(out + (k * 3 + 1) * 32768 + i, cos(x[k]));
                      store(out + (k * 3 + 2) * 32768 + i, x[k]);
                    }
                  }).grid([](const Block& c, float*) { return Grid{32768 / c.B}; });
Register r15("near_sines", [](Env& e) {
  auto out = constant<float>(e, 12 * 32768, 0);
  Job j;
  j.add(near_sines, Block{512}, out.p);
  j.check = [=]() -> std::string {
    auto got = out.now();
    std::vector<double> want(got.size());
    for (int k = 0; k < 4; ++k)
      for (int i = 0; i < 32768; ++i) {
        const double x = got[(k * 3 + 2) * 32768 + i];
        want[k * 3 * 32768 + i] = std::sin(x), want[(k * 3 + 1) * 32768 + i] = std::cos(x);
        want[(k * 3 + 2) * 32768 + i] = x;
      }
    return agree(got, want, 1e-30, 1.8e-7);
  };
  return j;
});

}  // namespace edges
}  // namespace users
