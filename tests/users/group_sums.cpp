// group_sums.cpp - sums of what flags choose: groups of a table, triples of particles, spectra of uneven samples.
#include "tests/users/use.h"
namespace users {
namespace group_sums {

// --- TPC-H query 1: decimals in i64 summed in six groups, several sums and counts at once, added atomically
struct Q1Cfg {
  int B = 1024, G = 8, warps = 4;
};
auto q1 = kernel("user_q1", [](const Q1Cfg& c, Ptr<const int32_t> date, Ptr<const uint8_t> flag,
                               Ptr<const uint8_t> status, Ptr<const int64_t> quantity, Ptr<const int64_t> price,
                               Ptr<const int8_t> discount, Ptr<const int8_t> tax, Ptr<int64_t> sums, I32 n, I32 limit) {
            num_warps(c.warps);
            Tile acc[5];
            for (auto& a : acc) a = zeros({1, c.G}, i64);
            for (auto at : range(program_id(0) * c.B, n, num_programs(0) * c.B)) {
              auto i = at + arange(0, c.B);
              auto in = i < n;
              auto keep = in & (load(date + i, {.mask = in}) <= limit);
              auto group = cast(load(flag + i, {.mask = in}), i32) * 2 + cast(load(status + i, {.mask = in}), i32);
              auto q = load(quantity + i, {.mask = keep}), p = load(price + i, {.mask = keep});
              auto d = cast(load(discount + i, {.mask = keep}), i64), t = cast(load(tax + i, {.mask = keep}), i64);
              auto dp = p * (100 - d), charge = dp * (100 + t);
              auto mine = (group.col() == arange(0, c.G).row()) & keep.col();
              auto add = [&](int k, const Tile& v) { acc[k] += sum(where(mine, v.col(), 0), axis(0)); };
              add(0, q), add(1, p), add(2, dp), add(3, charge), add(4, cast(keep, i64));
            }
            for (int k = 0; k < 5; ++k)
              atomic_add(sums + k * c.G + arange(0, c.G).row(), acc[k], {.order = Order::relaxed});
          }).grid([](const Q1Cfg& c, auto*, auto*, auto*, auto*, auto*, auto*, auto*, auto*, int n, int) {
  return Grid{std::min(cdiv(n, c.B), 1056)};
});
Register r1("q1", [](Env& e) {
  Q1Cfg c;
  if (!e.big) c = {256, 8, 4};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  int n = e.big ? 60000000 : 3000;
  auto date = integers<int32_t>(e, n, 0, 2500);
  auto f = integers<uint8_t>(e, n, 0, 3), s = integers<uint8_t>(e, n, 0, 2);
  auto q = integers<int64_t>(e, n, 1, 51), p = integers<int64_t>(e, n, 90000, 10000000);
  auto d = integers<int8_t>(e, n, 0, 11), t = integers<int8_t>(e, n, 0, 9);
  auto sums = constant<int64_t>(e, 40, 0);
  Job j;
  j.mbytes = 24e-6 * n;
  j.add(q1, c, date.p, f.p, s.p, q.p, p.p, d.p, t.p, sums.p, n, 2400);
  j.check = [=] {
    std::vector<int64_t> want(40);
    for (int i = 0; i < n; ++i) {
      if (date.at(i) > 2400) continue;
      int g = f.at(i) * 2 + s.at(i);
      int64_t dp = p.at(i) * (100 - d.at(i));
      want[g] += q.at(i), want[8 + g] += p.at(i), want[16 + g] += dp, want[24 + g] += dp * (100 + t.at(i)),
          ++want[32 + g];
    }
    return sums.now() == want ? std::string() : std::string("other sums");
  };
  return j;
});

// --- forces of three bodies (Axilrod-Teller): a sum over pairs for every particle, the middle dim reduced in turn
struct TriplesCfg {
  int BI = 16, BJ = 16, BK = 16, warps = 4;
};
auto axilrod =
    kernel("user_axilrod", [](const TriplesCfg& c, Tensor<const float, 2> X, Ptr<double> energy, F32 nu) {
      num_warps(c.warps);
      auto n = X.dim(1);
      auto i = program_id(0) * c.BI + arange(0, c.BI);
      auto at = [&](const Tile& who, int d) { return load(X.ptr() + d * n + who, {.mask = who < n}); };
      auto dims = [](const Tile& t, int where_) {
        return where_ == 0 ? expand_dims(t.col(), 2) : where_ == 1 ? expand_dims(t.row(), 2) : expand_dims(t.row(), 0);
      };
      Tile total = zeros({c.BI, 1, 1}, f64);
      for (auto j0 : range(0, n, c.BJ)) {
        auto j = j0 + arange(0, c.BJ);
        for (auto k0 : range(j0, n, c.BK)) {
          auto k = k0 + arange(0, c.BK);
          auto ii = dims(i, 0), jj = dims(j, 1), kk = dims(k, 2);
          auto ok = (ii < jj) & (jj < kk) & (kk < n);
          auto square = [&](const Tile& a, int wa, const Tile& b, int wb) {
            Tile s;
            for (int d = 0; d < 3; ++d) {
              auto x = dims(at(a, d), wa) - dims(at(b, d), wb);
              s = d ? s + x * x : x * x;
            }
            return s;
          };
          auto ij = square(i, 0, j, 1), jk = square(j, 1, k, 2), ik = square(i, 0, k, 2);
          auto product_ = max(ij * jk * ik, 1e-20f);
          auto angles = 0.375f * (ij + jk - ik) * (jk + ik - ij) * (ik + ij - jk);
          auto r = rsqrt(product_);
          auto e = r * r * r * (1.f + angles / product_);
          total += cast(sum(sum(where(ok, e, 0.f), axis(2)), axis(1)), f64);
        }
      }
      atomic_add(energy, cast(nu, f64) * sum(total), {.order = Order::relaxed});
    }).grid([](const TriplesCfg& c, const auto& x, auto*, float) { return Grid{cdiv(x.shape[1], c.BI)}; });
Register r2("axilrod", [](Env& e) {
  TriplesCfg c;
  c.BI = e.field("BI", c.BI), c.BJ = e.field("BJ", c.BJ), c.BK = e.field("BK", c.BK),
  c.warps = e.field("warps", c.warps);
  int n = e.big ? 1024 : 37;
  auto x = random<float>(e, 3 * n, 0, 6);
  auto en = constant<double>(e, 1, 0);
  Job j;
  j.gflop = 1e-9 * 40 * n * double(n) * n / 2;
  j.add(axilrod, c, x.view(3, n), en.p, 1.5f);
  j.check = [=] {
    double s = 0;
    auto sq = [&](int a, int b) {
      double r = 0;
      for (int d = 0; d < 3; ++d) r += std::pow(x[d * n + a] - x[d * n + b], 2);
      return r;
    };
    for (int a = 0; a < n; ++a)
      for (int b = a + 1; b < n; ++b)
        for (int k = b + 1; k < n; ++k) {
          double ij = sq(a, b), jk = sq(b, k), ik = sq(a, k), p = ij * jk * ik;
          s += std::pow(p, -1.5) * (1 + .375 * (ij + jk - ik) * (jk + ik - ij) * (ik + ij - jk) / p);
        }
    return agree(en.now(), {1.5 * s}, 1e-6, 1e-4);
  };
  return j;
});

// --- Lomb-Scargle: spectra of samples at uneven times, f64 phases reduced to turns, sums of five products
struct LombCfg {
  int BF = 64, BT = 64, warps = 4;
};
auto lomb = kernel("user_lomb", [](const LombCfg& c, Ptr<const double> times, Ptr<const float> values, Ptr<float> power,
                                   I32 n, I32 nf, F64 df) {
              num_warps(c.warps);
              auto f = program_id(0) * c.BF + arange(0, c.BF);
              auto freq = cast(f + 1, f64) * df;
              Tile acc[5];
              for (auto& a : acc) a = zeros({c.BF, 1}, f32);
              for (auto t0 : range(0, n, c.BT)) {
                auto t = t0 + arange(0, c.BT);
                auto turns = freq.col() * load(times + t, {.mask = t < n}).row();
                auto x = cast(turns - rint(turns), f32) * 2.f;
                auto s = sinpi(x), co = where((t < n).row(), cospi(x), 0.f);
                auto y = load(values + t, {.mask = t < n}).row();
                acc[0] += sum(y * s, axis(1)), acc[1] += sum(y * co, axis(1));
                acc[2] += sum(s * co, axis(1)), acc[3] += sum(co * co - s * s, axis(1)),
                    acc[4] += sum(where((t < n).row(), 1.f, 0.f), axis(1));
              }
              auto tau = 0.5f * atan2(2.f * acc[2], acc[3]);
              auto ct = cos(tau), st = sin(tau);
              auto yc = acc[1] * ct + acc[0] * st, ys = acc[0] * ct - acc[1] * st;
              auto c2 = cos(2.f * tau), s2 = sin(2.f * tau);
              auto cc = 0.5f * (acc[4] + acc[3] * c2 + 2.f * acc[2] * s2), ss = acc[4] - cc;
              store(power + f, squeeze(0.5f * (yc * yc / cc + ys * ys / ss), 1), {.mask = f < nf});
            }).grid([](const LombCfg& c, auto*, auto*, auto*, int, int nf, double) { return Grid{cdiv(nf, c.BF)}; });
Register r3("lomb", [](Env& e) {
  LombCfg c;
  c.BF = e.field("BF", c.BF), c.BT = e.field("BT", c.BT), c.warps = e.field("warps", c.warps);
  if (!e.big) c = {16, 32, 2};
  int n = e.big ? 8192 : 75, nf = e.big ? 65536 : 30;
  auto t = filled<double>(e, n, [&](size_t i) { return (double(i) + .5 * e.uniform()) * 1.7; });
  auto y = random<float>(e, n);
  auto p = constant<float>(e, nf, NAN);
  double df = .3 / nf;
  Job j;
  j.gflop = 30e-9 * n * nf;
  j.add(lomb, c, t.p, y.p, p.p, n, nf, df);
  j.check = [=] {
    std::vector<double> want;
    for (int f = 1; f <= nf; ++f) {
      double w = 2 * M_PI * f * df, s2 = 0, c2 = 0;
      for (int i = 0; i < n; ++i) s2 += std::sin(2 * w * t[i]), c2 += std::cos(2 * w * t[i]);
      double tau = .5 * std::atan2(s2, c2), yc = 0, ys = 0, cc = 0, ss = 0;
      for (int i = 0; i < n; ++i) {
        double a = w * t[i] - tau;
        yc += y[i] * std::cos(a), ys += y[i] * std::sin(a), cc += std::cos(a) * std::cos(a),
            ss += std::sin(a) * std::sin(a);
      }
      want.push_back(.5 * (yc * yc / cc + ys * ys / ss));
    }
    return agree(p.now(), want, 1e-3, 2e-3);
  };
  return j;
});

}  // namespace group_sums
}  // namespace users
