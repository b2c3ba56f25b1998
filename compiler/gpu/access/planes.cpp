// planes.cpp - see planes.h.
#include "compiler/gpu/access/planes.h"

#include <map>

#include "compiler/dialect/dialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Integers as sums of products of values, with factors; values that are something else stand for themselves.
class Polynomial {
 public:
  using Product = SmallVector<const void*, 2>;  ///< of values, sorted; none: the constant part
  std::map<Product, int64_t> terms;

  static std::optional<Polynomial> of(Value x, int depth = 0) {
    constexpr int kDeep = 12;
    APInt constant;
    if (matchPattern(x, m_ConstantInt(&constant))) return of(constant.getSExtValue());
    Operation* op = depth < kDeep ? x.getDefiningOp() : nullptr;
    if (auto wide = dyn_cast_or_null<arith::ExtSIOp>(op); wide && getElementTypeOrSelf(wide.getIn()).isInteger(32))
      return of(wide.getIn(), depth + 1);  // narrower sums wrap soon
    if (auto splat = dyn_cast_or_null<SplatOp>(op)) return of(splat.getValue(), depth + 1);
    // A promise about a sum or product leaves it what it is made of; of other values it says what is known of them.
    if (auto promise = dyn_cast_or_null<AssumeOp>(op))
      if (isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp>(promise->getOperand(0).getDefiningOp()))
        return of(promise->getOperand(0), depth + 1);
    if (isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) {
      const auto a = of(op->getOperand(0), depth + 1), b = of(op->getOperand(1), depth + 1);
      if (!a || !b) return std::nullopt;
      if (isa<arith::MulIOp>(op)) return a->times(*b);
      return a->plus(*b, isa<arith::AddIOp>(op) ? 1 : -1);
    }
    Polynomial p;
    p.terms[{x.getAsOpaquePointer()}] = 1;
    return p;
  }
  static std::optional<Polynomial> of(int64_t constant) {
    Polynomial p;
    if (constant) p.terms[{}] = constant;
    return p;
  }

  std::optional<Polynomial> plus(const Polynomial& other, int64_t factor = 1) const {
    Polynomial sum = *this;
    for (const auto& [product, by] : other.terms)
      if (!sum.add(product, by, factor)) return std::nullopt;
    return sum;
  }
  std::optional<Polynomial> times(const Polynomial& other) const {
    constexpr size_t kMost = 3;
    Polynomial all;
    for (const auto& [x, a] : terms)
      for (const auto& [y, b] : other.terms) {
        Product product(x);
        product.append(y);
        llvm::sort(product);
        if (product.size() > kMost || !all.add(product, a, b)) return std::nullopt;
      }
    return all;
  }
  std::optional<int64_t> constant() const {
    if (terms.empty()) return 0;
    return terms.size() == 1 && terms.begin()->first.empty() ? std::optional(terms.begin()->second) : std::nullopt;
  }
  /// n times `unit`, and a constant rest.
  std::optional<std::pair<int64_t, int64_t>> inUnitsOf(const Polynomial& unit) const {
    for (const auto& [product, factor] : unit.terms) {
      if (product.empty()) continue;
      const auto own = terms.find(product);
      const int64_t n = own == terms.end() ? 0 : own->second / factor;
      const auto rest = plus(unit, -n);
      if (!rest) return std::nullopt;
      if (rest->terms.empty()) return std::pair(n, int64_t{0});
      if (rest->terms.size() == 1 && rest->terms.begin()->first.empty())
        return std::pair(n, rest->terms.begin()->second);
      return std::nullopt;
    }
    return std::nullopt;
  }
  /// n times one product `unit` times a product of other values: n and these values.
  std::optional<std::pair<int64_t, SmallVector<Value>>> multipleOfProduct(const Polynomial& unit) const {
    if (terms.size() != 1 || unit.terms.size() != 1) return std::nullopt;
    const auto& [product, factor] = *terms.begin();
    const auto& [part, divisor] = *unit.terms.begin();
    if (factor % divisor) return std::nullopt;
    Product rest(product);
    for (const void* value : part) {
      auto found = llvm::find(rest, value);
      if (found == rest.end()) return std::nullopt;
      rest.erase(found);
    }
    SmallVector<Value> others;
    for (const void* value : rest) others.push_back(Value::getFromOpaquePointer(value));
    return std::pair(factor / divisor, std::move(others));
  }
  /// What a step of one changes of it; null where the value stands in a product with itself.
  std::optional<Polynomial> derivative(Value by) const {
    Polynomial all;
    for (const auto& [product, factor] : terms) {
      const auto times = llvm::count(product, by.getAsOpaquePointer());
      if (times > 1) return std::nullopt;
      if (!times) continue;
      Product rest(product);
      rest.erase(llvm::find(rest, by.getAsOpaquePointer()));
      all.add(rest, factor, 1);
    }
    return all;
  }
  bool all(llvm::function_ref<bool(Value)> is) const {
    return llvm::all_of(terms, [&](const auto& term) {
      return llvm::all_of(term.first, [&](const void* v) { return is(Value::getFromOpaquePointer(v)); });
    });
  }

