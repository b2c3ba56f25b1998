// basic_instructions.cpp - arithmetic, special registers, shuffles, votes, loads, stores, atomics and cp.async.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/gpu/simt/barriers.h"
#include "tests/gpu/simt/machine.h"
#include "tests/gpu/simt/numbers.h"

namespace tile::testing {
namespace {

/// cvt to an s32, to the nearest (even) integer or towards zero: kept inside the range, zero for what is no number.
uint32_t wholeOf(float x, bool nearest) {
  if (std::isnan(x)) return 0;
  const float whole = nearest ? std::nearbyint(x) : std::trunc(x);
  if (whole >= 0x1p31f) return 0x7fffffffu;
  return static_cast<uint32_t>(whole < -0x1p31f ? std::numeric_limits<int32_t>::min() : static_cast<int32_t>(whole));
}

// ---- shuffles and votes

struct ShuffleRecord {
  int from;
  uint64_t value, result;
};

/// `mode`: bfly, up, down or idx. Lanes outside the (whole) warp give the own value.
uint64_t shuffle(const std::string& mode, uint64_t value, uint64_t operand) {
  int lane = laneOf(self()), by = static_cast<int>(operand), from = by;
  if (mode == "bfly")
    from = lane ^ by;
  else if (mode == "up")
    from = lane - by < 0 ? lane : lane - by;
  else if (mode == "down")
    from = lane + by > 31 ? lane : lane + by;
  ShuffleRecord record{from & 31, value, 0};
  collective(warpMeeting(), lane, "a shuffle", record, [](std::vector<ShuffleRecord*>& lanes) {
    for (ShuffleRecord* r : lanes) r->result = lanes[static_cast<size_t>(r->from) % lanes.size()]->value;
  });
  return record.result;
}
std::string shuffleMode(const std::string& name) {
  for (const char* mode : {"bfly", "down", "up", "idx"})
    if (name.find(std::string(".") + mode) != std::string::npos) return mode;
  fail("simulated machine: unknown shuffle " + name);
}

void elect(uint64_t mask, uint64_t* lane, uint64_t* elected) {
  if (static_cast<uint32_t>(mask) != 0xffffffffu) fail("elect.sync: expects the mask of a whole warp");
  int leader = program().leaders[static_cast<size_t>(self().thread / 32)];
  meetOthers(warpMeeting(), laneOf(self()), "elect.sync", nullptr, [] {});
  *lane = static_cast<uint64_t>(leader);
  *elected = laneOf(self()) == leader;
}

struct VoteRecord {
  bool vote, all, any;
  uint32_t ballot;
};

uint64_t vote(const std::string& name, uint64_t mask, uint64_t predicate) {
  if (static_cast<uint32_t>(mask) != 0xffffffffu) fail(name + ": expects the mask of a whole warp");
  VoteRecord record{(predicate & 1) != 0, true, false, 0};
  collective(warpMeeting(), laneOf(self()), "a vote", record, [](std::vector<VoteRecord*>& lanes) {
    bool all = true, any = false;
    uint32_t ballot = 0;
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      all &= lanes[lane]->vote, any |= lanes[lane]->vote;
      ballot |= uint32_t{lanes[lane]->vote} << lane;
    }
    for (VoteRecord* r : lanes) r->all = all, r->any = any, r->ballot = ballot;
  });
  if (name == "vote.ballot.sync") return record.ballot;
  return name == "vote.all.sync" ? record.all : record.any;
}

struct ReduxRecord {
  uint32_t own, all;
};

/// `redux.sync`: add, min, max, umin, umax, and, or, xor of 32-bit values.
uint64_t redux(const std::string& name, uint64_t value, uint64_t mask) {
  if (static_cast<uint32_t>(mask) != 0xffffffffu) fail(name + ": expects the mask of a whole warp");
  const std::string kind = name.substr(std::string("redux.sync.").size());
  ReduxRecord record{static_cast<uint32_t>(value), 0};
  collective(warpMeeting(), laneOf(self()), "redux.sync", record, [&](std::vector<ReduxRecord*>& lanes) {
    uint32_t all = lanes[0]->own;
    for (size_t i = 1; i < lanes.size(); ++i) {
      const uint32_t x = lanes[i]->own;
      const auto a = static_cast<int32_t>(all), s = static_cast<int32_t>(x);
      if (kind == "add") all += x;
      else if (kind == "and") all &= x;
      else if (kind == "or") all |= x;
      else if (kind == "xor") all ^= x;
      else if (kind == "umin") all = std::min(all, x);
      else if (kind == "umax") all = std::max(all, x);
      else if (kind == "min") all = static_cast<uint32_t>(std::min(a, s));
      else if (kind == "max") all = static_cast<uint32_t>(std::max(a, s));
      else fail("simulated machine: unknown " + name);
    }
    for (ReduxRecord* r : lanes) r->all = all;
  });
  return record.all;
}

// ---- memory

bool isShared(const std::string& opcode) { return opcode.find(".shared") != std::string::npos; }

/// Notes the access in the books of shared memory; any pointer that is not shared passes.
char* memory(const std::string& opcode, uint64_t pointer, uint32_t bytes, bool writes) {
  if (isShared(opcode)) {
    SharedMemory& shared = program().shared;
    uint32_t address = shared.address(pointer, bytes);
    writes ? shared.threadWrites(self().thread, address, bytes) : shared.threadReads(self().thread, address, bytes);
  }
  return reinterpret_cast<char*>(pointer);
}

int accessBytes(const AsmStatement& s) {
  if (s.opcode.ends_with("f16x2")) return 4;
  if (s.opcode.ends_with(".bf16")) return 2;
  for (auto [name, bytes] : {std::pair{"8", 1}, {"16", 2}, {"32", 4}, {"64", 8}, {"128", 16}})
    for (const char* type : {".b", ".u", ".s", ".f"})
      if (s.opcode.ends_with(std::string(type) + name)) return bytes;
  fail("simulated machine: how wide is " + s.opcode);
}

std::vector<AsmOperand> elements(const AsmOperand& o) {
  return o.kind == AsmOperand::vector ? o.parts : std::vector<AsmOperand>{o};
}

void load(const AsmStatement& s, AsmFrame& f) {
  auto targets = elements(s.operands[0]);
  int width = accessBytes(s);
  uint64_t address = f.address(s.operands[1]);
  if (address % (static_cast<uint64_t>(width) * targets.size())) fail("misaligned load: " + f.body.text);
  char* from = memory(s.opcode, address, static_cast<uint32_t>(width * static_cast<int>(targets.size())), false);
  for (size_t i = 0; i < targets.size(); ++i) {
    uint64_t value = 0;
    std::memcpy(&value, from + width * static_cast<int>(i), static_cast<size_t>(width));
    f.set(targets[i], value);
  }
}

void store(const AsmStatement& s, AsmFrame& f) {
  auto sources = elements(s.operands[1]);
  int width = accessBytes(s);
  uint64_t address = f.address(s.operands[0]);
  if (address % (static_cast<uint64_t>(width) * sources.size())) fail("misaligned store: " + f.body.text);
  char* to = memory(s.opcode, address, static_cast<uint32_t>(width * static_cast<int>(sources.size())), true);
  for (size_t i = 0; i < sources.size(); ++i) {
    uint64_t value = f.get(sources[i]);
    std::memcpy(to + width * static_cast<int>(i), &value, static_cast<size_t>(width));
  }
}

/// Sums of 16-bit floats, one or two in a word.
uint64_t addHalves(const std::string& op, int bits, uint64_t old, uint64_t x) {
  uint64_t sum = 0;
  for (int shift = 0; shift < bits; shift += 16) {
    const auto a = static_cast<uint16_t>(old >> shift), b = static_cast<uint16_t>(x >> shift);
    const uint16_t rounded = op.find("bf16") != std::string::npos
                                 ? bfloat16(bf16ToFloat(a) + bf16ToFloat(b)).bits
                                 : half(halfToFloat(a) + halfToFloat(b)).bits;
    sum |= uint64_t{rounded} << shift;
  }
  return sum;
}

uint64_t combine(const std::string& op, int bits, uint64_t old, uint64_t x, uint64_t y) {
  auto has = [&](const char* part) { return op.find(part) != std::string::npos; };
  auto sign = [&](uint64_t v) { return bits == 32 ? int64_t{static_cast<int32_t>(v)} : static_cast<int64_t>(v); };
  if (has(".add.noftz")) return addHalves(op, bits, old, x);
  if (has(".add.f32") || (has(".add.v") && op.ends_with(".f32"))) return fromFloat(toFloat(old) + toFloat(x));
  if (has(".add.f64")) return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(x));
  if (has(".add.u") || has(".add.s")) return old + x;
  if (has(".max.s")) return sign(old) > sign(x) ? old : x;
  if (has(".min.s")) return sign(old) < sign(x) ? old : x;
  if (has(".max.u")) return std::max(old, x);
  if (has(".min.u")) return std::min(old, x);
  if (has(".and.b")) return old & x;
  if (has(".or.b")) return old | x;
  if (has(".xor.b")) return old ^ x;
  if (has(".inc.u")) return old >= x ? 0 : old + 1;
  if (has(".exch.b")) return x;
  if (has(".cas.b")) return old == x ? y : old;
  fail("simulated machine: unknown atomic: " + op);
}

