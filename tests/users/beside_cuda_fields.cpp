// beside_cuda_fields.cpp - a bilateral filter of colours, lattice Boltzmann with walls, windowed FFTs, rays through a
// volume of bytes, low-rank adapters of many users.
#include "tests/users/use.h"
namespace users {
namespace beside_cuda_fields {

// --- bilateral filter, 7 x 7, RGBA bytes; distance over three channels, alpha kept, edges repeated
struct BilateralCfg {
  int BY = 4, BX = 64;
};
auto bilateral =
    kernel("user_bilateral_rgba", [](const BilateralCfg& c, Ptr<const uint32_t> in, Ptr<uint32_t> out, I32 H, I32 W,
                                     F32 space, F32 range2) {
      auto x = (program_id(0) * c.BX + arange(0, c.BX)).row();
      auto y = (program_id(1) * c.BY + arange(0, c.BY)).col();
      auto inside = (y < H) & (x < W);
      auto at = [&](int dy, int dx) { return load(in + clamp(y + dy, 0, H - 1) * W + clamp(x + dx, 0, W - 1)); };
      auto channel = [](const Tile& p, int i) { return cast((p >> (8 * i)) & 255u, f32); };
      auto centre = at(0, 0);
      auto r0 = channel(centre, 0), g0 = channel(centre, 1), b0 = channel(centre, 2);
      Tile r = zeros({c.BY, c.BX}, f32), g = r, b = r, total = r;
      for (int dy = -3; dy <= 3; ++dy)
        for (int dx = -3; dx <= 3; ++dx) {
          auto p = at(dy, dx);
          auto pr = channel(p, 0), pg = channel(p, 1), pb = channel(p, 2);
          auto er = pr - r0, eg = pg - g0, eb = pb - b0;
          auto w = exp2(float(dx * dx + dy * dy) * space + (er * er + eg * eg + eb * eb) * range2);
          r += w * pr, g += w * pg, b += w * pb, total += w;
        }
      auto inv = 1.f / total;
      auto byte = [&](const Tile& v) { return cast(rint(v * inv), u32); };
      store(out + y * W + x, byte(r) | (byte(g) << 8) | (byte(b) << 16) | (centre & 0xFF000000u), {.mask = inside});
    }).grid([](const BilateralCfg& c, auto, auto, int h, int w, float, float) {
      return Grid{cdiv(w, c.BX), cdiv(h, c.BY)};
    });
Register r1("bilateral_rgba", [](Env& e) {
  const int H = e.big ? 2160 : 23, W = e.big ? 3840 : 101;
  auto in = drawn<uint32_t>(e, size_t(H) * W, [&] {
    const uint32_t base = uint32_t(e.uniform() * 3) * 80;
    auto c = [&] { return base + uint32_t(e.uniform() * 60); };
    return c() | c() << 8 | c() << 16 | uint32_t(e.uniform() * 256) << 24;
  });
  auto out = constant<uint32_t>(e, size_t(H) * W, 0);
  const float space = -1.4426950f / (2 * 9), range2 = -1.4426950f / (2 * 900);
  Job j;
  j.mbytes = 8e-6 * H * W;
  j.gflop = 49e-9 * 17 * H * W;
  j.add(bilateral, BilateralCfg{e.field("BY", 4), e.field("BX", 64)}, in.p, out.p, H, W, space, range2);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        double s[3] = {}, t = 0;
        const uint32_t o = in.at(size_t(y) * W + x);
        for (int dy = -3; dy <= 3; ++dy)
          for (int dx = -3; dx <= 3; ++dx) {
            const uint32_t p = in.at(size_t(std::clamp(y + dy, 0, H - 1)) * W + std::clamp(x + dx, 0, W - 1));
            double d = 0;
            for (int k = 0; k < 3; ++k) d += std::pow(double(p >> 8 * k & 255) - double(o >> 8 * k & 255), 2);
            const double w = std::exp2((dx * dx + dy * dy) * double(space) + d * range2);
            for (int k = 0; k < 3; ++k) s[k] += w * (p >> 8 * k & 255);
            t += w;
          }
        const uint32_t g = got[size_t(y) * W + x];
        if (g >> 24 != o >> 24) return "alpha is lost";
        for (int k = 0; k < 3; ++k)
          if (std::abs(double(g >> 8 * k & 255) - s[k] / t) > .502) return "channel " + std::to_string(k) + " is off";
      }
    return "";
  };
  return j;
});

