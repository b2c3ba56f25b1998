// sounds_and_copies.cpp - streams decoded: lossless sound (Rice codes of what a linear prediction leaves, as in FLAC),
// a frame a lane; and LZ77, all bytes of a block at once by pointers that jump.
#include "tests/users/use.h"
namespace users {
namespace sounds_and_copies {

// --- sound: after every 64 samples five bits say how many low bits a residual keeps; its upper ones are a number of
// zeros. The prediction is a sum over the eight samples before
struct RiceCfg {
  int B = 64, warps = 2;
};
constexpr int kOrder = 8, kPart = 64;
/// Bits of a stream of 32-bit words, the highest first: at least 33 of them are at hand after fill().
struct BitReader {
  Ptr<const uint32_t> words;
  Tile at, window, count, live;
  BitReader(Ptr<const uint32_t> words, const Tile& at, const Tile& live)
      : words(words), at(at), window(zeros(at.shape(), u64)), count(zeros(at.shape(), i32)), live(live) {}
  void fill(const Tile& who) {
    auto low = who & (count <= 32);
    auto word = cast(load(words + at, {.mask = low}), u64);
    window = where(low, window | (word << (32 - min(count, 32))), window);
    count = where(low, count + 32, count), at = where(low, at + 1, at);
  }
  void drop(const Tile& n) { window = window << n, count -= n; }
  Tile take_bits(const Tile& n) {  // up to 32
    fill(live);
    auto bits = (window >> 1) >> (63 - n);
    drop(n);
    return cast(bits, u32);
  }
  Tile take_zeros() {  // and the one behind them
    fill(live);
    Tile n = zeros(at.shape(), u32);
    while_([&] { return any(live & (window >> 32 == 0)); },
           [&] {
             auto none = live & (window >> 32 == 0);
             n = where(none, n + 32, n);
             window = where(none, window << 32, window), count = where(none, count - 32, count);
             fill(none);  // only theirs: the others' warps need not wait
           });
    auto z = cast(countl_zero(window | 1), i32);
    n += cast(z, u32);
    drop(min(z + 1, 32));
    return n;
  }
};
auto rice =
    kernel("user_rice", [](const RiceCfg& c, Ptr<const uint32_t> words, Ptr<const int64_t> begins,
                           Tensor<const int16_t, 2> coefficients, Ptr<const uint8_t> shifts, I32 samples,
                           Tensor<int16_t, 2> out) {
      // coefficients [frames, 8], out [frames, samples]; words from begins [frames] on
      num_warps(c.warps);
      auto first = program_id(0) * c.B;
      auto frame = first + arange(0, c.B);
      auto live = frame < out.dim(0);
      BitReader bits(words, load(begins + frame, {.mask = live}), live);
      auto shift = cast(load(shifts + frame, {.mask = live}), i64);
      std::array<Tile, kOrder> coefficient, before;
      for (int k = 0; k < kOrder; ++k) {
        coefficient[k] = cast(load(coefficients.ptr() + cast(frame, i64) * kOrder + k, {.mask = live}), i64);
        before[k] = zeros({c.B}, i32);
      }
      for (auto part : range(0, samples, kPart)) {
        auto kept = cast(bits.take_bits(full({c.B}, 5, i32)), i32);
        for (auto t : range(part, part + kPart, 8)) {
          Tile eight;
          for (int s = 0; s < 8; ++s) {
            auto high = bits.take_zeros();
            auto number = (high << kept) | bits.take_bits(kept);
            auto residual = cast(number >> 1, i32) ^ -cast(number & 1, i32);
            Tile sum = zeros({c.B}, i64);
            for (int k = 0; k < kOrder; ++k) sum += coefficient[k] * before[k];
            auto sample = cast(sum >> shift, i32) + residual;
            for (int k = kOrder - 1; k > 0; --k) before[k] = before[k - 1];
            before[0] = sample;
            auto column = cast(sample, i16).col();
            eight = s ? cat(eight, column, 1) : column;
          }
          out.store({first, t}, eight);
        }
      }
    }).grid([](const RiceCfg& c, auto, auto, const auto& k, const auto&...) { return Grid{cdiv(k.shape[0], c.B)}; });
Register r1("rice", [](Env& e) {
  RiceCfg c;
  if (!e.big) c = {16, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int frames = e.big ? 1 << 15 : 21, made = e.big ? 128 : frames, samples = e.big ? 4096 : 192;
  std::vector<uint32_t> words;
  std::vector<int64_t> begins;
  std::vector<int16_t> coefficients, sound;
  std::vector<uint8_t> shifts;
  for (int f = 0; f < made; ++f) {
    uint64_t pending = 0;
    int count = 0;
    begins.push_back(int64_t(words.size()));
    auto put = [&](uint32_t value, int n) {  // the highest bit first
      for (int b = n - 1; b >= 0; --b) {
        pending = pending << 1 | (value >> b & 1);
        if (++count == 32) words.push_back(uint32_t(pending)), pending = count = 0;
      }
    };
    const int shift = 9 + f % 3;
    shifts.push_back(uint8_t(shift));
    for (int k = 0; k < kOrder; ++k)
      coefficients.push_back(int16_t((k == 0 ? 1.6 : k == 1 ? -.7 : .1 * e.uniform() - .05) * (1 << shift)));
    const int16_t* w = coefficients.data() + coefficients.size() - kOrder;
    std::array<int64_t, kOrder> before{};
    double phase = e.uniform() * 6;
    const double loud = f % 5 == 0 ? 30000 : 900;
    for (int t = 0; t < samples; t += kPart) {
      const int kept = f % 7 == 0 ? 0 : 3 + int(e.uniform() * 9);
      put(uint32_t(kept), 5);
      for (int s = t; s < t + kPart; ++s) {
        int64_t sum = 0;
        for (int k = 0; k < kOrder; ++k) sum += w[k] * before[k];
        const int64_t predicted = sum >> shift;
        // The sample that is nearest among those whose upper part is no longer than 70 zeros.
        int64_t residual = int64_t(loud * std::sin(phase += .01 + .001 * f) + 40 * e.uniform()) - predicted;
        const int64_t most = (int64_t(70) << kept) / 2;
        residual = std::clamp(residual, -most, most - 1);
        const int64_t sample = predicted + residual;
        sound.push_back(int16_t(sample));
        const uint64_t z = uint64_t(residual) << 1 ^ uint64_t(residual >> 63);
        for (uint64_t q = z >> kept; q--;) put(0, 1);
        put(1, 1), put(uint32_t(z & ((uint64_t(1) << kept) - 1)), kept);
        for (int k = kOrder - 1; k > 0; --k) before[k] = before[k - 1];
        before[0] = sample;
      }
    }
    while (count) put(0, 1);
    words.push_back(0x12345678);  // what is read beyond the last code changes nothing
    words.push_back(0x9abcdef0);
  }
  auto in = repeated<uint32_t>(e, words.size(), words);
  auto b = repeated<int64_t>(e, frames, begins);
  auto k = repeated<int16_t>(e, size_t(frames) * kOrder, coefficients);
  auto s = repeated<uint8_t>(e, frames, shifts);
  auto out = constant<int16_t>(e, size_t(frames) * samples, 77);
  Job j;
  j.mbytes = 1e-6 * (4. * double(words.size()) / made * frames + 2. * frames * samples);
  j.add(rice, c, in.p, b.p, k.view(frames, kOrder), s.p, samples, out.view(frames, samples));
  j.check = [=]() -> std::string {
    const auto got = out.now();
    for (size_t i = 0; i < sound.size(); ++i)
      if (got[i] != sound[i])
        return "frame " + std::to_string(i / samples) + ", sample " + std::to_string(i % samples) + ": " +
               std::to_string(got[i]) + " instead of " + std::to_string(sound[i]);
    return "";
  };
  return j;
});

// --- LZ77: a token is some literals and a copy of what came `distance` bytes before (it may reach into itself). Every
// byte of the block finds its token, and where it is copied from; pointers of pointers end at literals
struct CopyCfg {
  int N = 4096, T = 1024, warps = 8;
};
auto lz_jump =
    kernel("user_lz_pointers", [](const CopyCfg& c, Ptr<const uint8_t> literal_counts, Ptr<const uint8_t> match_counts,
                                  Ptr<const uint16_t> distances, Ptr<const int32_t> token_begins,
                                  Ptr<const int32_t> token_counts, Ptr<const uint8_t> literals,
                                  Ptr<const int32_t> literal_begins, Ptr<uint8_t> out, Ptr<int32_t> sizes) {
      num_warps(c.warps);
      auto block = program_id(0);
      auto t = arange(0, c.T), i = arange(0, c.N);
      auto there = t < load(token_counts + block);
      auto token_at = load(token_begins + block) + t;
      auto own = cast(load(literal_counts + token_at, {.mask = there}), i32);
      auto copied = cast(load(match_counts + token_at, {.mask = there}), i32);
      auto distance = cast(load(distances + token_at, {.mask = there}), i32);
      auto [end, literal_end] = scan({own + copied, own}, axis(0),
                                     [](Tile a0, Tile b0, Tile a1, Tile b1) { return std::tuple(a0 + a1, b0 + b1); });
      auto begin = end - own - copied;
      auto token = cumsum(histogram(begin, c.N, {.mask = there}), axis(0)) - 1;
      auto of = [&](Tile x) { return take(x, token, 0); };
      auto size = max(end);
      auto d = i - of(begin);
      auto is_literal = d < of(own);
      Tile from = where(is_literal | (i >= size), i, i - of(distance)), next = take(from, from, 0);
      while_([&] { return any(from != next); }, [&] { from = next, next = take(from, from, 0); });
      auto place = take(where(is_literal, of(literal_end - own) + d, 0), from, 0);
      auto byte = load(literals + load(literal_begins + block) + place, {.mask = i < size});
      store(out + cast(block, i64) * c.N + i, byte, {.mask = i < size});
      store(sizes + block, size);
    }).grid([](const CopyCfg&, const auto&...) { return Grid{1}; });
Register r2("lz_pointers", [](Env& e) {
  CopyCfg c;
  if (!e.big) c = {512, 100, 2};
  c.warps = e.field("warps", c.warps);
  const int blocks = e.big ? 16384 : 9, made = e.big ? 256 : blocks, N = c.N;
  std::vector<uint8_t> literal_counts, match_counts, literals, text;
  std::vector<uint16_t> distances;
  std::vector<int32_t> token_begins, token_counts, literal_begins, sizes;
  for (int b = 0; b < made; ++b) {
    token_begins.push_back(int32_t(distances.size())), literal_begins.push_back(int32_t(literals.size()));
    const size_t first = text.size();
    int n = 0, tokens = 0;
    const int most = b % 4 == 3 ? N / 3 : N;
    while (n < most && tokens < c.T) {
      const int own = n == 0 ? 3 : int(e.uniform() * (b % 3 ? 5 : 2)), left = most - n;
      const int l = std::min(own, left), m = std::min(int(4 + e.uniform() * (e.big ? 12 : 20)), left - l);
      for (int k = 0; k < l; ++k) literals.push_back(uint8_t(e.uniform() * 256)), text.push_back(literals.back());
      n += l;
      const int distance = b % 2 ? 1 + int(e.uniform() * 6) % n : 1 + int(e.uniform() * (n - 1));
      for (int k = 0; k < m; ++k) text.push_back(text[text.size() - distance]);
      n += m, ++tokens;
      literal_counts.push_back(uint8_t(l)), match_counts.push_back(uint8_t(m)), distances.push_back(uint16_t(distance));
    }
    token_counts.push_back(tokens), sizes.push_back(n);
    text.resize(first + N, 0xEE);
  }
  auto lc = repeated<uint8_t>(e, literal_counts.size(), literal_counts),
       mc = repeated<uint8_t>(e, match_counts.size(), match_counts);
  auto ds = repeated<uint16_t>(e, distances.size(), distances);
  auto tb = repeated<int32_t>(e, blocks, token_begins), tc = repeated<int32_t>(e, blocks, token_counts),
       lb = repeated<int32_t>(e, blocks, literal_begins);
  auto ls = repeated<uint8_t>(e, literals.size(), literals);
  auto out = constant<uint8_t>(e, size_t(blocks) * N, 0xEE);
  auto got_sizes = constant<int32_t>(e, blocks, -1);
  Job j;
  j.mbytes = 1e-6 * blocks * (double(literals.size() + 4 * distances.size()) / made + N);
  const auto k = lz_jump.grid([blocks](const CopyCfg&, const auto&...) { return Grid{blocks}; });
  j.add(k, c, lc.p, mc.p, ds.p, tb.p, tc.p, ls.p, lb.p, out.p, got_sizes.p);
  j.check = [=]() -> std::string {
    if (got_sizes.now() != sizes) return "sizes";
    const auto got = out.now();
    for (size_t i = 0; i < text.size(); ++i)
      if (got[i] != text[i])
        return "block " + std::to_string(i / N) + ", byte " + std::to_string(i % N) + ": " + std::to_string(got[i]) +
               " instead of " + std::to_string(text[i]);
    return "";
  };
  return j;
});

}  // namespace sounds_and_copies
}  // namespace users
