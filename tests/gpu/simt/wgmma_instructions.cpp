// wgmma_instructions.cpp - asynchronous products of a warpgroup on shared memory: issue, groups, waits, and the
// arithmetic.
#include <fmt/format.h>

#include <cstring>

#include "tests/gpu/simt/wgmma.h"

namespace tile::testing {

MatrixDescriptor::MatrixDescriptor(uint64_t bits) {
  constexpr uint64_t fields = 0x3fffull | 0x3fffull << 16 | 0x3fffull << 32 | 7ull << 49 | 3ull << 62;
  if (bits & ~fields) fail(fmt::format("matrix descriptor {:#018x} has bits outside its fields", bits));
  if (bits >> 49 & 7) fail(fmt::format("matrix descriptor {:#018x} has a base offset: not modelled", bits));
  start = static_cast<uint32_t>(bits & 0x3fff) << 4;
  leading = static_cast<uint32_t>(bits >> 16 & 0x3fff) << 4;
  stride = static_cast<uint32_t>(bits >> 32 & 0x3fff) << 4;
  constexpr int modes[] = {0, 128, 64, 32};
  swizzle = modes[bits >> 62];
}

uint32_t MatrixDescriptor::address(int mn, int k, int bytes, bool transposed) const {
  uint32_t at = start;
  if (!transposed) {  // rows of K: 8 of them make a group
    uint32_t row = static_cast<uint32_t>(mn), byte = static_cast<uint32_t>(k * bytes);
    at += row / 8 * stride;
    at += swizzle ? row % 8 * static_cast<uint32_t>(swizzle) + byte : row % 8 * 16 + byte / 16 * leading + byte % 16;
  } else {  // rows of M or N, one for each k: 8 of them make a group
    uint32_t row = static_cast<uint32_t>(k), byte = static_cast<uint32_t>(mn * bytes),
             width = static_cast<uint32_t>(swizzle);
    at += swizzle ? row / 8 * stride + row % 8 * width + byte / width * leading + byte % width
                  : row / 8 * leading + row % 8 * 16 + byte / 16 * stride + byte % 16;
  }
  at &= kWindowBytes - 1;
  uint32_t mask = swizzle == 128 ? 7 : swizzle == 64 ? 3 : swizzle == 32 ? 1 : 0;
  return at ^ (at >> 7 & mask) << 4;
}

namespace {

// Signalling NaNs, which no arithmetic makes, with a payload: 15 bits for the state of a chain of products, 7 for the
// register.
constexpr uint32_t kMarker = 0x7f800000;
constexpr uint32_t kMarkers = 0x7fff;  // 1 .. kMarkers
uint32_t markerBits(uint32_t marker, int reg) { return kMarker | marker << 7 | static_cast<uint32_t>(reg); }
bool isMarker(uint64_t bits) { return (bits & 0xffc00000u) == kMarker && (bits & 0x3fffff) >= 128; }

// The accumulator a register's marker stands for; null for plain values. Throws for markers of earlier states.
std::shared_ptr<Accumulator> markedBy(Warpgroup& group, uint64_t bits, int reg) {
  if (!isMarker(bits)) return nullptr;
  auto it = group.accumulators.find(static_cast<uint32_t>(bits >> 7 & kMarkers));
  if (it != group.accumulators.end() && static_cast<int>(bits & 127) == reg) return it->second;
  fail(fmt::format(
      "thread {} uses register {} of an accumulator that a later product has taken, or mixes registers of two",
      self().thread, reg));
}

struct Shape {
  int n = 0, k = 0;
  Operand a = Operand::f16, b = Operand::f16;
  bool integer = false;
};

Operand operandNamed(const std::string& name) {
  const std::pair<const char*, Operand> names[] = {
      {"f16", Operand::f16}, {"bf16", Operand::bf16}, {"tf32", Operand::tf32}, {"s8", Operand::s8},
      {"u8", Operand::u8},   {"e4m3", Operand::e4m3}, {"e5m2", Operand::e5m2}, {"b1", Operand::b1}};
  for (auto& [text, kind] : names)
    if (name == text) return kind;
  fail("wgmma: unknown operand type " + name);
}

/// "...m64n128k16.f32.f16.f16"; of b1 k counts words
Shape shapeOf(const std::string& opcode) {
  std::vector<std::string> parts;
  for (size_t at = 0, end; at <= opcode.size(); at = end + 1) {
    end = std::min(opcode.find('.', at), opcode.size());
    parts.push_back(opcode.substr(at, end - at));
  }
  Shape s;
  for (size_t i = 0; i + 3 < parts.size(); ++i)
    if (std::sscanf(parts[i].c_str(), "m64n%dk%d", &s.n, &s.k) == 2) {
      s.integer = parts[i + 1] == "s32";
      if (!s.integer && parts[i + 1] != "f32") fail("wgmma: accumulators of " + parts[i + 1] + " are not modelled");
      s.a = operandNamed(parts[i + 2]);
      s.b = operandNamed(parts[i + 3]);
      if (s.a == Operand::b1) {
        if (!opcode.ends_with(".and.popc")) fail("wgmma: bits are multiplied by .and.popc: " + opcode);
        s.k /= 32;
      }
      if (s.k * operandBytes(s.a) != 32 || operandBytes(s.a) != operandBytes(s.b))
        fail("wgmma: no such shape: " + opcode);
      int step = s.integer ? 16 : 8;
      if (s.n < 8 || s.n > 256 || (s.n % step && s.n != 8 && s.n != 24)) fail("wgmma: no such shape: " + opcode);
      return s;
    }
  fail("wgmma: no shape in " + opcode);
}

struct IssueRecord {
  int thread;
  std::vector<uint64_t> accumulator;  ///< registers in, then markers out
  std::vector<uint64_t> a;            ///< registers of A; empty: descriptor
  uint64_t aDescriptor, bDescriptor;
  bool keep, negateA, negateB, transposeA, transposeB, fenced;
};

int rowOf(int thread, int reg) { return thread % 128 / 32 * 16 + thread % 32 / 4 + reg / 2 % 2 * 8; }
int colOf(int thread, int reg) { return reg / 4 * 8 + thread % 4 * 2 + reg % 2; }

/// Every thread's registers: one unfinished (or finished, not yet waited for) chain, or plain values.
std::shared_ptr<Accumulator> takeAccumulator(Warpgroup& group, const Shape& shape, std::vector<IssueRecord*>& all) {
  std::shared_ptr<Accumulator> chain = markedBy(group, all[0]->accumulator[0], 0);
  bool keep = all[0]->keep;
  if (chain && chain->n == shape.n && chain->integer == shape.integer) {
    for (IssueRecord* r : all)
      for (size_t i = 0; i < r->accumulator.size(); ++i)
        if (static_cast<uint32_t>(r->accumulator[i]) != markerBits(chain->marker, static_cast<int>(i)))
          fail(fmt::format("wgmma: thread {} gives register {} of another accumulator than the rest", r->thread, i));
    group.accumulators.erase(chain->marker);
    return chain;
  }
  if (chain && keep) fail("wgmma: takes the accumulator of an unfinished product of another shape");
  auto fresh = std::make_shared<Accumulator>();
  fresh->n = shape.n;
  fresh->integer = shape.integer;
  fresh->values.resize(static_cast<size_t>(64 * shape.n));
  fresh->integers.resize(static_cast<size_t>(64 * shape.n));
  for (IssueRecord* r : all) {
    if (!r->fenced)
      fail(fmt::format("wgmma: thread {} set registers of it, but executed no wgmma.fence since the last group",
                       r->thread));
    for (size_t i = 0; keep && i < r->accumulator.size(); ++i) {
      if (isMarker(r->accumulator[i]))
        fail(fmt::format("wgmma: register {} of thread {} is an unfinished product's", i, r->thread));
      size_t at =
          static_cast<size_t>(rowOf(r->thread, static_cast<int>(i)) * shape.n + colOf(r->thread, static_cast<int>(i)));
      fresh->values[at] = toFloat(r->accumulator[i]);
      fresh->integers[at] = static_cast<int32_t>(r->accumulator[i]);
    }
  }
  return fresh;
}

/// Bytes [first, end) of an operand of `rows` x `k` elements, as runs of 16.
std::vector<std::pair<uint32_t, uint32_t>> chunks(const MatrixDescriptor& d, int rows, int k, int bytes,
                                                  bool transposed) {
  std::vector<std::pair<uint32_t, uint32_t>> list;
  int per = 16 / bytes;
  for (int r = 0; r < rows; r += transposed ? per : 1)
    for (int kk = 0; kk < k; kk += transposed ? 1 : per) {
      uint32_t at = d.address(r, kk, bytes, transposed);
      if (at % 16) fail("wgmma: an operand is not aligned to 16 bytes");
      program().shared.address(reinterpret_cast<uint64_t>(program().shared.at(at)), 16);  // inside the program's memory
      list.emplace_back(at, 16);
    }
  return list;
}

/// The bits of rows x k elements.
std::vector<uint32_t> readShared(Program& p, const MatrixDescriptor& d, int rows, int k, int bytes, bool transposed) {
  std::vector<uint32_t> values(static_cast<size_t>(rows * k));
  for (int r = 0; r < rows; ++r)
    for (int kk = 0; kk < k; ++kk) {
      uint32_t bits = 0;
      std::memcpy(&bits, p.shared.at(d.address(r, kk, bytes, transposed)), static_cast<size_t>(bytes));
      values[static_cast<size_t>(r * k + kk)] = bits;
    }
  return values;
}

/// Fragment of A in registers: lane l holds 32-bit groups of row l/4 (and 8 below: registers 1, 3), K group l%4 (and 4
/// further: registers 2, 3).
std::vector<uint32_t> readRegisters(const std::vector<IssueRecord*>& all, int k, int bytes) {
  std::vector<uint32_t> values(static_cast<size_t>(64 * k));
  int pack = 4 / bytes;
  for (IssueRecord* r : all)
    for (int j = 0; j < 4; ++j)
      for (int i = 0; i < pack; ++i) {
        int row = r->thread % 128 / 32 * 16 + r->thread % 32 / 4 + j % 2 * 8,
            col = (r->thread % 4 + j / 2 * 4) * pack + i;
        values[static_cast<size_t>(row * k + col)] =
            static_cast<uint32_t>(r->a[static_cast<size_t>(j)] >> 8 * bytes * i);
      }
  return values;
}

/// to = keep * to + a b^T of words of b1.
void countCommon(Accumulator& to, const std::vector<uint32_t>& a, const std::vector<uint32_t>& b, int k, bool keep) {
  for (int row = 0; row < 64; ++row)
    for (int col = 0; col < to.n; ++col) {
      int32_t& sum = to.integers[static_cast<size_t>(row * to.n + col)];
      if (!keep) sum = 0;
      for (int kk = 0; kk < k; ++kk)
        sum += commonBits(a[static_cast<size_t>(row * k + kk)], b[static_cast<size_t>(col * k + kk)]);
    }
}

/// to = keep * to + sign * a b^T, rounded once.
void multiply(Accumulator& to, const Shape& shape, const std::vector<uint32_t>& a, const std::vector<uint32_t>& b,
              float sign, bool keep) {
  const int k = shape.k;
  if (shape.a == Operand::b1) return countCommon(to, a, b, k, keep);
  std::vector<double> sums(static_cast<size_t>(to.n)), columns(static_cast<size_t>(k * to.n));
  for (int col = 0; col < to.n; ++col)
    for (int kk = 0; kk < k; ++kk)
      columns[static_cast<size_t>(kk * to.n + col)] = operandValue(shape.b, b[static_cast<size_t>(col * k + kk)]);
  for (int row = 0; row < 64; ++row) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int kk = 0; kk < k; ++kk) {
      double left = sign * operandValue(shape.a, a[static_cast<size_t>(row * k + kk)]);
      const double* right = &columns[static_cast<size_t>(kk * to.n)];
      for (int col = 0; col < to.n; ++col) sums[static_cast<size_t>(col)] += left * right[col];
    }
    for (int col = 0; col < to.n; ++col) {
      size_t at = static_cast<size_t>(row * to.n + col);
      double sum = sums[static_cast<size_t>(col)];
      if (to.integer)
        to.integers[at] = (keep ? to.integers[at] : 0) + static_cast<int32_t>(sum);
      else
        to.values[at] = static_cast<float>((keep ? to.values[at] : 0.0f) + sum);
    }
  }
}

