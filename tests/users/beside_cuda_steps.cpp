// beside_cuda_steps.cpp - kernels of many dependent steps on few elements, beside CUDA with a warp for each: LU with
// pivoting of small matrices, local alignments along anti-diagonals.
#include <array>

#include "tests/users/use.h"

namespace users {
namespace beside_cuda_steps {

// --- LU with partial pivoting of many 32 x 32 matrices, in place of LAPACK's getrf; ipiv counts from 1
struct LuCfg {
  int B = 1, warps = 1;
};
auto lu32 = kernel("user_lu32", [](const LuCfg& c, Tensor<const float, 3> A, Tensor<float, 3> LU, Tensor<int, 2> ipiv) {
              if (c.warps) num_warps(c.warps);
              auto b = program_id(0) * c.B;
              Tile a = A.load({b, 0, 0}, {c.B, 32, 32});
              Tile piv = zeros({c.B, 32, 1}, i32);
              auto row = reshape(arange(0, 32), {1, 32, 1}), col = reshape(arange(0, 32), {1, 1, 32});
              for (auto k : range(32)) {
                auto x = sum(where(col == k, a, 0.f), axis(2));                    // column k
                auto p = argmax(where(row >= k, abs(x), -1.f), axis(1));           // [B, 1, 1]
                auto top = sum(where(row == p, a, 0.f), axis(1));                  // row p, the pivot's
                auto low = sum(where(row == k, a, 0.f), axis(1));                  // row k, which goes there
                auto pivot = sum(where(col == k, top, 0.f), axis(2));
                a = where(row == k, top, where(row == p, low, a));
                auto xs = where(row == p, sum(where(col == k, low, 0.f), axis(2)), x);
                auto l = xs / pivot;
                a = where(row > k, where(col == k, l, where(col > k, a - l * top, a)), a);
                piv = where(row == k, p + 1, piv);
              }
              LU.store({b, 0, 0}, a);
              ipiv.store({b, 0}, squeeze(piv, 2));
            }).grid([](const LuCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.B)}; });
Register r1("lu32", [](Env& e) {
  const int N = e.big ? 32768 : 7;
  auto a = random<float>(e, size_t(N) * 1024);
  auto lu = constant<float>(e, size_t(N) * 1024, NAN);
  auto ip = constant<int>(e, size_t(N) * 32, 0);
  Job j;
  j.mbytes = 8e-6 * 1024 * N;
  j.add(lu32, LuCfg{e.field("B", 1), e.field("warps", 1)}, a.view(N, 32, 32), lu.view(N, 32, 32), ip.view(N, 32));
  j.check = [=]() -> std::string {
    const auto f = lu.now();
    const auto p = ip.now();
    std::vector<double> want(size_t(N) * 1024), got(want.size());
    for (int n = 0; n < N; ++n) {
      double m[32][32];
      for (int i = 0; i < 1024; ++i) m[i / 32][i % 32] = a[size_t(n) * 1024 + i];
      for (int k = 0; k < 32; ++k) {
        int best = k;
        for (int i = k; i < 32; ++i)
          if (std::abs(m[i][k]) > std::abs(m[best][k])) best = i;
        const int mine = p[n * 32 + k] - 1;
        if (mine < k || mine > 31) return "a pivot outside";
        if (std::abs(m[mine][k]) < .999 * std::abs(m[best][k])) return "not the largest pivot";
        for (int j = 0; j < 32; ++j) std::swap(m[k][j], m[mine][j]);
        for (int i = k + 1; i < 32; ++i) {
          m[i][k] /= m[k][k];
          for (int j = k + 1; j < 32; ++j) m[i][j] -= m[i][k] * m[k][j];
        }
      }
      for (int i = 0; i < 1024; ++i) want[size_t(n) * 1024 + i] = m[i / 32][i % 32];
    }
    return agree(f, want, 2e-3, 2e-3);
  };
  return j;
});

