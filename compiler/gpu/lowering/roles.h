// roles.h - kernels with roles (tile_roles.td): the state that their lowering keeps besides the values of ops, and the
// functions that lower their ops.
//
// Threads: the consumers are warps 0 .. tile.num_warps - 1, the producer's warpgroup comes last. Named barriers: 0 all
// threads, 1 the consumers, 2 + g consumer warpgroup g, 8 + g the turn of warpgroup g.
#pragma once
#include "compiler/gpu/access/tma_box.h"
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

inline constexpr int kGroupThreads = 128, kGroupWarps = 4;
inline constexpr int kConsumerBarrier = 1, kGroupBarrier = 2, kTurnBarrier = 8;
inline constexpr int kMaxConsumerGroups = kTurnBarrier - kGroupBarrier;

/// The position of one role in a ring, as LLVM variables of the entry block (the optimiser makes them registers).
struct RingCursor {
  llvm::AllocaInst *slot = nullptr, *phase = nullptr;  ///< of the next reserve or acquire
  llvm::AllocaInst* oldest = nullptr;                  ///< slot of the next release
};

/// The tensor map of a view made in the kernel, which the producer writes (made_maps.cpp).
struct MadeMap {
  MakeViewOp view;
  TensorMapInfo map;                          ///< `dims` are the view's; no param
  llvm::SmallSetVector<mlir::Value, 2> rings;  ///< that copies with it fill
  llvm::SmallVector<llvm::AllocaInst*> written = {};  ///< the values (i64) that it was last written with
  llvm::AllocaInst* place = nullptr;                  ///< i32: which of its places it is in
};

class KernelRoles {
 public:
  /// Analyses the kernel before its LLVM function exists; fails after diagnostics if its parts do not fit together.
  llvm::LogicalResult read(mlir::func::FuncOp kernel, const Facts& facts, const Target& target, int numWarps);

  bool hasRoles() const { return specialize_ != nullptr; }
  SpecializeOp specialize() const { return specialize_; }
  int groups() const { return groups_; }  ///< of consumers
  bool hasWorkLoop() const { return hasWorkLoop_; }
  bool usesTickets() const { return usesTickets_; }
  bool hasTmaStores() const { return hasTmaStores_; }
  bool gathers() const { return gathers_; }  ///< the producer is a whole warpgroup, whose threads copy
  bool asks() const { return asks_; }        ///< the producer is a whole warp, for ballots
  bool isThread() const { return !gathers_ && !asks_; }  ///< the producer
  int cluster() const { return cluster_; }   ///< programs of a cluster, which copy for each other
  /// Stages of the ring are filled by copies of all programs of the cluster, and all of them give a stage back.
  bool isClustered(mlir::Value ring) const { return clustered_.contains(ring); }
  llvm::ArrayRef<RingAllocOp> rings() const { return rings_; }
  const std::vector<TensorMapInfo>& tensorMaps() const { return maps_; }
  const TmaBox& boxOf(mlir::Operation* op) const { return uses_.find(op)->second.box; }
  /// The tensor map of a copy of a tma_load or tma_store: a parameter, or what the producer has written.
  llvm::Value* mapOf(Emitter& e, mlir::Operation* op, const TmaCopy& copy) const;
  /// Of a tma_load: the map of the box with which the view ends (TensorMapInfo::remainder); null: it needs none.
  llvm::Value* remainderOf(mlir::Operation* op) const;
  int64_t remainderBytes() const { return remainderBytes_; }  ///< of the largest copy of such a box
  std::vector<MadeMap>& madeMaps() { return made_; }
  /// Arguments that are strides of views made in the kernel: every launch checks that they are positive.
  llvm::ArrayRef<unsigned> positiveArguments() const { return positive_.getArrayRef(); }

