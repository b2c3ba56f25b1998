// interpreter.cpp - see the header. A value is its elements, as 64-bit words wrapped to the width of the type.
#include "interpreter.h"

#include "compiler/dialect/dialect.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tile::fuzz {
namespace {
using namespace mlir;
using Elements = std::vector<int64_t>;

int64_t wrap(int64_t v, Type type) {
  const unsigned bits =
      isa<IntegerType>(getElementTypeOrSelf(type)) ? getElementTypeOrSelf(type).getIntOrFloatBitWidth() : 64;
  if (bits == 1) return v & 1;
  return bits >= 64 ? v : (static_cast<int64_t>(static_cast<uint64_t>(v) << (64 - bits)) >> (64 - bits));
}
size_t count(Type type) { return isa<RankedTensorType>(type) ? cast<RankedTensorType>(type).getNumElements() : 1; }

class Machine {
 public:
  Machine(std::vector<int32_t>& memory) : memory_(memory) {}
  Interpreted report;
  llvm::DenseMap<Value, Elements> env;
  std::vector<int32_t>& memory_;

  bool bad(const std::string& why) {
    if (report.problem.empty()) report.problem = why;
    return false;
  }
  Elements get(Value v) {
    auto it = env.find(v);
    if (it == env.end()) bad("use of a value that is not defined here");
    return it == env.end() ? Elements(count(v.getType()), 0) : it->second;
  }
  std::vector<Elements> get(ValueRange values) {
    std::vector<Elements> out;
    for (Value v : values) out.push_back(get(v));
    return out;
  }
  void set(Value v, Elements e) {
    for (int64_t& x : e) x = wrap(x, v.getType());
    if (e.size() != count(v.getType())) bad("wrong number of elements");
    env[v] = std::move(e);
  }
  void set(ValueRange values, const std::vector<Elements>& e) {
    if (values.size() != e.size()) return void(bad("wrong number of values"));
    for (size_t i = 0; i < e.size(); ++i) set(values[i], e[i]);
  }

  /// Runs a block in a scope of its own and returns its terminator's operands.
  std::vector<Elements> block(Block& b, const std::vector<Elements>& args) {
    auto saved = env;
    set(b.getArguments(), args);
    std::vector<Elements> out;
    for (Operation& op : b) {
      ++report.operations;
      if (op.hasTrait<OpTrait::IsTerminator>()) {
        out = get(op.getOperands());
        break;
      }
      if (!step(op)) break;
    }
    env = std::move(saved);
    return out;
  }

  template <class F>
  bool binary(Operation& op, F f) {
    const Elements a = get(op.getOperand(0)), b = get(op.getOperand(1));
    Elements r(a.size());
    for (size_t i = 0; i < a.size(); ++i) r[i] = f(a[i], b[i]);
    set(op.getResult(0), r);
    return true;
  }

