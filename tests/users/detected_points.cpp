// detected_points.cpp - what stands out: FAST corners of pictures and the largest of each neighbourhood, radar targets
// over a threshold that follows the clutter (CFAR), pairs of galaxies counted by angle.
#include "tests/users/use.h"
namespace users {
namespace detected_points {

// --- FAST-9: nine neighbours in a row on a circle of 16, all brighter or all darker than the centre by a threshold;
// the score is the largest threshold that finds the corner. Then those that beat their eight neighbours, as a list
struct FastCfg {
  int BH = 8, BW = 128, warps = 4;
};
constexpr int kCircle[16][2] = {{-3, 0}, {-3, 1}, {-2, 2}, {-1, 3}, {0, 3},  {1, 3},   {2, 2},   {3, 1},
                                {3, 0},  {3, -1}, {2, -2}, {1, -3}, {0, -3}, {-1, -3}, {-2, -2}, {-3, -1}};
auto fast_score = kernel("user_fast_score", [](const FastCfg& c, Tensor<const uint8_t, 2> image,
                                               Tensor<uint8_t, 2> score, I32 threshold) {
                    num_warps(c.warps);
                    auto y = program_id(1) * c.BH, x = program_id(0) * c.BW;
                    auto centre = cast(image.load({y, x}, {c.BH, c.BW}), i16);
                    std::array<Tile, 16> apart;
                    for (int i = 0; i < 16; ++i)
                      apart[i] = cast(image.load({y + kCircle[i][0], x + kCircle[i][1]}, {c.BH, c.BW}), i16) - centre;
                    // the smallest and largest of 2, 4, 8 and 9 in a row
                    auto low = apart, high = apart;
                    for (int step : {1, 2, 4}) {
                      auto l = low, h = high;
                      for (int i = 0; i < 16; ++i)
                        low[i] = min(l[i], l[(i + step) % 16]), high[i] = max(h[i], h[(i + step) % 16]);
                    }
                    Tile best = zeros({c.BH, c.BW}, i16);
                    for (int i = 0; i < 16; ++i) {
                      best = max(best, min(low[i], apart[(i + 8) % 16]));
                      best = max(best, -max(high[i], apart[(i + 8) % 16]));
                    }
                    auto row = (y + arange(0, c.BH)).col(), column = (x + arange(0, c.BW)).row();
                    auto inside = (row >= 3) & (row < image.dim(0) - 3) & (column >= 3) & (column < image.dim(1) - 3);
                    best = where(inside & (cast(best, i32) > threshold), best, int16_t(0));
                    score.store({y, x}, cast(best, u8));
                  }).grid([](const FastCfg& c, const auto& image, const auto&, int) {
  return Grid{cdiv(image.shape[1], c.BW), cdiv(image.shape[0], c.BH)};
});
auto fast_list = kernel("user_fast_list", [](const FastCfg& c, Tensor<const uint8_t, 2> score, Ptr<int32_t> count,
                                             Ptr<uint64_t> list, I32 room) {
                   num_warps(c.warps);
                   auto y = program_id(1) * c.BH, x = program_id(0) * c.BW;
                   auto own = score.load({y, x}, {c.BH, c.BW});
                   auto keep = own > uint8_t(0);
                   return_if(~any(keep));
                   for (int dy = -1; dy <= 1; ++dy)
                     for (int dx = -1; dx <= 1; ++dx)
                       if (dy || dx) keep = keep & (own > score.load({y + dy, x + dx}, {c.BH, c.BW}));
                   auto flat = reshape(cast(keep, i32), {c.BH * c.BW});
                   auto before = cumsum(flat, axis(0)) - flat;
                   auto at = before + atomic_add(count, sum(flat));
                   auto row = (y + arange(0, c.BH)).col(), column = (x + arange(0, c.BW)).row();
                   auto entry = cast(row, u64) << 40 | cast(column, u64) << 16 | cast(own, u64);
                   store(list + at, reshape(entry, {c.BH * c.BW}), {.mask = (flat != 0) & (at < room)});
                 }).grid([](const FastCfg& c, const auto& score, auto, auto, int) {
  return Grid{cdiv(score.shape[1], c.BW), cdiv(score.shape[0], c.BH)};
});
Register r1("fast_corners", [](Env& e) {
  FastCfg c;
  if (!e.big) c = {6, 20, 1};
  c.BH = e.field("BH", c.BH), c.BW = e.field("BW", c.BW), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 2160 : 37, W = e.big ? 3840 : 51, room = e.big ? 1 << 20 : 400, threshold = 20;
  // squares of two sizes and a little noise, upside down
  auto image = drawn<uint8_t>(e, size_t(H) * W, [&, i = 0]() mutable {
    const int y = i / W, x = i % W;
    ++i;
    return uint8_t(60 + 120 * (y / 9 % 2 && x / 11 % 2) + int(e.uniform() * 12));
  });
  auto score = constant<uint8_t>(e, size_t(H) * W, 77);
  auto count = constant<int32_t>(e, 1, 0);
  auto list = constant<uint64_t>(e, room, 0);
  TensorView<uint8_t, 2> turned(image.p + size_t(H - 1) * W, {H, W}, {-W, 1});
  Job j;
  restore(e, j, count);
  j.mbytes = 1e-6 * 3 * H * double(W);
  j.add(fast_score, c, turned, score.view(H, W), threshold);
  j.add(fast_list, c, score.view(H, W), count.p, list.p, room);
  j.check = [=] {
    std::vector<double> want(size_t(H) * W);
    auto pixel = [&](int y, int x) { return int(image.at(size_t(H - 1 - y) * W + x)); };
    for (int y = 3; y < H - 3; ++y)
      for (int x = 3; x < W - 3; ++x)
        for (int t = 255; t > threshold && want[size_t(y) * W + x] == 0; --t)
          for (int sign : {1, -1})
            for (int first = 0; first < 16; ++first) {
              bool all = true;
              for (int k = 0; k < 9; ++k) {
                const auto& at = kCircle[(first + k) % 16];
                all &= sign * (pixel(y + at[0], x + at[1]) - pixel(y, x)) >= t;
              }
              if (all) want[size_t(y) * W + x] = t;
            }
    std::vector<uint64_t> corners;
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        const double s = want[size_t(y) * W + x];
        bool largest = s > 0;
        for (int dy = -1; dy <= 1; ++dy)
          for (int dx = -1; dx <= 1; ++dx)
            if ((dy || dx) && y + dy >= 0 && y + dy < H && x + dx >= 0 && x + dx < W)
              largest &= s > want[size_t(y + dy) * W + x + dx];
        if (largest) corners.push_back(uint64_t(y) << 40 | uint64_t(x) << 16 | uint64_t(s));
      }
    std::string wrong = agree(score.now(), want, .1, 0);
    auto got = list.now();
    const int found = count.now()[0];
    if (found != int(corners.size()) || found < 5) return wrong + std::to_string(found) + " corners";
    got.resize(found);
    std::sort(got.begin(), got.end());
    return wrong + (got == corners ? "" : "another list");
  };
  return j;
});

// --- CFAR along range, of samples of 16 + 16 bits: the threshold is a factor times the mean of the cells on both sides
// (CA), of the louder side (GO), the quieter (SO), or the k-th smallest of all (OS), next cells left out
struct CfarCfg {
  int B = 512, warps = 4, guard = 2, window = 12, kind = 0, rank = 18;
};
auto cfar =
    kernel("user_cfar", [](const CfarCfg& c, Tensor<const int16_t, 3> samples, Tensor<uint8_t, 2> hits,
                           Ptr<int32_t> count, F32 factor) {
      num_warps(c.warps);
      auto pulse = program_id(1), first = program_id(0) * c.B;
      auto power = [&](int shift) {
        auto z = samples.load({pulse, first + shift, 0}, {1, c.B, 2});
        auto [re, im] = split(cast(z, i32));
        return reshape(cast(re * re + im * im, f32), {c.B});
      };
      auto cell = power(0);
      Tile hit = zeros({c.B}, i1);
      if (c.kind == 3) {
        // the k-th smallest is below cell / factor where k are
        Tile below = zeros({c.B}, i32);
        for (int s = c.guard + 1; s <= c.guard + c.window; ++s)
          for (int side : {s, -s}) below += cast(power(side) * factor < cell, i32);
        hit = below >= c.rank;
      } else {
        Tile ahead = zeros({c.B}, f32), behind = zeros({c.B}, f32);
        for (int s = c.guard + 1; s <= c.guard + c.window; ++s) ahead += power(s), behind += power(-s);
        auto level = c.kind == 0 ? (ahead + behind) * .5f : c.kind == 1 ? max(ahead, behind) : min(ahead, behind);
        hit = cell > level * (factor / float(c.window));
      }
      hits.store({pulse, first}, expand_dims(cast(hit, u8), 0));
      atomic_add(count + pulse, sum(cast(hit & (first + arange(0, c.B) < hits.dim(1)), i32)));
    }).grid([](const CfarCfg& c, const auto& samples, const auto&...) {
      return Grid{cdiv(samples.shape[1], c.B), samples.shape[0]};
    });
Register r2("cfar", [](Env& e) {
  CfarCfg c;
  if (!e.big) c.B = 88, c.warps = 1;
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int P = e.big ? 1024 : 3, R = e.big ? 16384 : 301;
  // targets every fortieth cell or so, clutter whose level steps up
  auto samples = drawn<int16_t>(e, size_t(P) * R * 2, [&, i = 0]() mutable {
    const int r = i++ / 2 % R;
    const double level = r * 3 > R ? 900 : 120, target = r % 41 == 7 ? 9 : 1;
    return int16_t(level * target * (e.uniform() * 2 - 1));
  });
  const size_t all = size_t(P) * R;
  std::vector<Array<uint8_t>> hits;
  std::vector<Array<int32_t>> counts;
  for (int kind = 0; kind < 4; ++kind)
    hits.push_back(constant<uint8_t>(e, all, 9)), counts.push_back(constant<int32_t>(e, P, 0));
  const float factor = 6.3f;
  Job j;
  j.mbytes = 1e-6 * 5 * double(all);
  restore(e, j, counts[0], counts[1], counts[2], counts[3]);
  for (int kind = 0; kind < 4; ++kind) {
    auto with = c;
    with.kind = kind;
    j.add(cfar, with, samples.view(P, R, 2), hits[kind].view(P, R), counts[kind].p, factor);
  }
  j.check = [=] {
    std::string wrong;
    for (int kind = 0; kind < 4; ++kind) {
      const auto got = hits[kind].now();
      const auto found = counts[kind].now();
      for (int p = 0; p < P; ++p) {
        int total = 0;
        for (int r = 0; r < R; ++r) {
          auto power = [&](int at) -> double {
            if (at < 0 || at >= R) return 0;
            const double re = samples.at((size_t(p) * R + at) * 2), im = samples.at((size_t(p) * R + at) * 2 + 1);
            return re * re + im * im;
          };
          std::vector<double> cells;
          double side[2] = {};
          for (int s = c.guard + 1; s <= c.guard + c.window; ++s)
            for (int k : {0, 1}) cells.push_back(power(k ? r - s : r + s)), side[k] += cells.back();
          std::sort(cells.begin(), cells.end());
          const double sums[3] = {(side[0] + side[1]) / 2, std::max(side[0], side[1]), std::min(side[0], side[1])};
          const double level = factor * (kind == 3 ? cells[c.rank - 1] : sums[kind] / c.window);
          const bool hit = got[size_t(p) * R + r];
          if (hit != (power(r) > level) && std::abs(power(r) - level) > 1e-5 * level)
            wrong += "cell " + std::to_string(r) + " of kind " + std::to_string(kind) + "; ";
          total += hit;
        }
        if (total != found[p] || total == 0) wrong += "count of pulse " + std::to_string(p) + "; ";
      }
    }
    return wrong.substr(0, 200);
  };
  return j;
});

// --- the two-point angular correlation: pairs of directions, counted by the angle between them (bins that grow)
struct AngleCfg {
  int BM = 64, BN = 64, warps = 4, bins = 20, turns = 16;
};
auto angle_pairs =
    kernel("user_angle_pairs", [](const AngleCfg& c, Tensor<const float, 2> a, Tensor<const float, 2> b,
                                  Ptr<const float> edges, Ptr<uint64_t> counts, B1 is_same) {
      // a [3, n], b [3, m]; edges [bins + 1]: cosines, falling
      num_warps(c.warps);
      auto i = program_id(0) * c.BM;
      auto coordinate = [](const Tensor<const float, 2>& t, int axis, const auto& at, int size) {
        return reshape(t.load({axis, at}, {1, size}), {size});
      };
      std::array<Tile, 3> p;
      for (int d = 0; d < 3; ++d) p[d] = coordinate(a, d, i, c.BM).col();
      Tile total = zeros({c.bins + 12}, i32);
      auto rows = (i + arange(0, c.BM)).col();
      for (auto n : range(program_id(1) * c.BN * c.turns, min((program_id(1) + 1) * c.BN * c.turns, b.dim(1)), c.BN)) {
        auto columns = (n + arange(0, c.BN)).row();
        Tile cosine = zeros({c.BM, c.BN}, f32);
        for (int d = 0; d < 3; ++d) cosine += p[d] * coordinate(b, d, n, c.BN).row();
        Tile bin = full({c.BM, c.BN}, -1, i32);
        for (int k = 0; k <= c.bins; ++k) bin += cast(cosine < load(edges + k), i32);
        auto wanted = (bin >= 0) & (bin < c.bins) & (rows < a.dim(1)) & (columns < b.dim(1));
        wanted = wanted & (~is_same | (rows < columns));
        total += histogram(reshape(bin, {c.BM * c.BN}), c.bins + 12, {.mask = reshape(wanted, {c.BM * c.BN})});
      }
      auto k = arange(0, c.bins + 12);
      atomic_add(counts + k, cast(total, u64), {.mask = (total > 0) & (k < c.bins)});
    }).grid([](const AngleCfg& c, const auto& a, const auto& b, const auto&...) {
      return Grid{cdiv(a.shape[1], c.BM), cdiv(b.shape[1], c.BN * c.turns)};
    });
Register r3("angle_pairs", [](Env& e) {
  AngleCfg c;
  if (!e.big) c = {24, 16, 1, 20, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 40000 : 131, M = e.big ? 40000 : 77;
  auto directions = [&](int n) {
    std::vector<float> all(size_t(3) * n);
    for (int i = 0; i < n; ++i) {
      const double z = .9 + .1 * e.uniform(), angle = 2 * e.uniform(), r = std::sqrt(1 - z * z);
      all[i] = float(r * std::cos(angle)), all[n + i] = float(r * std::sin(angle)), all[2 * n + i] = float(z);
    }
    return repeated(e, all.size(), all);
  };
  auto a = directions(N), b = directions(M);
  std::vector<float> edge;
  for (int k = 0; k <= c.bins; ++k) edge.push_back(float(std::cos(.5 * std::pow(10., k * .1 - 2))));
  auto edges = repeated(e, edge.size(), edge);
  auto same = constant<uint64_t>(e, c.bins, 0), cross = constant<uint64_t>(e, c.bins, 0);
  Job j;
  restore(e, j, same, cross);
  j.gflop = 1e-9 * 6 * double(N) * (N + M);
  j.add(angle_pairs, c, a.view(3, N), a.view(3, N), edges.p, same.p, true);
  j.add(angle_pairs, c, a.view(3, N), b.view(3, M), edges.p, cross.p, false);
  j.check = [=] {
    std::vector<double> least(2 * c.bins), most(2 * c.bins);  // cosines beside an edge may fall to either side
    auto count = [&](const Array<float>& other, int n, int first, bool is_same) {
      for (int i = 0; i < N; ++i)
        for (int k = is_same ? i + 1 : 0; k < n; ++k) {
          double cosine = 0;
          for (int d = 0; d < 3; ++d) cosine += a[d * N + i] * other[d * n + k];
          for (int bin = 0; bin < c.bins; ++bin) {
            const double top = edge[bin], end = edge[bin + 1], near = 2e-7;
            least[first + bin] += cosine < top - near && cosine >= end + near;
            most[first + bin] += cosine < top + near && cosine >= end - near;
          }
        }
    };
    count(a, N, 0, true), count(b, M, c.bins, false);
    double all = 0;
    const auto s = same.now(), x = cross.now();
    for (int k = 0; k < 2 * c.bins; ++k) {
      const double got = double(k < c.bins ? s[k] : x[k - c.bins]);
      if (got < least[k] || got > most[k]) return "bin " + std::to_string(k) + " has " + std::to_string(got);
      all += got;
    }
    return std::string(all > 1000 ? "" : "too few pairs");
  };
  return j;
});

}  // namespace detected_points
}  // namespace users
