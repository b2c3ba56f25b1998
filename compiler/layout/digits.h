// digits.h - a list of digits from another one.
#pragma once
#include "compiler/layout/layout.h"

namespace tile::layout {

/// `f(digit, out)` puts what stands for the digit at the end of `out`.
template <class F>
std::vector<Digit> mapped(const std::vector<Digit>& digits, F&& f) {
  std::vector<Digit> out;
  for (const Digit& digit : digits) f(digit, out);
  return out;
}

}  // namespace tile::layout
