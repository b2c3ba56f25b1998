// beside_cuda_codes.cpp - bit_unpack, lbvh, fan_beam, glob_match
#include "tests/users/use.h"
namespace users {
namespace beside_cuda_codes {

// --- bit_unpack: blocks of 128 deltas of `width` bits, summed onto the block's base
struct UnpackCfg {
  int BB = 4;
};
auto bit_unpack = kernel("user_bit_unpack", [](const UnpackCfg& c, Ptr<const uint32_t> words, Ptr<const int> offset,
                                               Ptr<const uint8_t> width, Ptr<const uint32_t> base, Ptr<uint32_t> out,
                                               I32 blocks) {
                    auto b = program_id(0) * c.BB + arange(0, c.BB);
                    auto ok = b < blocks;
                    auto w = cast(load(width + b, {.mask = ok}), i32).col();
                    auto i = arange(0, 128).row();
                    auto bit = i * w;
                    auto at = load(offset + b, {.mask = ok}).col() + (bit >> 5);
                    auto s = bit & 31;
                    auto m = broadcast_to(ok.col(), {c.BB, 128});
                    auto lo = cast(load(words + at, {.mask = m}), u64);
                    auto hi = cast(load(words + at + 1, {.mask = m & (s + w > 32)}), u64);
                    auto mask = (full({c.BB, 1}, 1, u64) << cast(w, u64)) - 1;
                    auto v = cast(((lo | (hi << 32)) >> cast(s, u64)) & mask, u32);
                    auto sums = cumsum(v, axis(1)) + load(base + b, {.mask = ok}).col();
                    store(out + (cast(b, i64).col() * 128 + i), sums, {.mask = m});
                  }).grid([](const UnpackCfg& c, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.BB)}; });
Register r2("bit_unpack", [](Env& e) {
  UnpackCfg c;
  c.BB = e.field("BB", c.BB);
  const int n = e.big ? 400000 : 37;
  auto width = filled<uint8_t>(e, n, [](size_t i) { return uint8_t(1 + i * 7 % 32); });
  std::vector<int> off{0};
  for (int i = 0; i < n; ++i) off.push_back(off.back() + 4 * (1 + i * 7 % 32));
  auto offset = filled<int>(e, n, [&](size_t i) { return off[i]; });
  auto word = [&] { return uint32_t(e.uniform() * 0x1p24) << 8 ^ uint32_t(e.uniform() * 0x1p24); };
  auto words = drawn<uint32_t>(e, off.back(), word);
  auto base = drawn<uint32_t>(e, n, word);
  auto out = constant<uint32_t>(e, size_t(n) * 128, 0);
  Job j;
  j.mbytes = 4e-6 * (off.back() + 128.0 * n);
  j.add(bit_unpack, c, words.p, offset.p, width.p, base.p, out.p, n);
  j.check = [=]() -> std::string {
    auto got = out.now();
    for (int b = 0; b < n; ++b) {
      uint32_t sum = base.at(b);
      for (int i = 0; i < 128; ++i) {
        uint32_t v = 0;
        const int w = width.at(b);
        for (int k = 0; k < w; ++k) {
          const int bit = i * w + k;
          v |= (words.at(off[b] + bit / 32) >> bit % 32 & 1) << k;
        }
        sum += v;
        if (got[size_t(b) * 128 + i] != sum) return "block " + std::to_string(b) + " value " + std::to_string(i);
      }
    }
    return "";
  };
  return j;
});

