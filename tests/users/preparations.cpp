// preparations.cpp - what stands before and between products in engines and libraries: rows quantised to MXFP4, rotary
// embeddings with three kinds of positions, logits with penalties, running maxima with their places, places of what is
// not zero, attention to a neighbourhood in two dims, lines of a picture (Hough), a wavelet transform by lifting.
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace preparations {

struct RowCfg {
  int B = 1024, warps = 4;
};

// --- rows to e2m1 with a power of two per 32, as the OCP specification rounds
struct QuantCfg {
  int R = 4, K = 1024, warps = 4;
};
auto mx_quantize =
    kernel("user_mx_quantize", [](const QuantCfg& c, Tensor<const bfloat16, 2> X, Tensor<uint8_t, 2> Q,
                                  Tensor<uint8_t, 2> S) {
      num_warps(c.warps);
      auto r = program_id(0) * c.R, k = program_id(1) * c.K;
      auto x = reshape(cast(X.load({r, k}, {c.R, c.K}), f32), {c.R, c.K / 32, 32});
      auto most = max(abs(x), axis(2));
      auto exponent =
          max(cast(bitcast(most, u32) >> 23, i32) - 2, 0);  // of the largest power of two in it, less that of 6
      auto inverse = bitcast(cast(254 - exponent, u32) << 23, f32);
      auto v = abs(x) * inverse;
      // Halves go to the number whose last bit is 0.
      Tile code = cast(v > .25f, u32) + cast(v >= .75f, u32) + cast(v > 1.25f, u32) + cast(v >= 1.75f, u32) +
                  cast(v > 2.5f, u32) + cast(v >= 3.5f, u32) + cast(v > 5.f, u32);
      code = code | (bitcast(x, u32) >> 31) << 3;
      auto [low, high] = split(reshape(code, {c.R, c.K / 2, 2}));
      Q.store({r, k / 2}, cast(low | high << 4, u8));
      S.store({r, k / 32}, cast(squeeze(exponent, 2), u8));
    }).grid([](const QuantCfg& c, const auto& x, const auto&...) {
      return Grid{cdiv(x.shape[0], c.R), cdiv(x.shape[1], c.K)};
    });
Register r1("mx_quantize", [](Env& e) {
  const int M = e.big ? 16384 : 13, K = e.big ? 4096 : 256;
  auto x = random<bfloat16>(e, size_t(M) * K, -3, 3);
  auto q = filled<uint8_t>(e, size_t(M) * K / 2, [](size_t) { return uint8_t(1); });
  auto s = filled<uint8_t>(e, size_t(M) * K / 32, [](size_t) { return uint8_t(1); });
  Job j;
  j.mbytes = 1e-6 * M * K * (2 + .5 + 1 / 32.);
  j.add(mx_quantize, QuantCfg{e.field("R", 4), e.field("K", e.big ? 1024 : 128), e.field("warps", 4)}, x.view(M, K),
        q.view(M, K / 2), s.view(M, K / 32));
  j.check = [=]() -> std::string {
    const double values[8] = {0, .5, 1, 1.5, 2, 3, 4, 6};
    const auto codes = q.now(), scales = s.now();
    for (size_t g = 0; g < size_t(M) * K / 32; ++g) {
      double most = 0;
      for (int i = 0; i < 32; ++i) most = std::max(most, std::abs(x[g * 32 + i]));
      const int exponent = most > 0 ? std::ilogb(most) - 2 : -127;
      if (scales[g] != exponent + 127) return "factor " + std::to_string(g);
      for (int i = 0; i < 32; ++i) {
        const double v = std::abs(x[g * 32 + i]) / std::exp2(exponent);
        int best = 0;
        for (int k = 1; k < 8; ++k) {
          const double now = std::abs(values[k] - v), before = std::abs(values[best] - v);
          if (now < before || (now == before && k % 2 == 0)) best = k;
        }
        best |= std::signbit(x[g * 32 + i]) << 3;
        const size_t at = g * 32 + i;
        if ((codes[at / 2] >> (at % 2 * 4) & 15) != best) return "element " + std::to_string(at);
      }
    }
    return "";
  };
  return j;
});

// --- rotary embedding of queries and keys with positions in time, height and width (Qwen2-VL), in place
struct RopeCfg {
  int D = 128, heads = 32, kv = 8, time = 16, height = 24, warps = 4;
};
auto mrope = kernel("user_mrope", [](const RopeCfg& c, Ptr<half> q, Ptr<half> k, Tensor<const float, 3> cosines,
                                     Tensor<const float, 3> sines) {
               // q [T, heads, D], k [T, kv, D], cosines and sines [3, T, D / 2]; pair d: time below 16, height below 16
               // + 24, width
               num_warps(c.warps);
               auto t = program_id(0);
               auto d = arange(0, c.D / 2);
               auto kind = where(d < c.time, 0, where(d < c.time + c.height, 1, 2));
               auto angle = [&](auto& table) {
                 return load(table.ptr() + (kind * cast(table.stride(0), i32) + t * (c.D / 2) + d)).row();
               };
               auto cs = angle(cosines), sn = angle(sines);
               auto turn = [&](const auto& p, int heads) {
                 auto at = (t * heads + arange(0, heads)).col() * c.D + d.row();
                 auto a = cast(load(p + at), f32), b = cast(load(p + (at + c.D / 2)), f32);
                 store(p + at, cast(a * cs - b * sn, f16));
                 store(p + (at + c.D / 2), cast(b * cs + a * sn, f16));
               };
               turn(q, c.heads);
               turn(k, c.kv);
             }).grid([](const RopeCfg&, half*, half*, const auto& table, const auto&) { return Grid{table.shape[1]}; });
Register r2("mrope", [](Env& e) {
  RopeCfg c;
  if (!e.big) c = {32, 4, 2, 4, 6, 1};
  c.warps = e.field("warps", c.warps);
  const int T = e.big ? 16384 : 19, half_d = c.D / 2;
  auto q = random<half>(e, size_t(T) * c.heads * c.D), k = random<half>(e, size_t(T) * c.kv * c.D);
  auto cosines = random<float>(e, size_t(3) * T * half_d), sines = random<float>(e, size_t(3) * T * half_d);
  Job j;
  j.mbytes = 4e-6 * T * (c.heads + c.kv) * c.D;
  j.add(mrope, c, q.p, k.p, cosines.view(3, T, half_d), sines.view(3, T, half_d));
  j.check = [=] {
    auto turned = [&](const Array<half>& x, int heads) {
      std::vector<double> want(size_t(T) * heads * c.D);
      for (int t = 0; t < T; ++t)
        for (int h = 0; h < heads; ++h)
          for (int d = 0; d < half_d; ++d) {
            const int kind = d < c.time ? 0 : d < c.time + c.height ? 1 : 2;
            const size_t at = (size_t(t) * heads + h) * c.D + d, angle = (size_t(kind) * T + t) * half_d + d;
            want[at] = x[at] * cosines[angle] - x[at + half_d] * sines[angle];
            want[at + half_d] = x[at + half_d] * cosines[angle] + x[at] * sines[angle];
          }
      return want;
    };
    const auto wrong = agree(q.now(), turned(q, c.heads), 1e-3, 1e-3);
    return wrong.empty() ? agree(k.now(), turned(k, c.kv), 1e-3, 1e-3) : wrong;
  };
  return j;
});

// --- logits in place: penalties for tokens that were there, a bias, a temperature, forbidden tokens from a mask of
// bits
auto penalties = kernel("user_penalties", [](const RowCfg& c, Ptr<float> logits, Tensor<const int32_t, 2> counts,
                                             Tensor<const uint32_t, 2> in_prompt, Tensor<const uint32_t, 2> allowed,
                                             Tensor<const float, 2> settings, I32 V) {
                   // logits, counts [B, V]; in_prompt, allowed [B, V / 32]; settings [B, 4]: repetition, frequency,
                   // presence, temperature
                   num_warps(c.warps);
                   auto b = program_id(1), v = program_id(0) * c.B;
                   auto i = v + arange(0, c.B);
                   auto bits = [&](auto& t) {
                     auto words = t.load({b, v / 32}, {1, c.B / 32});
                     return reshape((trans(words) >> cast(arange(0, 32), u32).row()) & 1u, {c.B}) != 0u;
                   };
                   auto setting = [&](int k) { return settings.load({b, k}); };
                   auto p = logits + (cast(b, i64) * cast(V, i64) + cast(i, i64));
                   Tile x = load(p, {.mask = i < V});
                   auto n = counts.load({b, v}, {1, c.B});
                   auto seen = reshape(n, {c.B});
                   x = where(bits(in_prompt) | (seen > 0), where(x > 0.f, x / setting(0), x * setting(0)), x);
                   x -= setting(1) * cast(seen, f32) + setting(2) * cast(seen > 0, f32);
                   x = where(bits(allowed), x / setting(3), -INFINITY);
                   store(p, x, {.mask = i < V});
                 }).grid([](const RowCfg& c, float*, const auto& n, const auto&...) {
  return Grid{cdiv(n.shape[1], c.B), n.shape[0]};
});
Register r3("penalties", [](Env& e) {
  const int B = e.big ? 256 : 3, V = e.big ? 151936 : 1952, words = V / 32;
  auto x = random<float>(e, size_t(B) * V, -5, 5);
  auto n = drawn<int32_t>(e, size_t(B) * V, [&] { return int32_t(std::max(0., 20 * e.uniform() - 16)); });
  auto word = [&] { return uint32_t(e.uniform() * 65536) << 16 | uint32_t(e.uniform() * 65536); };
  auto prompt = drawn<uint32_t>(e, size_t(B) * words, word), allowed = drawn<uint32_t>(e, size_t(B) * words, word);
  auto settings = random<float>(e, 4 * B, .5, 1.5);
  Job j;
  j.mbytes = 1e-6 * B * V * 12.25;
  j.add(penalties, RowCfg{e.field("B", e.big ? 2048 : 256), e.field("warps", 4)}, x.p, n.view(B, V),
        prompt.view(B, words), allowed.view(B, words), settings.view(B, 4), V);
  j.check = [=] {
    std::vector<double> want;
    for (int b = 0; b < B; ++b)
      for (int v = 0; v < V; ++v) {
        const size_t at = size_t(b) * V + v, w = size_t(b) * words + v / 32;
        double y = x[at];
        if ((prompt.h[w] >> v % 32 & 1) || n.h[at] > 0) y = y > 0 ? y / settings[4 * b] : y * settings[4 * b];
        y -= settings[4 * b + 1] * n.h[at] + settings[4 * b + 2] * (n.h[at] > 0);
        want.push_back(allowed.h[w] >> v % 32 & 1 ? y / settings[4 * b + 3] : -INFINITY);
      }
    return agree(x.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- running maxima of rows and where they were
struct ScanCfg {
  int R = 1, B = 2048, warps = 4;
};
auto cummax =
    kernel("user_cummax", [](const ScanCfg& c, Tensor<const float, 2> X, Tensor<float, 2> Y, Tensor<int64_t, 2> I) {
      num_warps(c.warps);
      auto r = program_id(0) * c.R;
      Tile most = full({c.R, 1}, -INFINITY, f32), place = zeros({c.R, 1}, i32);
      for (auto first : range(0, X.dim(1), c.B)) {
        auto x = X.load({r, first}, {c.R, c.B}, {.pad = -INFINITY});
        auto i = broadcast_to((first + arange(0, c.B)).row(), {c.R, c.B});
        auto [v, at] = scan({x, i}, axis(1), [](Tile a, Tile ia, Tile b, Tile ib) {
          auto later = b >= a;
          return std::tuple(where(later, b, a), where(later, ib, ia));
        });
        auto old = v < most;
        v = where(old, most, v), at = where(old, place, at);
        Y.store({r, first}, v);
        I.store({r, first}, cast(at, i64));
        most = extract(v, {0, c.B - 1}, {c.R, 1}), place = extract(at, {0, c.B - 1}, {c.R, 1});
      }
    }).grid([](const ScanCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.R)}; });
Register r4("cummax", [](Env& e) {
  const int M = e.big ? 4096 : 9, N = e.big ? 16384 : 1000;
  auto x = random<float>(e, size_t(M) * N), y = constant<float>(e, size_t(M) * N, NAN);
  auto at = filled<int64_t>(e, size_t(M) * N, [](size_t) { return int64_t{-1}; });
  Job j;
  j.mbytes = 16e-6 * M * N;
  j.add(cummax, ScanCfg{e.field("R", 1), e.field("B", e.big ? 2048 : 256), e.field("warps", 4)}, x.view(M, N),
        y.view(M, N), at.view(M, N));
  j.check = [=]() -> std::string {
    std::vector<double> want;
    const auto places = at.now();
    for (int m = 0; m < M; ++m) {
      int best = 0;
      for (int n = 0; n < N; ++n) {
        if (x[size_t(m) * N + n] >= x[size_t(m) * N + best]) best = n;
        want.push_back(x[size_t(m) * N + best]);
        if (places[size_t(m) * N + n] != best) return "place " + std::to_string(m) + ", " + std::to_string(n);
      }
    }
    return agree(y.now(), want, 0, 1e-9);
  };
  return j;
});

// --- coordinates of what is not zero: counts of blocks, their sums, places
auto nonzero_count =
    kernel("user_nonzero_count", [](const RowCfg& c, Tensor<const half, 1> X, Tensor<int32_t, 1> counts) {
      num_warps(c.warps);
      auto x = X.load({program_id(0) * c.B}, {c.B});
      counts.store({program_id(0)}, reshape(sum(cast(x != 0, i32)), {1}));
    }).grid([](const RowCfg& c, const auto& x, const auto&) { return Grid{cdiv(x.shape[0], c.B)}; });
auto nonzero_sums = kernel("user_nonzero_sums", [](const RowCfg& c, Ptr<int32_t> counts, Ptr<int32_t> total, I32 n) {
                      num_warps(c.warps);
                      Tile before = 0;
                      for (auto first : range(0, n, c.B)) {
                        auto i = first + arange(0, c.B);
                        auto v = load(counts + i, {.mask = i < n});
                        store(counts + i, before + cumsum(v, axis(0)) - v, {.mask = i < n});
                        before += sum(v);
                      }
                      store(total, before);
                    }).grid([](const RowCfg&, int32_t*, int32_t*, int) { return Grid{1}; });
auto nonzero_places =
    kernel("user_nonzero_places", [](const RowCfg& c, Tensor<const half, 1> X, Tensor<const int32_t, 1> before,
                                     Ptr<int64_t> out, I32 width) {
      num_warps(c.warps);
      auto first = program_id(0) * c.B;
      auto there = X.load({first}, {c.B}) != 0;
      auto place = before.load({program_id(0)}) + cumsum(cast(there, i32), axis(0)) - 1;
      auto i = first + arange(0, c.B);
      auto both = cast(join(i / width, i % width), i64);
      store(out + (cast(place, i64) * 2).col() + arange(0, 2).row(), both,
            {.mask = broadcast_to(there.col(), {c.B, 2})});
    }).grid([](const RowCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.B)}; });
Register r5("nonzero", [](Env& e) {
  const int n = e.big ? 1 << 25 : 5000, width = e.big ? 4096 : 100, B = e.field("B", e.big ? 2048 : 256);
  const int blocks = cdiv(n, B);
  auto x = drawn<half>(e, n, [&] { return half(std::max(0.f, float(e.uniform() - .7))); });
  auto counts = constant<int32_t>(e, blocks, 0), total = constant<int32_t>(e, 1, 0);
  auto out = filled<int64_t>(e, 2 * size_t(n), [](size_t) { return int64_t{-1}; });
  Job j;
  j.inTurn = true;
  j.mbytes = 1e-6 * n * (4 + .3 * 16);
  j.add(nonzero_count, RowCfg{B, 4}, x.view(n), counts.view(blocks));
  j.add(nonzero_sums, RowCfg{1024, 4}, counts.p, total.p, blocks);
  j.add(nonzero_places, RowCfg{B, 4}, x.view(n), counts.view(blocks), out.p, width);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    size_t found = 0;
    for (int i = 0; i < n; ++i)
      if (x[i] != 0) {
        if (got[2 * found] != i / width || got[2 * found + 1] != i % width) return "place " + std::to_string(found);
        ++found;
      }
    return total.now()[0] == int(found) ? "" : "another count";
  };
  return j;
});

