// small_oddities.cpp - small kernels of unusual pieces: conversions between all types, atomics, nests of loops,
// products of odd sizes, views, orders.
#include <cstring>

#include "tests/users/use.h"
namespace users {
namespace small_oddities {
struct Cfg {
  int B = 64, warps = 1;
};
// conversions: f64 -> f16, bf16, f8 (one rounding), i64/u64/i32 -> f16, bf16, f32; f64 -> ints with roundings
auto conv =
    kernel("small_conversions", [](const Cfg& c, Ptr<const double> x, Ptr<const int64_t> i, Ptr<half> h,
                                   Ptr<bfloat16> b, Ptr<fp8_e4m3> f8, Ptr<float> f, Ptr<half> ih, Ptr<bfloat16> ib,
                                   Ptr<float> uf, Ptr<int64_t> down, Ptr<int32_t> up, Ptr<half> h2, I32 n) {
      num_warps(c.warps);
      auto p = program_id(0) * c.B + arange(0, c.B);
      auto in = p < n;
      auto v = load(x + p, {.mask = in});
      auto w = load(i + p, {.mask = in});
      store(h + p, cast(v, f16), {.mask = in}), store(b + p, cast(v, bf16), {.mask = in}),
          store(f8 + p, cast(v, f8e4m3), {.mask = in});
      store(f + p, cast(v, f32), {.mask = in}), store(ih + p, cast(w, f16), {.mask = in}),
          store(ib + p, cast(w, bf16), {.mask = in});
      store(uf + p, cast(cast(w, u64), f32), {.mask = in});
      store(down + p, cast(v, i64, Rounding::down), {.mask = in}),
          store(up + p, cast(v, i32, Rounding::up), {.mask = in});
      store(h2 + p, cast(v, f16, Rounding::toward_zero), {.mask = in});
    }).grid([](const Cfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, int n) {
      return Grid{cdiv(n, c.B)};
    });
Register r1("small_conversions", [](Env& e) {
  const int n = 3000;
  auto x = filled<double>(e, n, [&](size_t i) {
    // ties of f16 and bf16, moved by far less than f32 can hold
    const double base = std::ldexp(1 + int(e.uniform() * 2048) / (i % 2 ? 2048. : 256.), int(e.uniform() * 8) - 3);
    const double tiny = i % 3 == 0 ? 0 : i % 3 == 1 ? 1e-13 : -1e-13;
    return (base * (1 + tiny)) * (i % 5 == 0 ? -1 : 1);
  });
  auto ii = filled<int64_t>(e, n, [&](size_t i) {
    int64_t v = (int64_t(1) << (10 + i % 50)) * (i % 2 ? 1 : 1) +
                (int64_t(1) << (i % 50)) / 2 * int64_t(e.uniform() * 8) + int64_t(i % 3) - 1;
    return i % 7 == 0 ? -v : v;
  });
  auto h = constant<half>(e, n, 0), ih = constant<half>(e, n, 0), h2 = constant<half>(e, n, 0);
  auto b = constant<bfloat16>(e, n, 0), ib = constant<bfloat16>(e, n, 0);
  auto f8 = constant<fp8_e4m3>(e, n, 0);
  auto f = constant<float>(e, n, 0), uf = constant<float>(e, n, 0);
  auto down = constant<int64_t>(e, n, 0);
  auto up = constant<int32_t>(e, n, 0);
  Job j;
  j.add(conv, Cfg{}, x.p, ii.p, h.p, b.p, f8.p, f.p, ih.p, ib.p, uf.p, down.p, up.p, h2.p, n);
  j.check = [=] {
    auto rnd = [](double v, int bits, int emin, double most, bool zero = false) {  // to nearest even, of `bits` bits
      if (v == 0) return v;
      int ex;
      std::frexp(v, &ex);
      const double u = std::ldexp(1, std::max(ex - bits, emin));
      double q = v / u, r = zero ? std::trunc(q) : std::nearbyint(q);
      r *= u;
      return std::abs(r) > most ? std::copysign(INFINITY, r) : r;
    };
    std::string out;
    auto H = h.now(), IH = ih.now(), H2 = h2.now();
    auto Bv = b.now(), IB = ib.now();
    auto F8 = f8.now();
    auto F = f.now(), UF = uf.now();
    auto D = down.now();
    auto U = up.now();
    int bad[10]{};
    for (int i = 0; i < n; ++i) {
      const double v = x[i];
      const long double w = ii.h[i];
      bad[0] += float(H[i]) != rnd(v, 11, -24, 65504);
      bad[1] += float(Bv[i]) != rnd(v, 8, -133, 3e38);
      bad[2] += float(F8[i]) != std::min(448., std::max(-448., rnd(v, 4, -9, 1e9)));
      bad[3] += F[i] != float(v);
      const double wi = std::abs(double(w)) > 1e6 ? (w < 0 ? -INFINITY : INFINITY) : rnd(double(w), 11, -24, 65504);
      bad[4] += float(IH[i]) != wi;
      // bf16 of a 64-bit integer, rounded once
      long double a = std::abs(w), u = 1;
      while (a / u >= 256) u *= 2;
      long double q = a / u, fl = std::floor(q), fr = q - fl;
      if (fr > .5L || (fr == .5L && std::fmod(fl, 2.L) == 1)) fl += 1;
      bad[5] += (long double)float(IB[i]) != (w < 0 ? -fl * u : fl * u);
      bad[6] += UF[i] != float(uint64_t(ii.h[i]));
      bad[7] += D[i] != int64_t(std::floor(v)), bad[8] += U[i] != int32_t(std::ceil(v));
      bad[9] += float(H2[i]) != rnd(v, 11, -24, 65504, true);
    }
    for (int k = 0; k < 10; ++k)
      if (bad[k]) out += " column " + std::to_string(k) + ": " + std::to_string(bad[k]);
    return out;
  };
  return j;
});

// atomics with results, masks and all widths
auto atom = kernel("small_atomics", [](const Cfg& c, Ptr<float> fmx, Ptr<double> dmn, Ptr<int64_t> ex,
                                       Ptr<uint32_t> bits, Ptr<half> hs, Ptr<bfloat16> bs, Ptr<int64_t> cas,
                                       Ptr<int32_t> before, Ptr<const double> x, I32 n) {
              num_warps(c.warps);
              auto p = program_id(0) * c.B + arange(0, c.B);
              auto in = p < n;
              auto v = load(x + p, {.mask = in});
              auto slot = p % 7;
              atomic_max(fmx + slot, cast(v, f32), {.mask = in});
              atomic_min(dmn + slot, v, {.mask = in});
              atomic_exchange(ex + p, cast(p, i64) * 3000000000ll, {.mask = in});
              atomic_xor(bits + slot, cast(p, u32), {.mask = in});
              atomic_add(hs + slot, cast(cast(p % 3, f32), f16), {.mask = in});
              atomic_add(bs + (p % 11), cast(cast(p % 2, f32), bf16), {.mask = in});
              auto old = atomic_cas(cas + p, cast(p % 2, i64), cast(p, i64) + 5000000000ll, {.mask = in});
              store(before + p, cast(old, i32), {.mask = in});
            }).grid([](const Cfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, int n) {
  return Grid{cdiv(n, c.B)};
});
Register r2("small_atomics", [](Env& e) {
  const int n = 333;
  auto x = random<double>(e, n, -3, 3);
  auto fmx = constant<float>(e, 7, -INFINITY);
  auto dmn = filled<double>(e, 7, [](size_t) { return INFINITY; });
  auto ex = constant<int64_t>(e, n, 0), cas = filled<int64_t>(e, n, [](size_t i) { return int64_t(i % 3); });
  auto bits = constant<uint32_t>(e, 7, 0);
  auto hs = constant<half>(e, 7, 0);
  auto bs = constant<bfloat16>(e, 11, 0);
  auto before = constant<int32_t>(e, n, -1);
  Job j;
  restore(e, j, fmx, dmn, ex, cas, bits, hs, bs);
  j.inTurn = true;
  j.add(atom, Cfg{64, 2}, fmx.p, dmn.p, ex.p, bits.p, hs.p, bs.p, cas.p, before.p, x.p, n);
  j.check = [=] {
    std::vector<double> mx(7, -1e9), mn(7, 1e9), xr(7), h(7), b(11), ew, cw, bw;
    for (int i = 0; i < n; ++i) {
      mx[i % 7] = std::max(mx[i % 7], double(float(x[i]))), mn[i % 7] = std::min(mn[i % 7], x[i]);
      xr[i % 7] = int(xr[i % 7]) ^ i, h[i % 7] += i % 3, b[i % 11] += i % 2;
      ew.push_back(i * 3e9), bw.push_back(i % 3), cw.push_back(i % 3 == i % 2 ? i + 5e9 : i % 3);
    }
    std::string s;
    s += agree(fmx.now(), mx, 1e-9, 0), s += agree(dmn.now(), mn, 1e-9, 0), s += agree(bits.now(), xr, .5, 0),
        s += agree(hs.now(), h, .1, 0);
    s += agree(bs.now(), b, .1, 0), s += agree(ex.now(), ew, .5, 0), s += agree(cas.now(), cw, .5, 0),
        s += agree(before.now(), bw, .5, 0);
    return s;
  };
  return j;
});

// loops: i64 counters, negative steps, steps of the launch, breaks inside branches, values merged
auto loops =
    kernel("small_nests", [](const Cfg& c, Ptr<int64_t> out, I64 lo, I64 hi, I32 step, I32 n) {
      num_warps(c.warps);
      Tile a = full({}, 0, i64), b = full({}, 0, i64), d = full({}, 0, i64), k = full({}, 0, i64),
           last = full({}, -1, i64);
      for (auto i : range(lo, hi, 1000000007)) a += i % 1000, last = i;
      for (auto i : range(hi, lo, -999999937)) b += i % 1000;
      for (auto i : range(0, n, step)) {
        continue_if(i % 3 == 1);
        if_(
            i % 5 == 4, [&] { d += 100; }, [&] { d += cast(i, i64); });
        for (auto q : range(i, -4, -3)) {
          break_if(q * 2 < i);
          k += cast(q, i64);
          for (auto _ : when(q == 7)) k += 1000;
        }
        break_if(d > 900);
      }
      Tile x = full({}, 27, i32), steps = full({}, 0, i32);
      while_([&] { return x != 1; },
             [&] {
               if_(
                   x % 2 == 0, [&] { x = x / 2; }, [&] { x = 3 * x + 1; });
               steps += 1;
               for (auto _ : when(steps > 1000)) x = 1;
             });
      Tile none = full({}, 5, i64);
      for (auto i : range(n, n, step)) none += cast(i, i64);
      for (auto i : range(10, 3)) none += cast(i, i64);
      auto all = arange(0, 8);
      Tile v = where(
          all == 0, a,
          where(all == 1, b,
                where(all == 2, d,
                      where(all == 3, k,
                            where(all == 4, cast(steps, i64), where(all == 5, none, where(all == 6, last, 0)))))));
      store(out + all, v);
    }).grid([](const Cfg&, auto, auto, auto, int, int) { return Grid{1}; });
Register r3("small_nests", [](Env& e) {
  auto out = constant<int64_t>(e, 8, -9);
  const int64_t lo = -20000000000ll, hi = 31234567890ll;
  const int step = 2, n = 41;
  Job j;
  j.add(loops, Cfg{}, out.p, lo, hi, step, n);
  j.check = [=] {
    int64_t a = 0, b = 0, d = 0, k = 0, last = -1;
    for (int64_t i = lo; i < hi; i += 1000000007) a += i % 1000, last = i;
    for (int64_t i = hi; i > lo; i -= 999999937) b += i % 1000;
    for (int i = 0; i < n; i += step) {
      if (i % 3 == 1) continue;
      if (i % 5 == 4)
        d += 100;
      else
        d += i;
      for (int q = i; q > -4; q -= 3) {
        if (q * 2 < i) break;
        k += q;
        if (q == 7) k += 1000;
      }
      if (d > 900) break;
    }
    return agree(out.now(), {double(a), double(b), double(d), double(k), 111, 5, double(last), 0}, .5, 0);
  };
  return j;
});

// odd products: 5 x 7 x 3, batches, f64, i8, transposed both, tiles larger than the problem, inside of branches
auto dots = kernel("small_dots", [](const Cfg& c, Tensor<const half, 2> A, Tensor<const half, 2> B, Tensor<float, 2> C,
                                    Tensor<const double, 3> D, Tensor<double, 3> E, Tensor<const int8_t, 2> I,
                                    Tensor<int32_t, 2> J, B1 yes) {
              num_warps(c.warps);
              Tile acc = zeros({5, 3}, f32);
              for (auto k : range(0, 30, 7)) {
                auto a = A.load({0, k}, {5, 7}), b = B.load({k, 0}, {7, 3});
                if_(
                    yes & (k != 14), [&] { acc = dot(a, b, acc); }, [&] { acc = dot(a, b, acc) * 2.f; });
              }
              C.store({0, 0}, acc);
              auto d = D.load({0, 0, 0}, {3, 6, 5});
              E.store({0, 0, 0}, dot(d, permute(d, {0, 2, 1})));
              auto i = I.load({0, 0}, {33, 17});
              J.store({0, 0}, dot(trans(i), i));
            }).grid([](const Cfg&, const auto&...) { return Grid{1}; });
Register r4("small_dots", [](Env& e) {
  auto A = random<half>(e, 4 * 30), B = random<half>(e, 30 * 3);
  auto C = constant<float>(e, 12, NAN);
  auto D = random<double>(e, 3 * 6 * 5), E = constant<double>(e, 3 * 36, NAN);
  auto I = integers<int8_t>(e, 31 * 17, -128, 128);
  auto J = constant<int32_t>(e, 17 * 17, 0);
  Job j;
  j.add(dots, Cfg{64, 2}, A.view(4, 30), B.view(30, 3), C.view(4, 3), D.view(3, 6, 5), E.view(3, 6, 6), I.view(31, 17),
        J.view(17, 17), true);
  j.check = [=] {
    std::vector<double> c(12), d(108), i(289);
    for (int k0 = 0; k0 < 30; k0 += 7)
      for (int m = 0; m < 4; ++m)
        for (int n = 0; n < 3; ++n) {
          for (int k = k0; k < std::min(30, k0 + 7); ++k) c[m * 3 + n] += A[m * 30 + k] * B[k * 3 + n];
          if (k0 == 14) c[m * 3 + n] *= 2;
        }
    for (int b = 0; b < 3; ++b)
      for (int m = 0; m < 6; ++m)
        for (int n = 0; n < 6; ++n)
          for (int k = 0; k < 5; ++k) d[b * 36 + m * 6 + n] += D[b * 30 + m * 5 + k] * D[b * 30 + n * 5 + k];
    for (int m = 0; m < 17; ++m)
      for (int n = 0; n < 17; ++n)
        for (int k = 0; k < 31; ++k) i[m * 17 + n] += I.h[k * 17 + m] * I.h[k * 17 + n];
    return agree(C.now(), c, 1e-4, 1e-4) + agree(E.now(), d, 1e-12, 1e-12) + agree(J.now(), i, .5, 0);
  };
  return j;
});

// views: transposed, strides of 0, ranks, gathers of rows outside, boxes far outside, 8-bit and f64 elements
auto views = kernel("small_views", [](const Cfg& c, Tensor<const uint8_t, 2> T, Tensor<const double, 2> Z,
                                      Tensor<const fp8_e5m2, 2> R, Tensor<int32_t, 2> out, Tensor<double, 2> zo,
                                      Tensor<float, 2> ro) {
               num_warps(c.warps);
               auto a = cast(T.load({-3, 2}, {9, 13}, {.pad = 9}), i32);
               auto b = cast(T.load({100, -50}, {9, 13}, {.pad = 3}), i32);
               out.store({-1, 0}, a * 10 + b);
               zo.store({0, 0}, Z.load({1, -1}, {4, 5}) + 1.);
               auto rows = arange(0, 6) * 3 - 4;
               ro.store({0, -2}, cast(R.gather(rows, 1, 11, {.pad = 0.5f}), f32));
             }).grid([](const Cfg&, const auto&...) { return Grid{1}; });
Register r5("small_views", [](Env& e) {
  auto t = integers<uint8_t>(e, 200, 0, 256);
  auto z = random<double>(e, 7);
  auto r = random<fp8_e5m2>(e, 9 * 10);
  auto out = constant<int32_t>(e, 9 * 12, -1);
  auto zo = constant<double>(e, 20, -1);
  auto ro = constant<float>(e, 6 * 9, -1);
  TensorView<const uint8_t, 2> T(t.p + 1, {7, 11}, {1, 8});  // transposed
  TensorView<const double, 2> Z(z.p, {5, 6}, {0, 1});
  Job j;
  j.add(views, Cfg{}, T, Z, TensorView<const fp8_e5m2, 2>(r.p, {9, 9}, {10, 1}), out.view(9, 12), zo.view(4, 5),
        ro.view(6, 9));
  j.check = [=] {
    std::vector<double> o(108, -1), zz, rr;
    for (int y = 0; y < 9; ++y)
      for (int x = 0; x < 12; ++x) {
        const int ty = y + 1 - 3, tx = x + 2;  // row y of out is row y + 1 of the box
        if (y + 1 < 9) o[y * 12 + x] = (ty >= 0 && ty < 7 && tx < 11 ? t.h[1 + ty + 8 * tx] : 9) * 10 + 3;
      }
    for (int y = 0; y < 4; ++y)
      for (int x = 0; x < 5; ++x) zz.push_back((x - 1 >= 0 && y + 1 < 5 && x - 1 < 6 ? z[x - 1] : 0) + 1);
    for (int y = 0; y < 6; ++y)
      for (int x = 0; x < 9; ++x) {
        const int row = y * 3 - 4, col = 1 + x + 2;
        rr.push_back(row >= 0 && row < 9 && col < 9 ? r[row * 10 + col] : .5);
      }
    return agree(out.now(), o, .5, 0) + agree(zo.now(), zz, 1e-12, 0) + agree(ro.now(), rr, 1e-9, 0);
  };
  return j;
});

// orders: sort of i64 and f64 in three dims along the middle axis, payloads, topk ascending, scans of pairs backwards
auto orders = kernel("small_orders", [](const Cfg& c, Ptr<const int64_t> x, Ptr<int64_t> s, Ptr<int32_t> at,
                                        Ptr<const double> y, Ptr<double> best, Ptr<double> far, Ptr<int32_t> hist) {
                num_warps(c.warps);
                auto i3 = expand_dims(expand_dims(arange(0, 3), 1), 2), i5 = expand_dims(arange(0, 5).col(), 0),
                     i7 = expand_dims(arange(0, 7).row(), 0);
                auto p = (i3 * 5 + i5) * 7 + i7;
                auto v = load(x + p);
                auto order = argsort(v, axis(1), {.descending = true});
                store(s + p, take(v, order, 1)), store(at + p, order);
                auto w = load(y + p);
                // running maxima from the end along the last dim, with where they are
                auto [m, k] = scan({w, broadcast_to(i7, {3, 5, 7})}, axis(2),
                                   [](Tile a, Tile ai, Tile b, Tile bi) {
                                     auto first = a >= b;
                                     return std::tuple(where(first, a, b), where(first, ai, bi));
                                   },
                                   {.reverse = true});
                store(best + p, m + cast(k, f64) * 100.);
                store(far + p, flip(w, axis(0)) - flip(w, axis(1)));
                store(hist + arange(0, 9), histogram(cast(v % 9, i32), 9, {.mask = v > 0}));
              }).grid([](const Cfg&, auto...) { return Grid{1}; });
Register r6("small_orders", [](Env& e) {
  auto x = filled<int64_t>(e, 105, [&](size_t) {
    return int64_t((e.uniform() - .5) * 1e6) * 10000000001ll / (1 + int(e.uniform() * 2) * 3000);
  });
  for (int i = 0; i < 20 && e.device; ++i) x.h[i * 5] = 77;
  x = repeated<int64_t>(e, 105, x.h);
  auto y = filled<double>(e, 105, [&](size_t) { return double(int(e.uniform() * 5)); });
  auto s = constant<int64_t>(e, 105, 0);
  auto at = constant<int32_t>(e, 105, -1), hist = constant<int32_t>(e, 9, -1);
  auto best = constant<double>(e, 105, NAN), far = constant<double>(e, 105, NAN);
  Job j;
  j.add(orders, Cfg{64, 2}, x.p, s.p, at.p, y.p, best.p, far.p, hist.p);
  j.check = [=] {
    std::vector<double> ws(105), wa(105), wb(105), wf(105), wh(9);
    for (int a = 0; a < 3; ++a)
      for (int c = 0; c < 7; ++c) {
        std::vector<int> o{0, 1, 2, 3, 4};
        std::stable_sort(o.begin(), o.end(),
                         [&](int p, int q) { return x.h[(a * 5 + p) * 7 + c] > x.h[(a * 5 + q) * 7 + c]; });
        for (int k = 0; k < 5; ++k)
          ws[(a * 5 + k) * 7 + c] = double(x.h[(a * 5 + o[k]) * 7 + c]), wa[(a * 5 + k) * 7 + c] = o[k];
      }
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 5; ++b) {
        double m = -1;
        int k = 0;
        for (int c = 6; c >= 0; --c) {
          const double v = y[(a * 5 + b) * 7 + c];
          if (c == 6 || v > m) m = v, k = c;
          wb[(a * 5 + b) * 7 + c] = m + 100 * k;
          wf[(a * 5 + b) * 7 + c] = y[((2 - a) * 5 + b) * 7 + c] - y[(a * 5 + 4 - b) * 7 + c];
        }
      }
    for (auto v : x.h)
      if (v > 0) ++wh[v % 9];
    return agree(s.now(), ws, .5, 1e-15) + agree(at.now(), wa, .5, 0) + agree(best.now(), wb, 1e-9, 0) +
           agree(far.now(), wf, 1e-9, 0) + agree(hist.now(), wh, .5, 0);
  };
  return j;
});
}  // namespace small_oddities
}  // namespace users
