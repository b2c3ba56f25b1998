// elementwise.h - the one lowering of elementwise ops (arith, math) to LLVM IR, shared by every back end.
// Works on one LLVM value per operand: a scalar, or a vector of any length for back ends that compute in vectors.
// Numbers map to LLVM types as: iN -> iN, f16 -> half, bf16 -> bfloat, f32 -> float, f64 -> double, f8* -> i8 (storage
// only).
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"
#include "mlir/IR/Operation.h"

namespace tile::ir {

class PowersOfTwo;
class RoughReciprocals;

/// What differs between machines. The default spelling is LLVM's own intrinsic or the polynomial of math_functions.h.
class MathHooks {
 public:
  virtual ~MathHooks() = default;
  /// The machine's own spelling of `op` on `args`, or null for the default one. f16 and bf16 operands of math ops
  /// arrive here widened to f32 already (the result is rounded back by the caller).
  virtual llvm::Value* special(llvm::IRBuilderBase& b, mlir::Operation* op, llvm::ArrayRef<llvm::Value*> args) const {
    return nullptr;
  }
  /// True where integer division by zero traps: the emitter then divides by 1 instead (the result is unspecified
  /// anyway).
  bool guardDivision = false;
  /// True where libm can be linked: f64 and rare functions are calls there, and unknown on machines without it.
  bool hasLibm = false;
  /// True where float to int conversion of out-of-range values is undefined in hardware: saturate in software.
  bool saturateConversions = false;
  /// The machine's instructions for powers of two (math_functions.h), if it has any.
  const PowersOfTwo* powers = nullptr;
  /// Its instructions for the first digits of f64 reciprocals (math_functions_f64.h), if it has any.
  const RoughReciprocals* rough = nullptr;
};

/// True when emitElementwise can lower the op (constants excluded).
bool isElementwise(mlir::Operation* op);
/// About how many instructions of a machine an elementwise op is, for one element.
int elementwiseCost(mlir::Operation* op);

/// Lowers one op on one set of operand values; returns one value per result. An op it does not know yields an empty
/// list: the caller reports it (`op` has its location). Numbers of few bits come as float: the caller rounds them.
llvm::SmallVector<llvm::Value*, 2> emitElementwise(llvm::IRBuilderBase& b, mlir::Operation* op,
                                                   llvm::ArrayRef<llvm::Value*> args, const MathHooks& hooks);

/// LLVM scalar type of an MLIR number type (see the table above); null for anything else.
llvm::Type* llvmType(llvm::LLVMContext& ctx, mlir::Type type);

/// The constant of one element, from an IntegerAttr or FloatAttr.
llvm::Constant* llvmConstant(llvm::LLVMContext& ctx, mlir::Attribute value);

/// `element`, or a vector of it as long as `like`: withElement(<8 x half>, float) is <8 x float>.
llvm::Type* withElement(llvm::Type* like, llvm::Type* element);

}  // namespace tile::ir
