// loops_of_products.cpp - products in loops of unusual shapes.
#include "tests/users/use.h"
namespace users {
namespace loops_of_products {

struct HoCfg {
  int BM = 64, BN = 64, BK = 32, stages = 3, warps = 4, how = 0;
};
HoCfg ho(Env& e, int how) {
  HoCfg c = e.big ? HoCfg{128, 128, 64, 3, 8} : HoCfg{64, 32, 32, 3, 4};
  return {e.field("BM", c.BM),         e.field("BN", c.BN),       e.field("BK", c.BK),
          e.field("stages", c.stages), e.field("warps", c.warps), how};
}

// all of y = a b' with a [M, K], b [N, K] or [K, N], and what the variant does
auto odd_mm =
    kernel("user_odd_mm", [](const HoCfg& c, Tensor<const half, 2> A, Tensor<const half, 2> B, Ptr<const int32_t> aux,
                             Tensor<float, 2> Y) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      auto K = A.dim(1), M = A.dim(0), N = B.dim(1);
      auto rm = m + arange(0, c.BM), rn = n + arange(0, c.BN), rk = arange(0, c.BK);
      Tile acc = zeros({c.BM, c.BN}, f32);
      const auto st = c.stages;
      if (c.how == 0)  // pads that count
        for (auto k : range(0, K, c.BK, {.stages = st}))
          acc = dot(A.load({m, k}, {c.BM, c.BK}, {.pad = 1.5}), B.load({k, n}, {c.BK, c.BN}, {.pad = 2}), acc);
      if (c.how == 1)  // through pointers, other than zero
        for (auto k : range(0, K, c.BK, {.stages = st})) {
          auto a = load(A.ptr() + (rm.col() * K + (k + rk).row()),
                        {.mask = (rm < M).col() & (k + rk < K).row(), .other = 1.5f});
          auto b = load(B.ptr() + ((k + rk).col() * N + rn.row()),
                        {.mask = (rn < N).row() & (k + rk < K).col(), .other = 2});
          acc = dot(a, b, acc);
        }
      if (c.how == 2)  // backwards, from behind the end to before the beginning
        for (auto k : range(K + 5, -c.BK, -c.BK, {.stages = st}))
          acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc);
      if (c.how == 3)  // left early, by what memory says
        for (auto k : range(0, K, c.BK, {.stages = st})) {
          break_if(load(aux + k / c.BK) == 7);
          acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc);
        }
      if (c.how == 4) {  // pointers that walk
        Tile pa = A.ptr() + (rm.col() * K + rk.row()), pb = B.ptr() + (rk.col() * N + rn.row());
        for (auto i : range(0, cdiv(K, c.BK), 1, {.stages = st})) {
          auto left = K - i * c.BK;
          acc = dot(load(pa, {.mask = (rm < M).col() & (rk < left).row()}),
                    load(pb, {.mask = (rk < left).col() & (rn < N).row()}), acc);
          pa += c.BK, pb += c.BK * N;
        }
      }
      if (c.how == 5) {  // a list
        Tile at = load(aux + 100);
        while_([&] { return at >= 0; },
               [&] {
                 acc = dot(A.load({m, at * c.BK}, {c.BM, c.BK}), B.load({at * c.BK, n}, {c.BK, c.BN}), acc);
                 at = load(aux + 100 + at + 1);
               });
      }
      if (c.how == 6)  // some are skipped
        for (auto k : range(0, K, c.BK, {.stages = st})) {
          auto a = A.load({m, k}, {c.BM, c.BK});
          for (auto _ : when(load(aux + k / c.BK) != 7)) acc = dot(a, B.load({k, n}, {c.BK, c.BN}), acc);
        }
      if (c.how == 7)  // continue
        for (auto k : range(0, K, c.BK, {.stages = st})) {
          continue_if(load(aux + k / c.BK) == 7);
          acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc);
        }
      if (c.how == 8) {  // two sums that change places
        Tile other = zeros({c.BM, c.BN}, f32);
        for (auto k : range(0, K, c.BK, {.stages = st})) {
          acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc);
          Tile t = acc;
          acc = other, other = t;
        }
        acc = acc + 2 * other;
      }
      if (c.how == 9)  // a sum that starts again
        for (auto k : range(0, K, c.BK, {.stages = st})) {
          auto again = load(aux + k / c.BK) == 7;
          acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), where(again, 0, acc));
        }
      if (c.how == 10) {  // one tile, looked at three ways
        Tile rows = zeros({c.BM}, f32);
        for (auto k : range(0, K, c.BK, {.stages = st})) {
          auto a = A.load({m, k}, {c.BM, c.BK});
          rows += squeeze(sum(abs(cast(a, f32)), axis(1)), 1);
          acc = dot(a * 2, B.load({k, n}, {c.BK, c.BN}), acc);
          acc = dot(a, B.load({k, n}, {c.BK, c.BN}), acc);
        }
        acc += rows.col();
      }
      if (c.how == 11)  // a mask in the middle of a product's operand
        for (auto k : range(0, K, c.BK, {.stages = st})) {
          auto a = A.load({m, k}, {c.BM, c.BK});
          a = where((rm.col() + (k + rk).row()) % 3 == 0, 0, a);
          acc = dot(a, B.load({k, n}, {c.BK, c.BN}), acc);
        }
      if (c.how == 12) {  // the tile of the iteration before
        Tile last = zeros({c.BM, c.BK}, f16);
        for (auto k : range(0, K, c.BK, {.stages = st})) {
          auto a = A.load({m, k}, {c.BM, c.BK});
          acc = dot(a + last, B.load({k, n}, {c.BK, c.BN}), acc);
          last = a;
        }
      }
      if (c.how == 13)  // two loops in one
        for (auto h : range(0, 2))
          for (auto k : range(h * c.BK, K, 2 * c.BK, {.stages = st}))
            acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc * cast(h + 1, f32));
      if (c.how == 14)  // the order from memory
        for (auto i : range(0, cdiv(K, c.BK), 1, {.stages = st})) {
          auto k = load(aux + 50 + i) * c.BK;
          acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc);
        }
      if (c.how == 15)  // rows of A by number, some of them none
        for (auto k : range(0, K, c.BK, {.stages = st})) {
          auto rows = load(aux + 200 + rm, {.mask = rm < M, .other = -1});
          acc = dot(A.gather(rows, k, c.BK), B.load({k, n}, {c.BK, c.BN}), acc);
        }
      if (c.how == 16)  // halves of a tile
        for (auto k : range(0, K, c.BK, {.stages = st})) {
          auto a = A.load({m, k}, {c.BM, c.BK});
          auto b = B.load({k, n}, {c.BK, c.BN});
          acc = dot(extract(a, {0, 0}, {c.BM, c.BK / 2}), extract(b, {0, 0}, {c.BK / 2, c.BN}), acc);
          acc = dot(extract(a, {0, c.BK / 2}, {c.BM, c.BK / 2}), extract(b, {c.BK / 2, 0}, {c.BK / 2, c.BN}), acc);
        }
      if (c.how == 17)  // a bound that changes while the loop runs is no bound; one more with a count of its own
      {
        Tile k = 0, steps = 0;
        while_([&] { return k < K; },
               [&] {
                 acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc);
                 k += where(load(aux + steps) == 7, 2 * c.BK, c.BK);
                 steps += 1;
               });
      }
      if (c.how == 18) {  // the two ends towards each other
        for (auto i : range(0, cdiv(cdiv(K, c.BK), 2), 1, {.stages = st})) {
          auto k0 = i * c.BK, k1 = (cdiv(K, c.BK) - 1 - i) * c.BK;
          acc = dot(A.load({m, k0}, {c.BM, c.BK}), B.load({k0, n}, {c.BK, c.BN}), acc);
          if_(k1 > k0, [&] { acc = dot(A.load({m, k1}, {c.BM, c.BK}), B.load({k1, n}, {c.BK, c.BN}), acc); });
        }
      }
      if (c.how == 19)  // a product of the turned, as a product of bf16
        for (auto k : range(0, K, c.BK, {.stages = st}))
          acc += trans(
              dot(cast(trans(B.load({k, n}, {c.BK, c.BN})), bf16), cast(trans(A.load({m, k}, {c.BM, c.BK})), bf16)));
      Y.store({m, n}, acc);
    }).grid([](const HoCfg& c, const auto& a, const auto& b, auto, const auto&) {
      return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[1], c.BN)};
    });

