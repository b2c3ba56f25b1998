// first_pixels.cpp - light, pictures and samples as first written: paths that bounce, wavelets of integers, banks of
// filters, checksums of pages.
#include "tests/users/use.h"
namespace users {
namespace first_pixels {

struct PixelCfg {
  int BLOCK = 128;
};
// --- a path tracer: spheres in a list, diffuse bounces, random numbers of pixel, sample and bounce
auto paths =
    kernel("user_paths",
           [](const PixelCfg& c, Ptr<const float> spheres, I32 count, Ptr<float> image, I32 width, I32 height,
              I32 samples) {  // a sphere: place, radius, colour, light
             auto p = program_id(0) * c.BLOCK + arange(0, c.BLOCK);
             auto in = p < width * height;
             auto px = cast(p % width, f32), py = cast(p / width, f32);
             Tile r = zeros({c.BLOCK}, f32), g = zeros({c.BLOCK}, f32), b = zeros({c.BLOCK}, f32);
             for (auto s : range(0, samples)) {
               auto u = rand4(s, bitcast(p, u32));
               Tile ox = zeros({c.BLOCK}, f32), oy = zeros({c.BLOCK}, f32), oz = full({c.BLOCK}, -3.f, f32);
               Tile dx = (px + u[0]) / cast(width, f32) - .5f, dy = (py + u[1]) / cast(height, f32) - .5f,
                    dz = ones({c.BLOCK}, f32);
               auto unit = [](Tile& x, Tile& y, Tile& z) {
                 auto k = rsqrt(x * x + y * y + z * z);
                 x *= k, y *= k, z *= k;
               };
               unit(dx, dy, dz);
               Tile tr = ones({c.BLOCK}, f32), tg = ones({c.BLOCK}, f32), tb = ones({c.BLOCK}, f32);
               Tile alive = in, depth = zeros({}, i32);
               while_([&] { return any(alive) & (depth < 6); },
                      [&] {
                        Tile best = full({c.BLOCK}, 1e20f, f32), hit = full({c.BLOCK}, -1, i32);
                        for (auto i : range(0, count)) {
                          auto at = spheres + i * 8;
                          auto x = load(at) - ox, y = load(at + 1) - oy, z = load(at + 2) - oz;
                          auto radius = load(at + 3);
                          auto half = x * dx + y * dy + z * dz;
                          auto d = half * half - (x * x + y * y + z * z) + radius * radius;
                          auto root = sqrt(max(d, 0.f));
                          auto near = half - root, far = half + root;
                          auto t = where(near > 1e-3f, near, far);
                          auto closer = (d > 0.f) & (t > 1e-3f) & (t < best);
                          best = where(closer, t, best);
                          hit = where(closer, i, hit);
                        }
                        auto found = alive & (hit >= 0);
                        auto sky = alive & (hit < 0);
                        auto glow = .5f + .5f * dy;
                        r += where(sky, tr * glow, 0.f), g += where(sky, tg * glow, 0.f), b += where(sky, tb, 0.f);
                        auto at = spheres + hit * 8;
                        auto field = [&](int k) { return load(at + k, {.mask = found}); };
                        auto light = field(7);
                        r += where(found, tr * light, 0.f), g += where(found, tg * light, 0.f);
                        b += where(found, tb * light, 0.f);
                        tr *= where(found, field(4), 1.f), tg *= where(found, field(5), 1.f),
                            tb *= where(found, field(6), 1.f);
                        auto hx = ox + best * dx, hy = oy + best * dy, hz = oz + best * dz;
                        auto k = 1.f / where(found, field(3), 1.f);
                        auto nx = (hx - field(0)) * k, ny = (hy - field(1)) * k, nz = (hz - field(2)) * k;
                        auto side = where(nx * dx + ny * dy + nz * dz > 0.f, -1.f, 1.f);
                        auto v = rand4(s + 1000 * (depth + 1), bitcast(p, u32));
                        auto z = 1.f - 2.f * v[0], around = 6.2831853f * v[1];
                        auto ring = sqrt(max(1.f - z * z, 0.f));
                        Tile ex = nx * side + ring * cos(around), ey = ny * side + ring * sin(around),
                             ez = nz * side + z;
                        unit(ex, ey, ez);
                        dx = where(found, ex, dx), dy = where(found, ey, dy), dz = where(found, ez, dz);
                        ox = where(found, hx, ox), oy = where(found, hy, oy), oz = where(found, hz, oz);
                        alive = found & (light <= 0.f);
                        depth += 1;
                      });
             }
             auto k = 1.f / cast(samples, f32);
             store(image + 3 * p, r * k, {.mask = in}), store(image + 3 * p + 1, g * k, {.mask = in});
             store(image + 3 * p + 2, b * k, {.mask = in});
           })
        .grid(
            [](const PixelCfg& c, const float*, int, float*, int w, int h, int) { return Grid{cdiv(w * h, c.BLOCK)}; });
Register r1("paths", [](Env& e) {
  const int W = e.big ? 1024 : 24, H = e.big ? 1024 : 17, n = e.big ? 64 : 7, S = e.big ? 16 : 2;
  auto spheres = filled<float>(e, size_t(8) * n, [&](size_t i) {
    const int k = i % 8;
    return float(k < 3    ? 4 * (e.uniform() - .5) + (k == 2 ? 1 : 0)
                 : k == 3 ? .3 + .5 * e.uniform()
                 : k == 7 ? (i / 8 % 3 == 0 ? 2 : 0)
                          : .2 + .8 * e.uniform());
  });
  auto image = constant<float>(e, size_t(3) * W * H, NAN);
  Job j;
  j.add(paths, PixelCfg{e.field("BLOCK", 128)}, spheres.p, n, image.p, W, H, S);
  j.check = [=]() -> std::string {  // in float, as there: paths that touch an edge may go elsewhere
    const auto got = image.now();
    int off = 0;
    auto unit = [](uint32_t w) { return float(w >> 8) * 0x1p-24f; };
    for (int p = 0; p < W * H; ++p) {
      float sum[3] = {};
      for (int s = 0; s < S; ++s) {
        auto u = reference_philox(s, p);
        float o[3] = {0, 0, -3}, d[3] = {(p % W + unit(u[0])) / W - .5f, (p / W + unit(u[1])) / H - .5f, 1},
              t[3] = {1, 1, 1};
        auto norm = [](float* v) {
          const float k = 1 / std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
          for (int i = 0; i < 3; ++i) v[i] *= k;
        };
        norm(d);
        for (int depth = 0; depth < 6; ++depth) {
          float best = 1e20f;
          int hit = -1;
          for (int i = 0; i < n; ++i) {
            float h = 0, q = 0;
            for (int m = 0; m < 3; ++m) {
              const float x = float(spheres[8 * i + m]) - o[m];
              h += x * d[m], q += x * x;
            }
            const float radius = float(spheres[8 * i + 3]), disc = h * h - q + radius * radius;
            if (disc <= 0) continue;
            const float root = std::sqrt(disc), far = h - root > 1e-3f ? h - root : h + root;
            if (far > 1e-3f && far < best) best = far, hit = i;
          }
          if (hit < 0) {
            const float glow = .5f + .5f * d[1];
            sum[0] += t[0] * glow, sum[1] += t[1] * glow, sum[2] += t[2];
            break;
          }
          const float light = float(spheres[8 * hit + 7]);
          float nrm[3], side = 0;
          for (int m = 0; m < 3; ++m) {
            sum[m] += t[m] * light, t[m] *= float(spheres[8 * hit + 4 + m]), o[m] += best * d[m];
            nrm[m] = (o[m] - float(spheres[8 * hit + m])) / float(spheres[8 * hit + 3]), side += nrm[m] * d[m];
          }
          if (light > 0) break;
          auto v = reference_philox(s + 1000 * (depth + 1), p);
          const float z = 1 - 2 * unit(v[0]), a = 6.2831853f * unit(v[1]), ring = std::sqrt(std::max(1 - z * z, 0.f));
          side = side > 0 ? -1 : 1;
          d[0] = nrm[0] * side + ring * std::cos(a), d[1] = nrm[1] * side + ring * std::sin(a),
          d[2] = nrm[2] * side + z;
          norm(d);
        }
      }
      for (int m = 0; m < 3; ++m) off += !(std::abs(got[3 * p + m] - sum[m] / S) <= 2e-2 * (1 + sum[m]));
    }
    return off > W * H / 20 ? std::to_string(off) + " colours are off" : "";
  };
  return j;
});

// --- the reversible 5/3 wavelet of integers, a tile of a picture at a time, borders mirrored; rows, then columns
auto lifting = kernel("user_lifting53",
                      [](const PixelCfg& c, Ptr<const int16_t> X, Ptr<int16_t> L, Ptr<int16_t> H, I32 n, I32 rows,
                         I32 lines) {  // along a row of n (even); lines apart in memory
                        auto k = program_id(0) * c.BLOCK + arange(0, c.BLOCK), r = program_id(1) * 4 + arange(0, 4);
                        auto m = n / 2;
                        auto in = (k < m).row() & (r < rows).col();
                        auto at = [&](Tile i) {
                          i = where(i < 0, -i, where(i >= n, 2 * (n - 1) - i, i));
                          return cast(load(X + (r.col() * lines + i.row()), {.mask = in}), i32);
                        };
                        auto odd = [&](int d) {
                          return at(2 * k + (1 + 2 * d)) - ((at(2 * k + 2 * d) + at(2 * k + (2 + 2 * d))) >> 1);
                        };
                        auto h = odd(0);
                        auto l = at(2 * k) + ((odd(-1) + h + 2) >> 2);
                        auto out = r.col() * (lines / 2) + k.row();
                        store(L + out, cast(l, i16), {.mask = in}), store(H + out, cast(h, i16), {.mask = in});
                      })
                   .grid([](const PixelCfg& c, const int16_t*, int16_t*, int16_t*, int n, int rows, int) {
                     return Grid{cdiv(n / 2, c.BLOCK), cdiv(rows, 4)};
                   });
Register r4("lifting53", [](Env& e) {
  const int n = e.big ? 8192 : 300, rows = e.big ? 8192 : 7;
  auto x = integers<int16_t>(e, size_t(n) * rows, -512, 512);
  auto l = constant<int16_t>(e, size_t(n) * rows / 2, 0), h = constant<int16_t>(e, size_t(n) * rows / 2, 0);
  Job j;
  j.mbytes = 4e-6 * n * rows;
  j.add(lifting, PixelCfg{e.field("BLOCK", 256)}, x.p, l.p, h.p, n, rows, n);
  j.check = [=] {
    std::vector<double> low, high;
    for (int r = 0; r < rows; ++r)
      for (int k = 0; k < n / 2; ++k) {
        auto at = [&](int i) { return int(x[size_t(r) * n + (i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i)]); };
        auto odd = [&](int q) { return at(2 * q + 1) - ((at(2 * q) + at(2 * q + 2)) >> 1); };
        high.push_back(odd(k)), low.push_back(at(2 * k) + ((odd(k - 1) + odd(k) + 2) >> 2));
      }
    auto wrong = agree(l.now(), low, 0.5, 0);
    return wrong.empty() ? agree(h.now(), high, 0.5, 0) : wrong;
  };
  return j;
});

// --- a bank of filters over signals: windows of samples read through pointers as the second operand of a product
struct BankCfg {
  int F = 64, BT = 128, BK = 32;
};
auto bank = kernel("user_bank",
                   [](const BankCfg& c, Tensor<const half, 2> W, Tensor<const half, 2> X,
                      Tensor<half, 3> Y) {  // Y [signals, filters, samples]: sum of W[f, k] X[t - k]
                     auto t = program_id(0) * c.BT + arange(0, c.BT), s = program_id(1);
                     Tile acc = zeros({c.F, c.BT}, f32);
                     for (auto k : range(0, W.dim(1), c.BK)) {
                       auto tap = k + arange(0, c.BK);
                       auto at = t.row() - tap.col();
                       auto x = load(X.ptr() + s * X.dim(1) + at, {.mask = (at >= 0) & (at < X.dim(1))});
                       acc = dot(W.load({0, k}, {c.F, c.BK}), x, acc);
                     }
                     Y.store({s, 0, program_id(0) * c.BT}, reshape(cast(acc, f16), {1, c.F, c.BT}));
                   })
                .grid([](const BankCfg& c, const auto&, const auto& x, const auto&) {
                  return Grid{cdiv(x.shape[1], c.BT), x.shape[0]};
                });
Register r5("filter_bank", [](Env& e) {
  const int S = e.big ? 64 : 2, T = e.big ? 65536 : 300, F = 64, K = e.big ? 256 : 96;
  auto w = random<half>(e, size_t(F) * K, -.2, .2), x = random<half>(e, size_t(S) * T);
  auto y = constant<half>(e, size_t(S) * F * T, NAN);
  Job j;
  j.gflop = 2e-9 * S * T * F * K;
  j.add(bank, BankCfg{F, e.field("BT", 128), e.field("BK", 32)}, w.view(F, K), x.view(S, T), y.view(S, F, T));
  j.check = [=] {
    std::vector<double> want(size_t(S) * F * T);
    for (int s = 0; s < S; ++s)
      for (int f = 0; f < F; ++f)
        for (int t = 0; t < T; ++t) {
          double sum = 0;
          for (int k = 0; k < K && k <= t; ++k) sum += w[f * K + k] * x[size_t(s) * T + t - k];
          want[(size_t(s) * F + f) * T + t] = sum;
        }
    return agree(y.now(), want, 3e-3, 3e-3);
  };
  return j;
});

// --- CRC-32 of pages, four bytes a step, tables of 4 x 256 in memory; one page per element
auto crc =
    kernel("user_crc", [](const PixelCfg& c, Ptr<const uint32_t> words, Ptr<const uint32_t> tables, Ptr<uint32_t> out,
                          I32 pages, I32 length) {
      auto p = program_id(0) * c.BLOCK + arange(0, c.BLOCK);
      auto in = p < pages;
      Tile crc = full({c.BLOCK}, 0xFFFFFFFFu, u32);
      for (auto i : range(0, length)) {
        auto x = crc ^ load(words + (cast(p, i64) * length + i), {.mask = in});
        auto look = [&](int table, int shift) { return load(tables + (table * 256 + cast((x >> shift) & 255u, i32))); };
        crc = look(3, 0) ^ look(2, 8) ^ look(1, 16) ^ look(0, 24);
      }
      store(out + p, ~crc, {.mask = in});
    }).grid([](const PixelCfg& c, const uint32_t*, const uint32_t*, uint32_t*, int pages, int) {
      return Grid{cdiv(pages, c.BLOCK)};
    });
Register r6("crc_pages", [](Env& e) {
  const int pages = e.big ? 65536 : 150, length = e.big ? 1024 : 20;
  auto words = integers<uint32_t>(e, size_t(pages) * length, 0, 1ll << 32);
  std::vector<uint32_t> t(1024);
  for (int i = 0; i < 256; ++i) {
    uint32_t v = i;
    for (int b = 0; b < 8; ++b) v = v & 1 ? v >> 1 ^ 0xEDB88320u : v >> 1;
    t[i] = v;
  }
  for (int k = 1; k < 4; ++k)
    for (int i = 0; i < 256; ++i) t[k * 256 + i] = t[(k - 1) * 256 + i] >> 8 ^ t[t[(k - 1) * 256 + i] & 255];
  auto tables = repeated<uint32_t>(e, 1024, t);
  auto out = constant<uint32_t>(e, pages, 0);
  Job j;
  j.mbytes = 4e-6 * pages * length;
  j.add(crc, PixelCfg{e.field("BLOCK", 128)}, words.p, tables.p, out.p, pages, length);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    for (int p = 0; p < pages; ++p) {
      uint32_t v = ~0u;
      for (int i = 0; i < length; ++i)
        for (int b = 0; b < 4; ++b) v = v >> 8 ^ t[(v ^ words.at(size_t(p) * length + i) >> (8 * b)) & 255];
      if (got[p] != ~v) return "page " + std::to_string(p);
    }
    return "";
  };
  return j;
});

}  // namespace first_pixels
}  // namespace users