  bool step(Operation& op) {
    if (!report.problem.empty()) return false;
    if (report.operations > 2'000'000) return bad("does not end");
    return llvm::TypeSwitch<Operation*, bool>(&op)
        .Case([&](arith::ConstantOp c) {
          Elements e;
          if (auto dense = dyn_cast<DenseElementsAttr>(c.getValue()))
            for (const APInt& v : dense.getValues<APInt>()) e.push_back(v.getSExtValue());
          else
            e.push_back(cast<IntegerAttr>(c.getValue()).getValue().getSExtValue());
          set(c, e);
          return true;
        })
        .Case([&](arith::AddIOp) { return binary(op, [](int64_t a, int64_t b) { return a + b; }); })
        .Case([&](arith::SubIOp) { return binary(op, [](int64_t a, int64_t b) { return a - b; }); })
        .Case([&](arith::MulIOp) {
          return binary(op, [](int64_t a, int64_t b) {
            return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
          });
        })
        .Case([&](arith::AndIOp) { return binary(op, [](int64_t a, int64_t b) { return a & b; }); })
        .Case([&](arith::OrIOp) { return binary(op, [](int64_t a, int64_t b) { return a | b; }); })
        .Case([&](arith::XOrIOp) { return binary(op, [](int64_t a, int64_t b) { return a ^ b; }); })
        .Case([&](arith::CmpIOp c) {
          if (c.getPredicate() != arith::CmpIPredicate::slt) return bad("comparison not expected here");
          return binary(op, [](int64_t a, int64_t b) { return int64_t{a < b}; });
        })
        .Case([&](arith::SelectOp s) {
          const Elements c = get(s.getCondition()), a = get(s.getTrueValue()), b = get(s.getFalseValue());
          Elements r(a.size());
          for (size_t i = 0; i < r.size(); ++i) r[i] = c[c.size() == 1 ? 0 : i] ? a[i] : b[i];
          set(s.getResult(), r);
          return true;
        })
        .Case(
            [&](ir::SplatOp s) { return set(s.getResult(), Elements(count(s.getType()), get(s.getValue())[0])), true; })
        .Case([&](ir::ReshapeOp r) { return set(r.getResult(), get(r.getSource())), true; })
        .Case([&](ir::ItemOp i) { return set(i.getResult(), get(i.getSource())), true; })
        .Case([&](ir::IotaOp i) {
          Elements e;
          for (size_t k = 0; k < count(i.getType()); ++k) e.push_back(static_cast<int64_t>(i.getStart() + k));
          set(i.getResult(), e);
          return true;
        })
        .Case([&](ir::ReduceOp r) {
          Elements source = get(r.getSources()[0]), sum{source[0]};
          for (size_t i = 1; i < source.size(); ++i) sum = block(r.getCombiner().front(), {sum, {source[i]}})[0];
          set(r.getResult(0), sum);
          return true;
        })
        .Case([&](ir::PtrAddOp p) { return binary(op, [](int64_t a, int64_t b) { return a + b; }); })
        .Case([&](ir::ScatterOp s) {
          const Elements at = get(s.getPtr()), v = get(s.getValue());
          for (size_t i = 0; i < at.size(); ++i) {
            if (at[i] < 0 || at[i] >= static_cast<int64_t>(memory_.size())) return bad("store out of bounds");
            memory_[at[i]] = static_cast<int32_t>(v[i]);
          }
          return true;
        })
        .Case([&](scf::IfOp i) {
          Region& side = get(i.getCondition())[0] ? i.getThenRegion() : i.getElseRegion();
          set(i.getResults(), side.empty() ? std::vector<Elements>{} : block(side.front(), {}));
          return true;
        })
        .Case([&](scf::ForOp f) {
          ++report.loops;
          report.carried += f.getNumResults();
          std::vector<Elements> carried = get(f.getInitArgs());
          const int64_t high = get(f.getUpperBound())[0], by = get(f.getStep())[0];
          if (by <= 0) return bad("step is not positive");
          for (int64_t i = get(f.getLowerBound())[0]; i < high && report.problem.empty(); i += by) {
            carried.insert(carried.begin(), Elements{i});
            carried = block(*f.getBody(), carried);
          }
          set(f.getResults(), carried);
          return true;
        })
        .Case([&](scf::WhileOp w) {
          ++report.loops;
          report.carried += w.getNumResults();
          std::vector<Elements> carried = get(w.getInits());
          while (report.problem.empty()) {
            std::vector<Elements> next = block(w.getBefore().front(), carried);
            if (next.empty()) return bad("condition without operands");
            const bool go = next[0][0] != 0;
            next.erase(next.begin());
            carried = next;
            if (!go) break;
            carried = block(w.getAfter().front(), carried);
          }
          set(w.getResults(), carried);
          return true;
        })
        .Default([&](Operation* o) { return bad("op not expected here: " + o->getName().getStringRef().str()); });
  }
};

}  // namespace

Interpreted interpret(mlir::func::FuncOp kernel, std::vector<int32_t>& memory) {
  Machine m(memory);
  m.block(kernel.getBody().front(), {{0}});
  return m.report;
}

}  // namespace tile::fuzz
