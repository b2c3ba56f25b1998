// legal_oddities.cpp - legal forms that few would choose: products in a loop that ends when they have converged,
// products made of products of an inner loop whose length comes from memory, shapes taken apart and put together again,
// ways out of nested loops with stores in them, a queue of products of all sizes, five strides.
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace legal_oddities {

// --- squarings of a stochastic matrix until its rows agree: while_ around a product, a branch and stores inside
struct Until {
  int N = 32;
};
auto steady = kernel("user_steady", [](const Until& c, Tensor<const half, 3> p, Tensor<float, 2> y, Ptr<int32_t> steps,
                                       F32 close) {
                auto b = program_id(0);
                Tile x = p.load({b, 0, 0}, {c.N, c.N});
                Tile apart = full({}, 1.f, f32), count = zeros({}, i32);
                while_([&] { return (apart > close) & (count < 12); },
                       [&] {
                         Tile square = dot(x, x);
                         square /= sum(square, axis(1));
                         apart = max(max(square, axis(0)) - min(square, axis(0)));
                         x = cast(square, f16);
                         count += 1;
                         if_(count == 1, [&] { y.store({b, c.N}, reshape(max(square, axis(0)), {c.N})); });
                       });
                y.store({b, 0}, reshape(sum(cast(x, f32), axis(0)) * (1.f / c.N), {c.N}));
                store(steps + b, count);
              }).grid([](const Until&, const auto& p, const auto&, int32_t*, float) { return Grid{p.shape[0]}; });
Register q1("steady", [](Env& e) {
  const int B = e.big ? 16384 : 5, N = 32;
  auto p = filled<half>(e, size_t(B) * N * N, [&](size_t i) {  // cycles with more or less of a jump
    const size_t r = i / N % N, col = i % N, b = i / (N * N);
    return half(float((col == (r + 1) % N) * (0.9 - 0.17 * double(b % 5)) + (0.1 + 0.17 * double(b % 5)) / N));
  });
  auto y = constant<float>(e, size_t(B) * 2 * N, 9);
  auto steps = constant<int32_t>(e, B, 9);
  Job j;
  j.add(steady, Until{N}, p.view(B, N, N), y.view(B, 2 * N), steps.p, 1e-3f);
  j.check = [=]() -> std::string {
    std::vector<double> want, counts;
    for (int b = 0; b < B; ++b) {
      std::vector<double> x(N * N);
      for (int i = 0; i < N * N; ++i) x[i] = p[size_t(b) * N * N + i];
      double apart = 1;
      int count = 0;
      std::vector<double> first(N);
      while (apart > 1e-3 && count < 12) {
        auto s = product(
            N, N, N, [&](int m, int k) { return x[m * N + k]; }, [&](int k, int n) { return x[k * N + n]; });
        apart = 0;
        for (int r = 0; r < N; ++r) {
          const double total = std::accumulate(&s[r * N], &s[r * N] + N, 0.);
          for (int n = 0; n < N; ++n) s[r * N + n] /= total;
        }
        for (int n = 0; n < N; ++n) {
          double low = 1, high = 0;
          for (int r = 0; r < N; ++r) low = std::min(low, s[r * N + n]), high = std::max(high, s[r * N + n]);
          apart = std::max(apart, high - low);
          if (count == 0) first[n] = high;
        }
        for (int i = 0; i < N * N; ++i) x[i] = in_half(s[i]);
        ++count;
      }
      counts.push_back(count);
      for (int n = 0; n < N; ++n) {
        double total = 0;
        for (int r = 0; r < N; ++r) total += x[r * N + n];
        want.push_back(total / N);
      }
      want.insert(want.end(), first.begin(), first.end());
    }
    if (auto s = agree(steps.now(), counts, 0.1, 0); !s.empty()) return "steps: " + s;
    return agree(y.now(), want, 1e-4, 2e-3);
  };
  return j;
});

// --- products of products: for every block of a row, sums over its own list make the operand of the outer product; the
// lists' lengths come from memory, empty ones are left out, a negative one ends the row
struct Nested {
  int M = 64, K = 32, D = 64;
};
auto nested_dots =
    kernel("user_nested_dots", [](const Nested& c, Tensor<const half, 2> q, Tensor<const half, 2> k,
                                  Tensor<const half, 2> v, Ptr<const int32_t> length, Tensor<float, 2> y, I32 blocks) {
      auto m = program_id(0);
      Tile acc = zeros({c.M, c.D}, f32);
      for (auto b : range(0, blocks)) {
        Tile n = load(length + (m * blocks + b));
        break_if(n < 0);
        continue_if(n == 0);
        Tile s = zeros({c.M, c.K}, f32);
        for (auto d : range(0, n * 16, 16))
          s = dot(q.load({m * c.M, d}, {c.M, 16}), trans(k.load({b * c.K, d}, {c.K, 16})), s);
        acc = dot(cast(max(s, 0.f), f16), v.load({b * c.K, 0}, {c.K, c.D}), acc);
      }
      y.store({m * c.M, 0}, acc);
    }).grid([](const Nested& c, const auto& q, const auto&, const auto&, const int32_t*, const auto&, int) {
      return Grid{cdiv(int(q.shape[0]), c.M)};
    });
Register q2("nested_dots", [](Env& e) {
  const int M = e.big ? 16384 : 140, B = e.big ? 64 : 4, D = e.big ? 128 : 64, P = cdiv(M, 64);
  auto q = random<half>(e, size_t(M) * D), k = random<half>(e, size_t(B) * 32 * D),
       v = random<half>(e, size_t(B) * 32 * 64);
  auto n = filled<int32_t>(
      e, P * B, [&](size_t i) { return e.big ? D / 16 : std::array{3, 0, 4, 1, 2, -1, 4, 4, 0, 0, 1, 0}[i % 12]; });
  auto y = constant<float>(e, size_t(M) * 64, 9);
  Job j;
  j.add(nested_dots, Nested{}, q.view(M, D), k.view(B * 32, D), v.view(B * 32, 64), n.p, y.view(M, 64), B);
  j.gflop = 2e-9 * M * B * 32 * (D + 64);
  j.check = [=] {
    std::vector<double> want(M * 64);
    for (int m = 0; m < M; ++m)
      for (int b = 0; b < B; ++b) {
        const int steps = n.h[m / 64 * B + b];
        if (steps < 0) break;
        for (int r = 0; r < 32; ++r) {
          double s = 0;
          for (int d = 0; d < steps * 16; ++d) s += q[m * D + d] * k[(b * 32 + r) * D + d];
          s = in_half(std::max(s, 0.));
          for (int d = 0; d < 64; ++d) want[m * 64 + d] += s * v[(b * 32 + r) * 64 + d];
        }
      }
    return agree(y.now(), want, 2e-2, 2e-3);
  };
  return j;
});

// --- rows of pairs in another order: wavelets (join, split, interleave), bits of the place reversed by permuted dims,
// halves exchanged (extract, cat), every eighth turned around
struct Shuffled {
  int R = 4;
};
auto shuffled =
    kernel("user_shuffled", [](const Shuffled& c, Tensor<const int16_t, 2> x, Tensor<int16_t, 2> y,
                               Tensor<int32_t, 2> z) {
      auto r = program_id(0) * c.R;
      Tile a = x.load({r, 0}, {c.R, 256});
      auto [even, odd] = split(reshape(a, {c.R, 128, 2}));
      Tile low = (even + odd) >> 1, high = even - odd;
      Tile turned = permute(reshape(low, {c.R, 2, 2, 2, 16}), {0, 3, 2, 1, 4});
      low = reshape(turned, {c.R, 128});
      Tile folded = cat(extract(high, {0, 64}, {c.R, 64}), flip(extract(high, {0, 0}, {c.R, 64}), axis(1)), 1);
      y.store({r, 0}, interleave(low, folded));
      Tile both = reshape(join(low, folded), {c.R * 8, 32});
      z.store({program_id(0) * 32, r / c.R}, trans(cast(reshape(sum(cast(both, i32), axis(1)), {c.R, 8}), i32)));
    }).grid([](const Shuffled& c, const auto& x, const auto&, const auto&) {
      return Grid{cdiv(int(x.shape[0]), c.R)};
    });
Register q3("shuffled", [](Env& e) {
  const int R = e.big ? 1 << 17 : 11, P = cdiv(R, 4);
  auto x = integers<int16_t>(e, size_t(R) * 256, -3000, 3000);
  auto y = constant<int16_t>(e, size_t(R) * 256, 1);
  auto z = constant<int32_t>(e, e.big ? 1 : size_t(P) * 32 * (P + 4), 1);
  Job j;
  j.add(shuffled, Shuffled{}, x.view(R, 256), y.view(R, 256), z.view(e.big ? 1 : P * 32, e.big ? 1 : P + 4));
  j.mbytes = double(R) * 1024e-6;
  j.check = [=]() -> std::string {
    std::vector<double> wy(R * 256), wz(size_t(P) * 32 * (P + 4), 1);
    std::vector<int> sums(P * 32);
    for (int r = 0; r < R; ++r) {
      int low[128], high[128];
      for (int i = 0; i < 128; ++i) {
        const int a = x.h[r * 256 + 2 * i], b = x.h[r * 256 + 2 * i + 1];
        low[i] = int16_t(a + b) >> 1, high[i] = int16_t(a - b);
      }
      for (int i = 0; i < 128; ++i) {
        const int from = (i >> 4 & 1) << 6 | (i >> 5 & 1) << 5 | (i >> 6 & 1) << 4 | (i & 15);
        wy[r * 256 + 2 * i] = low[from], wy[r * 256 + 2 * i + 1] = i < 64 ? high[64 + i] : high[127 - i];
      }
      for (int i = 0; i < 256; ++i) sums[r * 8 + i / 32] += int(wy[r * 256 + i]);
    }
    for (int p = 0; p < P; ++p)
      for (int k = 0; k < 8; ++k)
        for (int s = 0; s < 4; ++s) wz[size_t(p * 32 + k) * (P + 4) + p + s] = sums[(p * 4 + s) * 8 + k];
    if (auto s = agree(y.now(), wy, 0.1, 0); !s.empty()) return "y: " + s;
    return agree(z.now(), wz, 0.1, 0);
  };
  return j;
});

// --- ways out: programs that end, rows that are skipped, columns left at the first stop sign, stores before and behind
struct Ways {
  int B = 32;
};
auto ways_out =
    kernel("user_ways_out", [](const Ways& c, Tensor<const int32_t, 3> x, Tensor<int32_t, 2> y, Ptr<int32_t> log,
                               I32 stop) {
      auto b = program_id(0);
      return_if(x.load({b, 0, 0}) == -2);
      Tile seen = zeros({}, i32);
      for (auto r : range(0, x.dim(1))) {
        Tile first = x.load({b, r, 0});
        continue_if(first < 0);
        Tile total = zeros({c.B}, i32);
        for (auto k : range(0, x.dim(2), c.B)) {
          Tile v = x.load({b, r, k}, {c.B});
          if_(
              any(v > stop),
              [&] {
                if_(
                    first % 2 == 0, [&] { store(log + b, r * 1000 + k); }, [&] { atomic_max(log + b, k - 1000); });
                total += where(v > stop, 1, 0);
              },
              [&] { total += v; });
          break_if(any(v == stop));
          seen += 1;
        }
        y.store({b * x.dim(1) + r, 0}, total);
      }
      store(log + (num_programs(0) + b), seen);
    }).grid([](const Ways&, const auto& x, const auto&, int32_t*, int) { return Grid{x.shape[0]}; });
Register q4("ways_out", [](Env& e) {
  const int B = e.big ? 65536 : 7, R = e.big ? 16 : 5, C = e.big ? 512 : 75, stop = 96;
  auto x = filled<int32_t>(e, size_t(B) * R * C, [&](size_t i) {
    if (i % (size_t(R) * C) == 0 && i / (size_t(R) * C) % 5 == 3) return -2;
    if (i % C == 0 && i / C % 4 == 2) return -1;
    return int(e.uniform() * 98);
  });
  auto y = constant<int32_t>(e, size_t(B) * R * 32, -5), log = constant<int32_t>(e, 2 * B, -7);
  Job j;
  restore(e, j, log);
  j.add(ways_out, Ways{}, x.view(B, R, C), y.view(B * R, 32), log.p, stop);
  j.check = [=]() -> std::string {
    std::vector<double> wy(B * R * 32, -5), wl(2 * B, -7);
    for (int b = 0; b < B; ++b) {
      auto at = [&](int r, int k) { return k < C ? x.h[(b * R + r) * C + k] : 0; };
      if (at(0, 0) == -2) continue;
      int seen = 0;
      for (int r = 0; r < R; ++r) {
        if (at(r, 0) < 0) continue;
        for (int i = 0; i < 32; ++i) wy[(b * R + r) * 32 + i] = 0;
        for (int k = 0; k < C; k += 32) {
          bool over = false, on = false;
          for (int i = 0; i < 32; ++i) over |= at(r, k + i) > stop, on |= at(r, k + i) == stop;
          if (over) wl[b] = at(r, 0) % 2 == 0 ? r * 1000 + k : std::max(int(wl[b]), k - 1000);
          for (int i = 0; i < 32; ++i) wy[(b * R + r) * 32 + i] += over ? at(r, k + i) > stop : at(r, k + i);
          if (on) break;
          ++seen;
        }
      }
      wl[B + b] = seen;
    }
    if (auto s = agree(y.now(), wy, 0.1, 0); !s.empty()) return "y: " + s;
    return agree(log.now(), wl, 0.1, 0);
  };
  return j;
});

// --- a queue of products of all sizes, drawn one by one by programs that stay: shapes and places from a table
struct Queue {
  int M = 64, N = 64, K = 32;
};
auto queue_walk =
    kernel("user_queue_walk", [](const Queue& c, Ptr<const bfloat16> pool, Ptr<const int64_t> items, Ptr<float> out,
                                 Ptr<int32_t> next, I32 count, I32 programs) {
      Tile item = atomic_add(next, 1);
      while_([&] { return item < count; },
             [&] {
               auto field = [&](int k) { return load(items + (item * 8 + k)); };
               Tile M = field(0), N = field(1), K = field(2), i = cast(field(3), i32) * c.M,
                    n = cast(field(4), i32) * c.N;
               auto A = make_view<const bfloat16>(pool + multiple_of(field(5), 8), {M, K}, {multiple_of(K, 8), 1});
               auto B = make_view<const bfloat16>(pool + multiple_of(field(6), 8), {K, N}, {multiple_of(N, 8), 1});
               auto C = make_view<float>(out + field(7), {M, N}, {N, 1});
               Tile acc = zeros({c.M, c.N}, f32);
               for (auto k : range(0, cast(K, i32), c.K))
                 acc = dot(A.load({i, k}, {c.M, c.K}), B.load({k, n}, {c.K, c.N}), acc);
               C.store({i, n}, acc);
               item = atomic_add(next, 1);
             });
    }).grid([](const Queue&, const bfloat16*, const int64_t*, float*, int32_t*, int, int programs) {
      return Grid{programs};
    });
Register q6("queue_walk", [](Env& e) {
  std::vector<std::array<int, 3>> shapes{{40, 72, 16}, {130, 64, 48}, {1, 200, 8}, {64, 64, 96}};
  if (e.big) {
    shapes.clear();
    for (int k = 0; k < 64; ++k) shapes.push_back({256 * (1 + k % 7), 1024, 512 * (1 + k % 3)});
  }
  std::vector<int64_t> table, as, bs, cs;
  int64_t used = 0, made = 0;
  double flops = 0;
  for (auto [m, n, k] : shapes) {
    as.push_back(used), bs.push_back(used + int64_t(m) * k), cs.push_back(made);
    for (int i = 0; i < cdiv(m, 64); ++i)
      for (int c = 0; c < cdiv(n, 64); ++c)
        for (int64_t f : {int64_t(m), int64_t(n), int64_t(k), int64_t(i), int64_t(c), as.back(), bs.back(), made})
          table.push_back(f);
    used += int64_t(m) * k + int64_t(k) * n, made += int64_t(m) * n, flops += 2. * m * n * k;
  }
  auto pool = random<bfloat16>(e, used);
  auto items = repeated<int64_t>(e, table.size(), table);
  auto out = constant<float>(e, made, 9);
  auto next = constant<int32_t>(e, 1, 0);
  Job j;
  restore(e, j, next);
  j.add(queue_walk, Queue{}, pool.p, items.p, out.p, next.p, int(table.size() / 8), e.big ? 264 : 3);
  j.gflop = flops * 1e-9;
  j.check = [=] {
    std::vector<double> want;
    for (size_t s = 0; s < shapes.size(); ++s) {
      auto [m, n, k] = shapes[s];
      auto c = product(m, n, k, matrix(pool, k, as[s]), matrix(pool, n, bs[s]));
      want.insert(want.end(), c.begin(), c.end());
    }
    return agree(out.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- five dims with any strides, turned around, every second, repeated; a part of a part viewed again, in a grid of 3
struct Five {
  int A = 8, B = 32;
};
auto five_strides =
    kernel("user_five_strides", [](const Five& c, Tensor<const half, 5> x, Tensor<half, 5> y, Ptr<float> sums) {
      auto i = program_id(2), j = program_id(1), k = program_id(0);
      Tile total = zeros({}, f32);
      for (auto m : range(0, x.dim(3), c.A)) {
        auto part = make_view<const half>(
            x.ptr() + (cast(i, i64) * x.stride(0) + cast(j, i64) * x.stride(1) + cast(k, i64) * x.stride(2)),
            {x.dim64(3), x.dim64(4)}, {x.stride(3), x.stride(4)});
        auto column = make_view<const half>(part.ptr() + part.stride(1), {part.dim64(0), part.dim64(1) - 1},
                                            {part.stride(0), part.stride(1)});  // without the first column
        for (auto n : range(0, x.dim(4), c.B)) {
          Tile a = x.load({i, j, k, m, n}, {c.A, c.B}), b = column.load({m, n}, {c.A, c.B});
          y.store({i, j, k, m, n}, a - b);
          total += sum(cast(a, f32) * cast(b, f32));
        }
      }
      store(sums + ((i * num_programs(1) + j) * num_programs(0) + k), total);
    }).grid([](const Five&, const auto& x, const auto&, float*) {
      return Grid{x.shape[2], x.shape[1], x.shape[0]};
    });
Register q7("five_strides", [](Env& e) {
  const int I = e.big ? 16 : 2, J = e.big ? 16 : 3, K = e.big ? 16 : 2, M = e.big ? 64 : 11, N = e.big ? 128 : 37;
  const int64_t size = int64_t(J) * K * M * N * 2;
  auto x = integers<half>(e, size, -9, 10);
  auto y = constant<half>(e, size_t(I) * J * K * M * N, 30);
  auto sums = constant<float>(e, size_t(I) * J * K, 30);
  // The first dim repeats, the second runs backwards, rows lie along dim 3, columns are two apart.
  const std::array<int64_t, 5> strides{0, -int64_t(K) * M * N * 2, 1, int64_t(K) * N * 2, int64_t(K) * 2};
  const int64_t first = int64_t(J - 1) * K * M * N * 2;
  Job j;
  j.add(five_strides, Five{}, TensorView<const half, 5>(x.p + first, {I, J, K, M, N}, strides), y.view(I, J, K, M, N),
        sums.p);
  j.mbytes = double(I) * J * K * M * N * 4e-6;
  j.check = [=]() -> std::string {
    std::vector<double> wy, ws;
    for (int i = 0; i < I; ++i)
      for (int b = 0; b < J; ++b)
        for (int k = 0; k < K; ++k) {
          double total = 0;
          for (int m = 0; m < M; ++m)
            for (int n = 0; n < N; ++n) {
              auto at = [&](int c) {
                return c < N ? x[first + b * strides[1] + k + m * strides[3] + c * strides[4]] : 0.;
              };
              wy.push_back(at(n) - at(n + 1)), total += at(n) * at(n + 1);
            }
          ws.push_back(total);
        }
    if (auto s = agree(y.now(), wy, 0.1, 0); !s.empty()) return "y: " + s;
    return agree(sums.now(), ws, 0.1, 1e-6);
  };
  return j;
});

}  // namespace legal_oddities
}  // namespace users