// --- D2Q9, pull, BGK, body force along x, periodic in x, halfway bounce-back at solid cells
struct LbmCfg {
  int BX = 256;
};
constexpr int kCx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, kCy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1},
              kOpp[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};
constexpr float kW[9] = {4.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 36, 1.f / 36, 1.f / 36, 1.f / 36};
auto lbm = kernel("user_lbm_walls", [](const LbmCfg& c, Ptr<const float> in, Ptr<const uint8_t> solid, Ptr<float> out,
                                       I32 NX, I32 NY, F32 omega, F32 force) {
             auto x = program_id(0) * c.BX + arange(0, c.BX);
             auto y = program_id(1);
             auto plane = NX * NY;
             auto here = y * NX + x;
             auto inside = x < NX;
             auto fluid = inside & (load(solid + here, {.mask = inside, .other = 1}) == 0);
             std::vector<Tile> f;
             for (int i = 0; i < 9; ++i) {
               auto xs = x - kCx[i];
               if (kCx[i] > 0) xs = where(xs < 0, NX - 1, xs);
               if (kCx[i] < 0) xs = where(xs >= NX, 0, xs);
               auto from = clamp(y - kCy[i], 0, NY - 1) * NX + xs;
               auto wall = load(solid + from, {.mask = fluid}) != 0;
               auto streamed = load(in + i * plane + from, {.mask = fluid});
               auto bounced = load(in + kOpp[i] * plane + here, {.mask = fluid & wall});
               f.push_back(where(wall, bounced, streamed));
             }
             Tile rho = f[0];
             for (int i = 1; i < 9; ++i) rho += f[i];
             auto inv = 1.f / rho;
             auto ux = (f[1] - f[3] + f[5] - f[6] - f[7] + f[8]) * inv + force;
             auto uy = (f[2] - f[4] + f[5] + f[6] - f[7] - f[8]) * inv;
             auto uu = 1.5f * (ux * ux + uy * uy);
             for (int i = 0; i < 9; ++i) {
               auto cu = 3.f * (float(kCx[i]) * ux + float(kCy[i]) * uy);
               auto feq = kW[i] * rho * (1.f + cu + 0.5f * cu * cu - uu);
               store(out + i * plane + here, f[i] + omega * (feq - f[i]), {.mask = fluid});
             }
           }).grid([](const LbmCfg& c, auto, auto, auto, int nx, int ny, float, float) {
  return Grid{cdiv(nx, c.BX), ny};
});
Register r2("lbm_walls", [](Env& e) {
  const int NX = e.big ? 2048 : 301, NY = e.big ? 2048 : 17;
  const size_t n = size_t(NX) * NY;
  auto f = random<float>(e, 9 * n, .05, .15);
  auto solid = filled<uint8_t>(e, n, [&](size_t i) {
    const int y = int(i / NX), x = int(i % NX);
    return uint8_t(y == 0 || y == NY - 1 || (x / 8 * 5 + y / 8 * 3) % 23 == 0);
  });
  auto out = constant<float>(e, 9 * n, 0);
  const float omega = 1.7f, force = 1e-4f;
  Job j;
  j.mbytes = 73e-6 * double(n);
  j.add(lbm, LbmCfg{e.field("BX", 256)}, f.p, solid.p, out.p, NX, NY, omega, force);
  j.check = [=] {
    std::vector<double> want(9 * n);
    for (int y = 0; y < NY; ++y)
      for (int x = 0; x < NX; ++x) {
        const size_t h = size_t(y) * NX + x;
        if (solid.at(h)) continue;
        double g[9], rho = 0, ux = 0, uy = 0;
        for (int i = 0; i < 9; ++i) {
          const int xs = (x - kCx[i] + NX) % NX, ys = std::clamp(y - kCy[i], 0, NY - 1);
          const size_t s = size_t(ys) * NX + xs;
          g[i] = solid.at(s) ? f[kOpp[i] * n + h] : f[i * n + s];
          rho += g[i], ux += kCx[i] * g[i], uy += kCy[i] * g[i];
        }
        ux = ux / rho + force, uy /= rho;
        for (int i = 0; i < 9; ++i) {
          const double cu = 3 * (kCx[i] * ux + kCy[i] * uy);
          const double feq = kW[i] * rho * (1 + cu + .5 * cu * cu - 1.5 * (ux * ux + uy * uy));
          want[i * n + h] = g[i] + omega * (feq - g[i]);
        }
      }
    return agree(out.now(), want, 1e-6, 1e-4);
  };
  return j;
});

