// random_program.cpp - see the header. Both meanings walk the same tree; they share nothing else.
#include "random_program.h"

#include <utility>

namespace tile::fuzz {
namespace {

struct Generator {
  std::mt19937 random;
  int budget = 50;
  explicit Generator(uint32_t seed) : random(seed) {}
  int below(int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); }

  // `scalars`: variables visible here. `direct`: the block is the body of a loop (or of the kernel, in_loop false)
  // itself.
  std::vector<Node> block(int scalars, int depth, bool in_loop, bool direct) {
    std::vector<Node> nodes;
    const int n = 1 + below(5);
    for (int i = 0; i < n && budget-- > 0; ++i) {
      Node x{static_cast<Kind>(below(static_cast<int>(Kind::count))),
             below(scalars),
             below(scalars),
             below(scalars),
             {},
             {}};
      const bool nested = x.kind == Kind::for_range || x.kind == Kind::if_then || x.kind == Kind::if_else ||
                          x.kind == Kind::while_loop || x.kind == Kind::when || x.kind == Kind::for_bounds ||
                          x.kind == Kind::while_each;
      if (nested && depth >= 4) x.kind = Kind::add;
      switch (x.kind) {
        case Kind::set:
        case Kind::tile_fill:
          x.b = below(7) - 3;
          break;
        case Kind::copy_declared:
        case Kind::late_declared:
          ++scalars;
          break;
        case Kind::for_range:
        case Kind::while_loop:
          x.c = below(4);
          x.body = block(scalars + 1, depth + 1, true, true);
          break;
        case Kind::while_each:  // a lane (of tile a) & 3 times
        case Kind::for_bounds:  // from b & 3 to c & 7, step 1 + a % 2
          x.body = block(scalars + 1, depth + 1, true, true);
          break;
        case Kind::if_then:
        case Kind::when:
          x.body = block(scalars, depth + 1, in_loop, false);
          break;
        case Kind::if_else:
          x.body = block(scalars, depth + 1, in_loop, false);
          x.other = block(scalars, depth + 1, in_loop, false);
          break;
        case Kind::continue_if:
        case Kind::break_if:
          if (!(in_loop && direct)) x.kind = Kind::add;
          break;
        case Kind::return_if:
          if (!(depth == 0 && below(3) == 0)) x.kind = Kind::assign;
          break;
        default:
          break;
      }
      nodes.push_back(std::move(x));
    }
    return nodes;
  }
};

/// Which tile a node's number means; numbers of other kinds of nodes may be negative.
size_t tile_of(int n) { return static_cast<unsigned>(n) % kTiles; }
int32_t wrap(int64_t v) { return static_cast<int32_t>(static_cast<uint32_t>(v)); }

enum class Flow { normal, next, leave, finish };
using Lanes = std::array<int32_t, kLanes>;

struct Direct {
  std::vector<int32_t> v;
  std::array<Lanes, kTiles> t{};
  Lanes going{1, 1, 1, 1};  ///< lanes that no loop of each lane has left