  // Filled while emitting.
  llvm::SmallVector<llvm::Value*> mapParams;
  llvm::Value* grid[3] = {};       ///< i32, of kernels with work loops
  llvm::Value* tickets = nullptr;  ///< TicketCounter
  llvm::Value* program[3] = {};    ///< ids inside a work loop, null outside
  llvm::AllocaInst* madeBlock = nullptr;  ///< i32, in the copying thread: the block with this program's maps
  llvm::AllocaInst* madeChanged = nullptr;  ///< i1: some map is not what the copy engine knows
  llvm::SmallVector<size_t> madeUnknown;    ///< maps that it may not know
  llvm::DenseMap<mlir::Value, RingCursor> cursors;
  /// Chunks that copies have loaded into registers and not yet stored: the loads of the next copy start first.
  struct ReadChunk {
    llvm::Value *target, *value, *write;
  };
  llvm::SmallVector<ReadChunk> readChunks;
  bool storesChunks = false;  ///< threads of the producer fill part of the current stage by plain stores

 private:
  llvm::LogicalResult readRings(mlir::func::FuncOp kernel, int numWarps);
  llvm::LogicalResult readCopies(mlir::func::FuncOp kernel, const Facts& facts);
  void addRemainders(mlir::func::FuncOp kernel, const Facts& facts);
  size_t mapOfLaunch(const TensorMapInfo& map);
  llvm::LogicalResult checkRoles(mlir::func::FuncOp kernel);

  struct Use {
    TmaBox box;
    size_t map, narrow;                    ///< indices into madeMaps where box.made, else into tensorMaps
    std::optional<size_t> remainder = {};  ///< index into tensorMaps
  };
  size_t mapFor(const TmaBox& box, const TensorMapInfo& map, mlir::Value ring);
  SpecializeOp specialize_;
  int groups_ = 0, cluster_ = 1;
  llvm::DenseSet<mlir::Value> clustered_;
  bool hasWorkLoop_ = false, usesTickets_ = false, hasTmaStores_ = false, gathers_ = false, asks_ = false;
  llvm::SmallVector<RingAllocOp> rings_;
  std::vector<TensorMapInfo> maps_;
  std::vector<MadeMap> made_;
  llvm::SmallSetVector<unsigned, 4> positive_;
  int64_t remainderBytes_ = 0;
  llvm::DenseMap<mlir::Operation*, Use> uses_;
};

/// Ops this header's functions lower; emitRoleOp dispatches.
bool isRoleOp(mlir::Operation* op);
llvm::LogicalResult emitRoleOp(Emitter& e, mlir::Operation* op);

// roles.cpp
llvm::LogicalResult emitSpecialize(Emitter& e, SpecializeOp op);
void emitTurnWait(Emitter& e);
void emitTurnPass(Emitter& e);
/// A named barrier for `threads` threads: sync waits, arrive only counts this thread.
void namedBarrier(Emitter& e, llvm::Value* id, int threads);
void namedArrive(Emitter& e, llvm::Value* id, int threads);
/// i32: this thread's warpgroup.
llvm::Value* groupIndex(Emitter& e);
/// i1: true in one thread of the warp, always the same one.
llvm::Value* electThread(Emitter& e);

