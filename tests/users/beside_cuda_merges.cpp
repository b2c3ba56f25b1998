// beside_cuda_merges.cpp - merge_path, ccl, aes_ctr, utf8
#include "tests/users/use.h"
namespace users {
namespace beside_cuda_merges {

// --- merge of two sorted lists of keys with values, stable (a before b). A program makes B places: it finds its part
// of both lists on two diagonals, ranks each element in the other part, and puts it there.
struct MergeCfg {
  int B = 1024;
};
/// How many of a's elements are among the first `diagonal` of the merged list.
Tile merge_path(const Ptr<const int>& A, const Ptr<const int>& B, const Tile& na, const Tile& nb,
                const Tile& diagonal) {
  Tile low = max(diagonal - nb, 0), high = min(diagonal, na);
  while_([&] { return low < high; },
         [&] {
           auto mid = (low + high) / 2;
           auto taken = load(A + mid) <= load(B + diagonal - 1 - mid);
           low = where(taken, mid + 1, low);
           high = where(taken, high, mid);
         });
  return low;
}
auto merge = kernel("user_merge_path", [](const MergeCfg& c, Ptr<const int> KA, Ptr<const int> VA, Ptr<const int> KB,
                                          Ptr<const int> VB, Ptr<int> K, Ptr<int> V, I32 na, I32 nb) {
               auto d0 = program_id(0) * c.B, d1 = min(d0 + c.B, na + nb);
               auto a0 = merge_path(KA, KB, na, nb, d0), a1 = merge_path(KA, KB, na, nb, d1);
               auto b0 = d0 - a0, b1 = d1 - a1;
               auto i = arange(0, c.B);
               auto la = a1 - a0, lb = b1 - b0;
               auto ia = i < la, ib = i < lb;
               auto ka = load(KA + a0 + i, {.mask = ia}), va = load(VA + a0 + i, {.mask = ia});
               auto kb = load(KB + b0 + i, {.mask = ib}), vb = load(VB + b0 + i, {.mask = ib});
               // elements of `list` (n of them) below x, or not above it
               auto rank = [&](const Tile& x, const Tile& list, const Tile& n, bool equal) {
                 Tile at = zeros({c.B}, i32);
                 for (int step = c.B; step >= 1; step /= 2) {
                   auto next = at + step;
                   auto y = take(list, min(next, c.B) - 1, 0);
                   at = where((next <= n) & (equal ? y <= x : y < x), next, at);
                 }
                 return at;
               };
               auto pa = i + rank(ka, kb, lb, false), pb = i + rank(kb, ka, la, true);
               auto merged = [&](const Tile& x, const Tile& y) {
                 return put(put(zeros({c.B}, i32), pa, x, 0, {.mask = ia}), pb, y, 0, {.mask = ib});
               };
               auto in = d0 + i < d1;
               store(K + d0 + i, merged(ka, kb), {.mask = in});
               store(V + d0 + i, merged(va, vb), {.mask = in});
             }).grid([](const MergeCfg& c, auto, auto, auto, auto, auto, auto, int na, int nb) {
  return Grid{cdiv(na + nb, c.B)};
});
Register r1("merge_path", [](Env& e) {
  const int NA = e.big ? 16'000'000 : 700, NB = e.big ? 12'000'003 : 433;
  auto keys = [&](int n, int most) {
    int run = -100;
    return filled<int>(e, n, [&](size_t) { return run += int(e.uniform() * most); });
  };
  auto ka = keys(NA, 4), kb = keys(NB, 5);
  auto va = filled<int>(e, NA, [](size_t i) { return int(i); }),
       vb = filled<int>(e, NB, [](size_t i) { return -1 - int(i); });
  auto k = constant<int>(e, NA + NB, -1), v = constant<int>(e, NA + NB, 0);
  Job j;
  j.mbytes = 16e-6 * (NA + NB);
  j.add(merge, MergeCfg{e.field("B", e.big ? 1024 : 128)}, ka.p, va.p, kb.p, vb.p, k.p, v.p, NA, NB);
  j.check = [=]() -> std::string {
    const auto gk = k.now(), gv = v.now();
    for (int o = 0, a = 0, b = 0; o < NA + NB; ++o) {
      const bool first = b >= NB || (a < NA && ka.h[a] <= kb.h[b]);
      const int wk = first ? ka.h[a] : kb.h[b], wv = first ? va.h[a] : vb.h[b];
      (first ? a : b)++;
      if (gk[o] != wk || gv[o] != wv) return "place " + std::to_string(o) + ": key " + std::to_string(gk[o]);
    }
    return "";
  };
  return j;
});

// --- connected components (8 neighbours) of what is above a threshold in a u8 image: own number, unite with those
// before, then the root of each
struct CclCfg {
  int B = 256, cached = 0;  // cached: loads of labels that may be old, which atomic_min notices
};
auto ccl_init = kernel("user_ccl_init", [](const CclCfg& c, Ptr<const uint8_t> I, Ptr<int> L, I32 n, U32 above) {
                  auto i = program_id(0) * c.B + arange(0, c.B);
                  auto in = i < n;
                  store(L + i, where(cast(load(I + i, {.mask = in}), u32) > above, i, -1), {.mask = in});
                }).grid([](const CclCfg& c, auto, auto, int n, unsigned) { return Grid{cdiv(n, c.B)}; });
/// Root of x where `on`; parents are always smaller.
Tile ccl_find(const CclCfg& c, const Ptr<int>& L, const Tile& start, const Tile& on) {
  const Cache how = c.cached ? Cache::none : Cache::volatile_;
  Tile x = start, p = load(L + x, {.mask = on, .other = -1, .cache = how});
  Tile active = on & (p != x);
  while_([&] { return any(active); },
         [&] {
           x = where(active, p, x);
           p = where(active, load(L + x, {.mask = active, .cache = how}), p);
           active = active & (p != x);
         });
  return x;
}
auto ccl_unite =
    kernel("user_ccl_unite", [](const CclCfg& c, Ptr<const uint8_t> I, Ptr<int> L, I32 W, I32 H, U32 above) {
      auto x = program_id(0) * c.B + arange(0, c.B), y = program_id(1);
      auto on = [&](int dx, int dy) {
        auto xx = x + dx, yy = y + dy;
        return cast(load(I + (yy * W + xx), {.mask = (xx >= 0) & (xx < W) & (yy >= 0)}), u32) > above;
      };
      auto here = on(0, 0), left = on(-1, 0), up = on(0, -1), ul = on(-1, -1), ur = on(1, -1);
      auto me = y * W + x;
      auto unite = [&](const Tile& wanted, const Tile& other) {
        Tile a = me, b = other, active = wanted;
        while_([&] { return any(active); },
               [&] {
                 a = ccl_find(c, L, a, active), b = ccl_find(c, L, b, active);
                 auto low = min(a, b), high = max(a, b);
                 auto differ = active & (low != high);
                 auto old = atomic_min(L + high, low, {.mask = differ, .order = Order::relaxed});
                 auto again = differ & (old != high);
                 a = where(again, old, a), b = where(again, low, b);
                 active = again;
               });
      };
      // what the others connect already is left out
      unite(here & left, me - 1);
      unite(here & up & !left, me - W);
      unite(here & ul & !left & !up, me - W - 1);
      unite(here & ur & !up, me - W + 1);
    }).grid([](const CclCfg& c, auto, auto, int W, int H, unsigned) {
      return Grid{cdiv(W, c.B), H};
    });
auto ccl_flatten = kernel("user_ccl_flatten", [](const CclCfg& c, Ptr<int> L, I32 n) {
                     auto i = program_id(0) * c.B + arange(0, c.B);
                     auto on = load(L + i, {.mask = i < n, .other = -1}) >= 0;
                     store(L + i, ccl_find(c, L, i, on), {.mask = on});
                   }).grid([](const CclCfg& c, auto, int n) { return Grid{cdiv(n, c.B)}; });
int ccl_pixel(int x, int y) {  // blobs
  uint32_t h = uint32_t(x / 3) * 73856093u ^ uint32_t(y / 3) * 19349663u;
  h = (h ^ h >> 13) * 0x5bd1e995u;
  return int((h >> 15) % 256);
}
Register r2("ccl", [](Env& e) {
  const int W = e.big ? 4096 : 67, H = e.big ? 4096 : 41, n = W * H;
  const unsigned above = 140;
  auto im = filled<uint8_t>(e, n, [&](size_t i) { return uint8_t(ccl_pixel(int(i) % W, int(i) / W)); });
  auto l = constant<int>(e, n, -7);
  CclCfg c{e.field("B", e.big ? 256 : 32), e.field("cached", 0)};
  Job j;
  j.inTurn = true;
  j.mbytes = 15e-6 * n;
  j.add(ccl_init, c, im.p, l.p, n, above);
  j.add(ccl_unite, c, im.p, l.p, W, H, above);
  j.add(ccl_flatten, c, l.p, n);
  j.check = [=]() -> std::string {
    std::vector<int> want(n, -1), todo;
    for (int s = 0; s < n; ++s) {
      if (im.h[s] <= above || want[s] >= 0) continue;
      todo.push_back(s), want[s] = s;
      while (!todo.empty()) {
        const int i = todo.back(), x = i % W, y = i / W;
        todo.pop_back();
        for (int dy = -1; dy <= 1; ++dy)
          for (int dx = -1; dx <= 1; ++dx) {
            const int a = x + dx, b = y + dy, k = b * W + a;
            if (a < 0 || a >= W || b < 0 || b >= H || im.h[k] <= above || want[k] >= 0) continue;
            want[k] = s, todo.push_back(k);
          }
      }
    }
    const auto got = l.now();
    for (int i = 0; i < n; ++i)
      if (got[i] != want[i])
        return "pixel " + std::to_string(i) + ": " + std::to_string(got[i]) + " instead of " + std::to_string(want[i]);
    return "";
  };
  return j;
});

// --- AES-128 in counter mode: a block of 16 bytes a lane; words are little endian, so bytes of the state lie as in
// memory
struct AesCfg {
  int B = 256, form = 0, warps = 4;  // form 0: the table is a tile; 1: it is read through its pointer
};
auto aes_ctr =
    kernel("user_aes_ctr", [](const AesCfg& c, Ptr<const uint32_t> in, Ptr<uint32_t> out, Ptr<const uint32_t> table,
                              Ptr<const uint32_t> keys, Ptr<const uint32_t> nonce, U32 first, I32 words) {
      num_warps(c.warps);
      auto block = program_id(0) * c.B + arange(0, c.B);
      Tile T;
      if (c.form == 0) T = load(table + arange(0, 256));
      auto look = [&](const Tile& word, int byte) {
        auto at = cast((word >> (8 * byte)) & 255u, i32);
        return c.form == 0 ? take(T, at, 0) : load(table + at);
      };
      auto n = cast(block, u32) + first;
      auto big = (rotr(n, 8) & 0xff00ff00u) | (rotl(n, 8) & 0x00ff00ffu);
      Tile s[4];
      for (int k = 0; k < 4; ++k) s[k] = (k < 3 ? broadcast_to(load(nonce + k), {c.B}) : big) ^ load(keys + k);
      for (auto r : range(1, 10)) {
        Tile t[4];
        for (int k = 0; k < 4; ++k)
          t[k] = look(s[k], 0) ^ rotl(look(s[(k + 1) % 4], 1), 8) ^ rotl(look(s[(k + 2) % 4], 2), 16) ^
                 rotl(look(s[(k + 3) % 4], 3), 24) ^ load(keys + r * 4 + k);
        for (int k = 0; k < 4; ++k) s[k] = t[k];
      }
      for (int k = 0; k < 4; ++k) {  // the second byte of an entry is the plain s-box
        auto box = [&](int b) { return ((look(s[(k + b) % 4], b) >> 8) & 255u) << (8 * b); };
        auto key = box(0) | box(1) | box(2) | box(3);
        auto at = block * 4 + k;
        store(out + at, load(in + at, {.mask = at < words}) ^ key ^ load(keys + 40 + k), {.mask = at < words});
      }
    }).grid([](const AesCfg& c, auto, auto, auto, auto, auto, unsigned, int words) {
      return Grid{cdiv(cdiv(words, 4), c.B)};
    });
std::vector<int> aes_box() {
  std::vector<int> box(256);
  auto mul = [](int a, int b) {
    int p = 0;
    for (; b; b >>= 1, a = (a << 1) ^ (a & 128 ? 0x11b : 0))
      if (b & 1) p ^= a;
    return p & 255;
  };
  for (int x = 0; x < 256; ++x) {
    int inverse = 0;
    for (int y = 1; y < 256; ++y)
      if (mul(x, y) == 1) inverse = y;
    int r = 0x63;
    for (int k = 0; k < 5; ++k) r ^= (inverse << k | inverse >> (8 - k)) & 255;
    box[x] = r;
  }
  return box;
}
Register r3("aes_ctr", [](Env& e) {
  const int words = e.big ? 24'000'000 : 1303;
  const auto S = aes_box();
  auto twice = [](int x) { return (x << 1 ^ (x & 128 ? 0x1b : 0)) & 255; };
  auto table = filled<uint32_t>(e, 256, [&](size_t i) {
    const uint32_t s = S[i], d = twice(S[i]);
    return d | s << 8 | s << 16 | (d ^ s) << 24;
  });
  std::vector<int> k(176);
  for (int i = 0; i < 16; ++i) k[i] = (i * 29 + 7) & 255;
  for (int i = 16, rc = 1; i < 176; i += 4) {
    int t[4] = {k[i - 4], k[i - 3], k[i - 2], k[i - 1]};
    if (i % 16 == 0) {
      const int f = t[0];
      t[0] = S[t[1]] ^ rc, t[1] = S[t[2]], t[2] = S[t[3]], t[3] = S[f], rc = twice(rc);
    }
    for (int b = 0; b < 4; ++b) k[i + b] = k[i - 16 + b] ^ t[b];
  }
  auto keys = filled<uint32_t>(e, 44, [&](size_t i) {
    return uint32_t(k[4 * i]) | uint32_t(k[4 * i + 1]) << 8 | uint32_t(k[4 * i + 2]) << 16 |
           uint32_t(k[4 * i + 3]) << 24;
  });
  auto nonce = filled<uint32_t>(e, 3, [](size_t i) { return uint32_t(0x01234567u * (i + 3)); });
  auto in = drawn<uint32_t>(e, words, [&] { return uint32_t(e.uniform() * 0x1p24) * 257u; });
  auto out = constant<uint32_t>(e, words, 0);
  const unsigned first = 0xfffffff0u;
  AesCfg c;
  c.B = e.field("B", c.B), c.form = e.field("form", c.form), c.warps = e.field("warps", c.warps);
  Job j;
  j.mbytes = 8e-6 * words;
  j.add(aes_ctr, c, in.p, out.p, table.p, keys.p, nonce.p, first, words);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    for (int b = 0; b * 4 < words; ++b) {
      int s[16], t[16];
      const uint32_t n = first + uint32_t(b);
      for (int i = 0; i < 12; ++i) s[i] = nonce.h[i / 4] >> (i % 4 * 8) & 255;
      for (int i = 0; i < 4; ++i) s[12 + i] = n >> (24 - 8 * i) & 255;
      for (int i = 0; i < 16; ++i) s[i] ^= k[i];
      for (int r = 1; r <= 10; ++r) {
        for (int i = 0; i < 16; ++i) t[i] = S[s[(i + 4 * (i % 4)) % 16]];  // bytes, rows turned
        for (int q = 0; q < 4; ++q)
          for (int i = 0; i < 4; ++i) {
            const int a = t[4 * q + i], d = t[4 * q + (i + 1) % 4], u = t[4 * q + (i + 2) % 4],
                      v = t[4 * q + (i + 3) % 4];
            s[4 * q + i] = (r < 10 ? twice(a) ^ twice(d) ^ d ^ u ^ v : a) ^ k[16 * r + 4 * q + i];
          }
      }
      for (int q = 0; q < 4 && b * 4 + q < words; ++q) {
        uint32_t w = 0;
        for (int i = 0; i < 4; ++i) w |= uint32_t(s[4 * q + i]) << (8 * i);
        if (got[b * 4 + q] != (in.h[b * 4 + q] ^ w)) return "block " + std::to_string(b);
      }
    }
    return "";
  };
  return j;
});

// --- lines of UTF-8: is each valid, and how many code points has it
struct UtfCfg {
  int R = 4, B = 128;
};
auto utf8 = kernel("user_utf8", [](const UtfCfg& c, Ptr<const uint8_t> text, Ptr<const int> offset, Ptr<uint8_t> valid,
                                   Ptr<int> points, I32 lines) {
              auto l = program_id(0) * c.R + arange(0, c.R);
              auto in = l < lines;
              auto begin = load(offset + l, {.mask = in}).col(), end = load(offset + l + 1, {.mask = in}).col();
              Tile count = zeros({c.R, c.B}, i32), bad = zeros({c.R, c.B}, i1);
              // three bytes behind the end read 0: what is cut off is found there
              for (auto k : range(0, max(end - begin) + 3, c.B)) {
                auto i = begin + k + arange(0, c.B).row();
                auto byte = [&](int back) {
                  auto at = i - back;
                  return cast(load(text + at, {.mask = (at >= begin) & (at < end)}), i32);
                };
                auto b0 = byte(0), b1 = byte(1), b2 = byte(2), b3 = byte(3);
                auto follows = (b0 & 0xc0) == 0x80;
                auto wanted = (b1 >= 0xc0) | (b2 >= 0xe0) | (b3 >= 0xf0);
                auto wrong = (follows != wanted) | (b0 == 0xc0) | (b0 == 0xc1) | (b0 > 0xf4) |
                             ((b1 == 0xe0) & (b0 < 0xa0)) | ((b1 == 0xed) & (b0 > 0x9f)) |
                             ((b1 == 0xf0) & (b0 < 0x90)) | ((b1 == 0xf4) & (b0 > 0x8f));
                bad = bad | wrong;
                count += cast((i < end) & !follows, i32);
              }
              store(valid + l, cast(squeeze(!any(bad, axis(1)), 1), u8), {.mask = in});
              store(points + l, squeeze(sum(count, axis(1)), 1), {.mask = in});
            }).grid([](const UtfCfg& c, auto, auto, auto, auto, int lines) { return Grid{cdiv(lines, c.R)}; });
Register r4("utf8_lines", [](Env& e) {
  const int L = e.big ? 1'000'000 : 173;
  std::vector<int> off{0};
  for (int i = 0; i < L; ++i)
    off.push_back(off.back() + (i % 11 == 5 ? i % 3 : 20 + int(uint32_t(i) * 2654435761u >> 25)));
  const size_t n = off.back();
  std::vector<uint8_t> t;
  auto below = [&](int k) { return int(e.uniform() * k); };
  const size_t made = e.big ? 1'000'003 : n;
  if (e.device) {
    while (t.size() < made) {
      const int kind = below(20);
      const int p = kind < 10   ? 32 + below(95)
                    : kind < 14 ? 0x80 + below(0x780)
                    : kind < 18 ? 0x800 + below(0xf800)
                                : 0x10000 + below(0x100000);
      if (p >= 0xd800 && p < 0xe000 && below(20)) continue;
      if (p < 0x80)
        t.push_back(p);
      else if (p < 0x800)
        t.push_back(0xc0 | p >> 6), t.push_back(0x80 | (p & 63));
      else if (p < 0x10000)
        t.push_back(0xe0 | p >> 12), t.push_back(0x80 | (p >> 6 & 63)), t.push_back(0x80 | (p & 63));
      else
        t.push_back(0xf0 | p >> 18), t.push_back(0x80 | (p >> 12 & 63)), t.push_back(0x80 | (p >> 6 & 63)),
            t.push_back(0x80 | (p & 63));
      if (below(60) == 0) t.back() = uint8_t(below(256));
    }
    t.resize(made);
    // most lines end where a code point does
    if (!e.big)
      for (int l = 1; l <= L; ++l)
        for (int k = 1; k <= 3 && off[l] - k >= off[l - 1] && l % 4; ++k)
          t[off[l] - k] = 'x', t[std::min<size_t>(made - 1, off[l] + k - 1)] = 'y';
  }
  auto text = repeated<uint8_t>(e, n, t);
  auto offset = repeated<int>(e, off.size(), off);
  auto valid = constant<uint8_t>(e, L, 9);
  auto points = constant<int>(e, L, -1);
  Job j;
  j.mbytes = 1e-6 * double(n) + 9e-6 * L;
  j.add(utf8, UtfCfg{e.field("R", 4), e.field("B", 128)}, text.p, offset.p, valid.p, points.p, L);
  j.check = [=]() -> std::string {
    const auto gv = valid.now();
    const auto gp = points.now();
    int good = 0;
    for (int l = 0; l < L; ++l) {
      bool ok = true;
      int count = 0;
      for (int i = off[l]; i < off[l + 1]; ++i) count += (text.h[i] & 0xc0) != 0x80;
      for (int i = off[l]; ok && i < off[l + 1];) {
        const int b = text.h[i], size = b < 0x80 ? 1 : b >> 5 == 6 ? 2 : b >> 4 == 14 ? 3 : b >> 3 == 30 ? 4 : 0;
        if (!size || i + size > off[l + 1]) {
          ok = false;
          break;
        }
        int p = size == 1 ? b : b & (0xff >> (size + 1));
        for (int k = 1; k < size; ++k) ok &= (text.h[i + k] & 0xc0) == 0x80, p = p << 6 | (text.h[i + k] & 63);
        const int least[] = {0, 0, 0x80, 0x800, 0x10000};
        ok &= p >= least[size] && p <= 0x10ffff && !(p >= 0xd800 && p < 0xe000);
        i += size;
      }
      good += ok;
      if (gv[l] != ok) return "line " + std::to_string(l) + " is " + std::to_string(gv[l]);
      if (gp[l] != count) return "points of " + std::to_string(l);
    }
    return good > L / 10 && good < L * 9 / 10 ? "" : "a poor test: " + std::to_string(good) + " lines are valid";
  };
  return j;
});
}  // namespace beside_cuda_merges
}  // namespace users
