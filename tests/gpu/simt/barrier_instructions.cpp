// barrier_instructions.cpp - who waits for whom: CTA and named barriers, mbarriers with phases and transaction counts,
// and the pool of registers that setmaxnreg moves between warpgroups.
#include <fmt/format.h>

#include <cstring>

#include "tests/gpu/simt/barriers.h"
#include "tests/gpu/simt/machine.h"
#include "tests/gpu/simt/wgmma.h"

namespace tile::testing {
namespace {

// ---- named barriers

void namedBarrier(uint64_t id, int threads, bool wait) {
  if (id > 15) fail(fmt::format("barrier {} of 0..15", id));
  if (threads <= 0 || threads % 32 || threads > static_cast<int>(program().fibers.size()))
    fail(fmt::format("barrier {} expects {} threads: not a multiple of 32 up to {}", id, threads,
                     program().fibers.size()));
  NamedBarrier& b = program().barriers[id];
  if (b.arrived == 0) b.expected = threads;
  if (b.expected != threads)
    fail(fmt::format("barrier {} expects {} threads for some and {} for thread {}", id, b.expected, threads,
                     self().thread));
  uint64_t generation = b.generation;
  if (++b.arrived == b.expected) {
    b.arrived = 0;
    ++b.generation;
    return;
  }
  if (!wait) return;
  waitUntil([&] { return b.generation != generation; },
            [&] { return fmt::format("barrier {}: {} of {} threads are there", id, b.arrived, b.expected); });
}
/// Whether all, or any, of the threads that met there came with a true predicate.
bool barrierVote(uint64_t id, int threads, bool holds, bool inAll) {
  NamedBarrier& b = program().barriers.at(id & 15);
  if (b.arrived == 0) b.all = true, b.any = false;
  b.all &= holds, b.any |= holds;
  if (b.arrived + 1 == threads) b.allOfLast = b.all, b.anyOfLast = b.any;
  namedBarrier(id, threads, true);
  return inAll ? b.allOfLast : b.anyOfLast;
}
int allThreads() { return (static_cast<int>(program().fibers.size()) + 31) / 32 * 32; }

// ---- mbarriers

// What the object's memory holds: code that writes over a barrier is found out.
uint64_t contentOf(uint32_t address) {
  return 0x6d62617272696572ull ^ uint64_t { address } << 40;
}

void initBarrier(uint64_t pointer, int count) {
  uint32_t address = program().shared.address(pointer, 8);
  if (address % 8) fail("mbarrier.init: address not aligned to 8 bytes");
  if (count < 1 || count >= 1 << 20) fail(fmt::format("mbarrier.init: count {}", count));
  program().mbarriers[address] = {count, count, 0, 0, self().thread, false};
  uint64_t content = contentOf(address);
  std::memcpy(program().shared.at(address), &content, 8);
}

std::string phaseText(uint32_t address, const MBarrier& b) {
  return fmt::format("mbarrier at {}: phase {} (parity {}) wants {} of {} arrivals and {} bytes of copies",
                     program().shared.describe(address), b.phase, b.phase & 1, b.pending, b.count, b.bytes);
}

void expectBytes(MBarrier& b, uint32_t address, int64_t bytes) {
  b.bytes += bytes;
  if (b.bytes >= 1 << 20 || b.bytes <= -(1 << 20)) fail(phaseText(address, b) + ": the transaction count has 20 bits");
}
void completePhase(MBarrier& b) {
  if (b.pending || b.bytes) return;
  ++b.phase;
  b.pending = b.count;
}
void arrive(MBarrier& b, uint32_t address, int thread, int count) {
  if (count > b.pending)
    throw std::runtime_error(phaseText(address, b) + fmt::format("; thread {} arrives once too often", thread));
  b.pending -= count;
  completePhase(b);
}
void arrive(uint64_t pointer, int count, int64_t bytes) {
  Program& owner = ownerOf(pointer);
  uint32_t address = owner.shared.address(pointer, 8);
  checkAlive(owner, "an arrival at a barrier of");
  MBarrier& b = barrierAt(owner, address);
  expectBytes(b, address, bytes);
  if (count > b.pending) fail(phaseText(address, b) + fmt::format("; thread {} arrives once too often", self().thread));
  if (count) program().shared.publish(self().thread);
  arrive(b, address, self().thread, count);
}

bool tryWait(uint64_t pointer, uint64_t parity, bool mayBlock) {
  uint32_t address = program().shared.address(pointer, 8);
  MBarrier& b = barrierAt(program(), address);
  auto completed = [&] { return (b.phase & 1) != (parity & 1); };
  if (completed() || !mayBlock) return completed();
  // The hardware gives up after a while: code must try again.
  bool& gaveUp = self().gaveUpWaiting;
  gaveUp = !gaveUp && machine->chance(4);
  if (gaveUp) return false;
  Program& p = program();
  waitUntil(completed, [&] {
    return fmt::format(
        "completion of parity {} of mbarrier at {}: phase {} (parity {}) wants {} of {} arrivals and {} bytes", parity,
        p.shared.describe(address), b.phase, b.phase & 1, b.pending, b.count, b.bytes);
  });
  return true;
}

// ---- clusters

void arriveAtCluster() {
  Cluster* cluster = program().cluster.get();
  if (!cluster) fail("barrier.cluster in a kernel without clusters");
  if (++cluster->arrived < cluster->threads) return;
  cluster->arrived = 0;
  ++cluster->generation;
}
void waitForCluster() {
  Cluster& cluster = *program().cluster;
  const uint64_t mine = ++self().clusterWaits;
  waitUntil([&] { return cluster.generation >= mine; },
            [&] { return fmt::format("barrier.cluster: {} of {} threads are there", cluster.arrived, cluster.threads); });
}

/// What is at the same place in the shared memory of another program of the cluster.
uint64_t mapAddress(uint64_t pointer, uint64_t rank) {
  const uint32_t address = program().shared.address(pointer, 1);
  if (!program().cluster || rank >= program().cluster->programs.size())
    fail(fmt::format("mapa to program {} of the cluster, which does not exist", rank));
  return reinterpret_cast<uint64_t>(program().cluster->programs[rank]->shared.at(address));
}

void fenceInit() {
  for (auto& [address, b] : program().mbarriers)
    if (b.initializer == self().thread) b.visible = true;
}

// ---- registers

void setRegisters(int count, bool increase) {
  Warpgroup& group = warpgroup();
  if (count < 24 || count > 256 || count % 8)
    fail(fmt::format("setmaxnreg {}: not a multiple of 8 from 24 to 256", count));
  if (increase ? count < group.registers : count > group.registers)
    fail(fmt::format("setmaxnreg.{} to {} registers, the warpgroup has {}", increase ? "inc" : "dec", count,
                     group.registers));
  meetOthers(group.meeting, self().thread % 128, increase ? "setmaxnreg.inc" : "setmaxnreg.dec", nullptr, [&] {
    if (increase) return;
    program().freeRegisters += group.registers - count;
    group.registers = count;
  });
  Program& p = program();
  auto granted = [&] {
    if (group.registers < count && p.freeRegisters >= count - group.registers) {
      p.freeRegisters -= count - group.registers;
      group.registers = count;
    }
    return group.registers >= count;
  };
  if (increase)
    waitUntil(granted, [&] {
      return fmt::format("setmaxnreg.inc from {} to {} registers a thread: {} are free", group.registers, count,
                         p.freeRegisters);
    });
}

/// Launches run one by one: nothing is in front, nothing comes early.
template <class Instruction>
bool isStreamOrder(const Instruction& i) {
  return i.is("griddepcontrol.");
}

}  // namespace

MBarrier& barrierAt(Program& p, uint32_t address) {
  auto it = p.mbarriers.find(address);
  if (it == p.mbarriers.end()) fail("no mbarrier was initialised at " + p.shared.describe(address));
  uint64_t content = 0;
  std::memcpy(&content, p.shared.at(address), 8);
  if (content != contentOf(address)) fail("the mbarrier was overwritten at " + p.shared.describe(address));
  if (!it->second.visible && (&p != &program() || self().thread != it->second.initializer))
    fail(fmt::format("thread {} uses the mbarrier at {} that thread {} initialised without fence.mbarrier_init",
                     self().thread, p.shared.describe(address), it->second.initializer));
  return it->second;
}

void bytesArrived(Program& p, uint32_t address, int64_t bytes) {
  MBarrier& b = p.mbarriers.at(address);
  b.bytes -= bytes;
  completePhase(b);
}

void copiesArrived(Program& p, uint32_t address, int thread) {
  p.shared.publish(thread);
  arrive(p.mbarriers.at(address), address, thread, 1);
}

bool barrierInstruction(const Call& c) {
  auto count = [&](size_t i) { return static_cast<int>(c.args[i]); };
  if (c.is("barrier.cta.sync") && c.has(".count"))
    namedBarrier(c.args[0], count(1), true);
  else if (c.is("barrier.cta.sync"))
    namedBarrier(c.args[0], allThreads(), true);
  else if (c.is("barrier.cta.red.and") || c.is("barrier.cta.red.or"))
    c.results[0] = barrierVote(c.args[0], c.has(".count") ? count(1) : allThreads(),
                               (c.args[c.has(".count") ? 2 : 1] & 1) != 0, c.is("barrier.cta.red.and"));
  else if (c.is("barrier.cta.arrive"))
    namedBarrier(c.args[0], count(1), false);
  else if (c.is("bar.warp.sync"))
    meetOthers(warpMeeting(), laneOf(self()), "bar.warp.sync", nullptr, [] {});
  else if (c.is("mbarrier.init"))
    initBarrier(c.args[0], count(1));
  else if (c.is("mbarrier.arrive.expect.tx"))
    arrive(c.args[0], 1, static_cast<int64_t>(c.args[1]));
  else if (c.is("mbarrier.expect.tx"))
    arrive(c.args[0], 0, static_cast<int64_t>(c.args[1]));
  else if (c.is("mbarrier.arrive"))
    arrive(c.args[0], c.inst.arguments > 1 ? count(1) : 1, 0);
  else if (c.is("mbarrier.try.wait.parity") || c.is("mbarrier.test.wait.parity"))
    c.results[0] = tryWait(c.args[0], c.args[1], c.is("mbarrier.try"));
  else if (c.is("barrier.cluster.arrive"))
    arriveAtCluster();
  else if (c.is("barrier.cluster.wait"))
    waitForCluster();
  else if (c.is("fence.mbarrier"))
    fenceInit();
  else if (c.is("fence.proxy.async"))
    program().shared.fence(self().thread);
  else if (c.is("setmaxnreg."))
    setRegisters(count(0), c.is("setmaxnreg.inc"));
  else
    return isStreamOrder(c);
  return true;
}

bool barrierStatement(const AsmStatement& s, AsmFrame& f) {
  auto in = [&](size_t i) { return f.get(s.operands[i]); };
  auto count = [&](size_t i) { return static_cast<int>(in(i)); };
  if (s.is("bar.warp.sync"))
    meetOthers(warpMeeting(), laneOf(self()), "bar.warp.sync", nullptr, [] {});
  else if (s.is("bar.sync") || s.is("bar.cta.sync") || s.is("barrier.sync") || s.is("barrier.cta.sync"))
    namedBarrier(in(0), s.operands.size() > 1 ? count(1) : allThreads(), true);
  else if (s.is("bar.arrive") || s.is("bar.cta.arrive") || s.is("barrier.arrive") || s.is("barrier.cta.arrive"))
    namedBarrier(in(0), count(1), false);
  else if (s.is("mbarrier.init"))
    initBarrier(f.address(s.operands[0]), count(1));
  else if (s.is("mbarrier.arrive.expect_tx"))
    arrive(f.address(s.operands[1]), 1, static_cast<int64_t>(in(2)));
  else if (s.is("mbarrier.expect_tx"))
    arrive(f.address(s.operands[0]), 0, static_cast<int64_t>(in(1)));
  else if (s.is("mbarrier.arrive"))
    arrive(f.address(s.operands[1]), s.operands.size() > 2 ? count(2) : 1, 0);
  else if (s.is("mbarrier.try_wait.parity") || s.is("mbarrier.test_wait.parity"))
    f.set(s.operands[0], tryWait(f.address(s.operands[1]), in(2), s.is("mbarrier.try_wait")));
  else if (s.is("mapa.shared::cluster"))
    f.set(s.operands[0], mapAddress(in(1), in(2)));
  else if (s.is("fence.mbarrier_init"))
    fenceInit();
  else if (s.is("fence.proxy.async"))
    program().shared.fence(self().thread);
  else if (s.is("setmaxnreg."))
    setRegisters(count(0), s.is("setmaxnreg.inc"));
  else
    return isStreamOrder(s);
  return true;
}

}  // namespace tile::testing
