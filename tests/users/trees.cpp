// trees.cpp - every lane walks by itself: decision forests and the histograms they grow from, rays through a hierarchy
// of boxes, cross sections found by bisection.
#include <limits>
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace trees {

// --- a forest: samples go down every tree until they meet a leaf; the class with most votes, and the mean of values
struct ForestCfg {
  int BS = 128, warps = 4;
};
auto forest = kernel("user_forest", [](const ForestCfg& c, Tensor<const float, 2> X, Ptr<const int32_t> roots,
                                       Ptr<const int32_t> feature, Ptr<const float> threshold, Ptr<const int32_t> left,
                                       Tensor<float, 1> mean, Tensor<int16_t, 1> deepest, I32 trees) {
  // X [S, F]; node i: feature (-1: a leaf, its value in threshold), children left[i] and left[i] + 1
  num_warps(c.warps);
  auto s = program_id(0) * c.BS;
  auto rows = s + arange(0, c.BS);
  auto in = rows < X.dim(0);
  auto mine = X.ptr() + cast(rows, i64) * X.stride(0);
  Tile total = zeros({c.BS}, f32), deep = zeros({c.BS}, i32);
  for (auto t : range(0, trees)) {
    Tile node = broadcast_to(reshape(load(roots + t), {1}), {c.BS});
    Tile f = load(feature + node), depth = zeros({c.BS}, i32);
    while_([&] { return any(f >= 0); }, [&] {
      auto walking = f >= 0;
      auto x = load(mine + f, {.mask = walking & in});
      auto next = load(left + node, {.mask = walking}) + cast(!(x <= load(threshold + node)), i32);
      node = where(walking, next, node);
      depth += cast(walking, i32);
      f = load(feature + node);
    });
    total += load(threshold + node);
    deep = max(deep, depth);
  }
  mean.store({s}, total / cast(trees, f32));
  deepest.store({s}, cast(deep, i16));
}).grid([](const ForestCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BS)}; });
Register r1("forest", [](Env& e) {
  ForestCfg c;
  if (!e.big) c = {32, 1};
  c.BS = e.field("BS", c.BS), c.warps = e.field("warps", c.warps);
  const int S = e.big ? 1 << 20 : 77, F = e.big ? 32 : 6, T = e.big ? 100 : 5, depth = e.big ? 10 : 5;
  std::vector<int32_t> roots, feature, left;
  std::vector<float> threshold;
  for (int t = 0; t < T; ++t) {
    roots.push_back(int(feature.size()));
    std::vector<int> level{0};  // depths of nodes that have no children yet
    feature.push_back(-1), left.push_back(0), threshold.push_back(0);
    for (size_t i = roots.back(), d = 0; i < feature.size(); ++i, ++d) {
      if (level[d] == depth || (level[d] > 1 && e.uniform() < .1)) {
        threshold[i] = float(e.uniform());
        continue;
      }
      feature[i] = int(e.uniform() * F), threshold[i] = float(2 * e.uniform() - 1), left[i] = int(feature.size());
      for (int k = 0; k < 2; ++k)
        feature.push_back(-1), left.push_back(0), threshold.push_back(0), level.push_back(level[d] + 1);
    }
  }
  const size_t nodes = feature.size();
  auto x = random<float>(e, size_t(S) * F);
  auto r = repeated(e, T, roots), f = repeated(e, nodes, feature), l = repeated(e, nodes, left);
  auto th = repeated(e, nodes, threshold);
  auto mean = constant<float>(e, S, NAN);
  auto deepest = constant<int16_t>(e, S, -1);
  Job j;
  j.mbytes = 4e-6 * x.n;
  j.add(forest, c, x.view(S, F), r.p, f.p, th.p, l.p, mean.view(S), deepest.view(S), T);
  j.check = [=] {
    std::vector<double> want, deep;
    for (int s = 0; s < S; ++s) {
      double total = 0;
      int most = 0;
      for (int t = 0; t < T; ++t) {
        int node = roots[t], d = 0;
        for (; feature[node] >= 0; ++d)
          node = left[node] + !(x[size_t(s) * F + feature[node]] <= double(threshold[node]));
        total += threshold[node], most = std::max(most, d);
      }
      want.push_back(total / T), deep.push_back(most);
    }
    const auto wrong = agree(mean.now(), want, 1e-5, 1e-5);
    return wrong.empty() ? agree(deepest.now(), deep, 1e-9, 0) : wrong;
  };
  return j;
});

