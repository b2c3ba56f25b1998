// records.cpp - records read and written field by field: heads of a packed projection into a cache of 8 bits, triangles
// into tiles of pixels, gradients into hashed tables, charges onto a mesh.
#include "tests/users/use.h"
namespace users {
namespace records {

// --- a packed projection taken apart: queries turned by position, keys turned and quantised into pages, values
// quantised and laid down turned, each head with a factor of its own
struct PackCfg {
  int BT = 16, D = 128, heads = 32, kv = 8, page = 16, warps = 4;
};
auto qkv_to_cache =
    kernel("user_qkv_to_cache", [](const PackCfg& c, Tensor<const bfloat16, 2> X, Ptr<const int32_t> positions,
                                   Ptr<const int32_t> slots, Tensor<const float, 2> freq, Tensor<bfloat16, 3> Q,
                                   Tensor<fp8_e4m3, 4> K, Tensor<fp8_e4m3, 4> V, Tensor<float, 3> scales) {
      // X [T, (heads + 2 kv) D]; freq [positions, D]: cosines, then sines of half the head; Q [T, heads, D]
      // K [pages, page, kv, D], V [pages, kv, D, page], scales [2, pages * page, kv]
      num_warps(c.warps);
      auto t = program_id(0) * c.BT, head = program_id(1);
      auto rows = t + arange(0, c.BT);
      auto inside = rows < X.dim(0);
      const int half_way = c.D / 2;
      auto part = [&](int at) { return cast(X.load({t, head * c.D + at}, {c.BT, half_way}), f32); };
      Tile low = part(0), high = part(half_way);
      if_(head < c.heads + c.kv, [&] {
        auto position = load(positions + rows, {.mask = inside});
        auto angle = freq.ptr() + position.col() * c.D + arange(0, half_way).row();
        auto cosine = load(angle), sine = load(angle + half_way);
        auto turned = low * cosine - high * sine;
        high = high * cosine + low * sine;
        low = turned;
      });
      if_(
          head < c.heads,
          [&] {
            Q.store({t, head, 0}, expand_dims(cast(low, bf16), 1));
            Q.store({t, head, half_way}, expand_dims(cast(high, bf16), 1));
          },
          [&] {
            auto top = max(max(max(abs(low), axis(1)), max(abs(high), axis(1))), 1e-6f);
            auto scale = top * (1.f / 448);
            auto slot = load(slots + rows, {.mask = inside});
            auto is_key = head < c.heads + c.kv;
            auto h = (head - c.heads) % c.kv;
            auto fields = slot * c.kv + h;
            store(scales.ptr() + where(is_key, 0, scales.dim(1) * c.kv) + fields, squeeze(scale, 1), {.mask = inside});
            auto at = arange(0, half_way).row();
            auto each = broadcast_to(inside.col(), {c.BT, half_way});
            for (int i = 0; i < 2; ++i) {
              auto number = saturate((i ? high : low) / scale, f8e4m3);
              auto d = at + i * half_way;
              if_(
                  is_key, [&] { store(K.ptr() + fields.col() * c.D + d, number, {.mask = each}); },
                  [&] {
                    auto line = ((slot / c.page * c.kv + h).col() * c.D + d) * c.page + (slot % c.page).col();
                    store(V.ptr() + line, number, {.mask = each});
                  });
            }
          });
    }).grid([](const PackCfg& c, const auto& x, const auto&...) {
      return Grid{cdiv(x.shape[0], c.BT), c.heads + 2 * c.kv};
    });
Register r1("qkv_to_cache", [](Env& e) {
  const PackCfg cfg =
      e.big ? PackCfg{e.field("BT", 16), 128, 32, 8, 16, e.field("warps", 4)} : PackCfg{8, 32, 3, 2, 4, 4};
  int T = e.big ? 4096 : 21, D = cfg.D, kv = cfg.kv, pages = e.big ? 512 : 8, n = pages * cfg.page;
  int width = (cfg.heads + 2 * kv) * D, longest = 64;
  auto x = random<bfloat16>(e, size_t(T) * width);
  auto positions = integers<int32_t>(e, T, 0, longest);
  auto slots = filled<int32_t>(e, T, [&](size_t i) { return int(i * 7 % n); });
  auto freq = filled<float>(e, size_t(longest) * D, [&](size_t i) {
    const double a = double(i / D) * std::pow(1000., -2. * (i % (D / 2)) / D);
    return float(int(i % D) < D / 2 ? std::cos(a) : std::sin(a));
  });
  auto q = constant<bfloat16>(e, size_t(T) * cfg.heads * D, NAN);
  auto k = constant<fp8_e4m3>(e, size_t(n) * kv * D, 0), v = constant<fp8_e4m3>(e, size_t(n) * kv * D, 0);
  auto scales = constant<float>(e, size_t(2) * n * kv, 0);
  Job j;
  j.mbytes = 2e-6 * T * (width + cfg.heads * D + kv * D);
  j.add(qkv_to_cache, cfg, x.view(T, width), positions.p, slots.p, freq.view(longest, D), q.view(T, cfg.heads, D),
        k.view(pages, cfg.page, kv, D), v.view(pages, kv, D, cfg.page), scales.view(2, n, kv));
  j.check = [=]() -> std::string {
    std::vector<double> want(size_t(T) * cfg.heads * D);
    const auto ks = k.now(), vs = v.now();
    const auto sc = scales.now();
    std::vector<float> got_k, got_v;
    std::vector<double> want_k, want_v;
    for (int t = 0; t < T; ++t)
      for (int h = 0; h < cfg.heads + 2 * kv; ++h)
        for (int d = 0; d < D; ++d) {
          const int i = d % (D / 2), p = positions.h[t];
          auto at = [&](int dd) { return x[size_t(t) * width + h * D + dd]; };
          const double c = freq[p * D + i], s = freq[p * D + D / 2 + i];
          const double r = d < D / 2 ? at(i) * c - at(i + D / 2) * s : at(i + D / 2) * c + at(i) * s;
          const int slot = slots.h[t], g = (h - cfg.heads) % kv;
          if (h < cfg.heads) {
            want[(size_t(t) * cfg.heads + h) * D + d] = r;
          } else if (h < cfg.heads + kv) {
            want_k.push_back(r);
            got_k.push_back(float(ks[(size_t(slot) * kv + g) * D + d]) * sc[size_t(slot) * kv + g]);
          } else {
            want_v.push_back(at(d));
            got_v.push_back(float(vs[((size_t(slot) / cfg.page * kv + g) * D + d) * cfg.page + slot % cfg.page]) *
                            sc[(size_t(n) + slot) * kv + g]);
          }
        }
    auto wrong = agree(q.now(), want, 1e-2, 1e-2);
    if (wrong.empty()) wrong = agree(got_k, want_k, 3e-3, 7e-2);
    return wrong.empty() ? agree(got_v, want_v, 3e-3, 7e-2) : wrong;
  };
  return j;
});

// --- triangles of a bin into a tile of pixels: edge functions, the nearest one wins
struct RasterCfg {
  int BY = 16, BX = 32, warps = 4;
};
auto raster = kernel("user_raster", [](const RasterCfg& c, Tensor<const float, 2> triangles, Ptr<const int32_t> list,
                                       Ptr<const int32_t> first, Tensor<float, 2> depth, Tensor<int32_t, 2> id) {
                // triangles [n, 12]: three edges (a, b, c: inside where a x + b y + c >= 0), depth (a, b, c)
                num_warps(c.warps);
                auto tx = program_id(0), ty = program_id(1), tile = ty * num_programs(0) + tx;
                auto x = cast(tx * c.BX + arange(0, c.BX), f32).row() + .5f;
                auto y = cast(ty * c.BY + arange(0, c.BY), f32).col() + .5f;
                Tile near = full({c.BY, c.BX}, INFINITY, f32), who = full({c.BY, c.BX}, -1, i32);
                for (auto i : range(load(first + tile), load(first + tile + 1))) {
                  auto t = load(list + i);
                  auto record = triangles.load({t, 0}, {16});
                  auto plane = [&](int p) {
                    auto field = [&](int k) { return to_scalar(extract(record, {3 * p + k}, {1})); };
                    return field(0) * x + field(1) * y + field(2);
                  };
                  auto z = plane(3);
                  auto hit = (plane(0) >= 0.f) & (plane(1) >= 0.f) & (plane(2) >= 0.f) & (z < near) & (z > 0.f);
                  near = where(hit, z, near), who = where(hit, t, who);
                }
                depth.store({ty * c.BY, tx * c.BX}, near);
                id.store({ty * c.BY, tx * c.BX}, who);
              }).grid([](const RasterCfg& c, const auto&, auto*, auto*, const auto& d, const auto&) {
  return Grid{cdiv(d.shape[1], c.BX), cdiv(d.shape[0], c.BY)};
});
Register r2("raster", [](Env& e) {
  int H = e.big ? 2048 : 40, W = e.big ? 2048 : 80, n = e.big ? 50000 : 30, per = e.big ? 64 : 9;
  const RasterCfg cfg{16, 32, e.field("warps", 4)};
  int tiles = (H + 15) / 16 * ((W + 31) / 32);
  auto list = integers<int32_t>(e, size_t(tiles) * per, 0, n);
  auto first = filled<int32_t>(e, tiles + 1, [&](size_t i) { return int(i) * per; });
  auto tri = filled<float>(e, size_t(n) * 12, [&](size_t i) {
    const double u = e.uniform();
    return float(i % 3 == 2 ? (i % 12 == 11 ? 5 + 20 * u : 30 * u) : i % 12 > 8 ? .02 * u : u - .5);
  });
  auto depth = constant<float>(e, size_t(H) * W, NAN);
  auto id = constant<int32_t>(e, size_t(H) * W, -2);
  Job j;
  j.mbytes = 8e-6 * H * W + 52e-6 * tiles * per;
  j.add(raster, cfg, tri.view(n, 12), list.p, first.p, depth.view(H, W), id.view(H, W));
  j.check = [=]() -> std::string {
    const auto who = id.now();
    const auto z = depth.now();
    int off = 0;
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        const int tile = y / 16 * ((W + 31) / 32) + x / 32;
        float near = INFINITY;
        int best = -1;
        for (int i = first.h[tile]; i < first.h[tile + 1]; ++i) {
          const float* t = &tri.h[size_t(list.h[i]) * 12];
          auto plane = [&](int p) { return t[3 * p] * (x + .5f) + t[3 * p + 1] * (y + .5f) + t[3 * p + 2]; };
          if (plane(0) >= 0 && plane(1) >= 0 && plane(2) >= 0 && plane(3) < near && plane(3) > 0)
            near = plane(3), best = list.h[i];
        }
        off += who[size_t(y) * W + x] != best || (best >= 0 && std::abs(z[size_t(y) * W + x] - near) > 1e-3f * near);
      }
    return off * 200 > H * W ? std::to_string(off) + " pixels are others" : "";  // edges round differently
  };
  return j;
});

// --- gradients of a hashed grid: eight corners of a cell each get their share of two features
struct HashCfg {
  int BN = 128, warps = 4;
};
auto hash_grid_bwd =
    kernel("user_hash_grid_bwd", [](const HashCfg& c, Tensor<const float, 2> points, Tensor<const half, 3> dy,
                                    Ptr<half> grads, I32 size, F32 base, F32 growth) {
      // points [n, 3], dy [levels, n, 2], grads [levels, size, 2]; size is a power of two
      num_warps(c.warps);
      auto i = program_id(0) * c.BN, level = program_id(1);
      auto at = i + arange(0, c.BN);
      auto inside = at < points.dim(0);
      auto resolution = floor(base * exp(cast(level, f32) * growth));
      Tile cell[3], part[3];
      for (int d = 0; d < 3; ++d) {
        auto x = load(points.ptr() + at * 3 + d, {.mask = inside}) * resolution;
        auto low = floor(x);
        cell[d] = cast(cast(low, i32), u32), part[d] = x - low;
      }
      auto g = dy.load({level, i, 0}, {c.BN, 2});
      const unsigned primes[] = {1u, 2654435761u, 805459861u};
      for (int corner = 0; corner < 8; ++corner) {
        Tile hash = zeros({c.BN}, u32), weight = ones({c.BN}, f32);
        for (int d = 0; d < 3; ++d) {
          const bool upper = corner >> d & 1;
          hash ^= (cell[d] + (upper ? 1u : 0u)) * primes[d];
          weight *= upper ? Tile(part[d]) : Tile(1.f - part[d]);
        }
        auto entry = cast(hash, i32) & (size - 1);
        auto share = cast(cast(g, f32) * weight.col(), f16);
        atomic_add(grads + ((level * size + entry) * 2).col() + arange(0, 2).row(), share,
                   {.mask = broadcast_to(inside.col(), {c.BN, 2}), .order = Order::relaxed});
      }
    }).grid([](const HashCfg& c, const auto& p, const auto& dy, auto&&...) {
      return Grid{cdiv(p.shape[0], c.BN), dy.shape[0]};
    });
Register r3("hash_grid_bwd", [](Env& e) {
  int n = e.big ? 1 << 18 : 300, levels = e.big ? 16 : 3, size = e.big ? 1 << 19 : 64;
  auto p = random<float>(e, size_t(n) * 3, 0, 1);
  auto dy = random<half>(e, size_t(levels) * n * 2, -.05, .05);
  auto g = constant<half>(e, size_t(levels) * size * 2, 0);
  Job j;
  j.mbytes = 1e-6 * levels * n * (12. + 4 + 32);
  j.add(hash_grid_bwd, HashCfg{e.field("BN", 128), e.field("warps", 4)}, p.view(n, 3), dy.view(levels, n, 2), g.p, size,
        4.f, .5f);
  j.check = [=] {
    std::vector<double> want(size_t(levels) * size * 2);
    for (int l = 0; l < levels; ++l)
      for (int i = 0; i < n; ++i)
        for (int corner = 0; corner < 8; ++corner) {
          uint32_t hash = 0;
          double w = 1;
          const uint32_t primes[] = {1u, 2654435761u, 805459861u};
          for (int d = 0; d < 3; ++d) {
            const float x = p.h[size_t(i) * 3 + d] * std::floor(4.f * std::exp(float(l) * .5f)), low = std::floor(x);
            hash ^= (uint32_t(int(low)) + (corner >> d & 1)) * primes[d];
            w *= corner >> d & 1 ? x - low : 1 - (x - low);
          }
          for (int f = 0; f < 2; ++f)
            want[(size_t(l) * size + (hash & (size - 1))) * 2 + f] += w * dy[(size_t(l) * n + i) * 2 + f];
        }
    return agree(g.now(), want, 6e-3, 2e-2);
  };
  return j;
});

// --- charges onto a periodic mesh by cubic splines: 64 nodes each, weights of three axes
struct MeshCfg {
  int BN = 32, warps = 4;
};
auto pme_spread =
    kernel("user_pme_spread", [](const MeshCfg& c, Tensor<const float, 2> atoms, Ptr<float> mesh, I32 M) {
      // atoms [n, 4]: x, y, z in mesh units, charge; mesh [M, M, M]
      num_warps(c.warps);
      auto i = program_id(0) * c.BN;
      auto field = [&](int f) { return squeeze(atoms.load({i, f}, {c.BN, 1}), 1); };
      auto charge = field(3);
      Tile weights[3], places[3];
      for (int d = 0; d < 3; ++d) {
        auto x = field(d);
        auto low = floor(x);
        auto w = (x - low).col();
        auto k = arange(0, 4).row();
        auto u = 1.f - w;
        auto a = u * u * u / 6.f, b = (4.f - 6.f * w * w + 3.f * w * w * w) / 6.f,
             e = (1.f + 3.f * w + 3.f * w * w - 3.f * w * w * w) / 6.f, f = w * w * w / 6.f;
        weights[d] = where(k == 0, a, where(k == 1, b, where(k == 2, e, f)));
        places[d] = floor_mod(cast(low, i32).col() + k - 1, M);
      }
      auto at = [&](const Tile& t, int a, int b) { return expand_dims(expand_dims(t, a), b); };
      auto w = at(weights[0], 2, 3) * at(weights[1], 1, 3) * at(weights[2], 1, 2);
      auto node = (at(places[0], 2, 3) * M + at(places[1], 1, 3)) * M + at(places[2], 1, 2);
      auto q = reshape(charge, {c.BN, 1, 1, 1});
      auto inside = reshape((i + arange(0, c.BN)) < atoms.dim(0), {c.BN, 1, 1, 1});
      atomic_add(mesh + node, q * w, {.mask = broadcast_to(inside, {c.BN, 4, 4, 4}), .order = Order::relaxed});
    }).grid([](const MeshCfg& c, const auto& a, auto*, int) { return Grid{cdiv(a.shape[0], c.BN)}; });
Register r4("pme_spread", [](Env& e) {
  int n = e.big ? 1 << 17 : 77, M = e.big ? 128 : 12;
  auto atoms =
      filled<float>(e, size_t(n) * 4, [&](size_t i) { return float(i % 4 == 3 ? e.uniform() - .5 : e.uniform() * M); });
  auto mesh = constant<float>(e, size_t(M) * M * M, 0);
  Job j;
  j.mbytes = 1e-6 * n * (16. + 256);
  j.add(pme_spread, MeshCfg{e.field("BN", 32), e.field("warps", 4)}, atoms.view(n, 4), mesh.p, M);
  j.check = [=] {
    std::vector<double> want(size_t(M) * M * M);
    for (int i = 0; i < n; ++i) {
      double w[3][4];
      int low[3];
      for (int d = 0; d < 3; ++d) {
        const double x = atoms[size_t(i) * 4 + d], t = x - std::floor(x), u = 1 - t;
        low[d] = int(std::floor(x));
        w[d][0] = u * u * u / 6, w[d][3] = t * t * t / 6;
        w[d][1] = (4 - 6 * t * t + 3 * t * t * t) / 6, w[d][2] = (1 + 3 * t + 3 * t * t - 3 * t * t * t) / 6;
      }
      auto at = [&](int d, int k) { return (low[d] + k - 1 + M) % M; };
      for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4; ++b)
          for (int k = 0; k < 4; ++k)
            want[(size_t(at(0, a)) * M + at(1, b)) * M + at(2, k)] +=
                atoms[size_t(i) * 4 + 3] * w[0][a] * w[1][b] * w[2][k];
    }
    return agree(mesh.now(), want, 1e-5, 1e-4);
  };
  return j;
});

}  // namespace records
}  // namespace users