/// atom (with a result) or red (without).
void atomic(const AsmStatement& s, AsmFrame& f) {
  size_t first = s.is("atom") ? 1 : 0;
  int width = accessBytes(s);
  auto sources = elements(s.operands[first + 1]);
  char* address = memory(s.opcode, f.address(s.operands[first]), static_cast<uint32_t>(width), true);
  for (size_t i = 0; i < sources.size(); ++i) {
    uint64_t old = 0, y = s.operands.size() > first + 2 ? f.get(s.operands[first + 2]) : 0;
    char* at = address + width * static_cast<int>(i);
    std::memcpy(&old, at, static_cast<size_t>(width));
    uint64_t x = f.get(sources[i]);
    if (width == 4) x = static_cast<uint32_t>(x);
    uint64_t next = combine(s.opcode, width * 8, old, x, y);
    std::memcpy(at, &next, static_cast<size_t>(width));
    if (first) f.set(elements(s.operands[0])[i], old);
  }
}

// ---- cp.async

void finishCopies(Program& p, int thread, const std::vector<Copy>& copies) {
  for (const Copy& copy : copies) {
    const auto bytes = static_cast<uint32_t>(copy.bytes);
    const uint32_t to = p.shared.address(reinterpret_cast<uint64_t>(copy.to), bytes);
    p.shared.endCopy(to, bytes);
    p.shared.threadWrites(thread, to, bytes);
    std::memset(copy.to, 0, static_cast<size_t>(copy.bytes));
    std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.read));
  }
}
void startCopy(uint64_t to, uint64_t from, int bytes, int read) {
  const auto size = static_cast<uint64_t>(bytes);
  if (to % size || (read && from % size)) fail("misaligned asynchronous copy");
  SharedMemory& shared = program().shared;
  shared.beginCopy(self().thread, shared.address(to, static_cast<uint32_t>(size)), static_cast<uint32_t>(size));
  self().openCopies.push_back({reinterpret_cast<char*>(to), reinterpret_cast<char*>(from), bytes, read});
}
/// The thread's copies so far land some time, in order with its others', and then it arrives.
void arriveWhenLanded(uint64_t barrier) {
  Fiber& fiber = self();
  std::vector<Copy> copies;
  for (std::vector<Copy>& group : fiber.copyGroups) copies.insert(copies.end(), group.begin(), group.end());
  copies.insert(copies.end(), fiber.openCopies.begin(), fiber.openCopies.end());
  fiber.copyGroups.clear(), fiber.openCopies.clear();
  Program* p = &program();
  const uint32_t signal = p->shared.address(barrier, 8);
  barrierAt(program(), signal);
  machine->later(reinterpret_cast<uint64_t>(&fiber), fmt::format("copies of thread {}", fiber.thread),
                 [=, thread = fiber.thread] {
                   finishCopies(*p, thread, copies);
                   copiesArrived(*p, signal, thread);
                 });
}
bool copyInstruction(const Call& c) {
  Fiber& fiber = self();
  if (c.is("cp.async.ca.") || c.is("cp.async.cg.")) {
    int bytes = c.has("global.16") ? 16 : c.has("global.8") ? 8 : 4;
    int read =
        c.inst.arguments > 2 ? static_cast<int>(std::min<uint64_t>(c.args[2], static_cast<uint64_t>(bytes))) : bytes;
    startCopy(c.args[0], c.args[1], bytes, read);
  } else if (c.is("cp.async.mbarrier.arrive.noinc")) {
    arriveWhenLanded(c.args[0]);
  } else if (c.is("cp.async.wait.all")) {
    for (std::vector<Copy>& group : fiber.copyGroups) finishCopies(program(), fiber.thread, group);
    finishCopies(program(), fiber.thread, std::exchange(fiber.openCopies, {}));
    fiber.copyGroups.clear();
  } else if (c.is("cp.async.commit")) {
    fiber.copyGroups.push_back(std::exchange(fiber.openCopies, {}));
  } else if (c.is("cp.async.wait.group")) {
    while (fiber.copyGroups.size() > c.args[0]) {
      finishCopies(program(), fiber.thread, fiber.copyGroups.front());
      fiber.copyGroups.pop_front();
    }
  } else {
    return false;
  }
  return true;
}

