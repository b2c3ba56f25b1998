// emitter.cpp - the function around a kernel, its parameters, where tiles lie, and which family emits an op.
#include "compiler/host/emitter.h"

#include "compiler/host/nest.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/MathExtras.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

constexpr int64_t kMaxArenaBytes = 64 << 20;
constexpr int kLongBody = 200;  // loads and stores

/// What the kernel may use of the machine: exact arithmetic keeps subnormals, which the matrix unit does not.
HostFeatures featuresFor(const Target& target, const CompileOptions& options) {
  HostFeatures features = hostFeatures(target);
  features.amxBf16 &= options.fastMath;
  return features;
}

}  // namespace

Emitter::Emitter(func::FuncOp kernel, const Target& target, const CompileOptions& options, llvm::LLVMContext& context,
                 KernelBinary& info)
    : kernel(kernel),
      target(target),
      options(options),
      info(info),
      plan(kernel, featuresFor(target, options)),
      b(context),
      numbers(b, target) {}

std::unique_ptr<llvm::Module> Emitter::run() {
  if (failed(reportArena())) return nullptr;
  int accesses = 0;
  kernel.walk([&](Operation* op) { accesses += isa<LoadOp, StoreOp>(op); });
  isLongBody_ = accesses > kLongBody;
  llvm::LLVMContext& context = b.getContext();
  // A kernel called `exp` must not be what the code generator finds when it wants libm's.
  if (!StringRef(info.entry).starts_with("tile.")) info.entry = "tile." + info.entry;
  module = std::make_unique<llvm::Module>(info.entry, context);
  auto type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy(), b.getPtrTy()}, false);
  function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, info.entry, *module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr(llvm::Attribute::NullPointerIsValid);  // tiles of addresses count from there
  for (unsigned i = 0; i < 3; ++i) {
    function->addParamAttr(i, llvm::Attribute::NoAlias);
    function->addParamAttr(i, llvm::Attribute::NonNull);
    if (i < 2) function->addParamAttr(i, llvm::Attribute::ReadOnly);
  }
  program = function->getArg(1);
  program->setName("program");
  arena = function->getArg(2);
  arena->setName("arena");
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  exit = llvm::BasicBlock::Create(context, "exit");
  readParameters();
  LogicalResult ok = emitBlock(kernel.getBody().front());
  if (succeeded(ok)) b.CreateBr(exit);
  exit->insertInto(function);
  b.SetInsertPoint(exit);
  b.CreateRetVoid();
  if (failed(ok)) return nullptr;
  std::string complaint;
  llvm::raw_string_ostream stream(complaint);
  if (llvm::verifyModule(*module, &stream)) {
    kernel.emitError() << "internal error: the host back end made invalid LLVM IR: " << complaint;
    return nullptr;
  }
  return std::move(module);
}

LogicalResult Emitter::reportArena() {
  info.threads = 1;
  info.buffers.clear();
  for (const Buffer& buffer : plan.buffers()) {
    if (buffer.bytes == 0) continue;
    BufferInfo row;
    row.what = buffer.what;
    if (auto at = buffer.where->findInstanceOf<FileLineColLoc>()) {
      row.file = at.getFilename().str();
      row.line = at.getLine();
    }
    row.offset = static_cast<uint32_t>(std::min<int64_t>(buffer.offset, UINT32_MAX));
    row.bytes = static_cast<uint32_t>(std::min<int64_t>(buffer.bytes, UINT32_MAX));
    info.buffers.push_back(std::move(row));
  }
  llvm::stable_sort(info.buffers, [](const BufferInfo& x, const BufferInfo& y) { return x.offset < y.offset; });
  if (plan.arenaBytes() <= kMaxArenaBytes) {
    info.arena_bytes = static_cast<uint32_t>(plan.arenaBytes());
    return success();
  }
  InFlightDiagnostic error = kernel.emitError()
                             << "tiles need " << plan.arenaBytes() << " bytes of scratch per program, the limit is "
                             << kMaxArenaBytes << "; use smaller tiles";
  SmallVector<const Buffer*> largest;
  for (const Buffer& buffer : plan.buffers()) largest.push_back(&buffer);
  llvm::stable_sort(largest, [](auto* x, auto* y) { return x->bytes > y->bytes; });
  for (const Buffer* buffer : ArrayRef(largest).take_front(8))
    if (buffer->bytes > 0) error.attachNote(buffer->where) << buffer->bytes << " bytes: " << buffer->what;
  return failure();
}

