// machine.h - the simulated GPU: programs of fibers, one per thread, that run until they must wait; a scheduler that
// resumes them in random order; and asynchronous operations that happen between their issue and the wait for them, at a
// time the schedule chooses. Instructions are in *_instructions.cpp, grouped by what they are about.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "tests/gpu/simt/fiber.h"
#include "tests/gpu/simt/module.h"
#include "tests/gpu/simt/ptx_asm.h"
#include "tests/gpu/simt/shared_memory.h"

namespace tile::testing {

struct Program;
struct Warpgroup;

/// When asynchronous operations happen: at any time, only when nobody can go on without, or at once.
enum class Timing { random, late, early };

/// A cp.async of one thread.
struct Copy {
  char* to;
  const char* from;
  int bytes, read;
};
/// Bulk stores of one thread: those of one commit_group, and how far they are.
struct BulkGroup {
  int reading = 0, writing = 0;                        ///< operations that have not done so
  std::vector<std::pair<uint32_t, uint32_t>> sources;  ///< shared memory held until waited for
};

struct Fiber {
  Context context;
  Program* program = nullptr;
  int thread = 0;
  bool done = false, started = false;
  const llvm::function_ref<bool()>* ready = nullptr;  ///< what it waits for; null: it can run
  const llvm::function_ref<std::string()>* describe = nullptr;
  std::vector<Copy> openCopies;
  std::deque<std::vector<Copy>> copyGroups;
  std::shared_ptr<BulkGroup> openBulk;
  std::deque<std::shared_ptr<BulkGroup>> bulkGroups;
  bool wgmmaFenced = false, gaveUpWaiting = false;
  uint64_t wgmmaWaited = 0;   ///< products this thread knows to be finished
  uint64_t clusterWaits = 0;  ///< how often it has waited at the cluster's barrier
};

/// Threads that do something together: the last to come does it for all.
struct Meeting {
  int size = 0, arrived = 0;
  uint64_t generation = 0;
  std::string instruction;
  std::vector<void*> posted;
};

struct NamedBarrier {
  int expected = 0, arrived = 0;
  uint64_t generation = 0;
  bool all = false, any = false, allOfLast = false, anyOfLast = false;  ///< votes of those there; of the last meeting
};

/// An mbarrier object. `pending` arrivals and `bytes` of copies keep the current phase from completing.
struct MBarrier {
  int count = 0, pending = 0;
  int64_t bytes = 0;
  uint64_t phase = 0;  ///< completed phases; the parity of the current one is phase & 1
  int initializer = 0;
  bool visible = false;  ///< fence.mbarrier_init by the initializer
};

/// Programs that reach each other's shared memory.
struct Cluster {
  std::vector<Program*> programs;
  int threads = 0, arrived = 0;  ///< of all programs; at barrier.cluster.arrive
  uint64_t generation = 0;       ///< of barrier.cluster
};

struct Program {
  Program(char* window, uint32_t sharedBytes, const std::vector<BufferInfo>& buffers, int threads);
  ~Program();
  int id[3] = {0, 0, 0};
  SharedMemory shared;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Meeting> warps;
  std::vector<std::unique_ptr<Warpgroup>> groups;
  std::array<NamedBarrier, 16> barriers;
  std::map<uint32_t, MBarrier> mbarriers;
  std::vector<int> leaders;  ///< per warp: the lane elect.sync picks
  int freeRegisters = 0;
  std::shared_ptr<Cluster> cluster;  ///< null: alone
  int rank = 0;                      ///< in the cluster
};
/// Throws when all threads of the program have ended: its shared memory may be another's by then.
void checkAlive(const Program& program, const char* what);
/// The program whose shared memory the pointer is in: this one, or one of its cluster.
Program& ownerOf(uint64_t pointer);

/// Something that happens later. Tasks of one queue happen in order.
struct Task {
  uint64_t queue;
  std::function<void()> run;
  std::string what;
};

struct Machine {
  void (*entry)(const uint64_t*) = nullptr;
  const uint64_t* slots = nullptr;
  int grid[3] = {1, 1, 1};
  Context scheduler;
  Fiber* current = nullptr;
  std::mt19937 random;
  Timing timing = Timing::random;
  std::vector<Task> tasks;
  uint64_t nextQueue = 1;
  /// Bulk loads under way that read one tensor map, and its bytes when the first of them began.
  struct MapReads {
    int copies = 0;
    std::array<uint8_t, 128> bytes{};
  };
  std::unordered_map<uint64_t, MapReads> readsOfMaps;  ///< by the address of the map
  std::string failure;  ///< first fault of a fiber: exceptions cannot cross its compiled frames

  bool chance(int oneIn) { return random() % static_cast<uint32_t>(oneIn) == 0; }
  /// Runs programs side by side until all have ended; throws on violations, traps and deadlocks.
  void run(std::vector<Program*> programs);
  void later(uint64_t queue, std::string what, std::function<void()> run);

 private:
  bool runSomeTask();
  [[noreturn]] void reportDeadlock(const std::vector<Program*>& programs);
};
extern Machine* machine;

inline Fiber& self() { return *machine->current; }
inline Program& program() { return *machine->current->program; }
[[noreturn]] void fail(const std::string& what);
[[noreturn]] void stopFiber();  ///< this fiber never runs again

/// Suspends this fiber until `ready`; `describe` says what it waits for, in dumps of deadlocks.
void waitUntil(llvm::function_ref<bool()> ready, llvm::function_ref<std::string()> describe);

/// All threads of a meeting post a record; the last runs body(std::vector<Record*>) and everybody goes on.
void meetOthers(Meeting& meeting, int index, const char* instruction, void* record, llvm::function_ref<void()> body);
template <class Record, class Body>
void collective(Meeting& meeting, int index, const char* instruction, Record& record, Body body) {
  meetOthers(meeting, index, instruction, &record, [&] {
    std::vector<Record*> all;
    for (void* p : meeting.posted) all.push_back(static_cast<Record*>(p));
    body(all);
  });
}
inline Meeting& warpMeeting() { return program().warps[static_cast<size_t>(self().thread / 32)]; }
inline int laneOf(const Fiber& fiber) { return fiber.thread % 32; }

/// One executed instruction.
struct Call {
  const Instruction& inst;
  const uint64_t* args;
  uint64_t* results;
  bool is(const char* prefix) const { return inst.name.rfind(prefix, 0) == 0; }
  bool has(const char* part) const { return inst.name.find(part) != std::string::npos; }
};
// Families of instructions. Each returns false when the instruction is not one of its own. The second form is a
// statement of inline assembly.
bool basicInstruction(const Call& call);
bool basicStatement(const AsmStatement& s, AsmFrame& f);
bool matrixInstruction(const Call& call);
bool matrixStatement(const AsmStatement& s, AsmFrame& f);
bool barrierInstruction(const Call& call);
bool barrierStatement(const AsmStatement& s, AsmFrame& f);
bool bulkInstruction(const Call& call);
bool bulkStatement(const AsmStatement& s, AsmFrame& f);
bool wgmmaInstruction(const Call& call);
bool wgmmaStatement(const AsmStatement& s, AsmFrame& f);
bool userStatement(const AsmStatement& s, AsmFrame& f);

}  // namespace tile::testing