// --- attention of every pixel to the 7 x 7 around it (kept inside the picture), a row of pixels at a time
struct NaCfg {
  int BX = 64, D = 32, window = 7, warps = 4;
};
auto neighbourhood =
    kernel("user_neighbourhood", [](const NaCfg& c, Tensor<const half, 4> Q, Tensor<const half, 4> K,
                                    Tensor<const half, 4> V, Tensor<half, 4> O, F32 scale) {
      // all [B, H, W, D]; a block of BX pixels of a row needs window rows of BX + window - 1 keys, in a box of 2 BX
      num_warps(c.warps);
      auto b = program_id(2), y = program_id(1), x = program_id(0) * c.BX;
      auto H = K.dim(1), W = K.dim(2);
      auto q = reshape(Q.load({b, y, x, 0}, {1, 1, c.BX, c.D}), {c.BX, c.D});
      const int near = c.window / 2, wide = 2 * c.BX;
      auto top = clamp(y - near, 0, H - c.window);
      auto left = clamp(x - near, 0, max(W - wide, 0));
      auto column = (x + arange(0, c.BX)).col();
      auto from = clamp(column - near, 0, W - c.window);
      auto key = (left + arange(0, wide)).row();
      auto inside = (key >= from) & (key < from + c.window);
      Tile acc = zeros({c.BX, c.D}, f32), most = full({c.BX, 1}, -INFINITY, f32), total = zeros({c.BX, 1}, f32);
      for (auto r : range(0, c.window)) {
        auto k = reshape(K.load({b, top + r, left, 0}, {1, 1, wide, c.D}), {wide, c.D});
        auto s = where(inside, dot(q, trans(k)) * (scale * 1.44269504f), -INFINITY);
        auto now = max(most, max(s, axis(1)));
        auto p = exp2(s - now), keep = exp2(most - now);
        acc = dot(cast(p, f16), reshape(V.load({b, top + r, left, 0}, {1, 1, wide, c.D}), {wide, c.D}), acc * keep);
        total = total * keep + sum(p, axis(1));
        most = now;
      }
      O.store({b, y, x, 0}, reshape(cast(acc / total, f16), {1, 1, c.BX, c.D}));
    }).grid([](const NaCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[2], c.BX), q.shape[1], q.shape[0]};
    });
