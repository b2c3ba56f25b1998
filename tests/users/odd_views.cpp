// odd_views.cpp - views whose rows run backwards, repeat or lie far apart, in kernels that read them row by row; and
// rows through pointers that are updated in place while others are on their way; rows whose distance stands in memory.
#include "tests/users/use.h"
namespace users {
namespace odd_views {

struct Rows {
  int R = 8, C = 48;
};

// --- a matrix read once, row by row: its largest and sum of each row, and every element
template <class T>
auto row_readings(const char* name) {
  return kernel(name, [](const Rows& c, Tensor<const T, 2> x, Tensor<float, 2> y, Tensor<float, 2> s) {
           auto r = program_id(0) * c.R;
           auto a = cast(x.load({r, 3}, {c.R, c.C}), f32);
           y.store({r, 0}, a * 2 + 1);
           auto b = cast(x.load({r, 1}, {c.R, c.C}), f32);
           s.store({r, 0}, sum(b * b, axis(1)));
           auto d = cast(x.load({r, 2}, {c.R, c.C}), f32);
           s.store({r, 1}, max(d, axis(1)));
         })
      .grid([](const Rows& c, const auto& x, const auto&, const auto&) { return Grid{cdiv(int(x.shape[0]), c.R)}; });
}
auto readings_f = row_readings<float>("user_row_readings_f");
auto readings_h = row_readings<half>("user_row_readings_h");
auto readings_d = row_readings<double>("user_row_readings_d");
auto readings_b = row_readings<int8_t>("user_row_readings_b");

/// From `first`, rows `pitch` and columns `step` apart.
struct Way {
  int64_t first, pitch, step;
};
template <class T, class K>
Job read_rows(Env& e, const K& k, int R, int C) {
  auto x = integers<T>(e, 40000, -20, 20);
  const std::vector<Way> ways{{30000, -200, 1}, {0, 200, 1}, {500, 0, 1},     {39000, -300, -1},
                              {20000, -1, 200}, {0, 1, 201}, {20003, -57, 1}, {0, 51, 1}};
  Job j;
  std::vector<Array<float>> ys, ss;
  for (const Way& w : ways) {
    ys.push_back(constant<float>(e, 64 * R, 7)), ss.push_back(constant<float>(e, 2 * R, 7));
    j.add(k, Rows{}, TensorView<const T, 2>(x.p + w.first, {R, C}, {w.pitch, w.step}), ys.back().view(R, 64),
          ss.back().view(R, 2));
  }
  j.check = [=]() -> std::string {
    for (size_t q = 0; q < ways.size(); ++q) {
      const Way w = ways[q];
      auto at = [&](int r, int c) { return c < C ? x[w.first + r * w.pitch + c * w.step] : 0.; };
      std::vector<double> y(64 * R, 7), s(2 * R, 7);
      for (int r = 0; r < R; ++r) {
        s[2 * r] = 0, s[2 * r + 1] = -1e9;
        for (int c = 0; c < 48; ++c) {
          y[r * 64 + c] = at(r, c + 3) * 2 + 1;
          s[2 * r] += at(r, c + 1) * at(r, c + 1);
          s[2 * r + 1] = std::max(s[2 * r + 1], at(r, c + 2));
        }
      }
      if (auto w = agree(ys[q].now(), y, 1e-6, 1e-6); !w.empty()) return std::to_string(q) + " y " + w;
      if (auto w = agree(ss[q].now(), s, 1e-6, 1e-6); !w.empty()) return std::to_string(q) + " s " + w;
    }
    return "";
  };
  return j;
}
Register a1("row_readings_f", [](Env& e) { return read_rows<float>(e, readings_f, 32, 100); });
Register a2("row_readings_h", [](Env& e) { return read_rows<half>(e, readings_h, 29, 50); });
Register a3("row_readings_d", [](Env& e) { return read_rows<double>(e, readings_d, 32, 64); });
Register a4("row_readings_b", [](Env& e) { return read_rows<int8_t>(e, readings_b, 31, 51); });

// --- so many boxes that each is a call
auto many_rows = kernel("user_many_rows", [](const Rows& c, Tensor<const float, 2> x, Tensor<float, 2> y) {
                   auto r = program_id(0) * c.R;
                   for (int k = 0; k < 130; ++k) y.store({r, k * 40}, x.load({r, k * 37}, {c.R, 40}));
                 }).grid([](const Rows& c, const auto& x, const auto&) { return Grid{cdiv(int(x.shape[0]), c.R)}; });
Register a5("many_rows", [](Env& e) {
  const int R = 20, C = 37 * 130 + 1, pitch = C + 5;
  auto x = random<float>(e, R * pitch);
  auto y = constant<float>(e, R * 5200, 0), z = constant<float>(e, R * 5200, 0);
  Job j;
  j.add(many_rows, Rows{}, TensorView<const float, 2>(x.p, {R, C}, {pitch, 1}), y.view(R, 5200));
  j.add(many_rows, Rows{}, TensorView<const float, 2>(x.p + (R - 1) * pitch, {R, C}, {-pitch, 1}), z.view(R, 5200));
  j.check = [=]() -> std::string {
    std::vector<double> w(R * 5200), v(R * 5200);
    for (int r = 0; r < R; ++r)
      for (int k = 0; k < 130; ++k)
        for (int i = 0; i < 40; ++i) {
          w[r * 5200 + k * 40 + i] = k * 37 + i < C ? x[r * pitch + k * 37 + i] : 0;
          v[r * 5200 + k * 40 + i] = k * 37 + i < C ? x[(R - 1 - r) * pitch + k * 37 + i] : 0;
        }
    if (auto s = agree(y.now(), w, 1e-9, 1e-7); !s.empty()) return s;
    return agree(z.now(), v, 1e-9, 1e-7);
  };
  return j;
});

// --- boxes of products that begin in front of the view's first column, of rows of any length
struct Taps {
  int N = 64, K = 32, stages = 2;
};
template <class T>
auto taps_of(const char* name) {
  return kernel(name, [](const Taps& c, Tensor<const T, 2> w, Tensor<const T, 2> x, Tensor<float, 2> y, I32 taps, I32 from) {
           auto j = program_id(0) * c.N;
           Tile acc = zeros({64, c.N}, f32);
           for (auto t : range(0, taps))
             for (auto k : range(0, x.dim(0), c.K, {.stages = c.stages}))
               acc = dot(w.load({0, t * x.dim(0) + k}, {64, c.K}), x.load({k, j + t - from}, {c.K, c.N}), acc);
           y.store({0, j}, acc);
         })
      .grid([](const Taps& c, const auto&, const auto& x, const auto&, int, int) {
        return Grid{cdiv(int(x.shape[1]), c.N)};
      });
}
auto taps_h = taps_of<half>("user_taps_h");
auto taps_b = taps_of<bfloat16>("user_taps_b");
template <class T, class K>
Job tap(Env& e, const K& k) {
  struct Size {
    int rows, columns, pitch, taps, from;
  };
  const std::vector<Size> all{{32, 128, 128, 3, 1}, {64, 101, 101, 3, 1}, {40, 77, 79, 5, 3}, {33, 130, 131, 4, 70},
                              {32, 64, 65, 0, 0},   {0, 64, 64, 3, 1},    {64, 64, 64, 1, 1}, {96, 65, 67, 2, -64}};
  Job j;
  std::vector<Array<T>> ws, xs;
  std::vector<Array<float>> ys;
  for (const Size& s : all) {
    ws.push_back(integers<T>(e, 64 * std::max(1, s.taps * s.rows), -2, 3));
    xs.push_back(integers<T>(e, std::max(1, s.rows * s.pitch), -2, 3));
    ys.push_back(constant<float>(e, 64 * s.columns, 7));
    j.add(k, Taps{}, ws.back().view(64, s.taps * s.rows), TensorView<const T, 2>(xs.back().p, {s.rows, s.columns}, {s.pitch, 1}),
          ys.back().view(64, s.columns), s.taps, s.from);
  }
  j.check = [=]() -> std::string {
    for (size_t q = 0; q < all.size(); ++q) {
      const Size s = all[q];
      const int depth = s.taps * s.rows;
      const auto want = product(
          64, s.columns, depth, [&](int m, int i) { return ws[q][size_t(m) * depth + i]; },
          [&](int i, int n) {
            const int at = n + i / s.rows - s.from;
            return at >= 0 && at < s.columns ? xs[q][size_t(i % s.rows) * s.pitch + at] : 0.;
          });
      // The last box of a tap reaches into the next one's weights, where the rows are zeros.
      if (auto w = agree(ys[q].now(), want, 1e-6, 1e-6); !w.empty()) return std::to_string(q) + ": " + w;
    }
    return "";
  };
  return j;
}
Register a7("taps_h", [](Env& e) { return tap<half>(e, taps_h); });
Register a8("taps_b", [](Env& e) { return tap<bfloat16>(e, taps_b); });

// --- one piece of memory under several names: what was read stays what it was, whatever is written until it is used
struct Lanes {
  int B = 64;
};
auto names = kernel("user_names", [](const Lanes& c, Tensor<float, 2> a, Ptr<float> p, Ptr<float> out, I32 n) {
               auto i = arange(0, c.B);
               int at = 0;
               auto leave = [&](const Tile& x) { store(out + at * c.B + i, x), ++at; };
               auto here = a.ptr();
               // A box of the view.
               Tile x = load(here + i);
               a.store({0, 0}, full({1, 48}, 9, f32));
               leave(x * x + x);
               // A view of the pointer's memory, and a branch.
               Tile y = load(p + i), z = load(p + 1 + i);
               make_view<float>(p, {n, 8}, {8, 1}).store({1, 0}, full({4, 8}, 5, f32));
               leave(y - z * y);
               Tile u = load(p + 64 + i);
               if_(n > 3, [&] { store(p + 70 + i, full({c.B}, -3, f32)); });
               leave(u + 1);
               // Moved by one place in every iteration, in place.
               auto q = p + 200;
               for (auto k : range(0, n)) {
                 Tile v = load(q + i);
                 store(q + 1 + i, v + cast(k, f32));
                 q = q + 1;
               }
               // Rows that overlap, each read before any is written.
               Tile rows = arange(0, 4).col() * 16 + arange(0, 32).row();
               Tile w = load(p + 400 + rows);
               store(p + 410 + rows, w * 2);
               // Sums, and a loop until something holds.
               Tile s = load(p + 600 + i);
               auto total = sum(s);
               store(p + 590 + i, s * 2);
               leave(s - total);
               Tile t = load(p + 700 + i), m = 0;
               while_([&] { return m < n; },
                      [&] {
                        store(p + 700 + i, t + cast(m, f32));
                        m += 1;
                      });
               leave(t);
               // Read twice, and each time what is there.
               Tile one = load(p + 800 + i, {.mask = i < n * 9, .other = 4});
               store(p + 800 + i, one + 1);
               Tile two = load(p + 800 + i, {.mask = i < n * 9, .other = 4});
               store(p + 801 + i, two + one);
               leave(one * two);
               atomic_add(p + 900 + i % 8, 1.f, {.order = Order::relaxed});
               Tile b = load(p + 880 + i);
               atomic_add(p + 890 + i, b);
               leave(b);
             }).grid([](const Lanes&, const auto&, float*, float*, int) { return Grid{1}; });
Register a6("names", [](Env& e) {
  const std::vector<int> all{0, 1, 5, 7};
  Job j;
  std::vector<Array<float>> as, ps, outs;
  for (int n : all) {
    as.push_back(integers<float>(e, 2 * 100, -9, 9)), ps.push_back(integers<float>(e, 1000, -9, 9));
    outs.push_back(constant<float>(e, 7 * 64, 0));
    j.add(names, Lanes{}, as.back().view(2, 100), ps.back().p, outs.back().p, n);
  }
  j.check = [=]() -> std::string {
    for (size_t q = 0; q < all.size(); ++q) {
      const int n = all[q];
      std::vector<double> a, p, out;
      for (int i = 0; i < 200; ++i) a.push_back(as[q][i]);
      for (int i = 0; i < 1000; ++i) p.push_back(ps[q][i]);
      auto read = [&](int at) { return std::vector<double>(p.begin() + at, p.begin() + at + 64); };
      auto leave = [&](auto f) {
        for (int i = 0; i < 64; ++i) out.push_back(f(i));
      };
      leave([&](int i) { return a[i] * a[i] + a[i]; });
      std::fill_n(a.begin(), 48, 9.);
      auto y = read(0), z = read(1), u = read(64);
      leave([&](int i) { return y[i] - z[i] * y[i]; });
      for (int r = 1; r < std::min(5, n); ++r) std::fill_n(p.begin() + r * 8, 8, 5.);
      if (n > 3) std::fill_n(p.begin() + 70, 64, -3.);
      leave([&](int i) { return u[i] + 1; });
      for (int k = 0; k < n; ++k) {
        auto v = read(200 + k);
        for (int i = 0; i < 64; ++i) p[201 + k + i] = v[i] + k;
      }
      const auto before = p;
      for (int i = 0; i < 80; ++i) p[410 + i] = 2 * before[400 + i];
      auto s = read(600);
      double total = 0;
      for (double x : s) total += x;
      for (int i = 0; i < 64; ++i) p[590 + i] = s[i] * 2;
      leave([&](int i) { return s[i] - total; });
      auto t = read(700);
      if (n)
        for (int i = 0; i < 64; ++i) p[700 + i] = t[i] + n - 1;
      leave([&](int i) { return t[i]; });
      auto one = read(800);
      for (int i = 0; i < 64; ++i)
        if (i >= n * 9) one[i] = 4;
      for (int i = 0; i < 64; ++i) p[800 + i] = one[i] + 1;
      auto two = read(800);
      for (int i = 0; i < 64; ++i)
        if (i >= n * 9) two[i] = 4;
      for (int i = 0; i < 64; ++i) p[801 + i] = two[i] + one[i];
      leave([&](int i) { return one[i] * two[i]; });
      for (int i = 0; i < 8; ++i) p[900 + i] += 8;
      auto b = read(880);
      for (int i = 0; i < 64; ++i) p[890 + i] += b[i];
      leave([&](int i) { return b[i]; });
      if (auto w = agree(outs[q].now(), out, 1e-6, 1e-6); !w.empty()) return std::to_string(n) + " out " + w;
      if (auto w = agree(ps[q].now(), p, 1e-6, 1e-6); !w.empty()) return std::to_string(n) + " p " + w;
      if (auto w = agree(as[q].now(), a, 1e-6, 1e-6); !w.empty()) return std::to_string(n) + " a " + w;
    }
    return "";
  };
  return j;
});

// --- rows whose distance stands in memory, with promises of which each part counts
struct AssumedCfg {
  int BM = 64, BN = 64, BK = 64;
};
auto assumed_stride = kernel("user_assumed_stride", [](const AssumedCfg& c, Ptr<const half> x, Ptr<const half> w,
                                                       Ptr<const int> ld, Ptr<half> y, I32 M, I32 N, I32 K) {
                        assume((K > 0) & (K % 16 == 0));
                        auto stride = load(ld);
                        assume((stride > 0) & (stride % 16 == 0) & (stride < (1 << 20)));
                        auto X = make_view<const half>(x, {M, K}, {stride, 1});
                        auto W = make_view<const half>(w, {K, N}, {N, 1});
                        auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                        Tile acc = zeros({c.BM, c.BN}, f32);
                        for (auto k : range(0, K, c.BK))
                          acc = dot(X.load({m, k}, {c.BM, c.BK}), W.load({k, n}, {c.BK, c.BN}), acc);
                        auto mm = m + arange(0, c.BM), nn = n + arange(0, c.BN);
                        store(y + (mm.col() * N + nn.row()), cast(acc, f16), {.mask = (mm < M).col() & (nn < N).row()});
                      }).grid([](const AssumedCfg& c, auto, auto, auto, auto, int M, int N, int) {
  return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
});
Register a9("assumed_stride", [](Env& e) {
  AssumedCfg c;
  const int M = e.big ? 4096 : 70, N = e.big ? 4096 : 80, K = e.big ? 4096 : 96, P = K + 16;
  auto x = random<half>(e, size_t(M) * P, -.3, .3), w = random<half>(e, size_t(K) * N, -.3, .3);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  auto ld = constant<int>(e, 4, P);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(assumed_stride, c, x.p, w.p, ld.p, y.p, M, N, K);
  j.check = [=] {
    std::vector<double> want;
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        double s = 0;
        for (int k = 0; k < K; ++k) s += x[size_t(m) * P + k] * w[size_t(k) * N + n];
        want.push_back(s);
      }
    return agree(y.now(), want, 4e-3, 2e-3);
  };
  return j;
});

}  // namespace odd_views
}  // namespace users