 private:
  bool add(const Product& product, int64_t a, int64_t b) {
    constexpr int64_t kMost = int64_t{1} << 30;
    constexpr size_t kTerms = 16;
    if (std::abs(a) > kMost || std::abs(b) > kMost) return false;
    int64_t& factor = terms[product];
    factor += a * b;
    if (std::abs(factor) > kMost) return false;
    if (!factor) terms.erase(product);
    return terms.size() <= kTerms;
  }
};

/// A tile as a multiple of another one, and what is added to all of its elements.
struct Multiple {
  Value of;
  int64_t factor = 0;
  Polynomial added;
};
std::optional<Multiple> multipleOf(Value tile) {
  const auto p = Polynomial::of(tile);
  if (!p) return std::nullopt;
  Multiple found;
  found.added = *p;
  for (const auto& [product, factor] : p->terms)
    for (const void* v : product) {
      const Value value = Value::getFromOpaquePointer(v);
      if (!isa<RankedTensorType>(value.getType())) continue;
      if (found.of || product.size() > 1) return std::nullopt;
      found.of = value, found.factor = factor;
      found.added.terms.erase(product);
    }
  if (!found.of) return std::nullopt;
  return found;
}

struct Place {
  Value root, offsets, mask;
  Polynomial start;
};
std::optional<Place> placeOf(Operation* op) {
  Place place;
  Value ptr;
  llvm::TypeSwitch<Operation*>(op).Case<GatherOp, ScatterOp>(
      [&](auto o) { ptr = o.getPtr(), place.offsets = o.getOffsets(), place.mask = o.getMask(); });
  if (!ptr || !place.offsets) return std::nullopt;
  for (auto add = ptr.getDefiningOp<PtrAddOp>(); add; add = ptr.getDefiningOp<PtrAddOp>()) {
    const auto by = Polynomial::of(add.getOffset());
    auto sum = by ? place.start.plus(*by) : std::nullopt;
    if (!sum) return std::nullopt;
    place.start = std::move(*sum), ptr = add.getPtr();
  }
  place.root = ptr;
  return place;
}

/// What the mask keeps the elements of `tile` below, if it is also known that they are not negative and are elements of
/// `tile` but for something that all have.
std::optional<Polynomial> limitOf(Value mask, Value tile, const Facts& facts) {
  if (auto both = mask.getDefiningOp<arith::AndIOp>()) {
    auto left = limitOf(both.getLhs(), tile, facts);
    return left ? left : limitOf(both.getRhs(), tile, facts);
  }
  auto test = mask.getDefiningOp<arith::CmpIOp>();
  using P = arith::CmpIPredicate;
  if (!test || (test.getPredicate() != P::slt && test.getPredicate() != P::ult)) return std::nullopt;
  auto limit = test.getRhs().getDefiningOp<SplatOp>();
  const auto number = multipleOf(test.getLhs());
  if (!limit || !number || number->of != tile || number->factor != 1) return std::nullopt;
  auto isPositive = [&](Value v) { return facts.rangeOf(v).min >= 0; };
  const bool adds = llvm::all_of(number->added.terms, [](const auto& term) { return term.second > 0; });
  if (test.getPredicate() == P::slt && !(adds && number->added.all(isPositive) && isPositive(tile)) &&
      !isPositive(test.getLhs()))
    return std::nullopt;
  return Polynomial::of(limit.getValue());
}

/// What holds wherever `op` stands: the conditions of the branches that were taken to it.
SmallVector<Value> conditionsOf(Operation* op) {
  SmallVector<Value> all;
  for (; op; op = op->getParentOp()) {
    auto branch = dyn_cast_or_null<scf::IfOp>(op->getParentOp());
    if (branch && op->getParentRegion() == &branch.getThenRegion()) all.push_back(branch.getCondition());
  }
  for (size_t i = 0; i < all.size(); ++i)
    if (auto both = all[i].getDefiningOp<arith::AndIOp>()) all.append({both.getLhs(), both.getRhs()});
  return all;
}

