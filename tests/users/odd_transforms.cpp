// odd_transforms.cpp - transforms over subsets, pictures transformed in two dims, rotations of Givens, interleaved
// colours in 16 bits, a median by sorting, scans of three tiles from the end, cells as bits of words.
#include "tests/users/use.h"
namespace users {
namespace odd_transforms {

// --- sums over all subsets of twelve things (zeta transform), in 64-bit integers
struct ZetaCfg {
  int bits = 12, warps = 4;
};
auto zeta =
    kernel("user_zeta", [](const ZetaCfg& c, Tensor<const int64_t, 2> in, Tensor<int64_t, 2> out) {
      num_warps(c.warps);
      const int n = 1 << c.bits;
      auto r = program_id(0);
      Tile x = in.load({r, 0}, {n});
      for (int h = 1; h < n; h *= 2) {
        auto y = reshape(x, {n / (2 * h), 2, h});
        auto low = extract(y, {0, 0, 0}, {n / (2 * h), 1, h}), high = extract(y, {0, 1, 0}, {n / (2 * h), 1, h});
        x = reshape(cat(low, low + high, 1), {n});
      }
      out.store({r, 0}, x.row());
    }).grid([](const ZetaCfg&, const auto& in, const auto&) { return Grid{in.shape[0]}; });
Register r1("zeta", [](Env& e) {
  const int n = e.big ? 4096 : 3, bits = e.big ? 12 : 7, N = 1 << bits;
  auto in = integers<int64_t>(e, size_t(n) * N, -1000, 1000);
  auto out = constant<int64_t>(e, size_t(n) * N, 0);
  Job j;
  j.mbytes = 16e-6 * n * N;
  j.add(zeta, ZetaCfg{bits, 4}, in.view(n, N), out.view(n, N));
  j.check = [=] {
    std::vector<double> want;
    for (int r = 0; r < n; ++r)
      for (int s = 0; s < N; ++s) {
        int64_t sum = 0;
        for (int t = 0; t < N; ++t)
          if ((t & s) == t) sum += in.h[size_t(r) * N + t];
        want.push_back(double(sum));
      }
    return agree(out.now(), want, .1, 0);
  };
  return j;
});

// --- pictures of 16 x 16 transformed along both dims: products of three dims by the same matrix
struct PictureCfg {
  int B = 4, warps = 4;
};
auto dft2d =
    kernel("user_dft2d", [](const PictureCfg& c, Tensor<const float, 3> A, Tensor<float, 3> Re, Tensor<float, 3> Im) {
      num_warps(c.warps);
      auto b = program_id(0) * c.B;
      auto turn = cast(arange(0, 16).col() * arange(0, 16).row() % 16, f32) * -0.125f;
      auto all = [&](const Tile& w) { return broadcast_to(expand_dims(w, 0), {c.B, 16, 16}); };
      auto wr = all(cospi(turn)), wi = all(sinpi(turn));
      Tile none = zeros({c.B, 16, 16}, f32);
      auto a = A.load({b, 0, 0}, {c.B, 16, 16});
      auto tr = dot(a, wr, none), ti = dot(a, wi, none);
      Re.store({b, 0, 0}, dot(wr, tr, none) - dot(wi, ti, none));
      Im.store({b, 0, 0}, dot(wi, tr, dot(wr, ti, none)));
    }).grid([](const PictureCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.B)}; });
Register r2("dft2d", [](Env& e) {
  const int n = e.big ? 1 << 16 : 11;
  auto a = random<float>(e, size_t(n) * 256);
  auto re = constant<float>(e, size_t(n) * 256, NAN), im = constant<float>(e, size_t(n) * 256, NAN);
  Job j;
  j.mbytes = 12e-6 * n * 256;
  j.add(dft2d, PictureCfg{}, a.view(n, 16, 16), re.view(n, 16, 16), im.view(n, 16, 16));
  j.check = [=] {
    std::vector<double> x, y;
    for (int p = 0; p < n; ++p)
      for (int k = 0; k < 256; ++k) {
        double s = 0, t = 0;
        for (int i = 0; i < 256; ++i) {
          const double w = -M_PI / 8 * (k / 16 * (i / 16) + k % 16 * (i % 16));
          s += a[p * 256 + i] * std::cos(w), t += a[p * 256 + i] * std::sin(w);
        }
        x.push_back(s), y.push_back(t);
      }
    const auto wrong = agree(re.now(), x, 1e-4, 1e-5);
    return wrong.empty() ? agree(im.now(), y, 1e-4, 1e-5) : wrong;
  };
  return j;
});

