// report.h - what a compiled kernel needs and does, for people and as JSON.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "compiler/targets/target.h"
#include "runtime/abi.h"

namespace tilec {

/// The contents of `--emit json`; `times` in milliseconds by stage.
nlohmann::ordered_json toJson(const tile::KernelBinary& binary, const tile::ir::Target& target,
                              const std::map<std::string, double>& times);

}  // namespace tilec