bool compare(const std::string& opcode, uint64_t a, uint64_t b) {
  int64_t x = static_cast<int32_t>(a), y = static_cast<int32_t>(b);
  if (opcode.ends_with("64")) x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
  if (opcode.find(".u") != std::string::npos && !opcode.ends_with("64")) x &= 0xffffffff, y &= 0xffffffff;
  std::string how = opcode.substr(5, 2);
  return how == "ne"   ? x != y
         : how == "eq" ? x == y
         : how == "lt" ? x < y
         : how == "le" ? x <= y
         : how == "gt" ? x > y
                       : x >= y;
}

/// Each nibble of the selector (of the first four) names a byte of b:a; with bit 3 the byte is its sign, eight times.
uint64_t permuteBytes(uint64_t a, uint64_t b, uint64_t selector) {
  const uint64_t bytes = (b & 0xffffffff) << 32 | (a & 0xffffffff);
  uint64_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint64_t which = selector >> 4 * i & 15;
    const uint64_t byte = bytes >> 8 * (which & 7) & 0xff;
    result |= (which < 8 ? byte : byte >> 7 ? 0xff : 0) << 8 * i;
  }
  return result;
}

/// The word of a double whose lower half is 0; subnormal numbers are 0.
uint64_t upperWord(double x) {
  if (std::fabs(x) < 0x1p-1022) x = std::copysign(0.0, x);
  return std::bit_cast<uint64_t>(x) & 0xffffffff00000000u;
}

}  // namespace

