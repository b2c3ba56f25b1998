// read_likelihoods.cpp - variants of genomes: the pair HMM of haplotype callers, whose insertions along a row are a
// scan; pairs of positions that act together (epistasis), counted in planes of bits.
#include <cstring>

#include "tests/users/use.h"
namespace users {
namespace read_likelihoods {

// --- likelihood of a read given a haplotype: rows are bases of the read, one after the other; lanes, of the haplotype
struct PairHmmCfg {
  int N = 256, warps = 1;  // no haplotype is longer than N
};
auto pair_hmm =
    kernel("user_pair_hmm", [](const PairHmmCfg& c, Ptr<const int32_t> read_start, Ptr<const uint8_t> reads,
                               Ptr<const uint8_t> quality, Ptr<const uint8_t> gap_open, Ptr<const int32_t> hap_start,
                               Ptr<const uint8_t> haps, F32 stay, Ptr<float> out, I32 read_count, I32 hap_count) {
      num_warps(c.warps);
      auto r = program_id(0), h = program_id(1);
      auto begin = load(read_start + r), end = load(read_start + r + 1);
      auto first = load(hap_start + h), length = load(hap_start + h + 1) - first;
      auto j = arange(0, c.N);
      auto hap = load(haps + first + j, {.mask = j < length});
      const float scale = 0x1p100f;
      auto left = [&](const Tile& x, const auto& edge) { return where(j == 0, edge, take(x, max(j - 1, 0), 0)); };
      auto probability = [](const Tile& q) { return exp2(cast(q, f32) * -.33219281f); };  // 10^(-q / 10)
      Tile m = zeros({c.N}, f32), x = zeros({c.N}, f32);
      auto start = scale / cast(length, f32);
      Tile y = zeros({c.N}, f32) + start;
      for (auto i : range(begin, end)) {
        auto e = probability(load(quality + i)), open = probability(load(gap_open + i));
        auto base = load(reads + i);
        auto same = (hap == base) | (hap == uint8_t('N')) | (base == uint8_t('N'));
        auto prior = where(same, 1.f - e, e / 3.f);
        auto edge = where(i == begin, start, 0.f);
        auto m1 = prior * (left(m, 0.f) * (1.f - 2.f * open) + (left(x, 0.f) + left(y, edge)) * (1.f - stay));
        x = m * open + x * stay;
        m = m1;
        // y[j] = m[j - 1] open + y[j - 1] stay
        auto [factor, sum] =
            scan({zeros({c.N}, f32) + stay, left(m, 0.f) * open}, axis(0), [](Tile fa, Tile sa, Tile fb, Tile sb) {
              return std::tuple{fa * fb, sa * fb + sb};
            });
        y = sum;
      }
      auto total = sum(where(j < length, m + x, 0.f));
      store(out + r * hap_count + h, log10(total) - 30.103f);
    }).grid([](const PairHmmCfg&, auto, auto, auto, auto, auto, auto, float, auto, int reads, int haps) {
      return Grid{reads, haps};
    });
Register r1("pair_hmm", [](Env& e) {
  PairHmmCfg c;
  if (!e.big) c = {48, 1};
  c.N = e.field("N", c.N), c.warps = e.field("warps", c.warps);
  const int R = e.big ? 2048 : 6, H = e.big ? 32 : 3;
  auto starts = [&](int n, int low, int high) {
    std::vector<int32_t> s{0};
    for (int i = 0; i < n; ++i) s.push_back(s.back() + low + int(e.uniform() * (high - low)));
    return s;
  };
  auto rs = starts(R, e.big ? 100 : 1, e.big ? 151 : 20), hs = starts(H, e.big ? 200 : 17, e.big ? 257 : 49);
  if (!e.big) rs[3] = rs[2];  // a read without bases
  auto base = [&] { return uint8_t("ACGTN"[int(e.uniform() * 4.1)]); };
  auto haps = drawn<uint8_t>(e, hs.back(), base);
  auto reads =
      filled<uint8_t>(e, rs.back(), [&](size_t i) { return e.uniform() < .1 ? base() : haps.at(i * 7 % 5 + i); });
  auto quality = integers<uint8_t>(e, rs.back(), 6, 41), open = integers<uint8_t>(e, rs.back(), 20, 46);
  auto read_start = repeated(e, rs.size(), rs), hap_start = repeated(e, hs.size(), hs);
  auto out = constant<float>(e, size_t(R) * H, NAN);
  Job j;
  j.gflop = 1e-9 * 12 * rs.back() * double(hs.back());
  j.add(pair_hmm, c, read_start.p, reads.p, quality.p, open.p, hap_start.p, haps.p, .1f, out.p, R, H);
  j.check = [=] {
    std::vector<double> want;
    for (int r = 0; r < R; ++r)
      for (int h = 0; h < H; ++h) {
        const int n = rs[r + 1] - rs[r], l = hs[h + 1] - hs[h];
        std::vector<std::array<double, 3>> row(l + 1, {0, 0, 1. / l});
        for (int i = 0; i < n; ++i) {
          const double q = std::pow(10, -.1 * quality.at(rs[r] + i)), g = std::pow(10, -.1 * open.at(rs[r] + i));
          std::vector<std::array<double, 3>> next(l + 1);
          for (int k = 1; k <= l; ++k) {
            const uint8_t a = reads.at(rs[r] + i), b = haps.at(hs[h] + k - 1);
            const double prior = a == b || a == 'N' || b == 'N' ? 1 - q : q / 3;
            next[k][0] = prior * (row[k - 1][0] * (1 - 2 * g) + (row[k - 1][1] + row[k - 1][2]) * .9);
            next[k][1] = row[k][0] * g + row[k][1] * .1;
            next[k][2] = next[k - 1][0] * g + next[k - 1][2] * .1;
          }
          row = next;
        }
        double total = 0;
        for (int k = 1; k <= l; ++k) total += row[k][0] + row[k][1];
        want.push_back(std::log10(total));
      }
    return agree(out.now(), want, 2e-4, 1e-4);
  };
  return j;
});

// --- epistasis: of every pair of positions the table of genotypes (3 x 3) among cases and controls, its impurity, and
// the best pair of all
struct EpistasisCfg {
  int BM = 16, BN = 32, warps = 4;
};
auto epistasis = kernel("user_epistasis", [](const EpistasisCfg& c, Tensor<const uint32_t, 3> cases_planes,
                                             Tensor<const uint32_t, 3> control_planes, Ptr<uint64_t> best, I32 snps) {
                   // planes [2, words, snps]: genotype 0, genotype 1; whoever is in none has genotype 2
                   num_warps(c.warps);
                   auto a = program_id(0) * c.BM, b = program_id(1) * c.BN;
                   return_if(b + c.BN <= a);
                   auto table = [&](const Tensor<const uint32_t, 3>& planes) {
                     std::array<Tile, 9> count;
                     for (Tile& n : count) n = zeros({c.BM, c.BN}, i32);
                     for (auto w : range(planes.dim(1))) {
                       auto side = [&](const auto& at, int size) {
                         auto p = squeeze(squeeze(planes.load({0, w, at}, {1, 1, size}), 0), 0);
                         auto q = squeeze(squeeze(planes.load({1, w, at}, {1, 1, size}), 0), 0);
                         return std::array<Tile, 3>{p, q, ~(p | q)};
                       };
                       auto x = side(a, c.BM), y = side(b, c.BN);
                       for (int i = 0; i < 3; ++i)
                         for (int k = 0; k < 3; ++k) count[i * 3 + k] += cast(popcount(x[i].col() & y[k].row()), i32);
                     }
                     return count;
                   };
                   auto ill = table(cases_planes), well = table(control_planes);
                   Tile gini = zeros({c.BM, c.BN}, f32);
                   for (int g = 0; g < 9; ++g) {
                     auto p = cast(ill[g], f32), q = cast(well[g], f32);
                     gini += where(p + q > 0.f, p * q / (p + q), 0.f);
                   }
                   auto i = (a + arange(0, c.BM)).col(), k = (b + arange(0, c.BN)).row();
                   auto key = cast(bitcast(gini, u32), u64) << 32 | cast(i * snps + k, u64);
                   key = where((i < k) & (k < snps), key, ~uint64_t(0));
                   atomic_min(best, min(key));
                 }).grid([](const EpistasisCfg& c, const auto&, const auto&, auto, int snps) {
  return Grid{cdiv(snps, c.BM), cdiv(snps, c.BN)};
});
Register r2("epistasis", [](Env& e) {
  EpistasisCfg c;
  if (!e.big) c = {8, 12, 1};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int S = e.big ? 4096 : 29, W0 = e.big ? 256 : 3, W1 = e.big ? 256 : 2;
  auto planes = [&](int words) {  // no one has two genotypes
    std::vector<uint32_t> all(size_t(2) * words * S);
    for (size_t i = 0; i < all.size() / 2 && e.device; ++i)
      for (int bit = 0; bit < 32; ++bit) {
        const int g = int(e.uniform() * 3);
        if (g < 2) all[g * all.size() / 2 + i] |= 1u << bit;
      }
    return repeated(e, all.size(), all);
  };
  auto ill = planes(W0), well = planes(W1);
  auto best = repeated(e, 1, std::vector<uint64_t>{~0ull});
  Job j;
  restore(e, j, best);
  j.gflop = 1e-9 * 9 * S * double(S) / 2 * (W0 + W1);
  j.add(epistasis, c, ill.view(2, W0, S), well.view(2, W1, S), best.p, S);
  j.check = [=] {
    std::vector<double> score(size_t(S) * S, 1e30);
    for (int a = 0; a < S; ++a)
      for (int b = a + 1; b < S; ++b) {
        double total[2][9] = {};
        for (int group = 0; group < 2; ++group)
          for (int w = 0; w < (group ? W1 : W0); ++w) {
            const int words = group ? W1 : W0;
            auto plane = [&](int snp, int g) {
              const auto& v = (group ? well : ill).h;
              const uint32_t p = v[size_t(w) * S + snp], q = v[size_t(words + w) * S + snp];
              return g == 0 ? p : g == 1 ? q : ~(p | q);
            };
            for (int g = 0; g < 9; ++g) total[group][g] += __builtin_popcount(plane(a, g / 3) & plane(b, g % 3));
          }
        double& s = score[size_t(a) * S + b] = 0;
        for (int g = 0; g < 9; ++g)
          if (total[0][g] + total[1][g] > 0) s += total[0][g] * total[1][g] / (total[0][g] + total[1][g]);
      }
    const uint64_t got = best.now()[0];
    const double least = *std::min_element(score.begin(), score.end());
    const uint64_t pair = got & 0xFFFFFFFF;
    const uint32_t bits = uint32_t(got >> 32);
    float value;
    std::memcpy(&value, &bits, 4);
    if (pair >= score.size() || std::abs(score[pair] - least) > 1e-4) return "pair " + std::to_string(pair);
    return agree(std::vector<double>{value}, {least}, 1e-4, 1e-5);
  };
  return j;
});

}  // namespace read_likelihoods
}  // namespace users