// --- lbvh: internal nodes of a radix tree, one lane a node. Children: >= 0 inner node, else ~leaf
struct BvhCfg {
  int B = 256;
};
auto lbvh = kernel("user_lbvh_nodes", [](const BvhCfg& c, Ptr<const uint32_t> code, Ptr<int> left, Ptr<int> right,
                                         Ptr<int> parent, I32 n) {
              auto i = program_id(0) * c.B + arange(0, c.B);
              auto ok = i < n - 1;
              auto mine = load(code + i, {.mask = ok});
              auto delta = [&](const Tile& j, const Tile& on) {  // length of the common prefix, -1 outside
                auto in = (j >= 0) & (j < n) & on;
                auto x = mine ^ load(code + j, {.mask = in});
                auto same = 32 + cast(countl_zero(cast(i ^ j, u32)), i32);
                return where(in, where(x == 0u, same, cast(countl_zero(x), i32)), -1);
              };
              auto d = where(delta(i + 1, ok) > delta(i - 1, ok), 1, -1);
              auto least = delta(i - d, ok);
              Tile most = full({c.B}, 2, i32), going = ok & (delta(i + d * most, ok) > least);
              while_([&] { return going; }, [&] {
                most *= 2;
                going = delta(i + d * most, ok) > least;
              });
              Tile l = zeros({c.B}, i32), t = most / 2;
              while_([&] { return t > 0; }, [&] {
                l = where(delta(i + (l + t) * d, ok) > least, l + t, l);
                t = t / 2;
              });
              auto j = i + l * d;
              auto node = delta(j, ok);
              Tile s = zeros({c.B}, i32), div = full({c.B}, 2, i32), step = (l + 1) / 2, on = ok & (l > 0);
              while_([&] { return on; }, [&] {
                s = where(delta(i + (s + step) * d, ok) > node, s + step, s);
                on = step > 1;
                div *= 2;
                step = (l + div - 1) / div;
              });
              auto split = i + s * d + min(d, 0);
              auto a = where(min(i, j) == split, ~split, split);
              auto b = where(max(i, j) == split + 1, ~(split + 1), split + 1);
              store(left + i, a, {.mask = ok});
              store(right + i, b, {.mask = ok});
              store(parent + where(a < 0, n - 1 + split, a), i, {.mask = ok});  // leaves behind the inner nodes
              store(parent + where(b < 0, n + split, b), i, {.mask = ok});
            }).grid([](const BvhCfg& c, auto, auto, auto, auto, int n) { return Grid{cdiv(n - 1, c.B)}; });
auto lbvh_boxes = kernel("user_lbvh_boxes", [](const BvhCfg& c, Ptr<const float> leaf, Ptr<const int> left,
                                               Ptr<const int> right, Ptr<const int> parent, Ptr<int> seen,
                                               Ptr<float> box, I32 n) {
                    // leaf, box [., 8]: low x y z, -, high x y z, -
                    auto i = program_id(0) * c.B + arange(0, c.B);
                    Tile active = i < n;
                    Tile at = load(parent + n - 1 + i, {.mask = active, .other = -1});
                    active = active & (at >= 0);
                    while_([&] { return active; }, [&] {
                      active = atomic_add(seen + at, 1) == 1;
                      auto a = load(left + at, {.mask = active}), b = load(right + at, {.mask = active});
                      for (int k = 0; k < 8; ++k) {
                        if (k % 4 == 3) continue;
                        auto get = [&](const Tile& x) {
                          return where(x < 0, load(leaf + (~x) * 8 + k, {.mask = active & (x < 0)}),
                                       load(box + x * 8 + k, {.mask = active & (x >= 0)}));
                        };
                        auto u = get(a), v = get(b);
                        store(box + at * 8 + k, k < 4 ? min(u, v) : max(u, v), {.mask = active});
                      }
                      at = load(parent + at, {.mask = active, .other = -1});
                      active = at >= 0;
                    });
                  }).grid([](const BvhCfg& c, auto, auto, auto, auto, auto, auto, int n) {
  return Grid{cdiv(n, c.B)};
});
Register r3("lbvh", [](Env& e) {
  BvhCfg c;
  c.B = e.field("B", c.B);
  const int n = e.big ? 2000000 : 501;
  std::vector<uint32_t> codes(n);
  for (auto& x : codes) x = uint32_t(e.uniform() * (e.big ? 0x1p24 : 200)) << (e.big ? 6 : 3);
  std::sort(codes.begin(), codes.end());
  auto code = repeated<uint32_t>(e, n, codes);
  auto left = constant<int>(e, n, -9), right = constant<int>(e, n, -9), parent = constant<int>(e, 2 * n, -1);
  auto leaf = random<float>(e, size_t(n) * 8);
  auto box = constant<float>(e, size_t(n) * 8, 0);
  auto seen = constant<int>(e, n, 0);
  Job j;
  restore(e, j, seen);
  j.inTurn = true;
  j.mbytes = 1e-6 * n * (4 + 16 + 8 + 32 + 32);
  j.add(lbvh, c, code.p, left.p, right.p, parent.p, n);
  j.add(lbvh_boxes, c, leaf.p, left.p, right.p, parent.p, seen.p, box.p, n);
  j.check = [=]() -> std::string {  // the tree is found from the top: ranges are split where the highest bit changes
    auto l = left.now(), r = right.now();
    auto b = box.now();
    std::string bad;
    std::function<std::array<double, 8>(int, int, int)> walk = [&](int node, int lo, int hi) {
      std::array<double, 8> out{};
      if (lo == hi) {
        if (node != ~lo) bad = "leaf " + std::to_string(lo);
        for (int k = 0; k < 8; ++k) out[k] = leaf[size_t(lo) * 8 + k];
        return out;
      }
      if (node != lo && node != hi) bad = "node " + std::to_string(node);
      auto key = [&](int i) { return uint64_t(codes[i]) << 32 | uint32_t(i); };
      const int top = 63 - __builtin_clzll(key(lo) ^ key(hi));
      int split = lo;
      while (!(key(split + 1) >> top & 1)) ++split;
      if (!bad.empty()) return out;
      auto x = walk(l[node], lo, split), y = walk(r[node], split + 1, hi);
      for (int k = 0; k < 8; ++k) {
        out[k] = k < 4 ? std::min(x[k], y[k]) : std::max(x[k], y[k]);
        if (k % 4 != 3 && out[k] != b[size_t(node) * 8 + k]) bad = "box of node " + std::to_string(node);
      }
      return out;
    };
    walk(0, 0, n - 1);
    return bad;
  };
  return j;
});