void Emitter::readParameters() {
  uint32_t slot = 0;
  llvm::Value* slots = function->getArg(0);
  slots->setName("slots");
  auto next = [&] { return b.CreateConstInBoundsGEP1_32(b.getInt64Ty(), slots, slot++); };
  for (BlockArgument arg : kernel.getArguments()) {
    Words& w = words[arg];
    auto type = dyn_cast<ViewType>(arg.getType());
    if (!type) {
      w.push_back(numbers.load(arg.getType(), next(), 1));
      continue;
    }
    w.push_back(b.CreateLoad(b.getPtrTy(), next()));
    for (int64_t d = 0; d < 2 * type.getRank(); ++d) w.push_back(b.CreateLoad(b.getInt64Ty(), next()));
    if (auto unit = kernel.getArgAttrOfType<IntegerAttr>(arg.getArgNumber(), "tile.unit_stride"))
      if (unit.getInt() >= 0 && unit.getInt() < type.getRank()) w[1 + type.getRank() + unit.getInt()] = i64(1);
  }
  info.uses_debug_ring = false;
  kernel.walk([&](Operation* op) { info.uses_debug_ring |= isa<PrintOp, AssertOp>(op); });
  if (info.uses_debug_ring) debugRing = b.CreateLoad(b.getPtrTy(), next(), "ring");
}

View Emitter::view(Value v) const {
  const Words& w = words.find(v)->second;
  int64_t rank = cast<ViewType>(v.getType()).getRank();
  View view{w[0], {}, {}};
  view.dims.append(w.begin() + 1, w.begin() + 1 + rank);
  view.strides.append(w.begin() + 1 + rank, w.end());
  return view;
}

unsigned Emitter::vectorWidth(int64_t bytes, int64_t limit, int vectors) const {
  int64_t lanes = std::max<int64_t>(1, target.vectorBytes / std::max<int64_t>(bytes, 4)) * vectors;
  return static_cast<unsigned>(
      std::min<int64_t>(lanes, llvm::bit_floor(static_cast<uint64_t>(std::max<int64_t>(limit, 1)))));
}

llvm::Value* Emitter::offsetBy(llvm::Value* pointer, Type element, llvm::Value* index) {
  return b.CreateGEP(numbers.inMemory(element), pointer, index);
}

llvm::Value* Emitter::arenaBase(const Ref& ref) {
  if (auto it = elsewhere_.find(plan.root(ref.buffer)); it != elsewhere_.end()) return it->second;
  return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), arena, plan.buffers()[plan.root(ref.buffer)].offset);
}

llvm::Value* Emitter::address(const Ref& ref, Type element, llvm::Value* index) {
  return b.CreateInBoundsGEP(numbers.inMemory(element), arenaBase(ref), index);
}

llvm::Function* Emitter::shared(const std::string& key, ArrayRef<llvm::Type*> parameters,
                                llvm::function_ref<void(ArrayRef<llvm::Value*>)> body, llvm::Type* result) {
  if (llvm::Function* known = module->getFunction(key)) return known;
  auto* type = llvm::FunctionType::get(result ? result : b.getVoidTy(), parameters, false);
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  llvm::Function* caller = function;
  function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, key, *module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr(llvm::Attribute::NullPointerIsValid);
  function->addFnAttr(llvm::Attribute::NoInline);
  SmallVector<llvm::Value*> args;
  for (llvm::Argument& arg : function->args()) {
    // Tiles and the user's tensors never overlap, and no two operands of one op share what either writes.
    if (arg.getType()->isPointerTy()) arg.addAttr(llvm::Attribute::NoAlias);
    args.push_back(&arg);
  }
  b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "entry", function));
  body(args);
  if (!result) b.CreateRetVoid();
  return std::exchange(function, caller);
}

llvm::Value* Emitter::callShared(const std::string& key, ArrayRef<llvm::Value*> arguments,
                                 llvm::function_ref<void(ArrayRef<llvm::Value*>)> body, llvm::Type* result) {
  SmallVector<llvm::Type*> types;
  for (llvm::Value* v : arguments) types.push_back(v->getType());
  return b.CreateCall(shared(key, types, body, result), arguments);
}

llvm::Value* Emitter::constantData(arith::ConstantOp op) {
  llvm::Value*& global = constants_[op.getValue()];
  if (global) return global;
  SmallVector<llvm::Constant*> data;
  auto elements = cast<DenseElementsAttr>(op.getValue());
  Type element = elements.getElementType();
  for (Attribute value : elements.getValues<Attribute>())
    data.push_back(llvm::cast<llvm::Constant>(numbers.toMemory(element, numbers.constant(value))));
  auto* type = llvm::ArrayType::get(numbers.inMemory(element), data.size());
  auto* variable = new llvm::GlobalVariable(*module, type, true, llvm::GlobalValue::PrivateLinkage,
                                            llvm::ConstantArray::get(type, data), "tile");
  variable->setAlignment(llvm::Align(64));
  return global = variable;
}

llvm::Value* Emitter::inMemory(Type element, llvm::Constant* value) {
  llvm::Type* type = numbers.inMemory(element);
  llvm::Value*& global = values_[{type, value}];
  if (global) return global;
  auto* bits = llvm::cast<llvm::Constant>(numbers.toMemory(element, value));
  return global = new llvm::GlobalVariable(*module, type, true, llvm::GlobalValue::PrivateLinkage, bits, "value");
}

