// tile_schedules.cpp - products whose programs choose their tiles by hand: one flat loop over all blocks of all tiles,
// shares of the last wave that neighbours put together, parts of a sum that whoever comes last adds.
#include "tests/users/use.h"
namespace users {
namespace tile_schedules {

// --- one loop over the blocks of all tiles of a program; a tile begins and ends where the counter of blocks does
struct FlatCfg {
  int BM = 128, BN = 128, BK = 64, G = 8, stages = 0;
};
struct Place {
  Tile m, n;
};
Place place_of(const FlatCfg& c, const Expr& tile, const Expr& rows, const Expr& columns) {
  auto in_group = c.G * columns;
  auto first = tile / in_group * c.G;
  auto high = min(rows - first, c.G);
  return {(first + tile % high) * c.BM, tile % in_group / high * c.BN};
}
auto flat_persistent = kernel("user_flat_persistent", [](const FlatCfg& c, Ptr<const bfloat16> a, Ptr<const bfloat16> b,
                                                         Ptr<bfloat16> y, I32 M, I32 N, I32 K, I32 am, I32 bn, I32 ym) {
  auto start = program_id(0), programs = num_programs(0);
  auto rows = cdiv(M, c.BM), columns = cdiv(N, c.BN), blocks = cdiv(K, c.BK), tiles = rows * columns;
  Tile mine = tiles / programs;
  if_(start < tiles % programs, [&] { mine += 1; });
  Tile tile = start - programs, block = program_id(0) * 0 - 1;
  Tile m = arange(0, c.BM), n = arange(0, c.BN), left = block * 0, top = block * 0;
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto step : range(0, blocks * mine, {.stages = c.stages})) {
    block = where(block == blocks - 1, 0, block + 1);
    if_(block == 0, [&] {
      tile += programs;
      auto at = place_of(c, tile, rows, columns);
      top = at.m, left = at.n;
      m = top + arange(0, c.BM), n = left + arange(0, c.BN);
      m = where(m < M, m, 0), n = where(n < N, n, 0);
    });
    auto k = block * c.BK + arange(0, c.BK);
    auto x = load(a + (m.col() * am + k.row()), {.mask = k.row() < K, .other = 0});
    auto w = load(b + (n.row() * bn + k.col()), {.mask = k.col() < K, .other = 0});
    acc = dot(x, w, acc);
    if_(block == blocks - 1, [&] {
      auto row = top + arange(0, c.BM), column = left + arange(0, c.BN);
      store(y + (row.col() * ym + column.row()), cast(acc, bf16), {.mask = (row.col() < M) & (column.row() < N)});
      acc = zeros({c.BM, c.BN}, f32);
    });
  }
});
Register r1("flat_persistent", [](Env& e) {
  FlatCfg c = e.big ? FlatCfg{128, 128, 64, 8, 3} : FlatCfg{64, 32, 32, 2, 0};
  c = {e.field("BM", c.BM), e.field("BN", c.BN), e.field("BK", c.BK), e.field("G", c.G), e.field("stages", c.stages)};
  const int M = e.big ? 4096 : 200, N = e.big ? 4096 : 104, K = e.big ? 4096 : 88, programs = e.big ? 132 : 5;
  auto a = random<bfloat16>(e, size_t(M) * K), b = random<bfloat16>(e, size_t(N) * K);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(flat_persistent.grid([=](const auto&...) { return Grid{programs}; }), c, a.p, b.p, y.p, M, N, K, K, K, N);
  j.check = [=] {
    return agree(y.now(), product(M, N, K, matrix(a, K), [&](int k, int n) { return b[n * K + k]; }), 3e-2, 1e-2);
  };
  return j;
});

// --- the same loop over views
auto flat_views = kernel("user_flat_views", [](const FlatCfg& c, Tensor<const bfloat16, 2> A, Tensor<const bfloat16, 2> B, Tensor<bfloat16, 2> Y) {
  auto rows = cdiv(Y.dim(0), c.BM), columns = cdiv(Y.dim(1), c.BN), blocks = cdiv(A.dim(1), c.BK), programs = num_programs(0);
  auto mine = cdiv(rows * columns - program_id(0), programs);
  Tile tile = program_id(0) - programs, block = blocks - 1, m = blocks * 0, n = blocks * 0;
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto step : range(0, blocks * mine, {.stages = c.stages})) {
    block = where(block == blocks - 1, 0, block + 1);
    if_(block == 0, [&] {
      tile += programs;
      auto at = place_of(c, tile, rows, columns);
      m = at.m, n = at.n;
    });
    acc = dot(A.load({m, block * c.BK}, {c.BM, c.BK}), trans(B.load({n, block * c.BK}, {c.BN, c.BK})), acc);
    if_(block == blocks - 1, [&] {
      Y.store({m, n}, cast(acc, bf16));
      acc = zeros_like(acc);
    });
  }
});
Register r4("flat_views", [](Env& e) {
  FlatCfg c = e.big ? FlatCfg{128, 128, 64, 8, 3} : FlatCfg{64, 32, 32, 2, 0};
  c = {e.field("BM", c.BM), e.field("BN", c.BN), e.field("BK", c.BK), e.field("G", c.G), e.field("stages", c.stages)};
  const int M = e.big ? 4096 : 200, N = e.big ? 4096 : 104, K = e.big ? 4096 : 88, programs = e.big ? 132 : 5;
  auto a = random<bfloat16>(e, size_t(M) * K), b = random<bfloat16>(e, size_t(N) * K);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(flat_views.grid([=](const auto&...) { return Grid{programs}; }), c, a.view(M, K), b.view(N, K), y.view(M, N));
  j.check = [=] {
    return agree(y.now(), product(M, N, K, matrix(a, K), [&](int k, int n) { return b[n * K + k]; }), 3e-2, 1e-2);
  };
  return j;
});

