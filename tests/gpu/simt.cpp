// simt.cpp - from a kernel's IR to code for the simulated machine, and its launches.
#include "tests/gpu/simt.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <stdexcept>

#include "compiler/targets/host.h"
#include "compiler/targets/host_loader.h"
#include "compiler/targets/packed_bytes.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include "tests/gpu/simt/machine.h"
#include "tests/gpu/simt/tensor_map.h"
#include "tests/gpu/simt/wgmma.h"

namespace tile::testing {

// ---- memory

namespace {
constexpr size_t kPage = 4096;
constexpr int kPrograms = 4;      ///< programs of a persistent kernel that run side by side,
constexpr int kMostPrograms = 8;  ///< or those of its cluster

/// Shared memory of program `index`: 32-bit shared pointers reach it, and their low bits are shared addresses.
char* sharedWindow(int index) {
  static char* const windows = [] {
    size_t bytes = size_t{kMostPrograms + 1} * kWindowBytes;
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (p == MAP_FAILED) throw std::runtime_error("no low memory for the simulated shared memory");
    return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(p) + kWindowBytes - 1) / kWindowBytes * kWindowBytes);
  }();
  return windows + size_t{kWindowBytes} * static_cast<size_t>(index);
}
}  // namespace

GuardedBuffer::GuardedBuffer(size_t bytes) {
  size_t rounded = (std::max<size_t>(bytes, 1) + 15) / 16 * 16;
  mapped_ = (rounded + kPage - 1) / kPage * kPage + kPage;
  mapping_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  mprotect(static_cast<char*>(mapping_) + mapped_ - kPage, kPage, PROT_NONE);
  data_ = static_cast<char*>(mapping_) + mapped_ - kPage - rounded;
}
GuardedBuffer::~GuardedBuffer() { munmap(mapping_, mapped_); }

// ---- kernels

SimtKernel::SimtKernel(const std::string& mlir, const std::string& targetName, int numWarps,
                       const std::function<void(std::string& llvm)>& change) {
  auto target = ir::lookupTarget(targetName);
  if (!target) throw std::runtime_error(target.error().to_string());
  std::string llvmText;
  ir::StageSink sink;
  sink.wants = [](const std::string& stage) { return stage == "llvm" || stage == "ptx"; };
  sink.take = [&](const std::string& stage, const std::string& text) { (stage == "llvm" ? llvmText : ptx_) = text; };
  ir::CompileOptions options;
  options.numWarps = numWarps;
  options.ptxas = "none";
  options.registerOperandsInFlight = true;
  options.stages = &sink;
  auto binary = ir::compileText(mlir, "kernel.mlir", *target, options);
  if (!binary) throw std::runtime_error(binary.error().to_string());
  binary_ = std::move(*binary);
  if (change) change(llvmText);
  prepare(llvmText);
}

SimtKernel::SimtKernel(const std::string& llvmText, std::string ptx, KernelBinary binary)
    : binary_(std::move(binary)), ptx_(std::move(ptx)) {
  prepare(llvmText);
}
SimtKernel::~SimtKernel() = default;

void SimtKernel::prepare(const std::string& llvmText) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssemblyString(llvmText, diagnostic, context);
  if (!module)
    throw std::runtime_error(fmt::format("the LLVM IR does not parse: {} in line {}", diagnostic.getMessage().str(),
                                         diagnostic.getLineNo()));
  // One of the passes in front of PTX that depend on what its instructions do: here their results are checked.
  llvm::FunctionAnalysisManager analyses;
  for (llvm::Function& function : *module)
    if (!function.isDeclaration()) ir::PackedBytes().run(function, analyses);
  ModuleFacts facts = rewriteForHost(*module, binary_.entry);
  if (facts.threads) binary_.threads = static_cast<uint32_t>(facts.threads);
  maxRegisters_ = facts.entryRegisters;
  minPrograms_ = facts.minPrograms;
  changesRegisters_ = llvmText.find("setmaxnreg") != std::string::npos;
  ir::CompileOptions hostOptions;
  auto object = ir::emitObject(*module, *ir::lookupTarget("host"), hostOptions);
  if (!object) throw std::runtime_error(object.error().to_string());
  auto code = ir::loadHostObject(*object, binary_.entry);
  if (!code) throw std::runtime_error(code.error().to_string());
  code_ = code->keep_alive;
  entry_ = reinterpret_cast<void (*)(const uint64_t*)>(reinterpret_cast<void*>(code->entry));
}

