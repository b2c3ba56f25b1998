// box.cpp - where a tile of a view lies, clipped to the view.
#include "compiler/host/box.h"

#include "llvm/IR/Intrinsics.h"

namespace tile::ir::host {
using namespace mlir;

static SmallVector<llvm::Value*> asWords(Emitter& e, OperandRange indices) {
  SmallVector<llvm::Value*> words;
  for (Value index : indices) words.push_back(e.asI64(index));
  return words;
}

BoxWords::BoxWords(Emitter& e, Value viewValue, OperandRange indices) {
  const View view = e.view(viewValue);
  rank_ = view.dims.size();
  words_.push_back(view.pointer);
  words_.append(view.dims.begin(), view.dims.end());
  words_.append(view.strides.begin(), view.strides.end());
  words_.append(asWords(e, indices));
}

std::string BoxWords::name() const {
  std::string name;
  for (size_t d = 0; d < rank_; ++d) {
    auto* known = dyn_cast<llvm::ConstantInt>(words_[1 + rank_ + d]);
    name += known ? "_" + std::to_string(known->getSExtValue()) : "_any";
  }
  return name;
}

std::pair<View, SmallVector<llvm::Value*>> BoxWords::inside(ArrayRef<llvm::Value*> p) const {
  View view{p[0], {}, {}};
  view.dims.append(p.begin() + 1, p.begin() + 1 + rank_);
  for (size_t d = 1 + rank_; d < 1 + 2 * rank_; ++d)
    view.strides.push_back(isa<llvm::Constant>(words_[d]) ? words_[d] : p[d]);
  return {view, SmallVector<llvm::Value*>(p.begin() + 1 + 2 * rank_, p.begin() + words_.size())};
}

Box::Box(Emitter& e, Value viewValue, OperandRange indices, Type tile)
    : Box(e, e.view(viewValue), asWords(e, indices), cast<ViewType>(viewValue.getType()).getElementType(), tile) {}

Box::Box(Emitter& e, const View& view, ArrayRef<llvm::Value*> indices, Type element, Type tile) {
  auto type = dyn_cast<RankedTensorType>(tile);
  if (type) shape.assign(type.getShape().begin(), type.getShape().end());
  auto& b = e.b;
  auto leading = static_cast<int64_t>(indices.size() - shape.size());  // view dims in front of the tile's own
  llvm::Value *offset = e.i64(0), *inside = b.getTrue();
  whole = b.getTrue();
  for (auto [d, at] : llvm::enumerate(indices)) {
    llvm::Value* size = view.dims[d];
    offset = b.CreateAdd(offset, b.CreateMul(at, view.strides[d]));
    if (static_cast<int64_t>(d) < leading) {
      inside = b.CreateAnd(inside, b.CreateICmpULT(at, size));
      continue;
    }
    stride.push_back(view.strides[d]);
    llvm::Value* extent = e.i64(shape[d - leading]);
    auto clamp = [&](llvm::Value* v) {
      v = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, e.i64(0));
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, v, extent);
    };
    // Saturating: an index near the ends of i64 must not wrap into the view.
    low.push_back(clamp(b.CreateBinaryIntrinsic(llvm::Intrinsic::ssub_sat, e.i64(0), at)));
    high.push_back(clamp(b.CreateBinaryIntrinsic(llvm::Intrinsic::ssub_sat, size, at)));
    whole = b.CreateAnd(whole, b.CreateAnd(b.CreateICmpEQ(low.back(), e.i64(0)), b.CreateICmpEQ(high.back(), extent)));
  }
  whole = b.CreateAnd(whole, inside);
  if (!shape.empty() && leading > 0) high[0] = b.CreateSelect(inside, high[0], e.i64(0));
  if (shape.empty()) whole = inside;
  origin = e.offsetBy(view.pointer, element, offset);
}

void Box::isInside(Emitter& e) {
  whole = e.b.getTrue();
  for (size_t d = 0; d < shape.size(); ++d) low[d] = e.i64(0), high[d] = e.i64(shape[d]);
}

SmallVector<llvm::Value*> Box::words() const {
  SmallVector<llvm::Value*> w{origin, whole};
  for (const auto* list : {&low, &high, &stride}) w.append(list->begin(), list->end());
  return w;
}

Box::Box(const Box& outside, ArrayRef<llvm::Value*> p) : shape(outside.shape), origin(p[0]), whole(p[1]) {
  size_t rank = shape.size();
  low.append(p.begin() + 2, p.begin() + 2 + rank);
  high.append(p.begin() + 2 + rank, p.begin() + 2 + 2 * rank);
  // Strides known to be 1 stay known.
  for (size_t d = 0; d < rank; ++d)
    stride.push_back(isa<llvm::Constant>(outside.stride[d]) ? outside.stride[d] : p[2 + 2 * rank + d]);
}

size_t Box::rowsFrom() const {
  constexpr int64_t kShort = 32;
  size_t first = shape.size() - 1;
  for (int64_t n = shape[first]; n < kShort && first > 0; n *= shape[first]) --first;
  return first;
}

llvm::Value* Box::isTogether(Emitter& e, size_t first) const {
  auto& b = e.b;
  const SmallVector<int64_t, 4> wanted = rowMajorStrides(shape);
  llvm::Value* same = b.getTrue();
  for (size_t d = first; d < shape.size(); ++d) {
    if (shape[d] > 1) same = b.CreateAnd(same, b.CreateICmpEQ(stride[d], e.i64(wanted[d])));
    if (d == first) continue;
    same = b.CreateAnd(same, b.CreateAnd(b.CreateICmpEQ(low[d], e.i64(0)), b.CreateICmpEQ(high[d], e.i64(shape[d]))));
  }
  return same;
}

Box Box::together(Emitter& e, size_t first) const {
  Box box = *this;
  llvm::Constant* each = e.i64(rowMajorStrides(shape)[first]);
  box.shape.resize(first + 1), box.stride.resize(first + 1), box.low.resize(first + 1), box.high.resize(first + 1);
  box.shape[first] *= rowMajorStrides(shape)[first], box.stride[first] = e.i64(1);
  for (llvm::Value** bound : {&box.low[first], &box.high[first]}) *bound = e.b.CreateMul(*bound, each);
  return box;
}

void clippedRows(Emitter& e, const Box& box, llvm::function_ref<void(ArrayRef<llvm::Value*>)> row) {
  SmallVector<llvm::Value*, 4> index;
  std::function<void(size_t)> open = [&](size_t d) {
    if (d + 1 == box.shape.size()) return row(index);
    e.loop(box.low[d], box.high[d], 1, [&](llvm::Value* i) {
      index.push_back(i);
      open(d + 1);
      index.pop_back();
    });
  };
  open(0);
}

llvm::Value* rowOffset(Emitter& e, const Box& box, ArrayRef<llvm::Value*> index) {
  llvm::Value* offset = e.i64(0);
  for (auto [d, i] : llvm::enumerate(index)) offset = e.b.CreateAdd(offset, e.b.CreateMul(i, box.stride[d]));
  return offset;
}

}  // namespace tile::ir::host
