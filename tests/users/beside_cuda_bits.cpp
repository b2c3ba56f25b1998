// beside_cuda_bits.cpp - fingerprints compared, semi-global matching, scrypt's ROMix.
#include "tests/users/use.h"
namespace users {
namespace beside_cuda_bits {

// --- Tanimoto: the best of N fingerprints of 1024 bits for each of M, and which; words of equal index lie together.
// Parts of N by different programs, then merged.
struct TanCfg {
  int BM = 64, BN = 128, splits = 8, warps = 4, BQ = 128, form = 0, BK = 32, stages = 3;
};
auto tanimoto = kernel("user_tanimoto", [](const TanCfg& c, Tensor<const uint32_t, 2> A, Tensor<const uint32_t, 2> B,
                                           Tensor<float, 2> score, Tensor<int, 2> which) {
                  // A [W, M], B [W, N]; score, which [splits, M]
                  num_warps(c.warps);
                  auto m = program_id(0) * c.BM, s = program_id(1);
                  auto N = B.dim(1);
                  auto per = cdiv(cdiv(N, c.splits), c.BN) * c.BN;
                  Tile best = full({c.BM, 1}, -1.f, f32), at = zeros({c.BM, 1}, i32);
                  Tile ca = zeros({c.BM}, i32);
                  for (auto w : range(0, A.dim(0))) ca += cast(popcount(A.load({w, m}, {c.BM})), i32);
                  Tile whole;  // form 4: all words of M's fingerprints
                  if (c.form == 4) whole = trans(A.load({0, m}, {c.BK, c.BM}));
                  for (auto n : range(s * per, min((s + 1) * per, N), c.BN, {.stages = c.form == 4 ? c.stages : 0})) {
                    Tile both = zeros({c.BM, c.BN}, i32), cb = zeros({c.BN}, i32);
                    if (c.form == 0) {
                      for (auto w : range(0, A.dim(0))) {
                        auto a = A.load({w, m}, {c.BM});
                        auto b = B.load({w, n}, {c.BN});
                        both += cast(popcount(a.col() & b.row()), i32);
                        cb += cast(popcount(b), i32);
                      }
                    } else if (c.form == 1) {  // carry-save adders: four words, one count
                      Tile ones = zeros({c.BM, c.BN}, u32), twos = zeros({c.BM, c.BN}, u32);
                      auto add = [](Tile& low, const Tile& x, const Tile& y) {
                        auto high = (low & x) | (low & y) | (x & y);
                        low = low ^ x ^ y;
                        return high;
                      };
                      for (auto w : range(0, A.dim(0), 4)) {
                        auto b = [&](int i) { return B.load({w + i, n}, {c.BN}); };
                        auto x = [&](int i) { return A.load({w + i, m}, {c.BM}).col() & b(i).row(); };
                        for (int i = 0; i < 4; ++i) cb += cast(popcount(b(i)), i32);
                        auto h1 = add(ones, x(0), x(1)), h2 = add(ones, x(2), x(3));
                        both += cast(popcount(add(twos, h1, h2)), i32) << 2;
                      }
                      both += cast(popcount(ones), i32) + (cast(popcount(twos), i32) << 1);
                    } else if (c.form == 3) {  // a product of bits
                      for (auto w : range(0, A.dim(0), c.BK, {.stages = c.stages})) {
                        auto b = B.load({w, n}, {c.BK, c.BN});
                        both = dot_bits(trans(A.load({w, m}, {c.BK, c.BM})), b, both);
                        cb += squeeze(sum(cast(popcount(b), i32), axis(0)), 0);
                      }
                    } else if (c.form == 4) {
                      auto b = B.load({0, n}, {c.BK, c.BN});
                      both = dot_bits(whole, b);
                      cb = squeeze(sum(cast(popcount(b), i32), axis(0)), 0);
                    } else {  // bits as bytes, multiplied
                      auto bit = arange(0, 32).row();
                      for (auto w : range(0, A.dim(0), 4)) {
                        auto bits = [&](const Tensor<const uint32_t, 2>& X, auto at, int size) {
                          auto x = expand_dims(trans(X.load({w, at}, {4, size})), 2);
                          return reshape(cast((x >> reshape(bit, {1, 1, 32})) & 1u, i8), {size, 128});
                        };
                        both = dot(bits(A, m, c.BM), trans(bits(B, n, c.BN)), both);
                        cb += squeeze(sum(cast(popcount(B.load({w, n}, {4, c.BN})), i32), axis(0)), 0);
                      }
                    }
                    auto t = cast(both, f32) / cast(ca.col() + cb.row() - both, f32);
                    t = where((n + arange(0, c.BN)).row() < N, t, -1.f);
                    auto [v, i] = max_with_index(t, axis(1));
                    at = where(v > best, n + i, at);
                    best = max(best, v);
                  }
                  score.store({s, m}, squeeze(best, 1));
                  which.store({s, m}, squeeze(at, 1));
                }).grid([](const TanCfg& c, const auto& a, const auto&...) {
  return Grid{cdiv(a.shape[1], c.BM), c.splits};
});
auto tanimoto_merge =
    kernel("user_tanimoto_merge", [](const TanCfg& c, Tensor<const float, 2> score, Tensor<const int, 2> which,
                                     Tensor<float, 1> best, Tensor<int, 1> at) {
      auto m = program_id(0) * c.BQ;
      auto s = score.load({0, m}, {c.splits, c.BQ});
      auto w = which.load({0, m}, {c.splits, c.BQ});
      auto [v, i] = max_with_index(s, axis(0));
      best.store({m}, squeeze(v, 0));
      at.store({m}, squeeze(take(w, i, 0), 0));
    }).grid([](const TanCfg& c, const auto&, const auto&, const auto& b, const auto&) {
      return Grid{cdiv(b.shape[0], c.BQ)};
    });
Job fingerprints(Env& e, int form) {
  TanCfg c;
  if (!e.big) c = {16, 32, 3, 2, 16, 0, 8};
  c.form = form;
  c.BK = e.field("BK", c.BK), c.stages = e.field("stages", c.stages);
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.splits = e.field("splits", c.splits);
  c.form = e.field("form", c.form);
  c.warps = e.field("warps", c.warps);
  const int M = e.big ? 2048 : 37, N = e.big ? 65536 : 203, W = e.big ? 32 : 5, S = c.splits;
  auto word = [&] { return uint32_t(e.uniform() * 0x1p24) << 8 ^ uint32_t(e.uniform() * 0x1p24); };
  auto a = drawn<uint32_t>(e, size_t(W) * M, [&] { return word() & word(); });
  auto b = drawn<uint32_t>(e, size_t(W) * N, [&] { return word() & word(); });
  auto score = constant<float>(e, size_t(S) * M, NAN), best = constant<float>(e, M, NAN);
  auto which = constant<int>(e, size_t(S) * M, -1), at = constant<int>(e, M, -1);
  Job j;
  j.inTurn = true;
  j.add(tanimoto, c, a.view(W, M), b.view(W, N), score.view(S, M), which.view(S, M));
  j.add(tanimoto_merge, c, score.view(S, M), which.view(S, M), best.view(M), at.view(M));
  j.check = [=]() -> std::string {
    const auto v = best.now();
    const auto i = at.now();
    for (int m = 0; m < M; ++m) {
      double most = -1;
      int where = 0;
      for (int n = 0; n < N; ++n) {
        int both = 0, any = 0;
        for (int w = 0; w < W; ++w) {
          const uint32_t x = a.at(size_t(w) * M + m), y = b.at(size_t(w) * N + n);
          both += __builtin_popcount(x & y), any += __builtin_popcount(x | y);
        }
        if (double(both) / any > most) most = double(both) / any, where = n;
      }
      if (std::abs(v[m] - most) > 1e-6) return "a score is off";
      if (i[m] != where) return "another one was found: " + std::to_string(i[m]) + " for " + std::to_string(where);
    }
    return "";
  };
  return j;
}
Register r1("tanimoto", [](Env& e) { return fingerprints(e, 0); });
Register r1b("tanimoto_bits", [](Env& e) { return fingerprints(e, 4); });

// --- semi-global matching, one direction: costs of D shifts per pixel gathered along a row,
// L(x, d) = C(x, d) + min(L(x-1, d), L(x-1, d-1) + P1, L(x-1, d+1) + P1, min L(x-1) + P2) - min L(x-1)
struct SgmCfg {
  int D = 128, BR = 1, warps = 1, stages = 0, form = 0;
};
auto sgm = kernel("user_sgm", [](const SgmCfg& c, Tensor<const uint8_t, 3> C, Tensor<uint16_t, 3> L, I32 p1, I32 p2) {
             // C, L [H, W, D]
             num_warps(c.warps);
             auto y = program_id(0) * c.BR;
             auto d = broadcast_to(arange(0, c.D).row(), {c.BR, c.D});
             const DType type = c.form == 2 ? u16 : i32;
             auto q1 = cast(p1, type), q2 = cast(p2, type);
             Tile before = zeros({c.BR, c.D}, type), least = zeros({c.BR, 1}, type);
             for (auto x : range(0, C.dim(1), 1, {.stages = c.stages})) {
               auto cost = cast(C.load({y, x, 0}, {c.BR, 1, c.D}), type);
               auto up = [&](int by) {
                 if (c.form != 1) return take(before, clamp(d + by, 0, c.D - 1), 1);
                 auto edge = full({c.BR, 1}, 1 << 20, i32);  // form 1: cut and joined
                 return by > 0 ? cat(extract(before, {0, 1}, {c.BR, c.D - 1}), edge, 1)
                               : cat(edge, extract(before, {0, 0}, {c.BR, c.D - 1}), 1);
               };
               auto l = min(min(before, min(up(-1), up(1)) + q1), least + q2) - least + reshape(cost, {c.BR, c.D});
               L.store({y, x, 0}, reshape(cast(l, u16), {c.BR, 1, c.D}));
               before = l;
               least = min(l, axis(1));
             }
           }).grid([](const SgmCfg& c, const auto& C, const auto&...) { return Grid{cdiv(C.shape[0], c.BR)}; });
Register r2("sgm", [](Env& e) {
  SgmCfg c;
  c.BR = e.field("BR", c.BR), c.warps = e.field("warps", c.warps), c.form = e.field("form", c.form);
  c.stages = e.field("stages", c.stages), c.D = e.big ? 128 : e.field("D", 32);
  const int H = e.big ? 1080 : 5, W = e.big ? 1920 : 37, D = c.D, p1 = 7, p2 = 80;
  auto cost = integers<uint8_t>(e, size_t(H) * W * D, 0, 64);
  auto l = constant<uint16_t>(e, size_t(H) * W * D, 0);
  Job j;
  j.mbytes = 3e-6 * H * W * D;
  j.add(sgm, c, cost.view(H, W, D), l.view(H, W, D), p1, p2);
  j.check = [=] {
    std::vector<double> want(size_t(H) * W * D);
    for (int y = 0; y < H; ++y) {
      std::vector<int> b(D, 0), n(D);
      for (int x = 0; x < W; ++x) {
        const int m = *std::min_element(b.begin(), b.end());
        for (int d = 0; d < D; ++d) {
          int v = std::min(b[d], m + p2);
          if (d) v = std::min(v, b[d - 1] + p1);
          if (d + 1 < D) v = std::min(v, b[d + 1] + p1);
          want[(size_t(y) * W + x) * D + d] = n[d] = v - m + cost.at((size_t(y) * W + x) * D + d);
        }
        b = n;
      }
    }
    return agree(l.now(), want, .01, 0);
  };
  return j;
});

// --- scrypt's ROMix, r = 1: a state of 32 words per lane, N states kept, then N looked up; Salsa20/8 between
struct MixCfg {
  int B = 128, N = 1024, warps = 4, form = 0;
};
using Words = std::vector<Tile>;
void salsa8(Tile* x, const Tile* y) {  // x = salsa20/8(x ^ y), 16 words
  Words a, b;
  for (int i = 0; i < 16; ++i) a.push_back(x[i] ^ y[i]);
  b = a;
  for (int r = 0; r < 4; ++r) {
    auto quarter = [&](int p, int q, int s, int t) {
      a[q] = a[q] ^ rotl(a[p] + a[t], 7), a[s] = a[s] ^ rotl(a[q] + a[p], 9);
      a[t] = a[t] ^ rotl(a[s] + a[q], 13), a[p] = a[p] ^ rotl(a[t] + a[s], 18);
    };
    quarter(0, 4, 8, 12), quarter(5, 9, 13, 1), quarter(10, 14, 2, 6), quarter(15, 3, 7, 11);
    quarter(0, 1, 2, 3), quarter(5, 6, 7, 4), quarter(10, 11, 8, 9), quarter(15, 12, 13, 14);
  }
  for (int i = 0; i < 16; ++i) x[i] = a[i] + b[i];
}
auto romix =
    kernel("user_romix", [](const MixCfg& c, Ptr<uint32_t> state, Ptr<uint32_t> V, I32 lanes) {
      // state [lanes, 32]; V [lanes, N, 32]
      num_warps(c.warps);
      auto lane = program_id(0) * c.B + arange(0, c.B);
      auto mine = V + cast(lane, i64) * (c.N * 32);
      auto read = [&](Tile p) {  // 32 words per lane
        Words w;
        if (c.form == 0) {
          for (int i = 0; i < 32; ++i) w.push_back(load(p + i));
        } else {
          w.push_back(load(p.col() + arange(0, 32).row()));
          for (int n = 32; n > 1; n /= 2) {
            Words even, odd;
            for (auto& t : w) {
              auto [a, b] = split(reshape(t, {c.B, n / 2, 2}));
              even.push_back(a), odd.push_back(b);
            }
            even.insert(even.end(), odd.begin(), odd.end());  // word i stands at the place of its reversed bits
            w = even;
          }
          Words in_order;
          for (int i = 0; i < 32; ++i) {
            in_order.push_back(reshape(w[i], {c.B}));
          }
          w = in_order;
        }
        return w;
      };
      auto write = [&](Tile p, const Words& w) {
        if (c.form == 0) {
          for (int i = 0; i < 32; ++i) store(p + i, w[i]);
        } else {
          Words t;
          for (int i = 0; i < 32; ++i) t.push_back(reshape(w[i], {c.B, 1}));
          for (int n = 1; n < 32; n *= 2) {
            Words half;
            for (size_t i = 0; i < t.size() / 2; ++i)
              half.push_back(reshape(join(t[i], t[i + t.size() / 2]), {c.B, 2 * n}));
            t = half;
          }
          store(p.col() + arange(0, 32).row(), t[0]);
        }
      };
      if (c.form == 2) {  // four threads a lane: word (4 k + 5 t) % 16 of each half is with thread t
        auto t = arange(0, 4).row(), tt = broadcast_to(t, {c.B, 4});
        auto word = [&](int h, int k) { return lane.col() * 32 + (h * 16 + (4 * k + 5 * t) % 16); };
        Words x;
        for (int i = 0; i < 8; ++i) x.push_back(load(state + word(i / 4, i % 4)));
        auto half = [&](Tile* x, const Tile* y) {
          Words a;
          for (int i = 0; i < 4; ++i) x[i] = x[i] ^ y[i], a.push_back(x[i]);
          auto turned = [&](Tile v, int by) { return take(v, (tt + by) % 4, 1); };
          auto quarter = [&](Tile& p, Tile& q, Tile& r, Tile& s) {
            q = q ^ rotl(p + s, 7), r = r ^ rotl(q + p, 9), s = s ^ rotl(r + q, 13), p = p ^ rotl(s + r, 18);
          };
          for (int r = 0; r < 4; ++r) {
            quarter(a[0], a[1], a[2], a[3]);
            Tile e = turned(a[3], 1), f = turned(a[2], 2), g = turned(a[1], 3);
            quarter(a[0], e, f, g);
            a[3] = turned(e, 3), a[2] = turned(f, 2), a[1] = turned(g, 1);
          }
          for (int i = 0; i < 4; ++i) x[i] = x[i] + a[i];
        };
        auto mix = [&] { half(&x[0], &x[4]), half(&x[4], &x[0]); };
        auto place = mine.col() + t * 4;
        for (auto i : range(0, c.N)) {
          for (int k = 0; k < 8; ++k) store(place + i * 32 + (k / 4 * 16 + k % 4), x[k]);
          mix();
        }
        for (auto i : range(0, c.N)) {
          (void)i;
          auto at = take(cast(x[4] & uint32_t(c.N - 1), i32), zeros({c.B, 4}, i32), 1);
          for (int k = 0; k < 8; ++k) x[k] = x[k] ^ load(place + at * 32 + (k / 4 * 16 + k % 4));
          mix();
        }
        for (int i = 0; i < 8; ++i) store(state + word(i / 4, i % 4), x[i]);
        return;
      }
      Words x = read(state + lane * 32);
      auto mix = [&] {
        salsa8(&x[0], &x[16]);
        salsa8(&x[16], &x[0]);
      };
      for (auto i : range(0, c.N)) {
        write(mine + i * 32, x);
        mix();
      }
      for (auto i : range(0, c.N)) {
        (void)i;
        auto at = cast(x[16] & uint32_t(c.N - 1), i32);
        Words v = read(mine + at * 32);
        for (int k = 0; k < 32; ++k) x[k] = x[k] ^ v[k];
        mix();
      }
      write(state + lane * 32, x);
    }).grid([](const MixCfg& c, auto, auto, int lanes) { return Grid{lanes / c.B}; });
Register r4("romix", [](Env& e) {
  MixCfg c;
  if (!e.big) c = {32, 16, 1, 0};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps), c.form = e.field("form", c.form);
  const int L = e.big ? 16896 / c.B * c.B : 64;
  auto word = [&] { return uint32_t(e.uniform() * 0x1p24) << 8 ^ uint32_t(e.uniform() * 0x1p24); };
  auto s = drawn<uint32_t>(e, size_t(L) * 32, word);
  auto v = constant<uint32_t>(e, size_t(L) * c.N * 32, 0);
  Job j;
  restore(e, j, s);
  j.add(romix, c, s.p, v.p, L);
  j.check = [=]() -> std::string {
    const auto got = s.now();
    for (int l = 0; l < L; ++l) {
      std::vector<uint32_t> x(&s.h[size_t(l) * 32], &s.h[size_t(l) * 32] + 32);
      auto rot = [](uint32_t a, int b) { return a << b | a >> (32 - b); };
      auto salsa = [&](uint32_t* a, const uint32_t* y) {
        uint32_t t[16], o[16];
        for (int i = 0; i < 16; ++i) t[i] = o[i] = a[i] ^ y[i];
        static const int q[8][4] = {{0, 4, 8, 12}, {5, 9, 13, 1}, {10, 14, 2, 6}, {15, 3, 7, 11},
                                    {0, 1, 2, 3},  {5, 6, 7, 4},  {10, 11, 8, 9}, {15, 12, 13, 14}};
        for (int r = 0; r < 4; ++r)
          for (auto& k : q) {
            t[k[1]] ^= rot(t[k[0]] + t[k[3]], 7), t[k[2]] ^= rot(t[k[1]] + t[k[0]], 9);
            t[k[3]] ^= rot(t[k[2]] + t[k[1]], 13), t[k[0]] ^= rot(t[k[3]] + t[k[2]], 18);
          }
        for (int i = 0; i < 16; ++i) a[i] = t[i] + o[i];
      };
      auto mix = [&] { salsa(&x[0], &x[16]), salsa(&x[16], &x[0]); };
      std::vector<std::vector<uint32_t>> kept;
      for (int i = 0; i < c.N; ++i) kept.push_back(x), mix();
      for (int i = 0; i < c.N; ++i) {
        const auto& k = kept[x[16] & (c.N - 1)];
        for (int w = 0; w < 32; ++w) x[w] ^= k[w];
        mix();
      }
      for (int w = 0; w < 32; ++w)
        if (x[w] != got[size_t(l) * 32 + w]) return "lane " + std::to_string(l) + " word " + std::to_string(w);
    }
    return "";
  };
  return j;
});
}  // namespace beside_cuda_bits
}  // namespace users
