// other_choices.h - what the compiler tries again: roles, the number of warps and products under way are chosen before
// anything is known of layouts and registers, and what came of them may show that another choice is the better one.
#pragma once
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "compiler/targets/target.h"

namespace tile::ir {

/// What the passes learn of another choice that may be worth a try.
struct Learnt {
  bool fitsOneWarp = false;  ///< stepsFitOneWarp
  bool isCrowded = false;    ///< kCrowdedAttr
  bool isStraight = false;   ///< products, and none in a loop: what spills does so once
};

/// Whether the code has a producer: programs that stay, or bulk copies.
inline bool isOfRoles(const KernelBinary& binary) { return binary.persistent || !binary.tensor_maps.empty(); }

/// Another choice that what came of the first shows to be worth a try: the options that make it, and why it is the
/// better one if it is kept.
struct OtherChoice {
  enum Kind { warps, settledOperands, withoutRoles, fewerPrograms };
  Kind kind;
  CompileOptions with;

  bool isTaken(const KernelBinary& first, const KernelBinary& other, const Target& target) const;
  std::string why(const KernelBinary& first, const KernelBinary& other, const Target& target) const;
};

/// What is tried, one after the other until one is taken. `areWarpsOurs`: nobody said how many there are.
std::vector<OtherChoice> otherChoices(const KernelBinary& first, const Learnt& learnt, bool areWarpsOurs,
                                      const Target& target, const CompileOptions& options);

}  // namespace tile::ir
