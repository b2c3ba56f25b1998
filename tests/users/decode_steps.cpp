// decode_steps.cpp - small launches around the products of a decode step, and small solvers: a token's keys into the
// cache, long bags of embeddings, counts of a row, beams that are merged, vectors made orthogonal, a small system.
#include "tests/users/use.h"
namespace users {
namespace decode_steps {

// --- a few tokens' residual, norm and weights, in f32 where they are kept; the row is longer than a tile
struct NormCfg {
  int BLOCK = 2048, warps = 0;
};
auto tail_norm = kernel("user_tail_norm", [](const NormCfg& c, Tensor<const half, 2> x, Tensor<const half, 2> add,
                                             Tensor<const half, 1> weight, Tensor<half, 2> kept, Tensor<half, 2> y) {
                   if (c.warps) num_warps(c.warps);
                   auto r = program_id(0);
                   auto n = x.dim(1);
                   Tile squares = zeros({c.BLOCK}, f32);
                   for (auto j : range(0, n, c.BLOCK)) {
                     auto v = cast(x.load({r, j}, {c.BLOCK}), f32) + cast(add.load({r, j}, {c.BLOCK}), f32);
                     kept.store({r, j}, cast(v, f16));
                     squares += v * v;
                   }
                   auto scale = rsqrt(sum(squares) / cast(n, f32) + 1e-6f);
                   for (auto j : range(0, n, c.BLOCK)) {
                     auto v = cast(x.load({r, j}, {c.BLOCK}), f32) + cast(add.load({r, j}, {c.BLOCK}), f32);
                     y.store({r, j}, cast(v * scale * cast(weight.load({j}, {c.BLOCK}), f32), f16));
                   }
                 }).grid([](const NormCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r1("tail_norm", [](Env& e) {
  const int R = e.big ? 4 : 3, N = e.big ? 16384 : 1111;
  auto x = random<half>(e, size_t(R) * N), a = random<half>(e, size_t(R) * N), w = random<half>(e, N, .5, 1.5),
       kept = constant<half>(e, size_t(R) * N, NAN), y = constant<half>(e, size_t(R) * N, NAN);
  NormCfg c{e.field("BLOCK", e.big ? 2048 : 256), e.field("warps", 0)};
  Job j;
  j.mbytes = 8e-6 * R * N;
  j.add(tail_norm, c, x.view(R, N), a.view(R, N), w.view(N), kept.view(R, N), y.view(R, N));
  j.check = [=]() -> std::string {
    std::vector<double> sums(size_t(R) * N), want(size_t(R) * N);
    for (int r = 0; r < R; ++r) {
      double squares = 0;
      for (int i = 0; i < N; ++i) {
        const double v = sums[size_t(r) * N + i] = x[size_t(r) * N + i] + a[size_t(r) * N + i];
        squares += v * v;
      }
      for (int i = 0; i < N; ++i)
        want[size_t(r) * N + i] = sums[size_t(r) * N + i] / std::sqrt(squares / N + 1e-6) * w[i];
    }
    const std::string wrong = agree(kept.now(), sums, 1e-3, 1e-3);
    return wrong.empty() ? agree(y.now(), want, 2e-3, 2e-3) : wrong;
  };
  return j;
});

// --- means of long bags: each program adds the rows that its bag's numbers name, one at a time
struct BagCfg {
  int ROWS = 8, warps = 0;
};
auto long_bags = kernel("user_long_bags", [](const BagCfg& c, Tensor<const half, 2> table, Ptr<const int> number,
                                             Ptr<const int> starts, Tensor<float, 2> y) {
                   if (c.warps) num_warps(c.warps);
                   auto b = program_id(0);
                   auto first = load(starts + b), end = load(starts + b + 1);
                   Tile acc = zeros({c.ROWS, 128}, f32);
                   for (auto i : range(first, end, c.ROWS)) {
                     auto at = i + arange(0, c.ROWS);
                     auto row = load(number + at, {.mask = at < end, .other = -1});
                     acc += cast(table.gather(row, 0, 128), f32);  // rows outside are 0
                   }
                   auto n = cast(max(end - first, 1), f32);
                   y.store({b, 0}, squeeze(sum(acc, axis(0)), 0) / n);
                 }).grid([](const BagCfg&, const auto&, auto, auto, const auto& y) { return Grid{y.shape[0]}; });
Register r2("long_bags", [](Env& e) {
  const int B = e.big ? 64 : 4, V = e.big ? 100000 : 50, L = e.big ? 4096 : 41;
  auto table = random<half>(e, size_t(V) * 128);
  auto starts = filled<int>(e, B + 1, [&](size_t i) { return e.big ? int(i) * L : int(i > 2 ? i - 1 : i) * L; });
  auto number = integers<int>(e, size_t(B) * L, 0, V);
  auto y = constant<float>(e, size_t(B) * 128, NAN);
  BagCfg c{e.field("ROWS", 8), e.field("warps", 0)};
  Job j;
  j.mbytes = 256e-6 * B * L;
  j.add(long_bags, c, table.view(V, 128), number.p, starts.p, y.view(B, 128));
  j.check = [=] {
    std::vector<double> want(size_t(B) * 128);
    for (int b = 0; b < B; ++b)
      for (int d = 0; d < 128; ++d) {
        double sum = 0;
        for (int i = starts.at(b); i < starts.at(b + 1); ++i) sum += table[size_t(number.at(i)) * 128 + d];
        want[size_t(b) * 128 + d] = sum / std::max(1, starts.at(b + 1) - starts.at(b));
      }
    return agree(y.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- the keys and values of a step's tokens into their places of a paged cache; -1: a token that has none
auto append = kernel("user_append", [](Tensor<const half, 3> k, Tensor<const half, 3> v, Ptr<const int> slot,
                                       Tensor<half, 3> keys, Tensor<half, 3> values) {
                // k, v [tokens, heads, 128]; keys, values [slots, heads, 128]
                auto t = program_id(0);
                auto s = load(slot + t);
                return_if(s < 0);
                for (auto h : range(0, k.dim(1), 4)) {
                  auto a = k.load({t, h, 0}, {4, 128}), b = v.load({t, h, 0}, {4, 128});
                  keys.store({s, h, 0}, a);
                  values.store({s, h, 0}, b);
                }
              }).grid([](const NoConfig&, const auto& k, const auto&...) { return Grid{k.shape[0]}; });
Register r3("cache_append", [](Env& e) {
  const int T = e.big ? 32 : 4, H = e.big ? 64 : 6, S = e.big ? 4096 : 16;
  auto k = random<half>(e, size_t(T) * H * 128), v = random<half>(e, size_t(T) * H * 128);
  auto slot = filled<int>(e, T, [&](size_t i) { return i == 3 ? -1 : int(i * 7 % S); });
  auto keys = constant<half>(e, size_t(S) * H * 128, 3), values = constant<half>(e, size_t(S) * H * 128, 4);
  Job j;
  j.add(append, {}, k.view(T, H, 128), v.view(T, H, 128), slot.p, keys.view(S, H, 128), values.view(S, H, 128));
  j.check = [=] {
    std::vector<double> want(size_t(S) * H * 128, 3), other(size_t(S) * H * 128, 4);
    for (int t = 0; t < T; ++t)
      for (int i = 0; i < H * 128 && slot.at(t) >= 0; ++i) {
        want[size_t(slot.at(t)) * H * 128 + i] = k[size_t(t) * H * 128 + i];
        other[size_t(slot.at(t)) * H * 128 + i] = v[size_t(t) * H * 128 + i];
      }
    const std::string wrong = agree(keys.now(), want, 1e-9, 0);
    return wrong.empty() ? agree(values.now(), other, 1e-9, 0) : wrong;
  };
  return j;
});

// --- vectors made orthogonal one after the other (modified Gram-Schmidt), all in one program, in place
struct OrthoCfg {
  int BLOCK = 4096, warps = 0;
};
auto ortho = kernel("user_ortho", [](const OrthoCfg& c, Tensor<float, 2> V, I32 n) {
               if (c.warps) num_warps(c.warps);
               auto m = V.dim(0);
               for (auto i : range(0, m)) {
                 for (auto k : range(0, i)) {
                   Tile dots = zeros({c.BLOCK}, f32);
                   for (auto j : range(0, n, c.BLOCK))
                     dots += V.load({i, j}, {c.BLOCK}) * V.load({k, j}, {c.BLOCK});
                   auto d = sum(dots);
                   for (auto j : range(0, n, c.BLOCK))
                     V.store({i, j}, V.load({i, j}, {c.BLOCK}) - d * V.load({k, j}, {c.BLOCK}));
                 }
                 Tile squares = zeros({c.BLOCK}, f32);
                 for (auto j : range(0, n, c.BLOCK)) {
                   auto v = V.load({i, j}, {c.BLOCK});
                   squares += v * v;
                 }
                 auto scale = 1.f / sqrt(sum(squares));
                 for (auto j : range(0, n, c.BLOCK)) V.store({i, j}, V.load({i, j}, {c.BLOCK}) * scale);
               }
             }).grid([](const OrthoCfg&, const auto&, int) { return Grid{1}; });
Register r4("ortho", [](Env& e) {
  const int M = e.big ? 8 : 4, N = e.big ? 65536 : 515;
  auto v = random<float>(e, size_t(M) * N);
  OrthoCfg c{e.field("BLOCK", e.big ? 4096 : 256), e.field("warps", 0)};
  Job j;
  restore(e, j, v);
  j.add(ortho, c, v.view(M, N), N);
  j.check = [=] {
    std::vector<double> want(size_t(M) * N);
    for (size_t i = 0; i < want.size(); ++i) want[i] = v[i];
    auto dot = [&](int a, int b) {
      double sum = 0;
      for (int i = 0; i < N; ++i) sum += want[size_t(a) * N + i] * want[size_t(b) * N + i];
      return sum;
    };
    for (int a = 0; a < M; ++a) {
      for (int b = 0; b < a; ++b) {
        const double d = dot(a, b);
        for (int i = 0; i < N; ++i) want[size_t(a) * N + i] -= d * want[size_t(b) * N + i];
      }
      const double length = std::sqrt(dot(a, a));
      for (int i = 0; i < N; ++i) want[size_t(a) * N + i] /= length;
    }
    return agree(v.now(), want, 1e-5, 1e-4);
  };
  return j;
});

// --- how often each byte comes in a row: a program counts its part of it, then adds to the row's counts
struct CountCfg {
  int BLOCK = 4096, warps = 0;
};
auto byte_counts = kernel("user_byte_counts", [](const CountCfg& c, Ptr<const uint8_t> x, Ptr<int> counts, I32 n,
                                                 I32 part) {
                     if (c.warps) num_warps(c.warps);
                     auto first = program_id(0) * part;
                     Tile mine = zeros({256}, i32);
                     for (auto i : range(first, min(first + part, n), c.BLOCK)) {
                       auto at = i + arange(0, c.BLOCK);
                       auto in = at < min(first + part, n);
                       mine += histogram(cast(load(x + at, {.mask = in}), i32), 256, {.mask = in});
                     }
                     atomic_add(counts + arange(0, 256), mine);
                   }).grid([](const CountCfg&, auto, auto, int n, int part) { return Grid{cdiv(n, part)}; });
Register r5("byte_counts", [](Env& e) {
  const int N = e.big ? 1 << 24 : 5003, part = e.big ? 1 << 18 : 2000;
  auto x = integers<uint8_t>(e, N, 0, 256);
  auto counts = constant<int>(e, 256, 0);
  CountCfg c{e.field("BLOCK", e.big ? 4096 : 512), e.field("warps", 0)};
  Job j;
  j.mbytes = 1e-6 * N;
  restore(e, j, counts);
  j.add(byte_counts, c, x.p, counts.p, N, part);
  j.check = [=]() -> std::string {
    std::vector<int> want(256);
    for (int i = 0; i < N; ++i) ++want[x.at(i)];
    return counts.now() == want ? "" : "counts";
  };
  return j;
});

// --- the best candidates of each beam of a request become the next beams
auto beam_best = kernel("user_beam_best", [](Tensor<const float, 3> logits, Tensor<const float, 2> score,
                                             Tensor<float, 2> next, Tensor<int, 2> token, Tensor<int, 2> parent) {
                   // logits [requests, beams = 4, candidates = 64] -> the best 4 of the 256 sums
                   auto r = program_id(0);
                   auto s = score.load({r, 0}, {4});
                   auto all = reshape(logits.load({r, 0, 0}, {4, 64}) + s.col(), {256});
                   auto [best, at] = topk(all, 4, axis(0));
                   next.store({r, 0}, best);
                   token.store({r, 0}, at % 64);
                   parent.store({r, 0}, at / 64);
                 }).grid([](const NoConfig&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r6("beam_best", [](Env& e) {
  const int R = e.big ? 64 : 7;
  auto x = random<float>(e, size_t(R) * 256, -9, 0), s = random<float>(e, size_t(R) * 4, -3, 0);
  auto next = constant<float>(e, size_t(R) * 4, NAN);
  auto token = constant<int>(e, size_t(R) * 4, -1), parent = constant<int>(e, size_t(R) * 4, -1);
  Job j;
  j.add(beam_best, {}, x.view(R, 4, 64), s.view(R, 4), next.view(R, 4), token.view(R, 4), parent.view(R, 4));
  j.check = [=]() -> std::string {
    const auto got = next.now();
    const auto tokens = token.now(), parents = parent.now();
    for (int r = 0; r < R; ++r) {
      std::vector<float> all;
      for (int i = 0; i < 256; ++i) all.push_back(x.at(size_t(r) * 256 + i) + s.at(size_t(r) * 4 + i / 64));
      std::vector<float> sorted = all;
      std::sort(sorted.rbegin(), sorted.rend());
      for (int k = 0; k < 4; ++k) {
        const int from = parents[r * 4 + k] * 64 + tokens[r * 4 + k];
        if (from < 0 || from > 255 || got[r * 4 + k] != sorted[k] || all[from] != sorted[k])
          return "request " + std::to_string(r);
      }
    }
    return "";
  };
  return j;
});

}  // namespace decode_steps
}  // namespace users