void Emitter::prefetchBeside(const Ref& ref, llvm::Value* address, int64_t bytes) {
  constexpr int64_t kLine = 64;
  auto it = ahead_.find(plan.root(ref.buffer));
  if (it == ahead_.end() || it->second.first != emitting_) return;
  for (int64_t at = 0; at + kLine <= bytes; at += kLine) {
    llvm::Value* line = b.CreateGEP(b.getInt8Ty(), address, b.CreateAdd(it->second.second, i64(at)));
    // To be read, into the second cache: the first one holds what the loop works on.
    b.CreateIntrinsic(llvm::Intrinsic::prefetch, {b.getPtrTy()}, {line, b.getInt32(0), b.getInt32(2), b.getInt32(1)});
  }
}

LogicalResult Emitter::emitOp(Operation* op) {
  emitting_ = op;
  return llvm::TypeSwitch<Operation*, LogicalResult>(op)
      .Case<LoadOp>([&](auto o) { return emitLoad(*this, o); })
      .Case<StoreOp>([&](auto o) { return emitStore(*this, o); })
      .Case<AccumulateOp>([&](auto o) { return emitAccumulate(*this, o); })
      .Case<GatherOp>([&](auto o) { return emitGather(*this, o); })
      .Case<ScatterOp>([&](auto o) { return emitScatter(*this, o); })
      .Case<AtomicRmwOp>([&](auto o) { return emitAtomicRmw(*this, o); })
      .Case<AtomicCasOp>([&](auto o) { return emitAtomicCas(*this, o); })
      .Case<ReduceOp>([&](auto o) { return emitReduce(*this, o); })
      .Case<ScanOp>([&](auto o) { return emitScan(*this, o); })
      .Case<DotOp>([&](auto o) { return emitDot(*this, o); })
      .Case<CatOp>([&](auto o) { return emitCat(*this, o); })
      .Case<TakeOp>([&](auto o) { return emitTake(*this, o); })
      .Case<PutOp>([&](auto o) { return emitPut(*this, o); })
      .Case<HistogramOp>([&](auto o) { return emitHistogram(*this, o); })
      .Case<PrintOp>([&](auto o) { return emitPrint(*this, o); })
      .Case<AssertOp>([&](auto o) { return emitAssert(*this, o); })
      .Case<scf::ForOp>([&](auto o) { return emitFor(o); })
      .Case<scf::WhileOp>([&](auto o) { return emitWhile(o); })
      .Case<scf::IfOp>([&](auto o) { return emitIf(o); })
      .Case<func::ReturnOp>([&](auto) { return success(); })
      .Default([&](Operation* op) {
        return llvm::any_of(op->getResults(), isTile) ? emitPlaced(op) : emitScalar(op);
      });
}

/// Fills the buffers of a fusable op's placed results; fused results and other names of a buffer have no code here.
LogicalResult Emitter::emitPlaced(Operation* op) {
  SmallVector<std::pair<unsigned, const Ref*>> targets;
  for (OpResult result : op->getResults())
    if (plan.owns(result) && !plan.madeIn(result)) targets.push_back({result.getResultNumber(), plan.place(result)});
  if (targets.empty()) return success();
  Value first = op->getResult(targets[0].first);
  if (auto trans = dyn_cast<TransOp>(op); trans && !movesOnlyUnitDims(trans))
    return emitTransposed(trans, *targets[0].second);
  if (isa<ReshapeOp>(op) && !movesOnlyUnitDims(op))
    return op->emitError("internal error: reshape of a tile that is not in memory");
  Nest nest(*this, shapeOf(first));
  nest.makeTilesOf(op);
  nest.usesOperands(op);
  const SmallVector<Value, 2> others = plan.tilesMadeIn(op);
  int64_t bytes = Numbers::bytes(elementOf(first));
  for (Value tile : others) nest.uses(tile), bytes = std::max(bytes, Numbers::bytes(elementOf(tile)));
  for (auto& [index, ref] : targets) nest.uses(*ref);
  int64_t n = nest.dims().back();
  return nest.run(vectorWidth(bytes, n, vectorsAtATime(plan.costOfMaking(op) + plan.costOfMadeIn(op))),
                  [&](unsigned width) {
                    SmallVector<llvm::Value*, 2> values;
                    for (Value tile : others)
                      if (!nest.eval(tile, width)) return failure();
                    if (!nest.define(op, width, values)) return failure();
                    for (auto& [index, ref] : targets) {
                      Type element = elementOf(op->getResult(index));
                      numbers.store(element, values[index], nest.address(*ref, element));
                    }
                    return success();
                  });
}

LogicalResult Emitter::emitBlock(Block& block) {
  for (Operation& op : block.without_terminator())
    if (failed(emitOp(&op))) return failure();
  return success();
}

}  // namespace tile::ir::host