// --- growing trees: the gradients of a node's samples summed by feature and bin (gradient boosting)
struct BinsCfg {
  int BS = 64, BF = 16, steps = 16, warps = 4;
};
auto bins = kernel("user_bins", [](const BinsCfg& c, Tensor<const uint8_t, 2> codes, Tensor<const float, 2> gradients,
                                   Tensor<const int32_t, 1> samples, Ptr<float> sums) {
  // codes [S, F], gradients [S, 2] (first and second), samples [n]: those of the node, sums [F, 256, 2]
  num_warps(c.warps);
  auto f = program_id(1) * c.BF + arange(0, c.BF);
  auto F = codes.dim(1);
  auto first = program_id(0) * (c.BS * c.steps);
  for (auto i : range(first, min(first + c.BS * c.steps, samples.dim(0)), c.BS)) {
    auto in = i + arange(0, c.BS) < samples.dim(0);
    auto s = samples.load({i}, {c.BS});
    auto both = in.col() & (f < F).row();
    auto code = cast(load(codes.ptr() + cast(s, i64).col() * codes.stride(0) + f.row(), {.mask = both}), i32);
    auto g = load(gradients.ptr() + cast(s, i64) * 2, {.mask = in}),
         h = load(gradients.ptr() + cast(s, i64) * 2 + 1, {.mask = in});
    auto at = sums + (f.row() * 256 + code) * 2;
    auto wide = [&](Tile v) { return broadcast_to(v.col(), {c.BS, c.BF}); };
    atomic_add(at, wide(g), {.mask = both, .order = Order::relaxed});
    atomic_add(at + 1, wide(h), {.mask = both, .order = Order::relaxed});
  }
}).grid([](const BinsCfg& c, const auto& codes, const auto&, const auto& samples, float*) {
  return Grid{cdiv(samples.shape[0], c.BS * c.steps), cdiv(codes.shape[1], c.BF)};
});
Register r2("bins", [](Env& e) {
  BinsCfg c;
  if (!e.big) c = {16, 8, 2, 2};
  c.BS = e.field("BS", c.BS), c.BF = e.field("BF", c.BF), c.steps = e.field("steps", c.steps);
  c.warps = e.field("warps", c.warps);
  const int S = e.big ? 1 << 20 : 150, F = e.big ? 64 : 11, n = e.big ? S / 2 : 71;
  auto codes = integers<uint8_t>(e, size_t(S) * F, 0, 256);
  auto g = random<float>(e, size_t(S) * 2);
  auto samples = filled<int32_t>(e, n, [&](size_t i) { return int32_t(2 * i + (e.uniform() < .5)); });
  auto sums = constant<float>(e, size_t(F) * 512, 0);
  Job j;
  j.mbytes = 1e-6 * n * (F + 8.);
  j.add(bins, c, codes.view(S, F), g.view(S, 2), samples.view(n), sums.p);
  j.check = [=] {
    std::vector<double> want(sums.n);
    for (int i = 0; i < n; ++i)
      for (int f = 0; f < F; ++f)
        for (int k = 0; k < 2; ++k) {
          const size_t s = samples.at(i);
          want[(size_t(f) * 256 + codes.at(s * F + f)) * 2 + k] += g[s * 2 + k];
        }
    return agree(sums.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- rays through a hierarchy of boxes in depth-first order: a box that is missed names the node to go on with; the
// leaves are spheres
struct BoxesCfg {
  int BR = 128, warps = 4;
};
auto boxes = kernel("user_boxes", [](const BoxesCfg& c, Tensor<const float, 2> rays, Ptr<const float> nodes,
                                     Ptr<const int32_t> links, Ptr<const float> spheres, Tensor<float, 1> distance,
                                     Tensor<int32_t, 1> hit, Tensor<uint16_t, 1> visited, I32 count) {
  // rays [6, R]: origins and directions; nodes [n, 6]: corners; links [n, 2]: where to go after a miss, sphere or -1;
  // spheres [s, 4]
  num_warps(c.warps);
  auto r = program_id(0) * c.BR;
  std::array<Tile, 3> o, d, inverse;
  for (int i = 0; i < 3; ++i) {
    o[i] = rays.load({i, r}, {c.BR}), d[i] = rays.load({i + 3, r}, {c.BR}, {.pad = 1});
    inverse[i] = 1.f / d[i];
  }
  Tile node = zeros({c.BR}, i32), best = full({c.BR}, INFINITY, f32), which = full({c.BR}, -1, i32), seen = node;
  while_([&] { return any(node < count); }, [&] {
    auto on = node < count;
    Tile near = zeros({c.BR}, f32), far = best;
    for (int i = 0; i < 3; ++i) {
      auto a = (load(nodes + node * 6 + i, {.mask = on}) - o[i]) * inverse[i];
      auto b = (load(nodes + node * 6 + (i + 3), {.mask = on}) - o[i]) * inverse[i];
      near = max(near, min(a, b)), far = min(far, max(a, b));
    }
    auto open = on & (near <= far);
    auto sphere = load(links + node * 2 + 1, {.mask = open, .other = -1});
    for (auto _ : when(any(sphere >= 0))) {
      auto leaf = sphere >= 0;
      Tile b = zeros({c.BR}, f32), cc = b;
      for (int i = 0; i < 3; ++i) {
        auto p = o[i] - load(spheres + sphere * 4 + i, {.mask = leaf});
        b += p * d[i], cc += p * p;
      }
      auto radius = load(spheres + sphere * 4 + 3, {.mask = leaf});
      auto disc = b * b - cc + radius * radius;
      auto t = -b - sqrt(max(disc, 0.f));
      auto better = leaf & (disc >= 0.f) & (t > 0.f) & (t < best);
      best = where(better, t, best), which = where(better, sphere, which);
    }
    seen += cast(on, i32);
    node = where(open, node + 1, load(links + node * 2, {.mask = on, .other = count}));
  });
  distance.store({r}, best);
  hit.store({r}, which);
  visited.store({r}, cast(seen, u16));
}).grid([](const BoxesCfg& c, const auto& rays, const auto&...) { return Grid{cdiv(rays.shape[1], c.BR)}; });
Register r3("boxes", [](Env& e) {
  BoxesCfg c;
  if (!e.big) c = {32, 1};
  c.BR = e.field("BR", c.BR), c.warps = e.field("warps", c.warps);
  const int R = e.big ? 1 << 20 : 75, S = e.big ? 4096 : 21;
  std::vector<float> spheres, nodes;
  for (int i = 0; i < 4 * S; ++i) spheres.push_back(float(i % 4 == 3 ? .02 + .1 * e.uniform() : 8 * e.uniform() - 4));
  std::vector<int32_t> links, order(S);
  std::iota(order.begin(), order.end(), 0);
  std::function<void(int, int, int)> build = [&](int from, int to, int axis) {
    const size_t me = links.size() / 2;
    links.insert(links.end(), {0, to - from == 1 ? order[from] : -1});
    for (int i = 0; i < 6; ++i) {
      float v = i < 3 ? 1e9f : -1e9f;
      for (int k = from; k < to; ++k) {
        const float* s = &spheres[4 * order[k]];
        v = i < 3 ? std::min(v, s[i] - s[3] - 1e-3f) : std::max(v, s[i - 3] + s[3] + 1e-3f);
      }
      nodes.push_back(v);
    }
    if (to - from > 1) {
      std::sort(order.begin() + from, order.begin() + to,
                [&](int a, int b) { return spheres[4 * a + axis] < spheres[4 * b + axis]; });
      build(from, (from + to) / 2, (axis + 1) % 3), build((from + to) / 2, to, (axis + 1) % 3);
    }
    links[2 * me] = int32_t(links.size() / 2);
  };
  build(0, S, 0);
  const int n = int(links.size() / 2);
  std::vector<float> rays(size_t(6) * R);
  for (int i = 0; i < R; ++i) {
    double v[3], length = 0;
    for (int k = 0; k < 3; ++k) v[k] = k == 2 ? 1 : 1.2 * e.uniform() - .6, length += v[k] * v[k];
    for (int k = 0; k < 3; ++k) {
      rays[size_t(k + 3) * R + i] = float(v[k] / std::sqrt(length));
      rays[size_t(k) * R + i] = k == 2 ? -6 : .1f;
    }
  }
  auto ray = repeated(e, rays.size(), rays), node = repeated(e, nodes.size(), nodes);
  auto sphere = repeated(e, spheres.size(), spheres);
  auto link = repeated(e, links.size(), links);
  auto t = constant<float>(e, R, NAN);
  auto hit = constant<int32_t>(e, R, -2);
  auto seen = constant<uint16_t>(e, R, 0);
  Job j;
  j.mbytes = 34e-6 * R;
  j.add(boxes, c, ray.view(6, R), node.p, link.p, sphere.p, t.view(R), hit.view(R), seen.view(R), n);
  j.check = [=] {
    const auto places = hit.now();
    std::vector<double> want;
    for (int i = 0; i < R; ++i) {
      double best = INFINITY;
      for (int s = 0; s < S; ++s) {
        double b = 0, cc = 0;
        for (int k = 0; k < 3; ++k) {
          const double p = rays[size_t(k) * R + i] - double(spheres[4 * s + k]), d = rays[size_t(k + 3) * R + i];
          b += p * d, cc += p * p;
        }
        const double disc = b * b - cc + double(spheres[4 * s + 3]) * spheres[4 * s + 3];
        if (disc > 0 && -b - std::sqrt(disc) < best) best = -b - std::sqrt(disc);
      }
      want.push_back(best);
      if ((places[i] >= 0) != std::isfinite(best))
        return "ray " + std::to_string(i) + " hits " + std::to_string(places[i]);
    }
    for (uint16_t v : seen.now())
      if (v < 1 || v > n) return "visited " + std::to_string(v) + " of " + std::to_string(n) + " nodes";
    return agree(t.now(), want, 2e-3, 1e-3);
  };
  return j;
});

// --- cross sections of a material at an energy (XSBench): for each of its nuclides a bisection in a grid of its own,
// five quantities interpolated, weighted by concentration; f64
struct CrossCfg {
  int BN = 64, warps = 2;
};
auto cross = kernel("user_cross_sections", [](const CrossCfg& c, Tensor<const double, 1> energy,
                                              Tensor<const int32_t, 1> material, Ptr<const int32_t> first,
                                              Ptr<const int32_t> nuclide, Ptr<const double> density,
                                              Tensor<const double, 3> grid, Tensor<double, 2> out) {
  // energy, material [N]; nuclides of material m: first[m] to first[m + 1]; grid [nuclides, G, 6]: energy and five
  // quantities; out [N, 5]
  num_warps(c.warps);
  auto n = program_id(0) * c.BN;
  auto e = energy.load({n}, {c.BN});
  auto m = material.load({n}, {c.BN});
  auto begin = load(first + m), end = load(first + m + 1);
  auto G = grid.dim(1);
  auto quantity = arange(0, 5).row();
  Tile acc = zeros({c.BN, 5}, f64), i = begin;
  while_([&] { return any(i < end); }, [&] {
    auto on = i < end;
    auto base = grid.ptr() + cast(load(nuclide + i, {.mask = on}), i64) * grid.stride(0);
    Tile low = zeros({c.BN}, i32), high = broadcast_to(reshape(G - 1, {1}), {c.BN});
    while_([&] { return any(high - low > 1); }, [&] {
      auto middle = (low + high) / 2;
      auto above = load(base + middle * 6) > e;
      high = where(above & (high - low > 1), middle, high);
      low = where(above | (high - low <= 1), low, middle);
    });
    auto e0 = load(base + low * 6), e1 = load(base + (low + 1) * 6);
    auto w = (e1 - e) / (e1 - e0);
    auto here = (base + low * 6).col() + (quantity + 1);
    auto v = load(here) * w.col() + load(here + 6) * (1. - w).col();
    acc += v * load(density + i, {.mask = on}).col();
    i += 1;
  });
  out.store({n, 0}, acc);
}).grid([](const CrossCfg& c, const auto& energy, const auto&...) { return Grid{cdiv(energy.shape[0], c.BN)}; });
Register r4("cross_sections", [](Env& e) {
  CrossCfg c;
  if (!e.big) c = {32, 1};
  c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 1 << 20 : 69, M = e.big ? 12 : 4, U = e.big ? 68 : 7, G = e.big ? 11303 : 37;
  std::vector<int32_t> first{0}, nuclide;
  std::vector<double> density, grid(size_t(U) * G * 6);
  for (int m = 0; m < M; ++m) {
    for (int k = 0; k < (m == 0 ? U / 2 : m == 1 ? 0 : 5); ++k)
      nuclide.push_back(int(e.uniform() * U)), density.push_back(e.uniform());
    first.push_back(int(nuclide.size()));
  }
  for (int u = 0; u < U; ++u) {
    std::vector<double> at(G);
    for (double& v : at) v = e.uniform();
    at[0] = 0, at[1] = 1;
    std::sort(at.begin(), at.end());
    for (int g = 0; g < G; ++g)
      for (int k = 0; k < 6; ++k) grid[(size_t(u) * G + g) * 6 + k] = k ? e.uniform() : at[g];
  }
  auto energy = drawn<double>(e, N, [&] { return .01 + .98 * e.uniform(); });
  auto material = integers<int32_t>(e, N, 0, M);
  auto f = repeated(e, first.size(), first), u = repeated(e, nuclide.size(), nuclide);
  auto d = repeated(e, density.size(), density), g = repeated(e, grid.size(), grid);
  auto out = constant<double>(e, size_t(N) * 5, NAN);
  Job j;
  j.mbytes = 52e-6 * N;
  j.add(cross, c, energy.view(N), material.view(N), f.p, u.p, d.p, g.view(U, G, 6), out.view(N, 5));
  j.check = [=] {
    std::vector<double> want(out.n);
    for (int n = 0; n < N; ++n)
      for (int i = first[material.at(n)]; i < first[material.at(n) + 1]; ++i) {
        const double* at = &grid[size_t(nuclide[i]) * G * 6];
        int low = 0;
        while (low + 2 < G && at[(low + 1) * 6] <= energy[n]) ++low;
        const double w = (at[(low + 1) * 6] - energy[n]) / (at[(low + 1) * 6] - at[low * 6]);
        for (int k = 0; k < 5; ++k)
          want[size_t(n) * 5 + k] += density[i] * (at[low * 6 + k + 1] * w + at[low * 6 + k + 7] * (1 - w));
      }
    return agree(out.now(), want, 1e-9, 1e-9);
  };
  return j;
});

}  // namespace trees
}  // namespace users