Register r6("neighbourhood", [](Env& e) {
  const int B = e.big ? 32 : 2, H = e.big ? 56 : 9, W = e.big ? 128 : 40;
  NaCfg c{e.field("BX", e.big ? 64 : 16), e.big ? 64 : 16, 7, e.field("warps", 4)};
  const size_t n = size_t(B) * H * W * c.D;
  auto q = random<half>(e, n), k = random<half>(e, n), v = random<half>(e, n);
  auto o = constant<half>(e, n, NAN);
  Job j;
  j.mbytes = 8e-6 * n;
  j.add(neighbourhood, c, q.view(B, H, W, c.D), k.view(B, H, W, c.D), v.view(B, H, W, c.D), o.view(B, H, W, c.D), .5f);
  j.check = [=] {
    std::vector<double> want;
    auto at = [=](int b, int y, int x) { return ((size_t(b) * H + y) * W + x) * c.D; };
    for (int b = 0; b < B; ++b)
      for (int y = 0; y < H; ++y)
        for (int x = 0; x < W; ++x) {
          const int top = std::clamp(y - 3, 0, H - 7), left = std::clamp(x - 3, 0, W - 7);
          std::vector<double> p(49), out(c.D);
          double total = 0;
          for (int i = 0; i < 49; ++i) {
            for (int d = 0; d < c.D; ++d) p[i] += q[at(b, y, x) + d] * k[at(b, top + i / 7, left + i % 7) + d];
            total += p[i] = std::exp(.5 * p[i]);
          }
          for (int i = 0; i < 49; ++i)
            for (int d = 0; d < c.D; ++d) out[d] += p[i] / total * v[at(b, top + i / 7, left + i % 7) + d];
          want.insert(want.end(), out.begin(), out.end());
        }
    return agree(o.now(), want, 2e-3, 4e-3);
  };
  return j;
});