/// A number that is more than elements of `tile` are apart, for the branch that `access` is in was taken because of it:
/// where x + 256 - n <= 0 and x is not negative, n is at least 256.
std::optional<Polynomial> limitOfBranches(Operation* access, Value tile, const Facts& facts) {
  const Range range = facts.rangeOf(tile);
  if (range.min < 0) return std::nullopt;
  auto isPositive = [&](const void* value) { return facts.rangeOf(Value::getFromOpaquePointer(value)).min >= 0; };
  for (Value condition : conditionsOf(access)) {
    auto test = condition.getDefiningOp<arith::CmpIOp>();
    if (!test || test.getPredicate() != arith::CmpIPredicate::sle || !matchPattern(test.getRhs(), m_Zero())) continue;
    const auto sum = Polynomial::of(test.getLhs());
    if (!sum) continue;
    int64_t least = 0;
    std::optional<Polynomial> limit;
    bool isKnown = true;
    for (const auto& [product, factor] : sum->terms) {
      if (product.empty())
        least = factor;
      else if (factor == -1 && product.size() == 1 && !limit)
        limit.emplace().terms[product] = 1;
      else
        isKnown &= factor > 0 && llvm::all_of(product, isPositive);
    }
    if (limit && isKnown && range.max < least) return limit;
  }
  return std::nullopt;
}

/// Two accesses of the same elements in the same order, from different starts on.
struct Planes {
  Place first;
  Polynomial apart;
  int64_t factor = 0;                ///< of the tile of indices
  std::optional<Polynomial> limit;   ///< of the indices
};
std::optional<Planes> planesOf(Operation* access, Operation* other, const Facts& facts) {
  auto x = placeOf(access);
  const auto y = placeOf(other);
  if (!x || !y || x->root != y->root || x->offsets != y->offsets || x->mask != y->mask) return std::nullopt;
  const auto places = multipleOf(x->offsets);
  if (!places) return std::nullopt;
  auto apart = y->start.plus(x->start, -1);
  if (!apart) return std::nullopt;
  auto limit = x->mask ? limitOf(x->mask, places->of, facts) : std::nullopt;
  if (!limit) limit = limitOfBranches(access, places->of, facts);
  return Planes{std::move(*x), std::move(*apart), std::abs(places->factor), std::move(limit)};
}

}  // namespace

SmallVector<Value> otherPlanesUnlessZero(Operation* access, Operation* other, const Facts& facts) {
  const auto planes = planesOf(access, other, facts);
  if (!planes || !planes->limit) return {};
  auto distance = planes->apart.multipleOfProduct(*planes->limit);
  if (!distance || std::abs(distance->first) < planes->factor) return {};
  return std::move(distance->second);
}

bool areOtherPlanes(Operation* access, Operation* other, Operation* earlier, const Facts& facts) {
  const auto planes = planesOf(access, other, facts);
  if (!planes) return false;
  const auto& [x, apart, factor, limit] = *planes;
  auto loop = dyn_cast_if_present<scf::ForOp>(earlier);
  auto stays = [&](Value v) { return loop.isDefinedOutsideOfLoop(v); };
  if (earlier && (!loop || access->getParentOp() != earlier || other->getParentOp() != earlier || !stays(x.root) ||
                  !stays(x.offsets) || (x.mask && !stays(x.mask))))
    return false;
  // Fields of records of any number of elements.
  if (const auto field = apart.constant(); field && *field % factor != 0 && (!earlier || x.start.all(stays)))
    return true;
  if (!limit) return false;
  // Elements are up to (limit - 1) * factor apart. Where they are `units` limits and `rest` more, a limit of 1 or more
  // is enough for all.
  auto isEnough = [factor = factor](int64_t units, int64_t rest) {
    return std::abs(units) >= factor && std::abs(units) > std::abs(rest);
  };
  if (!earlier) {
    const auto distance = apart.inUnitsOf(*limit);
    return distance && isEnough(distance->first, distance->second);
  }
  APInt step;
  if (!matchPattern(loop.getStep(), m_ConstantInt(&step))) return false;
  auto staysButForCounter = [&](Value v) { return v == loop.getInductionVar() || stays(v); };
  if (!limit->all(stays) || !x.start.all(staysButForCounter) || !apart.all(stays)) return false;
  const auto moved = x.start.derivative(loop.getInductionVar());
  if (!moved || !moved->all(stays)) return false;
  const auto distance = apart.inUnitsOf(*limit), pace = moved->inUnitsOf(*limit);
  if (!distance || !pace || pace->second != 0) return false;
  if (pace->first == 0) return isEnough(distance->first, distance->second);
  // Any number of iterations from one on: the nearest is where the distance and the way of the loop cancel, or beside.
  const int64_t way = pace->first * step.getSExtValue(), back = -distance->first / way;
  for (int64_t iterations : {int64_t{1}, back - 1, back, back + 1})
    if (iterations >= 1 && !isEnough(way * iterations + distance->first, distance->second)) return false;
  return true;
}

}  // namespace tile::ir
