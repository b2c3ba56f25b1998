// first_states.cpp - first versions of kernels whose loops hand something on: in memory that a program reads and writes
// in turn, or in tiles, for as many iterations as the data want.
#include "tests/users/use.h"
namespace users {
namespace first_states {

// --- LU with partial pivoting, in place: a program a matrix, which stays in memory
struct LuCfg {
  int N = 128, BR = 32;
};
auto lu_pivot = kernel("user_lu_pivot", [](const LuCfg& c, Ptr<float> a, Ptr<int32_t> pivots, I32 /*count*/) {
  auto b = program_id(0);
  auto A = a + cast(b, i64) * (c.N * c.N);
  auto i = arange(0, c.N);
  for (auto k : range(0, c.N)) {
    auto column = load(A + (i * c.N + k), {.mask = i >= k});
    auto p = to_scalar(argmax(abs(column), axis(0)));
    store(pivots + (b * c.N + k), p);
    auto mine = load(A + (k * c.N + i)), other = load(A + (p * c.N + i));
    store(A + (k * c.N + i), other);
    for (auto _ : when(p != k)) store(A + (p * c.N + i), mine);
    auto inverse = 1.f / load(A + (k * c.N + k));
    for (auto r : range(k + 1, c.N, c.BR)) {
      auto row = r + arange(0, c.BR);
      auto l = load(A + (row * c.N + k), {.mask = row < c.N}) * inverse;
      store(A + (row * c.N + k), l, {.mask = row < c.N});
      auto at = A + (row.col() * c.N + i.row());
      auto inside = (row.col() < c.N) & (i.row() > k);
      store(at, load(at, {.mask = inside}) - l.col() * other.row(), {.mask = inside});
    }
  }
}).grid([](const LuCfg&, auto, auto, int count) { return Grid{count}; });
Register r1("lu_pivot", [](Env& e) {
  LuCfg c;
  if (!e.big) c = {24, 8};
  c.BR = e.field("BR", c.BR);
  const int B = e.big ? 1056 : 3, N = c.N;
  auto a = random<float>(e, size_t(B) * N * N);
  auto pivots = constant<int32_t>(e, size_t(B) * N, -1);
  Job j;
  j.gflop = 2e-9 / 3 * B * N * double(N) * N;
  j.inTurn = true;
  j.add(lu_pivot, c, a.p, pivots.p, B);
  j.check = [=]() -> std::string {
    std::vector<double> want(a.n);
    const auto chosen = pivots.now();
    for (size_t x = 0; x < a.n; ++x) want[x] = a[x];
    for (int b = 0; b < B; ++b) {
      double* A = &want[size_t(b) * N * N];
      for (int k = 0; k < N; ++k) {
        int p = k;
        for (int r = k + 1; r < N; ++r)
          if (std::abs(A[r * N + k]) > std::abs(A[p * N + k])) p = r;
        if (chosen[b * N + k] != p) return "pivot " + std::to_string(k);
        for (int x = 0; x < N; ++x) std::swap(A[k * N + x], A[p * N + x]);
        for (int r = k + 1; r < N; ++r) {
          A[r * N + k] /= A[k * N + k];
          for (int x = k + 1; x < N; ++x) A[r * N + x] -= A[r * N + k] * A[k * N + x];
        }
      }
    }
    return agree(a.now(), want, 2e-4, 2e-4);
  };
  return j;
});

// --- quantization to 4 bits, column by column, errors spread over the columns to come (GPTQ): blocks of columns, then
// what they leave behind by a product; W changes in place
struct GptqCfg {
  int BM = 32, block = 128, group = 128;
};
auto gptq_solve = kernel("user_gptq_solve", [](const GptqCfg& c, Ptr<float> w, Ptr<const float> u, Ptr<uint8_t> q,
                                               Ptr<const float> scale, I32 M, I32 K) {
  // w [M, K], u [K, K] upper triangle of the inverse Hessian's factor, q [M, K], scale [M, K / group]
  auto W = make_view(w, {M, K}, {K, 1});
  auto U = make_view(u, {K, K}, {K, 1});
  auto Q = make_view(q, {M, K}, {K, 1});
  auto m = program_id(0) * c.BM;
  auto rows = m + arange(0, c.BM), columns = arange(0, c.block);
  for (auto first : range(0, K, c.block)) {
    Tile x = W.load({m, first}, {c.BM, c.block}), errors = zeros({c.BM, c.block}, f32);
    auto s = load(scale + (rows * (K / c.group) + first / c.group), {.mask = rows < M, .other = 1.f}).col();
    Tile codes = zeros({c.BM, c.block}, i32);
    for (auto i : range(0, c.block)) {
      auto here = columns.row() == i;
      auto value = sum(where(here, x, 0.f), axis(1));
      auto code = clamp(rint(value / s) + 8.f, 0.f, 15.f);
      auto row = load(u + (cast(first + i, i64) * cast(K, i64) + cast(first + columns, i64))).row();
      auto diagonal = load(u + cast(first + i, i64) * cast(K + 1, i64));
      auto error = (value - (code - 8.f) * s) / diagonal;
      x = where(columns.row() > i, x - error * row, x);
      errors = where(here, error, errors);
      codes = where(here, cast(code, i32), codes);
    }
    Q.store({m, first}, cast(codes, u8));
    for (auto later : range(first + c.block, K, c.block))
      W.store({m, later},
              W.load({m, later}, {c.BM, c.block}) - dot(errors, U.load({first, later}, {c.block, c.block})));
  }
}).grid([](const GptqCfg& c, auto, auto, auto, auto, int M, int) { return Grid{cdiv(M, c.BM)}; });
Register r2("gptq_solve", [](Env& e) {
  GptqCfg c;
  if (!e.big) c = {8, 16, 16};
  c.BM = e.field("BM", c.BM);
  const int M = e.big ? 4096 : 13, K = e.big ? 4096 : 64, groups = K / c.group;
  auto w = random<float>(e, size_t(M) * K);
  auto u = filled<float>(e, size_t(K) * K, [&](size_t i) {
    const size_t r = i / K, x = i % K;
    return float(r == x ? 1 + e.uniform() : r < x ? (e.uniform() - .5) * .2 : 0);
  });
  auto scale = constant<float>(e, size_t(M) * groups, .125);
  auto q = constant<uint8_t>(e, size_t(M) * K, 99);
  Job j;
  j.gflop = 1e-9 * M * double(K) * K;
  j.inTurn = true;
  j.add(gptq_solve, c, w.p, u.p, q.p, scale.p, M, K);
  j.check = [=]() -> std::string {
    // Near a tie the code is a matter of the last bit: codes are followed, errors must not pass half a step (and a
    // little), where nothing was cut off.
    const auto got = q.now();
    for (int m = 0; m < M; ++m) {
      std::vector<double> x(K);
      for (int k = 0; k < K; ++k) x[k] = w[size_t(m) * K + k];
      for (int k = 0; k < K; ++k) {
        const double s = scale[m * groups + k / c.group], code = got[size_t(m) * K + k];
        const double want = std::clamp(x[k] / s + 8, 0., 15.);
        if (!(std::abs(code - want) < .501)) return "code " + std::to_string(k) + " of row " + std::to_string(m);
        const double error = (x[k] - (code - 8) * s) / u[size_t(k) * K + k];
        for (int n = k + 1; n < K; ++n) x[n] -= error * u[size_t(k) * K + n];
      }
    }
    return "";
  };
  return j;
});

// --- the assignment problem by auction (Bertsekas): a program a problem, rounds of bids until everybody has something
struct AuctionCfg {
  int N = 64, warps = 0;  // 0: the compiler's choice
};
auto auction = kernel("user_auction", [](const AuctionCfg& c, Ptr<const int32_t> gain, Ptr<int32_t> chosen,
                                         Ptr<int32_t> rounds, I32 /*problems*/) {
  // gain [problems, N, N] of persons and objects, multiples of N + 1; chosen [problems, N]
  if (c.warps) num_warps(c.warps);
  auto b = program_id(0);
  auto i = arange(0, c.N);
  auto g = load(gain + (b * (c.N * c.N) + i.col() * c.N + i.row()));
  Tile price = zeros({1, c.N}, i32), owner = full({1, c.N}, -1, i32), mine = full({c.N, 1}, -1, i32);
  Tile n = full({}, 0, i32);
  while_([&] { return any(mine < 0); },
         [&] {
           auto worth = g - price;
           auto [best, at] = max_with_index(worth, axis(1));
           auto second = max(where(i.row() == at, -1000000000, worth), axis(1));
           auto bids = where((i.row() == at) & (mine < 0), price + (best - second) + 1, -1);
           auto [top, who] = max_with_index(bids, axis(0));
           owner = where(top >= 0, cast(who, i32), owner);
           price = where(top >= 0, top, price);
           mine = max(where(owner == i.col(), i.row(), -1), axis(1));
           n += 1;
         });
  store(chosen + (b * c.N + i), squeeze(mine, 1));
  store(rounds + b, n);
}).grid([](const AuctionCfg&, auto, auto, auto, int problems) { return Grid{problems}; });
Register r3("auction", [](Env& e) {
  AuctionCfg c;
  if (!e.big) c.N = 12;
  c.N = e.field("N", c.N), c.warps = e.field("warps", 0);
  const int P = e.big ? 4096 : 4, N = c.N;
  auto gain = drawn<int32_t>(e, size_t(P) * N * N, [&] { return int(e.uniform() * 100) * (N + 1); });
  auto chosen = constant<int32_t>(e, size_t(P) * N, -1), rounds = constant<int32_t>(e, P, 0);
  Job j;
  j.mbytes = 4e-6 * gain.n;
  j.add(auction, c, gain.p, chosen.p, rounds.p, P);
  j.check = [=]() -> std::string {
    const auto got = chosen.now();
    for (int p = 0; p < P; ++p) {
      auto cost = [&](int r, int x) { return -double(gain.at((size_t(p) * N + r) * N + x)); };
      // Shortest augmenting paths with potentials (Jonker and Volgenant).
      std::vector<double> u(N + 1), v(N + 1);
      std::vector<int> match(N + 1), way(N + 1);
      for (int r = 1; r <= N; ++r) {
        std::vector<double> least(N + 1, 1e18);
        std::vector<bool> used(N + 1);
        int x0 = 0;
        match[0] = r;
        do {
          used[x0] = true;
          int next = 0;
          double delta = 1e18;
          for (int x = 1; x <= N; ++x) {
            if (used[x]) continue;
            const double now = cost(match[x0] - 1, x - 1) - u[match[x0]] - v[x];
            if (now < least[x]) least[x] = now, way[x] = x0;
            if (least[x] < delta) delta = least[x], next = x;
          }
          for (int x = 0; x <= N; ++x)
            if (used[x])
              u[match[x]] += delta, v[x] -= delta;
            else
              least[x] -= delta;
          x0 = next;
        } while (match[x0]);
        for (; x0; x0 = way[x0]) match[x0] = match[way[x0]];
      }
      double best = 0, total = 0;
      std::vector<int> taken(N);
      for (int x = 1; x <= N; ++x) best -= cost(match[x] - 1, x - 1);
      for (int r = 0; r < N; ++r) {
        const int x = got[p * N + r];
        if (x < 0 || x >= N || taken[x]++) return "problem " + std::to_string(p) + ": no assignment";
        total -= cost(r, x);
      }
      if (total != best) return "problem " + std::to_string(p) + ": not the best";
    }
    return "";
  };
  return j;
});

// --- monotonic alignment of text and frames (Glow-TTS): best sums by rows in place of the scores, then the path back
struct AlignmentCfg {
  int B = 256, warps = 0;  // 0: the compiler's choice
};
auto alignment = kernel("user_alignment", [](const AlignmentCfg& c, Ptr<float> value, Ptr<int32_t> path,
                                             Ptr<const int32_t> texts, Ptr<const int32_t> frames, I32 T, I32 F) {
  // value [batch, F, T], path [batch, F]: the text position of a frame
  if (c.warps) num_warps(c.warps);
  auto b = program_id(0);
  auto V = value + cast(b, i64) * cast(F, i64) * cast(T, i64);
  auto text = load(texts + b), count = load(frames + b);
  auto x = arange(0, c.B);
  store(V + x, -1e9f, {.mask = (x > 0) & (x < text)});
  for (auto y : range(1, count)) {
    auto above = V + ((y - 1) * T + x);
    auto stay = load(above, {.mask = x < text, .other = -1e9f});
    auto step = load(above - 1, {.mask = (x > 0) & (x < text), .other = -1e9f});
    auto here = V + (y * T + x);
    store(here, max(stay, step) + load(here, {.mask = x < text}), {.mask = x < text});
  }
  Tile at = text - 1;
  for (auto back : range(0, count)) {
    auto y = count - 1 - back;
    store(path + (b * F + y), at);
    for (auto _ : when((y > 0) & (at > 0))) {
      auto stay = load(V + ((y - 1) * T + at)), step = load(V + ((y - 1) * T + at - 1));
      at = where((at == y) | (step > stay), at - 1, at);
    }
  }
}).grid([](const AlignmentCfg&, auto, auto, auto, auto, int, int) { return Grid{64}; });
Register r4("alignment", [](Env& e) {
  AlignmentCfg c;
  if (!e.big) c.B = 32;
  c.warps = e.field("warps", 0);
  const int B = 64, T = e.big ? 200 : 23, F = e.big ? 1000 : 41;
  auto value = random<float>(e, size_t(B) * F * T, -3, 0);
  auto path = constant<int32_t>(e, size_t(B) * F, -1);
  auto texts = integers<int32_t>(e, B, T / 2, T + 1), frames = integers<int32_t>(e, B, T + 3, F + 1);
  Job j;
  j.mbytes = 8e-6 * value.n;
  j.inTurn = true;
  j.add(alignment, c, value.p, path.p, texts.p, frames.p, T, F);
  j.check = [=]() -> std::string {
    const auto got = path.now();
    for (int b = 0; b < B; ++b) {
      const int t = texts.at(b), f = frames.at(b);
      std::vector<float> v(size_t(f) * t);  // as the kernel adds: ties and roundings decide
      for (int y = 0; y < f; ++y)
        for (int x = 0; x < t; ++x) {
          const float mine = value.at((size_t(b) * F + y) * T + x);
          const float stay = y ? v[(y - 1) * t + x] : x ? -1e9f : 0, step = y && x ? v[(y - 1) * t + x - 1] : -1e9f;
          v[y * t + x] = y ? std::max(stay, step) + mine : x ? -1e9f : mine;
        }
      int at = t - 1;
      for (int y = f - 1; y >= 0; --y) {
        if (got[b * F + y] != at) return "frame " + std::to_string(y) + " of " + std::to_string(b);
        if (y && at && (at == y || v[(y - 1) * t + at - 1] > v[(y - 1) * t + at])) --at;
      }
    }
    return "";
  };
  return j;
});

// --- a chain of labels (CRF): forward sums kept in memory, marginals on the way back, both in logarithms
struct CrfCfg {
  int N = 32, warps = 0;  // 0: the compiler's choice
};
auto crf = kernel("user_crf", [](const CrfCfg& c, Ptr<const float> emit, Ptr<const float> trans_, Ptr<float> alpha,
                                 Ptr<float> marginal, Ptr<float> norm, Ptr<const int32_t> lengths, I32 T) {
  // emit, alpha, marginal [batch, T, N], trans [from, to]
  if (c.warps) num_warps(c.warps);
  auto b = program_id(0), length = load(lengths + b);
  auto n = arange(0, c.N);
  auto A = load(trans_ + (n.col() * c.N + n.row()));
  auto E = emit + b * T * c.N, F = alpha + b * T * c.N, M = marginal + b * T * c.N;
  auto lse = [](const Tile& x, axis along) {
    auto top = max(x, along);
    return top + log(sum(exp(x - top), along));
  };
  Tile a = load(E + n);
  store(F + n, a);
  for (auto t : range(1, length)) {
    a = squeeze(lse(a.col() + A, axis(0)), 0) + load(E + (t * c.N + n));
    store(F + (t * c.N + n), a);
  }
  auto z = max(a) + log(sum(exp(a - max(a))));
  store(norm + b, z);
  Tile back = zeros({c.N}, f32);
  for (auto i : range(0, length)) {
    auto t = length - 1 - i;
    store(M + (t * c.N + n), exp(load(F + (t * c.N + n)) + back - z));
    back = squeeze(lse(A + (back + load(E + (t * c.N + n))).row(), axis(1)), 1);
  }
}).grid([](const CrfCfg&, auto...) { return Grid{512}; });
Register r5("crf", [](Env& e) {
  CrfCfg c;
  if (!e.big) c.N = 12;
  c.N = e.field("N", c.N), c.warps = e.field("warps", 0);
  const int B = 512, T = e.big ? 256 : 7, N = c.N;
  auto emit = random<float>(e, size_t(B) * T * N, -2, 2), trans_ = random<float>(e, N * N, -2, 2);
  auto alpha = constant<float>(e, emit.n, NAN), marginal = constant<float>(e, emit.n, -1),
       norm = constant<float>(e, B, NAN);
  auto lengths = integers<int32_t>(e, B, T / 2, T + 1);
  Job j;
  j.mbytes = 16e-6 * emit.n;
  j.add(crf, c, emit.p, trans_.p, alpha.p, marginal.p, norm.p, lengths.p, T);
  j.check = [=]() -> std::string {
    std::vector<double> want(emit.n, -1), norms(B);
    for (int b = 0; b < B; ++b) {
      const int L = lengths.at(b);
      auto E = [&](int t, int n) { return std::exp(emit[(size_t(b) * T + t) * N + n]); };
      std::vector<double> f(L * N), r(L * N, 1);
      for (int t = 0; t < L; ++t)
        for (int n = 0; n < N; ++n) {
          double s = t == 0;
          for (int m = 0; m < N && t; ++m) s += f[(t - 1) * N + m] * std::exp(trans_[m * N + n]);
          f[t * N + n] = s * E(t, n);
        }
      for (int t = L - 2; t >= 0; --t)
        for (int n = 0; n < N; ++n) {
          double s = 0;
          for (int m = 0; m < N; ++m) s += std::exp(trans_[n * N + m]) * E(t + 1, m) * r[(t + 1) * N + m];
          r[t * N + n] = s;
        }
      double z = 0;
      for (int n = 0; n < N; ++n) z += f[(L - 1) * N + n];
      norms[b] = std::log(z);
      for (int t = 0; t < L; ++t)
        for (int n = 0; n < N; ++n) want[(size_t(b) * T + t) * N + n] = f[t * N + n] * r[t * N + n] / z;
    }
    if (auto wrong = agree(norm.now(), norms, 1e-4, 1e-4); !wrong.empty()) return "norm: " + wrong;
    return agree(marginal.now(), want, 1e-4, 1e-3);
  };
  return j;
});

}  // namespace first_states
}  // namespace users
