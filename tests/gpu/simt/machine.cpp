// machine.cpp - the scheduler of the simulated GPU.
#include "tests/gpu/simt/machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/gpu/simt/wgmma.h"

namespace tile::testing {

Machine* machine = nullptr;

void fail(const std::string& what) { throw std::runtime_error(what); }

Program::Program(char* window, uint32_t sharedBytes, const std::vector<BufferInfo>& buffers, int threads)
    : shared(window, sharedBytes, buffers, threads) {
  shared.clear();
  for (int i = 0; i < threads; ++i) {
    fibers.push_back(std::make_unique<Fiber>());
    fibers.back()->thread = i;
    fibers.back()->program = this;
  }
  for (int first = 0; first < threads; first += 32) {
    int size = std::min(32, threads - first);
    warps.push_back({size, 0, 0, {}, std::vector<void*>(static_cast<size_t>(size))});
    leaders.push_back(static_cast<int>(machine->random() % static_cast<uint32_t>(size)));
  }
  for (int first = 0; first < threads; first += 128)
    groups.push_back(std::make_unique<Warpgroup>(std::min(128, threads - first)));
}
Program::~Program() = default;

void checkAlive(const Program& p, const char* what) {
  for (const auto& fiber : p.fibers)
    if (!fiber->done) return;
  fail(fmt::format("{} program ({}, {}, {}), which has ended", what, p.id[0], p.id[1], p.id[2]));
}

Program& ownerOf(uint64_t pointer) {
  if (program().cluster)
    for (Program* p : program().cluster->programs)
      if (p->shared.owns(pointer)) return *p;
  return program();
}

void stopFiber() {
  self().done = true;
  while (true) machine->scheduler.switchTo(self().context);
}

void waitUntil(llvm::function_ref<bool()> ready, llvm::function_ref<std::string()> describe) {
  Fiber& fiber = self();
  while (!ready()) {
    fiber.ready = &ready;
    fiber.describe = &describe;
    machine->scheduler.switchTo(fiber.context);
  }
  fiber.ready = nullptr;
}

void meetOthers(Meeting& m, int index, const char* instruction, void* record, llvm::function_ref<void()> body) {
  if (m.arrived && m.instruction != instruction)
    fail(fmt::format("thread {} is at {} while others that must do the same are at {}", self().thread, instruction,
                     m.instruction));
  m.instruction = instruction;
  m.posted[static_cast<size_t>(index)] = record;
  if (++m.arrived == m.size) {
    m.arrived = 0;
    body();
    ++m.generation;
    return;
  }
  uint64_t generation = m.generation;
  waitUntil([&] { return m.generation != generation; },
            [&] { return fmt::format("{} together with {} others", instruction, m.size - m.arrived); });
}

// ---- instructions

namespace {

void runAssembly(const Call& call) {
  const AsmBody& body = *call.inst.body;
  AsmFrame frame{body, call.args, call.results, std::vector<uint64_t>(static_cast<size_t>(body.registers))};
  for (int i = 0; i < body.results; ++i) call.results[i] = 0;
  for (size_t i = 0; i < body.tied.size(); ++i)
    if (body.tied[i] >= 0) call.results[body.tied[i]] = call.args[i];
  for (size_t at = 0; at < body.statements.size();) {
    const AsmStatement& s = body.statements[at++];
    if (s.predicate >= 0) {
      bool holds = frame.get(body.predicates[static_cast<size_t>(s.predicate)]) & 1;
      if (holds == s.negated) continue;
    }
    if (s.is("bra"))
      at = static_cast<size_t>(body.targets[static_cast<size_t>(s.operands[0].index)]);
    else if (!userStatement(s, frame) && !basicStatement(s, frame) && !matrixStatement(s, frame) &&
             !barrierStatement(s, frame) && !bulkStatement(s, frame) && !wgmmaStatement(s, frame))
      fail("simulated machine: unknown assembly: " + s.opcode + " in: " + body.text);
  }
}

void perform(const Call& call) {
  if (call.inst.body) return runAssembly(call);
  if (!basicInstruction(call) && !matrixInstruction(call) && !barrierInstruction(call) && !bulkInstruction(call) &&
      !wgmmaInstruction(call))
    fail("simulated machine: unknown instruction " + call.inst.name);
}

void guarded(llvm::function_ref<void()> body) {
  try {
    return body();
  } catch (const std::exception& error) {
    if (machine->failure.empty()) machine->failure = error.what();
  }
  stopFiber();
}

void fiberMain() {
  machine->entry(machine->slots);
  stopFiber();
}

}  // namespace

void execute(uint32_t id, const uint64_t* args, uint64_t* results) {
  guarded([&] { perform({instruction(id), args, results}); });
}
void touchShared(uint64_t pointer, uint32_t bytes, bool writes) {
  guarded([&] {
    SharedMemory& shared = program().shared;
    uint32_t address = shared.address(pointer, bytes);
    writes ? shared.threadWrites(self().thread, address, bytes) : shared.threadReads(self().thread, address, bytes);
  });
}
void reportMisaligned(uint64_t pointer, uint32_t align, bool writes) {
  guarded([&] {
    fail((writes ? "misaligned store: address " : "misaligned load: address ") + std::to_string(pointer) +
         " is no multiple of " + std::to_string(align) + " bytes");
  });
}
uint64_t sharedStart() { return reinterpret_cast<uint64_t>(program().shared.start()); }

// ---- schedule

void Machine::later(uint64_t queue, std::string what, std::function<void()> run) {
  tasks.push_back({queue, std::move(run), std::move(what)});
  while (timing == Timing::early && runSomeTask()) {
  }
}

bool Machine::runSomeTask() {
  if (tasks.empty()) return false;
  size_t pick = random() % tasks.size();
  for (size_t i = 0; i < pick; ++i)
    if (tasks[i].queue == tasks[pick].queue) pick = i;
  Task task = std::move(tasks[pick]);
  tasks.erase(tasks.begin() + static_cast<std::ptrdiff_t>(pick));
  task.run();
  return true;
}

void Machine::run(std::vector<Program*> programs) {
  std::vector<Fiber*> order;
  for (Program* p : programs)
    for (auto& fiber : p->fibers) {
      fiber->context.start(fiberMain);
      order.push_back(fiber.get());
    }
  size_t done = 0;
  while (done < order.size()) {
    std::shuffle(order.begin(), order.end(), random);
    bool progressed = false;
    done = 0;
    for (Fiber* fiber : order) {
      if (!fiber->done && (!fiber->ready || (*fiber->ready)())) {
        progressed = true;
        current = fiber;
        fiber->context.switchTo(scheduler);
        if (!failure.empty()) fail(std::exchange(failure, {}));
        if (timing == Timing::random && chance(64)) runSomeTask();
      }
      done += fiber->done;
    }
    if (timing == Timing::random && chance(2)) progressed |= runSomeTask();
    if (!progressed && done < order.size() && !runSomeTask()) reportDeadlock(programs);
  }
  while (runSomeTask()) {
  }
}

void Machine::reportDeadlock(const std::vector<Program*>& programs) {
  std::string text = "deadlock: some threads wait for what never happens";
  for (Program* p : programs) {
    std::map<std::string, std::vector<int>> waiting;
    for (auto& fiber : p->fibers) waiting[fiber->done ? "ended" : (*fiber->describe)()].push_back(fiber->thread);
    for (auto& [what, threads] : waiting) {
      text += fmt::format("\n  program ({}, {}, {}), ", p->id[0], p->id[1], p->id[2]);
      for (size_t i = 0, first; i < threads.size(); ++i) {
        first = i;
        while (i + 1 < threads.size() && threads[i + 1] == threads[i] + 1) ++i;
        text += first == i ? fmt::format("{}thread {}", first ? ", " : "", threads[i])
                           : fmt::format("{}threads {}-{}", first ? ", " : "", threads[first], threads[i]);
      }
      text += ": " + what;
    }
  }
  fail(text);
}

}  // namespace tile::testing