void issue(const Shape& shape, std::vector<IssueRecord*>& all) {
  Warpgroup& group = warpgroup();
  const IssueRecord& first = *all[0];
  for (IssueRecord* r : all)
    if (r->aDescriptor != first.aDescriptor || r->bDescriptor != first.bDescriptor || r->keep != first.keep)
      fail(fmt::format("wgmma: thread {} has other descriptors or another scale than thread {}", r->thread,
                       first.thread));
  std::shared_ptr<Accumulator> accumulator = takeAccumulator(group, shape, all);
  int bytes = operandBytes(shape.a);
  if (bytes != 2 && (first.transposeA || first.transposeB)) fail("wgmma: only 16-bit operands can be transposed");

  auto product = std::make_shared<Product>();
  product->number = group.products.size() + 1;
  MatrixDescriptor b(first.bDescriptor), a(first.a.empty() ? first.aDescriptor : 0);
  product->sources = chunks(b, shape.n, shape.k, bytes, first.transposeB);
  std::vector<uint32_t> fragment;
  if (first.a.empty()) {
    auto more = chunks(a, 64, shape.k, bytes, first.transposeA);
    product->sources.insert(product->sources.end(), more.begin(), more.end());
  } else {
    for (IssueRecord* r : all)
      if (!r->fenced)
        fail(fmt::format("wgmma: A comes in registers, but thread {} executed no wgmma.fence since the last group",
                         r->thread));
    fragment = readRegisters(all, shape.k, bytes);
    for (IssueRecord* r : all) program().shared.loadsHaveLanded(r->thread);
  }
  std::string what = fmt::format("wgmma {} of threads {}-{}", product->number, first.thread, first.thread + 127);
  Program* p = &program();
  for (auto [address, size] : product->sources) p->shared.beginRead(self().thread / 128, address, size, what);

  accumulator->marker = group.nextMarker = group.nextMarker % kMarkers + 1;
  accumulator->unread = 64 * shape.n;
  accumulator->lastProduct = product->number;
  group.accumulators[accumulator->marker] = accumulator;
  group.products.push_back(product);
  for (IssueRecord* r : all)
    for (size_t i = 0; i < r->accumulator.size(); ++i)
      r->accumulator[i] = markerBits(accumulator->marker, static_cast<int>(i));

  if (!group.queue) group.queue = machine->nextQueue++;
  bool keep = first.keep, fromShared = first.a.empty(), transposeA = first.transposeA, transposeB = first.transposeB;
  float sign = first.negateA != first.negateB ? -1.0f : 1.0f;
  machine->later(group.queue, what, [=] {
    std::vector<uint32_t> left = fromShared ? readShared(*p, a, 64, shape.k, bytes, transposeA) : fragment;
    multiply(*accumulator, shape, left, readShared(*p, b, shape.n, shape.k, bytes, transposeB), sign, keep);
    product->done = true;
  });
}

