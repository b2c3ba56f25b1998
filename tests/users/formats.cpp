// formats.cpp - what bytes say: numbers out of text, brackets that match, fields compressed in blocks, a tree of hashes.
#include "tests/users/use.h"
namespace users {
namespace formats {

// --- numbers out of text: sign, digits, point, exponent; fields of up to 24 characters, what is no number is NaN
struct ParseCfg {
  int B = 128, most = 24, warps = 4;
};
auto parse_numbers =
    kernel("user_parse_numbers", [](const ParseCfg& c, Ptr<const uint8_t> text, Ptr<const int64_t> start,
                                    Ptr<double> out, Ptr<int32_t> bad, I32 n) {
      num_warps(c.warps);
      auto f = program_id(0) * c.B + arange(0, c.B);
      auto in = f < n;
      auto first = load(start + f, {.mask = in}), end = load(start + f + 1, {.mask = in}) - 1;  // a comma behind each
      auto length = cast(end - first, i32);
      Tile mantissa = zeros({c.B}, u64), scale = zeros({c.B}, i32), exponent = zeros({c.B}, i32);
      Tile negative = full({c.B}, false, i1), down = negative, point = negative, e = negative, wrong = length > c.most;
      Tile digits = zeros({c.B}, i32), powers = digits;
      for (int i = 0; i < c.most; ++i) {
        auto here = in & (i < length);
        auto x = cast(load(text + first + i, {.mask = here}), i32);
        auto digit = here & (x >= '0') & (x <= '9'), sign = here & ((x == '-') | (x == '+'));
        auto mark = here & (x == '.'), letter = here & ((x | 32) == 'e');
        auto d = x - '0';
        mantissa = where(digit & ~e, mantissa * 10 + cast(d, u64), mantissa);
        exponent = where(digit & e, min(exponent * 10 + d, 9999), exponent);
        scale -= cast(digit & ~e & point, i32);
        digits += cast(digit & ~e, i32), powers += cast(digit & e, i32);
        negative |= sign & ~e & (x == '-'), down |= sign & e & (x == '-');
        // A sign begins the number or the exponent.
        auto before = cast(load(text + first + (i - 1), {.mask = here & (first + i > 0)}), i32) | 32;
        auto begins = i == 0 ? here : (before == 'e') & e & (powers == 0);
        wrong |= (sign & ~begins) | (mark & (point | e)) | (letter & (e | (digits == 0)));
        wrong |= here & ~(digit | sign | mark | letter);
        point |= mark, e |= letter;
      }
      wrong |= (digits == 0) | (e & (powers == 0)) | (digits > 19);
      auto power = scale + where(down, -exponent, exponent);
      auto value = cast(mantissa, f64) * pow(full({c.B}, 10., f64), cast(power, f64));
      store(out + f, where(wrong, NAN, where(negative, -value, value)), {.mask = in});
      atomic_add(bad, sum(cast(wrong & in, i32)));
    }).grid([](const ParseCfg& c, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r3("parse_numbers", [](Env& e) {
  ParseCfg c;
  if (!e.big) c = {32, 24, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 21 : 165;
  std::string text;
  std::vector<int64_t> start{0};
  const char* given[] = {"0",
                         "-0.5",
                         "1e3",
                         "+12.25E-2",
                         "1.7976931348623157e308",
                         "",
                         "-",
                         "1.2.3",
                         "e5",
                         "1e",
                         "12a",
                         "3.",
                         ".5",
                         "--1",
                         "1e+5",
                         "1e--5",
                         "00012",
                         "123456789012345678901",
                         "5e-324"};
  for (int i = 0; i < n; ++i) {
    char s[64];
    std::snprintf(s, sizeof s, i % 3 ? "%.*g" : "%.*f", int(e.uniform() * 12) + 1, (e.uniform() - .5) * 2000);
    text += i < 19 ? given[i] : s;
    text += ',';
    start.push_back(int64_t(text.size()));
  }
  auto t = filled<uint8_t>(e, text.size(), [&](size_t i) { return uint8_t(text[i]); });
  auto s = filled<int64_t>(e, n + 1, [&](size_t i) { return start[i]; });
  auto out = constant<double>(e, n, 7);
  auto bad = constant<int32_t>(e, 1, 0);
  Job j;
  j.mbytes = 1e-6 * text.size() + 16e-6 * n;
  j.inTurn = true;
  j.add(parse_numbers, c, t.p, s.p, out.p, bad.p, n);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    int wrong = 0;
    for (int i = 0; i < n; ++i) {
      const std::string field = text.substr(start[i], start[i + 1] - 1 - start[i]);
      char* end;
      const double want = std::strtod(field.c_str(), &end);
      const bool no = field.empty() || *end || i == 17;  // 21 digits are too many
      wrong += no;
      if (no ? !std::isnan(got[i]) : !(std::abs(got[i] - want) <= 1e-14 * std::abs(want) + 1e-322))
        return "'" + field + "' is " + std::to_string(got[i]);
    }
    return bad.now()[0] == wrong ? "" : "how many are wrong";
  };
  return j;
});

// --- which bracket closes which: depth by a running sum, then neighbours in the order of depth and place
struct BracketCfg {
  int B = 1024, warps = 4;
};
auto brackets =
    kernel("user_brackets", [](const BracketCfg& c, Tensor<const int8_t, 2> text, Tensor<int32_t, 2> partner) {
      // text, partner [texts, B]; -1: no bracket, or one without partner
      num_warps(c.warps);
      auto t = program_id(0);
      auto x = cast(text.load({t, 0}, {c.B}), i32);
      auto opens = x == '(', closes = x == ')';
      auto depth = cumsum(cast(opens, i32) - cast(closes, i32), axis(0)) + cast(closes, i32);
      auto i = arange(0, c.B);
      auto key = where(opens | closes, (depth + c.B) * (2 * c.B) + i * 2 + cast(closes, i32), INT32_MAX);
      auto sorted = sort(key, axis(0));
      auto there = sorted != INT32_MAX;
      auto before = take(sorted, max(i - 1, 0), 0), after = take(sorted, min(i + 1, c.B - 1), 0);
      auto level = [&](Tile k) { return k / (2 * c.B); };
      auto place = [&](Tile k) { return (k % (2 * c.B)) >> 1; };
      auto closing = (sorted & 1) == 1;
      auto found = where(closing, (i > 0) & (level(before) == level(sorted)) & ((before & 1) == 0),
                         (i < c.B - 1) & (level(after) == level(sorted)) & ((after & 1) == 1));
      partner.store({t, 0}, full({c.B}, -1, i32));
      auto to = partner.ptr() + cast(t, i64) * partner.stride(0) + place(sorted);
      store(to, where(found, place(where(closing, before, after)), -1), {.mask = there});
    }).grid([](const BracketCfg&, const auto& t, const auto&) { return Grid{t.shape[0]}; });
Register r4("brackets", [](Env& e) {
  BracketCfg c;
  if (!e.big) c = {100, 1};
  c.warps = e.field("warps", c.warps);
  const int T = e.big ? 8192 : 7, B = c.B;
  auto text = filled<int8_t>(e, size_t(T) * B, [&](size_t) { return "()a"[int(e.uniform() * 2.999)]; });
  auto partner = constant<int32_t>(e, text.n, -7);
  Job j;
  j.mbytes = 5e-6 * text.n;
  j.add(brackets, c, text.view(T, B), partner.view(T, B));
  j.check = [=]() -> std::string {
    const auto got = partner.now();
    for (int t = 0; t < T; ++t) {
      std::vector<int> want(B, -1), stack;
      for (int i = 0; i < B; ++i) {
        if (text.at(t * B + i) == '(') stack.push_back(i);
        if (text.at(t * B + i) == ')' && !stack.empty())
          want[i] = stack.back(), want[stack.back()] = i, stack.pop_back();
      }
      for (int i = 0; i < B; ++i)
        if (got[t * B + i] != want[i]) return "place " + std::to_string(i) + " of " + std::to_string(t);
    }
    return "";
  };
  return j;
});

// --- fields compressed in blocks of 4 x 4 x 4 (ZFP, fixed rate): a common exponent, a transform along every axis in
// integers, bits of all numbers plane by plane, a word of 64 each
struct ZfpCfg {
  int B = 32, planes = 8, warps = 1;  // a block a thread
};
auto zfp =
    kernel("user_zfp", [](const ZfpCfg& c, Tensor<const float, 3> X, Ptr<uint64_t> words, Ptr<int16_t> exponents) {
      // X [Z, Y, X], all multiples of 4; words [blocks, planes]; blocks of a row of blocks follow each other
      num_warps(c.warps);
      auto bx = program_id(0) * c.B, by = program_id(1), bz = program_id(2);
      auto box = X.load({bz * 4, by * 4, bx * 4}, {4, 4, 4 * c.B});
      auto x = permute(reshape(box, {4, 4, c.B, 4}), {2, 0, 1, 3});  // [block, z, y, x]
      auto largest = max(max(max(abs(x), axis(3)), axis(2)), axis(1));
      auto e = where(largest > 0.f, cast(logb(largest), i32) + 1, -126);
      Tile q = cast(ldexp(x, 25 - e), i32);
      auto lift = [](Tile a, int axis) {  // the transform of ZFP along an axis of four
        Shape slice = a.shape(), at{0, 0, 0, 0};
        slice[axis] = 1;
        std::array<Tile, 4> v;
        for (int i = 0; i < 4; ++i) at[axis] = i, v[i] = extract(a, at, slice);
        auto& [x, y, z, w] = v;
        x += w, x = x >> 1, w -= x;
        z += y, z = z >> 1, y -= z;
        x += z, x = x >> 1, z -= x;
        w += y, w = w >> 1, y -= w;
        w += y >> 1, y -= w >> 1;
        return cat(cat(x, y, axis), cat(z, w, axis), axis);
      };
      q = lift(lift(lift(q, 3), 2), 1);
      auto u = (bitcast(q, u32) + 0xAAAAAAAAu) ^ 0xAAAAAAAAu;  // negabinary
      auto flat = cast(reshape(u, {c.B, 64}), u64);
      auto block = (bz * num_programs(1) + by) * cdiv(X.dim(2), 4) + bx + arange(0, c.B);
      auto inside = bx + arange(0, c.B) < X.dim(2) / 4;
      for (int p = 0; p < c.planes; ++p) {
        auto bits = ((flat >> (27 - p)) & 1) << cast(arange(0, 64), u64).row();
        store(words + block * c.planes + p, squeeze(sum(bits, axis(1)), 1), {.mask = inside});
      }
      store(exponents + block, cast(reshape(e, {c.B}), i16), {.mask = inside});
    }).grid([](const ZfpCfg& c, const auto& x, auto, auto) {
      return Grid{cdiv(x.shape[2], 4 * c.B), x.shape[1] / 4, x.shape[0] / 4};
    });
Register r9("zfp", [](Env& e) {
  ZfpCfg c;
  if (!e.big) c = {3, 5, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int Z = e.big ? 256 : 8, Y = e.big ? 512 : 12, X = e.big ? 512 : 20;
  auto x = filled<float>(e, size_t(Z) * Y * X,
                         [&](size_t i) { return i < 40 ? 0.f : float(std::sin(i * .01) * 30 + e.uniform()); });
  const int blocks = Z * Y * X / 64;
  auto words = constant<uint64_t>(e, size_t(blocks) * c.planes, 0);
  auto exponents = constant<int16_t>(e, blocks, -1);
  Job j;
  j.mbytes = 4e-6 * x.n + 8e-6 * words.n;
  j.add(zfp, c, x.view(Z, Y, X), words.p, exponents.p);
  j.check = [=]() -> std::string {
    const auto got = words.now();
    const auto ex = exponents.now();
    for (int b = 0; b < blocks; ++b) {
      const int bx = b % (X / 4), by = b / (X / 4) % (Y / 4), bz = b / (X / 4) / (Y / 4);
      float v[64], largest = 0;
      for (int i = 0; i < 64; ++i) {
        v[i] = x.at((size_t(bz * 4 + i / 16) * Y + by * 4 + i / 4 % 4) * X + bx * 4 + i % 4);
        largest = std::max(largest, std::abs(v[i]));
      }
      const int e = largest > 0 ? int(std::logb(largest)) + 1 : -126;
      if (ex[b] != e) return "exponent of " + std::to_string(b);
      int32_t q[64];
      for (int i = 0; i < 64; ++i) q[i] = int32_t(std::ldexp(v[i], 25 - e));
      for (int step : {1, 4, 16})
        for (int l = 0; l < 64; ++l) {
          if (l / step % 4) continue;
          int32_t &x = q[l], &y = q[l + step], &z = q[l + 2 * step], &w = q[l + 3 * step];
          x += w, x >>= 1, w -= x, z += y, z >>= 1, y -= z, x += z, x >>= 1, z -= x;
          w += y, w >>= 1, y -= w, w += y >> 1, y -= w >> 1;
        }
      for (int p = 0; p < c.planes; ++p) {
        uint64_t word = 0;
        for (int i = 0; i < 64; ++i)
          word |= uint64_t(((uint32_t(q[i]) + 0xAAAAAAAAu) ^ 0xAAAAAAAAu) >> (27 - p) & 1) << i;
        if (got[size_t(b) * c.planes + p] != word) return "plane " + std::to_string(p) + " of " + std::to_string(b);
      }
    }
    return "";
  };
  return j;
});

// --- a tree of hashes (BLAKE3): chunks of 1024 bytes, a lane each, sixteen blocks one after the other; then parents,
// half as many every time, until a program has one root of its 2^n chunks
struct BlakeCfg {
  int B = 64, warps = 2;
};
using Words8 = std::array<Tile, 8>;
constexpr uint32_t kBlake[8] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                                0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
constexpr int kBlakeOrder[16] = {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};
template <class Word, class Rotate>
void blake_rounds(std::array<Word, 16>& v, std::array<Word, 16> m, Rotate rotate) {
  for (int round = 0; round < 7; ++round) {
    auto g = [&](int a, int b, int c, int d, int i) {
      for (int half = 0; half < 2; ++half) {
        v[a] = v[a] + v[b] + m[2 * i + half];
        v[d] = rotate(v[d] ^ v[a], half ? 8 : 16);
        v[c] = v[c] + v[d];
        v[b] = rotate(v[b] ^ v[c], half ? 7 : 12);
      }
    };
    for (int i = 0; i < 4; ++i) g(i, 4 + i, 8 + i, 12 + i, i);
    for (int i = 0; i < 4; ++i) g(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, 4 + i);
    const auto old = m;
    for (int i = 0; i < 16; ++i) m[i] = old[kBlakeOrder[i]];
  }
}
Words8 compress(const Words8& chain, const std::array<Tile, 16>& m, const Tile& counter, const Tile& flags) {
  const Shape shape = m[0].shape();
  std::array<Tile, 16> v;
  for (int i = 0; i < 8; ++i) v[i] = chain[i];
  for (int i = 0; i < 4; ++i) v[8 + i] = full(shape, kBlake[i], u32);
  v[12] = counter, v[13] = full(shape, 0u, u32), v[14] = full(shape, 64u, u32), v[15] = flags;
  blake_rounds(v, m, [](Tile x, int n) { return rotr(x, n); });
  Words8 out;
  for (int i = 0; i < 8; ++i) out[i] = v[i] ^ v[8 + i];
  return out;
}
auto blake3 = kernel("user_blake3", [](const BlakeCfg& c, Tensor<const uint32_t, 2> chunks, Ptr<uint32_t> roots) {
                // chunks [n, 256]: whole programs of them; roots [programs, 8], not yet the root of anything larger
                num_warps(c.warps);
                auto first = program_id(0) * c.B;
                auto number = cast(first + arange(0, c.B), u32);
                Words8 chain;
                for (int i = 0; i < 8; ++i) chain[i] = full({c.B}, kBlake[i], u32);
                for (auto block : range(16)) {
                  auto words = chunks.load({first, block * 16}, {c.B, 16});
                  std::array<Tile, 16> m;
                  for (int i = 0; i < 16; ++i) m[i] = reshape(extract(words, {0, i}, {c.B, 1}), {c.B});
                  auto flags = cast(where(block == 0, 1, where(block == 15, 2, 0)), u32);
                  chain = compress(chain, m, number, full({c.B}, flags, u32));
                }
                for (int n = c.B / 2; n; n /= 2) {
                  std::array<Tile, 16> m;
                  for (int i = 0; i < 8; ++i) std::tie(m[i], m[8 + i]) = split(reshape(chain[i], {n, 2}));
                  Words8 key;
                  for (int i = 0; i < 8; ++i) key[i] = full({n}, kBlake[i], u32);
                  chain = compress(key, m, full({n}, 0u, u32), full({n}, 4u, u32));
                }
                for (int i = 0; i < 8; ++i) store(roots + program_id(0) * 8 + i, to_scalar(chain[i]));
              }).grid([](const BlakeCfg& c, const auto& x, auto) { return Grid{x.shape[0] / c.B}; });
Register r11("blake3", [](Env& e) {
  BlakeCfg c;
  if (!e.big) c = {8, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 18 : 24;
  auto chunks = integers<uint32_t>(e, size_t(n) * 256, 0, 1ll << 32);
  auto roots = constant<uint32_t>(e, size_t(n) / c.B * 8, 0);
  Job j;
  j.mbytes = 4e-6 * chunks.n;
  j.add(blake3, c, chunks.view(n, 256), roots.p);
  j.check = [=]() -> std::string {
    using W = std::array<uint32_t, 8>;
    auto squeeze = [](const W& chain, const std::array<uint32_t, 16>& m, uint32_t counter, uint32_t flags) {
      std::array<uint32_t, 16> v{};
      for (int i = 0; i < 8; ++i) v[i] = chain[i];
      for (int i = 0; i < 4; ++i) v[8 + i] = kBlake[i];
      v[12] = counter, v[14] = 64, v[15] = flags;
      blake_rounds(v, m, [](uint32_t x, int n) { return std::rotr(x, n); });
      W out;
      for (int i = 0; i < 8; ++i) out[i] = v[i] ^ v[8 + i];
      return out;
    };
    W key;
    std::copy(kBlake, kBlake + 8, key.begin());
    const auto got = roots.now();
    for (int p = 0; p < n / c.B; ++p) {
      std::vector<W> level;
      for (int k = 0; k < c.B; ++k) {
        W chain = key;
        for (int b = 0; b < 16; ++b) {
          std::array<uint32_t, 16> m;
          for (int i = 0; i < 16; ++i) m[i] = chunks.at((size_t(p) * c.B + k) * 256 + b * 16 + i);
          chain = squeeze(chain, m, p * c.B + k, b == 0 ? 1 : b == 15 ? 2 : 0);
        }
        level.push_back(chain);
      }
      while (level.size() > 1) {
        std::vector<W> up;
        for (size_t i = 0; i < level.size(); i += 2) {
          std::array<uint32_t, 16> m;
          for (int k = 0; k < 8; ++k) m[k] = level[i][k], m[8 + k] = level[i + 1][k];
          up.push_back(squeeze(key, m, 0, 4));
        }
        level = up;
      }
      for (int i = 0; i < 8; ++i)
        if (got[p * 8 + i] != level[0][i]) return "root " + std::to_string(p);
    }
    return "";
  };
  return j;
});

}  // namespace formats
}  // namespace users
