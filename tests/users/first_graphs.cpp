// first_graphs.cpp - first versions of kernels over graphs, points and molecules: edges that gather and add, tiles of
// three and four dims, frontiers.
#include "tests/users/use.h"
namespace users {
namespace first_graphs {

// --- continuous filters over edges (SchNet): a network of the distance gives the filter, features of the source times
// it are added up at the target
struct CfconvCfg {
  int BE = 64, R = 64, F = 128;
};
auto cfconv = kernel("user_cfconv", [](const CfconvCfg& c, Ptr<const float> distance, Ptr<const int64_t> source,
                                       Ptr<const int64_t> target, Ptr<const half> w1, Ptr<const float> b1,
                                       Ptr<const half> w2, Ptr<const float> b2, Ptr<const half> x, Ptr<float> out,
                                       I32 edges, F32 gap, F32 cutoff) {
  // w1 [R, F], w2 [F, F], x [atoms, F], out [atoms, F]
  auto e = program_id(0) * c.BE + arange(0, c.BE);
  auto inside = e < edges;
  auto r = arange(0, c.R), f = arange(0, c.F);
  auto d = load(distance + e, {.mask = inside});
  auto apart = d.col() - cast(r.row(), f32) * gap;
  auto rbf = exp(apart * apart * (-.5f / (gap * gap)));
  auto W1 = load(w1 + (r.col() * c.F + f.row())), W2 = load(w2 + (f.col() * c.F + f.row()));
  auto softplus = [](const Tile& v) { return max(v, 0.f) + log1p(exp(-abs(v))) - 0.69314718f; };
  auto h = softplus(dot(cast(rbf, f16), W1) + load(b1 + f).row());
  auto filter = dot(cast(h, f16), W2) + load(b2 + f).row();
  filter = filter * (.5f * (cos(d * (3.14159265f / cutoff)) + 1.f)).col();
  auto s = load(source + e, {.mask = inside}), t = load(target + e, {.mask = inside});
  auto features = load(x + (s.col() * c.F + cast(f.row(), i64)), {.mask = inside.col()});
  atomic_add(out + (t.col() * c.F + cast(f.row(), i64)), filter * cast(features, f32), {.mask = inside.col()});
}).grid([](const CfconvCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, int edges, auto...) {
  return Grid{cdiv(edges, c.BE)};
});
Register r1("cfconv", [](Env& e) {
  CfconvCfg c;
  if (!e.big) c = {16, 16, 32};
  c.BE = e.field("BE", c.BE);
  const int E = e.big ? 1 << 20 : 150, A = e.big ? 32768 : 20, R = c.R, F = c.F;
  const float cutoff = 5, gap = cutoff / float(R);
  auto d = random<float>(e, E, 0, 5);
  auto s = integers<int64_t>(e, E, 0, A), t = integers<int64_t>(e, E, 0, A);
  auto w1 = random<half>(e, R * F, -.3, .3), w2 = random<half>(e, F * F, -.3, .3), x = random<half>(e, size_t(A) * F);
  auto b1 = random<float>(e, F), b2 = random<float>(e, F);
  auto out = constant<float>(e, size_t(A) * F, 0);
  Job j;
  j.gflop = 2e-9 * E * double(F) * (R + F);
  j.add(cfconv, c, d.p, s.p, t.p, w1.p, b1.p, w2.p, b2.p, x.p, out.p, E, gap, cutoff);
  j.check = [=] {
    std::vector<double> want(out.n), h(F);
    for (int i = 0; i < E; ++i) {
      for (int f = 0; f < F; ++f) {
        double v = b1[f];
        for (int r = 0; r < R; ++r) {
          const double apart = (d[i] - r * gap) / gap;
          v += std::exp(-.5 * apart * apart) * w1[r * F + f];
        }
        h[f] = std::log1p(std::exp(v)) - std::log(2);
      }
      for (int f = 0; f < F; ++f) {
        double v = b2[f];
        for (int k = 0; k < F; ++k) v += h[k] * w2[k * F + f];
        want[t.at(i) * F + f] += v * .5 * (std::cos(d[i] * 3.14159265 / cutoff) + 1) * x[s.at(i) * F + f];
      }
    }
    return agree(out.now(), want, 1e-2, 4e-3);
  };
  return j;
});

// --- attention between residues with points in space (AlphaFold's invariant points): scores of channels, of distances
// and of pairs; three results
struct PointCfg {
  int BI = 16, BJ = 16, C = 16, P = 4, Z = 32;
};
auto point_attention = kernel("user_point_attention", [](const PointCfg& c, Ptr<const float> q, Ptr<const float> k,
                                                         Ptr<const float> v, Ptr<const float> qp, Ptr<const float> kp,
                                                         Ptr<const float> bias, Ptr<const float> z, Ptr<float> o,
                                                         Ptr<float> op, Ptr<float> oz, F32 weight, I32 H, I32 N) {
  // q k v o [N, H, C], qp kp op [N, H, P * 3], bias [H, N, N], z [N, N, Z], oz [N, H, Z]
  auto i = program_id(0) * c.BI + arange(0, c.BI), h = program_id(1);
  auto ch = arange(0, c.C), p = arange(0, c.P * 4), pz = arange(0, c.Z);
  auto real = p.row() % 4 < 3;  // three of four, so that tiles have powers of two
  auto point = p.row() / 4 * 3 + p.row() % 4;
  auto in_i = i.col() < N;
  auto Q = load(q + ((i.col() * H + h) * c.C + ch.row()), {.mask = in_i});
  auto QP = load(qp + ((i.col() * H + h) * (c.P * 3) + point), {.mask = in_i & real});
  Tile top = full({c.BI, 1}, -1e30f, f32), total = zeros({c.BI, 1}, f32);
  Tile a = zeros({c.BI, c.C}, f32), b = zeros({c.BI, c.P * 4}, f32), pairs = zeros({c.BI, c.Z}, f32);
  for (auto first : range(0, N, c.BJ)) {
    auto j = first + arange(0, c.BJ);
    auto in_j = j.col() < N;
    auto K = load(k + ((j.col() * H + h) * c.C + ch.row()), {.mask = in_j});
    auto V = load(v + ((j.col() * H + h) * c.C + ch.row()), {.mask = in_j});
    auto KP = load(kp + ((j.col() * H + h) * (c.P * 3) + point), {.mask = in_j & real});
    auto apart = expand_dims(QP, 1) - expand_dims(KP, 0);  // [BI, BJ, P * 4]
    auto far = squeeze(sum(apart * apart, axis(2)), 2);
    auto s = dot(Q, trans(K), Prec::tf32) * .25f - far * weight +
             load(bias + ((h * N + i.col()) * N + j.row()), {.mask = in_i & (j.row() < N), .other = -1e30f});
    auto now = max(top, max(s, axis(1)));
    auto e = exp(s - now), scale = exp(top - now);
    total = total * scale + sum(e, axis(1));
    a = dot(e, V, a * scale, Prec::tf32);
    b = b * scale + dot(e, KP, Prec::tf32);
    auto Z = load(z + (expand_dims(i.col() * N + j.row(), 2) * c.Z + expand_dims(pz.row(), 0)),
                  {.mask = expand_dims(in_i & (j.row() < N), 2)});  // [BI, BJ, Z]
    pairs = pairs * scale + squeeze(sum(expand_dims(e, 2) * Z, axis(1)), 1);
    top = now;
  }
  store(o + ((i.col() * H + h) * c.C + ch.row()), a / total, {.mask = in_i});
  store(op + ((i.col() * H + h) * (c.P * 3) + point), b / total, {.mask = in_i & real});
  store(oz + ((i.col() * H + h) * c.Z + pz.row()), pairs / total, {.mask = in_i});
}).grid([](const PointCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, float, int H, int N) {
  return Grid{cdiv(N, c.BI), H};
});
Register r2("point_attention", [](Env& e) {
  PointCfg c;
  if (!e.big) c = {16, 8, 16, 4, 8};
  c.BI = e.field("BI", c.BI), c.BJ = e.field("BJ", c.BJ);
  const int N = e.big ? 1024 : 21, H = e.big ? 12 : 2, C = c.C, P = c.P * 3, Z = c.Z;
  auto q = random<float>(e, N * H * C), k = random<float>(e, N * H * C), v = random<float>(e, N * H * C),
       qp = random<float>(e, N * H * P), kp = random<float>(e, N * H * P), bias = random<float>(e, size_t(H) * N * N),
       z = random<float>(e, size_t(N) * N * Z);
  auto o = constant<float>(e, q.n, NAN), op = constant<float>(e, qp.n, NAN), oz = constant<float>(e, N * H * Z, NAN);
  Job j;
  j.gflop = 1e-9 * H * double(N) * N * (4 * C + 7 * P + 2 * Z);
  j.add(point_attention, c, q.p, k.p, v.p, qp.p, kp.p, bias.p, z.p, o.p, op.p, oz.p, .3f, H, N);
  j.check = [=]() -> std::string {
    std::vector<double> wo(o.n), wp(op.n), wz(oz.n), s(N);
    for (int i = 0; i < N; ++i)
      for (int h = 0; h < H; ++h) {
        double total = 0;
        for (int n = 0; n < N; ++n) {
          double x = bias[(size_t(h) * N + i) * N + n];
          for (int d = 0; d < C; ++d) x += .25 * q[(i * H + h) * C + d] * k[(n * H + h) * C + d];
          for (int d = 0; d < P; ++d) x -= .3 * std::pow(qp[(i * H + h) * P + d] - kp[(n * H + h) * P + d], 2);
          total += s[n] = std::exp(x);
        }
        for (int n = 0; n < N; ++n) {
          for (int d = 0; d < C; ++d) wo[(i * H + h) * C + d] += s[n] / total * v[(n * H + h) * C + d];
          for (int d = 0; d < P; ++d) wp[(i * H + h) * P + d] += s[n] / total * kp[(n * H + h) * P + d];
          for (int d = 0; d < Z; ++d) wz[(i * H + h) * Z + d] += s[n] / total * z[(size_t(i) * N + n) * Z + d];
        }
      }
    if (auto wrong = agree(o.now(), wo, 2e-3, 2e-3); !wrong.empty()) return "o: " + wrong;
    if (auto wrong = agree(op.now(), wp, 2e-3, 2e-3); !wrong.empty()) return "points: " + wrong;
    return agree(oz.now(), wz, 2e-3, 2e-3);
  };
  return j;
});

// --- products of spherical tensors up to l = 2 (MACE, e3nn): nine by nine components give nine, by a table of
// coefficients, times a weight for every channel
struct IrrepsCfg {
  int B = 4, C = 64;
};
auto irreps = kernel("user_irreps", [](const IrrepsCfg& c, Ptr<const float> x, Ptr<const float> y, Ptr<const float> cg,
                                       Ptr<const float> w, Ptr<float> out, I32 N) {
  // x, out [N, C, 9], y [N, 9], cg [9, 9, 9] (i, j, k), w [C, 9]
  auto n = program_id(0) * c.B + arange(0, c.B), ch = arange(0, c.C), l = arange(0, 9);
  auto in = n < N;
  auto Y = load(y + (n.col() * 9 + l.row()), {.mask = in.col()});  // [B, 9]
  auto table = load(cg + (expand_dims(l.col() * 9 + l.row(), 2) * 9 + expand_dims(l.row(), 0)));  // [9, 9, 9]
  auto mixed = squeeze(sum(expand_dims(table, 0) * expand_dims(expand_dims(Y, 1), 3), axis(2)), 2);  // [B, i, k]
  auto at = expand_dims((n.col() * c.C + ch.row()) * 9, 2) + expand_dims(l.row(), 0);
  auto mask = expand_dims(expand_dims(in, 1), 2);
  auto X = load(x + at, {.mask = mask});  // [B, C, 9]
  auto z = squeeze(sum(expand_dims(X, 3) * expand_dims(mixed, 1), axis(2)), 2);  // [B, C, k]
  auto W = load(w + (ch.col() * 9 + l.row()));
  store(out + at, z * expand_dims(W, 0), {.mask = mask});
}).grid([](const IrrepsCfg& c, auto, auto, auto, auto, auto, int N) { return Grid{cdiv(N, c.B)}; });
Register r3("irreps", [](Env& e) {
  IrrepsCfg c;
  if (!e.big) c = {2, 8};
  c.B = e.field("B", c.B);
  const int N = e.big ? 65536 : 5, C = c.C;
  auto x = random<float>(e, size_t(N) * C * 9), y = random<float>(e, N * 9), cg = random<float>(e, 729),
       w = random<float>(e, C * 9);
  auto out = constant<float>(e, x.n, NAN);
  Job j;
  j.gflop = 2e-9 * 81 * double(N) * C;
  j.mbytes = 8e-6 * x.n;
  j.add(irreps, c, x.p, y.p, cg.p, w.p, out.p, N);
  j.check = [=] {
    std::vector<double> want(x.n);
    for (int n = 0; n < N; ++n)
      for (int h = 0; h < C; ++h)
        for (int k = 0; k < 9; ++k) {
          double s = 0;
          for (int i = 0; i < 9; ++i)
            for (int m = 0; m < 9; ++m) s += x[(size_t(n) * C + h) * 9 + i] * y[n * 9 + m] * cg[(i * 9 + m) * 9 + k];
          want[(size_t(n) * C + h) * 9 + k] = s * w[h * 9 + k];
        }
    return agree(out.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- one level of a breadth-first search: a program a vertex of the frontier, whose neighbours that nobody has seen
// join the next one
struct BfsCfg {
  int B = 128;
};
auto bfs = kernel("user_bfs", [](const BfsCfg& c, Ptr<const int64_t> start, Ptr<const int32_t> edge, Ptr<int32_t> depth,
                                 Ptr<const int32_t> frontier, Ptr<const int32_t> size, Ptr<int32_t> next,
                                 Ptr<int32_t> tail, I32 level, I32 /*most*/) {
  auto i = program_id(0);
  return_if(i >= load(size));
  auto v = load(frontier + i);
  auto end = load(start + v + 1);
  for (auto first : range(load(start + v), end, c.B)) {
    auto at = first + cast(arange(0, c.B), i64);
    auto inside = at < end;
    auto n = load(edge + at, {.mask = inside});
    auto seen = atomic_cas(depth + n, -1, level, {.mask = inside});
    auto fresh = inside & (seen == -1);
    auto count = cast(fresh, i32);
    auto place = atomic_add(tail, sum(count)) + cumsum(count, axis(0)) - count;
    store(next + place, n, {.mask = fresh});
  }
}).grid([](const BfsCfg&, auto, auto, auto, auto, auto, auto, auto, int, int most) { return Grid{most}; });
Register r4("bfs", [](Env& e) {
  BfsCfg c;
  if (!e.big) c.B = 32;
  c.B = e.field("B", c.B);
  const int V = e.big ? 1 << 20 : 60, D = e.big ? 16 : 3, levels = e.big ? 6 : 5;
  auto degree = [=](int v) { return (v * 7 + 3) % (2 * D); };
  std::vector<int64_t> at{0};
  for (int v = 0; v < V; ++v) at.push_back(at.back() + degree(v));
  auto start = filled<int64_t>(e, V + 1, [&](size_t v) { return at[v]; });
  auto edge = integers<int32_t>(e, at.back(), 0, V);
  auto depth = filled<int32_t>(e, V, [](size_t v) { return v ? -1 : 0; });
  auto frontier = constant<int32_t>(e, size_t(levels + 1) * V, 0), sizes = constant<int32_t>(e, levels + 1, 0);
  sizes = filled<int32_t>(e, levels + 1, [](size_t l) { return l == 0; });
  Job j;
  j.mbytes = 8e-6 * at.back();
  j.inTurn = true;
  for (int l = 0; l < levels; ++l)
    j.add(bfs, c, start.p, edge.p, depth.p, frontier.p + size_t(l) * V, sizes.p + l, frontier.p + size_t(l + 1) * V,
          sizes.p + l + 1, l + 1, V);
  j.check = [=]() -> std::string {
    std::vector<int> want(V, -1), now{0};
    want[0] = 0;
    const auto counted = sizes.now(), got = depth.now();
    for (int l = 0; l < levels; ++l) {
      if (counted[l] != int(now.size())) return "level " + std::to_string(l) + ": size";
      std::vector<int> next;
      for (int v : now)
        for (int64_t x = at[v]; x < at[v + 1]; ++x)
          if (want[edge.at(x)] < 0) want[edge.at(x)] = l + 1, next.push_back(edge.at(x));
      now = next;
    }
    for (int v = 0; v < V; ++v)
      if (got[v] != want[v]) return "vertex " + std::to_string(v);
    return "";
  };
  return j;
});

}  // namespace first_graphs
}  // namespace users