  /// Every lane for as often as it says; lanes that are done have at the end of an iteration what they had before.
  void while_each(const Node& n, Lanes left) {
    const Lanes outer = going;
    for (int32_t count = 0;; ++count) {
      bool any = false;
      for (int i = 0; i < kLanes; ++i) any |= going[i] = outer[i] && left[i] > 0;
      if (!any) break;
      for (int i = 0; i < kLanes; ++i) left[i] -= going[i];
      const auto before = t;
      const Lanes own = going;
      const Flow flow = loop_body(n, count);
      going = own;
      for (int k = 0; k < kTiles; ++k)
        for (int i = 0; i < kLanes; ++i)
          if (!own[i]) t[k][i] = before[k][i];
      if (flow == Flow::leave) break;
    }
    going = outer;
  }
  Flow loop_body(const Node& n, int32_t counter) {
    v.push_back(counter);
    const Flow f = block(n.body);
    v.pop_back();
    return f;
  }
  Flow block(const std::vector<Node>& nodes) {
    const size_t base = v.size();
    Flow flow = Flow::normal;
    for (const Node& n : nodes) {
      auto& ta = t[tile_of(n.a)];
      auto& tb = t[tile_of(n.b)];
      auto& tc = t[tile_of(n.c)];
      switch (n.kind) {
        case Kind::add:
          v[n.a] = wrap(int64_t{v[n.b]} + v[n.c]);
          break;
        case Kind::mul:
          v[n.a] = wrap(int64_t{v[n.b]} * v[n.c]);
          break;
        case Kind::set:
          v[n.a] = n.b;
          break;
        case Kind::copy_declared: {
          const int32_t x = v[n.b];
          v.push_back(x);
          break;
        }
        case Kind::late_declared: {
          const int32_t x = v[n.a] < v[n.b] ? v[n.b] : v[n.c];
          v.push_back(x);
          break;
        }
        case Kind::for_range:
          for (int32_t i = 0; i < n.c; ++i)
            if (loop_body(n, i) == Flow::leave) break;
          break;
        case Kind::for_bounds:
          for (int32_t i = v[n.b] & 3, end = v[n.c] & 7, step = 1 + n.a % 2; i < end; i += step)
            if (loop_body(n, i) == Flow::leave) break;
          break;
        case Kind::while_loop:
          for (int32_t count = 0; count < n.c;) {
            ++count;
            if (loop_body(n, count) == Flow::leave) break;
          }
          break;
        case Kind::while_each: {
          Lanes left = ta;
          for (int32_t& x : left) x &= 3;
          while_each(n, left);
          break;
        }
        case Kind::if_then:
        case Kind::when:
          if (v[n.a] < v[n.b]) block(n.body);
          break;
        case Kind::if_else:
          block(v[n.a] < v[n.b] ? n.body : n.other);
          break;
        case Kind::continue_if:
          if (v[n.a] < v[n.b]) flow = Flow::next;
          break;
        case Kind::break_if:
          if (v[n.a] < v[n.b]) flow = Flow::leave;
          break;
        case Kind::return_if:
          if (v[n.a] < v[n.b]) flow = Flow::finish;
          break;
        case Kind::swap:
          std::swap(v[n.a], v[n.b]);
          break;
        case Kind::add_assign:
          v[n.a] = wrap(int64_t{v[n.a]} + v[n.b]);
          break;
        case Kind::assign:
          v[n.a] = v[n.b];
          break;
        case Kind::tile_add:
          for (int i = 0; i < kLanes; ++i) ta[i] = wrap(int64_t{tb[i]} + tc[i]);
          break;
        case Kind::tile_scale:
          for (int i = 0; i < kLanes; ++i) ta[i] = wrap(int64_t{tb[i]} * v[n.c]);
          break;
        case Kind::tile_where: {
          const Lanes x = tb;
          for (int i = 0; i < kLanes; ++i) ta[i] = x[i] < tc[i] ? v[n.a] : x[i];
          break;
        }
        case Kind::tile_sum: {
          int64_t s = 0;
          for (int32_t x : tb) s += x;
          v[n.a] = wrap(s);
          break;
        }
        case Kind::tile_swap:
          std::swap(t[0], t[1]);
          break;
        case Kind::tile_fill:
          for (int i = 0; i < kLanes; ++i) ta[i] = wrap(int64_t{n.b} + i);
          break;
        case Kind::count:
          break;
      }
      if (flow != Flow::normal) break;
    }
    v.resize(base);
    return flow;
  }
};

struct Traced {
  std::vector<Tile*> v;
  std::array<Tile, kTiles>& t;

