// beside_cuda_texts.cpp - a 3-D grid restricted, strings of a dictionary, digital down-conversion, segments sorted,
// numbers as text, boxes culled.
#include "tests/users/use.h"
namespace users {
namespace beside_cuda_texts {

// --- full weighting in 3-D: coarse(k, j, i) = sum of 27 fine values around (2k, 2j, 2i), weights (1/4, 1/2, 1/4)^3,
// zero outside. A program marches along z with the plane between two coarse ones kept.
struct FullCfg {
  int BY = 4, BX = 64, BZ = 16, warps = 4;
};
auto full_weighting =
    kernel("user_full_weighting", [](const FullCfg& c, Tensor<const float, 4> X, Tensor<float, 3> Y) {
      // X [NZ, NY / 2, 2, NX], Y [NZ / 2, NY / 2, NX / 2]
      num_warps(c.warps);
      auto i = program_id(0) * c.BX, j = program_id(1) * c.BY, k = program_id(2) * c.BZ;
      auto row = [&](auto z, auto y, int odd) {
        auto at = [&](auto x) {
          return split(reshape(X.load({z, y, odd, x}, {1, c.BY, 1, 2 * c.BX}), {c.BY, c.BX, 2}));
        };
        auto [mid, right] = at(2 * i);
        auto [unused, left] = at(2 * i - 2);
        return .25f * (left + right) + .5f * mid;
      };
      auto plane = [&](auto z) { return .5f * row(z, j, 0) + .25f * (row(z, j, 1) + row(z, j - 1, 1)); };
      Tile below = plane(2 * k - 1);
      for (auto z : range(k, min(k + c.BZ, Y.dim(0)))) {
        auto here = plane(2 * z), above = plane(2 * z + 1);
        Y.store({z, j, i}, expand_dims(.25f * (below + above) + .5f * here, 0));
        below = above;
      }
    }).grid([](const FullCfg& c, const auto&, const auto& y) {
      return Grid{cdiv(y.shape[2], c.BX), cdiv(y.shape[1], c.BY), cdiv(y.shape[0], c.BZ)};
    });
Register r1("full_weighting", [](Env& e) {
  FullCfg c;
  if (!e.big) c = {2, 8, 3, 1};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.BZ = e.field("BZ", c.BZ),
  c.warps = e.field("warps", c.warps);
  const int NZ = e.big ? 512 : 14, NY = e.big ? 512 : 10, NX = e.big ? 512 : 26;
  auto x = random<float>(e, size_t(NZ) * NY * NX), y = constant<float>(e, x.n / 8, NAN);
  Job j;
  j.mbytes = 4.5e-6 * x.n;
  j.add(full_weighting, c, x.view(NZ, NY / 2, 2, NX), y.view(NZ / 2, NY / 2, NX / 2));
  j.check = [=] {
    std::vector<double> want(y.n);
    for (int k = 0; k < NZ / 2; ++k)
      for (int j = 0; j < NY / 2; ++j)
        for (int i = 0; i < NX / 2; ++i)
          for (int a = -1; a < 2; ++a)
            for (int b = -1; b < 2; ++b)
              for (int d = -1; d < 2; ++d) {
                const int z = 2 * k + a, v = 2 * j + b, u = 2 * i + d;
                if (z < 0 || v < 0 || u < 0 || z >= NZ || v >= NY || u >= NX) continue;
                want[(size_t(k) * (NY / 2) + j) * (NX / 2) + i] +=
                    x[(size_t(z) * NY + v) * NX + u] * (a ? .25 : .5) * (b ? .25 : .5) * (d ? .25 : .5);
              }
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- a column of strings from codes and a dictionary: places in the output are known.
// form 0: a row of lanes per string; form 1: a lane per byte of the output, which looks for its string
struct DictCfg {
  int BS = 64, MAXLEN = 32, BO = 512, warps = 4, form = 0;
};
auto dict_strings =
    kernel("user_dict_strings", [](const DictCfg& c, Ptr<const int> codes, Ptr<const int> start,
                                   Ptr<const uint8_t> bytes, Ptr<const int> place, Ptr<uint8_t> out, I32 n) {
      // start [words + 1], place [n + 1]
      num_warps(c.warps);
      auto first = program_id(0) * c.BS;
      if (c.form == 0) {
        auto s = first + arange(0, c.BS);
        auto code = load(codes + s, {.mask = s < n});
        auto from = load(start + code), len = load(start + code + 1) - from;
        auto to = load(place + s, {.mask = s < n});
        auto b = arange(0, c.MAXLEN).row();
        auto m = (b < len.col()) & (s < n).col();
        store(out + to.col() + b, load(bytes + from.col() + b, {.mask = m}), {.mask = m});
      } else {
        auto last = min(first + c.BS, n);
        auto begin = load(place + first), end = load(place + last);
        for (auto o : range(begin, end, c.BO)) {
          auto at = o + arange(0, c.BO);
          auto m = at < end;
          Tile low = full({c.BO}, 0, i32) + first;
          for (int step = c.BS / 2; step > 0; step /= 2) {
            auto mid = min(low + step, last);
            low = where(load(place + mid) <= at, min(low + step, last - 1), low);
          }
          auto code = load(codes + low, {.mask = m});
          auto from = load(start + code) + at - load(place + low);
          store(out + at, load(bytes + from, {.mask = m}), {.mask = m});
        }
      }
    }).grid([](const DictCfg& c, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.BS)}; });
Register r2("dict_strings", [](Env& e) {
  DictCfg c;
  if (!e.big) c = {16, 32, 32, 1, 0};
  c.BS = e.field("BS", c.BS), c.BO = e.field("BO", c.BO), c.warps = e.field("warps", c.warps);
  c.form = e.field("form", c.form);
  const int n = e.big ? 8'000'000 : 101, K = e.big ? 4096 : 23;
  std::vector<int> start{0}, place{0}, code(n);
  if (e.device) {
    for (int k = 0; k < K; ++k) start.push_back(start.back() + (k % 17 == 3 ? 0 : 1 + int(e.uniform() * 23.99)));
    for (int i = 0; i < n; ++i)
      code[i] = int(e.uniform() * K), place.push_back(place.back() + start[code[i] + 1] - start[code[i]]);
  } else {
    start.assign(K + 1, 0), place.assign(n + 1, 0);
  }
  auto codes = repeated(e, n, code);
  auto starts = repeated(e, K + 1, start), places = repeated(e, size_t(n) + 1, place);
  auto bytes = integers<uint8_t>(e, std::max(start.back(), 1), 32, 127);
  auto out = constant<uint8_t>(e, size_t(e.device ? place.back() : 12 * n) + 32, 0);
  Job j;
  j.mbytes = 1e-6 * (8. * n + place.back());
  j.add(dict_strings, c, codes.p, starts.p, bytes.p, places.p, out.p, n);
  j.check = [=] {
    std::vector<double> want(out.n);
    for (int i = 0; i < n; ++i)
      for (int b = start[code[i]]; b < start[code[i] + 1]; ++b) want[place[i] + b - start[code[i]]] = bytes.at(b);
    return agree(out.now(), want, .1, 0);
  };
  return j;
});

// --- digital down-conversion: a wideband signal (pairs of i16) filtered and decimated by 8 into C channels: taps were
// turned by the channel's frequency beforehand, results are turned back by it. Windows of the signal overlap: a view
// whose rows begin every 16 words.
struct DdcCfg {
  int BT = 64, BC = 64, BK = 16, warps = 4, stages = 0, prec = 0;
};
auto ddc = kernel("user_ddc", [](const DdcCfg& c, Tensor<const int16_t, 2> X, Tensor<const float, 2> GR,
                                 Tensor<const float, 2> GI, Ptr<const uint32_t> turn, Tensor<float, 2> YR,
                                 Tensor<float, 2> YI) {
             // X [T, 2 taps] stride 16; GR, GI [2 taps, C]; Y [T, C]
             num_warps(c.warps);
             auto t = program_id(0) * c.BT, ch = program_id(1) * c.BC;
             Tile re = zeros({c.BT, c.BC}, f32), im = zeros({c.BT, c.BC}, f32);
             const Prec p = c.prec == 0 ? Prec::ieee : c.prec == 1 ? Prec::tf32x3 : Prec::bf16x3;
             for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages})) {
               auto x = cast(X.load({t, k}, {c.BT, c.BK}), f32);
               re = dot(x, GR.load({k, ch}, {c.BK, c.BC}), re, p);
               im = dot(x, GI.load({k, ch}, {c.BK, c.BC}), im, p);
             }
             auto cc = ch + arange(0, c.BC);
             auto by = load(turn + cc, {.mask = cc < YR.dim(1)});
             auto angle = cast(bitcast(cast(t + arange(0, c.BT), u32).col() * by.row(), i32), f32) * 0x1p-31f;
             auto co = cospi(angle), si = sinpi(angle);
             YR.store({t, ch}, re * co + im * si);
             YI.store({t, ch}, im * co - re * si);
           }).grid([](const DdcCfg& c, const auto&, const auto&, const auto&, auto, const auto& y, const auto&) {
  return Grid{cdiv(y.shape[0], c.BT), cdiv(y.shape[1], c.BC)};
});
Register r3("ddc", [](Env& e) {
  DdcCfg c;
  if (!e.big) c = {16, 16, 8, 1, 0, 0};
  c.BT = e.field("BT", c.BT), c.BC = e.field("BC", c.BC), c.BK = e.field("BK", c.BK),
  c.warps = e.field("warps", c.warps);
  c.stages = e.field("stages", c.stages), c.prec = e.field("prec", c.prec);
  const int T = e.big ? 262144 : 45, C = e.big ? 64 : 21, K = e.big ? 128 : 40;
  auto x = integers<int16_t>(e, size_t(T) * 16 + K, -2048, 2048);
  auto gr = random<float>(e, size_t(K) * C), gi = random<float>(e, size_t(K) * C);
  auto turn = integers<uint32_t>(e, C, 0, int64_t(1) << 32);
  auto yr = constant<float>(e, size_t(T) * C, NAN), yi = constant<float>(e, size_t(T) * C, NAN);
  Job j;
  j.gflop = 4e-9 * T * C * K;
  j.mbytes = 1e-6 * (x.n * 2. + 8. * T * C);
  j.add(ddc, c, TensorView<const int16_t, 2>(x.p, {T, K}, {16, 1}), gr.view(K, C), gi.view(K, C), turn.p, yr.view(T, C),
        yi.view(T, C));
  j.check = [=]() -> std::string {
    std::vector<double> wr(yr.n), wi(yr.n);
    for (int t = 0; t < T; ++t)
      for (int ch = 0; ch < C; ++ch) {
        double r = 0, i = 0;
        for (int k = 0; k < K; ++k)
          r += x.at(size_t(t) * 16 + k) * gr[size_t(k) * C + ch],
              i += x.at(size_t(t) * 16 + k) * gi[size_t(k) * C + ch];
        const double a = M_PI * 0x1p-31 * double(int32_t(uint32_t(t) * turn.at(ch)));
        wr[size_t(t) * C + ch] = r * std::cos(a) + i * std::sin(a),
                           wi[size_t(t) * C + ch] = i * std::cos(a) - r * std::sin(a);
      }
    const auto s = agree(yr.now(), wr, .05, 1e-5);
    return s.empty() ? agree(yi.now(), wi, .05, 1e-5) : s;
  };
  return j;
});

