// token_choices.cpp - what chooses, orders and checks tokens, as first written: rows sorted that are longer than a
// block, trees of drafts verified, tokens that skip a layer (mixture of depths), bags of embeddings going back, codes
// of 4 bits into pages of a cache.
#include "tests/users/use.h"
namespace users {
namespace token_choices {

// --- bitonic sort of rows of keys with their places, longer than a block: steps across blocks one launch each, those
// inside a block together
struct SortCfg {
  int BLOCK = 1024;
};
auto sort_inside =
    kernel("user_sort_inside", [](const SortCfg& c, Ptr<float> key, Ptr<int> place, I32 N, I32 first_k, I32 last_k) {
      // every k from first_k to last_k, distances below BLOCK only
      auto block = program_id(0), row = program_id(1);
      auto lane = arange(0, c.BLOCK);
      auto i = block * c.BLOCK + lane;
      auto at = cast(row, i64) * N + i;
      Tile x = load(key + at), p = load(place + at);
      Tile k = first_k;
      while_([&] { return k <= last_k; },
             [&] {
               Tile d = min(k / 2, c.BLOCK / 2);
               while_([&] { return d > 0; },
                      [&] {
                        auto ox = take(x, lane ^ d, 0), op = take(p, lane ^ d, 0);
                        auto up = (i & k) == 0, low = (lane & d) == 0;
                        auto larger = (x > ox) | ((x == ox) & (p > op));
                        auto swap = where(up == low, larger, ~larger);
                        x = where(swap, ox, x), p = where(swap, op, p);
                        d = d / 2;
                      });
               k = k * 2;
             });
      store(key + at, x);
      store(place + at, p);
    }).grid([](const SortCfg& c, float*, int*, int N, int, int) {
      return Grid{N / c.BLOCK, 1};
    });
auto sort_across =
    kernel("user_sort_across", [](const SortCfg& c, Ptr<float> key, Ptr<int> place, I32 N, I32 k, I32 d) {
      // pairs (i, i + d) of a row: pair number j is i = j / d * 2 d + j % d
      auto j = program_id(0) * c.BLOCK + arange(0, c.BLOCK);
      auto i = j / d * (2 * d) + j % d;
      auto at = cast(program_id(1), i64) * N + i;
      auto in = j < N / 2;
      auto a = load(key + at, {.mask = in}), b = load(key + at + d, {.mask = in});
      auto pa = load(place + at, {.mask = in}), pb = load(place + at + d, {.mask = in});
      auto larger = (a > b) | ((a == b) & (pa > pb));
      auto swap = where((i & k) == 0, larger, ~larger);
      store(key + at, where(swap, b, a), {.mask = in});
      store(key + at + d, where(swap, a, b), {.mask = in});
      store(place + at, where(swap, pb, pa), {.mask = in});
      store(place + at + d, where(swap, pa, pb), {.mask = in});
    }).grid([](const SortCfg& c, float*, int*, int N, int, int) {
      return Grid{cdiv(N / 2, c.BLOCK), 1};
    });
Register r1("sort_long", [](Env& e) {
  const int M = e.big ? 256 : 3, N = e.big ? 32768 : 512, BLOCK = e.big ? e.field("BLOCK", 2048) : 64;
  auto key = drawn<float>(e, size_t(M) * N, [&] { return float(int(e.uniform() * 300)); });
  auto place = filled<int>(e, size_t(M) * N, [&](size_t i) { return int(i % N); });
  Job j;
  j.inTurn = true;
  j.mbytes = 16e-6 * M * N;
  restore(e, j, key, place);
  auto on = [&](auto k, int programs) { return k.grid([=](const auto&...) { return Grid{programs, M}; }); };
  const SortCfg c{BLOCK};
  j.add(on(sort_inside, N / BLOCK), c, key.p, place.p, N, 2, BLOCK);
  for (int k = 2 * BLOCK; k <= N; k *= 2) {
    for (int d = k / 2; d >= BLOCK; d /= 2) j.add(on(sort_across, cdiv(N / 2, BLOCK)), c, key.p, place.p, N, k, d);
    j.add(on(sort_inside, N / BLOCK), c, key.p, place.p, N, k, k);
  }
  j.check = [=] {
    std::vector<double> want(size_t(M) * N), at(size_t(M) * N);
    for (int m = 0; m < M; ++m) {
      std::vector<std::pair<float, int>> r;
      for (int n = 0; n < N; ++n) r.push_back({key.h[size_t(m) * N + n], n});
      std::sort(r.begin(), r.end());
      for (int n = 0; n < N; ++n) want[size_t(m) * N + n] = r[n].first, at[size_t(m) * N + n] = r[n].second;
    }
    auto wrong = agree(key.now(), want, 1e-9, 0);
    return wrong.empty() ? agree(place.now(), at, .1, 0) : wrong;
  };
  return j;
});

// --- greedy verification of a tree of drafts: of the children of a node the one that the model itself says is next
// is accepted, until there is none; then the model's token. A program a sequence, children as first child, next sibling
auto tree_walk =
    kernel("user_tree_walk", [](const NoConfig&, Ptr<const int64_t> draft, Ptr<const int64_t> model,
                                Ptr<const int64_t> child, Ptr<const int64_t> sibling, Ptr<int64_t> accepted,
                                Ptr<int64_t> index, Ptr<int> count, I64 nodes, I64 depth) {
      auto b = cast(program_id(0), i64);
      auto base = b * nodes;
      Tile node = cast(0 * b, i64), n = zeros({}, i32);
      Tile walking = node == 0;
      store(index + b * depth, node);
      while_([&] { return walking; },
             [&] {
               auto want = load(model + base + node);
               store(accepted + b * depth + n, want);
               Tile next = load(child + base + node);
               Tile found = next < 0;  // at the end of the list or at the right one
               while_([&] { return ~found; },
                      [&] {
                        auto same = load(draft + base + next) == want;
                        next = where(same, next, load(sibling + base + next));
                        found = same | (next < 0);
                      });
               n += 1;
               walking = (next >= 0) & (cast(n, i64) < depth);
               if_(walking, [&] { store(index + b * depth + n, next); });
               node = where(next >= 0, next, node);
             });
      store(count + b, n);
    }).grid([](const NoConfig&, const auto&...) { return Grid{1}; });
Register r2("tree_walk", [](Env& e) {
  const int B = e.big ? 512 : 9, T = e.big ? 64 : 13, D = 8;
  std::vector<int64_t> parent(size_t(B) * T);
  auto draft = integers<int64_t>(e, size_t(B) * T, 0, 3), model = integers<int64_t>(e, size_t(B) * T, 0, 3);
  for (size_t i = 0; i < parent.size(); ++i) parent[i] = i % T ? int64_t(i % T - 1) / 3 : -1;
  auto of_tree = [&](int step) {  // children 3 n + 1 .. 3 n + 3
    return filled<int64_t>(e, size_t(B) * T, [&](size_t i) -> int64_t {
      const int64_t n = i % T, c = 3 * n + 1, s = n + 1;
      return step ? (n % 3 && s < T ? s : -1) : (c < T ? c : -1);
    });
  };
  auto child = of_tree(0), sibling = of_tree(1);
  auto accepted = constant<int64_t>(e, B * D, -1), index = constant<int64_t>(e, B * D, -1);
  auto count = constant<int>(e, B, -1);
  Job j;
  j.mbytes = 1e-6 * B * D * 40;
  j.add(tree_walk.grid([B](const auto&...) { return Grid{B}; }), {}, draft.p, model.p, child.p, sibling.p, accepted.p,
        index.p, count.p, T, D);
  j.check = [=] {
    std::vector<double> a(B * D, -1), at(B * D, -1), n(B);
    for (int b = 0; b < B; ++b)
      for (int node = 0, d = 0;;) {
        a[b * D + d] = model.at(b * T + node), at[b * D + d] = node;
        n[b] = ++d;
        int next = -1;
        for (int c = 3 * node + 3; c > 3 * node; --c)
          if (c < T && draft.at(b * T + c) == model.at(b * T + node)) next = c;
        if (next < 0 || d == D) break;
        node = next;
      }
    auto wrong = agree(accepted.now(), a, .1, 0);
    if (wrong.empty()) wrong = agree(index.now(), at, .1, 0);
    return wrong.empty() ? agree(count.now(), n, .1, 0) : wrong;
  };
  return j;
});

// --- mixture of depths: of every sequence the C tokens with the largest weights, in order of their places; their rows
// gathered, and added back weighted
struct DepthCfg {
  int S = 2048, BC = 256, ROWS = 16;
};
auto depth_choose =
    kernel("user_depth_choose", [](const DepthCfg& c, Tensor<const float, 2> weight, Tensor<int, 2> chosen, I32 keep) {
      auto b = program_id(0);
      auto w = reshape(weight.load({b, 0}, {1, c.S}, {.pad = -INFINITY}), {c.S});
      auto order = argsort(w, axis(0), {.descending = true});
      auto rank = arange(0, c.S);
      auto places = where(rank < keep, order, c.S);  // the others behind all
      auto sorted = sort(places, axis(0));
      auto p = chosen.ptr() + b * keep;
      store(p + rank, sorted, {.mask = rank < keep});
    }).grid([](const DepthCfg&, const auto& w, const auto&, int) { return Grid{w.shape[0]}; });
auto depth_gather =
    kernel("user_depth_gather", [](const DepthCfg& c, Ptr<const bfloat16> x, Ptr<const int> chosen, Ptr<bfloat16> y,
                                   I64 S, I64 C, I64 keep) {
      auto r = cast(program_id(1), i64) * c.ROWS + cast(arange(0, c.ROWS), i64);
      auto b = cast(program_id(2), i64);
      auto col = cast(program_id(0), i64) * c.BC + cast(arange(0, c.BC), i64);
      auto token = cast(load(chosen + b * keep + r, {.mask = r < keep, .other = 0}), i64);
      auto in = (r < keep).col() & (col < C).row();
      auto v = load(x + ((b * S + token).col() * C + col.row()), {.mask = in});
      store(y + ((b * keep + r).col() * C + col.row()), v, {.mask = in});
    }).grid([](const DepthCfg& c, const bfloat16*, const int*, bfloat16*, int64_t, int64_t C, int64_t k) {
      return Grid{cdiv(C, int64_t(c.BC)), cdiv(k, int64_t(c.ROWS)), 8};
    });
auto depth_add =
    kernel("user_depth_add", [](const DepthCfg& c, Tensor<bfloat16, 3> x, Tensor<const bfloat16, 3> y,
                                Tensor<const int, 2> chosen, Tensor<const float, 2> weight) {
      auto col = program_id(0) * c.BC, r = program_id(1) * c.ROWS, b = program_id(2);
      auto token = reshape(chosen.load({b, r}, {1, c.ROWS}, {.pad = -1}), {c.ROWS});
      auto rows = make_view<bfloat16>(x.ptr() + cast(b, i64) * x.stride(0), {x.dim(1), x.dim(2)}, {x.stride(1), 1});
      auto w = load(weight.ptr() + b * weight.dim(1) + token, {.mask = token >= 0});
      auto add = cast(squeeze(y.load({b, r, col}, {1, c.ROWS, c.BC}), 0), f32) * sigmoid(w).col();
      rows.scatter(token, col, cast(cast(rows.gather(token, col, c.BC), f32) + add, bf16));
    }).grid([](const DepthCfg& c, const auto& x, const auto& y, const auto&...) {
      return Grid{cdiv(x.shape[2], c.BC), cdiv(y.shape[1], c.ROWS), x.shape[0]};
    });
Register r3("depths", [](Env& e) {
  const int B = 8, S = e.big ? 2048 : 60, C = e.big ? 4096 : 72, K = e.big ? 256 : 11;
  const DepthCfg c{.S = e.big ? 2048 : 64, .BC = e.big ? e.field("BC", 256) : 64, .ROWS = 16};
  auto w = random<float>(e, size_t(B) * S);
  auto x = random<bfloat16>(e, size_t(B) * S * C);
  auto chosen = constant<int>(e, B * K, -1);
  auto y = constant<bfloat16>(e, size_t(B) * K * C, NAN);
  Job j;
  j.inTurn = true;
  j.mbytes = 10e-6 * B * K * C;
  restore(e, j, x);
  j.add(depth_choose, c, w.view(B, S), chosen.view(B, K), K);
  j.add(depth_gather, c, x.p, chosen.p, y.p, S, C, K);
  j.add(depth_add, c, x.view(B, S, C), y.view(B, K, C), chosen.view(B, K), w.view(B, S));
  j.check = [=] {
    std::vector<double> list, out(x.n);
    for (size_t i = 0; i < x.n; ++i) out[i] = x[i];
    for (int b = 0; b < B; ++b) {
      std::vector<int> o(S);
      for (int s = 0; s < S; ++s) o[s] = s;
      std::stable_sort(o.begin(), o.end(), [&](int p, int q) { return w[b * S + p] > w[b * S + q]; });
      std::sort(o.begin(), o.begin() + K);
      for (int k = 0; k < K; ++k) {
        list.push_back(o[k]);
        for (int i = 0; i < C; ++i) out[(size_t(b) * S + o[k]) * C + i] *= 1 + 1 / (1 + std::exp(-w[b * S + o[k]]));
      }
    }
    auto wrong = agree(chosen.now(), list, .1, 0);
    return wrong.empty() ? agree(x.now(), out, 1e-3, 1e-2) : wrong;
  };
  return j;
});

// --- bags of embeddings (mean, weights of samples) going back: a program a bag walks its list and adds to the table's
// gradient; and the gradients of the samples' weights
struct BagCfg {
  int D = 128;
};
auto bag_grad = kernel("user_bag_grad", [](const BagCfg& c, Ptr<const float> dout, Ptr<const float> table,
                                           Ptr<const int64_t> ids, Ptr<const int64_t> offsets, Ptr<const float> weight,
                                           Ptr<float> dtable, Ptr<float> dweight, I64 D, I64 padding) {
                  auto bag = program_id(0);
                  auto lo = load(offsets + bag), hi = load(offsets + bag + 1);
                  auto d = cast(arange(0, c.D), i64);
                  auto in = d < D;
                  auto g = load(dout + cast(bag, i64) * D + d, {.mask = in, .other = 0});
                  auto share = 1.f / cast(max(hi - lo, 1), f32);
                  for (auto i : range(lo, hi)) {
                    auto id = load(ids + i);
                    for (auto _ : when(id != padding)) {
                      auto w = load(weight + i);
                      atomic_add(dtable + id * D + d, g * (w * share), {.mask = in});
                      store(dweight + i, sum(g * load(table + id * D + d, {.mask = in, .other = 0})) * share);
                    }
                  }
                }).grid([](const BagCfg&, const auto&...) { return Grid{1}; });
Register r4("bag_grad", [](Env& e) {
  const int bags = e.big ? 32768 : 13, D = e.big ? 128 : 20, V = e.big ? 1000000 : 9, most = e.big ? 40 : 7;
  std::vector<int64_t> first{0};
  for (int b = 0; b < bags; ++b) first.push_back(first.back() + (b * 2654435761u >> 8) % most);
  const size_t n = first.back();
  auto offsets = filled<int64_t>(e, bags + 1, [&](size_t i) { return first[i]; });
  auto ids = integers<int64_t>(e, n, 0, V);
  auto g = random<float>(e, size_t(bags) * D), t = random<float>(e, size_t(V) * D), w = random<float>(e, n);
  auto dt = constant<float>(e, size_t(V) * D, 0), dw = constant<float>(e, n, 0);
  Job j;
  j.mbytes = 12e-6 * double(n) * D;
  restore(e, j, dt);
  j.add(bag_grad.grid([bags](const auto&...) { return Grid{bags}; }), BagCfg{e.big ? 128 : 32}, g.p, t.p, ids.p,
        offsets.p, w.p, dt.p, dw.p, D, 3);
  j.check = [=] {
    std::vector<double> want(size_t(V) * D), share(n);
    for (int b = 0; b < bags; ++b)
      for (int64_t i = first[b]; i < first[b + 1]; ++i)
        for (int d = 0; d < D && ids.at(i) != 3; ++d) {
          const double x = g[size_t(b) * D + d] / double(first[b + 1] - first[b]);
          want[ids.at(i) * D + d] += x * w[i];
          share[i] += x * t[ids.at(i) * D + d];
        }
    auto wrong = agree(dt.now(), want, 1e-5, 1e-4);
    return wrong.empty() ? agree(dw.now(), share, 1e-5, 1e-4) : wrong;
  };
  return j;
});

// --- new keys into a paged cache as codes of 4 bits: smallest and step per group of 32 channels, channel d and d + D/2
// in one byte; pages of 16 tokens
struct PageCfg {
  int D = 128, G = 32, TOKENS = 8, PAGE = 16;
};
auto keys_to_pages =
    kernel("user_keys_to_pages", [](const PageCfg& c, Ptr<const half> k, Ptr<const int64_t> slot, Ptr<uint8_t> codes,
                                    Ptr<half> factors, I32 tokens, I32 heads, I32 stride) {
      // codes [pages, heads, PAGE, D / 2], factors [pages, heads, PAGE, D / G, 2]
      auto t = program_id(0) * c.TOKENS + arange(0, c.TOKENS);
      auto h = program_id(1);
      auto s = load(slot + t, {.mask = t < tokens, .other = -1});
      auto in = s >= 0;  // padding tokens have no slot
      auto d = arange(0, c.D);
      auto x = cast(load(k + (t.col() * stride + h * c.D + d.row()), {.mask = in.col()}), f32);
      auto groups = reshape(x, {c.TOKENS, c.D / c.G, c.G});
      auto low = min(groups, axis(2)), step = (max(groups, axis(2)) - low) / 15.f;
      auto safe = where(step == 0.f, 1.f, step);
      auto q = clamp(rint((groups - low) / safe), 0.f, 15.f);
      auto byte = cast(reshape(q, {c.TOKENS, 2, c.D / 2}), u8);
      auto lo = squeeze(extract(byte, {0, 0, 0}, {c.TOKENS, 1, c.D / 2}), 1);
      auto hi = squeeze(extract(byte, {0, 1, 0}, {c.TOKENS, 1, c.D / 2}), 1);
      auto row = (s / c.PAGE * heads + h) * c.PAGE + s % c.PAGE;
      store(codes + row.col() * (c.D / 2) + arange(0, c.D / 2).row(), lo | (hi << 4), {.mask = in.col()});
      auto f = row.col() * (c.D / c.G * 2) + arange(0, c.D / c.G).row() * 2;
      store(factors + f, cast(squeeze(low, 2), f16), {.mask = in.col()});
      store(factors + f + 1, cast(squeeze(step, 2), f16), {.mask = in.col()});
    }).grid([](const PageCfg& c, const half*, const int64_t*, uint8_t*, half*, int tokens, int heads, int) {
      return Grid{cdiv(tokens, c.TOKENS), heads};
    });
Register r5("keys4_pages", [](Env& e) {
  const int T = e.big ? 32768 : 21, H = e.big ? 8 : 3, D = e.big ? 128 : 64, pages = e.big ? 4096 : 4;
  auto k = random<half>(e, size_t(T) * H * D);
  auto slot =
      filled<int64_t>(e, T, [&](size_t i) { return i % 7 == 6 ? -1 : int64_t(i * 5 % (T * 3)) % (pages * 16); });
  auto codes = constant<uint8_t>(e, size_t(pages) * H * 16 * D / 2, 0);
  auto f = constant<half>(e, size_t(pages) * H * 16 * (D / 32) * 2, 0);
  Job j;
  j.mbytes = 2.6e-6 * T * H * D;
  j.add(keys_to_pages, PageCfg{.D = D, .TOKENS = e.field("TOKENS", 8)}, k.p, slot.p, codes.p, f.p, T, H, H * D);
  j.check = [=] {
    std::vector<double> want(f.n);
    const auto got = codes.now();
    std::string wrong;
    for (int t = 0; t < T; ++t)
      for (int h = 0; h < H && slot.at(t) >= 0; ++h) {
        const size_t row = (size_t(slot.at(t) / 16) * H + h) * 16 + slot.at(t) % 16;
        for (int g = 0; g < D / 32; ++g) {
          double low = 1e9, high = -1e9;
          for (int i = 0; i < 32; ++i) {
            const double x = k[(size_t(t) * H + h) * D + g * 32 + i];
            low = std::min(low, x), high = std::max(high, x);
          }
          const double step = (high - low) / 15;
          want[(row * (D / 32) + g) * 2] = low, want[(row * (D / 32) + g) * 2 + 1] = step;
          for (int i = g * 32; i < g * 32 + 32; ++i) {
            const int code = got[row * D / 2 + i % (D / 2)] >> (i < D / 2 ? 0 : 4) & 15;
            if (std::abs(low + code * step - k[(size_t(t) * H + h) * D + i]) > step * .51) wrong = "a code is off";
          }
        }
      }
    return wrong.empty() ? agree(f.now(), want, 1e-3, 1e-3) : wrong;
  };
  return j;
});

}  // namespace token_choices
}  // namespace users