// --- stream K with two phases: whole waves tile by tile; of the tiles of the last wave every program computes an equal
// share of blocks, and whoever has the last block of a tile adds what programs before left in a table
struct ShareCfg {
  int BM = 128, BN = 128, BK = 64, stages = 3, warps = 8;
};
template <class A, class B>
Tile sum_of_blocks(const ShareCfg& c, const A& a, const B& b, const Expr& m, const Expr& n, const Expr& from, const Expr& to) {
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto k : range(from, to, {.stages = c.stages}))
    acc = dot(a.load({m, k * c.BK}, {c.BM, c.BK}), trans(b.load({n, k * c.BK}, {c.BN, c.BK})), acc);
  return acc;
}
auto shared_wave = kernel("user_shared_wave", [](const ShareCfg& c, Tensor<const half, 2> A, Tensor<const half, 2> B, Tensor<half, 2> C,
                                                 Tensor<float, 3> parts, Ptr<int32_t> ready) {
  num_warps(c.warps);
  auto me = program_id(0), programs = num_programs(0);
  auto across = cdiv(C.dim(1), c.BN), tiles = across * cdiv(C.dim(0), c.BM), blocks = cdiv(A.dim(1), c.BK);
  auto whole = tiles / programs * programs;
  for (auto t : range(me, whole, programs)) {
    auto m = t / across * c.BM, n = t % across * c.BN;
    C.store({m, n}, cast(sum_of_blocks(c, A, B, m, n, 0, blocks), f16));
  }
  auto rest = (tiles - whole) * blocks, share = rest / programs, more = rest % programs;
  auto start_of = [&](const Expr& p) { return p * share + min(p, more); };
  Tile at = start_of(me);
  auto end = start_of(me + 1);
  while_([&] { return at < end; }, [&] {
    auto t = whole + at / blocks, first = at % blocks, last = min(blocks, first + (end - at));
    auto m = t / across * c.BM, n = t % across * c.BN;
    Tile acc = sum_of_blocks(c, A, B, m, n, first, last);
    if_(last < blocks, [&] {
      parts.store({me, 0, 0}, acc);
      atomic_exchange(ready + me, 1, {.order = Order::release});
    }, [&] {
      Tile before = me, begin = at;  // of the program before, and of what has been added so far
      while_([&] { return begin > (t - whole) * blocks; }, [&] {
        before -= 1;
        while_([&] { return atomic_cas(ready + before, 1, 0, {.order = Order::acquire}) != 1; }, [&] {});
        acc += parts.load({before, 0, 0}, {c.BM, c.BN});
        begin = start_of(before);
      });
      C.store({m, n}, cast(acc, f16));
    });
    at += last - first;
  });
});
Register r2("shared_wave", [](Env& e) {
  ShareCfg c = e.big ? ShareCfg{} : ShareCfg{32, 32, 32, 2, 4};
  c = {e.field("BM", c.BM), e.field("BN", c.BN), c.BK, e.field("stages", c.stages), e.field("warps", c.warps)};
  const int M = e.big ? 2048 : e.field("M", 100), N = e.big ? 2304 : 70, K = e.big ? 8192 : 200, programs = e.big ? 132 : 5;
  auto a = random<half>(e, size_t(M) * K), b = random<half>(e, size_t(N) * K);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  auto parts = constant<float>(e, size_t(programs) * c.BM * c.BN, NAN);
  auto ready = constant<int32_t>(e, programs, 0);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(shared_wave.grid([=](const auto&...) { return Grid{programs}; }), c, a.view(M, K), b.view(N, K), y.view(M, N),
        parts.view(programs, c.BM, c.BN), ready.p);
  j.check = [=] {
    for (int r : ready.now())
      if (r) return std::string("a part was left over");
    return agree(y.now(), product(M, N, K, matrix(a, K), [&](int k, int n) { return b[n * K + k]; }), 2e-2, 2e-3);
  };
  return j;
});

