// beside_cuda_blocks.cpp - restir, amr_prolong
#include "tests/users/use.h"
namespace users {
namespace beside_cuda_blocks {
// --- ReSTIR: spatial reuse. Five neighbours out of a disk of 64 offsets, tests of normals and depths, resampling
struct RestirCfg {
  int B = 128;
};
struct Surface {
  Tile nx, ny, nz, z, px, py;
};
auto restir =
    kernel("user_restir", [](const RestirCfg& c, Ptr<const float> gbuffer, Ptr<const float> lights, Ptr<const int> disk,
                             Ptr<const int> sample, Ptr<const float> weight, Ptr<const int> count, Ptr<int> sample2,
                             Ptr<float> weight2, Ptr<int> count2, I32 H, I32 W, U64 seed) {
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto in = i < H * W;
      auto x = i % W, y = i / W;
      auto g = [&](const Tile& q, int k) { return load(gbuffer + q * 4 + k, {.mask = in}); };
      auto z = g(i, 3), nx = g(i, 0), ny = g(i, 1), nz = g(i, 2);
      auto scale = z / cast(W, f32);
      auto px = cast(x - W / 2, f32) * scale, py = cast(y - H / 2, f32) * scale;
      auto target = [&](const Tile& l) {  // Lambert, a point light
        auto at = [&](int k) { return load(lights + l * 4 + k, {.mask = in}); };
        auto dx = at(0) - px, dy = at(1) - py, dz = at(2) - z;
        auto d2 = max(dx * dx + dy * dy + dz * dz, 1e-6f);
        return max(dx * nx + dy * ny + dz * nz, 0.f) * rsqrt(d2) * at(3) / d2;
      };
      Tile pick = load(sample + i, {.mask = in}), M = load(count + i, {.mask = in});
      Tile chosen = target(pick);
      Tile total = chosen * load(weight + i, {.mask = in}) * cast(M, f32);
      auto first = randint4(seed, cast(i, u64) * 2), more = randint4(seed, cast(i, u64) * 2 + 1);
      for (int s = 0; s < 5; ++s) {
        auto word = s < 4 ? first[s] : more[0];
        auto o = cast(word & 63u, i32);
        auto qx = clamp(x + load(disk + o * 2), 0, W - 1), qy = clamp(y + load(disk + o * 2 + 1), 0, H - 1);
        auto q = qy * W + qx;
        auto similar =
            in & (q != i) & (g(q, 0) * nx + g(q, 1) * ny + g(q, 2) * nz > 0.8f) & (abs(g(q, 3) - z) < 0.2f * z);
        auto l = load(sample + q, {.mask = similar});
        auto m = min(load(count + q, {.mask = similar}), 20);
        auto p = target(l);
        auto w = where(similar, p * load(weight + q, {.mask = similar}) * cast(m, f32), 0.f);
        total += w;
        auto u = cast(word >> 8, f32) * 0x1p-24f;
        auto takes = similar & (u * total < w);
        pick = where(takes, l, pick), chosen = where(takes, p, chosen);
        M += m;
      }
      store(sample2 + i, pick, {.mask = in});
      store(count2 + i, M, {.mask = in});
      store(weight2 + i, where(chosen > 0, total / max(chosen * cast(M, f32), 1e-30f), 0.f), {.mask = in});
    }).grid([](const RestirCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, int H, int W, auto...) {
      return Grid{cdiv(H * W, c.B)};
    });
Register r1("restir", [](Env& e) {
  RestirCfg c{e.field("B", 128)};
  const int H = e.big ? 1080 : 37, W = e.big ? 1920 : 53, n = H * W, K = e.big ? 1024 : 40;
  const uint64_t seed = 777;
  auto g = drawn<float>(e, size_t(n) * 4, [&, k = 0]() mutable {
    const int d = k++ % 4;
    return float(d == 3 ? 4 + 1.5 * e.uniform() : d == 2 ? -0.9 : 0.8 * (e.uniform() - .5));
  });
  auto lights = drawn<float>(e, size_t(K) * 4, [&, k = 0]() mutable {
    const int d = k++ % 4;
    return float(d == 3 ? .5 + e.uniform() : d == 2 ? 1 + e.uniform() : 4 * (e.uniform() - .5));
  });
  std::vector<int> offsets;
  for (int k = 0; k < 64; ++k) {
    const double r = 16 * std::sqrt((k + .5) / 64), t = 2.399963 * k;
    offsets.push_back(int(std::lrint(r * std::cos(t)))), offsets.push_back(int(std::lrint(r * std::sin(t))));
  }
  auto disk = repeated(e, offsets.size(), offsets);
  auto sample = integers<int>(e, n, 0, K), count = integers<int>(e, n, 1, 30);
  auto weight = random<float>(e, n, .5, 2);
  auto sample2 = constant<int>(e, n, -1), count2 = constant<int>(e, n, -1);
  auto weight2 = constant<float>(e, n, NAN);
  Job j;
  j.add(restir, c, g.p, lights.p, disk.p, sample.p, weight.p, count.p, sample2.p, weight2.p, count2.p, H, W, seed);
  j.check = [=]() -> std::string {
    const auto s2 = sample2.now(), c2 = count2.now();
    const auto w2 = weight2.now();
    int doubtful = 0, moved = 0;
    for (int i = 0; i < n; ++i) {
      const int x = i % W, y = i / W;
      const double z = g[i * 4 + 3], px = (x - W / 2) * z / W, py = (y - H / 2) * z / W;
      auto target = [&](int l) {
        const double dx = lights[l * 4] - px, dy = lights[l * 4 + 1] - py, dz = lights[l * 4 + 2] - z;
        const double d2 = std::max(dx * dx + dy * dy + dz * dz, 1e-6);
        return std::max(dx * g[i * 4] + dy * g[i * 4 + 1] + dz * g[i * 4 + 2], 0.) / std::sqrt(d2) * lights[l * 4 + 3] /
               d2;
      };
      int pick = sample.at(i), M = count.at(i);
      double chosen = target(pick), total = chosen * weight[i] * M;
      const auto a = reference_philox(seed, uint64_t(i) * 2), b = reference_philox(seed, uint64_t(i) * 2 + 1);
      bool sure = true;
      for (int s = 0; s < 5; ++s) {
        const uint32_t word = s < 4 ? a[s] : b[0];
        const int o = word & 63, qx = std::clamp(x + offsets[o * 2], 0, W - 1),
                  qy = std::clamp(y + offsets[o * 2 + 1], 0, H - 1), q = qy * W + qx;
        double d = 0;
        for (int k = 0; k < 3; ++k) d += g[q * 4 + k] * g[i * 4 + k];
        const double dz = std::abs(g[q * 4 + 3] - z) - 0.2f * z;
        sure &= std::abs(d - 0.8f) > 1e-5 && std::abs(dz) > 1e-5;
        if (q == i || d <= 0.8f || dz >= 0) continue;
        const int l = sample.at(q), m = std::min(count.at(q), 20);
        const double p = target(l), w = p * weight[q] * m, u = (word >> 8) * 0x1p-24;
        total += w;
        sure &= w == 0 || std::abs(u * total - w) > 1e-4 * total;
        if (u * total < w) pick = l, chosen = p, ++moved;
        M += m;
      }
      doubtful += !sure;
      if (!sure) continue;
      if (s2[i] != pick || c2[i] != M) return "reservoir " + std::to_string(i);
      const double want = chosen > 0 ? total / (chosen * M) : 0;
      if (!(std::abs(w2[i] - want) <= 2e-3 * std::abs(want) + 1e-4)) return "weight " + std::to_string(i);
    }
    return doubtful > n / 50 || moved < n / 10 ? "a poor test" : "";
  };
  return j;
});

// --- blocks of 16^3, five variables: refined by 2 with minmod-limited slopes (ghosts by a table of six neighbours, -1
// is a wall), and averaged back
struct AmrCfg {
  int BZ = 4;
};
constexpr int kN = 16, kVars = 5;
Tile minmod(const Tile& a, const Tile& b) { return where(a * b > 0, where(abs(a) < abs(b), a, b), 0.f); }
auto prolong =
    kernel("user_amr_prolong", [](const AmrCfg& c, Ptr<const float> U, Ptr<const int> neighbours, Tensor<float, 6> F) {
      // U [blocks, 5, 16, 16, 16]; F [blocks * 5, 16, 2, 16, 2, 32]
      auto bv = program_id(1), block = bv / kVars, v = bv % kVars, z0 = program_id(0) * c.BZ;
      const Shape shape{c.BZ, kN, kN};
      auto z = broadcast_to(reshape(z0 + arange(0, c.BZ), {c.BZ, 1, 1}), shape);
      auto y = broadcast_to(reshape(arange(0, kN), {1, kN, 1}), shape);
      auto x = broadcast_to(reshape(arange(0, kN), {1, 1, kN}), shape);
      auto cell = [&](const Tile& b, const Tile& z, const Tile& y, const Tile& x) {
        return load(U + (((b * kVars + v) * kN + z) * kN + y) * kN + x);
      };
      auto mid = cell(broadcast_to(block, shape), z, y, x);
      auto slope = [&](int d) {
        auto side = [&](int by) {
          auto other = load(neighbours + block * 6 + (d * 2 + (by > 0)));
          const Tile& k = d == 0 ? x : d == 1 ? y : z;
          auto moved = k + by;
          auto out = (moved < 0) | (moved >= kN);
          auto at = where(out & (other < 0), k, moved & (kN - 1));
          auto b = where(out & (other >= 0), other, block);
          return cell(b, d == 2 ? at : z, d == 1 ? at : y, d == 0 ? at : x);
        };
        return 0.25f * minmod(side(1) - mid, mid - side(-1));
      };
      auto sx = slope(0), sy = slope(1), sz = slope(2);
      for (int dz = 0; dz < 2; ++dz)
        for (int dy = 0; dy < 2; ++dy) {
          auto m = mid + (dz ? sz : -sz) + (dy ? sy : -sy);
          F.store({only(bv), z0, only(dz), 0, only(dy), 0}, interleave(m - sx, m + sx));
        }
    }).grid([](const AmrCfg& c, auto, auto, const auto& f) {
      return Grid{kN / c.BZ, f.shape[0]};
    });
auto restricted = kernel("user_amr_restrict", [](const AmrCfg& c, Tensor<const float, 6> F, Tensor<float, 4> C) {
                    auto bv = program_id(1), z0 = program_id(0) * c.BZ;
                    Tile total = zeros({c.BZ, kN, 2 * kN}, f32);
                    for (int dz = 0; dz < 2; ++dz)
                      for (int dy = 0; dy < 2; ++dy)
                        total += F.load({only(bv), z0, only(dz), 0, only(dy), 0}, {c.BZ, kN, 2 * kN});
                    auto [even, odd] = split(reshape(total, {c.BZ, kN, kN, 2}));
                    C.store({only(bv), z0, 0, 0}, (even + odd) * 0.125f);
                  }).grid([](const AmrCfg& c, const auto& f, const auto&) {
  return Grid{kN / c.BZ, f.shape[0]};
});
Register r2("amr_prolong", [](Env& e) {
  AmrCfg c{e.field("BZ", 4)};
  const int B = e.big ? 256 : 5, n3 = kN * kN * kN;
  auto u = random<float>(e, size_t(B) * kVars * n3);
  auto nb = drawn<int>(e, B * 6, [&] { return int(e.uniform() * (B + 1)) - 1; });
  auto fine = constant<float>(e, size_t(B) * kVars * n3 * 8, NAN),
       back = constant<float>(e, size_t(B) * kVars * n3, NAN);
  Job j;
  j.mbytes = 18 * 4e-6 * B * kVars * n3;
  j.inTurn = true;
  auto f = fine.view(B * kVars, kN, 2, kN, 2, 2 * kN);
  j.add(prolong, c, u.p, nb.p, f);
  j.add(restricted, c, TensorView<const float, 6>(f), back.view(B * kVars, kN, kN, kN));
  j.check = [=]() -> std::string {
    std::vector<double> want(size_t(B) * kVars * n3 * 8), mean(size_t(B) * kVars * n3);
    for (int b = 0; b < B; ++b)
      for (int v = 0; v < kVars; ++v)
        for (int i = 0; i < n3; ++i) {
          const int at[3] = {i % kN, i / kN % kN, i / (kN * kN)};
          auto value = [&](int bb, const int* p) {
            return u[((size_t(bb) * kVars + v) * kN + p[2]) * kN * kN + p[1] * kN + p[0]];
          };
          const double mid = value(b, at);
          double s[3];
          for (int d = 0; d < 3; ++d) {
            auto side = [&](int by) {
              int p[3] = {at[0], at[1], at[2]}, bb = b;
              const int k = p[d] + by, other = nb.at(b * 6 + d * 2 + (by > 0));
              if (k >= 0 && k < kN)
                p[d] = k;
              else if (other >= 0)
                p[d] = k & (kN - 1), bb = other;
              return value(bb, p);
            };
            const double r = side(1) - mid, l = mid - side(-1);
            s[d] = r * l > 0 ? .25 * (std::abs(r) < std::abs(l) ? r : l) : 0;
          }
          for (int k = 0; k < 8; ++k) {
            const int X = 2 * at[0] + (k & 1), Y = 2 * at[1] + (k >> 1 & 1), Z = 2 * at[2] + (k >> 2);
            want[((size_t(b) * kVars + v) * 32 + Z) * 1024 + Y * 32 + X] =
                mid + (k & 1 ? s[0] : -s[0]) + (k & 2 ? s[1] : -s[1]) + (k & 4 ? s[2] : -s[2]);
          }
          mean[(size_t(b) * kVars + v) * n3 + i] = mid;
        }
    return agree(fine.now(), want, 1e-5, 1e-5) + agree(back.now(), mean, 1e-5, 1e-5);
  };
  return j;
});
}  // namespace beside_cuda_blocks
}  // namespace users