// --- windowed FFT of 256 points, many rows of complex floats (real and imaginary side by side), Stockham, radix 4
struct FftCfg {
  int B = 4;
};
struct Complex {
  Tile re, im;
};
Complex operator+(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }
Complex operator-(const Complex& a, const Complex& b) { return {a.re - b.re, a.im - b.im}; }
Complex operator*(const Complex& a, const Complex& b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
auto fft256 = kernel("user_fft256_windowed", [](const FftCfg& c, Tensor<const float, 2> X,
                                                Tensor<const float, 1> window, Tensor<float, 2> Y, F32 scale) {
                auto b = program_id(0) * c.B;
                auto [re, im] = split(reshape(X.load({b, 0}, {c.B, 512}), {c.B, 256, 2}));
                auto w = window.load({0}, {256}).row() * scale;
                Complex x{re * w, im * w};
                for (int n = 256, s = 1; n > 1; n /= 4, s *= 4) {
                  const int m = n / 4;
                  auto quarter = [&](int i) {
                    auto part = [&](const Tile& t) { return extract(t, {0, 64 * i}, {c.B, 64}); };
                    return Complex{part(x.re), part(x.im)};
                  };
                  auto p = cast(arange(0, 64).row() / s, f32) * (-2.f / float(n));
                  auto turn = [&](int k) { return Complex{cospi(p * float(k)), sinpi(p * float(k))}; };
                  Complex a = quarter(0) + quarter(2), d = quarter(0) - quarter(2), e = quarter(1) + quarter(3),
                          g = quarter(1) - quarter(3);
                  Complex jg{g.im, -g.re};  // -i g
                  Complex y0 = a + e, y1 = (d + jg) * turn(1), y2 = (a - e) * turn(2), y3 = (d - jg) * turn(3);
                  auto put = [&](const Tile& a, const Tile& b, const Tile& d, const Tile& e) {
                    auto r = [&](const Tile& t) { return reshape(t, {c.B, m, 1, s}); };
                    return reshape(cat(cat(r(a), r(b), 2), cat(r(d), r(e), 2), 2), {c.B, 256});
                  };
                  x = Complex{put(y0.re, y1.re, y2.re, y3.re), put(y0.im, y1.im, y2.im, y3.im)};
                }
                Y.store({b, 0}, interleave(x.re, x.im));
              }).grid([](const FftCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.B)}; });