// --- few tokens in 8 bits: every part of K leaves whole numbers in a table, and the last of a tile's programs adds all
auto last_adds = kernel("user_last_adds", [](const ShareCfg& c, Ptr<const int8_t> x, Ptr<const int8_t> w, Ptr<const float> sx,
                                             Ptr<const float> sw, Ptr<int32_t> parts, Ptr<int32_t> counts, Ptr<bfloat16> y,
                                             I32 M, I32 N, I32 K, I64 ldw) {
  auto tile = program_id(0), part = program_id(1), count = num_programs(1);
  auto m = arange(0, c.BM), n = tile * c.BN + arange(0, c.BN);
  auto per = cdiv(cdiv(K, c.BK), count) * c.BK;
  Tile acc = zeros({c.BM, c.BN}, i32);
  for (auto i : range(part * per, min(K, (part + 1) * per), c.BK)) {
    auto k = i + arange(0, c.BK);
    auto a = load(x + (m.col() * K + k.row()), {.mask = (m < M).col() & (k < K).row()});
    auto b = load(w + (cast(n, i64).row() * ldw + k.col()), {.mask = (n < N).row() & (k < K).col()});
    acc = dot(a, b, acc);
  }
  auto in = (m < M).col() & (n < N).row();
  auto at = m.col() * N + n.row();
  store(parts + part * (M * N) + at, acc, {.mask = in});
  auto drawn = atomic_add(counts + tile, 1);
  return_if(drawn != count - 1);
  Tile sum = zeros({c.BM, c.BN}, i32);
  for (auto s : range(0, count)) sum += load(parts + s * (M * N) + at, {.mask = in, .cache = Cache::volatile_});
  auto scale = load(sx + m, {.mask = m < M}).col() * load(sw + n, {.mask = n < N}).row();
  store(y + at, cast(cast(sum, f32) * scale, bf16), {.mask = in});
  store(counts + tile, 0);
}).grid([](const ShareCfg& c, auto, auto, auto, auto, auto, auto, auto, int, int N, int, int64_t) {
  return Grid{cdiv(N, c.BN), c.stages};
});
Register r3("last_adds", [](Env& e) {
  const ShareCfg c = e.big ? ShareCfg{.BM = 16, .BN = 64, .BK = 256, .stages = 4} : ShareCfg{.BM = 16, .BN = 32, .BK = 64, .stages = 3};
  const int M = e.big ? 16 : 7, N = e.big ? 8192 : 70, K = e.big ? 8192 : 336, ldw = K + (e.big ? 0 : 16);
  auto x = integers<int8_t>(e, size_t(M) * K, -127, 128), w = integers<int8_t>(e, size_t(N) * ldw, -127, 128);
  auto sx = random<float>(e, M, 1e-3, 2e-3), sw = random<float>(e, N, 1e-3, 2e-3);
  auto parts = constant<int32_t>(e, size_t(c.stages) * M * N, 0), counts = constant<int32_t>(e, cdiv(N, c.BN), 0);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.mbytes = 1e-6 * N * K;
  j.add(last_adds, c, x.p, w.p, sx.p, sw.p, parts.p, counts.p, y.p, M, N, K, int64_t(ldw));
  j.add(last_adds, c, x.p, w.p, sx.p, sw.p, parts.p, counts.p, y.p, M, N, K, int64_t(ldw));  // counts are as they were
  j.check = [=] {
    return agree(y.now(), product(M, N, K, matrix(x, K), [&](int k, int n) { return w[size_t(n) * ldw + k]; },
                                  [&](double s, int m, int n) { return s * sx[m] * sw[n]; }), 1e-3, 1e-2);
  };
  return j;
});

}  // namespace tile_schedules
}  // namespace users