bool basicInstruction(const Call& c) {
  auto axis = [&] { return c.inst.name.back() - 'x'; };
  uint64_t& result = c.results[0];
  if (c.is("read.ptx.sreg.tid."))
    result = axis() == 0 ? static_cast<uint64_t>(self().thread) : 0;
  else if (c.is("read.ptx.sreg.ctaid."))
    result = static_cast<uint64_t>(program().id[axis()]);
  else if (c.is("read.ptx.sreg.nctaid."))
    result = static_cast<uint64_t>(machine->grid[axis()]);
  else if (c.is("read.ptx.sreg.cluster.ctarank"))
    c.results[0] = static_cast<uint64_t>(program().rank);
  else if (c.is("read.ptx.sreg.smid"))
    result = static_cast<uint64_t>(program().id[0]) % 2;
  else if (c.is("read.ptx.sreg.laneid"))
    result = static_cast<uint64_t>(laneOf(self()));
  else if (c.is("shfl.sync."))
    result = shuffle(shuffleMode(c.inst.name), c.args[1], c.args[2]);
  else if (c.is("vote.all.sync") || c.is("vote.any.sync") || c.is("vote.ballot.sync"))
    result = vote(c.inst.name, c.args[0], c.args[1]);
  else if (c.is("redux.sync."))
    result = redux(c.inst.name, c.args[0], c.args[1]);
  else if (c.is("prmt"))
    result = permuteBytes(c.args[0], c.args[1], c.args[2]);
  else if (c.is("elect.sync"))
    elect(c.args[0], &c.results[0], &c.results[1]);
  else if (c.is("membar") || c.is("fence.acq_rel") || c.is("fence.sc"))
    return true;
  else if (c.is("add.rn.d"))
    result = std::bit_cast<uint64_t>(std::bit_cast<double>(c.args[0]) + std::bit_cast<double>(c.args[1]));
  else if (c.is("add.rn.f"))
    result = fromFloat(toFloat(c.args[0]) + toFloat(c.args[1]));
  else if (c.is("mul.rn.d"))
    result = std::bit_cast<uint64_t>(std::bit_cast<double>(c.args[0]) * std::bit_cast<double>(c.args[1]));
  else if (c.is("mul.rn.f"))
    result = fromFloat(toFloat(c.args[0]) * toFloat(c.args[1]));
  else if (c.is("ex2.approx"))
    result = fromFloat(flushed(std::exp2(flushed(toFloat(c.args[0])))));
  else if (c.is("lg2.approx"))
    result = fromFloat(std::log2(flushed(toFloat(c.args[0]))));
  else if (c.is("rsqrt.approx.ftz.d"))
    result = upperWord(1 / std::sqrt(std::bit_cast<double>(upperWord(std::bit_cast<double>(c.args[0])))));
  else if (c.is("rcp.approx.ftz.d"))
    result = upperWord(1 / std::bit_cast<double>(upperWord(std::bit_cast<double>(c.args[0]))));
  else if (c.is("rsqrt.approx"))
    result = fromFloat(1.0f / std::sqrt(flushed(toFloat(c.args[0]))));
  else if (c.is("sqrt.approx"))
    result = fromFloat(std::sqrt(flushed(toFloat(c.args[0]))));
  else if (c.is("rcp.approx"))
    result = fromFloat(flushed(1.0f / flushed(toFloat(c.args[0]))));
  else if (c.is("div.full"))
    result = fromFloat(flushed(flushed(toFloat(c.args[0])) / flushed(toFloat(c.args[1]))));
  else if (c.is("ff.to.e4m3x2.rn"))
    result = fp8_e4m3(toFloat(c.args[1])).bits | fp8_e4m3(toFloat(c.args[0])).bits << 8;
  else if (c.is("ff.to.e5m2x2.rn"))
    result = fp8_e5m2(toFloat(c.args[1])).bits | fp8_e5m2(toFloat(c.args[0])).bits << 8;
  else if (c.is("ff2f16x2.rn"))
    result = half(toFloat(c.args[1])).bits | uint32_t{half(toFloat(c.args[0])).bits} << 16;
  else if (c.is("ff2bf16x2.rn"))
    result = bfloat16(toFloat(c.args[1])).bits | uint32_t{bfloat16(toFloat(c.args[0])).bits} << 16;
  else if (c.is("e4m3x2.to.f16x2.rn") || c.is("e5m2x2.to.f16x2.rn"))
    result = fp8PairToHalves(c.is("e4m3") ? Operand::e4m3 : Operand::e5m2, c.args[0]);
  else if (c.is("f2i.rn") || c.is("f2i.rz"))
    result = wholeOf(toFloat(c.args[0]), c.is("f2i.rn"));
  else if (c.is("f2tf32.rna"))
    result = (c.args[0] + 0x1000) & 0xffffe000u;
  else
    return copyInstruction(c);
  return true;
}