// --- Hough transform: every edge pixel votes for the lines through it
struct HoughCfg {
  int B = 64, angles = 180, warps = 4;
};
auto hough = kernel("user_hough", [](const HoughCfg& c, Tensor<const uint8_t, 2> edges, Tensor<int32_t, 2> votes,
                                     Tensor<const float, 2> directions) {
               // votes [angles, distances], directions [2, angles]
               num_warps(c.warps);
               auto y = program_id(1), x = program_id(0) * c.B;
               auto edge = reshape(edges.load({y, x}, {1, c.B}), {c.B, 1}) != 0;
               return_if(!any(edge));
               const int padded = 256;
               auto a = arange(0, padded).row();
               auto cs = directions.load({0, 0}, {1, padded}), sn = directions.load({1, 0}, {1, padded});
               auto r = cast((x + arange(0, c.B)).col(), f32) * cs + cast(y, f32) * sn;
               auto bin = cast(floor(r + .5f), i32) + votes.dim(1) / 2;
               auto ok = edge & (a < c.angles) & (bin >= 0) & (bin < votes.dim(1));
               atomic_add(votes.ptr() + (a * votes.dim(1) + bin), 1, {.mask = ok, .order = Order::relaxed});
             }).grid([](const HoughCfg& c, const auto& e, const auto&...) {
  return Grid{cdiv(e.shape[1], c.B), e.shape[0]};
});
Register r7("hough", [](Env& e) {
  const int H = e.big ? 1080 : 31, W = e.big ? 1920 : 57, D = 2 * (H + W) + 1;
  HoughCfg c{e.field("B", e.big ? 64 : 32), 180, e.field("warps", 4)};
  auto edges = drawn<uint8_t>(e, size_t(H) * W, [&] { return uint8_t(e.uniform() < .05); });
  auto votes = constant<int32_t>(e, size_t(c.angles) * D, 0);
  auto directions = filled<float>(e, 2 * c.angles, [=](size_t i) {
    const double a = double(i % c.angles) * M_PI / c.angles;
    return float(i < size_t(c.angles) ? std::cos(a) : std::sin(a));
  });
  Job j;
  j.mbytes = 1e-6 * H * W * .05 * 180 * 4;
  j.add(hough, c, edges.view(H, W), votes.view(c.angles, D), directions.view(2, c.angles));
  j.check = [=]() -> std::string {
    std::vector<int> want(size_t(c.angles) * D);
    int64_t apart = 0;
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x)
        for (int a = 0; edges.h[size_t(y) * W + x] && a < c.angles; ++a) {
          const double r = x * directions[a] + y * directions[c.angles + a];
          ++want[size_t(a) * D + int(std::floor(r + .5)) + D / 2];
        }
    const auto got = votes.now();
    int64_t all = 0;
    for (size_t i = 0; i < want.size(); ++i) apart += std::abs(want[i] - got[i]), all += want[i] - got[i];
    return all != 0 || apart > int64_t(c.angles) ? std::to_string(apart) + " votes differ" : "";
  };
  return j;
});