// --- Smith-Waterman with affine gaps, many pairs, along anti-diagonals: row i of the query is element i of the tile
struct SwCfg {
  int BP = 4, L = 256;
};
constexpr int kMatch = 2, kMismatch = -3, kOpen = 5, kExtend = 2;
auto smith = kernel("user_smith", [](const SwCfg& c, Ptr<const uint8_t> query, Ptr<const uint8_t> target,
                                     Ptr<const int> qlen, Ptr<const int> tlen, Ptr<int> score, I32 pairs, I32 T) {
               auto pair = (program_id(0) * c.BP + arange(0, c.BP)).col();
               auto have = pair < pairs;
               auto m = load(qlen + pair, {.mask = have}), n = load(tlen + pair, {.mask = have});
               auto i = arange(0, c.L).row();
               auto q = load(query + pair * c.L + i, {.mask = i < m});
               auto above = broadcast_to(max(i - 1, 0), {c.BP, c.L});
               auto down = [&](const Tile& x, int edge) { return where(i == 0, edge, take(x, above, 1)); };
               Tile h = zeros({c.BP, c.L}, i32), diagonal = h, best = h;
               Tile E = full({c.BP, c.L}, -1000, i32), F = E;
               for (auto d : range(max(m + n) - 1)) {
                 auto j = d - i;
                 auto valid = (i < m) & (j >= 0) & (j < n);
                 auto t = load(target + pair * T + j, {.mask = valid});
                 auto e = max(E - kExtend, h - kOpen);
                 auto f = down(max(F - kExtend, h - kOpen), -kOpen);
                 auto s = max(max(diagonal + where(q == t, kMatch, kMismatch), 0), max(e, f));
                 diagonal = down(h, 0);
                 h = where(valid, s, 0), E = where(valid, e, -1000), F = where(valid, f, -1000);
                 best = max(best, h);
               }
               store(score + pair, max(best, axis(1)), {.mask = have});
             }).grid([](const SwCfg& c, auto, auto, auto, auto, auto, int pairs, int) {
  return Grid{cdiv(pairs, c.BP)};
});
// The same with eight rows of the query in each of 32 columns of a tile: a step is a column of eight cells, and only the
// last of them goes to the neighbour. Half as many steps.
auto smith_rows = kernel("user_smith_rows", [](const SwCfg& c, Ptr<const uint8_t> query, Ptr<const uint8_t> target,
                                               Ptr<const int> qlen, Ptr<const int> tlen, Ptr<int> score, I32 pairs,
                                               I32 T) {
                    constexpr int R = 8;
                    auto pair = (program_id(0) * c.BP + arange(0, c.BP)).col();
                    auto have = pair < pairs;
                    auto m = load(qlen + pair, {.mask = have}), n = load(tlen + pair, {.mask = have});
                    auto lane = arange(0, c.L / R).row();
                    std::array<Tile, R> q, h, E;
                    Tile zero = zeros({c.BP, c.L / R}, i32), diagonal = zero, best = zero, lastH = zero;
                    Tile lastF = full({c.BP, c.L / R}, -1000, i32);
                    for (int r = 0; r < R; ++r) {
                      auto i = lane * R + r;
                      q[r] = cast(load(query + pair * c.L + i, {.mask = i < m, .other = 255}), i32);
                      h[r] = zero, E[r] = lastF;
                    }
                    for (auto s : range(max(n + cdiv(m, R)) - 1)) {
                      auto j = s - lane;
                      auto valid = (j >= 0) & (j < n);
                      auto t = cast(load(target + pair * T + j, {.mask = valid}), i32);
                      auto up = shift(lastH, 1, axis(1), {.fill = 0});
                      auto f = shift(lastF, 1, axis(1), {.fill = -1000});
                      Tile d = diagonal;
                      for (int r = 0; r < R; ++r) {
                        auto e = max(E[r] - kExtend, h[r] - kOpen);
                        auto x = max(max(d + where(q[r] == t, kMatch, kMismatch), 0), max(e, f));
                        d = h[r];
                        f = max(f - kExtend, x - kOpen);
                        h[r] = where(valid, x, h[r]), E[r] = where(valid, e, E[r]);
                        best = max(best, where(lane * R + r < m, h[r], 0));
                      }
                      lastH = h[R - 1], lastF = where(valid, f, lastF);
                      diagonal = where(valid, up, diagonal);
                    }
                    store(score + pair, max(best, axis(1)), {.mask = have});
                  }).grid([](const SwCfg& c, auto, auto, auto, auto, auto, int pairs, int) {
  return Grid{cdiv(pairs, c.BP)};
});
template <class Kernel>
Job alignments(Env& e, const Kernel& kernel) {
  SwCfg c;
  c.BP = e.field("BP", 4), c.L = e.big ? 256 : 64;
  const int N = e.big ? 8192 : 13, L = c.L, T = e.big ? 256 : 80;
  auto base = [&] { return uint8_t(e.uniform() * 4); };
  auto q = drawn<uint8_t>(e, size_t(N) * L, base);
  std::vector<uint8_t> tv(std::min<size_t>(size_t(N) * T, 1 << 20));
  for (size_t i = 0; i < tv.size(); ++i)
    tv[i] = e.device && i % T < size_t(L) && e.uniform() < .8 ? q.at(i / T * L + i % T) : base();
  auto t = repeated<uint8_t>(e, size_t(N) * T, tv);
  auto m = integers<int>(e, N, L * 3 / 4, L + 1), n = integers<int>(e, N, T / 2, T + 1);
  auto out = constant<int>(e, N, -1);
  Job j;
  j.gflop = 10e-9 * N * L * T;
  j.add(kernel, c, q.p, t.p, m.p, n.p, out.p, N, T);
  j.check = [=] {
    std::vector<double> want(N);
    for (int p = 0; p < N; ++p) {
      std::vector<int> H(n.at(p) + 1), F(n.at(p) + 1, -1000);
      int best = 0;
      for (int i = 0; i < m.at(p); ++i) {
        int diag = 0, left = 0, E = -1000;
        for (int k = 1; k <= n.at(p); ++k) {
          E = std::max(E - kExtend, left - kOpen), F[k] = std::max(F[k] - kExtend, H[k] - kOpen);
          const int s = diag + (q.at(size_t(p) * L + i) == t.at(size_t(p) * T + k - 1) ? kMatch : kMismatch);
          diag = H[k];
          H[k] = left = std::max({0, s, E, F[k]});
          best = std::max(best, left);
        }
      }
      want[p] = best;
    }
    return agree(out.now(), want, .1, 0);
  };
  return j;
}
Register r2("affine_alignments", [](Env& e) { return alignments(e, smith); });
Register r3("affine_alignments_rows", [](Env& e) { return alignments(e, smith_rows); });

}  // namespace beside_cuda_steps
}  // namespace users