// setmaxnreg moves registers around among what the program entered with: as many as let the wanted programs run side by
// side on a multiprocessor.
int SimtKernel::entryRegisters() const {
  if (!changesRegisters_) return 0;
  if (maxRegisters_) return maxRegisters_;
  if (!minPrograms_)
    throw std::runtime_error(
        "setmaxnreg in a kernel without nvvm.minctasm or nvvm.maxnreg: ptxas would ignore it (C7508)");
  return std::min(248, 65536 / (static_cast<int>(binary_.threads) * minPrograms_) / 8 * 8);
}

namespace {

/// What a program must not leave behind.
void checkEnd(const Program& p) {
  for (const auto& fiber : p.fibers) {
    if (fiber->openBulk) fail(fmt::format("thread {} ends with bulk stores it did not commit", fiber->thread));
    for (const auto& group : fiber->bulkGroups)
      if (!group->sources.empty())
        fail(
            fmt::format("thread {} ends without waiting until its bulk stores have read shared memory", fiber->thread));
  }
  for (const auto& group : p.groups)
    if (!group->products.empty() && !group->products.back()->released)
      fail("a warpgroup ends without waiting for its products");
  for (const auto& [address, b] : p.mbarriers)
    if (b.bytes) fail("a program ends while a bulk load is on its way to it: " + p.shared.describe(address));
}

}  // namespace

void SimtKernel::run(std::vector<uint64_t> slots, int gridX, int gridY, int gridZ, uint32_t seed) {
  Machine m;
  machine = &m;
  m.random.seed(seed);
  m.timing = static_cast<Timing>(seed % 3);
  m.entry = entry_;

  TicketCounter tickets{};
  if (binary_.persistent) {
    for (int size : {gridX, gridY, gridZ}) slots.push_back(static_cast<uint64_t>(size));
    if (binary_.uses_tickets) slots.push_back(reinterpret_cast<uint64_t>(&tickets));
  }
  std::vector<SimulatedTensorMap> maps;
  for (const TensorMapInfo& info : binary_.tensor_maps)
    maps.push_back(encodeTensorMap(info, binary_, slots.data()));
  for (const SimulatedTensorMap& map : maps) slots.push_back(reinterpret_cast<uint64_t>(&map));
  m.slots = slots.data();

  int64_t positions = int64_t{gridX} * gridY * gridZ;
  const int64_t cluster = binary_.cluster, most = std::max<int64_t>(kPrograms / cluster, 1);
  int64_t launched = binary_.persistent
                         ? std::min<int64_t>(positions, cluster * (1 + static_cast<int64_t>(m.random()) % most))
                         : positions;
  m.grid[0] = binary_.persistent ? static_cast<int>(launched) : gridX;
  m.grid[1] = binary_.persistent ? 1 : gridY;
  m.grid[2] = binary_.persistent ? 1 : gridZ;
  int together = binary_.persistent ? static_cast<int>(launched) : 1, registers = entryRegisters();
  for (int64_t first = 0; first < launched; first += together) {
    std::vector<std::unique_ptr<Program>> programs;
    std::vector<Program*> pointers;
    for (int i = 0; i < together; ++i) {
      auto p = std::make_unique<Program>(sharedWindow(i), binary_.shared_bytes, binary_.buffers,
                                         static_cast<int>(binary_.threads));
      int64_t index = first + i;
      p->id[0] = static_cast<int>(index % m.grid[0]);
      p->id[1] = static_cast<int>(index / m.grid[0] % m.grid[1]);
      p->id[2] = static_cast<int>(index / m.grid[0] / m.grid[1]);
      for (auto& group : p->groups) group->registers = registers;
      if (binary_.cluster > 1) {
        p->rank = i % static_cast<int>(cluster);
        p->cluster = p->rank ? pointers[static_cast<size_t>(i - p->rank)]->cluster : std::make_shared<Cluster>();
        p->cluster->programs.push_back(p.get());
        p->cluster->threads += static_cast<int>(binary_.threads);
      }
      pointers.push_back(p.get());
      programs.push_back(std::move(p));
    }
    m.run(pointers);
    for (Program* p : pointers) checkEnd(*p);
  }
  if (tickets.next || tickets.done)
    throw std::runtime_error(
        fmt::format("the ticket counter is left at {} drawn, {} done", tickets.next, tickets.done));
  machine = nullptr;
}

}  // namespace tile::testing