namespace {

/// Two words kept inside the range of a byte, the second lowest, below the low half of the third.
uint32_t packedBytes(bool isUnsigned, int32_t a, int32_t b, uint32_t rest) {
  auto byte = [&](int32_t x) { return uint32_t(isUnsigned ? std::clamp(x, 0, 255) : std::clamp(x, -128, 127)) & 255; };
  return rest << 16 | byte(a) << 8 | byte(b);
}

/// Bit by bit, what the table has for the three.
uint32_t combineBits(uint64_t x, uint64_t y, uint64_t z, uint64_t table) {
  uint32_t result = 0;
  for (int bit = 0; bit < 32; ++bit)
    result |= static_cast<uint32_t>(table >> ((x >> bit & 1) << 2 | (y >> bit & 1) << 1 | (z >> bit & 1)) & 1) << bit;
  return result;
}

}  // namespace

bool basicStatement(const AsmStatement& s, AsmFrame& f) {
  auto in = [&](size_t i) { return f.get(s.operands[i]); };
  if (s.is("trap")) fail("trap");
  if (s.is("ld."))
    load(s, f);
  else if (s.is("st."))
    store(s, f);
  else if (s.is("atom.") || s.is("red."))
    atomic(s, f);
  else if (s.is("cp.async.ca.") || s.is("cp.async.cg.")) {
    const int bytes = static_cast<int>(in(2));
    const bool ignores = s.operands.size() > 3 && in(3) & 1;
    startCopy(f.address(s.operands[0]), f.address(s.operands[1]), bytes, ignores ? 0 : bytes);
  } else if (s.is("shfl.sync."))
    f.set(s.operands[0], shuffle(shuffleMode(s.opcode), in(1), in(2)));
  else if (s.is("elect.sync")) {
    uint64_t lane = 0, elected = 0;
    elect(in(1), &lane, &elected);
    f.set(s.operands[0].parts[0], lane);
    f.set(s.operands[0].parts[1], elected);
  } else if (s.is("createpolicy."))  // of caches, which this machine has none of
    f.set(s.operands[0], 0);
  else if (s.is("mov."))
    f.set(s.operands[0], in(1));
  else if (s.is("cvt.pack.sat."))
    f.set(s.operands[0], packedBytes(s.is("cvt.pack.sat.u8."), static_cast<int32_t>(in(1)), static_cast<int32_t>(in(2)),
                                     static_cast<uint32_t>(in(3))));
  else if (s.is("setp."))
    f.set(s.operands[0], compare(s.opcode, in(1), in(2)));
  else if (s.is("selp."))
    f.set(s.operands[0], in(3) & 1 ? in(1) : in(2));
  else if (s.is("add.s64"))
    f.set(s.operands[0], in(1) + in(2));
  else if (s.is("and."))
    f.set(s.operands[0], in(1) & in(2));
  else if (s.is("lop3.b32"))
    f.set(s.operands[0], combineBits(in(1), in(2), in(3), in(4)));
  else if (s.is("xor."))
    f.set(s.operands[0], in(1) ^ in(2));
  else if (s.is("shr.u32"))
    f.set(s.operands[0], static_cast<uint32_t>(in(1)) >> in(2));
  else if (s.is("nanosleep") || s.is("prefetch") || s.is("fence.acq_rel") || s.is("membar"))
    return true;
  else
    return false;
  return true;
}

}  // namespace tile::testing