// --- fan_beam: f(x, y) = sum over angles of 1 / U^2 p(t), linear in t; flat detector through the centre
struct FanCfg {
  int BY = 8, BX = 32;
};
auto fan_beam = kernel("user_fan_beam", [](const FanCfg& c, Tensor<const float, 2> sino, Ptr<const float> angle,
                                           Tensor<float, 2> image, F32 distance, F32 pitch, F32 scale) {
                  auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
                  auto H = image.dim(0), W = image.dim(1), bins = sino.dim(1);
                  auto py = (cast((y + arange(0, c.BY)).col(), f32) - cast(H - 1, f32) * .5f) * scale;
                  auto px = (cast((x + arange(0, c.BX)).row(), f32) - cast(W - 1, f32) * .5f) * scale;
                  auto middle = cast(bins - 1, f32) * .5f;
                  Tile acc = zeros({c.BY, c.BX}, f32);
                  for (auto a : range(0, sino.dim(0))) {
                    auto co = load(angle + a * 2), si = load(angle + a * 2 + 1);
                    auto inv = distance / (distance + px * si - py * co);  // 1 / U
                    auto t = (px * co + py * si) * inv / pitch + middle;
                    auto f = floor(t);
                    auto k = cast(f, i32);
                    auto p = sino.ptr() + cast(a, i64) * sino.stride(0) + k;
                    auto u = load(p, {.mask = (k >= 0) & (k < bins)});
                    auto v = load(p + 1, {.mask = (k >= -1) & (k < bins - 1)});
                    acc += inv * inv * (u + (t - f) * (v - u));
                  }
                  image.store({y, x}, acc);
                }).grid([](const FanCfg& c, const auto&, auto, const auto& im, auto, auto, auto) {
  return Grid{cdiv(im.shape[1], c.BX), cdiv(im.shape[0], c.BY)};
});
Register r4("fan_beam", [](Env& e) {
  FanCfg c;
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX);
  const int N = e.big ? 512 : 37, A = e.big ? 720 : 19, K = e.big ? 736 : 53;
  const float D = 2.5f, pitch = e.big ? .0045f : .055f, scale = 2.f / N;
  auto sino = random<float>(e, size_t(A) * K);
  auto angle = filled<float>(e, 2 * A, [&](size_t i) {
    const double p = 2 * M_PI * (i / 2) / A;
    return float(i % 2 ? std::sin(p) : std::cos(p));
  });
  auto image = constant<float>(e, size_t(N) * N, NAN);
  Job j;
  j.gflop = 20e-9 * N * N * A;
  j.add(fan_beam, c, sino.view(A, K), angle.p, image.view(N, N), D, pitch, scale);
  j.check = [=] {
    std::vector<double> want(N * N);
    for (int y = 0; y < N; ++y)
      for (int x = 0; x < N; ++x)
        for (int a = 0; a < A; ++a) {
          const double co = angle[2 * a], si = angle[2 * a + 1], px = (x - (N - 1) * .5) * scale,
                       py = (y - (N - 1) * .5) * scale, inv = D / (D + px * si - py * co),
                       t = (px * co + py * si) * inv / pitch + (K - 1) * .5;
          const int k = int(std::floor(t));
          auto p = [&](int k) { return k >= 0 && k < K ? sino[size_t(a) * K + k] : 0.; };
          want[y * N + x] += inv * inv * (p(k) + (t - k) * (p(k + 1) - p(k)));
        }
    return agree(image.now(), want, 2e-3, 1e-3);
  };
  return j;
});