struct Many {
  Many() {
    for (int how = 0; how < 20; ++how)
      if (how != 8)  // the assembler serialises its products (C7517)
        cases().push_back({"odd_mm" + std::to_string(how), [how](Env& e) {
                             auto c = ho(e, how);
                             const int M = e.field("M", e.big ? 4096 : 77), N = e.field("N", e.big ? 4096 : 56),
                                       K = e.field("K", e.big ? 4096 : 200);
                             auto a = random<half>(e, size_t(M) * K), b = random<half>(e, size_t(K) * N);
                             if (how == 19 && e.device && !e.big) {
                               for (auto& x : a.h) x = half(float(bfloat16(float(x))));
                               for (auto& x : b.h) x = half(float(bfloat16(float(x))));
                               a = filled<half>(e, a.n, [h = a.h](size_t i) { return h[i]; }),
                               b = filled<half>(e, b.n, [h = b.h](size_t i) { return h[i]; });
                             }
                             const int T = int(cdiv(K, c.BK));
                             auto aux = filled<int32_t>(e, 200 + size_t(M), [&](size_t i) -> int {
                               if (i >= 200) return int((i - 200) * 5 % (M + 3)) - 1;
                               if (i >= 100) {  // list 0, 2, 4 ...
                                 const int at = int(i) - 101;
                                 return at < 0 ? 0 : at + 2 < T ? at + 2 : -1;
                               }
                               if (i >= 50) return int(i - 50) < T ? (T - 1 - int(i - 50)) : 0;
                               return i == 2 || i == 4 ? 7 : 1;
                             });
                             auto y = constant<float>(e, size_t(M) * N, NAN);
                             Job j;
                             j.gflop = 2e-9 * M * N * double(K);
                             j.add(odd_mm, c, a.view(M, K), b.view(K, N), aux.p, y.view(M, N));
                             j.check = [=] {
                               std::vector<double> want(y.n);
                               for (int m = 0; m < M; ++m)
                                 for (int n = 0; n < N; ++n) {
                                   double s = 0, sums[2] = {0, 0}, rows = 0;
                                   int end = T * c.BK, steps = 0, skip = 0;
                                   for (int k = 0; k < end; ++k) {
                                     const bool in = k < K;
                                     const int t = k / c.BK;
                                     const bool seven = t == 2 || t == 4;
                                     const int am = how == 15 ? aux.at(200 + m) : m;
                                     double x = in && am >= 0 && am < M ? a[size_t(am) * K + k] : 0,
                                            w = in ? b[size_t(k) * N + n] : 0;
                                     if (how <= 1 && !in) x = 1.5, w = 2;
                                     if (how == 3 && t >= 2) break;
                                     if (how == 5 && t % 2) continue;
                                     if ((how == 6 || how == 7) && seven) continue;
                                     if (how == 8) {
                                       sums[t % 2] += x * w;
                                       continue;
                                     }
                                     if (how == 9 && seven && k % c.BK == 0) s = 0;
                                     if (how == 10) rows += std::abs(x), x *= 3;
                                     if (how == 11 && (m + k) % 3 == 0) x = 0;
                                     if (how == 12 && k >= c.BK) x = in_half(x + a[size_t(m) * K + k - c.BK]);
                                     if (how == 17) {
                                       if (k % c.BK == 0) {
                                         if (skip) {
                                           skip = 0, k += c.BK - 1;
                                           continue;
                                         }
                                         skip = steps == 2 || steps == 4, ++steps;
                                       }
                                     }
                                     if (how == 13) {
                                       sums[t % 2] += x * w;
                                       continue;
                                     }
                                     s += x * w;
                                   }
                                   if (how == 8) {
                                     // after step t the fresh sum lies in other; acc holds the older
                                     const int lastOne = (T - 1) % 2;
                                     s = sums[1 - lastOne] + 2 * sums[lastOne];
                                   }
                                   if (how == 13) {
                                     s = sums[0];
                                     double odd = 0;
                                     for (int t = 1; t < T; t += 2) {
                                       double p = 0;
                                       for (int k = t * c.BK; k < std::min(K, (t + 1) * c.BK); ++k)
                                         p += a[size_t(m) * K + k] * b[size_t(k) * N + n];
                                       s = s * 2 + p;
                                     }
                                     s += odd;
                                   }
                                   want[size_t(m) * N + n] = s + rows;
                                 }
                               return agree(y.now(), want, 2e-3 * (how == 13 ? 40 : 1), 2e-3);
                             };
                             return j;
                           }});
  }
} many;

}  // namespace loops_of_products
}  // namespace users
