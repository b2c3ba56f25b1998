// mixed_loops.cpp - loops in loops that carry tiles of several shapes, pointers and conditions: equilibria, chains of
// adapters, the k largest scores by bisection, reachable sets, beams that merge, matrices of low rank with spikes.
#include "tests/users/use.h"
namespace users {
namespace mixed_loops {

// --- a recurrent layer at its fixed point: every step iterates z = tanh(W z + U x + b) until no row moves
struct FixedCfg {
  int BM = 16, D = 40, warps = 1;
};
auto equilibrium =
    kernel("user_equilibrium", [](const FixedCfg& c, Tensor<const float, 3> X, Tensor<const float, 2> U,
                                  Tensor<const float, 2> W, Ptr<const float> bias, Tensor<float, 3> Z, Ptr<int> total,
                                  F32 near) {
      // X, Z [T, B, D], U, W [D, D]
      num_warps(c.warps);
      auto b = program_id(0) * c.BM;
      auto u = U.load({0, 0}, {c.D, c.D}), w = W.load({0, 0}, {c.D, c.D});
      auto shift = load(bias + arange(0, c.D)).row();
      Tile z = zeros({c.BM, c.D}, f32), n = zeros({}, i32);
      for (auto t : range(0, X.dim(0), 1, {.stages = 1})) {
        auto drive = dot(X.load({t, b, 0}, {c.BM, c.D}), u) + shift;
        Tile moved = full({c.BM, 1}, INFINITY, f32), steps = zeros({}, i32);
        while_([&] { return any(moved > near) & (steps < 50); },
               [&] {
                 auto next = tanh(dot(z, w, drive));
                 moved = max(abs(next - z), axis(1));
                 z = where(moved > near, next, z);
                 steps += 1;
               });
        n += steps;
        Z.store({t, b, 0}, z);
      }
      store(total + program_id(0), n);
    }).grid([](const FixedCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[1], c.BM)}; });
Register r1("equilibrium", [](Env& e) {
  const int T = e.big ? 64 : 5, B = e.big ? 4096 : 37, D = 40;
  auto x = random<float>(e, size_t(T) * B * D), u = random<float>(e, D * D, -.5, .5),
       w = random<float>(e, D * D, -.1, .1), b = random<float>(e, D);
  auto z = constant<float>(e, size_t(T) * B * D, NAN);
  auto n = constant<int>(e, cdiv(B, 16), -1);
  Job j;
  j.gflop = 2e-9 * T * B * D * D * 12.;
  j.add(equilibrium, FixedCfg{16, D, e.field("warps", 1)}, x.view(T, B, D), u.view(D, D), w.view(D, D), b.p,
        z.view(T, B, D), n.p, 1e-5f);
  j.check = [=]() -> std::string {
    std::vector<double> want;
    std::vector<double> at(size_t(B) * D);
    for (int t = 0; t < T; ++t)
      for (int r = 0; r < B; ++r) {
        std::vector<double> y(&at[r * D], &at[r * D] + D), next(D);
        for (int s = 0; s < 60; ++s) {
          for (int k = 0; k < D; ++k) {
            double sum = b[k];
            for (int d = 0; d < D; ++d) sum += x[(size_t(t) * B + r) * D + d] * u[d * D + k] + y[d] * w[d * D + k];
            next[k] = std::tanh(sum);
          }
          y = next;
        }
        std::copy(y.begin(), y.end(), &at[r * D]);
        want.insert(want.end(), y.begin(), y.end());
      }
    for (int s : n.now())
      if (s < 3 * T || s >= 50 * T) return "took " + std::to_string(s) + " steps";
    return agree(z.now(), want, 5e-5, 0);
  };
  return j;
});

