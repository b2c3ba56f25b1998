// check_kernel.cpp - see the header. Reports every offending op, not only the first.
#include "compiler/check_kernel.h"

#include "compiler/abi_params.h"
#include "compiler/dialect/dialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Empty when values of the type may appear in a kernel, else what is wrong with it.
std::string problemOf(Type type) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (isa<ShapedType>(type)) {
    if (!isTileType(type)) {
      out << "a tile is a tensor of rank 1 to " << kMaxTileRank << " with static positive dims and at most "
          << kMaxTileElements << " elements, found '" << type << "'";
      return text;
    }
    if (cast<RankedTensorType>(type).getEncoding()) {
      out << "tiles have no layout before the passes, found '" << type << "'";
      return text;
    }
    type = cast<RankedTensorType>(type).getElementType();
  }
  if (!isNumber(type) && !isa<PtrType, ViewType>(type))
    out << "values are numbers (i1, i8, i16, i32, i64, f8E4M3FN, f8E5M2, f16, bf16, f32, f64), pointers, views and "
           "tiles of "
           "them, found '"
        << type << "'";
  return text;
}

bool isOfTheLanguage(Operation* op) {
  if (isa<func::FuncOp, func::ReturnOp, scf::ForOp, scf::IfOp, scf::WhileOp, scf::YieldOp, scf::ConditionOp>(op))
    return true;
  // What passes make (layout conversions, shared memory, asynchronous copies) is not input.
  if (isa<ProgramIdOp, NumProgramsOp, PtrAddOp, PtrToIntOp, IntToPtrOp, MakeViewOp, ViewPtrOp, ViewDimOp, ViewStrideOp,
          LoadOp, StoreOp, AccumulateOp, GatherOp, ScatterOp, AtomicRmwOp, AtomicCasOp, IotaOp, SplatOp, BroadcastOp,
          ReshapeOp, TransOp, CatOp, ExtractOp, TakeOp, PutOp, HistogramOp, ItemOp, ReduceOp, ScanOp,
          YieldOp, DotOp, BatchDotOp, AssumeOp, AssumeTrueOp, PrintOp, AssertOp, AddRnOp, MulRnOp, DivRnOp, SqrtRnOp, BitReverseOp,
          WidenE2m1Op, WidenE8m0Op,
          OnHostOp, InlineAsmOp>(op) ||
      op->hasTrait<IsFloatFunction>())
    return true;
  StringRef dialect = op->getName().getDialectNamespace();
  return op->isRegistered() && (dialect == "arith" || dialect == "math");
}

/// f8 is a storage type: values move and convert, nothing computes on them. The offending type, or null.
Type computesOnF8(Operation* op) {
  StringRef dialect = op->getName().getDialectNamespace();
  if (dialect != "arith" && dialect != "math") return {};
  if (isa<arith::ConstantOp, arith::ExtFOp, arith::TruncFOp, arith::BitcastOp, arith::SelectOp>(op)) return {};
  for (Type type : op->getOperandTypes())
    if (isF8(type)) return type;
  for (Type type : op->getResultTypes())
    if (isF8(type) && !isa<arith::SIToFPOp, arith::UIToFPOp>(op)) return type;
  return {};
}

LogicalResult checkBody(func::FuncOp kernel) {
  bool good = true;
  auto check = [&](Location where, Type type, StringRef what) {
    if (std::string problem = problemOf(type); !problem.empty()) {
      emitError(where) << what << ": " << problem;
      good = false;
    }
  };
  kernel.walk([&](Operation* op) {
    if (op == kernel.getOperation()) return;
    if (!isOfTheLanguage(op)) {
      op->emitError()
          << "`" << op->getName()
          << "` is not part of the language: kernels consist of arith, math, scf.for, scf.if, scf.while and tile "
             "operations (those that passes make excepted)";
      good = false;
      return;
    }
    if (Type f8 = computesOnF8(op)) {
      op->emitError() << "`" << op->getName() << "` cannot compute on " << f8
                      << ": f8 is a storage type, convert to f16 or f32 first";
      good = false;
    }
    for (Type type : op->getResultTypes()) check(op->getLoc(), type, op->getName().getStringRef());
    for (Region& region : op->getRegions())
      for (Block& block : region)
        for (BlockArgument arg : block.getArguments()) check(arg.getLoc(), arg.getType(), "block argument");
  });
  for (BlockArgument arg : kernel.getArguments())
    if (isa<ShapedType>(arg.getType())) {
      emitError(arg.getLoc()) << "parameter " << arg.getArgNumber()
                              << " is a tile: kernels take pointers, views and scalars, found " << arg.getType();
      good = false;
    }
  return success(good);
}

}  // namespace

FailureOr<func::FuncOp> findKernel(ModuleOp module) {
  SmallVector<func::FuncOp> kernels;
  for (Operation& op : *module.getBody()) {
    auto func = dyn_cast<func::FuncOp>(&op);
    if (!func) {
      op.emitError() << "expected functions at the top of the module, found `" << op.getName() << "`";
      return failure();
    }
    if (func->hasAttr("tile.kernel")) kernels.push_back(func);
  }
  if (kernels.empty()) {
    emitError(module.getLoc()) << "expected one function with the attribute `tile.kernel`, found none";
    return failure();
  }
  if (kernels.size() > 1) {
    auto error = kernels[1].emitError() << "expected one function with the attribute `tile.kernel`, found "
                                        << kernels.size();
    error.attachNote(kernels[0].getLoc()) << "the first one is `" << kernels[0].getSymName() << "`";
    return failure();
  }
  func::FuncOp kernel = kernels.front();
  if (kernel.isExternal()) {
    kernel.emitError() << "kernel `" << kernel.getSymName() << "` has no body";
    return failure();
  }
  if (!kernel.getResultTypes().empty()) {
    kernel.emitError() << "a kernel returns nothing, found " << kernel.getResultTypes();
    return failure();
  }
  if (!kernel.getBody().hasOneBlock()) {
    kernel.emitError() << "a kernel is one block with structured control flow (scf), found "
                       << kernel.getBody().getBlocks().size() << " blocks";
    return failure();
  }
  if (failed(checkBody(kernel))) return failure();
  return kernel;
}

}  // namespace tile::ir
