// cached_bytes.cpp - attention over caches of int8 with a factor per head: a prompt of many queries, then one query a
// sequence in parts; and blocks that a mask made on the device lets through.
#include "tests/users/use.h"
namespace users {
namespace cached_bytes {

// --- a prompt: queries of f16, keys and values of int8
struct Kv8Cfg {
  int BM = 128, BN = 64, D = 128;
};
auto kv8_prompt = kernel("user_kv8_prompt", [](const Kv8Cfg& c, Ptr<const half> q, Ptr<const int8_t> k, Ptr<const int8_t> v,
                                               Ptr<const float> k_scale, Ptr<const float> v_scale, Ptr<half> o, I32 T, I32 HQ, I32 HK) {
                    auto m = program_id(0) * c.BM + arange(0, c.BM), h = program_id(1), d = arange(0, c.D);
                    auto g = h / (HQ / HK);
                    auto scale = load(k_scale + g) * float(M_LOG2E / std::sqrt(double(c.D)));
                    auto qs = load(q + (m.col() * HQ + h) * c.D + d.row(), {.mask = (m < T).col()});
                    Tile most = full({c.BM, 1}, -INFINITY, f32), total = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
                    for (auto i : range(0, min(program_id(0) * c.BM + c.BM, T), c.BN)) {
                      auto n = i + arange(0, c.BN);
                      auto ks = load(k + (n.row() * HK + g) * c.D + d.col(), {.mask = (n < T).row()});
                      auto s = where((n.row() <= m.col()) & (n < T).row(), dot(qs, cast(ks, f16)) * scale, -INFINITY);
                      auto now = max(most, max(s, axis(1)));
                      auto p = exp2(s - now), again = exp2(most - now);
                      total = total * again + sum(p, axis(1));
                      auto vs = load(v + (n.col() * HK + g) * c.D + d.row(), {.mask = (n < T).col()});
                      acc = dot(cast(p, f16), cast(vs, f16), acc * again);
                      most = now;
                    }
                    acc *= load(v_scale + g) / total;
                    store(o + (m.col() * HQ + h) * c.D + d.row(), cast(acc, f16), {.mask = (m < T).col()});
                  }).grid([](const Kv8Cfg& c, auto, auto, auto, auto, auto, auto, int T, int HQ, int) { return Grid{cdiv(T, c.BM), HQ}; });
std::vector<double> attention8(const Array<half>& q, const Array<int8_t>& k, const Array<int8_t>& v, const Array<float>& ks,
                               const Array<float>& vs, int row, int HQ, int HK, int D, size_t first, int last) {
  std::vector<double> out(HQ * D);
  for (int h = 0; h < HQ; ++h) {
    const int g = h / (HQ / HK);
    double sum = 0;
    for (int n = 0; n <= last; ++n) {
      double s = 0;
      for (int d = 0; d < D; ++d) s += q[(size_t(row) * HQ + h) * D + d] * k[((first + n) * HK + g) * D + d];
      sum += s = std::exp(s * ks[g] / std::sqrt(double(D)));
      for (int d = 0; d < D; ++d) out[h * D + d] += s * v[((first + n) * HK + g) * D + d] * vs[g];
    }
    for (int d = 0; d < D; ++d) out[h * D + d] /= sum;
  }
  return out;
}
Register r1("kv8_prompt", [](Env& e) {
  Kv8Cfg c;
  if (!e.big) c = {32, 16, 32};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN);
  const int T = e.big ? 8192 : 75, HQ = e.big ? 32 : 4, HK = e.big ? 8 : 2, D = c.D;
  auto q = random<half>(e, size_t(T) * HQ * D);
  auto k = integers<int8_t>(e, size_t(T) * HK * D, -127, 128), v = integers<int8_t>(e, k.n, -127, 128);
  auto ks = random<float>(e, HK, .005, .01), vs = random<float>(e, HK, .005, .01);
  auto o = constant<half>(e, q.n, NAN);
  Job j;
  j.gflop = 2e-9 * T * double(T) * HQ * D;
  j.add(kv8_prompt, c, q.p, k.p, v.p, ks.p, vs.p, o.p, T, HQ, HK);
  j.check = [=] {
    std::vector<double> want;
    for (int t = 0; t < T; ++t)
      for (double x : attention8(q, k, v, ks, vs, t, HQ, HK, D, 0, t)) want.push_back(x);
    return agree(o.now(), want, 2e-3, 5e-3);
  };
  return j;
});

// --- one query a sequence, its keys in parts
auto kv8_step = kernel("user_kv8_step", [](const Kv8Cfg& c, Ptr<const half> q, Ptr<const int8_t> k, Ptr<const int8_t> v, Ptr<const float> k_scale,
                                           Ptr<const float> v_scale, Ptr<const int32_t> lengths, Ptr<float> parts, Ptr<float> logs, I32 longest, I32 HQ, I32 HK, I32, I32 P) {
                  constexpr int H = 16;
                  auto b = program_id(0), g = program_id(1), part = program_id(2);
                  auto length = load(lengths + b);
                  auto each = cdiv(cdiv(length, P), c.BN) * c.BN, first = part * each, end = min(first + each, length);
                  auto h = arange(0, H), d = arange(0, c.D);
                  auto head = g * (HQ / HK) + h;
                  auto real = (h < HQ / HK).col();
                  auto qs = load(q + (b * HQ + head).col() * c.D + d.row(), {.mask = real});
                  auto scale = load(k_scale + g) * float(M_LOG2E / std::sqrt(double(c.D)));
                  auto start = cast(b, i64) * longest;
                  Tile most = full({H, 1}, -INFINITY, f32), total = zeros({H, 1}, f32), acc = zeros({H, c.D}, f32);
                  for (auto i : range(first, end, c.BN)) {
                    auto n = i + arange(0, c.BN);
                    auto at = ((start + n) * HK + g) * c.D;
                    auto ks = load(k + at.row() + d.col(), {.mask = (n < end).row()});
                    auto s = where((n < end).row(), dot(qs, cast(ks, f16)) * scale, -INFINITY);
                    auto now = max(most, max(s, axis(1)));
                    auto p = exp2(s - now), again = exp2(most - now);
                    total = total * again + sum(p, axis(1));
                    auto vs = load(v + at.col() + d.row(), {.mask = (n < end).col()});
                    acc = dot(cast(p, f16), cast(vs, f16), acc * again);
                    most = now;
                  }
                  acc *= load(v_scale + g) / max(total, 1e-30f);
                  auto to = (b * HQ + head) * P + part;
                  store(parts + to.col() * c.D + d.row(), acc, {.mask = real});
                  store(logs + to, squeeze(where(total > 0, most + log2(total), -INFINITY), 1), {.mask = h < HQ / HK});
                }).grid([](const Kv8Cfg&, auto, auto, auto, auto, auto, auto, auto, auto, int, int, int HK, int B, int P) { return Grid{B, HK, P}; });
auto kv8_whole = kernel("user_kv8_whole", [](const Kv8Cfg& c, Ptr<const float> parts, Ptr<const float> logs, Ptr<half> o, I32, I32 P) {
                   auto row = program_id(0), d = arange(0, c.D);
                   Tile most = -INFINITY, total = 0.f, acc = zeros({c.D}, f32);
                   for (auto p : range(P)) {
                     auto l = load(logs + row * P + p);
                     auto now = max(most, l);
                     auto again = exp2(most - now), w = exp2(l - now);
                     acc = acc * again + w * load(parts + (row * P + p) * c.D + d);
                     total = total * again + w;
                     most = now;
                   }
                   store(o + row * c.D + d, cast(acc / total, f16));
                 }).grid([](const Kv8Cfg&, auto, auto, auto, int rows, int) { return Grid{rows}; });
Register r2("kv8_step", [](Env& e) {
  Kv8Cfg c;
  if (!e.big) c = {16, 16, 32};
  c.BN = e.field("BN", c.BN);
  const int B = e.big ? 64 : 3, longest = e.big ? 8192 : 80, HQ = e.big ? 32 : 4, HK = e.big ? 8 : 2, D = c.D, P = e.big ? e.field("P", 4) : 2;
  auto q = random<half>(e, size_t(B) * HQ * D);
  auto k = integers<int8_t>(e, size_t(B) * longest * HK * D, -127, 128), v = integers<int8_t>(e, k.n, -127, 128);
  auto ks = random<float>(e, HK, .005, .01), vs = random<float>(e, HK, .005, .01);
  auto lengths = filled<int32_t>(e, B, [&](size_t b) { return longest - int(b) * 23; });
  auto parts = constant<float>(e, size_t(B) * HQ * P * D, NAN), logs = constant<float>(e, size_t(B) * HQ * P, NAN);
  auto o = constant<half>(e, q.n, NAN);
  Job j;
  j.mbytes = 2e-6 * k.n;
  j.add(kv8_step, c, q.p, k.p, v.p, ks.p, vs.p, lengths.p, parts.p, logs.p, longest, HQ, HK, B, P);
  j.add(kv8_whole, c, parts.p, logs.p, o.p, B * HQ, P);
  j.check = [=] {
    std::vector<double> want;
    for (int b = 0; b < B; ++b)
      for (double x : attention8(q, k, v, ks, vs, b, HQ, HK, D, size_t(b) * longest, lengths.h[b] - 1)) want.push_back(x);
    return agree(o.now(), want, 2e-3, 5e-3);
  };
  return j;
});

// --- a mask of blocks made on the device: means of blocks of queries and keys, blocks within a factor of the row's best
// (and the diagonal), packed into lists; attention over the lists
struct MaskCfg {
  int B = 64, D = 64, N = 128;  // N: blocks of a row, at most
};
auto block_means = kernel("user_block_means", [](const MaskCfg& c, Ptr<const half> x, Ptr<float> means, I32 T, I32) {
                     auto block = program_id(0), h = program_id(1);
                     auto t = block * c.B + arange(0, c.B), d = arange(0, c.D);
                     auto xs = cast(load(x + (h * T + t).col() * c.D + d.row(), {.mask = (t < T).col()}), f32);
                     auto many = cast(min(T - block * c.B, c.B), f32);
                     store(means + (h * num_programs(0) + block) * c.D + d, squeeze(sum(xs, axis(0)), 0) / many);
                   }).grid([](const MaskCfg& c, auto, auto, int T, int H) { return Grid{cdiv(T, c.B), H}; });
auto block_lists = kernel("user_block_lists", [](const MaskCfg& c, Ptr<const float> q, Ptr<const float> k, Ptr<int32_t> lists, Ptr<int32_t> counts, I32 blocks, I32, F32 below) {
                     auto m = program_id(0), h = program_id(1);
                     auto n = arange(0, c.N), d = arange(0, c.D);
                     auto qs = load(q + (h * blocks + m) * c.D + d);
                     auto ks = load(k + (h * blocks + n).col() * c.D + d.row(), {.mask = (n < blocks).col()});
                     auto s = squeeze(sum(ks * qs.row(), axis(1)), 1);
                     s = where(n <= m, s, -INFINITY);
                     auto keep = ((s >= max(s) - below) & (n <= m)) | (n == m);
                     auto to = cumsum(cast(keep, i32), axis(0)) - 1;
                     store(lists + (h * blocks + m) * blocks + to, n, {.mask = keep});
                     store(counts + h * blocks + m, sum(cast(keep, i32)));
                   }).grid([](const MaskCfg&, auto, auto, auto, auto, int blocks, int H, float) { return Grid{blocks, H}; });
auto listed_attention = kernel("user_listed_attention", [](const MaskCfg& c, Ptr<const half> q, Ptr<const half> k, Ptr<const half> v, Ptr<const int32_t> lists,
                                                           Ptr<const int32_t> counts, Ptr<half> o, I32 T, I32) {
                          auto block = program_id(0), h = program_id(1), blocks = num_programs(0);
                          auto m = block * c.B + arange(0, c.B), d = arange(0, c.D);
                          auto qs = load(q + (h * T + m).col() * c.D + d.row(), {.mask = (m < T).col()});
                          Tile most = full({c.B, 1}, -INFINITY, f32), total = zeros({c.B, 1}, f32), acc = zeros({c.B, c.D}, f32);
                          auto mine = h * blocks + block;
                          for (auto i : range(load(counts + mine))) {
                            auto n = load(lists + mine * blocks + i) * c.B + arange(0, c.B);
                            auto ks = load(k + (h * T + n).row() * c.D + d.col(), {.mask = (n < T).row()});
                            auto s = where((n.row() <= m.col()) & (n < T).row(), dot(qs, ks) * float(M_LOG2E / std::sqrt(double(c.D))), -INFINITY);
                            auto now = max(most, max(s, axis(1)));
                            auto p = exp2(s - now), again = exp2(most - now);
                            total = total * again + sum(p, axis(1));
                            auto vs = load(v + (h * T + n).col() * c.D + d.row(), {.mask = (n < T).col()});
                            acc = dot(cast(p, f16), vs, acc * again);
                            most = now;
                          }
                          store(o + (h * T + m).col() * c.D + d.row(), cast(acc / total, f16), {.mask = (m < T).col()});
                        }).grid([](const MaskCfg& c, auto, auto, auto, auto, auto, auto, int T, int H) { return Grid{cdiv(T, c.B), H}; });
Register r3("learned_mask", [](Env& e) {
  MaskCfg c;
  if (!e.big) c = {16, 32, 16};
  const int T = e.big ? 8192 : 149, H = e.big ? 32 : 2, D = c.D, blocks = cdiv(T, c.B);
  const float below = e.big ? 1e-2f : .2f;
  auto q = random<half>(e, size_t(H) * T * D), k = random<half>(e, q.n), v = random<half>(e, q.n), o = constant<half>(e, q.n, NAN);
  auto qm = constant<float>(e, size_t(H) * blocks * D, NAN), km = constant<float>(e, qm.n, NAN);
  auto lists = constant<int32_t>(e, size_t(H) * blocks * blocks, 0), counts = constant<int32_t>(e, H * blocks, 0);
  Job j;
  j.add(block_means, c, q.p, qm.p, T, H);
  j.add(block_means, c, k.p, km.p, T, H);
  j.add(block_lists, c, qm.p, km.p, lists.p, counts.p, blocks, H, below);
  j.add(listed_attention, c, q.p, k.p, v.p, lists.p, counts.p, o.p, T, H);
  j.check = [=] {
    auto means = [&](const Array<half>& x) {
      std::vector<double> r(size_t(H) * blocks * D);
      for (size_t i = 0; i < x.n; ++i) {
        const int d = int(i) % D, t = int(i) / D % T, h = int(i) / D / T;
        r[(h * blocks + t / c.B) * D + d] += x[i] / std::min(c.B, T - t / c.B * c.B);
      }
      return r;
    };
    const auto a = means(q), b = means(k);
    if (auto bad = agree(qm.now(), a, 1e-5, 1e-5); !bad.empty()) return "means: " + bad;
    const auto l = lists.now(), n = counts.now();
    std::vector<double> want(o.n);
    for (int h = 0; h < H; ++h)
      for (int m = 0; m < blocks; ++m) {
        std::vector<double> s(m + 1);
        double best = -1e30;
        for (int i = 0; i <= m; ++i) {
          for (int d = 0; d < D; ++d) s[i] += a[(h * blocks + m) * D + d] * b[(h * blocks + i) * D + d];
          best = std::max(best, s[i]);
        }
        std::vector<int> keep;
        for (int i = 0; i <= m; ++i)
          if (s[i] >= best - below || i == m) keep.push_back(i);
        const int* mine = l.data() + size_t(h * blocks + m) * blocks;
        if (int(keep.size()) != n[h * blocks + m] || !std::equal(keep.begin(), keep.end(), mine)) return std::string("a list of row ") + std::to_string(m);
        for (int t = m * c.B; t < std::min(T, m * c.B + c.B); ++t) {
          double sum = 0;
          for (int block : keep)
            for (int i = block * c.B; i <= std::min(t, block * c.B + c.B - 1); ++i) {
              double x = 0;
              for (int d = 0; d < D; ++d) x += q[(size_t(h) * T + t) * D + d] * k[(size_t(h) * T + i) * D + d];
              sum += x = std::exp(x / std::sqrt(double(D)));
              for (int d = 0; d < D; ++d) want[(size_t(h) * T + t) * D + d] += x * v[(size_t(h) * T + i) * D + d];
            }
          for (int d = 0; d < D; ++d) want[(size_t(h) * T + t) * D + d] /= sum;
        }
      }
    return agree(o.now(), want, 2e-3, 5e-3);
  };
  return j;
});

}  // namespace cached_bytes
}  // namespace users
