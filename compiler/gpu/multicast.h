// multicast.h - which tiles the programs of a cluster copy for each other.
//
// Before: both programs of a pair along axis 0 (tile.cluster = 2 on the kernel) copy B whole.
// After: copies that are the same for both are marked; each program then starts one half of them, into both.
#pragma once
#include "compiler/analysis/facts.h"
#include "compiler/gpu/ring_groups.h"
#include "compiler/gpu/role_slice.h"

namespace tile::ir {

/// Marks the bulk copies of loops whose indices do not depend on program_id 0 with kMulticastAttr. Nothing is marked in
/// kernels whose programs differ in what they do, or where other threads copy or turn tiles. Remarks say why where a
/// cluster was asked for.
void markShared(mlir::func::FuncOp func, const std::vector<LoadGroup>& groups, const RoleSlice& slice,
                const Facts& facts);

}  // namespace tile::ir