Register r3("fft256_windowed", [](Env& e) {
  const int N = e.big ? 65536 : 11;
  auto x = random<float>(e, size_t(N) * 512);
  auto w = filled<float>(e, 256, [](size_t i) { return float(.5 - .5 * std::cos(2 * M_PI * double(i) / 256)); });
  auto y = constant<float>(e, size_t(N) * 512, NAN);
  Job j;
  j.mbytes = 16e-6 * 256 * N;
  j.add(fft256, FftCfg{e.field("B", 4)}, x.view(N, 512), w.view(256), y.view(N, 512), 1.f / 16);
  j.check = [=] {
    std::vector<double> want(size_t(N) * 512);
    for (int r = 0; r < N; ++r)
      for (int k = 0; k < 256; ++k) {
        double a = 0, b = 0;
        for (int n = 0; n < 256; ++n) {
          const double t = -2 * M_PI * (n * k % 256) / 256, cs = std::cos(t), sn = std::sin(t);
          const double u = x[size_t(r) * 512 + 2 * n] * w[n] / 16, v = x[size_t(r) * 512 + 2 * n + 1] * w[n] / 16;
          a += u * cs - v * sn, b += u * sn + v * cs;
        }
        want[size_t(r) * 512 + 2 * k] = a, want[size_t(r) * 512 + 2 * k + 1] = b;
      }
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- a volume of bytes, parallel rays, trilinear samples, composited front to back until a ray is opaque
struct MarchCfg {
  int BY = 8, BX = 16;
};
struct Camera {
  float o[3], u[3], v[3], d[3];
};
constexpr Camera kCamera{{-.35f, .1f, -.6f}, {.9f, -.15f, .2f}, {.1f, .8f, .15f}, {.3f, .2f, 1.1f}};
auto march = kernel("user_march", [](const MarchCfg& c, Ptr<const uint8_t> volume, Tensor<half, 2> colour,
                                     Tensor<half, 2> opacity, I32 D, I32 steps, F32 density) {
               auto y0 = program_id(1) * c.BY, x0 = program_id(0) * c.BX;
               auto py = (cast(y0 + arange(0, c.BY), f32) / cast(colour.dim(0), f32)).col();
               auto px = (cast(x0 + arange(0, c.BX), f32) / cast(colour.dim(1), f32)).row();
               auto size = cast(D - 1, f32);
               std::vector<Tile> start, step;
               Tile near = zeros({c.BY, c.BX}, f32), far = full({c.BY, c.BX}, 1e9f, f32);
               for (int a = 0; a < 3; ++a) {  // in voxels; the slabs between which the ray is inside
                 start.push_back((kCamera.o[a] + kCamera.u[a] * px + kCamera.v[a] * py) * size);
                 step.push_back(kCamera.d[a] * size / cast(steps, f32));
                 auto t0 = -start[a] / step[a], t1 = (size - start[a]) / step[a];
                 near = max(near, min(t0, t1)), far = min(far, max(t0, t1));
               }
               Tile t = ceil(near), light = zeros({c.BY, c.BX}, f32), clear = ones({c.BY, c.BX}, f32);
               Tile active = t <= far;
               while_([&] { return any(active); },
                      [&] {
                        std::vector<Tile> lo, w;
                        for (int a = 0; a < 3; ++a) {
                          auto p = start[a] + t * step[a];
                          auto l = clamp(floor(p), 0.f, size - 1.f);
                          lo.push_back(cast(l, i32)), w.push_back(p - l);
                        }
                        auto base = (lo[2] * D + lo[1]) * D + lo[0];
                        auto at = [&](int z, int y, int x) {
                          return cast(load(volume + (base + ((z * D + y) * D + x)), {.mask = active}), f32);
                        };
                        auto mix = [](const Tile& a, const Tile& b, const Tile& w) { return a + (b - a) * w; };
                        auto face = [&](int z) {
                          return mix(mix(at(z, 0, 0), at(z, 0, 1), w[0]), mix(at(z, 1, 0), at(z, 1, 1), w[0]), w[1]);
                        };
                        auto s = mix(face(0), face(1), w[2]) * (1 / 255.f);
                        auto alpha = where(active, 1.f - exp(-density * s), 0.f);
                        light += clear * alpha * s;
                        clear *= 1.f - alpha;
                        t = where(active, t + 1.f, t);
                        active = (t <= far) & (clear > .01f);
                      });
               colour.store({y0, x0}, cast(light, f16));
               opacity.store({y0, x0}, cast(1.f - clear, f16));
             }).grid([](const MarchCfg& c, auto, const auto& o, const auto&...) {
  return Grid{cdiv(o.shape[1], c.BX), cdiv(o.shape[0], c.BY)};
});
Register r4("ray_march_bytes", [](Env& e) {
  const int D = e.big ? 256 : 24, H = e.big ? 1080 : 21, W = e.big ? 1920 : 35, steps = e.big ? 300 : 40;
  const float density = e.big ? .08f : .6f;
  auto vol = filled<uint8_t>(e, size_t(D) * D * D, [&](size_t i) {
    double p[3] = {double(i % D), double(i / D % D), double(i / D / D)}, s = 0, edge = 1;
    for (double& x : p) x /= D - 1, edge *= 4 * x * (1 - x);
    s = std::sin(9 * p[0] + 3 * p[1]) * std::sin(7 * p[1] - 2 * p[2]) * std::sin(8 * p[2] + p[0]);
    return uint8_t(std::max(0., std::min(1., edge * 2) * s) * 255);  // 0 at the border
  });
  auto colour = constant<half>(e, size_t(H) * W, NAN), opacity = constant<half>(e, size_t(H) * W, NAN);
  Job j;
  j.gflop = 1e-9 * H * W;
  j.add(march, MarchCfg{e.field("BY", 8), e.field("BX", 16)}, vol.p, colour.view(H, W), opacity.view(H, W), D, steps,
        density);
  j.check = [=]() -> std::string {
    std::vector<double> wc(size_t(H) * W), wo(wc.size());
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        double s[3], st[3], near = 0, far = 1e9;
        for (int a = 0; a < 3; ++a) {
          s[a] = (kCamera.o[a] + kCamera.u[a] * x / W + kCamera.v[a] * y / H) * (D - 1),
          st[a] = kCamera.d[a] * (D - 1.) / steps;
          const double t0 = -s[a] / st[a], t1 = (D - 1 - s[a]) / st[a];
          near = std::max(near, std::min(t0, t1)), far = std::min(far, std::max(t0, t1));
        }
        double clear = 1, light = 0;
        for (double t = std::ceil(near); t <= far && clear > .01; ++t) {
          int lo[3];
          double w[3], v = 0;
          for (int a = 0; a < 3; ++a)
            lo[a] = int(std::clamp(std::floor(s[a] + t * st[a]), 0., D - 2.)), w[a] = s[a] + t * st[a] - lo[a];
          for (int k = 0; k < 8; ++k) {
            const int dx = k & 1, dy = k >> 1 & 1, dz = k >> 2;
            v += (dx ? w[0] : 1 - w[0]) * (dy ? w[1] : 1 - w[1]) * (dz ? w[2] : 1 - w[2]) *
                 vol[(size_t(lo[2] + dz) * D + lo[1] + dy) * D + lo[0] + dx];
          }
          const double alpha = 1 - std::exp(-density * v / 255);
          light += clear * alpha * v / 255, clear *= 1 - alpha;
        }
        wc[size_t(y) * W + x] = light, wo[size_t(y) * W + x] = 1 - clear;
      }
    auto a = agree(colour.now(), wc, 8e-3, 2e-3), b = agree(opacity.now(), wo, 8e-3, 2e-3);
    return a.empty() ? b : a;
  };
  return j;
});

// --- LoRA of many adapters (punica): blocks of tokens of one adapter, H = X[ids] A^T, Y[ids] += scale H B^T in place
struct LoraCfg {
  int BM = 64, BN = 128, BK = 128, R = 32, warps = 0;
};
auto lora_shrink =
    kernel("user_lora_shrink", [](const LoraCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 3> A,
                                  Tensor<const int, 1> ids, Tensor<const int, 1> adapters, Tensor<bfloat16, 2> H) {
      if (c.warps) num_warps(c.warps);
      auto b = program_id(0), which = adapters.load({b});
      return_if(which < 0);
      auto rows = ids.load({b * c.BM}, {c.BM});
      Tile acc = zeros({c.BM, c.R}, f32);
      for (auto k : range(0, X.dim(1), c.BK))
        acc = dot(X.gather(rows, k, c.BK), trans(A.load({which, 0, k}, {c.R, c.BK})), acc);
      H.store({b * c.BM, 0}, cast(acc, bf16));
    }).grid([](const LoraCfg&, const auto&, const auto&, const auto&, const auto& adapters, const auto&) {
      return Grid{adapters.shape[0]};
    });
auto lora_expand =
    kernel("user_lora_expand", [](const LoraCfg& c, Tensor<const bfloat16, 2> H, Tensor<const bfloat16, 3> B,
                                  Tensor<const int, 1> ids, Tensor<const int, 1> adapters, Tensor<const float, 1> scale,
                                  Tensor<bfloat16, 2> Y) {
      if (c.warps) num_warps(c.warps);
      auto b = program_id(0), n = program_id(1) * c.BN, which = adapters.load({b});
      return_if(which < 0);
      auto rows = ids.load({b * c.BM}, {c.BM});
      auto more = dot(H.load({b * c.BM, 0}, {c.BM, c.R}), trans(B.load({which, n, 0}, {c.BN, c.R})));
      auto y = cast(Y.gather(rows, n, c.BN), f32) + more * scale.load({which});
      Y.scatter(rows, n, cast(y, bf16));
    }).grid([](const LoraCfg& c, const auto&, const auto& b, const auto&, const auto& adapters, const auto&...) {
      return Grid{adapters.shape[0], cdiv(b.shape[1], c.BN)};
    });
Register r5("lora_blocks", [](Env& e) {
  LoraCfg c;
  if (!e.big) c = {16, 32, 32, 16, 0};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.warps = e.field("warps", c.warps);
  const int T = e.big ? 8192 : 61, K = e.big ? 4096 : 88, N = e.big ? 4096 : 72, L = e.big ? 16 : 4, R = c.R;
  std::vector<int> of(T), list, block;  // every ninth token has none
  for (int t = 0; t < T; ++t) of[t] = t % 9 == 8 ? -1 : int(e.uniform() * L);
  for (int a = -1; a < L; ++a) {
    for (int t = 0; t < T; ++t)
      if (of[t] == a) list.push_back(t);
    while (list.size() % c.BM) list.push_back(T);
    block.resize(list.size() / c.BM, a);
  }
  const int blocks = int(block.size());
  auto x = random<bfloat16>(e, size_t(T) * K), A = random<bfloat16>(e, size_t(L) * R * K, -.2, .2),
       B = random<bfloat16>(e, size_t(L) * N * R), y = random<bfloat16>(e, size_t(T) * N);
  auto s = random<float>(e, L, .5, 1);
  auto ids = filled<int>(e, list.size(), [&](size_t i) { return list[i]; });
  auto ad = filled<int>(e, blocks, [&](size_t i) { return block[i]; });
  auto h = constant<bfloat16>(e, size_t(blocks) * c.BM * R, NAN);
  Job j;
  j.mbytes = 2e-6 * T * (K + 2. * N);
  j.add(lora_shrink, c, x.view(T, K), A.view(L, R, K), ids.view(list.size()), ad.view(blocks),
        h.view(blocks * c.BM, R));
  j.add(lora_expand, c, h.view(blocks * c.BM, R), B.view(L, N, R), ids.view(list.size()), ad.view(blocks), s.view(L),
        y.view(T, N));
  j.check = [=] {
    std::vector<double> want(size_t(T) * N);
    for (int t = 0; t < T; ++t) {
      std::vector<double> v(R);
      const int a = of[t];
      for (int r = 0; r < R && a >= 0; ++r)
        for (int k = 0; k < K; ++k) v[r] += x[size_t(t) * K + k] * A[(size_t(a) * R + r) * K + k];
      for (int n = 0; n < N; ++n) {
        double sum = 0;
        for (int r = 0; r < R && a >= 0; ++r) sum += v[r] * B[(size_t(a) * N + n) * R + r];
        want[size_t(t) * N + n] = y[size_t(t) * N + n] + (a >= 0 ? sum * s[a] : 0);
      }
    }
    return agree(y.now(), want, 3e-2, 2e-2);
  };
  return j;
});

}  // namespace beside_cuda_fields
}  // namespace users
