// row_variants.cpp - losses of training libraries in all of their variants: divergences between distributions with
// labels to be left out, cross entropy over a vocabulary in parts, joined encodings packed, pictures made smaller.
#include "tests/users/use.h"
namespace users {
namespace row_variants {

// --- generalised Jensen-Shannon divergence of log-probabilities, its gradient beside it; beta of 0 and 1 are the two
// Kullback-Leibler divergences. Rows whose label is to be ignored have a gradient of 0.
struct JsdCfg {
  int BLOCK = 2048, BETA = 50, LABEL = 0;  // beta in hundredths
};
auto divergence =
    kernel("user_jsd",
           [](const JsdCfg& c, Ptr<const bfloat16> X, I64 xs, Ptr<const bfloat16> Y, I64 ys, Ptr<float> loss, I64 ls,
              Ptr<bfloat16> dX, I64 ds, Ptr<const int64_t> label, F32 scale, I64 ignored, I32 n, I32) {
             auto row = cast(program_id(0), i64);
             auto lane = arange(0, c.BLOCK);
             const float beta = float(c.BETA) / 100;
             if (c.LABEL) {
               auto out = load(label + row) == ignored;
               for (auto _ : when(out))
                 for (auto i : range(0, n, c.BLOCK))
                   store(dX + row * ds + (i + lane), zeros({c.BLOCK}, bf16), {.mask = i + lane < n});
               return_if(out);
             }
             for (auto i : range(0, n, c.BLOCK)) {
               auto at = i + lane;
               auto inside = at < n;
               auto x = cast(load(X + row * xs + at, {.mask = inside, .other = -INFINITY}), f32);
               auto y = cast(load(Y + row * ys + at, {.mask = inside, .other = -INFINITY}), f32);
               Tile value = x, slope = x;
               if (c.BETA == 0) {
                 auto most = max(y);
                 auto p = exp(y - most) * exp(most);
                 value = p * (y - x), slope = -p;
               } else if (c.BETA == 100) {
                 auto most = max(x);
                 auto q = exp(x - most) * exp(most);
                 value = q * (x - y), slope = value + q;
               } else {
                 auto most = max(max(x), max(y));
                 auto all = exp(most);
                 auto q = exp(x - most) * all, p = exp(y - most) * all;
                 auto bp = beta * p, bq = (1 - beta) * q;
                 auto m = bp + bq, logM = log(m);
                 value = bp * y + bq * x - m * logM;
                 slope = bq * (x - logM);
               }
               store(loss + row * ls + at, value * scale, {.mask = inside});
               store(dX + row * ds + at, cast(slope * scale, bf16), {.mask = inside});
             }
           })
        .grid([](const JsdCfg&, const auto*, int64_t, const auto*, int64_t, auto*, int64_t, auto*, int64_t, const auto*,
                 float, int64_t, int, int rows) { return Grid{rows}; });
Register r1("jsd", [](Env& e) {
  const int R = e.big ? 2048 : 6, V = e.big ? 32000 : 2500;
  auto x = random<bfloat16>(e, size_t(R) * V, -9, -3), y = random<bfloat16>(e, size_t(R) * V, -9, -3);
  auto label = filled<int64_t>(e, R, [&](size_t i) { return i % 3 == 1 ? int64_t(-100) : int64_t(i); });
  Job j;
  j.mbytes = double(R) * V * 10e-6 * 3;
  std::array<Array<float>, 3> loss;
  std::array<Array<bfloat16>, 3> dx;
  const int betas[] = {0, 100, e.field("BETA", 30)};
  const JsdCfg c{e.field("BLOCK", 2048)};
  for (int v = 0; v < 3; ++v) {
    loss[v] = constant<float>(e, size_t(R) * V, 0), dx[v] = constant<bfloat16>(e, size_t(R) * V, NAN);
    j.add(divergence, {c.BLOCK, betas[v], v != 0}, x.p, V, y.p, V, loss[v].p, V, dx[v].p, V, label.p, .25f, -100, V, R);
  }
  j.check = [=] {
    for (int v = 0; v < 3; ++v) {
      std::vector<double> want(size_t(R) * V), back(size_t(R) * V);
      const double beta = betas[v] / 100.;
      for (size_t i = 0; i < want.size(); ++i) {
        if (v && label.at(i / V) == -100) continue;
        const double P = std::exp(y[i]), Q = std::exp(x[i]), M = beta * P + (1 - beta) * Q;
        want[i] = .25 * (v == 0   ? P * (y[i] - x[i])
                         : v == 1 ? Q * (x[i] - y[i])
                                  : beta * P * y[i] + (1 - beta) * Q * x[i] - M * std::log(M));
        back[i] = .25 * (v == 0 ? -P : v == 1 ? Q * (x[i] - y[i]) + Q : (1 - beta) * Q * (x[i] - std::log(M)));
      }
      auto wrong = agree(loss[v].now(), want, 1e-6, 2e-3);
      if (wrong.empty()) wrong = agree(dx[v].now(), back, 1e-6, 6e-3);
      if (!wrong.empty()) return "variant " + std::to_string(v) + ": " + wrong;
    }
    return std::string();
  };
  return j;
});

// --- cross entropy over a vocabulary too long for one program: parts' log-sums, and gradients left in place of logits
struct PartCfg {
  int BLOCK = 32768, BACK = 4096, CAP = 0, SCALED = 0, warps = 32;
};
auto loss_parts = kernel("user_loss_parts",
                         [](const PartCfg& c, Ptr<const bfloat16> logits, I64 stride, Ptr<float> loss, Ptr<float> lse,
                            Ptr<const int64_t> labels, I32 vocab, I32 parts, F32 cap, F32 scale, I32) {
                           num_warps(c.warps);
                           auto row = program_id(0), part = program_id(1);
                           auto base = logits + cast(row, i64) * stride;
                           auto shaped = [&](Tile x) {
                             if (c.SCALED) x = scale * x;
                             if (c.CAP) x = cap * tanh(x / cap);
                             return x;
                           };
                           auto at = part * c.BLOCK + arange(0, c.BLOCK);
                           auto label = cast(load(labels + row), i32);
                           auto x = shaped(cast(load(base + at, {.mask = at < vocab, .other = -INFINITY}), f32));
                           auto most = max(x);
                           auto sum_ = most + log(sum(exp(x - most)));
                           for (auto _ : when(part == 0)) {
                             Tile value = zeros({1}, f32);
                             for (auto _ : when(label != -100))
                               value = -reshape(shaped(cast(load(base + label), f32)), {1});
                             store(loss + row, to_scalar(value));
                           }
                           store(lse + (row * parts + part), sum_);
                         })
                      .grid([](const PartCfg&, const auto*, int64_t, auto*, auto*, const auto*, int, int parts, float,
                               float, int rows) {
                        return Grid{rows, parts};
                      });
/// Joins the parts of every row; the loss of a row is complete then.
auto join_parts =
    kernel("user_join_parts", [](const PartCfg&, Ptr<const float> parts, Ptr<const int64_t> labels, Ptr<float> loss,
                                 Ptr<float> lse, I32 n, I32) {
      auto row = program_id(0);
      auto at = arange(0, 16);
      auto x = load(parts + (row * n + at), {.mask = at < n, .other = -INFINITY});
      auto most = max(x);
      auto all = most + log(sum(exp(x - most)));
      store(lse + row, all);
      store(loss + row, where(load(labels + row) == -100, 0.f, load(loss + row) + all));
    }).grid([](const PartCfg&, const auto*, const auto*, auto*, auto*, int, int rows) { return Grid{rows}; });
auto loss_back = kernel("user_loss_back",
                        [](const PartCfg& c, Ptr<bfloat16> logits, I64 stride, Ptr<const float> dloss, I64 ds,
                           Ptr<const float> lse, Ptr<const int64_t> labels, I32 vocab, F32 cap, F32 scale, I32) {
                          num_warps(8);
                          auto row = program_id(0);
                          auto at = program_id(1) * c.BACK + arange(0, c.BACK);
                          auto base = logits + cast(row, i64) * stride;
                          auto label = cast(load(labels + row), i32);
                          Tile d = zeros({1}, f32);
                          for (auto _ : when(label != -100)) d = reshape(load(dloss + cast(row, i64) * ds), {1});
                          Tile x = cast(load(base + at, {.mask = at < vocab, .other = -INFINITY}), f32), capped = x;
                          if (c.SCALED) x *= scale;
                          if (c.CAP) {
                            capped = tanh(x / cap);
                            x = cap * capped;
                          }
                          Tile y = exp(x - load(lse + row));
                          y = where(at == label, y - 1.f, y);
                          if (c.SCALED) y *= scale;
                          if (c.CAP) y *= 1.f - capped * capped;
                          store(base + at, cast(to_scalar(d) * y, bf16), {.mask = at < vocab});
                        })
                     .grid([](const PartCfg& c, auto*, int64_t, const auto*, int64_t, const auto*, const auto*,
                              int vocab, float, float, int rows) {
                       return Grid{rows, cdiv(vocab, c.BACK)};
                     });
Register r2("chunked_ce", [](Env& e) {
  const int R = e.big ? 2048 : 5, V = e.big ? 128256 : 2600;
  const PartCfg c{e.field("BLOCK", e.big ? 32768 : 1024), e.field("BACK", e.big ? 4096 : 512), e.field("CAP", 1),
                  e.field("SCALED", 1), e.field("warps", e.big ? 32 : 4)};
  const int parts = cdiv(V, c.BLOCK);
  auto x = random<bfloat16>(e, size_t(R) * V, -6, 6);
  auto labels = filled<int64_t>(e, R, [&](size_t i) { return i == 2 ? int64_t(-100) : int64_t((i * 1031) % V); });
  auto loss = constant<float>(e, R, NAN), lse = constant<float>(e, R, NAN),
       some = constant<float>(e, size_t(R) * parts, NAN);
  auto dloss = random<float>(e, R, .5, 1.5);
  Job j;
  restore(e, j, x);
  j.mbytes = double(R) * V * 6e-6;
  j.add(loss_parts, c, x.p, V, loss.p, some.p, labels.p, V, parts, 5.f, .5f, R);
  j.add(join_parts, c, some.p, labels.p, loss.p, lse.p, parts, R);
  j.add(loss_back, c, x.p, V, dloss.p, 1, lse.p, labels.p, V, 5.f, .5f, R);
  j.inTurn = true;
  j.check = [=] {
    std::vector<double> want(R), back(size_t(R) * V);
    for (int r = 0; r < R; ++r) {
      double sum = 0;
      std::vector<double> y(V), t(V);
      for (int i = 0; i < V; ++i) {
        y[i] = x[size_t(r) * V + i] * (c.SCALED ? .5 : 1), t[i] = std::tanh(y[i] / 5);
        if (c.CAP) y[i] = 5 * t[i];
        sum += std::exp(y[i]);
      }
      const int64_t label = labels.at(r);
      if (label == -100) continue;
      want[r] = std::log(sum) - y[label];
      for (int i = 0; i < V; ++i)
        back[size_t(r) * V + i] =
            dloss[r] * (std::exp(y[i]) / sum - (i == label)) * (c.SCALED ? .5 : 1) * (c.CAP ? 1 - t[i] * t[i] : 1);
    }
    auto wrong = agree(loss.now(), want, 1e-4, 1e-4);
    return wrong.empty() ? agree(x.now(), back, 2e-6, 8e-3) : wrong;
  };
  return j;
});

// --- encodings of time and of text added to each other, every pair of them, packed without the pairs past a sequence's
// ends: relu, dropout with its mask kept
struct JointCfg {
  int TT = 4, TU = 4, BH = 64, PACKED = 1, RELU = 1, DROP = 1;
};
auto joint =
    kernel(
        "user_joint",
        [](const JointCfg& c, Ptr<const half> f, Ptr<const half> g, Ptr<const int> fLength, Ptr<const int> gLength,
           Ptr<const int64_t> offsets, Ptr<half> sum_, Ptr<uint8_t> kept, I32 maxF, I32 maxG, I32 H, F32 p, I64 seed,
           I32) {
          auto b = program_id(2);
          auto t = program_id(1) * c.TT + arange(0, c.TT), u = program_id(0) * c.TU + arange(0, c.TU);
          auto nf = load(fLength + b), ng = load(gLength + b);
          Tile first = cast(b * maxF * maxG, i64), across = maxG;
          if (c.PACKED) {
            first = load(offsets + (b - 1), {.mask = b > 0});
            across = ng;
          }
          return_if((program_id(1) * c.TT >= nf) | (program_id(0) * c.TU >= ng));
          auto inside = (t < nf).col() & (u < ng).row();
          for (auto h0 : range(0, H, c.BH)) {
            auto h = h0 + arange(0, c.BH);
            auto x = load(f + (cast(b * maxF + t, i64).col() * H + h.row()), {.mask = (t < nf).col() & (h < H).row()});
            auto y = load(g + (cast(b * maxG + u, i64).col() * H + h.row()), {.mask = (u < ng).col() & (h < H).row()});
            Tile z = cast(expand_dims(x, 1), f32) + cast(expand_dims(y, 0), f32);
            auto at =
                (expand_dims(first + cast(t.col() * across + u.row(), i64), 2)) * H + expand_dims(expand_dims(h, 0), 0);
            auto there = expand_dims(inside, 2) & expand_dims(expand_dims(h < H, 0), 0);
            auto keep = z == z;
            if (c.RELU) keep = keep & (z > 0.f);
            if (c.DROP) keep = keep & (rand(seed, at) > p);
            store(sum_ + at, cast(where(keep, c.DROP ? Tile(z / (1.f - p)) : z, 0.f), f16), {.mask = there});
            if (c.RELU || c.DROP) store(kept + at, cast(keep, u8), {.mask = there});
          }
        })
        .grid([](const JointCfg& c, const auto*, const auto*, const auto*, const auto*, const auto*, auto*, auto*,
                 int maxF, int maxG, int, float, int64_t, int batch) {
          return Grid{cdiv(maxG, c.TU), cdiv(maxF, c.TT), batch};
        });
Register r3("packed_joint", [](Env& e) {
  const int B = e.big ? 8 : 4, F = e.big ? 200 : 11, G = e.big ? 60 : 7, H = e.big ? 640 : 72;
  std::vector<int> nf(B), ng(B);
  std::vector<int64_t> ends(B);
  int64_t total = 0;
  for (int b = 0; b < B; ++b)
    nf[b] = b == 1 ? F : F - b, ng[b] = b == 2 ? 1 : G - b % 3, ends[b] = total += int64_t(nf[b]) * ng[b];
  auto f = random<half>(e, size_t(B) * F * H), g = random<half>(e, size_t(B) * G * H);
  auto fl = repeated<int>(e, B, nf), gl = repeated<int>(e, B, ng);
  auto offsets = repeated<int64_t>(e, B, ends);
  auto out = constant<half>(e, total * H, NAN), plain = constant<half>(e, size_t(B) * F * G * H, 0);
  auto kept = constant<uint8_t>(e, total * H, 9), relu = constant<uint8_t>(e, plain.n, 9);
  Job j;
  j.mbytes = double(total) * H * 6e-6;
  JointCfg c{e.field("TT", 4), e.field("TU", 4), e.field("BH", 64)};
  j.add(joint, c, f.p, g.p, fl.p, gl.p, offsets.p, out.p, kept.p, F, G, H, .3f, 77, B);
  c.PACKED = c.DROP = 0;
  j.add(joint, c, f.p, g.p, fl.p, gl.p, nullptr, plain.p, relu.p, F, G, H, .3f, 77, B);
  j.check = [=] {
    std::vector<double> want, all(plain.n), marks;
    const auto marked = kept.now();
    size_t dropped = 0, positive = 0;
    for (int b = 0; b < B; ++b)
      for (int t = 0; t < nf[b]; ++t)
        for (int u = 0; u < ng[b]; ++u)
          for (int h = 0; h < H; ++h) {
            const double z = f[(size_t(b) * F + t) * H + h] + g[(size_t(b) * G + u) * H + h];
            all[((size_t(b) * F + t) * G + u) * H + h] = std::max(z, 0.);
            const int m = marked[want.size()];
            if (m > 1 || (m == 1 && z <= 0)) return std::string("a mark that cannot be");
            positive += z > 0, dropped += z > 0 && !m;
            want.push_back(m ? z / .7 : 0);
          }
    if (std::abs(double(dropped) / double(positive) - .3) > .05) return std::string("not 30 % are dropped");
    auto wrong = agree(out.now(), want, 1e-3, 2e-3);
    return wrong.empty() ? agree(plain.now(), all, 1e-3, 2e-3) : wrong;
  };
  return j;
});

// --- pictures resized with cubic weights over as many pixels as one covers (antialiasing)
struct CubicCfg {
  int BX = 128, BY = 1, TAPS = 8;
};
/// The first pixel that one of the result covers, how many, and its middle.
std::tuple<Tile, Tile, Tile> covered(const Tile& o, const Tile& scale, const Tile& size) {
  Tile middle = scale * (cast(o, f32) + .5f), support = 2.f * max(scale, 1.f);
  Tile first = max(cast(middle - support + .5f, i32), 0);
  Tile count = min(cast(middle + support + .5f, i32), size) - first;
  return {first, count, middle};
}
Tile cubic(const Tile& distance) {
  auto x = abs(distance);
  auto near_ = ((1.5f * x - 2.5f) * x) * x + 1.f, far_ = ((x - 5.f) * x + 8.f) * x * -.5f + 2.f;
  return where(x < 1.f, near_, where(x < 2.f, far_, 0.f));
}
auto cubic_resize =
    kernel("user_cubic_resize", [](const CubicCfg& c, Ptr<const float> in, Ptr<float> out, I32 images, I32 ih, I32 iw,
                                   I32 oh, I32 ow, F32 sy, F32 sx) {
      auto ox = (program_id(0) * c.BX + arange(0, c.BX)).row() % ow,
           oy = (program_id(1) * c.BY + arange(0, c.BY)).col() % oh;
      auto [x0, nx, mx] = covered(ox, sx, iw);
      auto [y0, ny, my] = covered(oy, sy, ih);
      auto inverseX = 1.f / max(sx, 1.f), inverseY = 1.f / max(sy, 1.f);
      Tile wx[16], wy[16], sumX = zeros({1, c.BX}, f32), sumY = zeros({c.BY, 1}, f32);
      for (int i = 0; i < c.TAPS; ++i) {
        wx[i] = where(i < nx, cubic((cast(x0 + i, f32) - mx + .5f) * inverseX), 0.f);
        wy[i] = where(i < ny, cubic((cast(y0 + i, f32) - my + .5f) * inverseY), 0.f);
        sumX += wx[i], sumY += wy[i];
      }
      for (auto n : range(0, images)) {
        Tile acc = zeros({c.BY, c.BX}, f32);
        for (int y = 0; y < c.TAPS; ++y) {
          Tile line = zeros({c.BY, c.BX}, f32);
          for (int x = 0; x < c.TAPS; ++x)
            line += load(in + ((n * ih + y0 + y) * iw + (x0 + x)), {.mask = (y < ny) & (x < nx)}) * (wx[x] / sumX);
          acc += line * (wy[y] / sumY);
        }
        store(out + ((n * oh + oy) * ow + ox), acc);
      }
    }).grid([](const CubicCfg& c, const float*, float*, int, int, int, int oh, int ow, float, float) {
      return Grid{cdiv(ow, c.BX), cdiv(oh, c.BY)};
    });
Register r4("cubic_aa", [](Env& e) {
  const int N = e.big ? 24 : 2, ih = e.big ? 1080 : 37, iw = e.big ? 1920 : 61, oh = e.big ? 720 : 21,
            ow = e.big ? 1280 : 33;
  auto in = random<float>(e, size_t(N) * ih * iw);
  auto out = constant<float>(e, size_t(N) * oh * ow, NAN);
  const float sy = float(ih) / oh, sx = float(iw) / ow;
  Job j;
  j.mbytes = double(N) * (ih * iw + oh * ow) * 4e-6;
  j.add(cubic_resize, {e.field("BX", e.big ? 128 : 32), e.field("BY", e.big ? 1 : 2)}, in.p, out.p, N, ih, iw, oh, ow,
        sy, sx);
  j.check = [=] {
    auto taps = [](int o, double scale, int size, int& first) {
      const double middle = scale * (o + .5), support = 2 * std::max(scale, 1.);
      first = std::max(int(middle - support + .5), 0);
      std::vector<double> w;
      double sum = 0;
      for (int i = first; i < std::min(int(middle + support + .5), size); ++i) {
        const double x = std::abs((i - middle + .5) / std::max(scale, 1.));
        w.push_back(x < 1 ? 1.5 * x * x * x - 2.5 * x * x + 1 : x < 2 ? -.5 * (((x - 5) * x + 8) * x - 4) : 0);
        sum += w.back();
      }
      for (double& x : w) x /= sum;
      return w;
    };
    std::vector<double> want;
    for (int n = 0; n < N; ++n)
      for (int y = 0; y < oh; ++y)
        for (int x = 0; x < ow; ++x) {
          int y0, x0;
          const auto wy = taps(y, sy, ih, y0), wx = taps(x, sx, iw, x0);
          double sum = 0;
          for (size_t a = 0; a < wy.size(); ++a)
            for (size_t b = 0; b < wx.size(); ++b) sum += wy[a] * wx[b] * in[(size_t(n) * ih + y0 + a) * iw + x0 + b];
          want.push_back(sum);
        }
    return agree(out.now(), want, 2e-4, 2e-4);
  };
  return j;
});

}  // namespace row_variants
}  // namespace users
