// beside_cuda_beams.cpp - beamform, schwarz, minplus_blocks
#include "tests/users/use.h"
namespace users {
namespace beside_cuda_beams {

// --- beamform: delay and sum of I/Q samples (int16), cubic (Catmull-Rom) between samples, phase turned back
struct BeamCfg {
  int BZ = 4, BX = 64;
};
auto beamform = kernel("user_beamform", [](const BeamCfg& c, Ptr<const int16_t> iq, Ptr<const float> element, I32 channels,
                                           I32 samples, Tensor<float, 2> re, Tensor<float, 2> im, F32 dx, F32 dz,
                                           F32 z0, F32 rate, F32 turns) {
                  // iq [channels, samples, 2]; re, im [Z, X]; rate: samples per metre there or back; turns: per sample
                  auto z = program_id(1) * c.BZ, x = program_id(0) * c.BX;
                  auto pz = cast((z + arange(0, c.BZ)).col(), f32) * dz + z0;
                  auto px = (cast((x + arange(0, c.BX)).row(), f32) - cast(re.dim(1) - 1, f32) * .5f) * dx;
                  Tile sr = zeros({c.BZ, c.BX}, f32), si = zeros({c.BZ, c.BX}, f32), weight = zeros({c.BZ, c.BX}, f32);
                  for (auto ch : range(0, channels)) {
                    auto d = px - load(element + ch);
                    auto t = (pz + sqrt(pz * pz + d * d)) * rate;
                    auto a = abs(d) / pz;  // f-number 1: |d| < z / 2, a Hann window
                    auto w = where(a < .5f, .5f + .5f * cospi(2.f * a), 0.f);
                    auto f = floor(t);
                    auto k = cast(f, i32);
                    auto ok = (k >= 1) & (k < samples - 2) & (a < .5f);
                    t = t - f;
                    auto p = iq + (cast(ch, i64) * cast(samples, i64) + cast(k, i64)) * 2;
                    auto cubic = [&](int part) {
                      auto s = [&](int o) { return cast(load(p + (2 * o + part), {.mask = ok}), f32); };
                      auto s0 = s(-1), s1 = s(0), s2 = s(1), s3 = s(2);
                      return s1 + .5f * t * (s2 - s0 + t * (2.f * s0 - 5.f * s1 + 4.f * s2 - s3 +
                                                            t * (3.f * (s1 - s2) + s3 - s0)));
                    };
                    auto i = cubic(0), q = cubic(1);
                    auto angle = 2.f * (turns * (f + t) - floor(turns * (f + t)));
                    auto co = cospi(angle), sn = sinpi(angle);
                    w = where(ok, w, 0.f);
                    sr += w * (i * co - q * sn);
                    si += w * (i * sn + q * co);
                    weight += w;
                  }
                  auto by = where(weight > 0.f, 1.f / weight, 0.f);
                  re.store({z, x}, sr * by);
                  im.store({z, x}, si * by);
                }).grid([](const BeamCfg& c, auto, auto, auto, auto, const auto& r, auto...) {
  return Grid{cdiv(r.shape[1], c.BX), cdiv(r.shape[0], c.BZ)};
});
Register r6("beamform", [](Env& e) {
  BeamCfg c;
  c.BZ = e.field("BZ", c.BZ), c.BX = e.field("BX", c.BX);
  const int C = e.big ? 128 : 13, S = e.big ? 2048 : 201, Z = e.big ? 512 : 19, X = e.big ? 384 : 41;
  const float dz = e.big ? 1e-4f : 2e-3f, dx = e.big ? 1e-4f : 1e-3f, z0 = 3e-3f, rate = e.big ? 1.6e4f : 2e3f, turns = .25f;
  auto iq = integers<int16_t>(e, size_t(C) * S * 2, -2000, 2000);
  auto element = filled<float>(e, C, [&](size_t i) { return float((i - (C - 1) * .5) * 3e-4 * (e.big ? 1 : 8)); });
  auto re = constant<float>(e, size_t(Z) * X, NAN), im = constant<float>(e, size_t(Z) * X, NAN);
  Job j;
  j.gflop = 70e-9 * C * Z * X;
  j.add(beamform, c, iq.p, element.p, C, S, re.view(Z, X), im.view(Z, X), dx, dz, z0, rate, turns);
  j.check = [=]() -> std::string {
    std::vector<double> wr(Z * X), wi(Z * X);
    for (int z = 0; z < Z; ++z)
      for (int x = 0; x < X; ++x) {
        double sum = 0, r = 0, m = 0;
        for (int ch = 0; ch < C; ++ch) {
          const double pz = z * double(dz) + z0, d = (x - (X - 1) * .5) * dx - element[ch],
                       T = (pz + std::sqrt(pz * pz + d * d)) * rate, a = std::abs(d) / pz;
          const int k = int(std::floor(T));
          const double t = T - k;
          if (a >= .5 || k < 1 || k >= S - 2) continue;
          const double w = .5 + .5 * std::cos(2 * M_PI * a);
          auto cubic = [&](int part) {
            auto s = [&](int o) { return iq[(size_t(ch) * S + k + o) * 2 + part]; };
            return s(0) + .5 * t * (s(1) - s(-1) + t * (2 * s(-1) - 5 * s(0) + 4 * s(1) - s(2) +
                                                       t * (3 * (s(0) - s(1)) + s(2) - s(-1))));
          };
          const double i = cubic(0), q = cubic(1), p = 2 * M_PI * turns * T;
          r += w * (i * std::cos(p) - q * std::sin(p)), m += w * (i * std::sin(p) + q * std::cos(p)), sum += w;
        }
        wr[z * X + x] = sum > 0 ? r / sum : 0, wi[z * X + x] = sum > 0 ? m / sum : 0;
      }
    auto bad = agree(re.now(), wr, 2, 2e-3);
    return bad.empty() ? agree(im.now(), wi, 2, 2e-3) : bad;
  };
  return j;
});

// --- schwarz: inverses of 8x8 blocks by Gauss-Jordan with partial pivoting, then y = weight * sum of inverses times r
struct SchwarzCfg {
  int B = 64, BB = 32;
};
auto invert = kernel("user_schwarz_invert", [](const SchwarzCfg& c, Ptr<float> A, I32 n) {  // one lane a block
                auto b = program_id(0) * c.B + arange(0, c.B);
                auto ok = b < n;
                auto at = A + cast(b, i64) * 64;
                Tile a[8][8], p[8];
                for (int i = 0; i < 8; ++i)
                  for (int k = 0; k < 8; ++k) a[i][k] = load(at + (i * 8 + k), {.mask = ok, .other = i == k ? 1.f : 0.f});
                for (int k = 0; k < 8; ++k) {
                  Tile most = abs(a[k][k]);
                  p[k] = full({c.B}, k, i32);
                  for (int i = k + 1; i < 8; ++i) {
                    auto more = abs(a[i][k]) > most;
                    most = where(more, abs(a[i][k]), most), p[k] = where(more, i, p[k]);
                  }
                  for (int i = k + 1; i < 8; ++i)
                    for (int m = 0; m < 8; ++m) {
                      auto u = where(p[k] == i, a[i][m], a[k][m]), v = where(p[k] == i, a[k][m], a[i][m]);
                      a[k][m] = u, a[i][m] = v;
                    }
                  auto inv = 1.f / a[k][k];
                  for (int m = 0; m < 8; ++m) a[k][m] = m == k ? inv : a[k][m] * inv;
                  for (int i = 0; i < 8; ++i) {
                    if (i == k) continue;
                    Tile f = a[i][k];
                    for (int m = 0; m < 8; ++m) a[i][m] = m == k ? -f * inv : a[i][m] - f * a[k][m];
                  }
                }
                for (int k = 7; k >= 0; --k)
                  for (int m = k + 1; m < 8; ++m)
                    for (int i = 0; i < 8; ++i) {
                      auto u = where(p[k] == m, a[i][m], a[i][k]), v = where(p[k] == m, a[i][k], a[i][m]);
                      a[i][k] = u, a[i][m] = v;
                    }
                for (int i = 0; i < 8; ++i)
                  for (int k = 0; k < 8; ++k) store(at + (i * 8 + k), a[i][k], {.mask = ok});
              }).grid([](const SchwarzCfg& c, auto, int n) { return Grid{cdiv(n, c.B)}; });
auto apply = kernel("user_schwarz_apply", [](const SchwarzCfg& c, Tensor<const float, 3> inverse, Tensor<const float, 2> r,
                                             Tensor<float, 2> y, F32 weight) {
               auto b = program_id(0) * c.BB;
               auto m = inverse.load({b, 0, 0}, {c.BB, 8, 8});
               auto x = r.load({b, 0}, {c.BB, 8});
               y.store({b, 0}, weight * squeeze(sum(m * expand_dims(x, 1), axis(2)), 2));
             }).grid([](const SchwarzCfg& c, const auto& m, auto...) { return Grid{cdiv(m.shape[0], c.BB)}; });
Register r11("schwarz", [](Env& e) {
  SchwarzCfg c;
  c.B = e.field("B", c.B), c.BB = e.field("BB", c.BB);
  const int n = e.big ? 500000 : 101;
  auto a = random<float>(e, size_t(n) * 64), r = random<float>(e, size_t(n) * 8), y = constant<float>(e, size_t(n) * 8, NAN);
  Job j;
  restore(e, j, a);
  j.inTurn = true;
  j.mbytes = 1e-6 * n * (64 * 12 + 64);
  j.add(invert, c, a.p, n);
  j.add(apply, c, a.view(n, 8, 8), r.view(n, 8), y.view(n, 8), .7f);
  j.check = [=]() -> std::string {  // A y = .7 r
    auto got = y.now();
    for (int b = 0; b < n; ++b)
      for (int i = 0; i < 8; ++i) {
        double s = 0, size = 1;
        for (int k = 0; k < 8; ++k) {
          const double t = a[size_t(b) * 64 + i * 8 + k] * got[size_t(b) * 8 + k];
          s += t, size += std::abs(t);
        }
        if (!(std::abs(s - .7f * r[size_t(b) * 8 + i]) < 1e-3 * size)) return "block " + std::to_string(b);
      }
    return "";
  };
  return j;
});

// --- minplus_blocks: Floyd-Warshall by blocks, three phases a round; infinity stays
struct FloydCfg {
  int B = 64;
};
constexpr int kFar = 1 << 29;
auto floyd = kernel("user_minplus", [](const FloydCfg& c, Ptr<int> D, I32 n, I32 round, I32 phase) {
               // phase 0: the diagonal block; 1: its row (axis 0: 0) and its column (1); 2: the others
               auto i = program_id(1), j = program_id(0);
               auto row = where(phase == 0, round, where((phase == 1) & (i == 0), round, where(phase == 1, j, i)));
               auto col = where(phase == 0, round, where((phase == 1) & (i == 1), round, j));
               return_if((phase == 1) & (j == round));
               return_if((phase == 2) & ((i == round) | (j == round)));
               auto r = row * c.B + arange(0, c.B), q = col * c.B + arange(0, c.B);
               auto place = D + (r.col() * n + q.row());
               Tile d = load(place);
               for (auto k : range(0, c.B)) {
                 auto kk = round * c.B + k;
                 Tile a, b;
                 a = load(D + (r.col() * n + kk)), b = load(D + (kk * n + q.row()));
                 d = min(d, min(a + b, kFar));
                 if_(phase < 2, [&] { store(place, d); });
               }
               store(place, d);
             });
Register r15("minplus_blocks", [](Env& e) {
  FloydCfg c;
  c.B = e.big ? e.field("B", c.B) : 16;
  const int n = e.big ? 2048 : 80, R = n / c.B;
  auto d0 = drawn<int>(e, size_t(n) * n, [&] { return e.uniform() < .1 ? int(1 + e.uniform() * 1000) : kFar; });
  Job j;
  restore(e, j, d0);
  j.inTurn = true;
  j.gflop = 2e-9 * n * n * n;
  auto k0 = floyd.grid([](const auto&...) { return Grid{1}; });
  auto k1 = floyd.grid([R](const auto&...) { return Grid{R, 2}; });
  auto k2 = floyd.grid([R](const auto&...) { return Grid{R, R}; });
  for (int r = 0; r < R; ++r) {
    j.add(k0, c, d0.p, n, r, 0);
    j.add(k1, c, d0.p, n, r, 1);
    j.add(k2, c, d0.p, n, r, 2);
  }
  j.check = [=] {
    std::vector<double> w(d0.h.begin(), d0.h.end());
    for (int k = 0; k < n; ++k)
      for (int i = 0; i < n; ++i)
        for (int m = 0; m < n; ++m) w[i * n + m] = std::min(w[i * n + m], std::min(w[i * n + k] + w[k * n + m], double(kFar)));
    return agree(d0.now(), w, .1, 0);
  };
  return j;
});
}  // namespace beside_cuda_beams
}  // namespace users
