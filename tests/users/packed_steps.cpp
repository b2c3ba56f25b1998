// packed_steps.cpp - models with a state over sequences packed one behind the other, with their libraries' variants of
// one kernel: sums within chunks, products of a chunk's tokens, gated norms both ways, drafted steps of the delta rule.
#include "tests/users/use.h"
namespace users {
namespace packed_steps {

/// Bounds of sequences that follow each other, and (sequence, chunk) of every chunk of `size` tokens.
struct Packed {
  std::vector<int> bounds{0}, chunks;
  Packed(std::vector<int> lengths, int size) {
    for (int n : lengths) {
      for (int c = 0; c * size < n; ++c) chunks.push_back(int(bounds.size()) - 1), chunks.push_back(c);
      bounds.push_back(bounds.back() + n);
    }
  }
};

// --- sums within chunks of BT tokens, from the front or the back, [batch, T, heads, S]
struct LocalCfg {
  int BT = 64, BS = 32, REVERSE = 0, SCALE = 0, VARLEN = 0;
};
auto chunk_sums =
    kernel("user_chunk_sums",
           [](const LocalCfg& c, Ptr<const float> s, Ptr<float> o, F32 scale, Ptr<const int> bounds,
              Ptr<const int> chunks, I32 T, I32 H, I32 S, I32, I32) {
             auto is = program_id(0), ib = program_id(2) / H, ih = program_id(2) % H;
             Tile it = program_id(1), first = ib * T, n = T;
             if (c.VARLEN) {
               auto sequence = load(chunks + it * 2);
               it = load(chunks + it * 2 + 1);
               first = load(bounds + sequence);
               n = load(bounds + sequence + 1) - first;
             }
             auto in = make_view<const float>(s + (first * H + ih) * S, {n, S}, {H * S, 1});
             auto out = make_view<float>(o + (first * H + ih) * S, {n, S}, {H * S, 1});
             Tile sums = cumsum(in.load({it * c.BT, is * c.BS}, {c.BT, c.BS}), axis(0), {.reverse = c.REVERSE != 0});
             if (c.SCALE) sums *= scale;
             out.store({it * c.BT, is * c.BS}, sums);
           })
        .grid([](const LocalCfg& c, const float*, float*, float, const int*, const int*, int, int h, int s, int chunks,
                 int b) {
          return Grid{cdiv(s, c.BS), chunks, b * h};
        });
Register r1("local_sums", [](Env& e) {
  const int H = e.big ? 16 : 3, S = e.big ? 128 : 40, BT = 64, B = 2, L = e.big ? 8192 : 150;
  const Packed packed(e.big ? std::vector<int>(16, 1021) : std::vector<int>{70, 1, 64, 130, 35}, BT);
  const int total = packed.bounds.back(), rows = std::max(B * L, total);
  auto x = random<float>(e, size_t(rows) * H * S);
  auto bounds = repeated<int>(e, packed.bounds.size(), packed.bounds);
  auto chunks = repeated<int>(e, packed.chunks.size(), packed.chunks);
  std::array<Array<float>, 4> o;
  Job j;
  j.mbytes = double(rows) * H * S * 8e-6;
  for (int v = 0; v < 4; ++v) {
    o[v] = constant<float>(e, size_t(rows) * H * S, 0);
    const LocalCfg c{BT, e.field("BS", 32), v & 1, v >> 1, v >> 1};
    if (c.VARLEN)
      j.add(chunk_sums, c, x.p, o[v].p, .5f, bounds.p, chunks.p, total, H, S, int(packed.chunks.size() / 2), 1);
    else
      j.add(chunk_sums, c, x.p, o[v].p, .5f, nullptr, nullptr, L, H, S, cdiv(L, BT), B);
  }
  j.check = [=] {
    for (int v = 0; v < 4; ++v) {
      std::vector<double> want(size_t(rows) * H * S);
      auto sequence = [&](int begin, int end) {
        for (int t0 = begin; t0 < end; t0 += BT)
          for (int i = 0; i < H * S; ++i) {
            double sum = 0;
            const int n = std::min(BT, end - t0);
            for (int k = 0; k < n; ++k) {
              const size_t at = size_t(v & 1 ? t0 + n - 1 - k : t0 + k) * H * S + i;
              sum += x[at], want[at] = sum * (v >> 1 ? .5 : 1);
            }
          }
      };
      if (v >> 1)
        for (size_t n = 0; n + 1 < packed.bounds.size(); ++n) sequence(packed.bounds[n], packed.bounds[n + 1]);
      else
        for (int b = 0; b < B; ++b) sequence(b * L, (b + 1) * L);
      const auto wrong = agree(o[v].now(), want, 2e-5, 1e-5);
      if (!wrong.empty()) return "variant " + std::to_string(v) + ": " + wrong;
    }
    return std::string();
  };
  return j;
});

// --- products of a chunk's tokens with each other, C B^T per group; 0 between tokens of different sequences, and
// blocks above the diagonal are left out. Strides of all dims are arguments.
struct PairsCfg {
  int BM = 64, BN = 64, BK = 64, CAUSAL = 1, SEQ = 0, stages = 3;
};
auto chunk_pairs =
    kernel("user_chunk_pairs",
           [](const PairsCfg& c, Ptr<const bfloat16> a, Ptr<const bfloat16> b, Ptr<float> out, Ptr<const int> sequence,
              I32 T, I32 size, I32 K, I32 G, I64 at, I64 ag, I64 ak, I64 bt, I64 bg, I64 bk, I64 oc, I64 og, I64 om,
              I64 on, I32) {
             auto chunk = cast(program_id(1) / G, i64), g = cast(program_id(1) % G, i64);
             auto blocks = (size + c.BN - 1) / c.BN;
             auto m = program_id(0) / blocks, n = program_id(0) % blocks;
             if (c.CAUSAL) return_if(n * c.BN >= (m + 1) * c.BM);
             auto rows = m * c.BM + arange(0, c.BM), columns = n * c.BN + arange(0, c.BN), k = arange(0, c.BK);
             auto from = chunk * cast(size, i64);
             auto left = min(size, T - cast(chunk, i32) * size);
             auto pa = a + (from * at + g * ag) + (cast(rows, i64).col() * at + cast(k, i64).row() * ak);
             auto pb = b + (from * bt + g * bg) + (cast(k, i64).col() * bk + cast(columns, i64).row() * bt);
             Tile acc = zeros({c.BM, c.BN}, f32);
             for (auto step : range(0, cdiv(K, c.BK), 1, {.stages = c.stages})) {
               auto there = k < K - step * c.BK;
               auto x = load(pa + cast(step, i64) * c.BK * ak, {.mask = (rows < left).col() & there.row()});
               auto y = load(pb + cast(step, i64) * c.BK * bk, {.mask = there.col() & (columns < left).row()});
               acc = dot(x, y, acc);
             }
             if (c.SEQ) {
               auto one = load(sequence + (cast(chunk, i32) * size + rows), {.mask = rows < left, .other = -1});
               auto two = load(sequence + (cast(chunk, i32) * size + columns), {.mask = columns < left, .other = -2});
               acc = where(one.col() == two.row(), acc, 0.f);
             }
             auto po = out + (chunk * oc + g * og) + (cast(rows, i64).col() * om + cast(columns, i64).row() * on);
             store(po, acc, {.mask = (rows < size).col() & (columns < size).row()});
           })
        .grid([](const PairsCfg& c, const bfloat16*, const bfloat16*, float*, const int*, int, int size, int, int g,
                 int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int chunks) {
          return Grid{cdiv(size, c.BM) * cdiv(size, c.BN), chunks * g};
        });
Register r2("chunk_pairs", [](Env& e) {
  const int size = e.big ? 256 : 80, chunks = e.big ? 64 : 3, T = (chunks - 1) * size + (e.big ? size : 33),
            G = e.big ? 8 : 2, K = e.big ? 128 : 72;
  auto a = random<bfloat16>(e, size_t(T) * G * K), b = random<bfloat16>(e, size_t(T) * G * K);
  auto sequence = filled<int>(e, T, [&](size_t i) { return int(i / 47); });
  auto out = constant<float>(e, size_t(chunks) * G * size * size, 0), seq = constant<float>(e, out.n, 0);
  Job j;
  j.gflop = 2e-9 * chunks * G * size * size * K;
  for (int v = 0; v < 2; ++v)
    j.add(chunk_pairs, {e.field("BM", 64), e.field("BN", 64), e.field("BK", 64), v, v, e.field("stages", 3)}, a.p, b.p,
          v ? seq.p : out.p, v ? sequence.p : nullptr, T, size, K, G, int64_t(G) * K, K, 1, int64_t(G) * K, K, 1,
          int64_t(G) * size * size, int64_t(size) * size, size, 1, chunks);
  const int BM = e.field("BM", 64), BN = e.field("BN", 64);
  j.check = [=] {
    std::vector<double> want(out.n), masked(out.n);
    for (int c = 0; c < chunks; ++c)
      for (int g = 0; g < G; ++g)
        for (int m = 0; m < size; ++m)
          for (int n = 0; n < size; ++n) {
            const int x = c * size + m, y = c * size + n;
            if (x >= T || y >= T) continue;
            double sum = 0;
            for (int k = 0; k < K; ++k) sum += a[(size_t(x) * G + g) * K + k] * b[(size_t(y) * G + g) * K + k];
            const size_t o = ((size_t(c) * G + g) * size + m) * size + n;
            want[o] = sum;
            const bool made = n / BN * BN < (m / BM + 1) * BM;
            masked[o] = made && sequence.at(x) == sequence.at(y) ? sum : 0;
          }
    auto wrong = agree(out.now(), want, 1e-4, 1e-4);
    return wrong.empty() ? agree(seq.now(), masked, 1e-4, 1e-4) : wrong;
  };
  return j;
});

// --- norms of groups of a row with a gate before or behind: y = norm(x) * silu(z), or norm(x * silu(z))
struct GatedCfg {
  int N = 512, GATE = 1, NORM_FIRST = 0, RMS = 1, BIAS = 0;
};
auto gated_norm =
    kernel("user_gated_norm",
           [](const GatedCfg& c, Ptr<const bfloat16> X, Ptr<bfloat16> Y, Ptr<const float> W, Ptr<const float> Bias,
              Ptr<const bfloat16> Z, Ptr<float> Mean, Ptr<float> Rstd, I64 xs, I64 ys, I64 zs, I32 M, F32 eps, I32) {
             auto row = cast(program_id(0), i64);
             auto g = program_id(1);
             auto at = arange(0, c.N), column = g * c.N + at;
             Tile x = cast(load(X + row * xs + column), f32);
             Tile z = zeros({c.N}, f32);
             if (c.GATE) z = cast(load(Z + row * zs + column), f32);
             if (c.GATE && !c.NORM_FIRST) x *= z * sigmoid(z);
             auto slot = cast(g * M, i64) + row;
             if (!c.RMS) {
               auto mean = sum(x) / float(c.N);
               store(Mean + slot, mean);
               x -= mean;
             }
             auto rstd = 1.f / sqrt(sum(x * x) / float(c.N) + eps);
             store(Rstd + slot, rstd);
             Tile y = x * rstd * load(W + column);
             if (c.BIAS) y += load(Bias + column);
             if (c.GATE && c.NORM_FIRST) y *= z * sigmoid(z);
             store(Y + row * ys + column, cast(y, bf16));
           })
        .grid([](const GatedCfg&, const auto*, auto*, const auto*, const auto*, const auto*, auto*, auto*, int64_t,
                 int64_t, int64_t, int m, float, int groups) {
          return Grid{m, groups};
        });
/// Gradients of the rows a program has, one behind the other; those of weights are one row per program.
auto gated_norm_back =
    kernel("user_gated_norm_back",
           [](const GatedCfg& c, Ptr<const bfloat16> X, Ptr<const float> W, Ptr<const float> Bias,
              Ptr<const bfloat16> Z, Ptr<const float> Mean, Ptr<const float> Rstd, Ptr<const bfloat16> DY,
              Ptr<bfloat16> DX, Ptr<bfloat16> DZ, Ptr<float> DW, I64 stride, I32 M, I32 rows, I32 groups) {
             auto block = program_id(0), g = program_id(1);
             auto column = g * c.N + arange(0, c.N);
             auto w = load(W + column);
             Tile dw = zeros({c.N}, f32);
             for (auto r : range(block * rows, min((block + 1) * rows, M))) {
               auto at = cast(r, i64) * stride + column;
               Tile x = cast(load(X + at), f32), dy = cast(load(DY + at), f32);
               Tile z = zeros({c.N}, f32), s = z, raw = x;
               if (c.GATE) z = cast(load(Z + at), f32), s = sigmoid(z);
               if (c.GATE && !c.NORM_FIRST) x *= z * s;
               auto rstd = load(Rstd + (g * M + r));
               auto xhat = (c.RMS ? x : x - load(Mean + (g * M + r))) * rstd;
               Tile dz = zeros({c.N}, f32);
               if (c.GATE && c.NORM_FIRST) {
                 auto y = c.BIAS ? Tile(xhat * w + load(Bias + column)) : Tile(xhat * w);
                 dz = dy * y * s * (1.f + z * (1.f - s));
                 dy *= z * s;
               }
               auto wdy = w * dy;
               auto c1 = sum(xhat * wdy) / float(c.N);
               Tile dx = (wdy - xhat * c1) * rstd;
               if (!c.RMS) dx -= sum(wdy) / float(c.N) * rstd;
               dw += dy * xhat;
               if (c.GATE && !c.NORM_FIRST) {
                 dz = dx * raw * s * (1.f + z * (1.f - s));
                 dx *= z * s;
               }
               if (c.GATE) store(DZ + at, cast(dz, bf16));
               store(DX + at, cast(dx, bf16));
             }
             store(DW + (block * (groups * c.N) + column), dw);
           })
        .grid([](const GatedCfg&, const auto*, const auto*, const auto*, const auto*, const auto*, const auto*,
                 const auto*, auto*, auto*, auto*, int64_t, int m, int rows, int groups) {
          return Grid{cdiv(m, rows), groups};
        });
Register r3("gated_norm", [](Env& e) {
  const int M = e.big ? 8192 : 13, G = e.big ? 8 : 3, N = e.field("N", e.big ? 512 : 96), D = G * N,
            rows = e.big ? 64 : 4, blocks = cdiv(M, rows);
  auto x = random<bfloat16>(e, size_t(M) * D), z = random<bfloat16>(e, size_t(M) * D, -2, 2),
       dy = random<bfloat16>(e, size_t(M) * D);
  auto w = random<float>(e, D, .5, 1.5), bias = random<float>(e, D);
  struct Out {
    Array<bfloat16> y, dx, dz;
    Array<float> mean, rstd, dw;
  };
  std::array<Out, 2> out;
  Job j;
  j.mbytes = double(M) * D * 16e-6 * 2;
  for (int v = 0; v < 2; ++v) {
    auto& o = out[v];
    o.y = constant<bfloat16>(e, x.n, NAN), o.dx = constant<bfloat16>(e, x.n, NAN),
    o.dz = constant<bfloat16>(e, x.n, NAN);
    o.mean = constant<float>(e, size_t(M) * G, 0), o.rstd = constant<float>(e, size_t(M) * G, NAN);
    o.dw = constant<float>(e, size_t(blocks) * D, NAN);
    const GatedCfg c{N, 1, v, 1 - v, v};
    j.add(gated_norm, c, x.p, o.y.p, w.p, bias.p, z.p, o.mean.p, o.rstd.p, D, D, D, M, 1e-5f, G);
    j.add(gated_norm_back, c, x.p, w.p, bias.p, z.p, o.mean.p, o.rstd.p, dy.p, o.dx.p, o.dz.p, o.dw.p, D, M, rows, G);
  }
  j.check = [=] {
    for (int v = 0; v < 2; ++v) {
      std::vector<double> y(x.n), dx(x.n), dz(x.n), dw(size_t(blocks) * D);
      for (int m = 0; m < M; ++m)
        for (int g = 0; g < G; ++g) {
          const size_t at = size_t(m) * D + size_t(g) * N;
          auto silu = [&](int i) { return z[at + i] / (1 + std::exp(-z[at + i])); };
          std::vector<double> in(N), d(N);
          double mean = 0, square = 0, c1 = 0, c2 = 0;
          for (int i = 0; i < N; ++i) mean += (in[i] = x[at + i] * (v ? 1 : silu(i))) / N;
          for (int i = 0; i < N; ++i) in[i] -= v ? mean : 0, square += in[i] * in[i] / N;
          const double r = 1 / std::sqrt(square + 1e-5);
          for (int i = 0; i < N; ++i) {
            const double h = in[i] * r;
            y[at + i] = (h * w[g * N + i] + (v ? bias[g * N + i] : 0)) * (v ? silu(i) : 1);
            d[i] = dy[at + i] * (v ? silu(i) : 1);
            dw[size_t(m / rows) * D + g * N + i] += d[i] * h;
            c1 += h * d[i] * w[g * N + i] / N, c2 += d[i] * w[g * N + i] / N;
          }
          for (int i = 0; i < N; ++i) {
            const double s = 1 / (1 + std::exp(-z[at + i])), slope = s * (1 + z[at + i] * (1 - s)), h = in[i] * r;
            const double back = (d[i] * w[g * N + i] - h * c1 - (v ? c2 : 0)) * r;
            dx[at + i] = back * (v ? 1 : silu(i));
            dz[at + i] = slope * (v ? dy[at + i] * (h * w[g * N + i] + bias[g * N + i]) : back * x[at + i]);
          }
        }
      auto wrong = agree(out[v].y.now(), y, 1e-3, 5e-3);
      if (wrong.empty()) wrong = agree(out[v].dx.now(), dx, 3e-3, 5e-3);
      if (wrong.empty()) wrong = agree(out[v].dz.now(), dz, 3e-3, 5e-3);
      if (wrong.empty()) wrong = agree(out[v].dw.now(), dw, 1e-3, 1e-3);
      if (!wrong.empty()) return "variant " + std::to_string(v) + ": " + wrong;
    }
    return std::string();
  };
  return j;
});

// --- steps of the gated delta rule over drafted tokens: the state of the last accepted token is where a list says, -1
// is a request that is not there, and every token's state is kept, as nobody knows yet which will be accepted
struct DraftCfg {
  int K = 64, BV = 8, NORM = 1, SPEC = 1;
};
auto draft_steps =
    kernel("user_draft_steps",
           [](const DraftCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k, Ptr<const bfloat16> v,
              Ptr<const float> g, Ptr<const float> beta, Ptr<bfloat16> o, Ptr<float> pool, Ptr<const int> bounds,
              Ptr<const int> slots, Ptr<const int> accepted, F32 scale, I32 H, I32 HV, I32 V, I32 drafts, I32) {
             num_warps(1);
             auto iv = program_id(0), n = program_id(1) / HV, hv = program_id(1) % HV, h = hv / (HV / H);
             auto first = load(bounds + n), length = load(bounds + n + 1) - first;
             return_if(length == 0);
             auto kk = arange(0, c.K), vv = iv * c.BV + arange(0, c.BV);
             auto there = vv < V;
             auto one = cast((hv * V + vv) * c.K, i64).col() + cast(kk, i64).row();
             auto whole = cast(HV * V, i64) * c.K;
             Tile last = load(slots + n * drafts);
             if (c.SPEC) last = load(slots + n * drafts + load(accepted + n) - 1);
             return_if(last < 0);
             Tile state = load(pool + cast(last, i64) * whole + one, {.mask = there.col()});
             for (auto t : range(0, length)) {
               auto token = first + t;
               Tile bq = cast(load(q + ((token * H + h) * c.K + kk)), f32),
                    bk = cast(load(k + ((token * H + h) * c.K + kk)), f32);
               Tile bv = cast(load(v + ((token * HV + hv) * V + vv), {.mask = there}), f32);
               if (c.NORM) {
                 bq /= sqrt(sum(bq * bq) + 1e-6f);
                 bk /= sqrt(sum(bk * bk) + 1e-6f);
               }
               bq *= scale;
               state *= exp(load(g + (token * HV + hv)));
               bv -= squeeze(sum(state * bk.row(), axis(1)), 1);
               bv *= load(beta + (token * HV + hv));
               state += bv.col() * bk.row();
               store(o + ((token * HV + hv) * V + vv), cast(squeeze(sum(state * bq.row(), axis(1)), 1), bf16),
                     {.mask = there});
               auto slot = load(slots + n * drafts + t);
               for (auto _ : when(slot >= 0)) store(pool + cast(slot, i64) * whole + one, state, {.mask = there.col()});
             }
           })
        .grid([](const DraftCfg& c, const auto*, const auto*, const auto*, const auto*, const auto*, auto*, auto*,
                 const auto*, const auto*, const auto*, float, int, int hv, int v, int, int n) {
          return Grid{cdiv(v, c.BV), n * hv};
        });
Register r4("drafted_states", [](Env& e) {
  const int N = e.big ? 64 : 5, H = e.big ? 16 : 2, HV = e.big ? 32 : 4, K = e.big ? 128 : 64, V = e.big ? 128 : 21,
            drafts = 4;
  std::vector<int> bounds{0}, slots, accepted;
  for (int n = 0; n < N; ++n) {
    bounds.push_back(bounds.back() + (e.big ? drafts : n == 1 ? 0 : 1 + n % drafts));
    accepted.push_back(1 + n * 3 % drafts);
    for (int t = 0; t < drafts; ++t) slots.push_back(n == 3 ? -1 : (n * drafts + (t * 3 + n) % drafts));
  }
  const int T = bounds.back();
  auto q = random<bfloat16>(e, size_t(T) * H * K), k = random<bfloat16>(e, size_t(T) * H * K),
       v = random<bfloat16>(e, size_t(T) * HV * V);
  auto g = random<float>(e, size_t(T) * HV, -1, 0), beta = random<float>(e, size_t(T) * HV, 0, 1);
  auto pool = random<float>(e, size_t(N) * drafts * HV * V * K);
  auto o = constant<bfloat16>(e, size_t(T) * HV * V, 0);
  auto at = repeated<int>(e, bounds.size(), bounds), list = repeated<int>(e, slots.size(), slots),
       taken = repeated<int>(e, N, accepted);
  Job j;
  restore(e, j, pool);
  j.mbytes = double(N) * HV * V * K * 4e-6 * (1 + drafts);
  j.add(draft_steps, {K, e.field("BV", 8), 1, 1}, q.p, k.p, v.p, g.p, beta.p, o.p, pool.p, at.p, list.p, taken.p, .125f,
        H, HV, V, drafts, N);
  j.check = [=] {
    std::vector<double> want(o.n), states(pool.n);
    for (size_t i = 0; i < pool.n; ++i) states[i] = pool[i];
    for (int n = 0; n < N; ++n) {
      const int last = slots[n * drafts + accepted[n] - 1];
      if (bounds[n] == bounds[n + 1] || last < 0) continue;
      std::vector<double> s(states.begin() + size_t(last) * HV * V * K, states.begin() + size_t(last + 1) * HV * V * K);
      for (int t = bounds[n]; t < bounds[n + 1]; ++t) {
        for (int r = 0; r < HV * V; ++r) {
          const int hv = r / V;
          const size_t in = (size_t(t) * H + hv / (HV / H)) * K;
          double nq = 1e-6, nk = 1e-6, was = 0, out = 0;
          for (int i = 0; i < K; ++i) nq += q[in + i] * q[in + i], nk += k[in + i] * k[in + i];
          for (int i = 0; i < K; ++i)
            was += (s[size_t(r) * K + i] *= std::exp(g[size_t(t) * HV + hv])) * k[in + i] / std::sqrt(nk);
          const double d = (v[size_t(t) * HV * V + r] - was) * beta[size_t(t) * HV + hv];
          for (int i = 0; i < K; ++i)
            out += (s[size_t(r) * K + i] += d * k[in + i] / std::sqrt(nk)) * q[in + i] / std::sqrt(nq) * .125;
          want[size_t(t) * HV * V + r] = out;
        }
        std::copy(s.begin(), s.end(), states.begin() + size_t(slots[n * drafts + t - bounds[n]]) * HV * V * K);
      }
    }
    auto wrong = agree(o.now(), want, 2e-3, 5e-3);
    return wrong.empty() ? agree(pool.now(), states, 1e-4, 1e-4) : wrong;
  };
  return j;
});

}  // namespace packed_steps
}  // namespace users
