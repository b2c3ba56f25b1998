// emit_at.h - verbs made of other verbs, all at the place of the one the user wrote.
#pragma once
#include "dsl/value.h"

namespace tile::detail {

/// Operands at the place of the one that is converted.
struct At {
  SrcLoc loc;
  Operand operator()(Value v) const {
    Operand o;
    o.kind = Operand::value, o.v = v, o.loc = loc;
    return o;
  }
  template <Arithmetic A>
  Operand operator()(A literal) const {
    return literal_operand(literal, loc);
  }
  Value apply(Op op, Value x) const {
    const Operand one[] = {(*this)(x)};
    return elementwise(op, one, 1);
  }
  template <class X, class Y>
  Value apply(Op op, X x, Y y) const {
    const Operand both[] = {(*this)(x), (*this)(y)};
    return elementwise(op, both, 2);
  }
  template <class Y, class Z>
  Value choose(Value condition, Y y, Z z) const {
    return select((*this)(condition), (*this)(y), (*this)(z));
  }
};

}  // namespace tile::detail