// --- many short lists sorted, each by itself: a program per list, in a tile as long as it takes
struct SegCfg {
  int MAXLEN = 256, MINLEN = 32, warps = 1;
};
auto seg_sort_n = kernel("user_seg_sort", [](const SegCfg& c, Ptr<const int> start, Ptr<const uint32_t> in,
                                             Ptr<uint32_t> out, I32 S) {
                    num_warps(c.warps);
                    auto s = program_id(0);
                    auto first = load(start + s), n = load(start + s + 1) - first;
                    auto sorted = [&](int size) {
                      auto i = arange(0, size);
                      auto x = load(in + first + i, {.mask = i < n, .other = 0xffffffffu});
                      store(out + first + i, sort(x, axis(0)), {.mask = i < n});
                    };
                    std::function<void(int)> smallest = [&](int size) {
                      if (size >= c.MAXLEN) return sorted(size);
                      if_(
                          n <= size, [&] { sorted(size); }, [&] { smallest(2 * size); });
                    };
                    smallest(c.MINLEN);
                  }).grid([](const SegCfg&, auto, auto, auto, int S) { return Grid{S}; });
Register r4("seg_sort", [](Env& e) {
  SegCfg c;
  c.MINLEN = e.field("MINLEN", c.MINLEN), c.warps = e.field("warps", c.warps);
  const int S = e.big ? 200'000 : 43;
  std::vector<int> start{0};
  for (int s = 0; s < S; ++s) {
    const double u = e.uniform();
    start.push_back(start.back() + (s % 29 == 7 ? 0 : 1 + int(u * u * u * 255.99)));
  }
  auto starts = repeated(e, S + 1, start);
  auto x = drawn<uint32_t>(e, start.back(), [&] { return uint32_t(e.uniform() * 0x1p24) * 251u; });
  auto y = constant<uint32_t>(e, x.n, 0);
  Job j;
  j.mbytes = 8e-6 * x.n;
  j.add(seg_sort_n, c, starts.p, x.p, y.p, S);
  j.check = [=] {
    std::vector<double> want;
    for (int s = 0; s < S; ++s) {
      std::vector<uint32_t> v(x.h.begin() + start[s], x.h.begin() + start[s + 1]);
      std::sort(v.begin(), v.end());
      want.insert(want.end(), v.begin(), v.end());
    }
    std::vector<double> got;
    for (uint32_t v : y.now()) got.push_back(v);
    return agree(got, want, .1, 0);
  };
  return j;
});

