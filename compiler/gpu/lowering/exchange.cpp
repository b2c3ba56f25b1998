// exchange.cpp - see exchange.h.
#include "compiler/gpu/lowering/exchange.h"

#include <numeric>
#include <set>

#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "compiler/layout/exchange.h"
#include "compiler/layout/relations.h"

namespace tile::ir {
namespace {

// Byte offset of the thread's own origin.
llvm::Value* threadOffset(Emitter& e, const layout::Layout& layout, llvm::ArrayRef<int64_t> byteStride) {
  llvm::Value* offset = nullptr;
  for (int dim = 0; dim < layout.rank(); ++dim) {
    if (layout.maxThreadCoord(dim) == 0) continue;
    llvm::Value* part = e.b.CreateMul(e.threadCoord(layout, dim), e.i32(byteStride[dim]));
    offset = offset ? e.b.CreateAdd(offset, part) : part;
  }
  return offset ? offset : e.i32(0);
}

llvm::Value* threadOffset(Emitter& e, const layout::Layout& layout, const layout::Exchange& plan) {
  llvm::Value* offset = threadOffset(e, layout, plan.byteStride);
  if (plan.major < 0 || layout.maxThreadCoord(plan.major) < layout::kSkewRows) return offset;
  llvm::Value* rows = e.b.CreateUDiv(e.threadCoord(layout, plan.major), e.i32(layout::kSkewRows));
  return e.b.CreateAdd(offset, e.b.CreateMul(rows, e.i32(plan.skew)));
}

int64_t constantOffset(const layout::Coord& coord, llvm::ArrayRef<int64_t> byteStride) {
  int64_t byte = 0;
  for (size_t dim = 0; dim < coord.size(); ++dim) byte += coord[dim] * byteStride[dim];
  return byte;
}

std::vector<int64_t> rowMajorStrides(const layout::Shape& shape, int elementBytes) {
  std::vector<int64_t> strides(shape.size());
  int64_t next = elementBytes;
  for (size_t dim = shape.size(); dim-- > 0;) {
    strides[dim] = next;
    next *= shape[dim];
  }
  return strides;
}

// The plan's bytes as a buffer of 16-bit elements that whole 8x8 matrices are stored to and read from; nullopt: it is
// none.
std::optional<layout::SharedTile> bufferOfMatrices(const layout::Shape& shape, const layout::Exchange& plan) {
  if (shape.size() != 2 || plan.byteStride[plan.minor] != 2 || plan.major >= 0) return std::nullopt;
  const int major = 1 - plan.minor;
  return layout::SharedTile{shape[major], shape[plan.minor], 2, 0, plan.byteStride[major]};
}

}  // namespace

int linearVector(const layout::Layout& layout, const layout::Shape& shape, const layout::Coord& offset, int bytes) {
  if (layout.rank() == 0) return 1;
  const int last = layout::minorDim(shape);
  int64_t vector = std::gcd<int64_t>(layout.runLength(last), std::max(1, 16 / bytes));
  vector = std::gcd(vector, shape[last]);
  vector = std::gcd(vector, layout.shape()[last]);
  vector = std::gcd(vector, offset[last]);
  return static_cast<int>(vector & -vector);
}

void putExchange(Emitter& e, llvm::Value* base, llvm::ArrayRef<llvm::Value*> values, const layout::Layout& from,
                 const layout::Layout& to, bool warpLocal) {
  layout::Exchange plan = layout::planExchange(from, to, memoryBytes(values[0]->getType()));
  // Replicas write the same bytes to the same place: one warp's worth is enough when warps repeat each other.
  llvm::Value* first = warpLocal || from.warpReplicas() == 1 ? nullptr : e.isFirstReplica(from);
  const auto buffer = bufferOfMatrices(from.shape(), plan);
  if (buffer && storeByMatrices(e, values, from, base, *buffer, plan.minor, 0, warpLocal)) return;
  llvm::Value* into = e.b.CreatePtrAdd(base, threadOffset(e, from, plan));
  std::set<layout::Coord> written;
  for (const auto& run : from.runs(plan.minor, plan.storeVector)) {
    layout::Coord start = from.regCoord(run[0]);
    if (from.isRegPadding(run[0]) || !written.insert(start).second) continue;
    Regs group;
    for (int reg : run) group.push_back(values[reg]);
    storeVector(e, e.b.CreatePtrAdd(into, e.i32(plan.address(start))), group, first);
  }
}

Regs getExchange(Emitter& e, llvm::Value* base, llvm::Type* element, const layout::Layout& from,
                 const layout::Layout& to) {
  layout::Exchange plan = layout::planExchange(from, to, memoryBytes(element));
  if (const auto buffer = bufferOfMatrices(to.shape(), plan))
    if (auto values = loadByMatrices(e, element, to, base, *buffer, plan.minor)) return std::move(*values);
  llvm::Value* out = e.b.CreatePtrAdd(base, threadOffset(e, to, plan));
  Regs result(to.numRegs(), llvm::PoisonValue::get(element));
  for (const auto& run : to.runs(plan.minor, plan.loadVector)) {
    if (to.isRegPadding(run[0])) continue;
    Regs group =
        loadVector(e, e.b.CreatePtrAdd(out, e.i32(plan.address(to.regCoord(run[0])))), element, plan.loadVector);
    for (auto [reg, value] : llvm::zip(run, group)) result[reg] = value;
  }
  return result;
}

Regs exchangeThrough(Emitter& e, llvm::Value* base, llvm::ArrayRef<llvm::Value*> values, const layout::Layout& from,
                     const layout::Layout& to, bool warpLocal) {
  if (warpLocal) e.syncWarp();  // lanes may still read what this op left there in the iteration before
  putExchange(e, base, values, from, to, warpLocal);
  if (warpLocal)
    e.syncWarp();
  else
    e.barrier();
  return getExchange(e, base, values[0]->getType(), from, to);
}

void storeLinear(Emitter& e, llvm::Value* base, const layout::Shape& shape, const layout::Layout& layout,
                 llvm::ArrayRef<llvm::Value*> values, const layout::Coord& offset) {
  int bytes = memoryBytes(values[0]->getType()), vector = linearVector(layout, shape, offset, bytes);
  auto strides = rowMajorStrides(shape, bytes);
  llvm::Value* origin =
      e.b.CreatePtrAdd(base, e.b.CreateAdd(threadOffset(e, layout, strides), e.i32(constantOffset(offset, strides))));
  llvm::Value* first = e.isFirstReplica(layout);
  std::set<layout::Coord> written;
  for (const auto& run : layout.runs(layout::minorDim(shape), vector)) {
    layout::Coord start = layout.regCoord(run[0]);
    if (layout.isRegPadding(run[0]) || !written.insert(start).second) continue;
    Regs group;
    for (int reg : run) group.push_back(values[reg]);
    storeVector(e, e.b.CreatePtrAdd(origin, e.i32(constantOffset(start, strides))), group,
                e.andAll({first, e.inTile(layout, run[0])}));
  }
}

void storeBox(Emitter& e, llvm::Value* base, const layout::Shape& box, const layout::Layout& layout,
              llvm::ArrayRef<llvm::Value*> values, const layout::Coord& offset) {
  const int bytes = memoryBytes(values[0]->getType()), vector = linearVector(layout, box, offset, bytes);
  const auto strides = rowMajorStrides(box, bytes);
  llvm::Value* origin = e.b.CreatePtrAdd(base, threadOffset(e, layout, strides));
  llvm::Value* first = e.isFirstReplica(layout);
  std::set<layout::Coord> written;
  for (const auto& run : layout.runs(layout::minorDim(box), vector)) {
    layout::Coord start = layout.regCoord(run[0]);
    if (layout.isRegPadding(run[0]) || !written.insert(start).second) continue;
    llvm::SmallVector<llvm::Value*> conditions{first};
    bool isOutside = false;
    for (int dim = 0; dim < layout.rank(); ++dim) {
      start[dim] -= offset[dim];
      const int64_t last = start[dim] + layout.maxThreadCoord(dim);
      isOutside |= last < 0 || start[dim] >= box[dim];
      if (start[dim] < 0 || last >= box[dim])
        conditions.push_back(
            e.b.CreateICmpULT(e.b.CreateAdd(e.threadCoord(layout, dim), e.i32(start[dim])), e.i32(box[dim])));
    }
    if (isOutside) continue;
    Regs group;
    for (int reg : run) group.push_back(values[reg]);
    storeVector(e, e.b.CreatePtrAdd(origin, e.i32(constantOffset(start, strides))), group, e.andAll(conditions));
  }
}

Regs loadLinear(Emitter& e, llvm::Value* base, const layout::Shape& shape, const layout::Layout& layout,
                llvm::Type* element, const layout::Coord& offset) {
  int bytes = memoryBytes(element), vector = linearVector(layout, shape, offset, bytes);
  auto strides = rowMajorStrides(shape, bytes);
  llvm::Value* origin =
      e.b.CreatePtrAdd(base, e.b.CreateAdd(threadOffset(e, layout, strides), e.i32(constantOffset(offset, strides))));
  Regs result(layout.numRegs(), llvm::PoisonValue::get(element));
  for (const auto& run : layout.runs(layout::minorDim(shape), vector)) {
    layout::Coord start = layout.regCoord(run[0]);
    if (layout.isRegPadding(run[0])) continue;
    llvm::Value* ptr = e.b.CreatePtrAdd(origin, e.i32(constantOffset(start, strides)));
    Regs group = loadVector(e, ptr, element, vector, e.inTile(layout, run[0]));
    for (auto [reg, value] : llvm::zip(run, group)) result[reg] = value;
  }
  return result;
}

}  // namespace tile::ir
