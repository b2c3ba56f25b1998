// multicast.h - tiles that the programs of a cluster copy for each other.
//
// Before: both programs of a pair along axis 0 (tile.cluster = 2 on the kernel) copy B whole.
// After: copies that are the same for both are marked; each program then starts one half of them, into both.
#pragma once
#include "compiler/analysis/facts.h"
#include "compiler/gpu/rings/ring_groups.h"
#include "compiler/gpu/roles/role_slice.h"

namespace tile::ir {

/// Marks with kMulticastAttr the bulk copies of loops whose indices do not depend on program_id 0. Nothing is marked in
/// kernels whose programs differ in their control flow, or in which other threads copy or transpose tiles; if the
/// kernel asked for a cluster, a remark says why.
void markShared(mlir::func::FuncOp func, const std::vector<LoadGroup>& groups, const RoleSlice& slice,
                const Facts& facts);

}  // namespace tile::ir
