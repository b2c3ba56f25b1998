// beside_cuda_solvers.cpp - Cholesky of many 64 x 64 matrices, FFTs of 1024 points, Lennard-Jones by cells, a
// separable convolution in one pass, points moved by rotations, rows sorted with payloads.
#include <complex>

#include "tests/users/use.h"
namespace users {
namespace beside_cuda_solvers {

// --- Cholesky of 64 x 64: panels of P columns, what is right of and below them shrinks
struct Chol64Cfg {
  int B = 1, P = 16, warps = 4;
};
auto chol64 = kernel("user_chol64", [](const Chol64Cfg& c, Tensor<const float, 3> A, Tensor<float, 3> L) {
                num_warps(c.warps);
                auto b = program_id(0) * c.B;
                int m = 64;
                Tile a = A.load({b, 0, 0}, {c.B, m, m});
                for (int done = 0; done < 64; done += c.P) {
                  auto row = reshape(arange(0, m), {1, m, 1}), column = reshape(arange(0, m), {1, 1, m});
                  for (int k = 0; k < c.P; ++k) {
                    auto scale = rsqrt(extract(a, {0, k, k}, {c.B, 1, 1}));
                    auto l = where(row >= k, extract(a, {0, 0, k}, {c.B, m, 1}) * scale, 0.f);
                    auto lt = where(column >= k, extract(a, {0, k, 0}, {c.B, 1, m}) * scale, 0.f);
                    a = where(column > k, a - l * lt, where(column == k, l, a));
                  }
                  L.store({b, done, done}, extract(a, {0, 0, 0}, {c.B, m, c.P}));
                  if (done) L.store({b, 0, done}, zeros({c.B, done, c.P}, f32));
                  m -= c.P;
                  if (m) {
                    Tile rest = extract(a, {0, c.P, c.P}, {c.B, m, m});
                    a = rest;
                  }
                }
              }).grid([](const Chol64Cfg& c, const auto& a, const auto&) { return Grid{cdiv(a.shape[0], c.B)}; });
Register r1("chol64", [](Env& e) {
  Chol64Cfg c;
  c.B = e.field("B", c.B), c.P = e.field("P", c.P), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 16384 : 3, S = 64;
  auto a = filled<float>(e, size_t(n) * S * S, [&](size_t i) {
    const size_t r = i / S % S, k = i % S, m = i / (S * S), lo = std::min(r, k), hi = std::max(r, k);
    return r == k ? 40.f + float(m % 5) : float((lo * 131 + hi * 71 + m * 17) % 97) / 97.f - .5f;
  });
  auto l = constant<float>(e, size_t(n) * S * S, NAN);
  Job j;
  j.mbytes = 8e-6 * n * S * S, j.gflop = 1e-9 * n * S * S * S / 3.;
  j.add(chol64, c, a.view(n, S, S), l.view(n, S, S));
  j.check = [=] {
    std::vector<double> want(size_t(n) * S * S);
    for (int m = 0; m < n; ++m) {
      double* w = &want[size_t(m) * S * S];
      for (int i = 0; i < S; ++i)
        for (int k = 0; k <= i; ++k) {
          double s = a[size_t(m) * S * S + i * S + k];
          for (int t = 0; t < k; ++t) s -= w[i * S + t] * w[k * S + t];
          w[i * S + k] = i == k ? std::sqrt(s) : s / w[k * S + k];
        }
    }
    return agree(l.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- FFTs of 1024 complex numbers: 16 x 8 x 8 in registers, tiles joined and cut between the three
struct FftCfg {
  int B = 2, warps = 4;
};
struct Cplx {
  Tile re, im;
};
Cplx operator+(const Cplx& a, const Cplx& b) { return {a.re + b.re, a.im + b.im}; }
Cplx operator-(const Cplx& a, const Cplx& b) { return {a.re - b.re, a.im - b.im}; }
Cplx times(const Cplx& a, const Tile& c, const Tile& s) { return {a.re * c - a.im * s, a.re * s + a.im * c}; }
Cplx times(const Cplx& a, double c, double s) {
  if (std::abs(c - 1) < 1e-12) return a;
  if (std::abs(s + 1) < 1e-12) return {a.im, -a.re};
  const float fc = float(c), fs = float(s);
  return {a.re * fc - a.im * fs, a.re * fs + a.im * fc};
}
std::vector<Cplx> dft(const std::vector<Cplx>& x) {  // radix 2, in time
  const size_t n = x.size();
  if (n == 1) return x;
  std::vector<Cplx> even, odd, y(n);
  for (size_t i = 0; i < n; i += 2) even.push_back(x[i]), odd.push_back(x[i + 1]);
  even = dft(even), odd = dft(odd);
  for (size_t k = 0; k < n / 2; ++k) {
    const double angle = -2 * M_PI * double(k) / double(n);
    const Cplx t = times(odd[k], std::cos(angle), std::sin(angle));
    y[k] = even[k] + t, y[k + n / 2] = even[k] - t;
  }
  return y;
}
/// Tiles [..] as one tile [.., count].
Tile stacked(const std::vector<Tile>& x) {
  if (x.size() == 1) return expand_dims(x[0], -1);
  std::vector<Tile> first(x.begin(), x.begin() + x.size() / 2), second(x.begin() + x.size() / 2, x.end());
  return cat(stacked(first), stacked(second), -1);
}
auto fft1024 =
    kernel("user_fft1024", [](const FftCfg& c, Tensor<const float, 3> X, Ptr<const float> table, Tensor<float, 3> Y) {
      num_warps(c.warps);  // X, Y [n, 1024, 2]; table [1024, 2]: cos, -sin
      const int B = c.B;
      auto b = program_id(0) * B;
      std::vector<Cplx> x;
      for (int j = 0; j < 16; ++j) {
        auto [re, im] = split(X.load({b, j * 64, 0}, {B, 64, 2}));
        x.push_back({re, im});
      }
      x = dft(x);
      auto turn = [&](Cplx v, const Tile& at) { return times(v, load(table + at * 2), load(table + at * 2 + 1)); };
      auto t = reshape(arange(0, 64), {1, 64});
      for (int j = 1; j < 16; ++j) x[j] = turn(x[j], t * j);
      // [B, 8 t1, 8 t2, count] cut along dim 1
      auto cut = [&](const std::vector<Cplx>& from, Shape whole, Shape part, Shape kept) {
        std::vector<Tile> re, im;
        for (const Cplx& v : from) re.push_back(v.re), im.push_back(v.im);
        Tile r = reshape(stacked(re), whole), i = reshape(stacked(im), whole);
        std::vector<Cplx> out;
        for (int k = 0; k < 8; ++k)
          out.push_back({reshape(extract(r, {0, k, 0, 0}, part), kept), reshape(extract(i, {0, k, 0, 0}, part), kept)});
        return out;
      };
      x = dft(cut(x, {B, 8, 8, 16}, {B, 1, 8, 16}, {B, 8, 16}));  // [B, t2, j], by k1
      auto t2 = reshape(arange(0, 8), {1, 8, 1});
      for (int k = 1; k < 8; ++k) x[k] = turn(x[k], t2 * (k * 16));
      x = dft(cut(x, {B, 8, 16, 8}, {B, 1, 16, 8}, {B, 16, 8}));  // [B, j, k1], by k2
      for (int k = 0; k < 8; ++k)
        Y.store({b, k * 128, 0}, join(reshape(trans(x[k].re), {B, 128}), reshape(trans(x[k].im), {B, 128})));
    }).grid([](const FftCfg& c, const auto& x, auto, const auto&) { return Grid{cdiv(x.shape[0], c.B)}; });
Register r2("fft1024", [](Env& e) {
  FftCfg c;
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 65536 : 3, N = 1024;
  auto x = random<float>(e, size_t(n) * N * 2), y = constant<float>(e, size_t(n) * N * 2, NAN);
  auto table = filled<float>(e, 2 * N, [&](size_t i) {
    return float(i % 2 ? -std::sin(2 * M_PI * double(i / 2) / N) : std::cos(2 * M_PI * double(i / 2) / N));
  });
  Job j;
  j.mbytes = 16e-6 * n * N;
  j.add(fft1024, c, x.view(n, N, 2), table.p, y.view(n, N, 2));
  j.check = [=] {
    std::vector<double> want(size_t(n) * N * 2);
    for (int m = 0; m < n; ++m)
      for (int k = 0; k < N; ++k) {
        std::complex<double> s = 0;
        for (int i = 0; i < N; ++i)
          s += std::complex<double>(x[(size_t(m) * N + i) * 2], x[(size_t(m) * N + i) * 2 + 1]) *
               std::polar(1., -2 * M_PI * double(int64_t(i) * k % N) / N);
        want[(size_t(m) * N + k) * 2] = s.real(), want[(size_t(m) * N + k) * 2 + 1] = s.imag();
      }
    return agree(y.now(), want, 2e-4, 1e-5);
  };
  return j;
});

// --- Lennard-Jones (softened) by cells of the cutoff's size: particles sorted by cell, a program per cell
struct CellCfg {
  int BM = 16, BN = 16, warps = 1;
};
auto cell_lj = kernel("user_cell_lj", [](const CellCfg& c, Tensor<const float, 2> P, Ptr<const int32_t> starts,
                                         Tensor<float, 2> F, I32 G) {
                 num_warps(c.warps);  // P, F [3, n]; starts [G * G * G + 1], x fastest
                 auto cx = program_id(0), cy = program_id(1), cz = program_id(2);
                 auto cell = (cz * G + cy) * G + cx;
                 auto first = load(starts + cell), last = load(starts + cell + 1);
                 for (auto i : range(first, last, c.BM)) {
                   auto at = [&](int d) { return squeeze(P.load({d, i}, {1, c.BM}), 0).col(); };
                   auto x = at(0), y = at(1), z = at(2);
                   Tile fx = zeros({c.BM, c.BN}, f32), fy = zeros({c.BM, c.BN}, f32), fz = zeros({c.BM, c.BN}, f32);
                   for (auto zz : range(max(cz - 1, 0), min(cz + 2, G)))
                     for (auto yy : range(max(cy - 1, 0), min(cy + 2, G))) {
                       auto line = (zz * G + yy) * G;
                       auto lo = load(starts + line + max(cx - 1, 0)), hi = load(starts + line + min(cx + 2, G));
                       for (auto k : range(lo, hi, c.BN)) {
                         auto other = [&](int d) { return squeeze(P.load({d, k}, {1, c.BN}), 0).row(); };
                         auto dx = x - other(0), dy = y - other(1), dz = z - other(2);
                         auto r2 = dx * dx + dy * dy + dz * dz;
                         auto near = (r2 < 1.f) & ((k + arange(0, c.BN)) < hi).row();
                         auto inv = 1.f / (r2 + .3f), six = inv * inv * inv * .04f;
                         auto f = where(near, six * (2.f * six - 1.f) * inv * 24.f, 0.f);
                         fx += f * dx, fy += f * dy, fz += f * dz;
                       }
                     }
                   auto rows = i + arange(0, c.BM);
                   auto put = [&](int d, const Tile& f) {
                     store(F.ptr() + F.stride(0) * d + rows, squeeze(sum(f, axis(1)), 1), {.mask = rows < last});
                   };
                   put(0, fx), put(1, fy), put(2, fz);
                 }
               }).grid([](const CellCfg&, const auto&, auto, const auto&, int G) {
  return Grid{G, G, G};
});
Register r3("cell_lj", [](Env& e) {
  CellCfg c;
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int G = e.big ? 40 : 4, n = e.big ? 1'000'000 : 777;
  std::vector<std::array<float, 3>> all(n);
  std::vector<int32_t> first(size_t(G) * G * G + 1);
  if (e.device) {
    auto cell_of = [&](const std::array<float, 3>& p) {
      return (std::min(int(p[2]), G - 1) * G + std::min(int(p[1]), G - 1)) * G + std::min(int(p[0]), G - 1);
    };
    for (auto& p : all)
      for (float& x : p) x = float(e.uniform() * G);
    std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return cell_of(a) < cell_of(b); });
    for (const auto& p : all) ++first[cell_of(p) + 1];
    for (size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  }
  auto p = filled<float>(e, size_t(3) * n, [&](size_t i) { return all[i % n][i / n]; });
  auto s = filled<int32_t>(e, first.size(), [&](size_t i) { return first[i]; });
  auto f = constant<float>(e, size_t(3) * n, NAN);
  Job j;
  j.gflop = 1e-9 * n * 27. * n / (double(G) * G * G) * 20;
  j.add(cell_lj, c, p.view(3, n), s.p, f.view(3, n), G);
  j.check = [=] {
    std::vector<double> want(size_t(3) * n);
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < n; ++k) {
        double d[3], r2 = 0;
        for (int x = 0; x < 3; ++x) d[x] = p[size_t(x) * n + i] - p[size_t(x) * n + k], r2 += d[x] * d[x];
        if (r2 >= 1) continue;
        const double inv = 1 / (r2 + .3), six = inv * inv * inv * .04;
        for (int x = 0; x < 3; ++x) want[size_t(x) * n + i] += six * (2 * six - 1) * inv * 24 * d[x];
      }
    return agree(f.now(), want, 1e-3, 1e-4);
  };
  return j;
});

// --- a separable convolution of 17 x 17 taps. form 0: both passes in one program; form 1: two kernels
struct SepCfg {
  int BY = 32, BX = 64, warps = 4, form = 0;
};
auto sepconv =
    kernel("user_sepconv", [](const SepCfg& c, Tensor<const float, 2> X, Ptr<const float> w, Tensor<float, 2> Y) {
      num_warps(c.warps);
      auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
      Tile across = zeros({c.BY + 16, c.BX}, f32), out = zeros({c.BY, c.BX}, f32);
      for (int t = 0; t < 17; ++t) across += load(w + t) * X.load({y - 8, x + (t - 8)}, {c.BY + 16, c.BX});
      for (int t = 0; t < 17; ++t) out += load(w + t) * extract(across, {t, 0}, {c.BY, c.BX});
      Y.store({y, x}, out);
    }).grid([](const SepCfg& c, const auto& x, auto, const auto&) {
      return Grid{cdiv(x.shape[1], c.BX), cdiv(x.shape[0], c.BY)};
    });
auto sep_pass = kernel("user_sep_pass", [](const SepCfg& c, Tensor<const float, 2> X, Ptr<const float> w,
                                           Tensor<float, 2> Y, I32 down) {
                  num_warps(c.warps);
                  auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
                  if_(
                      down != 0,
                      [&] {
                        Tile out = zeros({c.BY, c.BX}, f32);
                        for (int t = 0; t < 17; ++t) out += load(w + t) * X.load({y + (t - 8), x}, {c.BY, c.BX});
                        Y.store({y, x}, out);
                      },
                      [&] {
                        Tile out = zeros({c.BY, c.BX}, f32);
                        for (int t = 0; t < 17; ++t) out += load(w + t) * X.load({y, x + (t - 8)}, {c.BY, c.BX});
                        Y.store({y, x}, out);
                      });
                }).grid([](const SepCfg& c, const auto& x, auto, const auto&, int) {
  return Grid{cdiv(x.shape[1], c.BX), cdiv(x.shape[0], c.BY)};
});
Register r4("sepconv", [](Env& e) {
  SepCfg c;
  if (!e.big) c = {8, 16, 2, 0};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps),
  c.form = e.field("form", 0);
  const int H = e.big ? 6144 : 43, W = e.big ? 6144 : 57;
  const size_t n = size_t(H) * W;
  auto x = random<float>(e, n), w = random<float>(e, 17), mid = constant<float>(e, n, NAN),
       y = constant<float>(e, n, NAN), z = constant<float>(e, n, NAN);
  Job j;
  j.mbytes = 8e-6 * double(n);
  if (!e.big || !c.form) j.add(sepconv, c, x.view(H, W), w.p, y.view(H, W));
  if (!e.big || c.form) {
    j.add(sep_pass, c, x.view(H, W), w.p, mid.view(H, W), 0);
    j.add(sep_pass, c, mid.view(H, W), w.p, z.view(H, W), 1);
  }
  j.check = [=] {
    std::vector<double> across(n), want(n);
    for (int i = 0; i < H; ++i)
      for (int k = 0; k < W; ++k)
        for (int t = -8; t <= 8; ++t)
          if (k + t >= 0 && k + t < W) across[size_t(i) * W + k] += w[t + 8] * x[size_t(i) * W + k + t];
    for (int i = 0; i < H; ++i)
      for (int k = 0; k < W; ++k)
        for (int t = -8; t <= 8; ++t)
          if (i + t >= 0 && i + t < H) want[size_t(i) * W + k] += w[t + 8] * across[size_t(i + t) * W + k];
    auto first = agree(y.now(), want, 1e-5, 1e-5);
    return first.empty() ? agree(z.now(), want, 1e-5, 1e-5) : first;
  };
  return j;
});

// --- points [n, 3] moved by the rotation (a quaternion) and the shift of the body they belong to
struct RigidCfg {
  int B = 256, warps = 4, form = 0;
};
// form 1: points by boxes of 3 B numbers
auto rigid_boxes =
    kernel("user_rigid_boxes", [](const RigidCfg& c, Tensor<const float, 1> points, Tensor<const int32_t, 1> body,
                                  Tensor<const float, 2> poses, Tensor<float, 1> out) {
      num_warps(c.warps);
      auto i = program_id(0) * c.B;
      auto p = reshape(points.load({i * 3}, {c.B * 3}), {c.B, 3});
      auto part = [&](const Tile& t, int k) { return squeeze(extract(t, {0, k}, {c.B, 1}), 1); };
      auto q = poses.gather(body.load({i}, {c.B}), 0, 8);
      auto px = part(p, 0), py = part(p, 1), pz = part(p, 2);
      auto w = part(q, 0), x = part(q, 1), y = part(q, 2), z = part(q, 3);
      auto ux = y * pz - z * py + w * px, uy = z * px - x * pz + w * py, uz = x * py - y * px + w * pz;
      auto ox = px + 2.f * (y * uz - z * uy) + part(q, 4), oy = py + 2.f * (z * ux - x * uz) + part(q, 5),
           oz = pz + 2.f * (x * uy - y * ux) + part(q, 6);
      out.store({i * 3}, reshape(cat(cat(ox.col(), oy.col(), 1), oz.col(), 1), {c.B * 3}));
    }).grid([](const RigidCfg& c, const auto&, const auto& b, const auto&...) { return Grid{cdiv(b.shape[0], c.B)}; });
auto rigid = kernel("user_rigid", [](const RigidCfg& c, Ptr<const float> points, Ptr<const int32_t> body,
                                     Ptr<const float> poses, Ptr<float> out, I32 n) {
               num_warps(c.warps);  // poses [bodies, 8]: w x y z, shift, nothing
               auto i = program_id(0) * c.B + arange(0, c.B);
               auto in = i < n;
               auto p = [&](int d) { return load(points + i * 3 + d, {.mask = in}); };
               auto b = load(body + i, {.mask = in});
               auto pose = [&](int k) { return load(poses + b * 8 + k, {.mask = in}); };
               auto px = p(0), py = p(1), pz = p(2);
               auto w = pose(0), x = pose(1), y = pose(2), z = pose(3);
               // v + 2 q x (q x v + w v)
               auto ux = y * pz - z * py + w * px, uy = z * px - x * pz + w * py, uz = x * py - y * px + w * pz;
               store(out + i * 3, px + 2.f * (y * uz - z * uy) + pose(4), {.mask = in});
               store(out + i * 3 + 1, py + 2.f * (z * ux - x * uz) + pose(5), {.mask = in});
               store(out + i * 3 + 2, pz + 2.f * (x * uy - y * ux) + pose(6), {.mask = in});
             }).grid([](const RigidCfg& c, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r5("rigid", [](Env& e) {
  RigidCfg c;
  if (!e.big) c = {64, 2, 0};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps), c.form = e.field("form", 0);
  const int n = e.big ? 32'000'000 : 531, bodies = e.big ? 20000 : 7;
  auto points = random<float>(e, size_t(3) * n), poses = random<float>(e, size_t(bodies) * 8);
  auto body = filled<int32_t>(e, n, [&](size_t i) { return int32_t(i * size_t(bodies) / size_t(n)); });
  auto out = constant<float>(e, size_t(3) * n, NAN), other = constant<float>(e, size_t(3) * n, NAN);
  Job j;
  j.mbytes = 28e-6 * n;
  if (!e.big || !c.form) j.add(rigid, c, points.p, body.p, poses.p, out.p, n);
  if (!e.big || c.form)
    j.add(rigid_boxes, c, points.view(3 * n), body.view(n), poses.view(bodies, 8), other.view(3 * n));
  j.check = [=] {
    std::vector<double> want(size_t(3) * n);
    for (int i = 0; i < n; ++i) {
      double v[3], q[8];
      for (int d = 0; d < 3; ++d) v[d] = points[size_t(i) * 3 + d];
      for (int k = 0; k < 8; ++k) q[k] = poses[size_t(body.h[i]) * 8 + k];
      const double u[3] = {q[2] * v[2] - q[3] * v[1] + q[0] * v[0], q[3] * v[0] - q[1] * v[2] + q[0] * v[1],
                           q[1] * v[1] - q[2] * v[0] + q[0] * v[2]};
      want[i * 3] = v[0] + 2 * (q[2] * u[2] - q[3] * u[1]) + q[4];
      want[i * 3 + 1] = v[1] + 2 * (q[3] * u[0] - q[1] * u[2]) + q[5];
      want[i * 3 + 2] = v[2] + 2 * (q[1] * u[1] - q[2] * u[0]) + q[6];
    }
    auto first = agree(out.now(), want, 1e-5, 1e-5);
    return first.empty() ? agree(other.now(), want, 1e-5, 1e-5) : first;
  };
  return j;
});

// --- rows of 1024 keys sorted, payloads follow
struct SortRowsCfg {
  int B = 1, warps = 4;
};
auto sort_rows =
    kernel("user_sort_rows", [](const SortRowsCfg& c, Tensor<const uint32_t, 2> K, Tensor<const int32_t, 2> V,
                                Tensor<uint32_t, 2> KO, Tensor<int32_t, 2> VO) {
      num_warps(c.warps);
      auto b = program_id(0) * c.B;
      auto key = K.load({b, 0}, {c.B, 1024});
      auto at = argsort(key, axis(1));
      KO.store({b, 0}, take(key, at, 1));
      VO.store({b, 0}, take(V.load({b, 0}, {c.B, 1024}), at, 1));
    }).grid([](const SortRowsCfg& c, const auto& k, const auto&...) { return Grid{cdiv(k.shape[0], c.B)}; });
Register r6("sort_rows", [](Env& e) {
  SortRowsCfg c;
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 16384 : 3, N = 1024;
  auto k = drawn<uint32_t>(e, size_t(n) * N,
                           [&] { return uint32_t(e.uniform() * 65536) << 16 | uint32_t(e.uniform() * 65536); });
  auto v = integers<int32_t>(e, size_t(n) * N, 0, 1 << 30);
  auto ko = constant<uint32_t>(e, size_t(n) * N, 0);
  auto vo = constant<int32_t>(e, size_t(n) * N, 0);
  Job j;
  j.mbytes = 16e-6 * n * N;
  j.add(sort_rows, c, k.view(n, N), v.view(n, N), ko.view(n, N), vo.view(n, N));
  j.check = [=]() -> std::string {
    const auto gk = ko.now();
    const auto gv = vo.now();
    for (int m = 0; m < n; ++m) {
      std::vector<std::pair<uint32_t, int32_t>> row(N), got(N);
      for (int i = 0; i < N; ++i)
        row[i] = {k.h[size_t(m) * N + i], v.h[size_t(m) * N + i]},
        got[i] = {gk[size_t(m) * N + i], gv[size_t(m) * N + i]};
      std::stable_sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      if (got != row) return "row " + std::to_string(m);
    }
    return "";
  };
  return j;
});

}  // namespace beside_cuda_solvers
}  // namespace users