// --- CDF 9/7 wavelets of rows by lifting, the smooth half in front
struct WaveCfg {
  int R = 8, N = 1024, warps = 4;
};
auto dwt97 = kernel("user_dwt97", [](const WaveCfg& c, Tensor<const float, 2> X, Tensor<float, 2> Y) {
               num_warps(c.warps);
               auto r = program_id(0) * c.R;
               const int half_n = c.N / 2;
               auto [even, odd] = split(reshape(X.load({r, 0}, {c.R, c.N}), {c.R, half_n, 2}));
               Tile s = even, d = odd;
               auto i = broadcast_to(arange(0, half_n).row(), {c.R, half_n});
               auto next = [&](const Tile& v) { return take(v, min(i + 1, half_n - 1), 1); };  // mirrored at the ends
               auto last = [&](const Tile& v) { return take(v, max(i - 1, 0), 1); };
               d += -1.586134342f * (s + next(s));
               s += -.05298011854f * (d + last(d));
               d += .8829110762f * (s + next(s));
               s += .4435068522f * (d + last(d));
               Y.store({r, 0}, s * 1.149604398f);
               Y.store({r, half_n}, d * (1 / 1.149604398f));
             }).grid([](const WaveCfg& c, const auto& x, const auto&) { return Grid{cdiv(x.shape[0], c.R)}; });