// d, a, b, scale-d, negate-a, negate-b [, transpose-a] [, transpose-b]
void product(const AsmStatement& s, AsmFrame& f) {
  Shape shape = shapeOf(s.opcode);
  const std::vector<AsmOperand>& o = s.operands;
  auto flag = [&](size_t i) { return i < o.size() && (f.get(o[i]) & 1); };
  bool inRegisters = o[1].kind == AsmOperand::vector;
  IssueRecord r{};
  r.thread = self().thread;
  r.fenced = self().wgmmaFenced;
  for (const AsmOperand& reg : o[0].parts) r.accumulator.push_back(f.get(reg));
  if (static_cast<int>(r.accumulator.size()) != shape.n / 2)
    fail("wgmma: expects n/2 accumulator registers: " + s.opcode);
  if (inRegisters)
    for (const AsmOperand& reg : o[1].parts) r.a.push_back(f.get(reg));
  else
    r.aDescriptor = f.get(o[1]);
  if (inRegisters && r.a.size() != 4) fail("wgmma: expects 4 registers of A");
  r.bDescriptor = f.get(o[2]);
  r.keep = flag(3);
  r.negateA = o.size() > 4 && static_cast<int32_t>(f.get(o[4])) == -1;
  r.negateB = o.size() > 5 && static_cast<int32_t>(f.get(o[5])) == -1;
  r.transposeA = !inRegisters && flag(6);
  r.transposeB = flag(inRegisters ? 6 : 7);
  collective(warpgroup().meeting, self().thread % 128, "wgmma.mma_async", r,
             [&](std::vector<IssueRecord*>& all) { issue(shape, all); });
  for (size_t i = 0; i < r.accumulator.size(); ++i) f.set(o[0].parts[i], r.accumulator[i]);
}

