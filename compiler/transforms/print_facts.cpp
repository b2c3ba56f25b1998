// print_facts.cpp - shows what Facts knows, for tests.
#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"

namespace tile::ir {
#define GEN_PASS_DEF_PRINTFACTS
#include "compiler/transforms/passes.h.inc"

namespace {

void print(llvm::raw_ostream& out, llvm::ArrayRef<int64_t> list) {
  out << "[";
  llvm::interleaveComma(list, out);
  out << "]";
}

struct PrintFacts : impl::PrintFactsBase<PrintFacts> {
  void runOnOperation() override {
    Facts facts(getOperation());
    getOperation().walk([&](mlir::Operation* op) {
      if (!op->hasAttr("facts") || op->getNumResults() == 0) return;
      mlir::Value v = op->getResult(0);
      std::string text;
      llvm::raw_string_ostream out(text);
      if (mlir::isa<ViewType>(v.getType())) {
        out << "align " << facts.alignOf(v) << " unit_stride " << facts.unitStrideDim(v) << " strides [";
        for (int d = 0; d < mlir::cast<ViewType>(v.getType()).getRank(); ++d)
          out << (d ? ", " : "") << facts.strideDivisibility(v, d);
        out << "] dims [";
        for (int d = 0; d < mlir::cast<ViewType>(v.getType()).getRank(); ++d)
          out << (d ? ", " : "") << facts.dimDivisibility(v, d);
        out << "]";
      } else if (mlir::isa<PtrType>(v.getType())) {
        out << "align " << facts.alignOf(v);
      } else {
        AxisFacts axis = facts.of(v);
        out << "contiguity ";
        print(out, axis.contiguity);
        out << " divisibility ";
        print(out, axis.divisibility);
        out << " constancy ";
        print(out, axis.constancy);
        if (Range r = facts.rangeOf(v); r.min != fullRange(64).min || r.max != fullRange(64).max)
          out << " range " << r.min << " to " << r.max;
      }
      op->emitRemark() << text;
    });
  }
};

}  // namespace
}  // namespace tile::ir
