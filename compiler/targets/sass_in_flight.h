// sass_in_flight.h - registers of asynchronous products. A product of a warpgroup reads its operand A and works on its
// accumulator until a wait covers it; the hardware keeps nobody off these registers meanwhile, and ptxas may make code
// that touches them around the back edge of a loop, without a word.
#pragma once
#include <string>
#include <vector>

#include "compiler/targets/sass.h"

namespace tile::ir {

/// Every instruction of code for sm_90 that writes a register which a product in flight reads as operand A, or reads or
/// writes a register of an accumulator in flight, by any path through the code (back edges included); the text says
/// which instruction, register and product. Products chained on one accumulator are in order and may follow each other.
/// An instruction nobody knows the registers of is one of these, too, if products are in flight there.
std::vector<std::string> touchedInFlight(const SassKernel& kernel);

}  // namespace tile::ir