void fence() { self().wgmmaFenced = true; }

void commit() {
  Warpgroup& group = warpgroup();
  meetOthers(group.meeting, self().thread % 128, "wgmma.commit_group", nullptr,
             [&] { group.groups.push_back(group.products.size()); });
  self().wgmmaFenced = false;  // what follows may set registers: the next group needs a fence, unless it only chains
}

void wait(uint64_t pending) {
  Warpgroup& group = warpgroup();
  if (group.groups.size() <= pending) return;
  uint64_t last = group.groups[group.groups.size() - 1 - pending];
  waitUntil([&] { return last == 0 || group.products[last - 1]->done; },
            [&] { return fmt::format("wgmma.wait_group {}", pending); });
  self().wgmmaWaited = std::max(self().wgmmaWaited, last);
  for (uint64_t i = last; i > 0 && !group.products[i - 1]->released; --i) {
    Product& p = *group.products[i - 1];
    p.released = true;
    for (auto [address, bytes] : p.sources) program().shared.endRead(address, bytes);
    p.sources.clear();
  }
}

// Registers that go through the wait get their values, when their product is among the finished.
void resolve(AsmFrame& f) {
  Warpgroup& group = warpgroup();
  for (int i = 0; i < f.body.results; ++i) {
    uint64_t bits = f.results[i];
    if (!isMarker(bits)) continue;
    int reg = static_cast<int>(bits & 127);
    std::shared_ptr<Accumulator> a = markedBy(group, bits, reg);
    if (a->lastProduct > self().wgmmaWaited) continue;
    size_t at = static_cast<size_t>(rowOf(self().thread, reg) * a->n + colOf(self().thread, reg));
    if (--a->unread == 0) group.accumulators.erase(a->marker);
    f.results[i] = a->integer ? static_cast<uint32_t>(a->integers[at]) : fromFloat(a->values[at]);
  }
}

}  // namespace

bool wgmmaInstruction(const Call& c) {
  if (c.is("wgmma.fence"))
    fence();
  else if (c.is("wgmma.commit"))
    commit();
  else if (c.is("wgmma.wait"))
    wait(c.args[0]);
  else
    return false;
  return true;
}

bool wgmmaStatement(const AsmStatement& s, AsmFrame& f) {
  if (s.is("wgmma.mma_async"))
    product(s, f);
  else if (s.is("wgmma.fence"))
    fence();
  else if (s.is("wgmma.commit_group"))
    commit();
  else if (s.is("wgmma.wait_group")) {
    wait(f.get(s.operands[0]));
    resolve(f);
  } else
    return false;
  return true;
}

}  // namespace tile::testing
