// work_loop.cpp - kernels launched with fewer programs than the grid has positions: each program takes one position
// after another, in a fixed stride or as tickets drawn by the producer. A program's first position is always its own
// number, so the first tile waits for no atomic.
#include "compiler/gpu/lowering/roles.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace mlir;

namespace {

llvm::Value* programIndex(Emitter& e) { return e.b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}); }
llvm::Value* programCount(Emitter& e) { return e.b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x, {}); }

/// Adds 1 to a field of the ticket counter; returns what it was. `order` as PTX spells it: LLVM's own atomics lose it.
llvm::Value* atomicIncrement(Emitter& e, size_t offset, llvm::StringRef order) {
  llvm::Value* field = e.b.CreatePtrAdd(e.roles().tickets, e.i64(static_cast<int64_t>(offset)));
  return e.inlineAsm(e.b.getInt32Ty(), ("atom." + order + ".gpu.global.add.u32 $0, [$1], 1;").str(), "=r,l,~{memory}",
                     {field});
}

/// Producer: hands a position to every consumer.
void publish(Emitter& e, Value queue, llvm::Value* position) {
  fillStage(e, queue, [&](llvm::Value* to) { e.b.CreateAlignedStore(position, to, llvm::Align(4)); });
}

/// Producer, after its last ticket: the last program of all puts the counter back for the next launch.
void retire(Emitter& e) {
  llvm::IRBuilder<>& b = e.b;
  llvm::Value* before = atomicIncrement(e, offsetof(TicketCounter, done), "acq_rel");
  llvm::Value* isLast = b.CreateICmpEQ(before, b.CreateSub(programCount(e), e.i32(1)));
  emitIf(e, isLast, [&] {
    for (size_t offset : {offsetof(TicketCounter, next), offsetof(TicketCounter, done)})
      b.CreateAlignedStore(e.i32(0), b.CreatePtrAdd(e.roles().tickets, e.i64(static_cast<int64_t>(offset))),
                           llvm::Align(4));
  });
}

using Place = std::tuple<llvm::Value*, llvm::Value*, llvm::Value*>;

/// x, y and z of a position, x fastest.
Place placeInGrid(Emitter& e, llvm::Value* position) {
  llvm::IRBuilder<>& b = e.b;
  const auto& grid = e.roles().grid;
  llvm::Value* rest = b.CreateUDiv(position, grid[0]);
  return {b.CreateURem(position, grid[0]), b.CreateURem(rest, grid[1]), b.CreateUDiv(rest, grid[1])};
}

/// Positions along x of a band (but for the last one), of about `band`: as even as can be.
llvm::Value* widthOfBands(Emitter& e, llvm::Value* band) {
  llvm::IRBuilder<>& b = e.b;
  llvm::Value* x = e.roles().grid[0];
  band = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, band, x);
  llvm::Value* bands = b.CreateUDiv(b.CreateAdd(x, b.CreateSub(band, e.i32(1))), band);
  return b.CreateUDiv(b.CreateAdd(x, b.CreateSub(bands, e.i32(1))), bands);
}

/// The same in bands of x. Planes are only counted where there are several: it is a division less on the way to a tile.
Place placeInBands(Emitter& e, llvm::Value* position, llvm::Value* width) {
  llvm::IRBuilder<>& b = e.b;
  const auto& grid = e.roles().grid;
  llvm::Value* plane = b.CreateMul(grid[0], grid[1]);
  auto *from = b.GetInsertBlock(), *several = llvm::BasicBlock::Create(b.getContext(), "planes", from->getParent()),
       *after = llvm::BasicBlock::Create(b.getContext(), "plane", from->getParent());
  b.CreateCondBr(b.CreateICmpULT(position, plane), after, several);
  b.SetInsertPoint(several);
  llvm::Value *later = b.CreateUDiv(position, plane), *inLater = b.CreateURem(position, plane);
  b.CreateBr(after);
  b.SetInsertPoint(after);
  auto either = [&](llvm::Value* inFirst, llvm::Value* inOthers) {
    llvm::PHINode* value = b.CreatePHI(b.getInt32Ty(), 2);
    value->addIncoming(inFirst, from);
    value->addIncoming(inOthers, several);
    return value;
  };
  llvm::Value *z = either(e.i32(0), later), *inPlane = either(position, inLater);

  llvm::Value* size = b.CreateMul(width, grid[1]);
  llvm::Value *begin = b.CreateMul(b.CreateUDiv(inPlane, size), width), *rest = b.CreateURem(inPlane, size);
  llvm::Value* here = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, width, b.CreateSub(grid[0], begin));
  return {b.CreateAdd(begin, b.CreateURem(rest, here)), b.CreateUDiv(rest, here), z};
}

}  // namespace

