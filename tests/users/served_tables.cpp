// served_tables.cpp - what servers of language models do beside the model: pages given to growing prompts, tokens sent
// to experts and brought back.
#include "tests/users/use.h"
namespace users {
namespace served_tables {

// --- a page allocator (SGLang): every request grows from pre_lens to seq_lens tokens. A program sums what the requests
// in front of it take, then writes its tokens' places in three parts: what is left of the last page, whole pages, the
// beginning of one more
struct Extend {
  int PAGE = 64, BS = 512, MOST = 512;
};
auto alloc_extend =
    kernel("user_alloc_extend", [](const Extend& c, Ptr<const int64_t> pre_lens, Ptr<const int64_t> seq_lens,
                                   Ptr<const int64_t> last_loc, Ptr<const int64_t> free_pages, Ptr<int64_t> out) {
      auto pid = program_id(0);
      auto pages = [&](const Tile& n) { return (n + (c.PAGE - 1)) / c.PAGE; };
      Tile offset = arange(0, c.BS);
      Tile seqs = load(seq_lens + offset, {.mask = offset <= pid});
      Tile pres = load(pre_lens + offset, {.mask = offset <= pid});
      auto seq = load(seq_lens + pid), pre = load(pre_lens + pid);
      Tile extend = seq - pre;
      Tile first = sum(seqs - pres) - extend;
      auto mine = pages(seq) - pages(pre);
      auto page0 = sum(pages(seqs) - pages(pres)) - mine;
      auto last = load(last_loc + pid);
      // part 1
      auto part1 = min(seq, pages(pre) * c.PAGE) - pre;
      Tile one = cast(arange(0, c.PAGE), i64);
      store(out + (first + one), last + 1 + one, {.mask = one < part1});
      return_if(pre + part1 == seq);
      // part 2
      auto part2 = seq / c.PAGE * c.PAGE - pages(pre) * c.PAGE;
      for (auto i : range(0, cdiv(cast(part2, i32), c.MOST))) {
        Tile many = cast(i * c.MOST + arange(0, c.MOST), i64);
        Tile page = load(free_pages + (page0 + many / c.PAGE), {.mask = many < part2});
        store(out + (first + part1 + many), page * c.PAGE + many % c.PAGE, {.mask = many < part2});
      }
      return_if(pre + part1 + part2 == seq);
      // part 3
      auto part3 = seq - seq / c.PAGE * c.PAGE;
      Tile start = load(free_pages + (page0 + mine - 1)) * c.PAGE;
      store(out + (first + part1 + part2 + one), start + one, {.mask = one < part3});
    });
Register a1("alloc_extend", [](Env& e) {
  Extend c;
  if (!e.big) c = {5, 16, 32};
  c.MOST = e.field("MOST", c.MOST);
  const int B = e.big ? 512 : 13;
  std::vector<int64_t> pre, seq, last;
  int64_t total = 0, used = 0, state = 7;
  for (int i = 0; i < B; ++i) {
    state = (state * 1103515245 + 12345) % 2147483648;
    pre.push_back(i % 4 == 0 ? 0 : state % (e.big ? 4000 : 23));
    const int64_t more = i % 5 == 2 ? i % 2 : e.big ? 200 + state % 3000 : state % 90;  // 0, 1, many
    seq.push_back(pre.back() + more);
    last.push_back(pre.back() ? (1000 + i * 100) * c.PAGE + (pre.back() - 1) % c.PAGE : -1);
    total += more;
    used += cdiv(seq.back(), int64_t(c.PAGE)) - cdiv(pre.back(), int64_t(c.PAGE));
  }
  auto p = repeated<int64_t>(e, B, pre), s = repeated<int64_t>(e, B, seq), l = repeated<int64_t>(e, B, last);
  auto pages = filled<int64_t>(e, used, [&](size_t i) { return int64_t(i) * 37 % 10007 + (int64_t(1) << 33); });
  auto out = constant<int64_t>(e, total, -9);
  Job j;
  j.steps.push_back(
      {"user_alloc_extend",
       [=](Stream& stream) { return alloc_extend.try_launch(stream, c, Grid{B}, p.p, s.p, l.p, pages.p, out.p); },
       [=](const std::string& target) { return alloc_extend.compile_for(target, alloc_extend.words(c)); }});
  j.mbytes = 8e-6 * total;
  j.check = [=]() -> std::string {
    const auto got = out.now();
    size_t at = 0, page = 0;
    for (int i = 0; i < B; ++i)
      for (int64_t t = pre[i], where = last[i]; t < seq[i]; ++t) {
        where = t % c.PAGE ? where + 1 : pages.h[page++] * c.PAGE;
        if (got[at++] != where) return "token " + std::to_string(t) + " of request " + std::to_string(i);
      }
    return "";
  };
  return j;
});

// --- tokens to experts, as DeepEP hands them over: starts of experts are sums of their tokens rounded up to blocks; a
// few programs walk over the tokens and draw a place of every chosen expert; then the weighted rows come back
struct Sent {
  int HIDDEN = 7168, PAD = 8192, SCALES = 56, SPAD = 64, TOP = 8, E = 32, BLOCK = 128, BD = 1024, warps = 8;
};
auto ep_starts =
    kernel("user_ep_starts", [](const Sent& c, Ptr<const int32_t> tokens, Ptr<int32_t> start, Ptr<int32_t> indices) {
      auto expert = program_id(0);
      Tile offset = arange(0, c.E);
      Tile n = load(tokens + offset, {.mask = offset < c.E, .other = 0});
      n = (n + (c.BLOCK - 1)) / c.BLOCK * c.BLOCK;
      store(start + offset, cumsum(n, axis(0)) - n, {.mask = offset < c.E});
      auto first = load(start + expert), count = load(tokens + expert);
      Tile row = arange(0, c.BLOCK);
      for (auto m : range(0, count, c.BLOCK))
        store(indices + (first + m + row), broadcast_to(expand_dims(expert, 0), {c.BLOCK}));
    }).grid([](const Sent& c, const int32_t*, int32_t*, int32_t*) { return Grid{c.E}; });
auto ep_scatter =
    kernel("user_ep_scatter", [](const Sent& c, I32 total, Ptr<int32_t> start, Ptr<const fp8_e4m3> x, I64 x_stride,
                                 Ptr<const float> s, I64 s_stride, Ptr<const int64_t> topk, Ptr<fp8_e4m3> out,
                                 I64 out_stride, Ptr<float> out_s, I64 out_s_stride, Ptr<int32_t> places) {
      num_warps(c.warps);
      Tile in = arange(0, c.PAD), in_s = arange(0, c.SPAD);
      Tile mask = in < c.HIDDEN, mask_s = in_s < c.SCALES;
      for (auto id : range(program_id(0), total, num_programs(0))) {
        Tile token = cast(id, i64);
        Tile row = load(x + (token * x_stride + in), {.mask = mask});
        Tile scales = load(s + (token * s_stride + in_s), {.mask = mask_s});
        for (auto k : range(0, c.TOP)) {
          Tile expert = load(topk + (token * c.TOP + k));
          if_(expert >= 0, [&] {
            Tile to = atomic_add(start + expert, 1);
            store(places + (token * c.TOP + k), to);
            Tile wide = cast(to, i64);
            store(out + (wide * out_stride + in), row, {.mask = mask});
            store(out_s + (wide * out_s_stride + in_s), scales, {.mask = mask_s});
          });
        }
      }
    });
auto ep_gather =
    kernel("user_ep_gather", [](const Sent& c, I32 total, Ptr<const bfloat16> y, I64 stride, Ptr<const int64_t> topk,
                                Ptr<const float> weights, Ptr<const int32_t> places, Ptr<bfloat16> out) {
      Tile block = cast(program_id(0), i64);
      Tile d = arange(0, c.BD);
      for (auto id : range(program_id(1), total, num_programs(1))) {
        Tile token = cast(id, i64);
        Tile acc = zeros({c.BD}, f32);
        for (auto k : range(0, c.TOP))
          for (auto _ : when(load(topk + (token * c.TOP + k)) >= 0)) {
            Tile from = cast(load(places + (token * c.TOP + k)), i64);
            Tile w = load(weights + (token * c.TOP + k));
            acc += cast(load(y + (from * stride + block * c.BD + d)), f32) * w;
          }
        store(out + (token * c.HIDDEN + block * c.BD + d), cast(acc, bf16));
      }
    });
Register a2("ep_scatter", [](Env& e) {
  Sent c;
  if (!e.big) c = {48, 64, 3, 4, 3, 6, 8, 16, 2};
  c.warps = e.field("warps", c.warps);
  const int T = e.big ? 8192 : 29;
  std::vector<int64_t> topk(size_t(T) * c.TOP);
  std::vector<int32_t> counts(c.E);
  for (size_t i = 0; i < topk.size(); ++i) {
    topk[i] = i % 5 == 3 ? -1 : int64_t(i * 7 + i / c.TOP * 5) % (c.E - 1);  // no token for the last
    if (topk[i] >= 0) ++counts[topk[i]];
  }
  int rows = 0;
  std::vector<int> first;
  for (int n : counts) first.push_back(rows), rows += cdiv(n, c.BLOCK) * c.BLOCK;
  auto x = random<fp8_e4m3>(e, size_t(T) * c.HIDDEN, -4, 4);
  auto s = random<float>(e, size_t(T) * c.SCALES), w = random<float>(e, topk.size());
  auto ids = repeated<int64_t>(e, topk.size(), topk);
  auto n = repeated<int32_t>(e, c.E, counts);
  auto start = constant<int32_t>(e, c.E, 0), indices = constant<int32_t>(e, rows, -1),
       places = constant<int32_t>(e, topk.size(), -1);
  auto out = constant<fp8_e4m3>(e, size_t(rows) * c.HIDDEN, 0);
  auto outs = constant<float>(e, size_t(rows) * c.SCALES, 0);
  auto y = random<bfloat16>(e, size_t(rows) * c.HIDDEN), back = constant<bfloat16>(e, x.n, NAN);
  const int programs = e.big ? 8192 : 5;
  Job j;
  j.add(ep_starts, c, n.p, start.p, indices.p);
  auto step = [&](const auto& k, Grid grid, auto... args) {
    j.steps.push_back({k.name(), [=](Stream& stream) { return k.try_launch(stream, c, grid, args...); },
                       [=](const std::string& target) { return k.compile_for(target, c, args...); }});
  };
  step(ep_scatter, Grid{std::min(T, programs)}, T, start.p, x.p, int64_t(c.HIDDEN), s.p, int64_t(c.SCALES), ids.p,
       out.p, int64_t(c.HIDDEN), outs.p, int64_t(c.SCALES), places.p);
  step(ep_gather, Grid{c.HIDDEN / c.BD, std::min(T, programs / 2)}, T, y.p, int64_t(c.HIDDEN), ids.p, w.p, places.p,
       back.p);
  j.inTurn = true;
  j.mbytes = 1e-6 * T * c.HIDDEN * (1 + c.TOP * .8 + 2 * c.TOP * .8 + 2);
  j.check = [=]() -> std::string {
    const auto p = places.now(), of = indices.now();
    const auto o = out.now();
    const auto os = outs.now();
    std::vector<int> taken(rows);
    std::vector<double> want(size_t(T) * c.HIDDEN);
    for (size_t i = 0; i < topk.size(); ++i) {
      const size_t t = i / c.TOP;
      if (topk[i] < 0) {
        if (p[i] != -1) return "a place for nobody";
        continue;
      }
      if (p[i] < first[topk[i]] || p[i] >= first[topk[i]] + counts[topk[i]] || taken[p[i]]++) return "a wrong place";
      for (int d = 0; d < c.HIDDEN; ++d) {
        if (float(o[size_t(p[i]) * c.HIDDEN + d]) != float(x.at(t * c.HIDDEN + d))) return "a wrong row";
        want[t * c.HIDDEN + d] += w[i] * y[size_t(p[i]) * c.HIDDEN + d];
      }
      for (int d = 0; d < c.SCALES; ++d)
        if (os[size_t(p[i]) * c.SCALES + d] != s.at(t * c.SCALES + d)) return "a wrong scale";
    }
    for (int x = 0; x < c.E; ++x)
      for (int r = 0; r < counts[x]; ++r)
        if (of[first[x] + r] != x) return "row " + std::to_string(r) + " of expert " + std::to_string(x);
    return agree(back.now(), want, 1e-2, 1e-2);
  };
  return j;
});
}  // namespace served_tables
}  // namespace users
