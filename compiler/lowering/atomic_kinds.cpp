// atomic_kinds.cpp - see atomic_kinds.h.
#include "compiler/lowering/atomic_kinds.h"

namespace tile::ir {

llvm::AtomicOrdering llvmOrdering(MemOrder order) {
  switch (order) {
    case MemOrder::relaxed:
      return llvm::AtomicOrdering::Monotonic;
    case MemOrder::acquire:
      return llvm::AtomicOrdering::Acquire;
    case MemOrder::release:
      return llvm::AtomicOrdering::Release;
    case MemOrder::acq_rel:
      return llvm::AtomicOrdering::AcquireRelease;
  }
  return llvm::AtomicOrdering::AcquireRelease;
}

llvm::AtomicRMWInst::BinOp llvmBinOp(RmwKind kind, bool isFloat) {
  using Op = llvm::AtomicRMWInst;
  switch (kind) {
    case RmwKind::add:
      return isFloat ? Op::FAdd : Op::Add;
    case RmwKind::max:
      return isFloat ? Op::FMax : Op::Max;
    case RmwKind::min:
      return isFloat ? Op::FMin : Op::Min;
    case RmwKind::umax:
      return Op::UMax;
    case RmwKind::umin:
      return Op::UMin;
    case RmwKind::and_:
      return Op::And;
    case RmwKind::or_:
      return Op::Or;
    case RmwKind::xor_:
      return Op::Xor;
    case RmwKind::exchange:
      return Op::Xchg;
  }
  return Op::Add;
}

}  // namespace tile::ir
