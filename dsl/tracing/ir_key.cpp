// ir_key.cpp - see detail/ir_key.h. Values are numbered in order of definition; types and attributes enter by their
// text, which a context remembers.
#include "dsl/tracing/ir_key.h"

#include "compiler/dialect/dialect.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace tile::detail {
namespace {

class Writer {
 public:
  Writer(PooledContext& context, std::string& out) : texts_(context.texts), out_(out) {}

  void region(mlir::Region& r) {
    number(r.getBlocks().size());
    for (mlir::Block& block : r) {
      number(block.getNumArguments());
      for (mlir::BlockArgument a : block.getArguments()) define(a);
      for (mlir::Operation& op : block) operation(op);
      out_ += '}';
    }
  }
  size_t operations() const { return operations_; }

  void attribute(mlir::Attribute a) {
    text(a.getAsOpaquePointer(), [&](llvm::raw_ostream& os) { a.print(os); });
  }
  void type(mlir::Type t) {
    text(t.getAsOpaquePointer(), [&](llvm::raw_ostream& os) { t.print(os); });
  }

 private:
  void operation(mlir::Operation& op) {
    ++operations_;
    out_ += op.getName().getStringRef();
    number(op.getNumOperands());
    for (mlir::Value v : op.getOperands()) number(ids_.lookup(v));
    // Properties of registered ops come out as attributes, uniqued by the context.
    attribute(op.getAttrDictionary());
    if (mlir::isa<ir::PrintOp, ir::AssertOp>(op)) attribute(mlir::LocationAttr(op.getLoc()));  // the code names it
    number(op.getNumResults());
    for (mlir::Value v : op.getResults()) define(v);
    number(op.getNumRegions());
    for (mlir::Region& r : op.getRegions()) region(r);
  }
  void define(mlir::Value v) {
    ids_[v] = static_cast<uint32_t>(ids_.size() + 1);
    type(v.getType());
  }
  void number(uint64_t n) {
    do {
      out_ += static_cast<char>((n & 127) | (n > 127 ? 128 : 0));
      n >>= 7;
    } while (n);
  }
  template <class Print>
  void text(const void* key, Print print) {
    std::string& s = texts_[key];
    if (s.empty()) {
      llvm::raw_string_ostream os(s);
      print(os);
    }
    number(s.size());
    out_ += s;
  }

  llvm::DenseMap<const void*, std::string>& texts_;
  std::string& out_;
  llvm::DenseMap<mlir::Value, uint32_t> ids_;
  size_t operations_ = 0;
};

}  // namespace

std::string ir_key(mlir::func::FuncOp function, PooledContext& context, size_t& operations) {
  std::string out;
  out.reserve(8192);
  Writer w(context, out);
  w.type(function.getFunctionType());
  for (mlir::NamedAttribute a : function->getDiscardableAttrs()) {
    out += a.getName().strref();
    w.attribute(a.getValue());
  }
  if (mlir::ArrayAttr args = function.getAllArgAttrs()) w.attribute(args);
  w.region(function.getBody());
  operations = w.operations();
  return out;
}

}  // namespace tile::detail