Register r8("dwt97", [](Env& e) {
  const int M = e.big ? 32768 : 21, N = e.big ? 2048 : 128;
  auto x = random<float>(e, size_t(M) * N), y = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.mbytes = 8e-6 * M * N;
  j.add(dwt97, WaveCfg{e.field("R", e.big ? 2 : 8), N, e.field("warps", 4)}, x.view(M, N), y.view(M, N));
  j.check = [=] {
    std::vector<double> want(size_t(M) * N);
    const double steps[4] = {-1.586134342, -.05298011854, .8829110762, .4435068522};
    for (int m = 0; m < M; ++m) {
      std::vector<double> v(N);
      for (int n = 0; n < N; ++n) v[n] = x[size_t(m) * N + n];
      for (int k = 0; k < 4; ++k)
        for (int n = 1 - k % 2; n < N; n += 2) {
          const double left = n > 0 ? v[n - 1] : v[n + 1], right = n + 1 < N ? v[n + 1] : v[n - 1];
          v[n] += steps[k] * (left + right);
        }
      for (int n = 0; n < N; ++n)
        want[size_t(m) * N + n / 2 + n % 2 * N / 2] = n % 2 ? v[n] / 1.149604398 : v[n] * 1.149604398;
    }
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

}  // namespace preparations
}  // namespace users
