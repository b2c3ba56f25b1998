// irregular.cpp - programs whose work depends on the data: sampling, sorting by digits, dynamic programs over
// alphabets, graphs, small systems per user, splats, pictures, several time steps of a stencil at once.
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace irregular {

constexpr float kLog2e = 1.4426950408889634f;

// --- top-p sampling without a sort: the smallest threshold that keeps p of the mass, then a draw among what is kept
struct TopPCfg {
  int B = 4096, warps = 8;
};
auto top_p = kernel("user_top_p", [](const TopPCfg& c, Tensor<const half, 2> X, Tensor<const float, 1> P,
                                     Tensor<const float, 1> U, Tensor<int32_t, 1> chosen, Tensor<float, 1> kept) {
               // X [rows, vocabulary] logits, P the mass to keep, U in [0, 1) the draw; kept: mass of what stayed
               num_warps(c.warps);
               auto r = program_id(0);
               auto n = X.dim(1);
               auto i = arange(0, c.B);
               auto row = [&](const Tile& at) { return cast(X.load({r, at}, {c.B}, {.pad = -INFINITY}), f32); };
               Tile most = full({c.B}, -INFINITY, f32);
               for (auto at : range(0, n, c.B)) most = max(most, row(at));
               auto top = max(most);
               auto weight = [&](const Tile& at) { return exp2((row(at) - top) * kLog2e); };
               Tile mass = zeros({c.B}, f32);
               for (auto at : range(0, n, c.B)) mass += weight(at);
               auto goal = sum(mass) * P.load({r});
               Tile low = 0.f, high = 1.f, keep = 0.f;  // weights >= low have enough mass, those >= high too little
               for (auto step : range(0, 20)) {
                 (void)step;
                 auto middle = (low + high) * 0.5f;
                 Tile s = zeros({c.B}, f32);
                 for (auto at : range(0, n, c.B)) {
                   auto w = weight(at);
                   s += where(w >= middle, w, 0.f);
                 }
                 auto found = sum(s);
                 auto enough = found >= goal;
                 keep = where(enough, found, keep);
                 low = where(enough, middle, low);
                 high = where(enough, high, middle);
               }
               keep = where(low > 0.f, keep, sum(mass));
               auto goal2 = U.load({r}) * keep;
               Tile before = 0.f, token = -1;
               for (auto at : range(0, n, c.B)) {
                 auto w = weight(at);
                 w = where(w >= low, w, 0.f);
                 auto upto = cumsum(w, axis(0)) + before;
                 auto hit = min(where((upto > goal2) & (w > 0.f), at + i, 0x7fffffff));
                 if_(hit < 0x7fffffff, [&] { token = hit; });
                 before += sum(w);
                 break_if(token >= 0);
               }
               chosen.store({r}, reshape(token, {1}));
               kept.store({r}, reshape(keep, {1}));
             }).grid([](const TopPCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r1("top_p", [](Env& e) {
  int R = e.big ? 1024 : 6, N = e.big ? 128256 : 1000;
  auto x = random<half>(e, size_t(R) * N, -6, 6);
  auto p = random<float>(e, R, .5, .95), u = random<float>(e, R, .01, .99);
  auto chosen = constant<int32_t>(e, R, -5);
  auto kept = constant<float>(e, R, NAN);
  Job j;
  j.mbytes = 2e-6 * R * N;
  j.add(top_p, TopPCfg{e.big ? 4096 : 256, e.big ? 8 : 4}, x.view(R, N), p.view(R), u.view(R), chosen.view(R),
        kept.view(R));
  j.check = [=] {
    const auto tokens = chosen.now();
    const auto masses = kept.now();
    for (int r = 0; r < R; ++r) {
      std::vector<double> w(N);
      double top = -1e9, total = 0, sorted_mass = 0;
      for (int i = 0; i < N; ++i) top = std::max(top, x[size_t(r) * N + i]);
      for (int i = 0; i < N; ++i) total += w[i] = std::exp(x[size_t(r) * N + i] - top);
      auto order = w;
      std::sort(order.begin(), order.end(), std::greater<>());
      double least = 0;
      for (double v : order)
        if ((sorted_mass += v) >= total * p[r]) {
          least = v;
          break;
        }
      double mass = 0;
      for (double v : w) mass += v >= least * (1 - 1e-5) ? v : 0;
      if (!(std::abs(mass - masses[r]) < 2e-3 * total)) return std::string("another mass is kept");
      double upto = 0;
      const int t = tokens[r];
      if (t < 0 || t >= N || w[t] < least * (1 - 1e-4)) return std::string("a token that was cut off");
      for (int i = 0; i < t; ++i) upto += w[i] >= least * (1 - 1e-5) ? w[i] : 0;
      if (u[r] * masses[r] < upto - 1e-3 * total || u[r] * masses[r] > upto + w[t] + 1e-3 * total)
        return std::string("not the token of the draw");
    }
    return std::string();
  };
  return j;
});

// --- one pass of a radix sort: counts of a digit per block, then a stable scatter
struct RadixCfg {
  int B = 1024, bits = 4, warps = 4;
};
auto digit_counts = kernel("user_digit_counts", [](const RadixCfg& c, Ptr<const uint32_t> keys,
                                                   Tensor<int32_t, 2> counts, I32 n, I32 shift) {
                      num_warps(c.warps);
                      const int digits = 1 << c.bits;
                      auto b = program_id(0), at = b * c.B + arange(0, c.B);
                      auto key = load(keys + at, {.mask = at < n});
                      auto digit = cast((key >> cast(shift, u32)) & uint32_t(digits - 1), i32);
                      counts.store({0, b}, histogram(digit, digits, {.mask = at < n}).col());
                    }).grid([](const RadixCfg& c, auto*, const auto&, int n, int) { return Grid{cdiv(n, c.B)}; });
// Not in place: a pass that is timed again and again must find the same counts.
auto digit_starts = kernel("user_digit_starts", [](const RadixCfg& c, Ptr<const int32_t> counts, Ptr<int32_t> starts,
                                                   I32 n) {
                      num_warps(c.warps);
                      Tile before = 0;
                      for (auto i : range(0, n, c.B)) {
                        auto at = i + arange(0, c.B);
                        auto x = load(counts + at, {.mask = at < n});
                        store(starts + at, cumsum(x, axis(0)) - x + before, {.mask = at < n});
                        before += sum(x);
                      }
                    }).grid([](const RadixCfg&, auto*, auto*, int) { return Grid{1}; });
auto digit_scatter = kernel("user_digit_scatter", [](const RadixCfg& c, Ptr<const uint32_t> keys, Ptr<uint32_t> out,
                                                     Tensor<const int32_t, 2> starts, I32 n, I32 shift) {
                       num_warps(c.warps);
                       const int digits = 1 << c.bits;
                       auto b = program_id(0), at = b * c.B + arange(0, c.B);
                       auto key = load(keys + at, {.mask = at < n});
                       auto digit = cast((key >> cast(shift, u32)) & uint32_t(digits - 1), i32);
                       auto mine = (digit.col() == arange(0, digits).row()) & (at < n).col();
                       auto ones = cast(mine, i32);
                       auto rank = cumsum(ones, axis(0)) - 1 + trans(starts.load({0, b}, {digits, 1}));
                       auto place = squeeze(sum(where(mine, rank, 0), axis(1)), 1);
                       store(out + place, key, {.mask = at < n});
                     }).grid([](const RadixCfg& c, auto*, auto*, const auto&, int n, int) {
  return Grid{cdiv(n, c.B)};
});
Register r2("radix_pass", [](Env& e) {
  int n = e.big ? 1 << 24 : 5000, shift = 4;
  RadixCfg c;
  c.warps = e.big ? 8 : 4;
  if (!e.big) c.B = 256;
  int blocks = cdiv(n, c.B), digits = 1 << c.bits;
  auto keys = integers<uint32_t>(e, n, 0, 65536);
  auto out = constant<uint32_t>(e, n, 0);
  auto counts = constant<int32_t>(e, size_t(digits) * blocks, 0);
  auto starts = constant<int32_t>(e, size_t(digits) * blocks, 0);
  Job j;
  j.mbytes = 12e-6 * n;
  j.add(digit_counts, c, keys.p, counts.view(digits, blocks), n, shift);
  j.add(digit_starts, RadixCfg{e.big ? 4096 : 256, 4, e.big ? 16 : 4}, counts.p, starts.p, digits * blocks);
  j.add(digit_scatter, c, keys.p, out.p, starts.view(digits, blocks), n, shift);
  j.check = [=] {
    auto want = keys.h;
    std::stable_sort(want.begin(), want.end(),
                     [=](uint32_t a, uint32_t b) { return (a >> shift & (digits - 1)) < (b >> shift & (digits - 1)); });
    return agree(out.now(), std::vector<double>(want.begin(), want.end()), 0.1, 0);
  };
  return j;
});

// --- CTC loss: the sum over alignments of a label row with blanks between; state i looks at i, i - 1 and i - 2
struct CtcCfg {
  int S = 128, warps = 1;
};
auto ctc = kernel("user_ctc", [](const CtcCfg& c, Tensor<const float, 3> logp, Tensor<const int32_t, 2> labels,
                                 Ptr<const int32_t> frames, Ptr<const int32_t> lengths, Tensor<float, 1> loss) {
             // logp [T, B, classes] natural logarithms, class 0 is the blank; labels [B, most]
             num_warps(c.warps);
             auto b = program_id(0);
             auto i = arange(0, c.S);
             auto length = load(lengths + b), T = load(frames + b);
             auto place = labels.ptr() + b * labels.stride(0);
             auto odd = (i % 2 == 1) & (i / 2 < length);
             auto label = load(place + i / 2, {.mask = odd});
             auto previous = load(place + i / 2 - 1, {.mask = odd & (i > 2)});
             auto skips = odd & ((label != previous) | (i == 1));
             auto at = logp.ptr() + b * logp.stride(1);
             Tile a = where((i == 0) | ((i == 1) & (length > 0)), load(at + label) * kLog2e, -INFINITY);
             auto moved = [&](const Tile& x, int by) { return where(i >= by, take(x, max(i - by, 0), 0), -INFINITY); };
             for (auto t : range(1, T)) {
               auto one = moved(a, 1), two = where(skips, moved(a, 2), -INFINITY);
               auto m = max(max(a, one), two);
               auto safe = where(m == -INFINITY, 0.f, m);
               auto total = exp2(a - safe) + exp2(one - safe) + exp2(two - safe);
               auto emit = load(at + t * logp.stride(0) + label) * kLog2e;
               a = where(i <= 2 * length, safe + log2(total) + emit, -INFINITY);
             }
             auto last = where((i == 2 * length) | (i == 2 * length - 1), a, -INFINITY);
             auto m = max(last);
             loss.store({b}, reshape(-(m + log2(sum(exp2(last - m)))) * 0.6931471805599453f, {1}));
           }).grid([](const CtcCfg&, const auto&, const auto&, auto*, auto*, const auto& loss) {
  return Grid{loss.shape[0]};
});
Register r3("ctc", [](Env& e) {
  int B = e.big ? 512 : 5, T = e.big ? 1000 : 40, C = e.big ? 64 : 9, most = e.big ? 60 : 11;
  auto logp = random<float>(e, size_t(T) * B * C, -4, -1);
  auto labels = integers<int32_t>(e, B * most, 1, e.big ? C : 4);
  auto frames = filled<int32_t>(e, B, [=](size_t i) { return T - int(i % 3); });
  auto lengths = filled<int32_t>(e, B, [=](size_t i) { return most - int(i % 4) * (most / 4); });
  auto loss = constant<float>(e, B, NAN);
  Job j;
  j.mbytes = 4e-6 * T * B * C;
  j.add(ctc, CtcCfg{e.big ? 128 : 32, 1}, logp.view(T, B, C), labels.view(B, most), frames.p, lengths.p, loss.view(B));
  j.check = [=] {
    std::vector<double> want;
    for (int b = 0; b < B; ++b) {
      const int L = lengths.h[b], S = 2 * L + 1;
      auto label = [&](int s) { return s % 2 ? labels.h[b * most + s / 2] : 0; };
      std::vector<double> a(S, 0), next(S);
      a[0] = std::exp(logp[size_t(b) * C]);
      if (L) a[1] = std::exp(logp[size_t(b) * C + label(1)]);
      double scale = 0;
      for (int t = 1; t < frames.h[b]; ++t) {
        double top = 0;
        for (int s = 0; s < S; ++s) {
          double x = a[s] + (s > 0 ? a[s - 1] : 0);
          if (s > 1 && s % 2 && label(s) != label(s - 2)) x += a[s - 2];
          next[s] = x * std::exp(logp[(size_t(t) * B + b) * C + label(s)]);
          top = std::max(top, next[s]);
        }
        for (int s = 0; s < S; ++s) a[s] = next[s] / top;
        scale += std::log(top);
      }
      want.push_back(-std::log(a[S - 1] + (L ? a[S - 2] : 0)) - scale);
    }
    return agree(loss.now(), want, 1e-3, 1e-4);
  };
  return j;
});

// --- graph attention: softmax over the neighbours of a node (CSR), then their features summed
struct GatCfg {
  int E = 32, F = 64, warps = 1;
};
auto gat = kernel("user_graph_attention", [](const GatCfg& c, Ptr<const int32_t> start, Ptr<const int32_t> neighbour,
                                             Ptr<const float> from, Ptr<const float> to, Tensor<const half, 3> X,
                                             Tensor<half, 3> Y, F32 slope) {
             // from, to [nodes, heads] halves of the scores, X, Y [nodes, heads, F]
             num_warps(c.warps);
             programs_per_multiprocessor(32 / c.warps);  // with registers for all rows of a block on their way
             auto node = program_id(0), head = program_id(1), heads = num_programs(1);
             auto first = load(start + node), last = load(start + node + 1);
             auto mine = load(to + node * heads + head);
             Tile acc = zeros({1, c.F}, f32), m = -INFINITY, l = 0.f;
             auto f = arange(0, c.F);
             for (auto i : range(first, last, c.E)) {
               auto e = i + arange(0, c.E);
               auto live = e < last;
               auto n = load(neighbour + e, {.mask = live});
               auto s = load(from + n * heads + head, {.mask = live}) + mine;
               s = where(live, where(s > 0.f, s, s * slope) * kLog2e, -INFINITY);
               auto m2 = max(m, max(s));
               auto p = exp2(s - m2), alpha = exp2(m - m2);
               auto row = cast(n, i64).col() * X.stride(0) + head * X.stride(1);
               auto x = load(X.ptr() + row + f.row(), {.mask = live.col()});
               acc = acc * alpha + sum(cast(x, f32) * p.col(), axis(0));
               l = l * alpha + sum(p);
               m = m2;
             }
             Y.store({node, head, 0}, cast(squeeze(where(l > 0.f, acc / l, 0.f), 0), f16));
           }).grid([](const GatCfg&, auto*, auto*, auto*, auto*, const auto& x, const auto&, float) {
  return Grid{x.shape[0], x.shape[1]};
});
Register r4("graph_attention", [](Env& e) {
  int N = e.big ? 1 << 17 : 40, H = e.big ? 4 : 2, F = e.big ? 64 : 16, degree = e.big ? 24 : 9;
  std::vector<int> at{0};
  for (int i = 0; i < N; ++i) at.push_back(at.back() + (i % 7 == 3 ? 0 : int(e.uniform() * 2 * degree)));
  auto start = filled<int32_t>(e, N + 1, [&](size_t i) { return at[i]; });
  auto neighbour = integers<int32_t>(e, at.back(), 0, N);
  auto from = random<float>(e, N * H), to = random<float>(e, N * H);
  auto x = random<half>(e, size_t(N) * H * F);
  auto y = constant<half>(e, size_t(N) * H * F, NAN);
  Job j;
  j.mbytes = 2e-6 * H * F * (double(at.back()) + N);
  j.add(gat, GatCfg{e.field("E", e.big ? 32 : 8), F, e.field("warps", 1)}, start.p, neighbour.p, from.p, to.p,
        x.view(N, H, F), y.view(N, H, F), .2f);
  j.check = [=] {
    std::vector<double> want(size_t(N) * H * F);
    for (int n = 0; n < N; ++n)
      for (int h = 0; h < H; ++h) {
        double total = 0;
        std::vector<double> w;
        for (int i = at[n]; i < at[n + 1]; ++i) {
          const double s = from[neighbour.h[i] * H + h] + to[n * H + h];
          w.push_back(std::exp(s > 0 ? s : s * .2f)), total += w.back();
        }
        for (int i = at[n]; i < at[n + 1]; ++i)
          for (int f = 0; f < F; ++f)
            want[(size_t(n) * H + h) * F + f] +=
                w[i - at[n]] / total * x[(size_t(neighbour.h[i]) * H + h) * F + f];
      }
    return agree(y.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- alternating least squares: a user's Gram matrix from the rows of rated items, then a Cholesky solve in place
struct AlsCfg {
  int F = 32, E = 32, warps = 4;
};
auto als = kernel("user_als", [](const AlsCfg& c, Ptr<const int32_t> start, Ptr<const int32_t> item,
                                 Ptr<const float> rating, Tensor<const half, 2> V, Tensor<float, 2> X, F32 lambda) {
             num_warps(c.warps);
             auto u = program_id(0);
             auto first = load(start + u), last = load(start + u + 1);
             auto f = arange(0, c.F);
             auto row = f.col(), column = f.row();
             Tile gram = where(row == column, lambda, 0.f), b = zeros({c.F, 1}, f32);
             for (auto i : range(first, last, c.E, {.stages = 2})) {
               auto e = i + arange(0, c.E);
               auto n = load(item + e, {.mask = e < last});
               auto v = load(V.ptr() + cast(n, i64).col() * V.stride(0) + f.row(), {.mask = (e < last).col()});
               auto r = load(rating + e, {.mask = e < last});
               gram = dot(trans(v), v, gram);
               b += sum(cast(trans(v), f32) * r.row(), axis(1));
             }
             // L L^T = gram, column by column; b becomes the solution
             Tile l = gram;
             for (auto k : range(0, c.F)) {
               auto at = where(column == k, l, 0.f);
               auto col = sum(at, axis(1));
               auto pivot = rsqrt(sum(where(row == k, col, 0.f)));
               col = where(row >= k, col * pivot, 0.f);
               l = where(column == k, col, where((column > k) & (row > k), l - col * trans(col), l));
               auto y = sum(where(row == k, b, 0.f)) * pivot;
               b = where(row == k, y, where(row > k, b - col * y, b));
             }
             for (auto i : range(0, c.F)) {
               auto k = c.F - 1 - i;
               auto back = trans(sum(where(row == k, l, 0.f), axis(0)));  // row k of L as a column
               auto x = sum(where(row == k, b, 0.f)) / sum(where(row == k, back, 0.f));
               b = where(row == k, x, where(row < k, b - back * x, b));
             }
             X.store({u, 0}, squeeze(b, 1));
           }).grid([](const AlsCfg&, auto*, auto*, auto*, const auto&, const auto& x, float) {
  return Grid{x.shape[0]};
});
Register r5("als", [](Env& e) {
  int U = e.big ? 1 << 15 : 9, I = e.big ? 20000 : 50, F = e.big ? 64 : 16, most = e.big ? 200 : 70;
  std::vector<int> at{0};
  for (int i = 0; i < U; ++i) at.push_back(at.back() + int(e.uniform() * most));
  auto start = filled<int32_t>(e, U + 1, [&](size_t i) { return at[i]; });
  auto item = integers<int32_t>(e, at.back(), 0, I);
  auto rating = random<float>(e, at.back(), 1, 5);
  auto v = random<half>(e, size_t(I) * F);
  auto x = constant<float>(e, size_t(U) * F, NAN);
  Job j;
  j.gflop = 2e-9 * at.back() * double(F) * F;
  j.add(als, AlsCfg{F, e.big ? 32 : 16, 4}, start.p, item.p, rating.p, v.view(I, F), x.view(U, F), 3.f);
  j.check = [=] {
    std::vector<double> want;
    for (int u = 0; u < U; ++u) {
      std::vector<double> a(F * F), b(F);
      for (int i = 0; i < F; ++i) a[i * F + i] = 3;
      for (int r = at[u]; r < at[u + 1]; ++r)
        for (int i = 0; i < F; ++i) {
          const double vi = v[size_t(item.h[r]) * F + i];
          b[i] += vi * rating[r];
          for (int k = 0; k < F; ++k) a[i * F + k] += vi * v[size_t(item.h[r]) * F + k];
        }
      for (int k = 0; k < F; ++k)  // elimination, then substitution
        for (int i = k + 1; i < F; ++i) {
          const double factor = a[i * F + k] / a[k * F + k];
          for (int c = k; c < F; ++c) a[i * F + c] -= factor * a[k * F + c];
          b[i] -= factor * b[k];
        }
      for (int i = F - 1; i >= 0; --i) {
        for (int c = i + 1; c < F; ++c) b[i] -= a[i * F + c] * b[c];
        b[i] /= a[i * F + i];
      }
      want.insert(want.end(), b.begin(), b.end());
    }
    return agree(x.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- Gaussian splats over a tile of pixels, front to back, until nothing shines through
struct SplatCfg {
  int P = 16, warps = 4;
};
auto splat = kernel("user_splat", [](const SplatCfg& c, Ptr<const int32_t> start, Ptr<const int32_t> ids,
                                     Tensor<const float, 2> G, Tensor<float, 3> image) {
               // G [splats, 9]: centre x y, inverse covariance a b c, opacity, colour; image [3, H, W]
               num_warps(c.warps);
               auto tx = program_id(0), ty = program_id(1), t = ty * num_programs(0) + tx;
               auto x = cast(tx * c.P + arange(0, c.P), f32).row(), y = cast(ty * c.P + arange(0, c.P), f32).col();
               Tile left = ones({c.P, c.P}, f32), red = zeros({c.P, c.P}, f32), green = red, blue = red;
               for (auto i : range(load(start + t), load(start + t + 1))) {
                 auto g = load(ids + i);
                 auto at = [&](int k) { return G.load({g, k}); };
                 auto dx = x - at(0), dy = y - at(1);
                 auto power = -0.5f * (at(2) * dx * dx + at(4) * dy * dy) - at(3) * dx * dy;
                 auto alpha = min(at(5) * exp(power), 0.99f);
                 alpha = where((power <= 0.f) & (alpha >= 1.f / 255) & (left > 1e-4f), alpha, 0.f);
                 auto w = alpha * left;
                 red += w * at(6), green += w * at(7), blue += w * at(8);
                 left *= 1.f - alpha;
                 break_if(all(left <= 1e-4f));
               }
               image.store({0, ty * c.P, tx * c.P}, expand_dims(red, 0));
               image.store({1, ty * c.P, tx * c.P}, expand_dims(green, 0));
               image.store({2, ty * c.P, tx * c.P}, expand_dims(blue, 0));
             }).grid([](const SplatCfg& c, auto*, auto*, const auto&, const auto& image) {
  return Grid{cdiv(image.shape[2], c.P), cdiv(image.shape[1], c.P)};
});
Register r6("splat", [](Env& e) {
  int W = e.big ? 1920 : 40, H = e.big ? 1080 : 30, N = e.big ? 200000 : 60, per = e.big ? 300 : 25, P = 16;
  int tiles = cdiv(W, P) * cdiv(H, P);
  auto start = filled<int32_t>(e, tiles + 1, [=](size_t i) { return int(i) * per; });
  auto ids = integers<int32_t>(e, size_t(tiles) * per, 0, N);
  auto g = filled<float>(e, size_t(N) * 9, [&](size_t i) {
    const double u = e.uniform();
    switch (i % 9) {
      case 0: return float(u * W);
      case 1: return float(u * H);
      case 2: case 4: return float(.02 + .1 * u);
      case 3: return float(.01 * u);
      default: return float(.2 + .8 * u);
    }
  });
  auto image = constant<float>(e, size_t(3) * H * W, NAN);
  Job j;
  j.mbytes = 12e-6 * H * W;
  j.add(splat, SplatCfg{P, e.field("warps", e.big ? 2 : 4)}, start.p, ids.p, g.view(N, 9), image.view(3, H, W));
  j.check = [=] {
    std::vector<double> want(size_t(3) * H * W);
    for (int py = 0; py < H; ++py)
      for (int px = 0; px < W; ++px) {
        const int t = py / P * cdiv(W, P) + px / P;
        double left = 1;
        for (int i = start.h[t]; i < start.h[t + 1] && left > 1e-4; ++i) {
          auto at = [&](int k) { return g[size_t(ids.h[i]) * 9 + k]; };
          const double dx = px - at(0), dy = py - at(1);
          const double power = -.5 * (at(2) * dx * dx + at(4) * dy * dy) - at(3) * dx * dy;
          const double alpha = std::min(.99, at(5) * std::exp(power));
          if (power > 0 || alpha < 1. / 255) continue;
          for (int k = 0; k < 3; ++k) want[(size_t(k) * H + py) * W + px] += alpha * left * at(6 + k);
          left *= 1 - alpha;
        }
      }
    return agree(image.now(), want, 6e-3, 1e-3);
  };
  return j;
});

// --- contrast-limited equalisation: a clipped histogram per tile becomes a table, pixels blend four tables
struct ClaheCfg {
  int P = 64, warps = 4;
};
auto clahe_tables = kernel("user_clahe_tables", [](const ClaheCfg& c, Tensor<const uint8_t, 2> X,
                                                   Tensor<float, 3> table, I32 clip) {
                      num_warps(c.warps);
                      auto x = program_id(0), y = program_id(1);
                      auto pixels = reshape(cast(X.load({y * c.P, x * c.P}, {c.P, c.P}), i32), {c.P * c.P});
                      auto counts = histogram(pixels, 256);
                      auto over = sum(max(counts - clip, 0));
                      auto shared = min(counts, clip) + over / 256;
                      auto upto = cumsum(shared, axis(0));
                      table.store({y, x, 0}, cast(upto, f32) * (255.f / (c.P * c.P)));
                    }).grid([](const ClaheCfg& c, const auto& x, const auto&, int) {
  return Grid{x.shape[1] / c.P, x.shape[0] / c.P};
});
auto clahe_blend = kernel("user_clahe_blend", [](const ClaheCfg& c, Tensor<const uint8_t, 2> X,
                                                 Tensor<const float, 3> table, Tensor<uint8_t, 2> Y) {
                     num_warps(c.warps);
                     auto x0 = program_id(0) * c.P, y0 = program_id(1) * c.P;
                     auto v = cast(X.load({y0, x0}, {c.P, c.P}), i32);
                     auto fx = (cast(x0 + arange(0, c.P), f32) + 0.5f) / float(c.P) - 0.5f;
                     auto fy = (cast(y0 + arange(0, c.P), f32) + 0.5f) / float(c.P) - 0.5f;
                     auto across = table.dim(1), down = table.dim(0);
                     auto ix = cast(floor(fx), i32), iy = cast(floor(fy), i32);
                     auto wx = (fx - floor(fx)).row(), wy = (fy - floor(fy)).col();
                     auto at = [&](int dy, int dx) {
                       auto ty = clamp(iy + dy, 0, down - 1).col(), tx = clamp(ix + dx, 0, across - 1).row();
                       return load(table.ptr() + (ty * across + tx) * 256 + v);
                     };
                     auto up = at(0, 0) * (1.f - wx) + at(0, 1) * wx, low = at(1, 0) * (1.f - wx) + at(1, 1) * wx;
                     Y.store({y0, x0}, cast(min(up * (1.f - wy) + low * wy + 0.5f, 255.f), u8));
                   }).grid([](const ClaheCfg& c, const auto& x, const auto&...) {
  return Grid{cdiv(x.shape[1], c.P), cdiv(x.shape[0], c.P)};
});
Register r7("clahe", [](Env& e) {
  int H = e.big ? 4096 : 64, W = e.big ? 4096 : 96, clip = 40;
  ClaheCfg c;
  if (!e.big) c = {32, 4};
  const int P = c.P, A = W / P, D = H / P;
  auto x = drawn<uint8_t>(e, size_t(H) * W, [&] { return uint8_t(40 + 60 * e.uniform() * e.uniform()); });
  auto table = constant<float>(e, size_t(D) * A * 256, NAN);
  auto y = constant<uint8_t>(e, size_t(H) * W, 0);
  Job j;
  j.mbytes = 3e-6 * H * W;
  j.add(clahe_tables, c, x.view(H, W), table.view(D, A, 256), clip);
  j.add(clahe_blend, ClaheCfg{c.P, e.field("warps", e.big ? 8 : 4)}, x.view(H, W), table.view(D, A, 256), y.view(H, W));
  j.check = [=] {
    std::vector<double> tables(size_t(D) * A * 256), want;
    for (int t = 0; t < D * A; ++t) {
      std::vector<int> count(256);
      for (int i = 0; i < P * P; ++i) ++count[x.h[size_t(t / A * P + i / P) * W + t % A * P + i % P]];
      int over = 0, upto = 0;
      for (int n : count) over += std::max(n - clip, 0);
      for (int i = 0; i < 256; ++i) {
        upto += std::min(count[i], clip) + over / 256;
        tables[size_t(t) * 256 + i] = upto * 255. / (P * P);
      }
    }
    for (int py = 0; py < H; ++py)
      for (int px = 0; px < W; ++px) {
        const double fx = (px + .5) / P - .5, fy = (py + .5) / P - .5;
        const int ix = int(std::floor(fx)), iy = int(std::floor(fy));
        auto at = [&](int dy, int dx) {
          const int ty = std::clamp(iy + dy, 0, D - 1), tx = std::clamp(ix + dx, 0, A - 1);
          return tables[(size_t(ty) * A + tx) * 256 + x.h[size_t(py) * W + px]];
        };
        const double wx = fx - ix, wy = fy - iy;
        want.push_back(std::floor(std::min(
            255., (at(0, 0) * (1 - wx) + at(0, 1) * wx) * (1 - wy) + (at(1, 0) * (1 - wx) + at(1, 1) * wx) * wy + .5)));
      }
    return agree(y.now(), want, 1.01, 0);
  };
  return j;
});

// --- heat on a line: many time steps while a piece stays on chip; its ends become wrong and are not stored
struct HeatCfg {
  int N = 1024, steps = 32, warps = 4;
};
auto heat = kernel("user_heat_steps", [](const HeatCfg& c, Tensor<const float, 2> X, Tensor<float, 2> Y, F32 a) {
              // every row a line with zeros outside
              num_warps(c.warps);
              const int inner = c.N - 2 * c.steps;
              auto r = program_id(1), first = program_id(0) * inner - c.steps;
              Tile x = X.load({r, first}, {c.N});
              auto i = arange(0, c.N);
              auto inside = (first + i >= 0) & (first + i < X.dim(1));
              auto left = max(i - 1, 0), right = min(i + 1, c.N - 1);
              for (auto s : range(0, c.steps)) {
                (void)s;
                x = where(inside, x + a * (take(x, left, 0) - 2.f * x + take(x, right, 0)), 0.f);
              }
              auto mine = (i >= c.steps) & (i < c.N - c.steps) & inside;
              store(Y.ptr() + r * Y.stride(0) + first + i, x, {.mask = mine});
            }).grid([](const HeatCfg& c, const auto& x, const auto&, float) {
  return Grid{cdiv(x.shape[1], int64_t{c.N} - 2 * c.steps), x.shape[0]};
});
Register r8("heat_steps", [](Env& e) {
  int R = e.big ? 1024 : 3, N = e.big ? 16384 : 300;
  HeatCfg c{1024, 32, 1};
  if (!e.big) c = {128, 8, 4};
  auto x = random<float>(e, size_t(R) * N);
  auto y = constant<float>(e, size_t(R) * N, NAN);
  Job j;
  j.mbytes = 8e-6 * R * N;
  j.add(heat, c, x.view(R, N), y.view(R, N), .2f);
  j.check = [=] {
    std::vector<double> want;
    for (int r = 0; r < R; ++r) {
      std::vector<double> now(N), next(N);
      for (int i = 0; i < N; ++i) now[i] = x[size_t(r) * N + i];
      for (int s = 0; s < c.steps; ++s, now = next)
        for (int i = 0; i < N; ++i)
          next[i] = now[i] + .2f * ((i ? now[i - 1] : 0) - 2 * now[i] + (i + 1 < N ? now[i + 1] : 0));
      want.insert(want.end(), now.begin(), now.end());
    }
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

}  // namespace irregular
}  // namespace users
