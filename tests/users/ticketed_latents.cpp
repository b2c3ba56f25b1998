// ticketed_latents.cpp - a step of absorbed latent attention over a paged cache in one launch: programs of a sequence
// take pages in turn, draw a ticket when they are done, and the last one merges what all have left.
#include "tests/users/use.h"
namespace users {
namespace ticketed_latents {

struct LatentCfg {
  int H = 16, page = 64, C = 512, R = 64, splits = 8, merged = 64;  // heads of a program, rows of a page, numbers of a key
};
struct Part {  // of softmax: maximum (log2), sum, values
  Tile m, l, acc;
};
void take_in(Part& p, const Tile& s, const Tile& v) {
  auto top = max(p.m, max(s, axis(1)));
  auto at = where(top == -INFINITY, 0.f, top);
  auto e = exp2(s - at), keep = exp2(p.m - at);
  p.l = p.l * keep + sum(e, axis(1));
  p.acc = dot(cast(e, bf16), v, p.acc * keep);
  p.m = top;
}
auto ticket_latents = kernel("user_ticket_latents", [](const LatentCfg& c, Tensor<const bfloat16, 3> latent_q,
                                                       Tensor<const bfloat16, 3> rotary_q, Tensor<const bfloat16, 3> cache,
                                                       Ptr<const int32_t> pages, Ptr<const int32_t> lengths, Ptr<float> acc_parts,
                                                       Ptr<float> ml_parts, Ptr<uint32_t> tickets, Tensor<bfloat16, 3> out,
                                                       I32 most_pages, F32 scale) {
  auto split = program_id(0), h = program_id(1) * c.H, b = program_id(2);
  auto length = load(lengths + b), count = cdiv(length, c.page);
  auto ql = reshape(latent_q.load({b, h, 0}, {1, c.H, c.C}), {c.H, c.C});
  auto qr = reshape(rotary_q.load({b, h, 0}, {1, c.H, c.R}), {c.H, c.R});
  Part p{full({c.H, 1}, -INFINITY, f32), zeros({c.H, 1}, f32), zeros({c.H, c.C}, f32)};
  for (auto i : range(split, count, c.splits)) {
    auto at = load(pages + (cast(b, i64) * most_pages + i));
    auto kv = reshape(cache.load({at, 0, 0}, {1, c.page, c.C}), {c.page, c.C});
    auto kr = reshape(cache.load({at, 0, c.C}, {1, c.page, c.R}), {c.page, c.R});
    auto s = (dot(ql, trans(kv)) + dot(qr, trans(kr))) * (scale * 1.44269504f);
    take_in(p, where((i * c.page + arange(0, c.page) < length).row(), s, -INFINITY), kv);
  }
  auto group = b * num_programs(1) + program_id(1), row = (group * c.splits + split) * c.H + arange(0, c.H);
  store(acc_parts + (cast(row, i64).col() * c.C + arange(0, c.C).row()), p.acc);
  store(ml_parts + (row.col() * 2), p.m);
  store(ml_parts + (row.col() * 2 + 1), p.l);
  auto ticket = atomic_add(tickets + group, uint32_t(1));
  return_if(ticket != uint32_t(c.splits - 1));
  auto ml = [&](const Tile& s) { return ml_parts + (((group * c.splits + s) * c.H + arange(0, c.H)) * 2).col(); };
  Tile most = full({c.H, 1}, -INFINITY, f32), total = zeros({c.H, 1}, f32);
  for (auto s : range(0, c.splits)) most = max(most, load(ml(s)));
  most = where(most == -INFINITY, 0.f, most);
  for (auto s : range(0, c.splits)) total += load(ml(s) + 1) * exp2(load(ml(s)) - most);
  auto inverse = 1.f / where(total == 0.f, 1.f, total);
  for (auto d : range(0, c.C, c.merged)) {
    Tile sum = zeros({c.H, c.merged}, f32);
    for (auto s : range(0, c.splits)) {
      auto r = ((group * c.splits + s) * c.H + arange(0, c.H)).col();
      sum += load(acc_parts + (cast(r, i64) * c.C + (d + arange(0, c.merged)).row())) * exp2(load(ml(s)) - most);
    }
    out.store({b, h, d}, reshape(cast(sum * inverse, bf16), {1, c.H, c.merged}));
  }
  store(tickets + group, uint32_t(0));
}).grid([](const LatentCfg& c, const auto& q, const auto&...) { return Grid{c.splits, cdiv(q.shape[1], c.H), q.shape[0]}; });
Register r1("ticket_latents", [](Env& e) {
  LatentCfg c = e.big ? LatentCfg{.H = 64} : LatentCfg{8, 16, 64, 16, 3, 32};
  c.H = e.field("H", c.H), c.splits = e.field("splits", c.splits), c.page = e.field("page", c.page), c.merged = e.field("merged", c.merged);
  const int B = e.big ? 8 : 4, H = e.big ? 128 : 16, most = e.big ? 8192 : 100, width = c.C + c.R, most_pages = cdiv(most, c.page);
  const int all_pages = B * most_pages;
  auto ql = random<bfloat16>(e, size_t(B) * H * c.C), qr = random<bfloat16>(e, size_t(B) * H * c.R);
  auto cache = random<bfloat16>(e, size_t(all_pages) * c.page * width);
  auto pages = filled<int32_t>(e, all_pages, [&](size_t i) { return int32_t(i * 7 % all_pages); });
  auto lengths = filled<int32_t>(e, B, [&](size_t i) { return e.big ? most : int(i) * 33; });  // the first one is empty
  const int rows = B * H * c.splits;
  auto acc = constant<float>(e, size_t(rows) * c.C, NAN), ml = constant<float>(e, size_t(rows) * 2, NAN);
  auto tickets = constant<uint32_t>(e, B * H, 0);
  auto out = constant<bfloat16>(e, size_t(B) * H * c.C, NAN);
  Job j;
  j.gflop = 2e-9 * B * H * double(most) * (width + c.C);
  for (int twice = 0; twice < (e.big ? 1 : 2); ++twice)  // tickets are as they were behind a launch
    j.add(ticket_latents, c, ql.view(B, H, c.C), qr.view(B, H, c.R), cache.view(all_pages, c.page, width), pages.p, lengths.p, acc.p, ml.p,
          tickets.p, out.view(B, H, c.C), most_pages, .05f);
  j.check = [=] {
    std::vector<double> want;
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h) {
        const int n = lengths.h[b];
        auto key = [&](int i, int d) { return cache[(size_t(pages.h[b * most_pages + i / c.page]) * c.page + i % c.page) * width + d]; };
        std::vector<double> s(n), o(c.C, 0);
        double sum = 0;
        for (int i = 0; i < n; ++i) {
          for (int d = 0; d < width; ++d) s[i] += key(i, d) * (d < c.C ? ql[(b * H + h) * c.C + d] : qr[(b * H + h) * c.R + d - c.C]);
          s[i] = std::exp(s[i] * .05f), sum += s[i];
        }
        for (int i = 0; i < n; ++i)
          for (int d = 0; d < c.C; ++d) o[d] += s[i] / sum * key(i, d);
        want.insert(want.end(), o.begin(), o.end());
      }
    return agree(out.now(), want, 1e-2, 1e-2);
  };
  return j;
});

}  // namespace ticketed_latents
}  // namespace users