// --- glob_match: '?' and '*', one lane a string
struct GlobCfg {
  int B = 256;
};
auto glob = kernel("user_glob_match", [](const GlobCfg& c, Ptr<const uint8_t> text, Ptr<const int> offset,
                                         Ptr<const uint8_t> pattern, I32 length, Ptr<uint8_t> out, I32 n) {
              auto i = program_id(0) * c.B + arange(0, c.B);
              auto ok = i < n;
              Tile at = load(offset + i, {.mask = ok});
              auto end = load(offset + i + 1, {.mask = ok});
              Tile p = zeros({c.B}, i32), star = full({c.B}, -1, i32), mark = at;
              Tile active = ok & (at < end);
              while_([&] { return active; }, [&] {
                auto ch = load(text + at);
                auto q = load(pattern + p, {.mask = p < length});
                auto is_star = q == uint8_t('*');
                auto same = (p < length) & ~is_star & ((q == uint8_t('?')) | (q == ch));
                auto back = ~is_star & ~same & (star >= 0);
                auto dead = ~is_star & ~same & (star < 0);
                auto s = where(is_star, p, star);
                auto m = where(is_star, at, where(back, mark + 1, mark));
                auto np = where(is_star | same, p + 1, star + 1);
                auto na = where(is_star, at, where(same, at + 1, mark + 1));
                star = s, mark = m;
                p = where(dead, -1, np), at = na;
                active = ~dead & (at < end);
              });
              Tile rest = ok & (p >= 0) & (p < length);
              while_([&] { return rest; }, [&] {
                rest = load(pattern + p) == uint8_t('*');
                p = where(rest, p + 1, p);
                rest = rest & (p < length);
              });
              store(out + i, cast(p == length, u8), {.mask = ok});
            }).grid([](const GlobCfg& c, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r9("glob_match", [](Env& e) {
  GlobCfg c;
  c.B = e.field("B", c.B);
  const int n = e.big ? 4000000 : 1001;
  std::vector<int> off{0};
  for (int i = 0; i < n; ++i) off.push_back(off.back() + int((i * 2654435761u >> 20) % 24));
  auto offset = repeated<int>(e, n + 1, off);
  auto text = drawn<uint8_t>(e, off.back() + 1, [&] { return uint8_t('a' + int(e.uniform() * 3)); });
  const std::string pat = "*a?b*c*";
  auto pattern = filled<uint8_t>(e, pat.size(), [&](size_t i) { return uint8_t(pat[i]); });
  auto out = constant<uint8_t>(e, n, 7);
  Job j;
  j.mbytes = 1e-6 * (off.back() + 5.0 * n);
  j.add(glob, c, text.p, offset.p, pattern.p, int(pat.size()), out.p, n);
  j.check = [=]() -> std::string {
    auto got = out.now();
    for (int i = 0; i < n; ++i) {
      std::function<bool(size_t, int)> match = [&](size_t p, int s) -> bool {
        if (p == pat.size()) return s == off[i + 1];
        if (pat[p] == '*') return match(p + 1, s) || (s < off[i + 1] && match(p, s + 1));
        return s < off[i + 1] && (pat[p] == '?' || pat[p] == char(text.at(s))) && match(p + 1, s + 1);
      };
      if (got[i] != uint8_t(match(0, off[i]))) return "string " + std::to_string(i);
    }
    return "";
  };
  return j;
});
}  // namespace beside_cuda_codes
}  // namespace users