LogicalResult emitWorkLoop(Emitter& e, WorkLoopOp op) {
  llvm::IRBuilder<>& b = e.b;
  KernelRoles& roles = e.roles();
  llvm::Function* function = b.GetInsertBlock()->getParent();
  const Value queue = op.getQueue();
  const bool draws = queue && e.role == Emitter::Role::producer;
  const bool shares = draws && !roles.isThread();  // with the producer's other threads
  auto block = [&](const char* name) { return llvm::BasicBlock::Create(b.getContext(), name, function); };

  llvm::Value* total = b.CreateMul(b.CreateMul(roles.grid[0], roles.grid[1]), roles.grid[2]);
  llvm::Value* width = op.getBand() ? widthOfBands(e, e.scalar(op.getBand())) : nullptr;
  llvm::Value *first = programIndex(e), *count = programCount(e);
  auto *before = b.GetInsertBlock(), *head = block("work"), *body = block("work.body"), *after = block("work.end");
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* next = nullptr;
  llvm::Value* position = nullptr;
  if (queue && !draws) {
    llvm::Value* slot = ringAcquire(e, queue);
    position = b.CreateAlignedLoad(b.getInt32Ty(), ringPayload(e, queue, slot), llvm::Align(4));
    // The same in all lanes, also to the assembler: with more than one meeting of warps (bar.warp.sync) in the loop it
    // takes the branch behind for a divergent one otherwise, and keeps nothing of the loop in uniform registers.
    position = e.shuffleIdx(position, e.i32(0));
    ringRelease(e, queue, nullptr, false);
  } else {
    position = next = b.CreatePHI(b.getInt32Ty(), 2, "position");
    next->addIncoming(first, before);
    // Positions past the end tell the others to stop.
    if (shares)
      position = publishToAll(e, queue, position);
    else if (draws)
      publish(e, queue, position);
  }
  b.CreateCondBr(b.CreateICmpULT(position, total), body, after);

  b.SetInsertPoint(body);
  std::tie(roles.program[0], roles.program[1], roles.program[2]) =
      width ? placeInBands(e, position, width) : placeInGrid(e, position);
  Block& work = op.getBody().front();
  for (auto [arg, id] : llvm::zip(work.getArguments(), roles.program)) e.define(arg, id);
  if (failed(e.emitBlock(work))) return failure();
  std::fill(std::begin(roles.program), std::end(roles.program), nullptr);
  if (next) {
    llvm::Value* ticket = position;
    auto draw = [&] { ticket = atomicIncrement(e, offsetof(TicketCounter, next), "relaxed"); };
    if (shares) {  // only the first thread's is published
      llvm::AllocaInst* drawn = e.variable("ticket");
      byFirstThread(e, [&] {
        draw();
        b.CreateStore(ticket, drawn);
      });
      ticket = b.CreateLoad(b.getInt32Ty(), drawn);
    } else if (draws) {
      draw();
    }
    next->addIncoming(b.CreateAdd(count, ticket), b.GetInsertBlock());
  }
  b.CreateBr(head);

  b.SetInsertPoint(after);
  if (shares)
    byFirstThread(e, [&] { retire(e); });
  else if (draws)
    retire(e);
  return success();
}

}  // namespace tile::ir
