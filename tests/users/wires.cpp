// wires.cpp - what comes from wires and disks: pictures in 8 x 8 blocks, filters of rows of pixels, strings of symbols,
// polar and turbo codes.
#include <optional>

#include "tests/users/use.h"
namespace users {
namespace wires {

// --- JPEG, 4:2:0: coefficients in zigzag order to interleaved RGB: factors, the inverse transform, chroma spread,
// colours
struct JpegCfg {
  int M = 8, warps = 4;
};
/// The inverse cosine transform of 8 points along an axis: even and odd parts.
Tile idct8(const Tile& x, int axis) {
  Shape slice = x.shape(), from{0, 0, 0, 0};
  slice[axis] = 1;
  std::array<Tile, 8> v;
  for (int i = 0; i < 8; ++i) from[axis] = i, v[i] = extract(x, from, slice);
  auto c = [](int k) { return float(.5 * std::cos(k * M_PI / 16)); };
  auto e0 = (v[0] + v[4]) * c(4), e1 = (v[0] - v[4]) * c(4), e2 = v[2] * c(2) + v[6] * c(6),
       e3 = v[2] * c(6) - v[6] * c(2);
  const std::array<Tile, 4> even{e0 + e2, e1 + e3, e1 - e3, e0 - e2};
  const std::array<Tile, 4> odd{
      v[1] * c(1) + v[3] * c(3) + v[5] * c(5) + v[7] * c(7), v[1] * c(3) - v[3] * c(7) - v[5] * c(1) - v[7] * c(5),
      v[1] * c(5) - v[3] * c(1) + v[5] * c(7) + v[7] * c(3), v[1] * c(7) - v[3] * c(5) + v[5] * c(3) - v[7] * c(1)};
  Tile out = even[0] + odd[0];
  for (int i = 1; i < 8; ++i) out = cat(out, i < 4 ? even[i] + odd[i] : even[7 - i] - odd[7 - i], axis);
  return out;
}
auto jpeg =
    kernel("user_jpeg", [](const JpegCfg& c, Tensor<const int16_t, 3> coefficients, Ptr<const float> factors,
                           Ptr<const int32_t> zigzag, Tensor<uint8_t, 2> picture) {
      // coefficients [blocks of 16 x 16, 6, 64]; factors [2, 64], in zigzag order; picture [Y, 3 X]
      num_warps(c.warps);
      auto m = program_id(1) * cdiv(picture.dim(1), 48) + program_id(0) * c.M;
      auto b = reshape(arange(0, 6), {1, 6, 1}), i = reshape(arange(0, 64), {1, 1, 64});
      auto q = load(factors + where(b < 4, 0, 64) + i);
      auto x = cast(coefficients.load({m, 0, 0}, {c.M, 6, 64}), f32) * q;
      x = reshape(take(x, broadcast_to(load(zigzag + i), {c.M, 6, 64}), 2), {c.M, 6, 8, 8});
      x = idct8(idct8(x, 2), 3);
      auto y = reshape(permute(reshape(extract(x, {0, 0, 0, 0}, {c.M, 4, 8, 8}), {c.M, 2, 2, 8, 8}), {1, 3, 0, 2, 4}),
                       {16, c.M * 16}) +
               128.f;
      auto chroma = [&](int block) {
        auto s = permute(reshape(extract(x, {0, block, 0, 0}, {c.M, 1, 8, 8}), {c.M, 8, 8}), {1, 0, 2});
        return reshape(broadcast_to(reshape(s, {8, 1, c.M * 8, 1}), {8, 2, c.M * 8, 2}), {16, c.M * 16});
      };
      auto cb = chroma(4), cr = chroma(5);
      auto colour = [&](Tile v) { return expand_dims(saturate(rint(v), u8), 2); };
      auto rgb =
          cat(cat(colour(y + 1.402f * cr), colour(y - .344136f * cb - .714136f * cr), 2), colour(y + 1.772f * cb), 2);
      picture.store({program_id(1) * 16, program_id(0) * (c.M * 48)}, reshape(rgb, {16, c.M * 48}));
    }).grid([](const JpegCfg& c, const auto&, auto, auto, const auto& p) {
      return Grid{cdiv(cdiv(p.shape[1], 48), c.M), cdiv(p.shape[0], 16)};
    });
std::vector<int> zigzag_order() {  // of place (row, column): which coefficient comes there
  std::vector<int> at(64);
  for (int d = 0, k = 0; d < 15; ++d)
    for (int i = 0; i <= d; ++i) {
      const int row = d % 2 ? i : d - i, column = d - row;
      if (row < 8 && column < 8) at[row * 8 + column] = k++;
    }
  return at;
}
Register r1("jpeg", [](Env& e) {
  JpegCfg c;
  if (!e.big) c = {2, 1};
  c.M = e.field("M", c.M), c.warps = e.field("warps", c.warps);
  const int Y = e.big ? 2160 : 45, X = e.big ? 3840 : 75, across = cdiv(X, 16), n = across * cdiv(Y, 16);
  const auto order = zigzag_order();
  auto zz = filled<int32_t>(e, 64, [&](size_t i) { return order[i]; });
  auto factors = filled<float>(e, 128, [](size_t i) { return float(2 + i % 64 / 4 + i / 64); });
  auto x = drawn<int16_t>(e, size_t(n) * 6 * 64, [&, i = size_t(0)]() mutable {
    const int k = int(i++ % 64);
    return int16_t((e.uniform() - .5) * (k == 0 ? 300 : 60. / k));
  });
  auto out = constant<uint8_t>(e, size_t(Y) * X * 3, 7);
  Job j;
  j.mbytes = 1e-6 * (x.n * 2 + out.n);
  j.add(jpeg, c, x.view(n, 6, 64), factors.p, zz.p, out.view(Y, 3 * X));
  j.check = [=]() -> std::string {
    const auto got = out.now();
    std::vector<double> blocks(x.n);
    for (size_t b = 0; b < x.n / 64; ++b)
      for (int v = 0; v < 8; ++v)
        for (int u = 0; u < 8; ++u) {
          double sum = 0;
          for (int r = 0; r < 8; ++r)
            for (int s = 0; s < 8; ++s) {
              const int k = order[r * 8 + s];
              sum += x[b * 64 + k] * factors[(b % 6 >= 4) * 64 + k] * (r ? .5 : std::sqrt(.125)) *
                     (s ? .5 : std::sqrt(.125)) * std::cos((2 * v + 1) * r * M_PI / 16) *
                     std::cos((2 * u + 1) * s * M_PI / 16);
            }
          blocks[b * 64 + v * 8 + u] = sum;
        }
    for (int y = 0; y < Y; ++y)
      for (int u = 0; u < X; ++u) {
        const size_t m = size_t(y / 16) * across + u / 16;
        const int v = y % 16, w = u % 16;
        const double l = blocks[(m * 6 + v / 8 * 2 + w / 8) * 64 + v % 8 * 8 + w % 8] + 128;
        const double b = blocks[(m * 6 + 4) * 64 + v / 2 * 8 + w / 2], r = blocks[(m * 6 + 5) * 64 + v / 2 * 8 + w / 2];
        const double rgb[] = {l + 1.402 * r, l - .344136 * b - .714136 * r, l + 1.772 * b};
        for (int k = 0; k < 3; ++k)
          if (std::abs(std::clamp(rgb[k], 0., 255.) - got[(size_t(y) * X + u) * 3 + k]) > .51)
            return "pixel " + std::to_string(y) + ", " + std::to_string(u);
      }
    return "";
  };
  return j;
});

// --- PNG: every row of pixels of four bytes by the filter of five whose differences are smallest
struct FilterCfg {
  int B = 2048, warps = 4;
};
auto png =
    kernel("user_png", [](const FilterCfg& c, Tensor<const uint8_t, 2> in, Tensor<uint8_t, 2> out, Ptr<uint8_t> kinds) {
      num_warps(c.warps);
      auto y = program_id(0);
      auto filtered = [&](const Tile& x, int kind) -> Tile {
        auto at = [&](int dy, int dx) { return cast(in.load({y - dy, x - dx}, {c.B}), i32); };
        auto here = at(0, 0);
        if (kind == 0) return here;
        if (kind == 1) return here - at(0, 4);
        if (kind == 2) return here - at(1, 0);
        if (kind == 3) return here - ((at(0, 4) + at(1, 0)) >> 1);
        auto a = at(0, 4), b = at(1, 0), corner = at(1, 4);
        auto pa = abs(b - corner), pb = abs(a - corner), pc = abs(a + b - 2 * corner);
        return here - where((pa <= pb) & (pa <= pc), a, where(pb <= pc, b, corner));
      };
      std::array<Tile, 5> sums;
      for (auto& s : sums) s = zeros({c.B}, i32);
      for (auto x : range(0, in.dim(1), c.B)) {
        auto inside = x + arange(0, c.B) < in.dim(1);
        for (int k = 0; k < 5; ++k) sums[k] += where(inside, abs(cast(cast(filtered(x, k), i8), i32)), 0);
      }
      Tile best = sum(sums[0]), kind = Tile(0);
      for (int k = 1; k < 5; ++k) {
        auto s = sum(sums[k]);
        kind = where(s < best, k, kind), best = min(best, s);
      }
      store(kinds + y, cast(kind, u8));
      for (int k = 0; k < 5; ++k)
        for (auto _ : when(kind == k))
          for (auto x : range(0, in.dim(1), c.B)) out.store({y, x}, cast(filtered(x, k), u8));
    }).grid([](const FilterCfg&, const auto& in, const auto&, auto) { return Grid{in.shape[0]}; });
Register r2("png", [](Env& e) {
  FilterCfg c;
  if (!e.big) c = {64, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int Y = e.big ? 4320 : 23, X = (e.big ? 7680 : 37) * 4;
  auto in = drawn<uint8_t>(e, size_t(Y) * X, [&, i = size_t(0)]() mutable {
    const int y = int(i / X), x = int(i++ % X);
    return uint8_t(y % 5 == 0   ? e.uniform() * 256
                   : y % 5 == 1 ? x / 4 * (x % 4 + 1)
                   : y % 5 == 2 ? y + x % 4
                                : y * x / 9 + 3 * e.uniform());
  });
  auto out = constant<uint8_t>(e, in.n, 0), kinds = constant<uint8_t>(e, Y, 9);
  Job j;
  j.mbytes = 2e-6 * in.n;
  j.add(png, c, in.view(Y, X), out.view(Y, X), kinds.p);
  j.check = [=]() -> std::string {
    const auto got = out.now(), chosen = kinds.now();
    for (int y = 0; y < Y; ++y) {
      std::vector<uint8_t> rows[5];
      int64_t sums[5] = {};
      for (int k = 0; k < 5; ++k)
        for (int x = 0; x < X; ++x) {
          auto at = [&](int dy, int dx) { return y < dy || x < dx ? 0 : int(in.h[size_t(y - dy) * X + x - dx]); };
          const int a = at(0, 4), b = at(1, 0), d = at(1, 4), p = a + b - d;
          const int pa = std::abs(p - a), pb = std::abs(p - b), pc = std::abs(p - d);
          const int by[] = {0, a, b, (a + b) / 2, pa <= pb && pa <= pc ? a : pb <= pc ? b : d};
          rows[k].push_back(uint8_t(at(0, 0) - by[k])), sums[k] += std::abs(int(int8_t(rows[k].back())));
        }
      const int best = int(std::min_element(sums, sums + 5) - sums);
      if (chosen[y] != best) return "filter of row " + std::to_string(y);
      for (int x = 0; x < X; ++x)
        if (got[size_t(y) * X + x] != rows[best][x]) return "row " + std::to_string(y) + " byte " + std::to_string(x);
    }
    return "";
  };
  return j;
});

// --- strings of codes for symbols of up to eight bytes (FSST); 255 says that the next byte stands for itself
struct SymbolCfg {
  int B = 128, warps = 4;
};
auto symbols = kernel("user_symbols", [](const SymbolCfg& c, Ptr<const uint8_t> codes, Ptr<const int32_t> starts,
                                         Ptr<const int32_t> ends, Ptr<const uint64_t> words, Ptr<const uint8_t> lengths,
                                         Ptr<uint8_t> out, I32) {
                 // text i: codes starts[i] .. starts[i + 1], to out + ends[i] ..
                 num_warps(c.warps);
                 auto t = program_id(0);
                 auto first = load(starts + t), last = load(starts + t + 1);
                 Tile to = load(ends + t), literal = Tile(0);
                 for (auto at : range(first, last, c.B)) {
                   auto i = at + arange(0, c.B);
                   auto in = i < last;
                   auto code = cast(load(codes + i, {.mask = in}), i32);
                   auto before = cast(load(codes + i - 1, {.mask = in & (i > at)}), i32);
                   // whether a byte stands for itself, if the first one does not, and if it does
                   auto is_first = arange(0, c.B) == 0;
                   auto escapes = cast(before == 255, i32);
                   auto [no, yes] = scan({where(is_first, 0, escapes), where(is_first, 1, 0)}, axis(0),
                                         [](Tile a0, Tile a1, Tile b0, Tile b1) {
                                           return std::tuple(where(a0 == 0, b0, b1), where(a1 == 0, b0, b1));
                                         });
                   auto itself = where(literal == 0, no, yes) == 1;
                   auto length = where(itself, 1, where(code == 255, 0, cast(load(lengths + code, {.mask = in}), i32)));
                   length = where(in, length, 0);
                   auto word = where(itself, cast(code, u64), load(words + code, {.mask = in}));
                   auto place = to + cumsum(length, axis(0)) - length;
                   for (int b = 0; b < 8; ++b) store(out + place + b, cast(word >> (8 * b), u8), {.mask = b < length});
                   to += sum(length);
                   literal = sum(where(i == at + (c.B - 1), cast((code == 255) & !itself, i32), 0));
                 }
               }).grid([](const SymbolCfg&, auto, auto, auto, auto, auto, auto, int texts) { return Grid{texts}; });
Register r3("symbols", [](Env& e) {
  SymbolCfg c;
  if (!e.big) c = {32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int texts = e.big ? 1 << 14 : 7;
  auto words = integers<uint64_t>(e, 256, 0, int64_t(1) << 62);
  auto lengths = integers<uint8_t>(e, 256, 1, 9);
  std::vector<uint8_t> all, right;
  std::vector<int32_t> starts{0}, ends{0};
  for (int t = 0; t < texts; ++t) {
    const int n = e.big ? 2048 : 20 + t * 13;
    for (int i = 0; i < n; ++i) {
      const int code = e.device ? int(e.uniform() * 256) : 0;
      if (!e.device) continue;
      const bool escape = code == 255 || e.uniform() < .1;
      all.push_back(escape ? 255 : code);
      if (escape) all.push_back(i % 3 ? 255 : code), right.push_back(all.back());
      for (int b = 0; !escape && b < lengths.h[code]; ++b) right.push_back(uint8_t(words.h[code] >> (8 * b)));
    }
    starts.push_back(int(all.size())), ends.push_back(int(right.size()));
  }
  auto codes = filled<uint8_t>(e, all.size(), [&](size_t i) { return all[i]; });
  auto s = filled<int32_t>(e, starts.size(), [&](size_t i) { return starts[i]; });
  auto to = filled<int32_t>(e, ends.size(), [&](size_t i) { return ends[i]; });
  auto out = constant<uint8_t>(e, right.size() + 8, 0);
  Job j;
  j.mbytes = 1e-6 * (all.size() + right.size());
  j.add(symbols, c, codes.p, s.p, to.p, words.p, lengths.p, out.p, texts);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    for (size_t i = 0; i < right.size(); ++i)
      if (got[i] != right[i]) return "byte " + std::to_string(i);
    return "";
  };
  return j;
});

// --- polar codes of 64 bits, successive cancellation: a code word an element; halves without information are skipped
struct PolarCfg {
  int B = 128, warps = 4;
};
/// Which of 64 bits carry information: the 32 whose channels are best (an erasure channel of one half).
std::vector<bool> polar_information() {
  std::vector<double> z{.5};
  while (z.size() < 64) {
    std::vector<double> next;
    for (double x : z) next.push_back(2 * x - x * x), next.push_back(x * x);
    z = next;
  }
  std::vector<int> order(64);
  for (int i = 0; i < 64; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return z[a] < z[b]; });
  std::vector<bool> is(64);
  for (int i = 0; i < 32; ++i) is[order[i]] = true;
  return is;
}
/// The bits of the code word of these likelihoods; those decided go into `word`, the first one lowest.
std::vector<Tile> polar_decode(const std::vector<Tile>& l, int first, const std::vector<bool>& carries, Tile& word) {
  const int n = int(l.size());
  if (std::none_of(carries.begin() + first, carries.begin() + first + n, [](bool b) { return b; }))
    return std::vector<Tile>(n, zeros(l[0].shape(), i32));
  if (n == 1) {
    auto bit = cast(l[0] < 0, i32);
    word |= cast(bit, u64) << first;
    return {bit};
  }
  std::vector<Tile> half;
  for (int i = 0; i < n / 2; ++i) {
    auto &a = l[i], &b = l[i + n / 2];
    auto least = min(abs(a), abs(b));
    half.push_back(where((a ^ b) < 0, -least, least));
  }
  auto left = polar_decode(half, first, carries, word);
  for (int i = 0; i < n / 2; ++i) half[i] = l[i + n / 2] + where(left[i] == 0, l[i], -l[i]);
  auto right = polar_decode(half, first + n / 2, carries, word);
  for (int i = 0; i < n / 2; ++i) left[i] = left[i] ^ right[i];
  left.insert(left.end(), right.begin(), right.end());
  return left;
}
auto polar = kernel("user_polar", [](const PolarCfg& c, Ptr<const int8_t> likelihoods, Ptr<uint64_t> bits, I32 n) {
               num_warps(c.warps);
               auto w = program_id(0) * c.B + arange(0, c.B);
               auto in = w < n;
               std::vector<Tile> l;
               for (int k = 0; k < 64; ++k) l.push_back(cast(load(likelihoods + w * 64 + k, {.mask = in}), i32));
               Tile word = zeros({c.B}, u64);
               polar_decode(l, 0, polar_information(), word);
               store(bits + w, word, {.mask = in});
             }).grid([](const PolarCfg& c, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r4("polar", [](Env& e) {
  PolarCfg c;
  if (!e.big) c = {32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 21 : 83;
  auto l = integers<int8_t>(e, size_t(n) * 64, -127, 128);
  auto bits = constant<uint64_t>(e, n, 0);
  Job j;
  j.mbytes = 72e-6 * n;
  j.add(polar, c, l.p, bits.p, n);
  j.check = [=]() -> std::string {
    const auto got = bits.now();
    const auto carries = polar_information();
    std::function<std::vector<int>(std::vector<int>, int, uint64_t&)> decode = [&](std::vector<int> v, int first,
                                                                                   uint64_t& word) -> std::vector<int> {
      const int m = int(v.size());
      if (m == 1) {
        const int bit = carries[first] && v[0] < 0;
        word |= uint64_t(bit) << first;
        return {bit};
      }
      std::vector<int> h(m / 2);
      for (int i = 0; i < m / 2; ++i)
        h[i] = std::min(std::abs(v[i]), std::abs(v[i + m / 2])) * ((v[i] < 0) != (v[i + m / 2] < 0) ? -1 : 1);
      auto a = decode(h, first, word);
      for (int i = 0; i < m / 2; ++i) h[i] = v[i + m / 2] + (a[i] ? -v[i] : v[i]);
      const auto b = decode(h, first + m / 2, word);
      for (int i = 0; i < m / 2; ++i) a[i] ^= b[i];
      a.insert(a.end(), b.begin(), b.end());
      return a;
    };
    for (int i = 0; i < n; ++i) {
      std::vector<int> v(64);
      for (int k = 0; k < 64; ++k) v[k] = l.h[i * 64 + k];
      uint64_t word = 0;
      decode(v, 0, word);
      if (word != got[i]) return "word " + std::to_string(i);
    }
    return "";
  };
  return j;
});

// --- turbo codes: windows of a code word forwards and backwards through eight states (max-log), a window an element;
// what lies before is kept in memory
struct TurboCfg {
  int B = 128, warps = 4;
};
auto turbo = kernel("user_turbo", [](const TurboCfg& c, Ptr<const float> systematic, Ptr<const float> parity,
                                     Ptr<float> kept, Ptr<float> out, I32 steps, I32 n) {
               // systematic, parity, out [steps, n]; kept [steps, 8, n]
               num_warps(c.warps);
               auto w = program_id(0) * c.B + arange(0, c.B);
               auto in = w < n;
               using States = std::array<Tile, 8>;
               auto next = [](int s, int u) {
                 const int f = u ^ (s >> 1 & 1) ^ (s & 1);
                 return std::pair(f << 2 | s >> 1, f ^ (s >> 2) ^ (s & 1));  // state, parity
               };
               auto branch = [&](const Tile& x, const Tile& p, int u, int bit) {
                 return (u ? x : -x) + (bit ? p : -p);  // halves are left out on both sides
               };
               auto larger = [](std::optional<Tile>& a, const Tile& b) { a = a ? max(*a, b) : b; };
               States a, b;
               for (int s = 0; s < 8; ++s) a[s] = zeros({c.B}, f32), b[s] = zeros({c.B}, f32);
               for (auto t : range(steps)) {
                 auto x = load(systematic + t * n + w, {.mask = in}), p = load(parity + t * n + w, {.mask = in});
                 std::array<std::optional<Tile>, 8> to;
                 for (int s = 0; s < 8; ++s) {
                   store(kept + (t * 8 + s) * n + w, a[s], {.mask = in});
                   for (int u = 0; u < 2; ++u) larger(to[next(s, u).first], a[s] + branch(x, p, u, next(s, u).second));
                 }
                 for (int s = 0; s < 8; ++s) a[s] = *to[s] - *to[0];
               }
               for (auto t : range(steps - 1, -1, -1)) {
                 auto x = load(systematic + t * n + w, {.mask = in}), p = load(parity + t * n + w, {.mask = in});
                 std::array<std::optional<Tile>, 8> to;
                 std::array<std::optional<Tile>, 2> best;
                 for (int s = 0; s < 8; ++s) {
                   auto before = load(kept + (t * 8 + s) * n + w, {.mask = in});
                   for (int u = 0; u < 2; ++u) {
                     auto on = b[next(s, u).first] + branch(x, p, u, next(s, u).second);
                     larger(to[s], on), larger(best[u], before + on);
                   }
                 }
                 store(out + t * n + w, *best[1] - *best[0], {.mask = in});
                 for (int s = 0; s < 8; ++s) b[s] = *to[s] - *to[0];
               }
             }).grid([](const TurboCfg& c, auto, auto, auto, auto, int, int n) { return Grid{cdiv(n, c.B)}; });
Register r5("turbo", [](Env& e) {
  TurboCfg c;
  if (!e.big) c = {32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int steps = e.big ? 64 : 11, n = e.big ? 1 << 18 : 61;
  auto x = random<float>(e, size_t(steps) * n, -2, 2), p = random<float>(e, size_t(steps) * n, -2, 2);
  auto kept = constant<float>(e, size_t(steps) * n * 8, NAN), out = constant<float>(e, x.n, NAN);
  Job j;
  j.mbytes = 84e-6 * steps * n;
  j.add(turbo, c, x.p, p.p, kept.p, out.p, steps, n);
  j.check = [=] {
    std::vector<double> want(x.n);
    for (int w = 0; w < n; ++w) {
      std::vector<std::array<double, 8>> a(steps + 1), b(steps + 1);
      a[0].fill(0), b[steps].fill(0);
      auto each = [&](int t, auto f) {
        for (int s = 0; s < 8; ++s)
          for (int u = 0; u < 2; ++u) {
            const int g = u ^ (s >> 1 & 1) ^ (s & 1), bit = g ^ (s >> 2) ^ (s & 1);
            f(s, g << 2 | s >> 1, u, (u ? 1 : -1) * x[size_t(t) * n + w] + (bit ? 1 : -1) * p[size_t(t) * n + w]);
          }
      };
      for (int t = 0; t < steps; ++t) {
        a[t + 1].fill(-1e30);
        each(t, [&](int s, int to, int, double g) { a[t + 1][to] = std::max(a[t + 1][to], a[t][s] + g); });
      }
      for (int t = steps; t--;) {
        double best[2] = {-1e30, -1e30};
        b[t].fill(-1e30);
        each(t, [&](int s, int to, int u, double g) {
          b[t][s] = std::max(b[t][s], b[t + 1][to] + g), best[u] = std::max(best[u], a[t][s] + b[t + 1][to] + g);
        });
        want[size_t(t) * n + w] = best[1] - best[0];
      }
    }
    return agree(out.now(), want, 1e-4, 1e-4);
  };
  return j;
});

}  // namespace wires
}  // namespace users
