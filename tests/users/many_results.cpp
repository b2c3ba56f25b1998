// many_results.cpp - one loop over what is read, results of several kinds: best, second best and entropy of logits;
// mean, variance and two quantised copies of rows; sums of int8 products brought back to 8 bits in integers;
// exponentials of looked up biases as a product's operand; chains of small products.
#include <bit>

#include "tests/users/use.h"
namespace users {
namespace many_results {

// --- the two likeliest classes of each row and how sure the row is of them, in one pass
struct TwoBest {
  int BLOCK = 256;
};
auto two_best =
    kernel("user_two_best", [](const TwoBest& c, Tensor<const half, 2> x, Ptr<int32_t> ids, Ptr<half> second,
                               Ptr<float> margin, Ptr<double> entropy, Ptr<uint8_t> sure, F32 least) {
      auto row = program_id(0);
      auto n = x.dim(1);
      Tile v1 = full({c.BLOCK}, -INFINITY, f32), v2 = v1, m = v1;
      Tile i1_ = zeros({c.BLOCK}, i32), s = zeros({c.BLOCK}, f32), w = zeros({c.BLOCK}, f32);
      for (auto j : range(0, n, c.BLOCK)) {
        Tile a = cast(x.load({row, j}, {c.BLOCK}, {.pad = -INFINITY}), f32);
        Tile at = j + arange(0, c.BLOCK);
        Tile better = a > v1;
        v2 = where(better, v1, max(v2, a));
        i1_ = where(better, at, i1_);
        v1 = where(better, a, v1);
        Tile top = max(m, a), known = top > -INFINITY;
        Tile keep = where(known, exp(m - top), 0.f), add = where(known, exp(a - top), 0.f);
        w = w * keep + where(a > -INFINITY, a * add, 0.f);
        s = s * keep + add;
        m = top;
      }
      auto [b1, bi, b2] = reduce({v1, i1_, v2}, axis(0), [](Tile p1, Tile pi, Tile p2, Tile q1, Tile qi, Tile q2) {
        Tile first = (p1 > q1) | ((p1 == q1) & (pi < qi));
        return std::tuple(max(p1, q1), where(first, pi, qi), max(where(first, q1, p1), max(p2, q2)));
      });
      auto [bm, bs, bw] = reduce({m, s, w}, axis(0), [](Tile m0, Tile s0, Tile w0, Tile m1, Tile s1, Tile w1) {
        Tile top = max(m0, m1);
        Tile k0 = where(m0 > -INFINITY, exp(m0 - top), 0.f), k1 = where(m1 > -INFINITY, exp(m1 - top), 0.f);
        return std::tuple(top, s0 * k0 + s1 * k1, w0 * k0 + w1 * k1);
      });
      Tile best = to_scalar(b1), next = to_scalar(b2), total = to_scalar(bs);
      Tile log_total = to_scalar(bm) + log(total);
      store(ids + row, to_scalar(bi));
      store(second + row, cast(next, f16));
      store(margin + row, best - next);
      store(entropy + row, cast(log_total, f64) - cast(to_scalar(bw), f64) / cast(total, f64));
      store(sure + row, cast(best - log_total > least, u8));
    }).grid([](const TwoBest&, const auto& x, int32_t*, half*, float*, double*, uint8_t*, float) {
      return Grid{x.shape[0]};
    });
Register b1("two_best", [](Env& e) {
  const int R = e.big ? 8192 : 5, V = e.big ? 32000 : 1003;
  auto x = random<half>(e, size_t(R) * V, -8, 8);
  auto ids = constant<int32_t>(e, R, -1);
  auto second = constant<half>(e, R, 9);
  auto margin = constant<float>(e, R, 9);
  auto entropy = constant<double>(e, R, 9);
  auto sure = constant<uint8_t>(e, R, 9);
  Job j;
  j.add(two_best, TwoBest{e.field("BLOCK", e.big ? 1024 : 256)}, x.view(R, V), ids.p, second.p, margin.p, entropy.p,
        sure.p, -5.2f);
  j.mbytes = double(R) * V * 2e-6;
  j.check = [=]() -> std::string {
    std::vector<double> wi(R), w2(R), wm(R), we(R), wf(R);
    for (int r = 0; r < R; ++r) {
      double first = -INFINITY, next = -INFINITY, sum = 0, weighed = 0;
      for (int i = 0; i < V; ++i) {
        const double a = x[size_t(r) * V + i];
        if (a > first)
          next = first, first = a, wi[r] = i;
        else
          next = std::max(next, a);
        sum += std::exp(a), weighed += a * std::exp(a);
      }
      w2[r] = next, wm[r] = first - next, we[r] = std::log(sum) - weighed / sum, wf[r] = first - std::log(sum) > -5.2f;
    }
    if (auto s = agree(ids.now(), wi, 0.1, 0); !s.empty()) return "id: " + s;
    if (auto s = agree(second.now(), w2, 1e-6, 1e-6); !s.empty()) return "second: " + s;
    if (auto s = agree(margin.now(), wm, 1e-6, 1e-6); !s.empty()) return "margin: " + s;
    if (auto s = agree(entropy.now(), we, 1e-5, 1e-5); !s.empty()) return "entropy: " + s;
    return agree(sure.now(), wf, 0.1, 0);
  };
  return j;
});

// --- mean and variance (Welford's triple), the largest of every group, and two copies in 8 bits
struct Copies {
  int BLOCK = 256;
};
auto row_copies =
    kernel("user_row_copies", [](const Copies& c, Tensor<const bfloat16, 2> x, Tensor<int8_t, 2> q,
                                 Tensor<fp8_e5m2, 2> f, Tensor<uint8_t, 2> groups, Tensor<float, 2> stats) {
      auto row = program_id(0);
      Tile n = zeros({c.BLOCK}, f32), mean = n, spread = n, top = n;
      for (auto j : range(0, x.dim(1), c.BLOCK)) {
        Tile a = cast(x.load({row, j}, {c.BLOCK}), f32);
        Tile inside = (j + arange(0, c.BLOCK)) < x.dim(1);
        n += where(inside, 1.f, 0.f);
        Tile d = where(inside, a - mean, 0.f);
        mean += d / max(n, 1.f);
        spread += d * where(inside, a - mean, 0.f);
        top = max(top, abs(a));
        Tile in_group = max(abs(reshape(a, {c.BLOCK / 32, 32})), axis(1));  // of 32 neighbours
        Tile bits = bitcast(in_group, u32) >> 23u;                          // its power of two, as e8m0
        groups.store({row, j / 32}, cast(reshape(bits, {c.BLOCK / 32}), u8));
      }
      auto [rn, rm, rs] = reduce({n, mean, spread}, axis(0), [](Tile n0, Tile m0, Tile s0, Tile n1, Tile m1, Tile s1) {
        Tile both = n0 + n1, part = n1 / max(both, 1.f), d = m1 - m0;
        return std::tuple(both, m0 + d * part, s0 + s1 + d * d * n0 * part);
      });
      Tile largest = max(top), scale = where(largest > 0, 127.f / largest, 0.f);
      stats.store({row, 0}, reshape(rm, {1}));
      stats.store({row, 1}, reshape(rs / rn, {1}));
      stats.store({row, 2}, reshape(largest, {1}));
      for (auto j : range(0, x.dim(1), c.BLOCK)) {
        Tile a = cast(x.load({row, j}, {c.BLOCK}), f32);
        q.store({row, j}, saturate(rint(a * scale), i8));
        f.store({row, j}, cast((a - to_scalar(rm)) * rsqrt(to_scalar(rs / rn) + 1e-5f), f8e5m2));
      }
    }).grid([](const Copies&, const auto& x, const auto&, const auto&, const auto&, const auto&) {
      return Grid{x.shape[0]};
    });
Register b2("row_copies", [](Env& e) {
  const int R = e.big ? 8192 : 4, C = e.big ? 8192 : 740, G = cdiv(C, 32);
  auto x = random<bfloat16>(e, size_t(R) * C, -3, 5);
  auto q = constant<int8_t>(e, size_t(R) * C, 1);
  auto f = constant<fp8_e5m2>(e, size_t(R) * C, 1);
  auto g = constant<uint8_t>(e, size_t(R) * G, 1);
  auto s = constant<float>(e, size_t(R) * 3, 1);
  Job j;
  j.add(row_copies, Copies{e.field("BLOCK", e.big ? 1024 : 256)}, x.view(R, C), q.view(R, C), f.view(R, C),
        g.view(R, G), s.view(R, 3));
  j.mbytes = double(R) * C * 4e-6;
  j.check = [=]() -> std::string {
    std::vector<double> wq(R * C), wf(R * C), wg(R * G), ws(R * 3);
    for (int r = 0; r < R; ++r) {
      double sum = 0, squares = 0, top = 0;
      for (int i = 0; i < C; ++i) sum += x[r * C + i], top = std::max(top, std::abs(x[r * C + i]));
      for (int i = 0; i < C; ++i) squares += std::pow(x[r * C + i] - sum / C, 2);
      ws[r * 3] = sum / C, ws[r * 3 + 1] = squares / C, ws[r * 3 + 2] = top;
      for (int i = 0; i < C; ++i) {
        wq[r * C + i] = std::clamp(std::rint(x[r * C + i] * 127 / top), -128., 127.);
        wf[r * C + i] = (x[r * C + i] - sum / C) / std::sqrt(squares / C + 1e-5);
      }
      for (int k = 0; k < G; ++k) {
        float most = 0;
        for (int i = k * 32; i < std::min(C, k * 32 + 32); ++i) most = std::max(most, std::abs(float(x[r * C + i])));
        wg[r * G + k] = std::bit_cast<uint32_t>(most) >> 23;
      }
    }
    if (auto w = agree(s.now(), ws, 1e-5, 1e-5); !w.empty()) return "stats: " + w;
    if (auto w = agree(q.now(), wq, 1, 0); !w.empty()) return "int8: " + w;
    if (auto w = agree(f.now(), wf, 1e-4, 0.13); !w.empty()) return "f8: " + w;
    return agree(g.now(), wg, 0.1, 0);
  };
  return j;
});

// --- int8 products brought back to 8 bits with integers alone: a factor of 31 bits and a shift per column (gemmlowp)
struct Requant {
  int M = 64, N = 64, K = 64;
};
/// The product of two Q31 numbers, rounded.
Tile rounded_high(Tile a, Tile b) {
  Tile wide = cast(a, i64) * cast(b, i64);
  return cast((wide + (1 << 30)) >> 31, i32);
}
/// x / 2^s, halves away from zero.
Tile rounded_shift(Tile x, Tile s) {
  Tile mask = (full({1, 1}, 1, i32) << s) - 1, left = x & mask;
  return (x >> s) + cast(left > ((mask >> 1) + cast(x < 0, i32)), i32);
}
auto fixed_requant =
    kernel("user_fixed_requant", [](const Requant& c, Tensor<const int8_t, 2> a, Tensor<const int8_t, 2> b,
                                    Ptr<const int32_t> factor, Ptr<const uint8_t> shift, Tensor<int8_t, 2> y,
                                    I32 zero) {
      auto m = program_id(1) * c.M, n = program_id(0) * c.N;
      Tile acc = zeros({c.M, c.N}, i32);
      for (auto k : range(0, a.dim(1), c.K))
        acc = dot(a.load({m, k}, {c.M, c.K}), trans(b.load({n, k}, {c.N, c.K})), acc);
      Tile column = n + arange(0, c.N), inside = column < y.dim(1);
      Tile f = load(factor + column, {.mask = inside}).row(),
           s = cast(load(shift + column, {.mask = inside}), i32).row();
      y.store({m, n}, saturate(rounded_shift(rounded_high(acc, f), s) + zero, i8));
    }).grid([](const Requant& c, const auto& a, const auto& b, const int32_t*, const uint8_t*, const auto&, int) {
      return Grid{cdiv(int(b.shape[0]), c.N), cdiv(int(a.shape[0]), c.M)};
    });
Register b3("fixed_requant", [](Env& e) {
  const int M = e.big ? 4096 : 70, N = e.big ? 4096 : 93, K = e.big ? 4096 : 112;
  auto a = integers<int8_t>(e, size_t(M) * K, -128, 128), b = integers<int8_t>(e, size_t(N) * K, -128, 128);
  auto f = integers<int32_t>(e, N, 1 << 30, int64_t(1) << 31);
  auto s = integers<uint8_t>(e, N, 6, 11);
  auto y = constant<int8_t>(e, size_t(M) * N, 1);
  Job j;
  Requant c{e.field("M", e.big ? 128 : 64), e.field("N", e.big ? 256 : 64), e.field("K", 64)};
  j.add(fixed_requant, c, a.view(M, K), b.view(N, K), f.p, s.p, y.view(M, N), 3);
  j.gflop = 2e-9 * M * N * K;
  j.check = [=] {
    const auto want = product(
        M, N, K, [&](int m, int k) { return a[m * K + k]; }, [&](int k, int n) { return b[n * K + k]; },
        [&](double sum, int, int n) {
          const int high = int((int64_t(sum) * f.h[n] + (1 << 30)) >> 31), bits = s.h[n], mask = (1 << bits) - 1;
          const int shifted = (high >> bits) + ((high & mask) > ((mask >> 1) + (high < 0)));
          return double(std::clamp(shifted + 3, -128, 127));
        });
    return agree(y.now(), want, 0.1, 0);
  };
  return j;
});

// --- weights made of looked up numbers: exp(table[bucket(i, j)] - shift) where a list of 16 keys a block says so
struct Looked {
  int M = 64, D = 64, K = 16;
};
auto gathered_exp =
    kernel("user_gathered_exp", [](const Looked& c, Ptr<const float> table, Ptr<const int32_t> place,
                                   Ptr<const int32_t> first, Tensor<const half, 2> v, Tensor<float, 2> y,
                                   Ptr<float> norm) {
      auto m = program_id(0);
      Tile row = m * c.M + arange(0, c.M);
      Tile begin = load(first + m), end = load(first + m + 1);
      Tile acc = zeros({c.M, c.D}, f32), total = zeros({c.M, 1}, f32);
      for (auto k : range(begin, end, c.K)) {
        Tile key = k + arange(0, c.K);
        Tile rows = load(place + key, {.mask = key < end, .other = -1});
        Tile apart = abs(row.col() - rows.row());
        Tile bucket = where(apart < 16, apart, min(31, 16 + countr_zero(apart | 1) + apart / 64));
        Tile p = where((rows >= 0).row(), exp(load(table + bucket) - 2.f), 0.f);
        total += sum(p, axis(1));
        acc = dot(cast(p, f16), v.gather(rows, 0, c.D), acc);
      }
      y.store({m * c.M, 0}, acc / max(total, 1e-20f));
      store(norm + row, reshape(total, {c.M}), {.mask = row < y.dim(0)});
    }).grid([](const Looked& c, const float*, const int32_t*, const int32_t*, const auto&, const auto& y, float*) {
      return Grid{cdiv(int(y.shape[0]), c.M)};
    });
Register b4("gathered_exp", [](Env& e) {
  const int M = e.big ? 16384 : 150, S = e.big ? 16384 : 90, D = 64, B = cdiv(M, 64), each = e.big ? 512 : 21;
  auto table = random<float>(e, 32, -1, 3);
  // The second block has no keys.
  auto first = filled<int32_t>(e, B + 1, [&](size_t i) { return int(i) * each - (i >= 2 ? each : 0); });
  auto place = integers<int32_t>(e, B * each, 0, S);
  auto v = random<half>(e, size_t(S) * D);
  auto y = constant<float>(e, size_t(M) * D, 7), norm = constant<float>(e, M, 7);
  Job j;
  j.add(gathered_exp, Looked{64, D, e.field("K", 16)}, table.p, place.p, first.p, v.view(S, D), y.view(M, D), norm.p);
  j.gflop = 2e-9 * M * each * D;
  j.check = [=]() -> std::string {
    std::vector<double> want(M * D), wn(M);
    for (int r = 0; r < M; ++r) {
      for (int k = first.h[r / 64]; k < first.h[r / 64 + 1]; ++k) {
        const int apart = std::abs(r - place.h[k]);
        const int bucket = apart < 16 ? apart : std::min(31, 16 + std::countr_zero(unsigned(apart | 1)) + apart / 64);
        const double p = std::exp(table[bucket] - 2);
        wn[r] += p;
        for (int d = 0; d < D; ++d) want[r * D + d] += p * v[place.h[k] * D + d];
      }
      for (int d = 0; d < D; ++d) want[r * D + d] /= std::max(wn[r], 1e-20);
    }
    if (auto s = agree(norm.now(), wn, 1e-4, 1e-4); !s.empty()) return "norm: " + s;
    return agree(y.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- three small products one behind the other for every item of a batch: relu(X A) B, times what a softmax makes of
// it
struct Chain {
  int ITEMS = 8;
};
auto tiny_chain =
    kernel("user_tiny_chain", [](const Chain& c, Tensor<const bfloat16, 3> x, Tensor<const bfloat16, 3> a,
                                 Tensor<const bfloat16, 3> b, Tensor<bfloat16, 3> y, Tensor<float, 2> tops) {
      auto i = program_id(0) * c.ITEMS;
      Tile h = dot(x.load({i, 0, 0}, {c.ITEMS, 8, 16}), a.load({i, 0, 0}, {c.ITEMS, 16, 24}));
      Tile z = dot(cast(max(h, 0.f), bf16), b.load({i, 0, 0}, {c.ITEMS, 24, 16}));
      Tile p = exp(z - max(z, axis(2)));
      p /= sum(p, axis(2));
      Tile w = dot(cast(p, bf16), trans(x.load({i, 0, 0}, {c.ITEMS, 8, 16})));
      y.store({i, 0, 0}, cast(w, bf16));
      tops.store({i, 0}, reshape(max(h, axis(2)), {c.ITEMS, 8}));
    }).grid([](const Chain& c, const auto& x, const auto&, const auto&, const auto&, const auto&) {
      return Grid{cdiv(int(x.shape[0]), c.ITEMS)};
    });
Register b5("tiny_chain", [](Env& e) {
  const int B = e.big ? 65536 : 19;
  auto x = random<bfloat16>(e, size_t(B) * 128), a = random<bfloat16>(e, size_t(B) * 384),
       b = random<bfloat16>(e, size_t(B) * 384);
  auto y = constant<bfloat16>(e, size_t(B) * 64, 7);
  auto tops = constant<float>(e, size_t(B) * 8, 7);
  Job j;
  j.add(tiny_chain, Chain{e.field("ITEMS", 8)}, x.view(B, 8, 16), a.view(B, 16, 24), b.view(B, 24, 16), y.view(B, 8, 8),
        tops.view(B, 8));
  j.mbytes = double(B) * (128 + 768 + 64 + 16) * 2e-6;
  j.check = [=]() -> std::string {
    std::vector<double> want, wt(B * 8);
    for (size_t i = 0; i < size_t(B); ++i) {
      auto h = product(8, 24, 16, matrix(x, 16, i * 128), matrix(a, 24, i * 384));
      for (int r = 0; r < 8; ++r) wt[i * 8 + r] = *std::max_element(&h[r * 24], &h[r * 24] + 24);
      for (double& v : h) v = double(float(bfloat16(float(std::max(v, 0.)))));
      auto z = product(
          8, 16, 24, [&](int r, int k) { return h[r * 24 + k]; }, matrix(b, 16, i * 384));
      for (int r = 0; r < 8; ++r) {
        const double top = *std::max_element(&z[r * 16], &z[r * 16] + 16);
        double total = 0;
        for (int k = 0; k < 16; ++k) total += z[r * 16 + k] = std::exp(z[r * 16 + k] - top);
        for (int k = 0; k < 16; ++k) z[r * 16 + k] /= total;
      }
      auto w = product(
          8, 8, 16, [&](int r, int k) { return z[r * 16 + k]; }, [&](int k, int n) { return x[i * 128 + n * 16 + k]; });
      want.insert(want.end(), w.begin(), w.end());
    }
    if (auto s = agree(tops.now(), wt, 1e-4, 1e-4); !s.empty()) return "tops: " + s;
    return agree(y.now(), want, 2e-2, 2e-2);
  };
  return j;
});

// --- least squares over many rows: A' W A and A' W b in f64, added up from parts of the rows; and how often each
// weight
struct Normal {
  int ROWS = 64, N = 16, PARTS = 4;
};
auto normal_sums =
    kernel("user_normal_sums", [](const Normal& c, Tensor<const float, 2> a, Tensor<const uint8_t, 1> weight,
                                  Tensor<double, 2> sums, Tensor<int64_t, 1> counts) {
      Tile acc = zeros({c.N, c.N}, f64), seen = zeros({8}, i32);
      for (auto r : range(program_id(0) * c.ROWS, a.dim(0), num_programs(0) * c.ROWS)) {
        Tile x = cast(a.load({r, 0}, {c.ROWS, c.N}), f64), w = weight.load({r}, {c.ROWS});
        acc = dot(trans(x), x * cast(w, f64).col(), acc);
        seen += histogram(cast(w, i32), 8, {.mask = r + arange(0, c.ROWS) < a.dim(0)});
      }
      sums.atomic_add({0, 0}, acc);
      counts.atomic_add({0}, cast(seen, i64));
    }).grid([](const Normal& c, const auto&, const auto&, const auto&, const auto&) { return Grid{c.PARTS}; });
Register b6("normal_sums", [](Env& e) {
  const int R = e.big ? 1 << 22 : 500, N = 13;
  auto a = random<float>(e, size_t(R) * N);
  auto w = integers<uint8_t>(e, R, 0, 6);
  auto sums = constant<double>(e, N * N, 0.5);
  auto counts = constant<int64_t>(e, 8, int64_t(1) << 20);
  Job j;
  restore(e, j, sums, counts);
  j.add(normal_sums, Normal{64, 16, e.field("PARTS", e.big ? 528 : 4)}, a.view(R, N), w.view(R), sums.view(N, N),
        counts.view(8));
  j.mbytes = double(R) * (N * 4 + 1) * 1e-6;
  j.check = [=]() -> std::string {
    std::vector<double> ws(N * N, 0.5), wc(8, 1 << 20);
    for (int r = 0; r < R; ++r) {
      wc[w.h[r]] += 1;
      for (int i = 0; i < N * N; ++i) ws[i] += a[r * N + i / N] * w[r] * a[r * N + i % N];
    }
    if (auto s = agree(counts.now(), wc, 0.1, 0); !s.empty()) return "counts: " + s;
    return agree(sums.now(), ws, 1e-12, 1e-12);
  };
  return j;
});

}  // namespace many_results
}  // namespace users
