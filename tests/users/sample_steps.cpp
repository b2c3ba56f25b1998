// sample_steps.cpp - signals and pictures where every sample needs the one before: adaptive filters, dithering by error
// diffusion along a front, and pitch from differences of a frame with itself.
#include "tests/users/use.h"
namespace users {
namespace sample_steps {

// --- normalised least mean squares: every channel adapts its 48 taps from sample to sample
struct Lms {
  int R = 4, N = 48;
};
auto nlms = kernel("user_nlms", [](const Lms& c, Ptr<const float> x, Ptr<const float> d, Ptr<float> error,
                                   Ptr<float> taps, I32 rows, I32 T, F32 mu) {
              Tile r = program_id(0) * c.R + arange(0, c.R);
              Tile in = r < rows;
              Tile row = cast(r, i64) * T;
              Tile k = arange(0, c.N);
              Tile w = zeros({c.R, c.N}, f32);
              for (auto n : range(0, T)) {
                Tile there = in.col() & (k <= n).row();
                Tile window = load(x + (row.col() + n - k.row()), {.mask = there});  // the newest first
                Tile e = load(d + (row + n), {.mask = in}) - squeeze(sum(w * window, axis(1)), 1);
                Tile power = sum(window * window, axis(1)) + 1e-3f;
                w += (mu * e.col() / power) * window;
                store(error + (row + n), e, {.mask = in});
              }
              store(taps + (r.col() * c.N + k.row()), w, {.mask = in.col() & (k >= 0).row()});
            }).grid([](const Lms& c, const float*, const float*, float*, float*, int rows, int, float) {
  return Grid{cdiv(rows, c.R)};
});
Register q1("nlms", [](Env& e) {
  const int R = e.big ? 4096 : 7, T = e.big ? 4000 : 150, N = 48;
  auto x = random<float>(e, size_t(R) * T), d = random<float>(e, size_t(R) * T);
  auto error = constant<float>(e, size_t(R) * T, 9), taps = constant<float>(e, R * N, 9);
  Job j;
  j.add(nlms, Lms{.R = e.field("R", 4)}, x.p, d.p, error.p, taps.p, R, T, 0.5f);
  j.mbytes = 1e-6 * R * T * 12;
  j.check = [=]() -> std::string {
    std::vector<double> errors, all;
    for (int r = 0; r < R; ++r) {
      std::vector<double> w(N);
      for (int n = 0; n < T; ++n) {
        double y = 0, power = double(1e-3f);
        for (int k = 0; k < N && k <= n; ++k) {
          const double v = x[size_t(r) * T + n - k];
          y += w[k] * v, power += v * v;
        }
        const double wrong = d[size_t(r) * T + n] - y;
        errors.push_back(wrong);
        for (int k = 0; k < N && k <= n; ++k) w[k] += 0.5 * wrong / power * x[size_t(r) * T + n - k];
      }
      all.insert(all.end(), w.begin(), w.end());
    }
    if (auto m = agree(error.now(), errors, 1e-3, 1e-3); !m.empty()) return "error: " + m;
    return agree(taps.now(), all, 1e-3, 1e-3);
  };
  return j;
});

// --- Floyd and Steinberg's dithering: lane r is in row r, two columns behind lane r - 1, so that the errors it takes
// from above are three, two and one steps old. Strips of rows of a picture follow each other; what the last row of a
// strip leaves behind lies in memory. Whole numbers, right shifts
struct Dither {
  int R = 64;
};
auto dither =
    kernel("user_dither", [](const Dither& c, Ptr<const uint8_t> picture, Ptr<uint8_t> out, Ptr<int32_t> left, I32 H,
                             I32 W) {
      auto p = program_id(0);
      Tile lane = arange(0, c.R);
      Tile above = max(lane - 1, 0);
      Tile base = cast(p, i64) * H * W;
      auto spare = left + cast(p, i64) * (2 * W);  // two rows by turns: errors of the last row of a strip
      for (auto strip : range(0, H, c.R)) {
        Tile turn = strip / c.R % 2;
        Tile row = strip + lane;
        Tile e1 = zeros({c.R}, i32), e2 = e1, e3 = e1;  // errors one, two, three steps ago
        for (auto step : range(0, W + 2 * c.R)) {
          Tile col = step - 2 * lane;
          Tile in = (col >= 0) & (col < W) & (row < H);
          Tile first = in & (lane == 0) & (strip > 0);
          auto kept = [&](int by) {
            return load(spare + (1 - turn) * W + (col + by), {.mask = first & (col + by >= 0) & (col + by < W)});
          };
          Tile inner = lane > 0;
          Tile right = where(inner, take(e1, above, 0), kept(1)), over = where(inner, take(e2, above, 0), kept(0)),
               behind = where(inner, take(e3, above, 0), kept(-1));
          Tile v = cast(load(picture + (base + cast(row, i64) * W + col), {.mask = in}), i32) * 16 + 7 * e1 +
                   3 * right + 5 * over + behind;
          v = v >> 4;
          Tile white = v >= 128;
          Tile e = where(in, v - where(white, 255, 0), 0);
          store(out + (base + cast(row, i64) * W + col), cast(where(white, 255, 0), u8), {.mask = in});
          store(spare + turn * W + col, e, {.mask = in & (lane == c.R - 1)});
          e3 = e2, e2 = e1, e1 = e;
        }
      }
    }).grid([](const Dither&, const uint8_t*, uint8_t*, int32_t*, int, int) { return Grid{1}; });
Register q2("dither", [](Env& e) {
  const int P = e.big ? 528 : 2, H = e.big ? 512 : 75, W = e.big ? 768 : 41, R = e.field("R", e.big ? 64 : 32);
  auto x = integers<uint8_t>(e, size_t(P) * H * W, 0, 256);
  auto y = constant<uint8_t>(e, size_t(P) * H * W, 9);
  auto left = constant<int32_t>(e, size_t(P) * 2 * W, 0);
  Job j;
  j.steps.push_back(
      {"user_dither", [=](Stream& s) { return dither.try_launch(s, Dither{R}, Grid{P}, x.p, y.p, left.p, H, W); },
       [=](const std::string& target) { return dither.compile_for(target, Dither{R}, x.p, y.p, left.p, H, W); }});
  j.mbytes = 2e-6 * P * H * W;
  j.check = [=] {
    std::vector<double> want(size_t(P) * H * W);
    for (int p = 0; p < P; ++p) {
      std::vector<int> error(H * W);
      for (int r = 0; r < H; ++r)
        for (int c = 0; c < W; ++c) {
          auto at = [&](int rr, int cc) { return rr < 0 || cc < 0 || cc >= W ? 0 : error[rr * W + cc]; };
          const size_t i = (size_t(p) * H + r) * W + c;
          const int v =
              (int(x.h[i]) * 16 + 7 * at(r, c - 1) + 3 * at(r - 1, c + 1) + 5 * at(r - 1, c) + at(r - 1, c - 1)) >> 4;
          want[i] = v >= 128 ? 255 : 0;
          error[r * W + c] = v - int(want[i]);
        }
    }
    return agree(y.now(), want, 0.1, 0);
  };
  return j;
});

// --- envelopes: the largest of a few samples behind every one, and how they are spread, with weights that are there
// for some lags only; odd sizes, a filling that shows, samples counted backwards
struct Envelope {
  int T = 96, K = 20;
};
auto lag_envelope = kernel("user_lag_envelope", [](const Envelope& c, Ptr<const float> x, Ptr<const int32_t> wanted,
                                                   Ptr<float> top, Ptr<double> spread, I32 n, F32 filling) {
                      Tile t = program_id(0) * c.T + arange(0, c.T), k = arange(0, c.K);
                      Tile at = t.col() - k.row();
                      Tile use = load(wanted + k) > 0;
                      Tile v = load(x + at, {.mask = (at >= 0) & (at < n) & use.row(), .other = filling});
                      store(top + t, squeeze(max(v, axis(1)), 1), {.mask = t < n});
                      Tile d = cast(v, f64);
                      store(spread + t, squeeze(sum(d * d, axis(1)), 1), {.mask = t < n});
                    }).grid([](const Envelope& c, const float*, const int32_t*, float*, double*, int n, float) {
  return Grid{cdiv(n, c.T)};
});
Register q4("lag_envelope", [](Env& e) {
  const int n = e.big ? 16'000'000 : 5 * 96 + 17, T = e.field("T", e.big ? 256 : 96), K = e.big ? 32 : 20;
  auto x = random<float>(e, n);
  auto wanted = filled<int32_t>(e, K, [&](size_t i) { return i % 7 != 2 && i != 0; });
  auto top = constant<float>(e, n, 9);
  auto spread = constant<double>(e, n, 9);
  Job j;
  j.add(lag_envelope, Envelope{T, K}, x.p, wanted.p, top.p, spread.p, n, -0.25f);
  j.mbytes = 16e-6 * n;
  j.check = [=]() -> std::string {
    std::vector<double> tops, spreads;
    for (int t = 0; t < n; ++t) {
      double most = -2, sum = 0;
      for (int k = 0; k < K; ++k) {
        const double v = t - k >= 0 && wanted.h[k] ? x[t - k] : -0.25;
        most = std::max(most, v), sum += v * v;
      }
      tops.push_back(most), spreads.push_back(sum);
    }
    if (auto m = agree(top.now(), tops, 0, 1e-7); !m.empty()) return "top: " + m;
    return agree(spread.now(), spreads, 1e-12, 1e-12);
  };
  return j;
});

// --- pitch of frames (YIN): differences of a frame with itself by every lag, divided by their mean so far; the first
// valley below a threshold, else the deepest, refined by a parabola. Half precision samples, f64 where sums run long
struct Yin {
  int L = 320, B = 32;  // lags (a multiple of nothing in particular), samples at a time
};
auto yin = kernel("user_yin", [](const Yin& c, Tensor<const half, 1> x, Ptr<float> pitch, Ptr<float> depth, I32 hop,
                                 I32 window, F32 threshold, F32 rate) {
             auto f = program_id(0);
             Tile lag = arange(0, c.L);
             Tile start = cast(f, i64) * hop;
             Tile d = zeros({c.L, 1}, f32);
             for (auto j : range(0, window, c.B)) {
               Tile at = start + j + arange(0, c.B);
               Tile inside = j + arange(0, c.B) < window;
               Tile a = cast(load(x.ptr() + at, {.mask = inside & (at < x.dim64(0))}), f32).row();
               Tile ahead = at.row() + lag.col();
               Tile b = cast(load(x.ptr() + ahead, {.mask = inside.row() & (ahead < x.dim64(0))}), f32);
               Tile difference = where(inside.row(), a - b, 0.f);
               d += sum(difference * difference, axis(1));
             }
             Tile e = squeeze(d, 1);
             Tile so_far = cumsum(cast(e, f64), axis(0));
             Tile mean = where((lag == 0) | (so_far <= 0.0), 1.f, cast(cast(e, f64) * cast(lag, f64) / so_far, f32));
             Tile next = take(mean, min(lag + 1, c.L - 1), 0), last = take(mean, max(lag - 1, 0), 0);
             Tile inner = (lag > 0) & (lag < c.L - 1);
             Tile valley = inner & (mean < threshold) & (mean <= next) & (mean < last);
             auto [deepest, where_] = min_with_index(where(inner, mean, INFINITY), axis(0));
             Tile first = min(where(valley, lag, c.L));
             Tile best = where(first < c.L, first, to_scalar(where_));
             auto value = [&](int by) { return sum(where(lag == best + by, mean, 0.f)); };
             Tile left = value(-1), middle = value(0), right = value(1);
             Tile bend = left - 2.f * middle + right;
             Tile shift = where(abs(bend) > 1e-9f, 0.5f * (left - right) / bend, 0.f);
             store(pitch + f, rate / (cast(best, f32) + shift));
             store(depth + f, middle);
           }).grid([](const Yin&, const auto& x, float*, float*, int hop, int window, float, float) {
  return Grid{x.shape[0] < window ? 0 : (x.shape[0] - window) / hop + 1};
});
Register q3("yin", [](Env& e) {
  const int N = e.big ? 4'000'000 : 3001, hop = e.big ? 160 : 250, window = e.big ? 1000 : 211, L = e.big ? 320 : 90;
  auto x = filled<half>(e, e.big ? 100'000 : N, [&](size_t i) {
    return half(float(std::sin(double(i) * 0.17) * 0.5 + 0.3 * std::sin(double(i) * 0.34 + 1) + 0.1 * e.uniform()));
  });
  if (e.big) x = repeated<half>(e, N, x.h);
  const int F = (N - window) / hop + 1;
  auto pitch = constant<float>(e, F, 9), depth = constant<float>(e, F, 9);
  Job j;
  j.add(yin, Yin{L, e.field("B", 32)}, x.view(N), pitch.p, depth.p, hop, window, 0.15f, 16000.f);
  j.add(yin, Yin{L, e.field("B", 32)}, x.view(window / 2), pitch.p, depth.p, hop, window, 0.15f, 16000.f);  // no frame
  j.gflop = 3e-9 * F * L * window;
  j.check = [=]() -> std::string {
    std::vector<double> pitches, depths;
    for (int f = 0; f < F; ++f) {
      std::vector<double> m(L, 1.);
      double sum = 0;
      auto at = [&](int i) { return f * hop + i < N ? x[f * hop + i] : 0.; };
      for (int l = 1; l < L; ++l) {
        double d = 0;
        for (int i = 0; i < window; ++i) d += (at(i) - at(i + l)) * (at(i) - at(i + l));
        sum += d, m[l] = sum > 0 ? d * l / sum : 1;
      }
      int best = -1;
      for (int l = 1; l < L - 1 && best < 0; ++l)
        if (m[l] < 0.15 && m[l] <= m[l + 1] && m[l] < m[l - 1]) best = l;
      if (best < 0) best = int(std::min_element(m.begin() + 1, m.end() - 1) - m.begin());
      const double bend = m[best - 1] - 2 * m[best] + m[best + 1];
      pitches.push_back(16000 / (best + (std::abs(bend) > 1e-9 ? 0.5 * (m[best - 1] - m[best + 1]) / bend : 0)));
      depths.push_back(m[best]);
    }
    if (auto s = agree(depth.now(), depths, 1e-4, 1e-3); !s.empty()) return "depth: " + s;
    return agree(pitch.now(), pitches, 1e-2, 2e-3);
  };
  return j;
});

}  // namespace sample_steps
}  // namespace users
