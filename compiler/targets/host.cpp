// host.cpp - LLVM IR to a relocatable object for the host target.
#include "compiler/targets/host.h"

namespace tile::ir {

Result<std::string> emitObject(llvm::Module&, const Target& target, const CompileOptions&) {
  return Error{ErrorKind::compile, "object code for " + target.name + " is not built yet", {}};
}

}  // namespace tile::ir
