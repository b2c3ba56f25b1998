// memo.h - answers that depend on types and attributes alone, kept as long as the context that these live in. Passes
// and the lowering ask the same of an operation a dozen times, and operations that are alike ask the same.
#pragma once
#include <unordered_map>

#include "compiler/dialect/dialect.h"
#include "llvm/ADT/Hashing.h"

namespace tile::ir {

/// All that an answer depends on: what is asked (TypeIDs, say), types, attributes, numbers.
class MemoKey {
 public:
  MemoKey& add(mlir::TypeID id) { return add(id.getAsOpaquePointer()); }
  MemoKey& add(mlir::Type type) { return add(type.getAsOpaquePointer()); }
  MemoKey& add(mlir::Attribute attribute) { return add(attribute.getAsOpaquePointer()); }
  MemoKey& add(int64_t number) {
    words_.push_back(number);
    return *this;
  }
  bool operator==(const MemoKey&) const = default;
  struct Hash {
    size_t operator()(const MemoKey& key) const {
      return llvm::hash_combine_range(key.words_.begin(), key.words_.end());
    }
  };

 private:
  MemoKey& add(const void* unique) { return add(static_cast<int64_t>(reinterpret_cast<intptr_t>(unique))); }
  llvm::SmallVector<int64_t, 16> words_;
};

/// The answers of one kind in one context. Contexts that several threads work in at a time keep none.
template <class Answer>
class Memo : public mlir::DialectInterface::Base<Memo<Answer>> {
 public:
  explicit Memo(mlir::Dialect* dialect) : mlir::DialectInterface::Base<Memo<Answer>>(dialect) {}

  template <class Compute>
  static Answer get(mlir::MLIRContext* context, MemoKey key, Compute&& compute) {
    if (context->isMultithreadingEnabled()) return compute();
    auto* dialect = context->getLoadedDialect<TileDialect>();
    auto* memo = dialect->getRegisteredInterface<Memo>();
    if (!memo) memo = &dialect->addInterface<Memo>();
    auto& answers = memo->answers_;
    if (auto it = answers.find(key); it != answers.end()) return it->second;
    Answer answer = compute();  // may ask for others of its kind
    return answers.emplace(std::move(key), std::move(answer)).first->second;
  }

 private:
  std::unordered_map<MemoKey, Answer, MemoKey::Hash> answers_;
};

}  // namespace tile::ir