// --- y = sum over a list of adapters of x A_i B_i: the list ends with -1, pointers walk along both factors
struct ChainCfg {
  int BM = 96, BN = 192, BK = 40, R = 16, stages = 5, warps = 16;
};
auto adapter_list =
    kernel("user_adapter_list", [](const ChainCfg& c, Ptr<const half> X, Ptr<const half> A, Ptr<const half> B,
                                   Ptr<const int> list, Ptr<half> Y, I32 M, I32 N, I32 K) {
      // X [M, K], A [adapters, K, R], B [adapters, R, N], Y [M, N]; list of the block of BM rows
      num_warps(c.warps);
      auto m = program_id(0) * c.BM + arange(0, c.BM), n = program_id(1) * c.BN + arange(0, c.BN), r = arange(0, c.R);
      auto kk = arange(0, c.BK);
      Tile acc = zeros({c.BM, c.BN}, f32);
      Tile entry = list + program_id(0) * 4;
      Tile id = load(entry);
      while_([&] { return id >= 0; },
             [&] {
               Tile h = zeros({c.BM, c.R}, f32);
               Tile xp = X + (cast(m, i64).col() * cast(K, i64) + cast(kk, i64).row());
               Tile ap = A + (cast(id, i64) * (K * c.R) + cast(kk.col() * c.R + r.row(), i64));
               for (auto k : range(0, K, c.BK, {.stages = c.stages})) {
                 auto left = K - k;
                 auto x = load(xp, {.mask = (m < M).col() & (kk < left).row()});
                 h = dot(x, load(ap, {.mask = (kk < left).col()}), h);
                 xp += c.BK, ap += c.BK * c.R;
               }
               auto b =
                   load(B + (cast(id, i64) * (N * c.R) + cast(r.col() * N + n.row(), i64)), {.mask = (n < N).row()});
               acc = dot(cast(h, f16), b, acc);
               entry += 1;
               id = load(entry);
             });
      store(Y + (cast(m, i64).col() * cast(N, i64) + cast(n, i64).row()), cast(acc, f16),
            {.mask = (m < M).col() & (n < N).row()});
    }).grid([](const ChainCfg& c, const half*, const half*, const half*, const int*, half*, int M, int N, int) {
      return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
    });
