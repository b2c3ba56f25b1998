// beside_cuda_fields.cpp - dendrite, coherence, gb_radii, rs_erasure, siddon
#include "tests/users/use.h"
namespace users {
namespace beside_cuda_fields {

// --- Kobayashi's dendrite: anisotropic phase field and temperature, one explicit step, fused
struct DenCfg {
  int BY = 8, BX = 128, form = 0;
};
struct Aniso {
  Tile gx, gy, e2, ee;
};
constexpr float kEb = 0.01f, kDelta = 0.04f, kFold = 6, kTheta0 = 0.2f, kTau = 0.0003f, kAlpha = 0.9f, kGamma = 10,
                kH = 0.03f, kLatent = 1.6f;
auto dendrite = kernel("user_dendrite", [](const DenCfg& c, Tensor<const float, 2> P, Tensor<const float, 2> T,
                                           Tensor<float, 2> Pn, Tensor<float, 2> Tn, F32 dt) {
                  auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
                  auto p = [&](int dy, int dx) { return P.load({y + dy, x + dx}, {c.BY, c.BX}); };
                  auto t = [&](int dy, int dx) { return T.load({y + dy, x + dx}, {c.BY, c.BX}); };
                  auto aniso = [&](int dy, int dx) {
                    Aniso a;
                    a.gx = (p(dy, dx + 1) - p(dy, dx - 1)) * (0.5f / kH);
                    a.gy = (p(dy + 1, dx) - p(dy - 1, dx)) * (0.5f / kH);
                    auto th = kFold * (atan2(a.gy, a.gx) - kTheta0);
                    auto e = kEb * (1 + kDelta * cos(th));
                    a.e2 = e * e, a.ee = e * (-kEb * kDelta * kFold * sin(th));
                    return a;
                  };
                  auto lap = [&](auto f) {
                    return (4 * (f(0, 1) + f(0, -1) + f(1, 0) + f(-1, 0)) + f(1, 1) + f(1, -1) + f(-1, 1) + f(-1, -1) -
                            20 * f(0, 0)) *
                           (1 / (6 * kH * kH));
                  };
                  const float half = 0.5f / kH;
                  Aniso o, n, s, w, e;
                  if (c.form == 0) {
                    o = aniso(0, 0), n = aniso(-1, 0), s = aniso(1, 0), w = aniso(0, -1), e = aniso(0, 1);
                  } else {  // form 1: once for every point of the tile and its rim, then cut out
                    const int ry = c.BY + 2, rx = c.BX + 2;
                    auto rim = [&](int dy, int dx) { return P.load({y + (dy - 1), x + (dx - 1)}, {ry, rx}); };
                    auto gx = (rim(0, 1) - rim(0, -1)) * half, gy = (rim(1, 0) - rim(-1, 0)) * half;
                    auto th = kFold * (atan2(gy, gx) - kTheta0);
                    auto ep = kEb * (1 + kDelta * cos(th));
                    auto e2 = ep * ep, ee = ep * (-kEb * kDelta * kFold * sin(th));
                    auto cut = [&](int dy, int dx) {
                      auto part = [&](const Tile& v) { return extract(v, {1 + dy, 1 + dx}, {c.BY, c.BX}); };
                      return Aniso{part(gx), part(gy), part(e2), part(ee)};
                    };
                    o = cut(0, 0), n = cut(-1, 0), s = cut(1, 0), w = cut(0, -1), e = cut(0, 1);
                  }
                  auto term = (s.ee * s.gx - n.ee * n.gx) * half - (e.ee * e.gy - w.ee * w.gy) * half + o.e2 * lap(p) +
                              (e.e2 - w.e2) * half * o.gx + (s.e2 - n.e2) * half * o.gy;
                  auto phi = p(0, 0), temp = t(0, 0);
                  auto m = float(kAlpha / M_PI) * atan(kGamma * (1 - temp));
                  auto rate = (term + phi * (1 - phi) * (phi - 0.5f + m)) * (1 / kTau);
                  Pn.store({y, x}, phi + dt * rate);
                  Tn.store({y, x}, temp + dt * (lap(t) + kLatent * rate));
                }).grid([](const DenCfg& c, const auto& p, const auto&...) {
  return Grid{cdiv(p.shape[1], c.BX), cdiv(p.shape[0], c.BY)};
});
Register r1("dendrite", [](Env& e) {
  DenCfg c{e.field("BY", 8), e.field("BX", 128), e.field("form", 0)};
  const int H = e.big ? 4096 : 37, W = e.big ? 4096 : 301;
  const float dt = 1e-5f;
  auto p = random<float>(e, size_t(H) * W, 0, 1), t = random<float>(e, size_t(H) * W, 0, 1);
  auto pn = constant<float>(e, size_t(H) * W, NAN), tn = constant<float>(e, size_t(H) * W, NAN);
  Job j;
  j.mbytes = 16e-6 * H * W;
  j.add(dendrite, c, p.view(H, W), t.view(H, W), pn.view(H, W), tn.view(H, W), dt);
  j.check = [=]() -> std::string {
    std::vector<double> wp(size_t(H) * W), wt(size_t(H) * W);
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        auto at = [&](const auto& a, int dy, int dx) {
          const int yy = y + dy, xx = x + dx;
          return yy < 0 || yy >= H || xx < 0 || xx >= W ? 0. : a[size_t(yy) * W + xx];
        };
        auto lap = [&](const auto& a) {
          return (4 * (at(a, 0, 1) + at(a, 0, -1) + at(a, 1, 0) + at(a, -1, 0)) + at(a, 1, 1) + at(a, 1, -1) +
                  at(a, -1, 1) + at(a, -1, -1) - 20 * at(a, 0, 0)) /
                 (6. * kH * kH);
        };
        struct A {
          double gx, gy, e2, ee;
        };
        auto an = [&](int dy, int dx) {
          A a;
          a.gx = (at(p, dy, dx + 1) - at(p, dy, dx - 1)) * 0.5 / kH,
          a.gy = (at(p, dy + 1, dx) - at(p, dy - 1, dx)) * 0.5 / kH;
          const double th = kFold * (std::atan2(a.gy, a.gx) - kTheta0), ep = kEb * (1 + kDelta * std::cos(th));
          a.e2 = ep * ep, a.ee = ep * (-kEb * kDelta * kFold * std::sin(th));
          return a;
        };
        const A o = an(0, 0), n = an(-1, 0), s = an(1, 0), w = an(0, -1), ea = an(0, 1);
        const double h = 0.5 / kH;
        const double term = (s.ee * s.gx - n.ee * n.gx) * h - (ea.ee * ea.gy - w.ee * w.gy) * h + o.e2 * lap(p) +
                            (ea.e2 - w.e2) * h * o.gx + (s.e2 - n.e2) * h * o.gy;
        const double phi = at(p, 0, 0), temp = at(t, 0, 0);
        const double m = kAlpha / M_PI * std::atan(kGamma * (1 - temp));
        const double rate = (term + phi * (1 - phi) * (phi - 0.5 + m)) / kTau;
        wp[size_t(y) * W + x] = phi + dt * rate, wt[size_t(y) * W + x] = temp + dt * (lap(t) + kLatent * rate);
      }
    auto a = agree(pn.now(), wp, 1e-4, 1e-4), b = agree(tn.now(), wt, 1e-4, 1e-4);
    return a.empty() ? b : a;
  };
  return j;
});

// --- coherence of two complex images, 5 x 11 windows: sums along x, then along y, of one tile with its rim
struct CohCfg {
  int BY = 16, BX = 64, warps = 4;
};
constexpr int kWy = 5, kWx = 11;
auto coherence = kernel("user_coherence", [](const CohCfg& c, Tensor<const float, 3> A, Tensor<const float, 3> B,
                                             Tensor<float, 2> coh, Tensor<float, 2> phase) {
                   // A, B [H, W, 2]; outside of the images 0
                   num_warps(c.warps);
                   auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
                   const int ry = c.BY + kWy - 1, rx = c.BX + kWx - 1;
                   auto [ar, ai] = split(A.load({y - kWy / 2, x - kWx / 2, 0}, {ry, rx, 2}));
                   auto [br, bi] = split(B.load({y - kWy / 2, x - kWx / 2, 0}, {ry, rx, 2}));
                   auto window = [&](Tile v) {
                     Tile h = extract(v, {0, 0}, {ry, c.BX});
                     for (int k = 1; k < kWx; ++k) h += extract(v, {0, k}, {ry, c.BX});
                     Tile s = extract(h, {0, 0}, {c.BY, c.BX});
                     for (int k = 1; k < kWy; ++k) s += extract(h, {k, 0}, {c.BY, c.BX});
                     return s;
                   };
                   auto re = window(ar * br + ai * bi), im = window(ai * br - ar * bi);
                   auto pa = window(ar * ar + ai * ai), pb = window(br * br + bi * bi);
                   auto power = pa * pb;
                   coh.store({y, x}, where(power > 0, sqrt((re * re + im * im) / max(power, 1e-30f)), 0.f));
                   phase.store({y, x}, atan2(im, re));
                 }).grid([](const CohCfg& c, const auto& a, const auto&...) {
  return Grid{cdiv(a.shape[1], c.BX), cdiv(a.shape[0], c.BY)};
});
Register r2("coherence", [](Env& e) {
  CohCfg c{e.field("BY", 16), e.field("BX", 64), e.field("warps", 4)};
  const int H = e.big ? 3000 : 41, W = e.big ? 5000 : 137;
  auto a = random<float>(e, size_t(H) * W * 2), noise = random<float>(e, size_t(H) * W * 2);
  auto b = filled<float>(e, size_t(H) * W * 2, [&](size_t i) { return float(0.7 * a[i] + 0.6 * noise[i]); });
  auto coh = constant<float>(e, size_t(H) * W, NAN), phase = constant<float>(e, size_t(H) * W, NAN);
  Job j;
  j.mbytes = 24e-6 * H * W;
  j.add(coherence, c, a.view(H, W, 2), b.view(H, W, 2), coh.view(H, W), phase.view(H, W));
  j.check = [=]() -> std::string {
    std::vector<double> want(size_t(H) * W);
    const auto ph = phase.now();
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        double re = 0, im = 0, pa = 0, pb = 0;
        for (int v = std::max(0, y - 2); v <= std::min(H - 1, y + 2); ++v)
          for (int u = std::max(0, x - 5); u <= std::min(W - 1, x + 5); ++u) {
            const size_t k = (size_t(v) * W + u) * 2;
            re += a[k] * b[k] + a[k + 1] * b[k + 1], im += a[k + 1] * b[k] - a[k] * b[k + 1];
            pa += a[k] * a[k] + a[k + 1] * a[k + 1], pb += b[k] * b[k] + b[k + 1] * b[k + 1];
          }
        want[size_t(y) * W + x] = std::hypot(re, im) / std::sqrt(pa * pb);
        if (!(std::abs(std::remainder(ph[size_t(y) * W + x] - std::atan2(im, re), 2 * M_PI)) < 1e-3))
          return "phase at " + std::to_string(y) + ", " + std::to_string(x);
      }
    return agree(coh.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- generalised Born: HCT radii, then the energy of all pairs within a cutoff
struct GbCfg {
  int BM = 32, BN = 128;
};
struct Atoms {
  Tile x, y, z, w;
};
Atoms atoms_of(const Ptr<const float>& p, const Tile& i, const Tile& mask) {
  auto field = [&](int k) { return load(p + i * 4 + k, {.mask = mask}); };
  return {field(0), field(1), field(2), field(3)};
}
auto gb_radii = kernel("user_gb_radii", [](const GbCfg& c, Ptr<const float> atoms, Ptr<const float> scale,
                                           Ptr<float> born, I32 n, F32 cutoff2) {
                  auto i = program_id(0) * c.BM + arange(0, c.BM);
                  auto a = atoms_of(atoms, i.col(), i.col() < n);
                  Tile total = zeros({c.BM, c.BN}, f32);
                  auto rho = max(a.w, 0.1f), inv = 1 / rho;
                  for (auto first : range(0, n, c.BN)) {
                    auto j = (first + arange(0, c.BN)).row();
                    auto b = atoms_of(atoms, j, j < n);
                    auto sr = b.w * load(scale + j, {.mask = j < n});
                    auto dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
                    auto r2 = dx * dx + dy * dy + dz * dz;
                    auto seen = (j < n) & (i.col() != j) & (r2 < cutoff2);
                    r2 = where(seen, r2, 1.f);
                    auto ir = rsqrt(r2), r = r2 * ir;
                    auto U = r + sr, L = max(rho, abs(r - sr));
                    auto iL = 1 / L, iU = 1 / U;
                    auto I = iL - iU + 0.25f * (r - sr * sr * ir) * (iU * iU - iL * iL) + 0.5f * log(L * iU) * ir;
                    I = I + where(rho < sr - r, 2 * (inv - iL), 0.f);
                    total += where(seen & (rho < U), 0.5f * I, 0.f);
                  }
                  store(born + i, 1 / max(squeeze(inv - sum(total, axis(1)), 1), 1 / 30.f), {.mask = i < n});
                }).grid([](const GbCfg& c, auto, auto, auto, int n, float) { return Grid{cdiv(n, c.BM)}; });
auto gb_energy = kernel("user_gb_energy", [](const GbCfg& c, Ptr<const float> atoms, Ptr<const float> charge,
                                             Ptr<const float> born, Ptr<double> energy, I32 n, F32 cutoff2) {
                   auto i = program_id(0) * c.BM + arange(0, c.BM);
                   auto a = atoms_of(atoms, i.col(), i.col() < n);
                   auto R = load(born + i, {.mask = i < n, .other = 1}).col();
                   auto q = load(charge + i, {.mask = i < n}).col();
                   Tile total = zeros({c.BM, c.BN}, f32);
                   for (auto first : range(0, n, c.BN)) {
                     auto j = (first + arange(0, c.BN)).row();
                     auto b = atoms_of(atoms, j, j < n);
                     auto dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
                     auto r2 = dx * dx + dy * dy + dz * dz;
                     auto RR = R * load(born + j, {.mask = j < n, .other = 1});
                     auto f = rsqrt(r2 + RR * exp(-r2 / (4 * RR)));
                     total += where(r2 < cutoff2, load(charge + j, {.mask = j < n}) * f, 0.f);
                   }
                   atomic_add(energy, sum(cast(q * sum(total, axis(1)), f64)) * -0.5);
                 }).grid([](const GbCfg& c, auto, auto, auto, auto, int n, float) { return Grid{cdiv(n, c.BM)}; });
Register r3("gb_radii", [](Env& e) {
  GbCfg c{e.field("BM", 32), e.field("BN", 128)};
  const int n = e.big ? 20000 : 333;
  const double box = e.big ? 60 : 16;
  const float cutoff2 = e.big ? 625 : 64;
  auto at = drawn<float>(e, size_t(n) * 4, [&, k = 0]() mutable {
    return float(k++ % 4 == 3 ? 1.1 + 0.8 * e.uniform() : box * e.uniform());
  });
  auto scale = random<float>(e, n, 0.02, 0.09), charge = random<float>(e, n);
  auto born = constant<float>(e, n, NAN);
  auto energy = constant<double>(e, 1, 0);
  Job j;
  j.inTurn = true;
  restore(e, j, energy);
  j.add(gb_radii, c, at.p, scale.p, born.p, n, cutoff2);
  j.add(gb_energy, c, at.p, charge.p, born.p, energy.p, n, cutoff2);
  j.check = [=]() -> std::string {
    std::vector<double> want(n), total(1);
    auto r2of = [&](int i, int k) {
      double s = 0;
      for (int d = 0; d < 3; ++d) s += (at[i * 4 + d] - at[k * 4 + d]) * (at[i * 4 + d] - at[k * 4 + d]);
      return s;
    };
    for (int i = 0; i < n; ++i) {
      const double rho = at[i * 4 + 3];
      double s = 0;
      for (int k = 0; k < n; ++k) {
        const double r2 = r2of(i, k), r = std::sqrt(r2), sr = at[k * 4 + 3] * scale[k], U = r + sr;
        if (k == i || r2 >= cutoff2 || rho >= U) continue;
        const double L = std::max(rho, std::abs(r - sr));
        double I = 1 / L - 1 / U + 0.25 * (r - sr * sr / r) * (1 / U / U - 1 / L / L) + 0.5 * std::log(L / U) / r;
        if (rho < sr - r) I += 2 * (1 / rho - 1 / L);
        s += 0.5 * I;
      }
      want[i] = 1 / std::max(1 / rho - s, 1 / 30.);
    }
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < n; ++k) {
        const double r2 = r2of(i, k), RR = want[i] * want[k];
        if (r2 < cutoff2) total[0] -= 0.5 * charge[i] * charge[k] / std::sqrt(r2 + RR * std::exp(-r2 / (4 * RR)));
      }
    auto a = agree(born.now(), want, 1e-3, 1e-3), b = agree(energy.now(), total, 1e-2, 2e-3);
    return a.empty() ? b : a;
  };
  return j;
});

// --- Reed-Solomon 10 + 4 over GF(256), four bytes a word: Horner over the bits of a Cauchy matrix; and the check
struct RsCfg {
  int B = 1024;
};
constexpr int kData = 10, kParity = 4;
inline int gf_mul(int a, int b) {
  int r = 0;
  for (; b; b >>= 1, a = a << 1 ^ (a & 128 ? 0x11d : 0))
    if (b & 1) r ^= a;
  return r & 255;
}
inline int gf_inv(int a) {
  int r = 1;
  for (int i = 0; i < 254; ++i) r = gf_mul(r, a);
  return r;
}
inline int cauchy(int p, int k) { return gf_inv(p ^ (kParity + k)); }
std::vector<Tile> parities(const std::vector<Tile>& d) {
  std::vector<Tile> out;
  for (int p = 0; p < kParity; ++p) {
    Tile acc = zeros_like(d[0]);
    for (int bit = 7; bit >= 0; --bit) {
      if (bit < 7) acc = ((acc << 1) & 0xfefefefeu) ^ (((acc >> 7) & 0x01010101u) * 0x1du);
      for (int k = 0; k < kData; ++k)
        if (cauchy(p, k) >> bit & 1) acc = acc ^ d[k];
    }
    out.push_back(acc);
  }
  return out;
}
auto rs_encode = kernel("user_rs_encode", [](const RsCfg& c, Tensor<const uint32_t, 2> D, Tensor<uint32_t, 2> P) {
                   auto w = program_id(0) * c.B;
                   std::vector<Tile> d;
                   for (int k = 0; k < kData; ++k) d.push_back(D.load({k, w}, {c.B}));
                   auto p = parities(d);
                   for (int k = 0; k < kParity; ++k) P.store({k, w}, p[k]);
                 }).grid([](const RsCfg& c, const auto& d, const auto&) { return Grid{cdiv(d.shape[1], c.B)}; });
auto rs_check =
    kernel("user_rs_check", [](const RsCfg& c, Tensor<const uint32_t, 2> D, Tensor<const uint32_t, 2> P, Ptr<int> bad) {
      auto w = program_id(0) * c.B;
      std::vector<Tile> d;
      for (int k = 0; k < kData; ++k) d.push_back(D.load({k, w}, {c.B}));
      auto p = parities(d);
      for (int k = 0; k < kParity; ++k) {
        auto wrong = sum(cast((p[k] ^ P.load({k, w}, {c.B})) != 0, i32));
        atomic_add(bad + k, wrong, {.mask = wrong > 0});
      }
    }).grid([](const RsCfg& c, const auto& d, const auto&...) { return Grid{cdiv(d.shape[1], c.B)}; });
Register r4("rs_erasure", [](Env& e) {
  RsCfg c{e.field("B", 1024)};
  const int n = e.big ? 4 << 20 : 2345;
  auto d = drawn<uint32_t>(e, size_t(kData) * n, [&] { return uint32_t(e.uniform() * 0x1p24) * 2654435761u; });
  auto p = constant<uint32_t>(e, size_t(kParity) * n, 0);
  std::vector<uint32_t> want(e.big ? 0 : kParity * n), sent;
  if (e.device && !e.big)
    for (int q = 0; q < kParity; ++q)
      for (int i = 0; i < n; ++i)
        for (int b = 0; b < 32; b += 8) {
          int s = 0;
          for (int k = 0; k < kData; ++k) s ^= gf_mul(cauchy(q, k), d.at(size_t(k) * n + i) >> b & 255);
          want[q * n + i] |= uint32_t(s) << b;
        }
  sent = want;
  if (!e.big) sent[17] ^= 5, sent[n + 99] ^= 1u << 30, sent[n + 2344] ^= 9, sent[3 * n] ^= 7;
  auto received = e.big ? integers<uint32_t>(e, size_t(kParity) * n, 0, 1 << 24) : repeated(e, sent.size(), sent);
  auto bad = constant<int>(e, kParity, 0);
  Job j;
  j.mbytes = 14 * 4e-6 * n * 2;
  restore(e, j, bad);
  j.add(rs_encode, c, d.view(kData, n), p.view(kParity, n));
  j.add(rs_check, c, d.view(kData, n), received.view(kParity, n), bad.p);
  j.check = [=]() -> std::string {
    const auto got = p.now();
    for (size_t i = 0; i < want.size(); ++i)
      if (got[i] != want[i]) return "parity word " + std::to_string(i);
    return agree(bad.now(), {1, 2, 0, 1}, .01, 0);
  };
  return j;
});

// --- Siddon: line integrals through a volume, a ray a lane; geometry of a view: source, corner of the detector, its
// steps
struct SidCfg {
  int B = 128, warps = 4;
};
auto siddon = kernel("user_siddon", [](const SidCfg& c, Ptr<const float> vol, Ptr<const float> views,
                                       Tensor<float, 2> out, I32 N, I32 nu) {
                num_warps(c.warps);
                auto view = program_id(1), first = program_id(0) * c.B;
                auto pixel = first + arange(0, c.B);
                auto u = cast(pixel % nu, f32) + 0.5f, v = cast(pixel / nu, f32) + 0.5f;
                Tile a = zeros({c.B}, f32), last = ones({c.B}, f32), length2 = zeros({c.B}, f32);
                std::vector<Tile> s, d, inv, at, next, way;
                for (int k = 0; k < 3; ++k) {
                  auto g = [&](int row) { return load(views + view * 12 + (row * 3 + k)); };
                  s.push_back(g(0));
                  Tile to = g(1) + u * g(2) + v * g(3) - g(0);
                  to = where(abs(to) < 1e-6f, 1e-6f, to);
                  d.push_back(to), inv.push_back(1 / to);
                  auto lo = -s[k] * inv[k], hi = (cast(N, f32) - s[k]) * inv[k];
                  a = max(a, min(lo, hi)), last = min(last, max(lo, hi));
                  length2 += to * to;
                }
                for (int k = 0; k < 3; ++k) {
                  Tile voxel = clamp(cast(floor(s[k] + a * d[k]), i32), 0, N - 1);
                  next.push_back((cast(voxel + cast(d[k] > 0, i32), f32) - s[k]) * inv[k]);
                  way.push_back(where(d[k] > 0, 1, -1));
                  at.push_back(voxel);
                }
                Tile total = zeros({c.B}, f32);
                while_([&] { return a < last; },
                       [&] {
                         auto to = min(min(next[0], next[1]), next[2]);
                         auto inside =
                             (at[0] >= 0) & (at[0] < N) & (at[1] >= 0) & (at[1] < N) & (at[2] >= 0) & (at[2] < N);
                         total += (min(to, last) - a) * load(vol + ((at[2] * N + at[1]) * N + at[0]), {.mask = inside});
                         a = to;
                         for (int k = 0; k < 3; ++k) {
                           auto moves = next[k] <= to;
                           at[k] = where(moves, at[k] + way[k], at[k]);
                           next[k] = where(moves, next[k] + abs(inv[k]), next[k]);
                         }
                       });
                out.store({view, first}, total * sqrt(length2));
              }).grid([](const SidCfg& c, auto, auto, const auto& out, auto...) {
  return Grid{cdiv(out.shape[1], c.B), out.shape[0]};
});
std::vector<float> geometry(int V, int N, int nu, int nv) {
  std::vector<float> g;
  for (int v = 0; v < V; ++v) {
    const double t = 0.3 + 2 * M_PI * v / V, cs = std::cos(t), sn = std::sin(t), m = N / 2., D = 2.1 * N,
                 pu = 2.2 * N / nu, pv = 2.2 * N / nv;
    const double src[3] = {m + D * cs, m + D * sn, m + 0.013 * N};
    const double du[3] = {-sn * pu, cs * pu, 0}, dv[3] = {0, 0, pv};
    for (double x : src) g.push_back(float(x));
    for (int k = 0; k < 3; ++k)
      g.push_back(float((k == 0 ? m - N * cs : k == 1 ? m - N * sn : m) - du[k] * nu / 2 - dv[k] * nv / 2));
    for (double x : du) g.push_back(float(x));
    for (double x : dv) g.push_back(float(x));
  }
  return g;
}
Register r5("siddon", [](Env& e) {
  SidCfg c{e.field("B", 128), e.field("warps", 4)};
  const int N = e.big ? 256 : 19, V = e.big ? 6 : 3, nu = e.big ? 384 : 23, nv = e.big ? 256 : 17;
  auto vol = random<float>(e, size_t(N) * N * N, 0, 1);
  auto g = repeated(e, size_t(V) * 12, geometry(V, N, nu, nv));
  auto out = constant<float>(e, size_t(V) * nu * nv, NAN);
  Job j;
  j.add(siddon, c, vol.p, g.p, out.view(V, nu * nv), N, nu);
  j.check = [=] {
    std::vector<double> want(size_t(V) * nu * nv);
    for (int w = 0; w < V; ++w)
      for (int px = 0; px < nu * nv; ++px) {  // all crossings, in order
        double s[3], d[3], len = 0;
        std::vector<double> cuts{0, 1};
        for (int k = 0; k < 3; ++k) {
          s[k] = g[w * 12 + k];
          d[k] = g[w * 12 + 3 + k] + (px % nu + .5) * g[w * 12 + 6 + k] + (px / nu + .5) * g[w * 12 + 9 + k] - s[k];
          len += d[k] * d[k];
          for (int i = 0; i <= N; ++i)
            if (const double t = (i - s[k]) / d[k]; t > 0 && t < 1) cuts.push_back(t);
        }
        std::sort(cuts.begin(), cuts.end());
        double total = 0;
        for (size_t i = 0; i + 1 < cuts.size(); ++i) {
          const double m = (cuts[i] + cuts[i + 1]) / 2;
          int at[3];
          bool in = true;
          for (int k = 0; k < 3; ++k) at[k] = int(std::floor(s[k] + m * d[k])), in &= at[k] >= 0 && at[k] < N;
          if (in) total += (cuts[i + 1] - cuts[i]) * vol[(size_t(at[2]) * N + at[1]) * N + at[0]];
        }
        want[size_t(w) * nu * nv + px] = total * std::sqrt(len);
      }
    return agree(out.now(), want, 2e-3, 1e-3);
  };
  return j;
});
}  // namespace beside_cuda_fields
}  // namespace users