// --- least squares of 6 x 4 by rotations of Givens, one system an element, in float64
struct GivensCfg {
  int B = 64, warps = 2;
};
auto givens =
    kernel("user_givens", [](const GivensCfg& c, Ptr<const double> A, Ptr<const double> b, Ptr<double> X, I32 n) {
      // A [24, n], b [6, n], X [4, n]
      num_warps(c.warps);
      constexpr int M = 6, N = 4;
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto mask = i < n;
      Tile a[M][N + 1];
      for (int r = 0; r < M; ++r)
        for (int k = 0; k <= N; ++k)
          a[r][k] = k < N ? load(A + ((r * N + k) * n + i), {.mask = mask, .other = r == k ? 1 : 0})
                          : load(b + (r * n + i), {.mask = mask});
      for (int k = 0; k < N; ++k)
        for (int r = k + 1; r < M; ++r) {
          auto h = rsqrt(a[k][k] * a[k][k] + a[r][k] * a[r][k]), cs = a[k][k] * h, sn = a[r][k] * h;
          for (int q = k; q <= N; ++q) {
            auto up = cs * a[k][q] + sn * a[r][q];
            a[r][q] = cs * a[r][q] - sn * a[k][q], a[k][q] = up;
          }
        }
      for (int k = N - 1; k >= 0; --k) {
        for (int q = k + 1; q < N; ++q) a[k][N] -= a[k][q] * a[q][N];
        a[k][N] = a[k][N] / a[k][k];
        store(X + (k * n + i), a[k][N], {.mask = mask});
      }
    }).grid([](const GivensCfg& c, const double*, const double*, double*, int n) { return Grid{cdiv(n, c.B)}; });
Register r3("givens", [](Env& e) {
  const int n = e.big ? 1 << 18 : 131;
  auto a = random<double>(e, 24 * size_t(n)), b = random<double>(e, 6 * size_t(n)),
       x = constant<double>(e, 4 * size_t(n), NAN);
  Job j;
  j.mbytes = 272e-6 * n;
  j.add(givens, GivensCfg{}, a.p, b.p, x.p, n);
  j.check = [=] {
    // A^T (A x - b) = 0
    const auto y = x.now();
    std::vector<double> got;
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < 4; ++k) {
        double s = 0;
        for (int r = 0; r < 6; ++r) {
          double d = -b[size_t(r) * n + i];
          for (int q = 0; q < 4; ++q) d += a[size_t(r * 4 + q) * n + i] * y[size_t(q) * n + i];
          s += a[size_t(r * 4 + k) * n + i] * d;
        }
        got.push_back(s);
      }
    return agree(got, std::vector<double>(got.size(), 0.), 1e-9, 0);
  };
  return j;
});

// --- an unsharp mask of interleaved colours: 16-bit arithmetic, saturated bytes
struct SharpCfg {
  int BY = 4, BX = 384, warps = 4;
};
auto sharpen = kernel("user_sharpen", [](const SharpCfg& c, Tensor<const uint8_t, 2> A, Tensor<uint8_t, 2> B) {
                 num_warps(c.warps);
                 auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
                 auto at = [&](int dy, int dx) { return cast(A.load({y + dy, x + 3 * dx}, {c.BY, c.BX}), i16); };
                 auto blur = at(-1, -1) + at(-1, 1) + at(1, -1) + at(1, 1) +
                             (at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1)) * 2 + at(0, 0) * 4;
                 auto middle = at(0, 0);
                 B.store({y, x}, saturate(middle + ((middle * 16 - blur) >> 4), u8));
               }).grid([](const SharpCfg& c, const auto& a, const auto&) {
  return Grid{cdiv(a.shape[1], c.BX), cdiv(a.shape[0], c.BY)};
});
Register r4("sharpen", [](Env& e) {
  const int H = e.big ? 2160 : 19, W = e.big ? 3840 : 151;
  auto a = integers<uint8_t>(e, size_t(H) * W * 3, 0, 256), b = constant<uint8_t>(e, size_t(H) * W * 3, 0);
  Job j;
  j.mbytes = 6e-6 * H * W;
  j.add(sharpen, SharpCfg{}, a.view(H, 3 * W), b.view(H, 3 * W));
  j.check = [=] {
    std::vector<double> want;
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < 3 * W; ++x) {
        int blur = 0;
        for (int k = 0; k < 9; ++k) {
          const int v = y + k / 3 - 1, u = x + 3 * (k % 3 - 1);
          if (v >= 0 && v < H && u >= 0 && u < 3 * W) blur += a.h[size_t(v) * 3 * W + u] * (k % 2 ? 2 : k == 4 ? 4 : 1);
        }
        const int m = a.h[size_t(y) * 3 * W + x];
        want.push_back(std::clamp(m + ((m * 16 - blur) >> 4), 0, 255));
      }
    return agree(b.now(), want, .1, 0);
  };
  return j;
});