  void loop_body(const Node& n, Tile& counter) {
    v.push_back(&counter);
    block(n.body);
    v.pop_back();
  }
  void block(const std::vector<Node>& nodes) {
    const size_t base = v.size();
    std::vector<std::unique_ptr<Tile>> own;
    for (const Node& n : nodes) {
      Tile &ta = t[tile_of(n.a)], &tb = t[tile_of(n.b)], &tc = t[tile_of(n.c)];
      auto less = [&] { return *v[n.a] < *v[n.b]; };
      switch (n.kind) {
        case Kind::add:
          *v[n.a] = *v[n.b] + *v[n.c];
          break;
        case Kind::mul:
          *v[n.a] = *v[n.b] * *v[n.c];
          break;
        case Kind::set:
          *v[n.a] = n.b;
          break;
        case Kind::copy_declared:
          own.push_back(std::make_unique<Tile>(*v[n.b]));
          v.push_back(own.back().get());
          break;
        case Kind::late_declared: {
          own.push_back(std::make_unique<Tile>());
          Tile& x = *own.back();
          if_(
              less(), [&] { x = *v[n.b]; }, [&] { x = *v[n.c]; });
          v.push_back(&x);
          break;
        }
        case Kind::for_range:
          for (auto i : range(n.c)) loop_body(n, i);
          break;
        case Kind::for_bounds:
          for (auto i : range(*v[n.b] & 3, *v[n.c] & 7, 1 + n.a % 2)) loop_body(n, i);
          break;
        case Kind::while_loop: {
          Tile count = 0;
          while_([&] { return count < n.c; },
                 [&] {
                   count += 1;
                   Tile mine = count;
                   loop_body(n, mine);
                 });
          break;
        }
        case Kind::while_each: {
          Tile left = ta & 3, count = -1;
          while_([&] { return Tile(0) < left; },
                 [&] {
                   left -= 1;
                   count += 1;
                   Tile mine = count;
                   loop_body(n, mine);
                 });
          break;
        }
        case Kind::if_then:
          if_(less(), [&] { block(n.body); });
          break;
        case Kind::if_else:
          if_(
              less(), [&] { block(n.body); }, [&] { block(n.other); });
          break;
        case Kind::when:
          for (auto _ : when(less())) block(n.body);
          break;
        case Kind::continue_if:
          continue_if(less());
          break;
        case Kind::break_if:
          break_if(less());
          break;
        case Kind::return_if:
          return_if(less());
          break;
        case Kind::swap:
          std::swap(*v[n.a], *v[n.b]);
          break;
        case Kind::add_assign:
          *v[n.a] += *v[n.b];
          break;
        case Kind::assign:
          *v[n.a] = *v[n.b];
          break;
        case Kind::tile_add:
          ta = tb + tc;
          break;
        case Kind::tile_scale:
          ta = tb * *v[n.c];
          break;
        case Kind::tile_where:
          ta = where(tb < tc, *v[n.a], tb);
          break;
        case Kind::tile_sum:
          *v[n.a] = sum(tb);
          break;
        case Kind::tile_swap:
          std::swap(t[0], t[1]);
          break;
        case Kind::tile_fill:
          ta = arange(0, kLanes) + n.b;
          break;
        case Kind::count:
          break;
      }
    }
    v.resize(base);
  }
};

constexpr int32_t kStart[kScalars] = {1, 2, -1, 3};

}  // namespace

Program random_program(uint32_t seed) {
  Generator g(seed);
  return {seed, g.block(kScalars, 0, false, true)};
}

Memory run_directly(const Program& p, Memory memory) {
  Direct d;
  d.v.assign(std::begin(kStart), std::end(kStart));
  for (int i = 0; i < kTiles; ++i)
    for (int l = 0; l < kLanes; ++l) d.t[i][l] = l - i;
  if (d.block(p.nodes) == Flow::finish) return memory;
  for (int i = 0; i < kScalars; ++i) memory[i] = d.v[i];
  for (int i = 0; i < kTiles; ++i)
    for (int l = 0; l < kLanes; ++l) memory[kScalars + i * kLanes + l] = d.t[i][l];
  return memory;
}

void trace_program(const Program& p, const Ptr<int32_t>& out) {
  Tile a = kStart[0], b = kStart[1], c = kStart[2], d = kStart[3];
  std::array<Tile, kTiles> tiles{arange(0, kLanes), arange(0, kLanes) - 1};
  Traced t{{&a, &b, &c, &d}, tiles};
  t.block(p.nodes);
  for (int i = 0; i < kScalars; ++i) store(out + i, *t.v[i]);
  for (int i = 0; i < kTiles; ++i) store(out + (kScalars + i * kLanes) + arange(0, kLanes), tiles[i]);
}

}  // namespace tile::fuzz
