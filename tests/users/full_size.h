// full_size.h - problems at full size, which no plain loop checks: what two runs, and two targets, make of them.
#pragma once
#include <string>

#include "tests/users/use.h"

namespace users {

/// Runs the case's big problem twice, each time with its own copy of the same data. Prints for each array that changed
/// how far the runs are apart ("AGAIN", but where they agree to the bit: atomics add in any order, races should not
/// be), and how far from what another target or configuration (a name up to its colon is the same) left in `folder`
/// ("OTHER"; what nobody compared yet is left there).
/// Distances are relative, of all elements together, as the type that makes them smallest.
void compare_at_full_size(const Case& c, const std::shared_ptr<Device>& device, Env env, const std::string& folder);

}  // namespace users
