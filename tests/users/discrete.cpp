// discrete.cpp - whole numbers only: folding of RNA by spans of growing length, queens on a board by backtracking,
// solids made of triangles as bits, dilation of images by wide windows in two scans.
#include "tests/users/use.h"
namespace users {
namespace discrete {

struct FoldCfg {
  int B = 128, warps = 4;
};

// --- Nussinov: the most pairs of bases of [i, j]; one program per sequence, diagonal after diagonal in memory
auto nussinov =
    kernel("user_nussinov", [](const FoldCfg& c, Tensor<const uint8_t, 2> bases, Tensor<const int32_t, 1> length,
                               Ptr<int16_t> M, Tensor<int32_t, 1> best) {
      // M [sequences, L, L]: best of bases i..j; 0 below the diagonal, set by the program
      num_warps(c.warps);
      auto s = program_id(0), L = bases.dim(1);
      auto n = length.load({s});
      Tile m = M + cast(s, i64) * L * L;
      for (auto d : range(0, n))
        for (auto first : range(0, n - d, c.B)) {
          auto i = first + arange(0, c.B), j = i + d;
          auto live = j < n;
          auto at = [&](Tile row, Tile column) {  // spans of no base have no pair
            return cast(load(m + (row * L + column), {.mask = live & (row <= column)}), i32);
          };
          auto a = load(bases.ptr() + (s * L + i), {.mask = live});
          auto b = load(bases.ptr() + (s * L + j), {.mask = live});
          auto sum = a + b;  // A 0, C 1, G 2, U 5: AU 5, CG 3, GU 7
          auto pair = ((sum == 5) | (sum == 3) | (sum == 7)) & (j - i > 3);
          Tile most = max(at(i + 1, j), at(i, j - 1));
          most = max(most, at(i + 1, j - 1) + cast(pair, i32));
          for (auto k : range(1, d)) {  // both parts have bases
            auto part = [&](Tile row, Tile column) { return cast(load(m + (row * L + column), {.mask = live}), i32); };
            most = max(most, part(i, i + k) + part(i + k + 1, j));
          }
          store(m + (i * L + j), cast(most, i16), {.mask = live});
        }
      auto whole = cast(load(m + (n - 1), {.mask = n > 0}), i32);
      best.store({s}, whole);
    }).grid([](const FoldCfg&, const auto& b, const auto&...) { return Grid{b.shape[0]}; });
Register r1("nussinov", [](Env& e) {
  const int S = e.big ? 264 : 6, L = e.big ? 400 : 41;
  std::vector<int32_t> n(S);
  for (int s = 0; s < S; ++s) n[s] = e.big ? L - s % 50 : std::array{41, 0, 1, 17, 33, 40}[s];
  constexpr uint8_t kBase[] = {0, 1, 2, 5};
  auto bases = filled<uint8_t>(e, S * L, [&](size_t) { return kBase[int(4 * e.uniform())]; });
  auto length = repeated<int32_t>(e, S, n);
  auto M = filled<int16_t>(e, size_t(S) * L * L, [](size_t) { return -7; });
  auto best = filled<int32_t>(e, S, [](size_t) { return -1; });
  Job j;
  j.gflop = 1e-9 * S * std::pow(double(L), 3) / 3;
  j.add(nussinov, FoldCfg{e.field("B", e.big ? 128 : 16), e.field("warps", 4)}, bases.view(S, L), length.view(S), M.p,
        best.view(S));
  j.check = [=] {
    std::vector<double> want(S);
    for (int s = 0; s < S; ++s) {
      std::vector<std::vector<int>> m(L + 2, std::vector<int>(L + 2));
      for (int d = 1; d < n[s]; ++d)
        for (int i = 0; i + d < n[s]; ++i) {
          const int k = i + d, sum = bases.at(s * L + i) + bases.at(s * L + k);
          int most = std::max(m[i + 1][k], m[i][k - 1]);
          if (d > 3 && (sum == 5 || sum == 3 || sum == 7)) most = std::max(most, m[i + 1][k - 1] + 1);
          for (int c = i + 1; c < k; ++c) most = std::max(most, m[i][c] + m[c + 1][k]);
          m[i][k] = most;
        }
      want[s] = n[s] ? m[0][n[s] - 1] : 0;
    }
    return agree(best.now(), want, 1e-9, 0);
  };
  return j;
});

// --- queens: every element begins with the first three rows given and goes through all boards; rows are its stack
struct BoardCfg {
  int B = 128, warps = 4, N = 8;
};
auto queens =
    kernel("user_queens", [](const BoardCfg& c, Ptr<const uint32_t> starts, I32 n, Ptr<int64_t> found) {
      // starts [n, 3]: columns, left and right diagonals taken by the first rows
      num_warps(c.warps);
      const int depth = c.N - 3;
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto live = i < n;
      auto level = arange(0, depth).row();
      auto board = cast((1 << c.N) - 1, u32);
      auto taken = [&](int k) { return load(starts + (i * 3 + k), {.mask = live, .other = (1u << c.N) - 1}); };
      Tile columns = taken(0), left = taken(1), right = taken(2) << 16;  // bits that leave below come back
      Tile row = zeros({c.B}, i32), solutions = zeros({c.B}, i32);
      Tile open = where(level == 0, (~(columns | left | (right >> 16)) & board).col(), cast(0, u32));
      Tile placed = zeros({c.B, depth}, u32);
      while_([&] { return any(row >= 0); },
             [&] {
               auto active = row >= 0;
               auto here = level == row.col();
               auto choices = squeeze(sum(where(here, open, 0), axis(1)), 1);
               auto bit = choices & (~choices + 1);
               auto down = active & (choices != 0), up = active & (choices == 0);
               // Down: place the queen. A full board is counted and left at once.
               open = where(here & down.col(), open & ~bit.col(), open);
               auto last = row == depth - 1;
               solutions += cast(down & last, i32);
               auto deeper = down & ~last;
               placed = where(here & deeper.col(), bit.col(), placed);
               auto c1 = columns | bit, l1 = (left | bit) << 1, r1 = (right | (bit << 16)) >> 1;
               auto below = (level == row.col() + 1) & deeper.col();
               open = where(below, (~(c1 | l1 | (r1 >> 16)) & board).col(), open);
               // Up: take the queen of the row above away again.
               auto above = squeeze(sum(where(level == row.col() - 1, placed, 0), axis(1)), 1);
               columns = where(deeper, c1, where(up, columns & ~above, columns));
               left = where(deeper, l1, where(up, (left >> 1) & ~above, left));
               right = where(deeper, r1, where(up, (right << 1) & ~(above << 16), right));
               row = row + cast(deeper, i32) - cast(up, i32);
             });
      atomic_add(found, cast(sum(solutions), i64), {.order = Order::relaxed});
    }).grid([](const BoardCfg& c, auto*, int n, auto*) { return Grid{cdiv(n, c.B)}; });
Register r2("queens", [](Env& e) {
  const int N = e.big ? 13 : 7;
  std::vector<uint32_t> starts;
  int64_t want = 0;
  const uint32_t board = (1u << N) - 1;
  std::function<void(int, uint32_t, uint32_t, uint32_t)> place = [&](int row, uint32_t c, uint32_t l, uint32_t r) {
    if (row == 3) starts.insert(starts.end(), {c, l, r});
    if (row == N) ++want;
    if (row == (e.big ? 3 : N)) return;
    for (uint32_t open = ~(c | l | r) & board; open; open &= open - 1) {
      const uint32_t bit = open & -open;
      place(row + 1, c | bit, (l | bit) << 1, (r | bit) >> 1);
    }
  };
  place(0, 0, 0, 0);
  const int n = int(starts.size() / 3);
  auto s = repeated<uint32_t>(e, starts.size(), starts);
  auto found = filled<int64_t>(e, 1, [](size_t) { return 0; });
  Job j;
  j.add(queens, BoardCfg{e.field("B", e.big ? 128 : 48), e.field("warps", e.big ? 4 : 1), N}, s.p, n, found.p);
  j.check = [=]() -> std::string {
    const int64_t got = found.now()[0];
    return got == want ? "" : std::to_string(got) + " boards instead of " + std::to_string(want);
  };
  return j;
});

// --- solids of triangles: a voxel is inside where a ray along x crosses an odd number of triangles. Corners in 1/16 of
// a voxel, so that everything is exact; a lane has a triangle and walks its box of (y, z)
struct SolidCfg {
  int B = 128, warps = 4;
};
struct Corner {
  Tile x, y, z;
};
auto voxelise =
    kernel("user_voxelise", [](const SolidCfg& c, Tensor<const int32_t, 3> corners, Ptr<uint32_t> bits, I32 side) {
      // corners [triangles, 3, 3] x, y, z; bits [side, side, side / 32] (z, y, x)
      num_warps(c.warps);
      auto first = program_id(0) * c.B;
      auto live = first + arange(0, c.B) < corners.dim(0);
      std::array<Corner, 3> p;
      auto part = [&](int k, int d) { return cast(reshape(corners.load({first, k, d}, {c.B, 1, 1}), {c.B}), i64); };
      for (int k = 0; k < 3; ++k) p[k] = {part(k, 0), part(k, 1), part(k, 2)};
      auto cross = [](const Tile& ay, const Tile& az, const Tile& by, const Tile& bz) { return ay * bz - az * by; };
      auto area = cross(p[1].y - p[0].y, p[1].z - p[0].z, p[2].y - p[0].y, p[2].z - p[0].z);
      auto turned = area < 0;
      const Corner a = p[0];
      const Corner b{where(turned, p[2].x, p[1].x), where(turned, p[2].y, p[1].y), where(turned, p[2].z, p[1].z)};
      const Corner d{where(turned, p[1].x, p[2].x), where(turned, p[1].y, p[2].y), where(turned, p[1].z, p[2].z)};
      auto doubled = abs(area);
      auto lowest = [](const Tile& u, const Tile& v, const Tile& w) { return min(min(u, v), w); };
      auto highest = [](const Tile& u, const Tile& v, const Tile& w) { return max(max(u, v), w); };
      auto from = [&](const Tile& low) { return cast(max(floor_div(low + 7, 16), 0), i32); };  // centres: 16 k + 8
      auto to = [&](const Tile& high) { return cast(min(floor_div(high - 8, 16), cast(side, i64) - 1), i32); };
      auto y0 = from(lowest(a.y, b.y, d.y)), y1 = to(highest(a.y, b.y, d.y));
      auto z0 = from(lowest(a.z, b.z, d.z)), z1 = to(highest(a.z, b.z, d.z));
      auto width = max(y1 - y0 + 1, 0);
      auto cells = where(live & (area != 0), width * max(z1 - z0 + 1, 0), 0);
      // Points on an edge belong to the triangle on one side of it only.
      auto owns = [](const Corner& s, const Corner& e) {
        return cast(~((e.z > s.z) | ((e.z == s.z) & (e.y < s.y))), i64);
      };
      auto words = side / 32;
      Tile cell = zeros({c.B}, i32);
      while_([&] { return any(cell < cells); },
             [&] {
               auto active = cell < cells;
               auto y = y0 + cell % max(width, 1), z = z0 + cell / max(width, 1);
               auto cy = cast(y, i64) * 16 + 8, cz = cast(z, i64) * 16 + 8;
               auto edge = [&](const Corner& s, const Corner& e) {
                 return cross(e.y - s.y, e.z - s.z, cy - s.y, cz - s.z);
               };
               auto wd = edge(a, b), wa = edge(b, d), wb = edge(d, a);
               auto inside = active & (wd >= owns(a, b)) & (wa >= owns(b, d)) & (wb >= owns(d, a));
               // The first voxel whose centre lies behind the triangle.
               auto x16 = wa * a.x + wb * b.x + wd * d.x;
               auto hit = cast(clamp(floor_div(x16 + 8 * doubled - 1, max(doubled, 1) * 16), 0, cast(side, i64)), i32);
               auto line = (z * side + y) * words;
               for (auto w : range(words)) {
                 auto in = clamp(hit - w * 32, 0, 32);
                 auto mask = where(in == 32, cast(0, u32), full({c.B}, 0xffffffffu, u32) << cast(min(in, 31), u32));
                 atomic_xor(bits + (line + w), mask, {.mask = inside & (mask != 0), .order = Order::relaxed});
               }
               cell += 1;
             });
    }).grid([](const SolidCfg& c, const auto& t, const auto&...) { return Grid{cdiv(t.shape[0], c.B)}; });
Register r3("voxelise", [](Env& e) {
  const int side = e.big ? 256 : 32, rings = e.big ? 300 : 9, around = e.big ? 600 : 11;
  // A sphere with bumps, and a few triangles of any kind outside of the grid and without area.
  std::vector<int32_t> corner;
  auto point = [&](int ring, int k) {
    const double u = M_PI * ring / rings, v = 2 * M_PI * (k % around) / around,
                 r = side * (6.5 + std::sin(5 * v) * std::sin(u));
    for (double x : {r * std::sin(u) * std::cos(v), r * std::sin(u) * std::sin(v), r * std::cos(u)})
      corner.push_back(int32_t(std::lround(x + 8 * side)));
  };
  for (int ring = 0; ring < rings; ++ring)
    for (int k = 0; k < around; ++k) {
      point(ring, k), point(ring + 1, k), point(ring + 1, k + 1);
      point(ring, k), point(ring + 1, k + 1), point(ring, k + 1);
    }
  for (int k = 0; k < 9 * 3; ++k) corner.push_back(k < 9 ? -100 * k : k < 18 ? 50 : 16 * side + k * k);
  const int n = int(corner.size() / 9), words = side * side * side / 32;
  auto t = repeated<int32_t>(e, corner.size(), corner);
  auto bits = filled<uint32_t>(e, words, [](size_t) { return 0; });
  Job j;
  restore(e, j, bits);
  j.add(voxelise, SolidCfg{e.field("B", e.big ? 128 : 32), e.field("warps", e.big ? 4 : 1)}, t.view(n, 3, 3), bits.p,
        side);
  j.check = [=]() -> std::string {
    std::vector<uint32_t> want(words);
    for (int k = 0; k < n; ++k) {
      const int32_t* p = &corner[k * 9];
      for (int z = 0; z < side; ++z)
        for (int y = 0; y < side; ++y) {
          int64_t w[3], total = 0, at = 0;
          for (int i = 0; i < 3; ++i) {
            const int32_t *s = p + (i + 1) % 3 * 3, *q = p + (i + 2) % 3 * 3;
            w[i] = int64_t(q[1] - s[1]) * (16 * z + 8 - s[2]) - int64_t(q[2] - s[2]) * (16 * y + 8 - s[1]);
            total += w[i], at += w[i] * p[3 * i];
          }
          const int sign = total < 0 ? -1 : 1;
          bool inside = total != 0;
          for (int i = 0; i < 3; ++i) {
            const int32_t *s = p + (i + 1) % 3 * 3, *q = p + (i + 2) % 3 * 3;
            const int dy = sign * (q[1] - s[1]), dz = sign * (q[2] - s[2]);
            inside = inside && (sign * w[i] > 0 || (w[i] == 0 && (dz > 0 || (dz == 0 && dy < 0))));
          }
          for (int x = 0; inside && x < side; ++x)  // the centre at or behind the crossing
            if (int64_t(16 * x + 8) * std::abs(total) >= sign * at)
              want[((z * side + y) * side + x) / 32] ^= 1u << x % 32;
        }
    }
    const auto got = bits.now();
    int filled = 0;
    for (int i = 0; i < words; ++i) filled += __builtin_popcount(want[i]);
    if (filled < side * side) return "the reference is empty";
    for (int i = 0; i < words; ++i)
      if (got[i] != want[i]) return "word " + std::to_string(i);
    return "";
  };
  return j;
});

// --- the largest of W neighbours to either side of a line in two scans of blocks of W (van Herk, Gil and Werman)
struct WideCfg {
  int R = 4, W = 21, blocks = 6, warps = 4;
};
auto dilate = kernel("user_dilate", [](const WideCfg& c, Tensor<const uint8_t, 2> in, Tensor<uint8_t, 2> out) {
                num_warps(c.warps);
                const int n = c.W * c.blocks, half = c.W / 2;
                auto y = program_id(1) * c.R, x = program_id(0) * n;
                auto all = reshape(in.load({y, x - half}, {c.R, n + c.W}), {c.R, c.blocks + 1, c.W});
                auto larger = [](Tile a, Tile b) { return max(a, b); };
                auto to = reshape(scan(all, axis(2), larger), {c.R, n + c.W});
                auto from = reshape(scan(all, axis(2), larger, {.reverse = true}), {c.R, n + c.W});
                out.store({y, x}, max(extract(from, {0, 0}, {c.R, n}), extract(to, {0, c.W - 1}, {c.R, n})));
              }).grid([](const WideCfg& c, const auto& in, const auto&) {
  return Grid{cdiv(in.shape[1], c.W * c.blocks), cdiv(in.shape[0], c.R)};
});
Register r4("dilate", [](Env& e) {
  const int H = e.big ? 4320 : 13, X = e.big ? 7680 : 200, W = 21;
  auto in = integers<uint8_t>(e, size_t(H) * X, 0, 256),
       across = filled<uint8_t>(e, size_t(H) * X, [](size_t) { return 1; });
  auto out = filled<uint8_t>(e, size_t(H) * X, [](size_t) { return 1; });
  Job j;
  j.mbytes = 4e-6 * H * double(X);
  const WideCfg c{e.field("R", e.big ? 4 : 2), W, e.field("blocks", e.big ? 12 : 3), e.field("warps", 4)};
  j.add(dilate, c, in.view(H, X), across.view(H, X));
  // Columns: the same kernel on the turned picture.
  j.add(dilate, c, across.view(H, X).transposed(), out.view(H, X).transposed());
  j.check = [=] {
    std::vector<double> want(H * X);
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < X; ++x)
        for (int v = std::max(0, y - W / 2); v <= std::min(H - 1, y + W / 2); ++v)
          for (int u = std::max(0, x - W / 2); u <= std::min(X - 1, x + W / 2); ++u)
            want[y * X + x] = std::max(want[y * X + x], in[v * X + u]);
    return agree(out.now(), want, 1e-9, 0);
  };
  return j;
});

}  // namespace discrete
}  // namespace users
