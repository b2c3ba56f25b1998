// stable_states.cpp - recurrences in parts: gradients of decays as sums of sums, several reflections of a state at
// every token.
#include "tests/users/use.h"
namespace users {
namespace stable_states {

// --- gradients of the summed decays inside a chunk (Mamba-2), without differences of large sums: products of rows and
// columns of a chunk, weighed, summed along rows behind every column, then over rows; blocks behind the diagonal are 0
struct Decay {
  int BM = 32, BN = 32, P = 64, CHUNK = 256, warps = 4;
};
auto decay_sums =
    kernel("user_decay_sums",
           [](const Decay& c, Ptr<const half> x, Ptr<const float> dt, Ptr<const float> sums, Ptr<const half> dout,
              Ptr<const half> cb, Ptr<float> out, I32 L, I32 H, I32 G) {
             // x, dout [B, L, H, P]; dt, sums [B, H, chunks, CHUNK]; cb [B, chunks, G, CHUNK, CHUNK];
             // out [B, H, chunks, CHUNK / BM, CHUNK]
             num_warps(c.warps);
             auto pm = program_id(0), h = program_id(2);
             auto chunks = cdiv(L, c.CHUNK);
             auto b = program_id(1) / chunks, chunk = program_id(1) % chunks;
             auto g = h / (H / G);
             Tile m = pm * c.BM + arange(0, c.BM), n = arange(0, c.BN), p = arange(0, c.P);
             Tile token0 = cast(b * L + chunk * c.CHUNK, i64);
             auto row = ((cast(b, i64) * H + h) * chunks + chunk) * c.CHUNK;
             auto xs = x + ((token0 + n).row() * (H * c.P) + h * c.P + p.col());
             auto douts = dout + ((token0 + m).col() * (H * c.P) + h * c.P + p.row());
             auto dts = dt + row + n, sums_n = sums + row + n;
             auto cbs =
                 cb + ((cast(b * chunks + chunk, i64) * G + g) * (c.CHUNK * c.CHUNK) + m.col() * c.CHUNK + n.row());
             auto outs = out + row * (c.CHUNK / c.BM) + pm * c.CHUNK;
             Tile limit = min(c.CHUNK, L - chunk * c.CHUNK);
             Tile rowsum = zeros({c.BM, 1}, f32);
             Tile d = load(douts, {.mask = (m < limit).col()});
             Tile sums_m = load(sums + row + m, {.mask = m < limit}).col();
             Tile hi = (pm + 1) * c.BM;
             store(outs, 0.f);
             for (auto start : range(0, hi, c.BN)) {
               Tile a = load(xs, {.mask = (n < limit - start).row()});
               Tile acc = dot(d, a);
               acc *= load(dts, {.mask = n < limit - start}).row();
               acc *= cast(load(cbs, {.mask = (m < limit).col() & (n < limit - start).row()}), f32);
               acc *= exp(sums_m - load(sums_n, {.mask = n < limit - start}).row());
               Tile below = m.col() >= (start + n + 1).row();
               acc = where(below, acc, 0.f);
               Tile next = rowsum + sum(acc, axis(1));
               acc = where(below, rowsum + cumsum(acc, axis(1)), 0.f);
               rowsum = next;
               store(outs + (start + n + 1), squeeze(sum(acc, axis(0)), 0), {.mask = n < c.CHUNK - start - 1});
               xs += c.BN * H * c.P, dts += c.BN, sums_n += c.BN, cbs += c.BN;
             }
             for (auto start : range(hi, c.CHUNK, c.BN))
               store(outs + (start + n + 1), zeros({c.BN}, f32), {.mask = n < c.CHUNK - start - 1});
           })
        .grid([](const Decay& c, const half*, const float*, const float*, const half*, const half*, float* out, int,
                 int H, int) {
          return Grid{c.CHUNK / c.BM, 1, H};
        });
Register s1("decay_sums", [](Env& e) {
  Decay c;
  if (!e.big) c = {16, 16, 16, 64, 2};
  c.BM = c.BN = e.field("BM", c.BM), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 4 : 2, L = e.big ? 4096 : 101, H = e.big ? 64 : 4, G = e.big ? 1 : 2, P = c.P, C = c.CHUNK;
  const int chunks = cdiv(L, C);
  auto x = random<half>(e, size_t(B) * L * H * P), g = random<half>(e, x.n);
  auto dt = random<float>(e, size_t(B) * H * chunks * C, .1, 1);
  auto sums = filled<float>(e, dt.n, [&](size_t i) { return -.05f * float(i % C) - .001f * float(i % 7); });
  auto cb = random<half>(e, size_t(B) * chunks * G * C * C);
  auto out = constant<float>(e, dt.n * (C / c.BM), NAN);
  Job j;
  const Grid grid{C / c.BM, B * chunks, H};
  j.steps.push_back(
      {"user_decay_sums",
       [=](Stream& s) { return decay_sums.try_launch(s, c, grid, x.p, dt.p, sums.p, g.p, cb.p, out.p, L, H, G); },
       [=](const std::string& target) {
         return decay_sums.compile_for(target, c, x.p, dt.p, sums.p, g.p, cb.p, out.p, L, H, G);
       }});
  j.gflop = 1e-9 * B * H * double(L) * C * P;
  j.mbytes = 4e-6 * x.n;
  j.check = [=] {
    std::vector<double> want(out.n);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int k = 0; k < chunks; ++k)
          for (int m = 0; m < std::min(C, L - k * C); ++m) {
            const size_t row = ((size_t(b) * H + h) * chunks + k) * C;
            double total = 0;
            for (int n = 0; n < m; ++n) {
              double s = 0;
              for (int p = 0; p < P; ++p)
                s +=
                    g[((size_t(b) * L + k * C + m) * H + h) * P + p] * x[((size_t(b) * L + k * C + n) * H + h) * P + p];
              const size_t at = ((size_t(b) * chunks + k) * G + h / (H / G)) * C * C + size_t(m) * C + n;
              total += s * dt[row + n] * cb[at] * std::exp(double(sums[row + m]) - sums[row + n]);
              want[row * (C / c.BM) + size_t(m / c.BM) * C + n + 1] += total;
            }
          }
    return agree(out.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- a gated delta product (DeltaProduct): a state decays, then is reflected R times at every token, by keys of their
// own; sequences are packed, states come and go
struct Reflections {
  int K = 128, BV = 16, R = 3;
  bool norm = true, gate = true, initial = true, final = true;
  int warps = 1;
};
auto delta_product = kernel(
    "user_delta_product", [](const Reflections& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k, Ptr<const bfloat16> v,
                             Ptr<const float> g, Ptr<const bfloat16> beta, Ptr<bfloat16> o, Ptr<const float> h0,
                             Ptr<float> ht, Ptr<const int64_t> starts, F32 scale, I32 H, I32 V) {
      num_warps(c.warps);
      auto iv = program_id(0), n = program_id(1) / H, h = program_id(1) % H;
      auto bos = load(starts + n), eos = load(starts + n + 1);
      Tile ok = arange(0, c.K), ov = iv * c.BV + arange(0, c.BV);
      Tile there = ov < V;
      auto pq = q + (bos * H + h) * c.K + ok, pk = k + (bos * c.R * H + h) * c.K + ok;
      auto pv = v + (bos * c.R * H + h) * V + ov, po = o + (bos * H + h) * V + ov;
      auto pg = g + (bos * H + h), pb = beta + (bos * c.R * H + h);
      auto at = (cast(n, i64) * H + h) * c.K * V + ok.col() * V + ov.row();
      Tile state = zeros({c.K, c.BV}, f32);
      if (c.initial) state += load(h0 + at, {.mask = there.row()});
      auto unit = [&](const Tile& x) { return c.norm ? x * rsqrt(sum(x * x) + 1e-6f) : x; };
      for (auto t : range(0, cast(eos - bos, i32))) {
        (void)t;
        Tile bq = unit(cast(load(pq), f32)) * scale;
        if (c.gate) state *= exp(load(pg));
        for (auto r : range(0, c.R)) {
          (void)r;
          Tile bk = unit(cast(load(pk), f32));
          Tile bv = cast(load(pv, {.mask = there}), f32);
          Tile b = cast(load(pb), f32);
          bv -= squeeze(sum(state * bk.col(), axis(0)), 0);
          bv *= b;
          state += bk.col() * bv.row();
          pk += H * c.K, pv += H * V, pb += H;
        }
        store(po, cast(squeeze(sum(state * bq.col(), axis(0)), 0), bf16), {.mask = there});
        pq += H * c.K, po += H * V, pg += H;
      }
      if (c.final) store(ht + at, state, {.mask = there.row()});
    });
Register s2("delta_product", [](Env& e) {
  Reflections c;
  if (!e.big) c.K = 32, c.BV = 8;
  c.warps = e.field("warps", c.warps), c.BV = e.field("BV", c.BV);
  const std::vector<int64_t> cu =
      e.big ? std::vector<int64_t>{0, 1024, 2048, 4096, 8192} : std::vector<int64_t>{0, 7, 7, 8, 31};
  const int N = int(cu.size()) - 1, T = int(cu.back()), H = e.big ? 16 : 2, K = c.K, V = e.big ? 128 : 13, R = c.R;
  auto q = random<bfloat16>(e, size_t(T) * H * K), k = random<bfloat16>(e, size_t(T) * R * H * K),
       v = random<bfloat16>(e, size_t(T) * R * H * V), beta = random<bfloat16>(e, size_t(T) * R * H, 0, 1);
  auto g = random<float>(e, size_t(T) * H, -.5, 0), h0 = random<float>(e, size_t(N) * H * K * V);
  auto o = constant<bfloat16>(e, size_t(T) * H * V, NAN);
  auto ht = constant<float>(e, h0.n, NAN);
  auto starts = repeated<int64_t>(e, cu.size(), cu);
  const float scale = 1 / std::sqrt(float(K));
  const Grid grid{cdiv(V, c.BV), N * H};
  Job j;
  j.steps.push_back({"user_delta_product",
                     [=](Stream& s) {
                       return delta_product.try_launch(s, c, grid, q.p, k.p, v.p, g.p, beta.p, o.p, h0.p, ht.p,
                                                       starts.p, scale, H, V);
                     },
                     [=](const std::string& target) {
                       return delta_product.compile_for(target, c, q.p, k.p, v.p, g.p, beta.p, o.p, h0.p, ht.p,
                                                        starts.p, scale, H, V);
                     }});
  j.check = [=]() -> std::string {
    std::vector<double> wo(o.n), wh(ht.n);
    for (int n = 0; n < N; ++n)
      for (int h = 0; h < H; ++h) {
        auto unit = [&](const auto& a, size_t at) {
          std::vector<double> x(K);
          double s = 1e-6;
          for (int i = 0; i < K; ++i) s += a[at + i] * a[at + i];
          for (int i = 0; i < K; ++i) x[i] = a[at + i] / std::sqrt(s);
          return x;
        };
        std::vector<double> S(size_t(K) * V);
        const size_t base = (size_t(n) * H + h) * K * V;
        for (size_t i = 0; i < S.size(); ++i) S[i] = h0[base + i];
        for (int64_t t = cu[n]; t < cu[n + 1]; ++t) {
          for (double& s : S) s *= std::exp(g[t * H + h]);
          for (int r = 0; r < R; ++r) {
            const size_t at = (size_t(t) * R + r) * H + h;
            const auto key = unit(k, at * K);
            for (int x = 0; x < V; ++x) {
              double s = v[at * V + x];
              for (int i = 0; i < K; ++i) s -= S[size_t(i) * V + x] * key[i];
              for (int i = 0; i < K; ++i) S[size_t(i) * V + x] += key[i] * s * beta[at];
            }
          }
          const auto query = unit(q, (t * H + h) * K);
          for (int x = 0; x < V; ++x)
            for (int i = 0; i < K; ++i) wo[(t * H + h) * V + x] += S[size_t(i) * V + x] * query[i] * scale;
        }
        for (size_t i = 0; i < S.size(); ++i) wh[base + i] = S[i];
      }
    if (auto bad = agree(o.now(), wo, 5e-3, 5e-3); !bad.empty()) return bad;
    if (auto bad = agree(ht.now(), wh, 1e-3, 1e-3); !bad.empty()) return "state: " + bad;
    return "";
  };
  return j;
});
}  // namespace stable_states
}  // namespace users