// --- medians of 5 x 5: the neighbours are put on top of each other and sorted
struct MedianCfg {
  int BY = 4, BX = 64, warps = 4;
};
auto median25 = kernel("user_median25", [](const MedianCfg& c, Tensor<const float, 2> A, Tensor<float, 2> B) {
                  num_warps(c.warps);
                  auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
                  Tile stack;
                  for (int k = 0; k < 25; ++k) {
                    auto one = expand_dims(A.load({y + (k / 5 - 2), x + (k % 5 - 2)}, {c.BY, c.BX}), 2);
                    stack = k ? cat(stack, one, 2) : one;
                  }
                  B.store({y, x}, squeeze(extract(sort(stack, axis(2)), {0, 0, 12}, {c.BY, c.BX, 1}), 2));
                }).grid([](const MedianCfg& c, const auto& a, const auto&) {
  return Grid{cdiv(a.shape[1], c.BX), cdiv(a.shape[0], c.BY)};
});
Register r5("median25", [](Env& e) {
  const int H = e.big ? 2048 : 15, W = e.big ? 2048 : 77;
  auto a = random<float>(e, size_t(H) * W), b = constant<float>(e, size_t(H) * W, NAN);
  Job j;
  j.mbytes = 8e-6 * H * W;
  j.add(median25, MedianCfg{}, a.view(H, W), b.view(H, W));
  j.check = [=] {
    std::vector<double> want;
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        std::vector<double> all;
        for (int k = 0; k < 25; ++k) {
          const int v = y + k / 5 - 2, u = x + k % 5 - 2;
          all.push_back(v < 0 || u < 0 || v >= H || u >= W ? 0 : a[size_t(v) * W + u]);
        }
        std::nth_element(all.begin(), all.begin() + 12, all.end());
        want.push_back(all[12]);
      }
    return agree(b.now(), want, 1e-7, 0);
  };
  return j;
});

// --- from the end of every column: sums of a segment, its largest, and how long it is (three tiles in one scan)
struct TailCfg {
  int T = 96, B = 32, warps = 4;
};
auto tails = kernel("user_tails", [](const TailCfg& c, Tensor<const float, 2> X, Tensor<const bool, 2> ends,
                                     Tensor<float, 2> S, Tensor<float, 2> M, Tensor<int32_t, 2> N) {
               num_warps(c.warps);
               auto at = program_id(0) * c.B;
               auto x = X.load({0, at}, {c.T, c.B});
               auto stop = cast(ends.load({0, at}, {c.T, c.B}), i32);
               auto [s, m, n, f] = scan({x, x, ones({c.T, c.B}, i32), stop}, axis(0),
                                        [](Tile s0, Tile m0, Tile n0, Tile f0, Tile s1, Tile m1, Tile n1, Tile f1) {
                                          auto cut =
                                              f1 != 0;  // an element that ends its segment forgets those behind it
                                          return std::tuple(where(cut, s1, s0 + s1), where(cut, m1, max(m0, m1)),
                                                            where(cut, n1, n0 + n1), f0 | f1);
                                        },
                                        {.reverse = true});
               S.store({0, at}, s), M.store({0, at}, m), N.store({0, at}, n);
             }).grid([](const TailCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[1], c.B)}; });
