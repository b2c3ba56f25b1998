// unroll_turns.h - the pass that makes several bodies of loops whose tiles take turns, for gpu.cpp.
#pragma once
#include "compiler/gpu/dot_passes.h"

namespace tile::ir {

/// As many bodies as tiles take turns in a loop: nothing moves from register to register.
std::unique_ptr<mlir::Pass> createUnrollTurnsPass(OptionsOf options);

}  // namespace tile::ir
