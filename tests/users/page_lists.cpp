// page_lists.cpp - what servers do between two layers, one program per request or token: pages given to requests that
// grow, lists of pages put in a row, parts of attention merged, ranks and logarithms of chosen tokens, gates quantised
// where each expert has a number of tokens of its own, products of those.
#include "tests/users/use.h"
namespace users {
namespace page_lists {

// --- pages for requests that grow from `before` tokens to `after`: the rest of the last page, whole new pages, and the
// beginning of one more. Where a request's tokens and pages begin follows from all requests in front of it.
struct ExtendCfg {
  int REQUESTS = 16, PAGE = 16, TOKENS = 512;
};
auto pages_to_extend =
    kernel("user_pages_to_extend", [](const ExtendCfg& c, Ptr<const int64_t> before, Ptr<const int64_t> after,
                                      Ptr<const int64_t> lastPlace, Ptr<const int64_t> freePages, Ptr<int64_t> out) {
      auto r = program_id(0);
      auto pages = [&](const Tile& n) { return (n + (c.PAGE - 1)) / c.PAGE; };
      auto all = arange(0, c.REQUESTS);
      auto ends = load(after + all, {.mask = all <= r}), starts = load(before + all, {.mask = all <= r});
      Tile length = load(after + r), had = load(before + r);
      auto grown = length - had;
      auto first = sum(ends - starts) - grown;
      auto newPages = pages(length) - pages(had);
      auto firstPage = sum(pages(ends) - pages(starts)) - newPages;

      auto inPage = arange(0, c.PAGE);
      auto part1 = min(length, pages(had) * c.PAGE) - had;
      store(out + (first + inPage), load(lastPlace + r) + 1 + inPage, {.mask = inPage < part1});
      return_if(had + part1 == length);

      auto part2 = length / c.PAGE * c.PAGE - pages(had) * c.PAGE;
      auto many = arange(0, c.TOKENS);
      auto page = load(freePages + (firstPage + many / c.PAGE), {.mask = many < part2});
      store(out + (first + part1 + many), page * c.PAGE + many % c.PAGE, {.mask = many < part2});
      return_if(had + part1 + part2 == length);

      auto part3 = length - length / c.PAGE * c.PAGE;
      auto last = load(freePages + (firstPage + newPages - 1));
      store(out + (first + part1 + part2 + inPage), last * c.PAGE + inPage, {.mask = inPage < part3});
    });
Register r1("extend_pages", [](Env& e) {
  const int R = e.big ? 256 : 13, most = e.big ? 8000 : 400;
  const ExtendCfg c{e.big ? 256 : 16, e.field("PAGE", e.big ? 64 : 16), e.big ? 8192 : 512};
  auto had = drawn<int64_t>(e, R, [&] { return int64_t(e.uniform() * 300); });
  std::vector<int64_t> ends(R), last(R);
  int64_t total = 0, pages = 0;
  for (int r = 0; r < R; ++r) {
    const int64_t b = e.device ? had.at(r) : 0, grow = r == 3 ? 1 : 1 + int64_t(e.uniform() * most);
    ends[r] = b + grow, last[r] = 100000 + r * 1000 + (b + c.PAGE - 1) % c.PAGE;
    total += grow, pages += (ends[r] + c.PAGE - 1) / c.PAGE - (b + c.PAGE - 1) / c.PAGE;
  }
  auto after = repeated<int64_t>(e, R, ends), lastPlace = repeated<int64_t>(e, R, last);
  auto freePages = filled<int64_t>(e, pages + 1, [&](size_t i) { return int64_t((i * 37 + 5) % 1009); });
  auto out = repeated<int64_t>(e, total + 1, std::vector<int64_t>(total + 1, -7));
  Job j;
  j.mbytes = double(total) * 8e-6;
  j.steps.push_back({pages_to_extend.name(),
                     [=](Stream& s) {
                       return pages_to_extend.try_launch(s, c, Grid{R}, had.p, after.p, lastPlace.p, freePages.p,
                                                         out.p);
                     },
                     [=](const std::string& target) -> Result<KernelBinary> {
                       return pages_to_extend.compile_for(target, c, had.p, after.p, lastPlace.p, freePages.p, out.p);
                     }});
  j.check = [=] {
    std::vector<double> want;
    size_t next = 0;
    for (int r = 0; r < R; ++r) {
      int64_t page = -1, place = last[r];
      for (int64_t t = had.at(r); t < ends[r]; ++t) {
        if (t % c.PAGE == 0) page = freePages.at(next++), place = page * c.PAGE - 1;
        want.push_back(double(++place));
      }
    }
    want.push_back(-7);
    return agree(out.now(), want, .1, 0);
  };
  return j;
});

// --- rows of a table of places, each from a start of its own, put one behind the other
struct ListCfg {
  int BLOCK = 512, STARTS = 0;
};
auto places_in_a_row =
    kernel("user_places_in_a_row", [](const ListCfg& c, Ptr<const int> table, Ptr<const int64_t> request,
                                      Ptr<const int> lengths, Ptr<const int> offsets, Ptr<const int> starts,
                                      Ptr<int> out, I64 stride, I32) {
      auto r = program_id(0);
      auto row = load(request + r);
      auto to = load(offsets + r);
      Tile from = zeros({1}, i32);
      auto start = c.STARTS ? load(starts + r) : to_scalar(from);
      auto end = start + load(lengths + r);
      auto lane = arange(0, c.BLOCK);
      for (auto i : range(0, cdiv(end - start, c.BLOCK))) {
        auto at = lane + i * c.BLOCK;
        auto inside = at < end - start;
        auto place = load(table + row * stride + start + at, {.mask = inside});
        store(out + to + at, place, {.mask = inside});
      }
    }).grid([](const ListCfg&, const int*, const int64_t*, const int*, const int*, const int*, int*, int64_t, int n) {
      return Grid{n};
    });
Register r2("lists_in_a_row", [](Env& e) {
  const int R = e.big ? 512 : 7, most = e.big ? 8192 : 1300, width = most + 600;
  auto table = integers<int>(e, size_t(R + 3) * width, 0, 1 << 20);
  auto request = filled<int64_t>(e, R, [&](size_t i) { return int64_t(i * 5 % (R + 3)); });
  std::vector<int> n(R), to(R), from(R);
  int total = 0;
  for (int r = 0; r < R; ++r) {
    n[r] = r == 2 ? 0 : 1 + int(e.uniform() * most), to[r] = total, from[r] = r * 77 % 600;
    total += n[r];
  }
  auto lengths = repeated<int>(e, R, n), offsets = repeated<int>(e, R, to), starts = repeated<int>(e, R, from);
  auto a = constant<int>(e, total, -1), b = constant<int>(e, total, -1);
  Job j;
  j.mbytes = total * 16e-6;
  const int B = e.field("BLOCK", 512);
  j.add(places_in_a_row, ListCfg{B, 0}, table.p, request.p, lengths.p, offsets.p, nullptr, a.p, width, R);
  j.add(places_in_a_row, ListCfg{B, 1}, table.p, request.p, lengths.p, offsets.p, starts.p, b.p, width, R);
  j.check = [=] {
    std::vector<double> plain(total), moved(total);
    for (int r = 0; r < R; ++r)
      for (int i = 0; i < n[r]; ++i) {
        const size_t row = size_t(request.at(r)) * width;
        plain[to[r] + i] = table[row + i], moved[to[r] + i] = table[row + from[r] + i];
      }
    auto wrong = agree(a.now(), plain, .1, 0);
    return wrong.empty() ? agree(b.now(), moved, .1, 0) : wrong;
  };
  return j;
});

// --- two parts of attention over one query, merged by their log-sums of exponentials; a part that saw nothing has one
// of minus infinity, or plus infinity by an older kernel's convention
struct MergeCfg {
  int D = 128, OUT_LSE = 0;
};
auto merge_parts =
    kernel("user_merge_parts",
           [](const MergeCfg& c, Ptr<const bfloat16> prefix, Ptr<const float> prefixLse, Ptr<const bfloat16> suffix,
              Ptr<const float> suffixLse, Ptr<bfloat16> out, Ptr<float> outLse, I32 tokens, I32 heads) {
             auto t = program_id(0), h = program_id(1);
             Tile p = load(prefixLse + (h * tokens + t)), s = load(suffixLse + (h * tokens + t));
             p = where(p == INFINITY, -INFINITY, p);
             s = where(s == INFINITY, -INFINITY, s);
             auto most = max(p, s);
             auto pe = exp(p - most), se = exp(s - most);
             auto both = pe + se;
             if (c.OUT_LSE) store(outLse + (h * tokens + t), log(both) + most);
             auto at = (t * heads + h) * c.D + arange(0, c.D);
             auto x = cast(load(prefix + at), f32), y = cast(load(suffix + at), f32);
             store(out + at, cast(x * (pe / both) + y * (se / both), bf16));
           })
        .grid([](const MergeCfg&, const auto*, const auto*, const auto*, const auto*, auto*, auto*, int tokens,
                 int heads) {
          return Grid{tokens, heads};
        });
Register r3("merge_states", [](Env& e) {
  const int T = e.big ? 4096 : 11, H = e.big ? 32 : 3, D = e.field("D", e.big ? 128 : 96);
  auto a = random<bfloat16>(e, size_t(T) * H * D), b = random<bfloat16>(e, size_t(T) * H * D);
  auto la = random<float>(e, size_t(T) * H, -3, 5),
       lb = filled<float>(e, size_t(T) * H, [&](size_t i) {
         return i % 7 == 3 ? -INFINITY : i % 7 == 5 ? INFINITY : float(e.uniform() * 4);
       });
  auto out = constant<bfloat16>(e, size_t(T) * H * D, NAN), quiet = constant<bfloat16>(e, size_t(T) * H * D, NAN);
  auto lse = constant<float>(e, size_t(T) * H, NAN);
  Job j;
  j.mbytes = double(T) * H * D * 6e-6;
  j.add(merge_parts, {D, 1}, a.p, la.p, b.p, lb.p, out.p, lse.p, T, H);
  j.add(merge_parts, {D, 0}, a.p, la.p, b.p, lb.p, quiet.p, nullptr, T, H);
  j.check = [=] {
    std::vector<double> want(size_t(T) * H * D), sums(size_t(T) * H);
    for (int h = 0; h < H; ++h)
      for (int t = 0; t < T; ++t) {
        const size_t i = size_t(h) * T + t;
        const double p = std::exp(la[i]), s = std::isinf(lb[i]) ? 0 : std::exp(lb[i]);
        sums[i] = std::log(p + s);
        for (int d = 0; d < D; ++d) {
          const size_t o = (size_t(t) * H + h) * D + d;
          want[o] = (a[o] * p + b[o] * s) / (p + s);
        }
      }
    auto wrong = agree(out.now(), want, 1e-5, 5e-3);
    if (wrong.empty()) wrong = agree(quiet.now(), want, 1e-5, 5e-3);
    return wrong.empty() ? agree(lse.now(), sums, 1e-5, 1e-5) : wrong;
  };
  return j;
});

// --- log-probabilities of some tokens of a row, and the rank of one: the vocabulary is walked three times
struct LogprobCfg {
  int BLOCK = 1024, TOP = 32;
};
auto chosen_logprobs =
    kernel("user_chosen_logprobs", [](const LogprobCfg& c, Ptr<float> out, Ptr<const float> logits, I64 stride,
                                      Ptr<const int64_t> ids, I32 top, I32 vocab, I32) {
      auto r = program_id(0);
      auto row = logits + cast(r, i64) * stride;
      auto lane = arange(0, c.BLOCK);
      Tile most = full({1}, -INFINITY, f32);
      for (auto i : range(0, vocab, c.BLOCK)) {
        auto x = load(row + (i + lane), {.mask = i + lane < vocab, .other = -INFINITY});
        most = max(most, max(x));
      }
      Tile total = zeros({1}, f32);
      for (auto i : range(0, vocab, c.BLOCK)) {
        auto x = load(row + (i + lane), {.mask = i + lane < vocab, .other = 0});
        total += sum(where(i + lane < vocab, exp(x - to_scalar(most)), 0.f));
      }
      auto lse = to_scalar(log(total) + most);
      auto k = arange(0, c.TOP);
      auto id = load(ids + (r * top + k), {.mask = k < top});
      auto x = load(row + id, {.mask = k < top});
      store(out + (r * top + k), x - lse, {.mask = k < top});
    }).grid([](const LogprobCfg&, auto*, const auto*, int64_t, const auto*, int, int, int n) { return Grid{n}; });
auto chosen_rank =
    kernel("user_chosen_rank", [](const LogprobCfg& c, Ptr<int64_t> out, Ptr<const float> logits, I64 stride,
                                  Ptr<const int64_t> ids, I32 top, I32 vocab, I32) {
      auto r = program_id(0);
      auto row = logits + cast(r, i64) * stride;
      auto x = load(row + load(ids + r * top));
      Tile n = zeros({1}, i32);
      for (auto i : range(0, vocab, c.BLOCK)) {
        auto at = i + arange(0, c.BLOCK);
        auto y = load(row + at, {.mask = at < vocab, .other = -INFINITY});
        n += sum(cast(y > x, i32));
      }
      store(out + r, to_scalar(cast(n, i64)));
    }).grid([](const LogprobCfg&, auto*, const auto*, int64_t, const auto*, int, int, int n) { return Grid{n}; });
Register r4("token_logprobs", [](Env& e) {
  const int R = e.big ? 256 : 5, V = e.big ? 128256 : 3001, top = 20, stride = V + (e.big ? 0 : 7);
  auto x = random<float>(e, size_t(R) * stride, -8, 8);
  auto ids = integers<int64_t>(e, size_t(R) * top, 0, V);
  auto out = constant<float>(e, size_t(R) * top, NAN);
  auto rank = constant<int64_t>(e, R, -1);
  const LogprobCfg c{e.field("BLOCK", 1024), 32};
  Job j;
  j.mbytes = double(R) * V * 12e-6;
  j.add(chosen_logprobs, c, out.p, x.p, stride, ids.p, top, V, R);
  j.add(chosen_rank, c, rank.p, x.p, stride, ids.p, top, V, R);
  j.check = [=] {
    std::vector<double> want, ranks;
    for (int r = 0; r < R; ++r) {
      double s = 0;
      for (int v = 0; v < V; ++v) s += std::exp(x[size_t(r) * stride + v]);
      for (int k = 0; k < top; ++k) want.push_back(x[size_t(r) * stride + ids.at(r * top + k)] - std::log(s));
      const double mine = x[size_t(r) * stride + ids.at(r * top)];
      ranks.push_back(0);
      for (int v = 0; v < V; ++v) ranks.back() += x[size_t(r) * stride + v] > mine;
    }
    auto wrong = agree(out.now(), want, 1e-4, 1e-5);
    return wrong.empty() ? agree(rank.now(), ranks, .1, 0) : wrong;
  };
  return j;
});

// --- silu(gate) * up of experts' tokens, quantised to 8 bits in groups; an expert has as many tokens as it says, and
// strides of every dim are arguments, as factors lie column by column
struct QuantCfg {
  int GROUP = 128, POWERS = 0, stages = 4;
};
auto quantised_gates =
    kernel("user_quantised_gates",
           [](const QuantCfg& c, Ptr<const bfloat16> x, Ptr<fp8_e4m3> y, Ptr<float> factor, Ptr<const int> counts,
              I32 H, I32 groups, I64 xe, I64 xt, I64 xh, I64 ye, I64 yt, I64 yh, I64 fe, I64 ft, I64 fg, I32) {
             num_warps(1);
             auto e = cast(program_id(0) / groups, i64), g = cast(program_id(0) % groups, i64);
             auto n = load(counts + e);
             auto column = cast(arange(0, c.GROUP), i64);
             auto gates = x + e * xe + g * c.GROUP * xh + column * xh;
             for (auto t : range(0, n, 1, {.stages = c.stages})) {
               auto gate = cast(load(gates + cast(t, i64) * xt), f32);
               auto up = cast(load(gates + cast(H, i64) * xh + cast(t, i64) * xt), f32);
               auto v = gate * (1.f / (1.f + exp(-gate))) * up;
               Tile scale = max(max(abs(v)), 1e-10f) / 448.f;
               if (c.POWERS) scale = exp2(ceil(log2(scale)));
               store(y + e * ye + cast(t, i64) * yt + g * c.GROUP * yh + column * yh,
                     cast(clamp(v / scale, -448.f, 448.f), f8e4m3));
               store(factor + e * fe + cast(t, i64) * ft + g * fg, scale);
             }
           })
        .grid([](const QuantCfg&, const auto*, auto*, auto*, const int*, int, int groups, int64_t, int64_t, int64_t,
                 int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int experts) { return Grid{experts * groups}; });
Register r5("masked_gates", [](Env& e) {
  const int E = e.big ? 32 : 4, T = e.big ? 256 : 9, G = e.big ? 16 : 3, H = G * 128;
  auto x = random<bfloat16>(e, size_t(E) * T * 2 * H, -3, 3);
  auto counts = filled<int>(e, E, [&](size_t i) { return i == 1 ? 0 : int((i * 29 + 5) % (T + 1)); });
  auto y = constant<fp8_e4m3>(e, size_t(E) * T * H, 7);
  auto f = constant<float>(e, size_t(E) * T * G, 7);
  Job j;
  const int powers = e.field("POWERS", 0);
  j.mbytes = double(E) * T * H * 2.5e-6;
  j.add(quantised_gates, {128, powers, e.field("stages", 4)}, x.p, y.p, f.p, counts.p, H, G, int64_t(T) * 2 * H, 2 * H,
        1, int64_t(T) * H, H, 1, int64_t(T) * G, 1, T, E);
  j.check = [=] {
    std::vector<double> want(size_t(E) * T * H, 7), scales(size_t(E) * T * G, 7), got;
    const auto q = y.now();
    const auto s = f.now();
    for (int x0 = 0; x0 < E; ++x0)
      for (int t = 0; t < T; ++t)
        for (int g = 0; g < G; ++g) {
          double most = 1e-10;
          const size_t at = size_t(x0) * T * G + size_t(g) * T + t;
          for (int i = 0; i < 128; ++i) {
            const size_t o = (size_t(x0) * T + t) * H + g * 128 + i, in = (size_t(x0) * T + t) * 2 * H + g * 128 + i;
            if (t < counts.at(x0)) want[o] = x[in] / (1 + std::exp(-x[in])) * x[in + H];
            most = std::max(most, std::abs(want[o]));
          }
          if (t < counts.at(x0)) scales[at] = powers ? std::exp2(std::ceil(std::log2(most / 448))) : most / 448;
        }
    for (size_t o = 0; o < q.size(); ++o) {
      const size_t t = o / H, at = t / T * T * G + o % H / 128 * T + t % T;
      got.push_back(double(float(q[o])) * (int(t % T) < counts.at(t / T) ? s[at] : 1));
    }
    auto wrong = agree(s, scales, 0, 1e-5);
    return wrong.empty() ? agree(got, want, 2e-3, .07) : wrong;
  };
  return j;
});

}  // namespace page_lists
}  // namespace users