Register r6("tails", [](Env& e) {
  const int T = e.big ? 96 : 35, n = e.big ? 1 << 18 : 101;
  auto x = random<float>(e, size_t(T) * n);
  auto bytes = drawn<uint8_t>(e, size_t(T) * n, [&] { return uint8_t(e.uniform() < .15); });
  auto s = constant<float>(e, size_t(T) * n, NAN), m = constant<float>(e, size_t(T) * n, NAN);
  auto len = constant<int32_t>(e, size_t(T) * n, -1);
  Job j;
  j.mbytes = 17e-6 * T * n;
  j.add(tails, TailCfg{T, 32, 4}, x.view(T, n), TensorView<bool, 2>(reinterpret_cast<bool*>(bytes.p), {T, n}),
        s.view(T, n), m.view(T, n), len.view(T, n));
  j.check = [=] {
    std::vector<double> a(size_t(T) * n), b(a), c(a);
    for (int k = 0; k < n; ++k) {
      double sum = 0, most = -INFINITY, count = 0;
      for (int t = T - 1; t >= 0; --t) {
        const size_t i = size_t(t) * n + k;
        if (bytes.h[i]) sum = 0, most = -INFINITY, count = 0;
        sum += x[i], most = std::max(most, x[i]), ++count;
        a[i] = sum, b[i] = most, c[i] = count;
      }
    }
    auto wrong = agree(s.now(), a, 1e-5, 1e-5);
    if (wrong.empty()) wrong = agree(m.now(), b, 1e-6, 0);
    return wrong.empty() ? agree(len.now(), c, .1, 0) : wrong;
  };
  return j;
});

// --- the game of life, 64 cells in a word: neighbours are added up as bits
struct WordsCfg {
  int BY = 8, BX = 32, warps = 4;
};
auto life64 =
    kernel("user_life64", [](const WordsCfg& c, Tensor<const uint64_t, 2> A, Tensor<uint64_t, 2> B) {
      num_warps(c.warps);
      auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
      auto at = [&](int dy, int dx) { return A.load({y + dy, x + dx}, {c.BY, c.BX}); };
      std::vector<Tile> around;
      Tile self;
      for (int dy = -1; dy <= 1; ++dy) {
        auto m = at(dy, 0);
        around.push_back(m << 1 | at(dy, -1) >> 63), around.push_back(m >> 1 | at(dy, 1) << 63);
        if (dy)
          around.push_back(m);
        else
          self = m;
      }
      Tile one = zeros({c.BY, c.BX}, u64), two = one, four = one;  // of the number of neighbours, which stops at 7
      for (auto& n : around) {
        auto carry = one & n;
        one = one ^ n;
        auto more = two & carry;
        two = two ^ carry, four = four | more;
      }
      B.store({y, x}, two & ~four & (one | self));
    }).grid([](const WordsCfg& c, const auto& a, const auto&) {
      return Grid{cdiv(a.shape[1], c.BX), cdiv(a.shape[0], c.BY)};
    });
Register r7("life64", [](Env& e) {
  const int H = e.big ? 16384 : 21, W = e.big ? 256 : 35;
  auto a = drawn<uint64_t>(e, size_t(H) * W, [&] {
    uint64_t w = 0;
    for (int b = 0; b < 64; b += 16) w |= uint64_t(e.uniform() * 65536) << b;
    return w;
  });
  auto b = constant<uint64_t>(e, size_t(H) * W, 0);
  Job j;
  j.mbytes = 16e-6 * H * W;
  j.add(life64, WordsCfg{}, a.view(H, W), b.view(H, W));
  j.check = [=] {
    auto cell = [&](int y, int x) {
      return y >= 0 && x >= 0 && y < H && x < 64 * W && (a.h[size_t(y) * W + x / 64] >> (x % 64) & 1);
    };
    std::vector<double> got, want;
    const auto out = b.now();
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < 64 * W; ++x) {
        int n = 0;
        for (int k = 0; k < 9; ++k) n += k != 4 && cell(y + k / 3 - 1, x + k % 3 - 1);
        want.push_back(n == 3 || (n == 2 && cell(y, x))), got.push_back(out[size_t(y) * W + x / 64] >> (x % 64) & 1);
      }
    return agree(got, want, .1, 0);
  };
  return j;
});

}  // namespace odd_transforms
}  // namespace users