// rings.cpp
llvm::LogicalResult emitRingAlloc(Emitter& e, RingAllocOp op);
/// Initialises all barriers of the kernel's rings, by one thread.
void emitRingInit(Emitter& e);
/// Wait for the next empty (reserve) or full (acquire) stage and step the role's cursor; return the index of the stage.
llvm::Value* ringReserve(Emitter& e, mlir::Value ring);
llvm::Value* ringAcquire(Emitter& e, mlir::Value ring);
/// Whether all warps of the group have passed the wait for the stage when the group's first thread releases it. They
/// have if there is a product behind the acquire: it needs all four. Without one (the loop around it may run zero
/// times), a slow warp could still be waiting when the stage has been filled again, for a phase that is over for good.
bool groupMetSinceAcquire(RingReleaseOp release);
/// `meet`: with a barrier of the group's warps in front.
void ringRelease(Emitter& e, mlir::Value ring, llvm::Value* enable, bool meet);
/// Whether threads have loaded from the stage by ordinary instructions since their last fence. Bulk copies are not
/// ordered behind such loads, which may still be in flight when the stage is released (seen on an H200 with rings of
/// one stage, and with products of single warps where two programs shared a multiprocessor).
bool needsFence(RingReleaseOp release);
/// Whether a bulk store uses the stage as its staging buffer: it must have been read before the stage is released.
bool hostsStore(RingReleaseOp release);
llvm::Value* fullBarrier(Emitter& e, mlir::Value ring, llvm::Value* slot);
/// The plain data that a stage has beside its buffers.
llvm::Value* ringPayload(Emitter& e, mlir::Value ring, llvm::Value* slot);
llvm::Value* emptyBarrier(Emitter& e, mlir::Value ring, llvm::Value* slot);
/// Advances the role's cursor by one stage; returns slot and phase from before.
std::pair<llvm::Value*, llvm::Value*> ringStep(Emitter& e, mlir::Value ring);
void waitParity(Emitter& e, llvm::Value* barrier, llvm::Value* parity);
/// Waits until all copies into the ring that the producer has started have landed.
void waitForFills(Emitter& e, mlir::Value ring);
void expectBytes(Emitter& e, llvm::Value* barrier, int64_t bytes);
void arrive(Emitter& e, llvm::Value* barrier, llvm::Value* predicate);

// filling.cpp: producers of a whole warpgroup; all of its threads run this code
/// Runs `body` on one thread of the producer, always the same one.
void byFirstThread(Emitter& e, llvm::function_ref<void()> body);
/// Either kind of producer: waits until the next stage is empty; one thread then runs `write` on its payload and counts
/// it as full. Returns slot and phase.
std::pair<llvm::Value*, llvm::Value*> fillStage(Emitter& e, mlir::Value ring,
                                                llvm::function_ref<void(llvm::Value* payload)> write);
llvm::LogicalResult emitSharedReserve(Emitter& e, RingReserveOp op);
llvm::LogicalResult emitRingCommit(Emitter& e, RingCommitOp op);
/// Passes the first thread's `position` to the consumers and to all warps of the producer; returns it.
llvm::Value* publishToAll(Emitter& e, mlir::Value queue, llvm::Value* position);

// made_maps.cpp: tensor maps of views made in the kernel, by the producer's thread that copies
/// In front of the producer's work: reserves memory for them that no other program uses until giveBackMadeMaps.
void takeMadeMaps(Emitter& e);
void writeMadeMaps(Emitter& e, TmaDescribeOp op);
/// Behind the producer's work.
void giveBackMadeMaps(Emitter& e);
/// The module's array of this name, all zeros when it is loaded.
llvm::GlobalVariable* zeroedArray(Emitter& e, llvm::StringRef name, llvm::Type* element, int64_t count, uint64_t align);
/// The address of map `index`.
llvm::Value* madeMapAddress(Emitter& e, size_t index);

// handing.cpp: scalars from the producer to the consumers
void emitHandOver(Emitter& e, HandOverOp op);
void emitTakeOver(Emitter& e, TakeOverOp op);

// turning.cpp: the other warps of a producer that is one thread
llvm::LogicalResult emitSmemTurn(Emitter& e, SmemTurnOp op);
/// Marks a stage that these warps have filled as full.
llvm::LogicalResult emitTurnedCommit(Emitter& e, RingCommitOp op);

// work_loop.cpp
llvm::LogicalResult emitWorkLoop(Emitter& e, WorkLoopOp op);

// tma.cpp
llvm::LogicalResult emitTmaLoad(Emitter& e, TmaLoadOp op);
llvm::LogicalResult emitTmaStore(Emitter& e, TmaStoreOp op);
/// The thread that issues bulk stores for this warpgroup waits until at most `pending` of them still read their
/// buffers.
void waitForReads(Emitter& e, int pending);
/// At the end of the consumers' work: waits until every bulk store has been written.
void finishTmaStores(Emitter& e);

}  // namespace tile::ir
