// simt.cpp - the machine of simt.h: fibers for threads, and what each GPU instruction does.
#include "tests/gpu/simt.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <random>
#include <stdexcept>

#include "compiler/targets/host.h"
#include "compiler/targets/host_loader.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include "tests/gpu/simt_module.h"

namespace tile::testing {

// ---- memory

namespace {
constexpr size_t kPage = 4096;
}  // namespace

GuardedBuffer::GuardedBuffer(size_t bytes) {
  size_t rounded = (std::max<size_t>(bytes, 1) + 15) / 16 * 16;
  mapped_ = (rounded + kPage - 1) / kPage * kPage + kPage;
  mapping_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  mprotect(static_cast<char*>(mapping_) + mapped_ - kPage, kPage, PROT_NONE);
  data_ = static_cast<char*>(mapping_) + mapped_ - kPage - rounded;
}
GuardedBuffer::~GuardedBuffer() { munmap(mapping_, mapped_); }

// ---- the machine

namespace {

struct Copy {
  char* to;
  const char* from;
  int bytes, read;
};

struct Fiber {
  ucontext_t context;
  std::vector<char> stack = std::vector<char>(256 * 1024);
  int thread = 0;
  bool done = false;
  uint64_t warpArrivals = 0, barrierArrivals = 0;
  const uint64_t* posted = nullptr;  ///< arguments of the warp instruction it is at
  std::vector<Copy> open;            ///< asynchronous copies not yet committed
  std::deque<std::vector<Copy>> groups;
};

struct Machine {
  std::vector<std::unique_ptr<Fiber>> fibers;
  ucontext_t scheduler;
  Fiber* current = nullptr;
  int program[3] = {0, 0, 0}, grid[3] = {1, 1, 1};
  void (*entry)(const uint64_t*) = nullptr;
  const uint64_t* slots = nullptr;
  bool progressed = false, trapped = false;
};
Machine* machine = nullptr;

void yieldFiber() { swapcontext(&machine->current->context, &machine->scheduler); }

// Waits until `all` others arrived as often as this fiber.
template <class Count>
void meet(Count Fiber::*arrivals, int first, int count) {
  Fiber* self = machine->current;
  Count mine = ++(self->*arrivals);
  machine->progressed = true;
  auto ready = [&] {
    for (int i = first; i < first + count; ++i)
      if ((*machine->fibers[i]).*arrivals < mine) return false;
    return true;
  };
  while (!ready()) yieldFiber();
  machine->progressed = true;
}
int warpStart() { return machine->current->thread / 32 * 32; }
int warpSize() { return std::min<int>(32, static_cast<int>(machine->fibers.size()) - warpStart()); }
void meetWarp() { meet(&Fiber::warpArrivals, warpStart(), warpSize()); }

// Posts the arguments, waits for the warp, runs `body` with everybody's, and waits again before anybody moves on.
template <class Body>
void warpInstruction(const uint64_t* args, Body&& body) {
  machine->current->posted = args;
  meetWarp();
  body([&](int lane) { return machine->fibers[warpStart() + lane]->posted; });
  meetWarp();
}

float toFloat(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
uint64_t fromFloat(float value) { return std::bit_cast<uint32_t>(value); }
float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

float halfToFloat(uint16_t h) {
  uint32_t sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent == 0)
    return std::copysign(static_cast<float>(mantissa) * 0x1p-24f, std::bit_cast<float>(sign | 0x3f800000u));
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}
float bf16ToFloat(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }

// Element (index within the packed register) of one fragment register.
enum class Operand { f16, bf16, tf32, s8 };
double element(Operand kind, uint64_t reg, int i) {
  switch (kind) {
    case Operand::f16:
      return halfToFloat(static_cast<uint16_t>(reg >> 16 * i));
    case Operand::bf16:
      return bf16ToFloat(static_cast<uint16_t>(reg >> 16 * i));
    case Operand::tf32:
      return toFloat(reg & 0xffffe000u);
    case Operand::s8:
      return static_cast<int8_t>(reg >> 8 * i);
  }
  return 0;
}

// mma.sync m16n8: A registers a0..a3, B b0 b1, C c0..c3 per lane, as in the PTX ISA's fragment tables.
void mma(Operand kind, const uint64_t* args, uint64_t* results) {
  int pack = kind == Operand::tf32 ? 1 : kind == Operand::s8 ? 4 : 2, k = 8 * pack;
  warpInstruction(args, [&](auto posted) {
    int lane = machine->current->thread % 32;
    for (int c = 0; c < 4; ++c) {
      int row = lane / 4 + (c >= 2 ? 8 : 0), col = lane % 4 * 2 + c % 2;
      double sum = 0;
      for (int kk = 0; kk < k; ++kk) {
        int half = kk / (4 * pack), inHalf = kk % (4 * pack), owner = inHalf / pack, i = inHalf % pack;
        const uint64_t* a = posted((row % 8) * 4 + owner);
        const uint64_t* b = posted(col * 4 + owner);
        sum += element(kind, a[half * 2 + row / 8], i) * element(kind, b[4 + half], i);
      }
      if (kind == Operand::s8)
        results[c] = static_cast<uint32_t>(static_cast<int32_t>(args[6 + c]) + static_cast<int32_t>(sum));
      else
        results[c] = fromFloat(static_cast<float>(toFloat(args[6 + c]) + sum));
    }
  });
}

// ldmatrix .xN: lanes 8i..8i+7 give the row addresses of matrix i; lane l gets elements (l/4, 2(l%4)) and the next, or
// the same of the transposed matrix.
void ldmatrix(int count, bool trans, int64_t offset, const uint64_t* args, uint64_t* results) {
  warpInstruction(args, [&](auto posted) {
    int lane = machine->current->thread % 32;
    for (int m = 0; m < count; ++m) {
      uint32_t value = 0;
      for (int i = 0; i < 2; ++i) {
        int row = lane / 4, col = lane % 4 * 2 + i;
        if (trans) std::swap(row, col);
        uint64_t address = posted(m * 8 + row)[0] + static_cast<uint64_t>(offset);
        if (address % 16) throw std::runtime_error("ldmatrix: row address not aligned to 16 bytes");
        uint16_t half;
        std::memcpy(&half, reinterpret_cast<char*>(address) + 2 * col, 2);
        value |= static_cast<uint32_t>(half) << 16 * i;
      }
      results[m] = value;
    }
  });
}

void finishCopies(const std::vector<Copy>& copies) {
  for (const Copy& copy : copies) {
    std::memset(copy.to, 0, copy.bytes);
    std::memcpy(copy.to, copy.from, copy.read);
  }
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

void atomic(const std::string& text, int bits, const uint64_t* args, uint64_t* result) {
  char* address = reinterpret_cast<char*>(args[0]);
  uint64_t old = 0, next = 0;
  std::memcpy(&old, address, bits / 8);
  uint64_t x = args[1];
  auto sign = [&](uint64_t v) { return bits == 32 ? int64_t{static_cast<int32_t>(v)} : static_cast<int64_t>(v); };
  if (contains(text, ".add.f32"))
    next = fromFloat(toFloat(old) + toFloat(x));
  else if (contains(text, ".add.f64"))
    next = std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(x));
  else if (contains(text, ".add.u"))
    next = old + x;
  else if (contains(text, ".max.s"))
    next = sign(old) > sign(x) ? old : x;
  else if (contains(text, ".min.s"))
    next = sign(old) < sign(x) ? old : x;
  else if (contains(text, ".max.u"))
    next = std::max(old, x);
  else if (contains(text, ".min.u"))
    next = std::min(old, x);
  else if (contains(text, ".and.b"))
    next = old & x;
  else if (contains(text, ".or.b"))
    next = old | x;
  else if (contains(text, ".xor.b"))
    next = old ^ x;
  else if (contains(text, ".exch.b"))
    next = x;
  else if (contains(text, ".cas.b"))
    next = old == x ? args[2] : old;
  else
    throw std::runtime_error("simulated machine: unknown atomic: " + text);
  std::memcpy(address, &next, bits / 8);
  *result = old;
}

// `[@$p] opcode operands;`: arguments in the order of access.cpp and atomic.cpp.
void executeAsm(const Instruction& inst, const uint64_t* args, uint64_t* results) {
  const std::string& text = inst.name;
  bool predicated = text[0] == '@';
  int n = static_cast<int>(inst.resultBits.size());
  if (contains(text, "trap;")) {
    machine->trapped = true;
    machine->current->done = true;
    while (true) yieldFiber();
  }
  size_t plus = text.find('+');  // [address+immediate]
  int64_t offset = plus == std::string::npos ? 0 : std::stoll(text.substr(plus + 1));
  if (text.rfind("ldmatrix.", 0) == 0) {
    return ldmatrix(n, contains(text, ".trans"), offset, args, results);
  }
  int width = contains(text, ".b8") ? 1 : contains(text, ".b16") && !contains(text, "cas") ? 2 : 4;
  if (contains(text, "ld.") && !contains(text, "atom")) {
    bool enabled = !predicated || (args[1] & 1);
    uint64_t address = args[0] + static_cast<uint64_t>(offset);
    if (enabled && address % static_cast<uint64_t>(width * n)) throw std::runtime_error("misaligned load: " + text);
    for (int i = 0; i < n; ++i) {
      results[i] = predicated ? args[2 + i] : 0;
      if (!enabled) continue;
      results[i] = 0;
      std::memcpy(&results[i], reinterpret_cast<char*>(address) + width * i, width);
    }
    return;
  }
  if (contains(text, "st.") && !contains(text, "atom")) {
    int count = inst.arguments - 1 - predicated;
    if (predicated && !(args[count + 1] & 1)) return;
    uint64_t address = args[count] + static_cast<uint64_t>(offset);
    if (address % static_cast<uint64_t>(width * count)) throw std::runtime_error("misaligned store: " + text);
    for (int i = 0; i < count; ++i) std::memcpy(reinterpret_cast<char*>(address) + width * i, &args[i], width);
    return;
  }
  if (contains(text, "atom.")) {
    if (predicated && !(args[inst.arguments - 1] & 1)) return;
    return atomic(text, inst.resultBits[0], args, results);
  }
  throw std::runtime_error("simulated machine: unknown assembly: " + text);
}

void perform(const Instruction& inst, const uint64_t* args, uint64_t* results) {
  if (inst.isAsm) return executeAsm(inst, args, results);
  const std::string& name = inst.name;
  Fiber* self = machine->current;
  auto is = [&](const char* prefix) { return name.rfind(prefix, 0) == 0; };
  auto axis = [&] { return name.back() - 'x'; };
  int lane = self->thread % 32;
  if (is("read.ptx.sreg.tid."))
    results[0] = axis() == 0 ? self->thread : 0;
  else if (is("read.ptx.sreg.ctaid."))
    results[0] = machine->program[axis()];
  else if (is("read.ptx.sreg.nctaid."))
    results[0] = machine->grid[axis()];
  else if (is("barrier.cta.sync"))
    meet(&Fiber::barrierArrivals, 0, static_cast<int>(machine->fibers.size()));
  else if (is("bar.warp.sync"))
    meetWarp();
  else if (is("membar") || is("fence"))
    return;
  else if (is("shfl.sync.")) {
    warpInstruction(args, [&](auto posted) {
      int from = static_cast<int>(args[2]);
      if (contains(name, "bfly"))
        from = lane ^ from;
      else if (contains(name, "up"))
        from = lane - from < 0 ? lane : lane - from;
      else if (contains(name, "down"))
        from = lane + from > 31 ? lane : lane + from;
      results[0] = posted(from & 31)[1];
    });
  } else if (is("ex2.approx"))
    results[0] = fromFloat(flushed(std::exp2(flushed(toFloat(args[0])))));
  else if (is("lg2.approx"))
    results[0] = fromFloat(std::log2(flushed(toFloat(args[0]))));
  else if (is("rsqrt.approx"))
    results[0] = fromFloat(1.0f / std::sqrt(flushed(toFloat(args[0]))));
  else if (is("sqrt.approx"))
    results[0] = fromFloat(std::sqrt(flushed(toFloat(args[0]))));
  else if (is("rcp.approx"))
    results[0] = fromFloat(flushed(1.0f / flushed(toFloat(args[0]))));
  else if (is("div.full"))
    results[0] = fromFloat(flushed(flushed(toFloat(args[0])) / flushed(toFloat(args[1]))));
  else if (is("f2tf32.rna"))
    results[0] = (args[0] + 0x1000) & 0xffffe000u;
  else if (is("ldmatrix."))
    ldmatrix(static_cast<int>(inst.resultBits.size()), contains(name, ".trans"), 0, args, results);
  else if (is("mma.m16n8k16.row.col.f32.f32"))
    mma(Operand::f16, args, results);
  else if (is("mma.m16n8k16.row.col.bf16"))
    mma(Operand::bf16, args, results);
  else if (is("mma.m16n8k8.row.col.tf32"))
    mma(Operand::tf32, args, results);
  else if (is("mma.m16n8k32.row.col.s8"))
    mma(Operand::s8, args, results);
  else if (is("cp.async.ca.") || is("cp.async.cg.")) {
    int bytes = contains(name, "global.16") ? 16 : contains(name, "global.8") ? 8 : 4;
    int read = inst.arguments > 2 ? static_cast<int>(std::min<uint64_t>(args[2], bytes)) : bytes;
    if (args[0] % bytes || (read && args[1] % bytes)) throw std::runtime_error("misaligned asynchronous copy");
    self->open.push_back({reinterpret_cast<char*>(args[0]), reinterpret_cast<char*>(args[1]), bytes, read});
  } else if (is("cp.async.commit")) {
    self->groups.push_back(std::move(self->open));
    self->open.clear();
  } else if (is("cp.async.wait.group")) {
    while (self->groups.size() > args[0]) {
      finishCopies(self->groups.front());
      self->groups.pop_front();
    }
  } else {
    throw std::runtime_error("simulated machine: unknown instruction " + name);
  }
}

std::string failure;  ///< first fault of a fiber: exceptions cannot cross its compiled frames

}  // namespace

void execute(uint32_t id, const uint64_t* args, uint64_t* results) {
  try {
    return perform(instruction(id), args, results);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  machine->current->done = true;
  while (true) yieldFiber();
}

namespace {

void fiberMain() {
  machine->entry(machine->slots);
  machine->current->done = true;
  machine->progressed = true;
  yieldFiber();
}

void runProgram(Machine& m, std::mt19937& random) {
  for (auto& fiber : m.fibers) {
    fiber->done = false;
    fiber->warpArrivals = fiber->barrierArrivals = 0;
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack.data();
    fiber->context.uc_stack.ss_size = fiber->stack.size();
    fiber->context.uc_link = &m.scheduler;
    makecontext(&fiber->context, fiberMain, 0);
  }
  std::memset(sharedMemory(), 0xcd, kSharedBytes);  // NaN-ish garbage
  std::vector<Fiber*> order;
  for (auto& fiber : m.fibers) order.push_back(fiber.get());
  size_t done = 0;
  while (done < order.size()) {
    std::shuffle(order.begin(), order.end(), random);
    m.progressed = false;
    done = 0;
    for (Fiber* fiber : order) {
      if (!fiber->done) {
        m.current = fiber;
        swapcontext(&m.scheduler, &fiber->context);
      }
      done += fiber->done;
      if (!failure.empty()) throw std::runtime_error(std::exchange(failure, {}));
      if (m.trapped) throw std::runtime_error("trap");
    }
    if (!m.progressed && done < order.size())
      throw std::runtime_error("deadlock: some threads never reach a barrier or shuffle");
  }
}

}  // namespace

SimtKernel::SimtKernel(const std::string& mlir, const std::string& targetName, int numWarps) {
  auto target = ir::lookupTarget(targetName);
  if (!target) throw std::runtime_error(target.error().to_string());
  std::string llvmText;
  ir::StageSink sink;
  sink.wants = [](const std::string& stage) { return stage == "llvm" || stage == "ptx"; };
  sink.take = [&](const std::string& stage, const std::string& text) { (stage == "llvm" ? llvmText : ptx_) = text; };
  ir::CompileOptions options;
  options.numWarps = numWarps;
  options.ptxas = "none";
  options.stages = &sink;
  auto binary = ir::compileText(mlir, "kernel.mlir", *target, options);
  if (!binary) throw std::runtime_error(binary.error().to_string());
  binary_ = std::move(*binary);

  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssemblyString(llvmText, diagnostic, context);
  if (!module) throw std::runtime_error("the emitted LLVM IR does not parse: " + diagnostic.getMessage().str());
  rewriteForHost(*module, binary_.entry);
  ir::CompileOptions hostOptions;
  auto object = ir::emitObject(*module, *ir::lookupTarget("host"), hostOptions);
  if (!object) throw std::runtime_error(object.error().to_string());
  auto code = ir::loadHostObject(*object, binary_.entry);
  if (!code) throw std::runtime_error(code.error().to_string());
  code_ = code->keep_alive;
  entry_ = reinterpret_cast<void (*)(const uint64_t*)>(code->entry);
}
SimtKernel::~SimtKernel() = default;

void SimtKernel::run(std::vector<uint64_t> slots, int gridX, int gridY, int gridZ, uint32_t seed) {
  Machine m;
  machine = &m;
  m.entry = entry_;
  m.slots = slots.data();
  m.grid[0] = gridX, m.grid[1] = gridY, m.grid[2] = gridZ;
  for (uint32_t i = 0; i < binary_.threads; ++i) {
    m.fibers.push_back(std::make_unique<Fiber>());
    m.fibers.back()->thread = static_cast<int>(i);
  }
  std::mt19937 random(seed);
  for (m.program[2] = 0; m.program[2] < gridZ; ++m.program[2])
    for (m.program[1] = 0; m.program[1] < gridY; ++m.program[1])
      for (m.program[0] = 0; m.program[0] < gridX; ++m.program[0]) runProgram(m, random);
  machine = nullptr;
}

}  // namespace tile::testing
