// reduce_table.cpp - the step of a reduction between warps, through a table in shared memory.
#include <algorithm>
#include <numeric>

#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/combine.h"
#include "compiler/gpu/lowering/halving.h"
#include "compiler/gpu/lowering/reduction.h"

namespace tile::ir {
using namespace mlir;
using layout::Coord;
using layout::Digit;
using layout::Layout;

namespace {

/// Values that arrive one after the other, combined in pairs, these in pairs and so on: few are alive at a time.
class Joined {
 public:
  void add(Tuple value, Combiner& combine) {
    int pairs = 0;
    for (; !kept_.empty() && kept_.back().first == pairs; ++pairs) {
      value = combine(kept_.back().second, value);
      kept_.pop_back();
    }
    kept_.emplace_back(pairs, std::move(value));
  }
  Tuple take(Combiner& combine) {
    Tuple value = kept_.back().second;
    for (kept_.pop_back(); !kept_.empty(); kept_.pop_back()) value = combine(kept_.back().second, value);
    return value;
  }

 private:
  std::vector<std::pair<int, Tuple>> kept_;  ///< (how often it was combined, value), those combined most in front
};

}  // namespace

/// How many of the registers from the i-th on lie side by side in the table, as one access takes them.
int Reduction::sideBySide(const PartsTable& table, llvm::ArrayRef<int> regs, const Layout& layout, size_t i,
                          int64_t bytes) {
  constexpr int64_t kVectorBytes = 16;
  auto at = [&](size_t reg) { return entryConstant(table, layout.regCoord(regs[reg])); };
  int64_t apart = 0;  // of threads, in values: 6, say, where each has 6 neighbours
  for (const std::vector<Digit>* digits : {&layout.lanes(), &layout.warps()})
    for (const Digit& digit : *digits)
      if (digit.dim != layout::kReplicated && digit.dim != axis_)
        apart = std::gcd(apart, digit.stride * table.strides[digit.dim]);
  int count = 1;
  while (2 * count * bytes <= kVectorBytes && i + 2 * count <= regs.size() && at(i) % (2 * count) == 0 &&
         apart % (2 * count) == 0) {
    for (int j = count; j < 2 * count; ++j)
      if (at(i + j) != at(i) + j) return count;
    count *= 2;
  }
  return count;
}

/// The values of the thread's own slice under `layout`, in the table.
llvm::Value* Reduction::entryOf(const PartsTable& table, const Layout& layout) {
  llvm::Value* entry = nullptr;
  for (int dim = 0; dim < layout.rank(); ++dim) {
    if (dim == axis_ || layout.maxThreadCoord(dim) == 0) continue;
    llvm::Value* offset = e.b.CreateMul(e.threadCoord(layout, dim), e.i32(table.strides[dim]));
    entry = entry ? e.b.CreateAdd(entry, offset) : offset;
  }
  return entry ? entry : e.i32(0);
}

int64_t Reduction::entryConstant(const PartsTable& table, const Coord& coord) {
  int64_t constant = 0;
  for (int dim = 0; dim < result_.rank(); ++dim) constant += coord[dim] * table.strides[dim];
  return constant;
}

llvm::Value* Reduction::place(const PartsTable& table, size_t operand, const Coord& coord, llvm::Value* at,
                              int64_t constantPart) {
  int64_t bytes = memoryBytes(e.elementType(op_.getSources()[operand]));
  const int64_t constant = constantPart + entryConstant(table, coord);
  llvm::Value* scaled = e.b.CreatePtrAdd(e.scratch(op_), e.b.CreateMul(at, e.i32(bytes)));
  return e.b.CreatePtrAdd(scaled, e.i32(table.operandOffset[operand] + constant * bytes));
}

void Reduction::intoTable(std::vector<Tuple> partial) {
  const PartsTable table = partsTable(op_);
  std::vector<Digit> numbering;  // of the warp's part
  int weight = 1;
  for (const Digit& digit : source_.warps()) {
    numbering.push_back(digit.dim == axis_ ? Digit{axis_, digit.count, weight * static_cast<int>(table.partStride)}
                                           : Digit{layout::kReplicated, digit.count, 0});
    if (digit.dim == axis_) weight *= digit.count;
  }
  llvm::Value* own = e.b.CreateAdd(entryOf(table, slice_), e.digitSum(numbering, e.warp(), axis_));
  const Shared shared = shareAcrossLanes(partial, table);
  for (const auto& [bit, values] : shared.offset) {
    llvm::Value* isUpper = e.b.CreateICmpNE(e.b.CreateAnd(e.lane(), e.i32(bit)), e.i32(0));
    own = e.b.CreateAdd(own, e.b.CreateSelect(isUpper, e.i32(values), e.i32(0)));
  }
  // Lanes that share registers are whole vectors apart, or one: then vectors are not aligned.
  const bool isShared = !shared.offset.empty();
  for (size_t operand = 0; operand < op_.getNumResults(); ++operand) {
    const int64_t bytes = memoryBytes(e.elementType(op_.getSources()[operand]));
    for (size_t i = 0, count = 1; i < shared.regs.size(); i += count) {
      count = isShared ? 1 : static_cast<size_t>(sideBySide(table, shared.regs, slice_, i, bytes));
      Regs values;
      for (size_t j = 0; j < count; ++j) values.push_back(partial[i + j][operand]);
      storeVector(e, place(table, operand, slice_.regCoord(shared.regs[i]), own, 0), values);
    }
  }
}

/// Whether all lanes of a warp want the same of many parts: read by every thread, these would take a register each, and
/// an instruction.
bool Reduction::lanesTakeParts(const PartsTable& table) {
  constexpr int64_t kMany = 16, kLanes = 32;
  return table.parts >= kMany && table.parts <= kLanes && llvm::isPowerOf2_64(static_cast<uint64_t>(table.parts)) &&
         !source_.isPadded(axis_) && llvm::all_of(result_.lanes(), [&](const Digit& digit) {
           return digit.dim == layout::kReplicated || digit.dim == axis_;
         });
}

/// A lane reads a part (lanes repeat them if there are fewer), and the lanes combine them.
std::vector<Tuple> Reduction::fromTableByLanes(const PartsTable& table) {
  const auto parts = static_cast<int>(table.parts);
  llvm::Value* part = e.b.CreateAnd(e.lane(), e.i32(parts - 1));
  llvm::Value* entry = e.b.CreateAdd(entryOf(table, result_), e.b.CreateMul(part, e.i32(table.partStride)));
  const auto instruction = warpInstruction(parts == 32);
  std::vector<Tuple> combined;
  for (int reg = 0; reg < result_.numRegs(); ++reg) {
    Tuple own;
    for (size_t i = 0; i < op_.getNumResults(); ++i)
      own.push_back(
          loadVector(e, place(table, i, result_.regCoord(reg), entry, 0), e.elementType(op_.getSources()[i]), 1)[0]);
    if (isOrdered(own[0])) {
      own[0] = asOrderedIntegers(own[0]);
    } else if (instruction) {
      own[0] = byInstruction(*instruction, own[0]);
    } else {
      for (int distance = 1; distance < parts; distance *= 2)
        own = together(own, combine_.map(own, [&](llvm::Value* v) { return e.shuffleXor(v, distance); }), distance);
    }
    combined.push_back(std::move(own));
  }
  return combined;
}

std::vector<Tuple> Reduction::fromTable() {
  const PartsTable table = partsTable(op_);
  if (lanesTakeParts(table)) return fromTableByLanes(table);
  const int64_t parts = table.parts;
  // The first coordinate of each part: those of padding only are left out.
  std::vector<int64_t> firstCoord(parts, 0);
  int weight = 1;
  for (const Digit& digit : source_.warps()) {
    if (digit.dim != axis_) continue;
    for (int64_t part = 0; part < parts; ++part) firstCoord[part] += part / weight % digit.count * digit.stride;
    weight *= digit.count;
  }
  llvm::Value* entry = entryOf(table, result_);
  std::vector<int> regs(static_cast<size_t>(result_.numRegs()));
  std::iota(regs.begin(), regs.end(), 0);
  std::vector<Tuple> combined;
  // As many registers at a time as one access takes: read all at once, the parts of all would be alive together.
  for (size_t first = 0, count = 1; first < regs.size(); first += count) {
    count = 1;
    if (table.partStride != 1)
      for (Value source : op_.getSources())
        count = std::max(
            count, static_cast<size_t>(sideBySide(table, regs, result_, first, memoryBytes(e.elementType(source)))));
    std::vector<Joined> joined(count);
    const int64_t step = table.partStride == 1 ? partsOfAnAccess(table) : 1;
    for (int64_t part = 0; part < parts; part += step) {
      std::vector<std::vector<Tuple>> found(count, std::vector<Tuple>(step));
      for (size_t i = 0; i < op_.getNumResults(); ++i)
        readParts(table, i, entry, part, llvm::ArrayRef(regs).slice(first, count), found);
      for (int64_t j = 0; j < step; ++j)
        for (size_t i = 0; i < count && firstCoord[part + j] < extent(); ++i)  // parts of padding only take no part
          joined[i].add(std::move(found[i][j]), combine_);
    }
    for (Joined& j : joined) combined.push_back(j.take(combine_));
  }
  return combined;
}

/// Parts that one access reads where they lie side by side, of every operand.
int64_t Reduction::partsOfAnAccess(const PartsTable& table) {
  int64_t most = 1;
  for (Value source : op_.getSources())
    most = std::max(most, std::gcd<int64_t>(table.parts, 16 / memoryBytes(e.elementType(source))));
  return most;
}

/// Appends an operand's values of registers `regs` of the result, by register and part, from part `from` on.
void Reduction::readParts(const PartsTable& table, size_t operand, llvm::Value* entry, int64_t from,
                          llvm::ArrayRef<int> regs, std::vector<std::vector<Tuple>>& found) {
  llvm::Type* type = e.elementType(op_.getSources()[operand]);
  const int64_t bytes = memoryBytes(type);
  const auto parts = static_cast<int64_t>(found[0].size());
  for (size_t i = 0, count = 1; i < regs.size(); i += count) {
    const Coord coord = result_.regCoord(regs[i]);
    if (table.partStride == 1) {
      const int vector = static_cast<int>(std::gcd<int64_t>(parts, 16 / bytes));
      for (int64_t p = 0; p < parts; p += vector)
        for (auto [step, value] :
             llvm::enumerate(loadVector(e, place(table, operand, coord, entry, from + p), type, vector)))
          found[i][p + static_cast<int64_t>(step)].push_back(value);
      continue;
    }
    count = static_cast<size_t>(sideBySide(table, regs, result_, i, bytes));
    for (int64_t p = 0; p < parts; ++p)
      for (auto [step, value] : llvm::enumerate(loadVector(
               e, place(table, operand, coord, entry, (from + p) * table.partStride), type, static_cast<int>(count))))
        found[i + step][p].push_back(value);
  }
}

}  // namespace tile::ir