Register r2("adapter_list", [](Env& e) {
  const int M = e.big ? 8192 : 250, N = e.big ? 4096 : 200, K = e.big ? 4096 : 104, R = 16, many = 6;
  auto x = random<half>(e, size_t(M) * K), a = random<half>(e, size_t(many) * K * R, -.3, .3),
       b = random<half>(e, size_t(many) * R * N, -.3, .3);
  auto list = filled<int>(e, 4 * cdiv(M, 96),
                          [&](size_t i) { return i % 4 >= (i / 4) % 4 ? -1 : int((i * 5 + i / 4) % many); });
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 3e-9 * M * R * (double(K) + N);
  j.add(adapter_list, ChainCfg{96, 192, e.field("BK", 40), R, e.field("stages", 5), e.field("warps", 16)}, x.p, a.p,
        b.p, list.p, y.p, M, N, K);
  j.check = [=] {
    std::vector<double> want(size_t(M) * N);
    for (int m = 0; m < M; ++m)
      for (int i = m / 96 * 4; list.h[i] >= 0; ++i)
        for (int r = 0; r < R; ++r) {
          double h = 0;
          for (int k = 0; k < K; ++k) h += x[m * K + k] * a[(list.h[i] * K + k) * R + r];
          for (int n = 0; n < N; ++n) want[m * N + n] += in_half(h) * b[(list.h[i] * R + r) * N + n];
        }
    return agree(y.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- attention to the k largest scores of a row: the threshold by bisection of the scores' range, in the program
struct KthCfg {
  int BM = 32, N = 192, D = 72, warps = 8;
};
auto kth_attention = kernel("user_kth_attention", [](const KthCfg& c, Tensor<const bfloat16, 3> Q,
                                                     Tensor<const bfloat16, 3> K, Tensor<const bfloat16, 3> V,
                                                     Tensor<bfloat16, 3> O, Tensor<int, 2> used, I32 keep, F32 scale) {
                       // Q, O [H, S, D], K, V [H, n <= N, D]
                       num_warps(c.warps);
                       auto h = program_id(1), m0 = program_id(0) * c.BM;
                       auto s = dot(Q.load({h, m0, 0}, {c.BM, c.D}), trans(K.load({h, 0, 0}, {c.N, c.D}))) * scale;
                       auto in = arange(0, c.N).row() < K.dim(1);
                       Tile low = min(where(in, s, INFINITY), axis(1)), high = max(where(in, s, -INFINITY), axis(1));
                       s = where(in, s, -INFINITY);
                       auto top = high;
                       Tile round = zeros({}, i32), count = sum(cast(s >= low, i32), axis(1));
                       while_([&] { return any(count > keep) & (round < 24); },  // at least `keep` are at or above low
                              [&] {
                                auto middle = 0.5f * (low + high);
                                auto n = sum(cast(s >= middle, i32), axis(1));
                                auto enough = n >= keep;
                                low = where(enough, middle, low);
                                high = where(enough, high, middle);
                                count = where(enough, n, count);
                                round += 1;
                              });
                       auto p = where(s >= low, exp(s - top), 0.f);
                       auto o = dot(cast(p, bf16), V.load({h, 0, 0}, {c.N, c.D})) / sum(p, axis(1));
                       O.store({h, m0, 0}, expand_dims(cast(o, bf16), 0));
                       used.store({h, m0}, reshape(count, {1, c.BM}));
                     }).grid([](const KthCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
});
Register r3("kth_attention", [](Env& e) {
  const int H = e.big ? 64 : 2, S = e.big ? 4096 : 45, N = e.big ? 192 : 181, D = 72, keep = 17;
  auto q = random<bfloat16>(e, size_t(H) * S * D, -2, 2), k = random<bfloat16>(e, size_t(H) * N * D, -2, 2),
       v = random<bfloat16>(e, size_t(H) * N * D);
  auto o = constant<bfloat16>(e, size_t(H) * S * D, NAN);
  auto used = constant<int>(e, H * S, -1);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * H * double(S) * N * D;
  j.add(kth_attention, KthCfg{32, 192, D, e.field("warps", 8)}, q.view(H, S, D), k.view(H, N, D), v.view(H, N, D),
        o.view(H, S, D), used.view(H, S), keep, scale);
  j.check = [=] {
    std::vector<double> want(size_t(H) * S * D);
    for (int h = 0; h < H; ++h)
      for (int i = 0; i < S; ++i) {
        const size_t r = (size_t(h) * S + i) * D;
        std::vector<double> s(N);
        for (int n = 0; n < N; ++n)
          for (int d = 0; d < D; ++d) s[n] += q[r + d] * k[(size_t(h) * N + n) * D + d] * scale;
        auto sorted = s;
        std::sort(sorted.rbegin(), sorted.rend());
        double total = 0;
        for (int n = 0; n < N; ++n)
          if (s[n] >= sorted[keep - 1]) {
            const double p = std::exp(s[n] - sorted[0]);
            total += p;
            for (int d = 0; d < D; ++d) want[r + d] += p * v[(size_t(h) * N + n) * D + d];
          }
        for (int d = 0; d < D; ++d) want[r + d] /= total;
      }
    const auto bad = agree(o.now(), want, 1e-2, 1e-2);
    return bad.empty() ? agree(used.now(), std::vector<double>(H * S, keep), .5, 0) : bad;
  };
  return j;
});

// --- which places of a small graph reach which: bool matrices squared until nothing is added; and how far it went
struct ReachCfg {
  int N = 72, warps = 4;
};
auto reachable =
    kernel("user_reachable", [](const ReachCfg& c, Tensor<const bool, 3> edge, Tensor<bool, 3> reach, Ptr<int> rounds) {
      num_warps(c.warps);
      auto b = program_id(0), i = arange(0, c.N);
      Tile r = edge.load({b, 0, 0}, {c.N, c.N}) | (i.col() == i.row());
      Tile grew = zeros({}, i32) == 0, n = zeros({}, i32);
      while_([&] { return grew; },
             [&] {
               auto x = cast(r, i8);
               auto next = dot(x, x) > 0;
               grew = any(next != r);
               r = next;
               n += 1;
             });
      reach.store({b, 0, 0}, expand_dims(r, 0));
      store(rounds + b, n);
    }).grid([](const ReachCfg&, const auto& e, const auto&...) { return Grid{e.shape[0]}; });
Register r4("reachable", [](Env& e) {
  const int B = e.big ? 8192 : 4, N = 72;
  // graph b: a line of N / (b + 1) places, then single ones
  auto edge = filled<uint8_t>(e, size_t(B) * N * N, [&](size_t i) {
    const int b = int(i / N / N), from = int(i / N) % N, to = int(i % N);
    return to == (from * 5 + 1) % (N / (b % 4 + 1)) && from < N / (b % 4 + 1) && from % 7 != 3;
  });
  auto reach = constant<uint8_t>(e, size_t(B) * N * N, 9);
  auto n = constant<int>(e, B, -1);
  Job j;
  j.mbytes = 2e-6 * B * N * N;
  auto bools = [&](auto* p) {
    return TensorView<std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(p)>>, const bool, bool>, 3>(
        reinterpret_cast<std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(p)>>, const bool, bool>*>(p),
        {B, N, N});
  };
  j.add(reachable, ReachCfg{N, e.field("warps", 4)}, bools(static_cast<const uint8_t*>(edge.p)), bools(reach.p), n.p);
  j.check = [=] {
    std::vector<double> want(size_t(B) * N * N), rounds(B);
    for (int b = 0; b < B; ++b) {
      int farthest = 0;
      for (int s = 0; s < N; ++s) {
        std::vector<int> far(N, -1), queue{s};
        far[s] = 0;
        for (size_t at = 0; at < queue.size(); ++at)
          for (int t = 0; t < N; ++t)
            if (edge.h[(size_t(b) * N + queue[at]) * N + t] && far[t] < 0)
              far[t] = far[queue[at]] + 1, queue.push_back(t);
        for (int t = 0; t < N; ++t)
          if (far[t] >= 0) want[(size_t(b) * N + s) * N + t] = 1, farthest = std::max(farthest, far[t]);
      }
      rounds[b] = 1;
      for (int d = 1; d < farthest; d *= 2) ++rounds[b];
    }
    const auto bad = agree(reach.now(), want, .1, 0);
    return bad.empty() ? agree(n.now(), rounds, .5, 0) : bad;
  };
  return j;
});

// --- beams of a sequence merged where they end in the same state (hash): the best stays and takes the others' mass;
// ties by place, payloads of i64 and bool; 96 candidates
struct MergeCfg {
  int N = 96, KEEP = 12, warps = 4;
};
auto beam_merge = kernel("user_beam_merge", [](const MergeCfg& c, Tensor<const double, 2> score,
                                               Tensor<const int64_t, 2> hash, Tensor<const bool, 2> ended,
                                               Tensor<double, 2> best, Tensor<int64_t, 2> kept, Tensor<bool, 2> end) {
                    num_warps(c.warps);
                    auto b = program_id(0);
                    auto s = score.load({b, 0}, {c.N}, {.pad = -INFINITY});
                    auto g = hash.load({b, 0}, {c.N}, {.pad = -1});
                    auto f = ended.load({b, 0}, {c.N});
                    auto same = g.col() == g.row();
                    auto most = squeeze(max(where(same, s.row(), -INFINITY), axis(1)), 1);
                    auto mass = squeeze(sum(where(same, exp(s.row() - most.col()), zeros({1, 1}, f64)), axis(1)), 1);
                    auto i = arange(0, c.N);
                    // the first of those with the largest score of their hash
                    auto leader = squeeze(min(where(same & (s.row() == most.col()), i.row(), c.N), axis(1)), 1);
                    auto merged = where(leader == i, most + log(mass), -INFINITY);
                    auto order = argsort(merged, axis(0), {.descending = true});
                    auto first = [&](const Tile& x) { return extract(take(x, order, 0), {0}, {c.KEEP}).row(); };
                    best.store({b, 0}, first(merged));
                    kept.store({b, 0}, first(g));
                    end.store({b, 0}, first(f));
                  }).grid([](const MergeCfg&, const auto& s, const auto&...) { return Grid{s.shape[0]}; });
Register r5("beam_merge", [](Env& e) {
  const int B = e.big ? 4096 : 6, N = e.big ? 96 : 44, K = 12;
  auto s = drawn<double>(e, size_t(B) * N, [&] { return -std::floor(e.uniform() * 30) / 4; });
  auto g = drawn<int64_t>(e, size_t(B) * N, [&] { return int64_t(e.uniform() * 20) * 0x100000001; });
  auto f = integers<uint8_t>(e, size_t(B) * N, 0, 2);
  auto best = constant<double>(e, B * K, NAN);
  auto kept = constant<int64_t>(e, B * K, -9);
  auto end = constant<uint8_t>(e, B * K, 9);
  Job j;
  j.mbytes = 17e-6 * B * N;
  j.add(beam_merge, MergeCfg{e.big ? 96 : 48, K, e.field("warps", e.big ? 8 : 4)}, s.view(B, N), g.view(B, N),
        TensorView<const bool, 2>(reinterpret_cast<const bool*>(f.p), {B, N}), best.view(B, K), kept.view(B, K),
        TensorView<bool, 2>(reinterpret_cast<bool*>(end.p), {B, K}));
  j.check = [=] {
    std::vector<double> wb, wk, we;
    for (int b = 0; b < B; ++b) {
      std::vector<std::pair<double, int>> all;
      for (int i = 0; i < N; ++i) {
        double mass = 0;
        bool leads = true;
        for (int t = 0; t < N; ++t)
          if (g.h[b * N + t] == g.h[b * N + i]) {
            mass += std::exp(s.h[b * N + t]);
            leads &= s.h[b * N + t] < s.h[b * N + i] || (s.h[b * N + t] == s.h[b * N + i] && t >= i);
          }
        if (leads) all.push_back({-std::log(mass), i});
      }
      std::stable_sort(all.begin(), all.end(), [](auto x, auto y) { return x.first < y.first - 1e-12; });
      for (int i = 0; i < K; ++i) {
        wb.push_back(-all[i].first);
        wk.push_back(double(g.h[b * N + all[i].second])), we.push_back(f.h[b * N + all[i].second]);
      }
    }
    auto bad = agree(best.now(), wb, 1e-12, 0);
    if (bad.empty()) bad = agree(kept.now(), wk, .5, 0);
    return bad.empty() ? agree(end.now(), we, .5, 0) : bad;
  };
  return j;
});
}  // namespace mixed_loops
}  // namespace users