// --- numbers (u32) as decimal text, a line each; where a program's text begins is known
// form 0: a store per digit; form 1: lines as rows of 11 bytes
struct TextCfg {
  int B = 256, warps = 4, form = 0;
};
auto decimal_text =
    kernel("user_decimal_text", [](const TextCfg& c, Ptr<const uint32_t> x, Ptr<const int> begin, Ptr<uint8_t> out,
                                   I32 n) {
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      Tile v = load(x + i, {.mask = i < n});
      Tile len = ones({c.B}, i32);
      for (uint32_t p = 10;; p *= 10) {
        len += cast(v >= p, i32);
        if (p == 1000000000u) break;
      }
      auto size = where(i < n, len + 1, 0);
      auto place = load(begin + program_id(0)) + cumsum(size, axis(0)) - size;
      if (c.form == 0) {
        store(out + place + len, full({c.B}, 10, u8), {.mask = i < n});
        for (int d = 0; d < 10; ++d) {
          auto q = v / 10u;
          store(out + place + (len - 1 - d), cast(v - q * 10u + 48u, u8), {.mask = (d < len) & (i < n)});
          v = q;
        }
      } else {
        // digit k from the left is v / 10^(len - 1 - k) % 10
        auto k = arange(0, 16).row();
        auto right = len.col() - 1 - k;
        Tile p = full({c.B, 16}, 1, u32), ten = full({c.B, 16}, 10, u32);
        Tile e = clamp(right, 0, 9);
        for (int b = 0; b < 4; ++b) p = where(((e >> b) & 1) == 1, p * ten, p), ten = ten * ten;
        auto digit = where(right < 0, 10u, (v.col() / p) % 10u + 48u);
        store(out + place.col() + k, cast(digit, u8), {.mask = (right >= -1) & (i < n).col()});
      }
    }).grid([](const TextCfg& c, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r5("decimal_text", [](Env& e) {
  TextCfg c;
  if (!e.big) c = {32, 1, 0};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps), c.form = e.field("form", c.form);
  const int n = e.big ? 16'000'000 : 203, P = cdiv(n, c.B);
  auto x = drawn<uint32_t>(e, n, [&] {
    return (uint32_t(e.uniform() * 0x1p24) << 8 ^ uint32_t(e.uniform() * 0x1p24)) >> int(e.uniform() * 24);
  });
  std::vector<int> begin{0};
  size_t all = 0;
  auto digits = [](uint32_t v) {
    int d = 1;
    while (v >= 10) v /= 10, ++d;
    return d;
  };
  for (int i = 0; i < n && e.device; ++i) {
    all += digits(x.at(i)) + 1;
    if (i % c.B == c.B - 1 || i == n - 1) begin.push_back(int(all));
  }
  begin.resize(P + 1);
  auto begins = repeated(e, P + 1, begin);
  auto out = constant<uint8_t>(e, e.device ? all : size_t(n) * 8, 0);
  Job j;
  j.mbytes = 1e-6 * (4. * n + all);
  j.add(decimal_text, c, x.p, begins.p, out.p, n);
  j.check = [=]() -> std::string {
    std::string want;
    for (int i = 0; i < n; ++i) want += std::to_string(x.at(i)) + "\n";
    const auto got = out.now();
    return std::string(got.begin(), got.end()) == want ? "" : "the text is another one";
  };
  return j;
});

// --- boxes (centre, half size) outside of a frustum of six planes or too small leave; the others' numbers are
// appended to a list (any order), and arguments of draws counted per level of detail
struct CullCfg {
  int B = 512, warps = 4, relaxed = 0;
};
auto cull = kernel("user_cull", [](const CullCfg& c, Tensor<const float, 2> box, Ptr<const float> planes, Ptr<int> list,
                                   Ptr<int> counts, I32 n, F32 scale) {
              // box [6, n]: centre, half size; planes [6, 4]; counts [5]: kept ones, and of four levels
              num_warps(c.warps);
              auto first = program_id(0) * c.B;
              auto i = first + arange(0, c.B);
              auto row = [&](int k) { return box.load({k, first}, {c.B}); };
              auto x = row(0), y = row(1), z = row(2), hx = row(3), hy = row(4), hz = row(5);
              Tile kept = i < n;
              for (int p = 0; p < 6; ++p) {
                auto a = load(planes + 4 * p), b = load(planes + 4 * p + 1), g = load(planes + 4 * p + 2),
                     d = load(planes + 4 * p + 3);
                kept = kept & (x * a + y * b + z * g + d >= -(hx * abs(a) + hy * abs(b) + hz * abs(g)));
              }
              auto size = (hx * hx + hy * hy + hz * hz) * scale / (x * x + y * y + z * z);
              kept = kept & (size > 1e-4f);
              auto level = cast(size < 1e-2f, i32) + cast(size < 3e-3f, i32) + cast(size < 1e-3f, i32);
              auto k = cast(kept, i32);
              auto before = cumsum(k, axis(0)) - k;
              auto all = sum(k);
              const Order order = c.relaxed ? Order::relaxed : Order::acq_rel;
              auto base = atomic_add(counts, all, {.order = order});
              store(list + base + before, i, {.mask = kept});
              atomic_add(counts + 1 + arange(0, 4), histogram(level, 4, {.mask = kept}), {.order = order});
            }).grid([](const CullCfg& c, const auto&, auto, auto, auto, int n, float) { return Grid{cdiv(n, c.B)}; });
Register r6("cull", [](Env& e) {
  CullCfg c;
  if (!e.big) c = {64, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps), c.relaxed = e.field("relaxed", c.relaxed);
  const int n = e.big ? 8'000'000 : 309;
  auto box = filled<float>(e, size_t(6) * n, [&, k = 0](size_t i) mutable {
    const double u = e.uniform();
    (void)k;
    return float(i / n < 3 ? 200 * u - 100 : .2 + 2 * u * u);
  });
  auto planes = repeated(e, 24, std::vector<float>{.7f, 0,    .7f, 0, -.7f, 0, .7f, 0,  0, .8f, .6f, 0,
                                                   0,   -.8f, .6f, 0, 0,    0, 1,   -1, 0, 0,   -1,  90});
  auto list = constant<int>(e, n, -1), counts = constant<int>(e, 5, 0);
  Job j;
  j.mbytes = 28e-6 * n;
  restore(e, j, counts);
  j.inTurn = true;
  j.add(cull, c, box.view(6, n), planes.p, list.p, counts.p, n, 1.f);
  j.check = [=]() -> std::string {
    auto got = list.now();
    const auto num = counts.now();
    std::vector<int> want;
    int levels[4] = {};
    for (int i = 0; i < n; ++i) {
      double v[6];
      for (int k = 0; k < 6; ++k) v[k] = box[size_t(k) * n + i];
      bool kept = true;
      for (int p = 0; p < 6; ++p) {
        double s = planes[4 * p + 3], r = 0;
        for (int k = 0; k < 3; ++k) s += v[k] * planes[4 * p + k], r += v[3 + k] * std::abs(planes[4 * p + k]);
        kept = kept && s >= -r;
      }
      const double size = (v[3] * v[3] + v[4] * v[4] + v[5] * v[5]) / (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
      if (kept && size > 1e-4) want.push_back(i), ++levels[(size < 1e-2) + (size < 3e-3) + (size < 1e-3)];
    }
    if (num[0] != int(want.size()))
      return "another number stays: " + std::to_string(num[0]) + " for " + std::to_string(want.size());
    for (int l = 0; l < 4; ++l)
      if (num[1 + l] != levels[l]) return "levels are off";
    std::sort(got.begin(), got.begin() + num[0]);
    return std::equal(want.begin(), want.end(), got.begin()) ? "" : "others stay";
  };
  return j;
});
}  // namespace beside_cuda_texts
}  // namespace users
