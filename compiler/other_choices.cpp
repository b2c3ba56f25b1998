// other_choices.cpp - see other_choices.h.
#include "compiler/other_choices.h"

#include "compiler/targets/nvptx.h"

namespace tile::ir {
namespace {

/// Another number of warps that is worth a try, where nobody said how many there are; 0: none.
int warpsToTry(const KernelBinary& first, const Learnt& learnt, const Target& target) {
  const int fewBytes = learnt.isStraight ? 96 : 64;
  const int warps = static_cast<int>(first.threads) / target.lanes;
  if (learnt.fitsOneWarp) return 1;
  return spilledBytes(first.resources) > fewBytes && !isOfRoles(first) && warps >= 4 &&
                 2 * warps * target.lanes <= target.maxThreads
             ? 2 * warps
             : 0;
}

/// Whether consumers of roles hold more than they have registers for, so that threads without a producer beside them
/// may do better: products that the assembler lets wait for each other, or many words in memory.
bool lacksRegistersForRoles(const KernelBinary& first) {
  constexpr int kManyBytes = 256;
  return isOfRoles(first) && (serialises(first.resources) || spilledBytes(first.resources) > kManyBytes);
}

/// Whether consumers of roles spill because many programs share the registers.
bool lacksRegistersForPrograms(const KernelBinary& first, const Learnt& learnt) {
  constexpr int kFewBytes = 48;
  return learnt.isCrowded && spilledBytes(first.resources) > kFewBytes;
}

}  // namespace

std::vector<OtherChoice> otherChoices(const KernelBinary& first, const Learnt& learnt, bool areWarpsOurs,
                                      const Target& target, const CompileOptions& options) {
  std::vector<OtherChoice> choices;
  auto add = [&](OtherChoice::Kind kind) -> CompileOptions& {
    choices.push_back({kind, options});
    return choices.back().with;
  };
  if (const int warps = areWarpsOurs ? warpsToTry(first, learnt, target) : 0) {
    add(OtherChoice::warps).numWarps = warps;
    return choices;
  }
  if (serialises(first.resources) && options.registerOperandsInFlight.value_or(true))
    add(OtherChoice::settledOperands).registerOperandsInFlight = false;
  if (lacksRegistersForRoles(first))
    add(OtherChoice::withoutRoles).useTma = false;
  else if (lacksRegistersForPrograms(first, learnt))
    add(OtherChoice::fewerPrograms).crowdedRoles = false;
  return choices;
}

/// Twice as many warps, or fewer programs with roles: if they spill a quarter or less of what the first did. One warp:
/// if it does not spill, and as many programs as a multiprocessor can have, have the registers (few programs have
/// them). Without roles: if it spills a quarter or less, and its products run on. Operands that no product reads when
/// the next iteration begins: if products then run on, and little is spilled for it.
bool OtherChoice::isTaken(const KernelBinary& first, const KernelBinary& other, const Target& target) const {
  constexpr int kPrograms = 32, kLittle = 128;
  const int before = spilledBytes(first.resources), now = spilledBytes(other.resources);
  if (kind == settledOperands) return !serialises(other.resources) && now <= before + kLittle;
  if (isOfRoles(first) && !isOfRoles(other)) return !serialises(other.resources) && 4 * now <= before;
  if (other.threads >= first.threads) return 4 * now <= before;
  return now <= before &&
         (with.fewPrograms ||
          (other.resources.registers > 0 &&
           static_cast<uint32_t>(other.resources.registers * target.lanes * kPrograms) <= target.registersPerSm));
}

std::string OtherChoice::why(const KernelBinary& first, const KernelBinary& other, const Target& target) const {
  const std::string spilled = std::to_string(spilledBytes(first.resources)) + " bytes";
  if (kind == settledOperands)
    return "products end with their iteration: where some run on that read registers, the assembler lets all of them "
           "wait for each other";
  if (isOfRoles(first) && !isOfRoles(other))
    return serialises(first.resources)
               ? "no producer warps: consumers have too few registers, and products wait for each other"
               : "no producer warps: consumers spill " + spilled;
  if (isOfRoles(first)) return "fewer programs on a multiprocessor: consumers of more spill " + spilled;
  const int warps = static_cast<int>(other.threads) / target.lanes;
  return warps == 1 ? "one warp: steps of a loop are too small for several, which would wait for each other"
                    : std::to_string(warps) + " warps: threads of half as many spill " + spilled;
}

}  // namespace tile::ir
