// catalog_choice.h - what a choice on the command line means for a row of the catalog: problem and configuration.
#pragma once
#include "kernels/catalog.h"
#include "tools/tilec/commands.h"

namespace tilec {

/// choice.problem as a problem of the row choice.kernel, of the element type among the fields.
tile::Result<tile::kernels::Problem> catalogProblem(const KernelChoice& choice);
/// The configuration a launch of the problem (null: of the row's first timed one) would use on the target, changed by the
/// fields.
tile::Result<tile::ConfigWords> catalogConfig(const KernelChoice& choice, const std::string& target,
                                              const tile::kernels::Problem* problem);

}  // namespace tilec
