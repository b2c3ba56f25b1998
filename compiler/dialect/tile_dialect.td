// tile_dialect.td - the dialect, its types and attributes.
#ifndef TILE_DIALECT_TD
#define TILE_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::tile::ir";
  let summary = "Operations on tiles: what arith, math, scf and func lack for tile kernels.";
  let description = [{
    A tile is a builtin `tensor<MxNxT>` with static, positive dims (any integer, not only powers of two); a scalar is a
    builtin scalar. Elementwise work is `arith`/`math`, control flow is `scf`, a kernel is a `func.func` with the unit
    attribute `tile.kernel`. Optional function attributes: `tile.num_warps : i32`, `tile.grid : array<i32>` (programs to run
    in each direction, for kernels without parameters that `tilec run` launches). Optional argument attributes, promises
    made by the launcher: `tile.align : i32` (bytes; pointers and views), `tile.multiple_of : i32` (integer scalars),
    `tile.unit_stride : i32` (view dim whose stride is 1), `tile.stride_multiple_of : array<i32>` and
    `tile.dim_multiple_of : array<i32>` (views, one entry per dim, 1 = nothing known), `tile.nullable` (pointers that may be
    null).
    Loop hints on `scf.for`: `tile.stages : i32`, `tile.unroll : i32`; `tile.specialize`, `tile.overlap`, `tile.pingpong : i32`
    (0: never, 1: wherever legal, absent: the planner's choice).
  }];
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasConstantMaterializer = 1;
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::func::FuncDialect"];
}

class Tile_Type<string name, string mnem> : TypeDef<Tile_Dialect, name> { let mnemonic = mnem; }
class Tile_Attr<string name, string mnem> : AttrDef<Tile_Dialect, name> { let mnemonic = mnem; }

def Tile_PtrType : Tile_Type<"Ptr", "ptr"> {
  let summary = "address of elements of one type in global memory";
  let description = "Also an element type of tensors: a tile of pointers.";
  let parameters = (ins "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $elementType `>`";
  let genVerifyDecl = 1;
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::Type":$elementType), [{ return $_get(elementType.getContext(), elementType); }]>];
}

def Tile_ViewType : Tile_Type<"View", "view"> {
  let summary = "a tensor in global memory: pointer, shape and strides (in elements) as one value";
  let parameters = (ins "int64_t":$rank, "::mlir::Type":$elementType);
  let assemblyFormat = "`<` custom<RankAndType>($rank, $elementType) `>`";  // !tile.view<2xf32>
  let genVerifyDecl = 1;
  let builders = [TypeBuilderWithInferredContext<(ins "int64_t":$rank, "::mlir::Type":$elementType), [{ return $_get(elementType.getContext(), rank, elementType); }]>];
}

class Tile_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::tile::ir";
  let genSpecializedAttr = 0;
}
class Tile_EnumAttr<I32EnumAttr e, string mnem> : EnumAttr<Tile_Dialect, e, mnem> { let assemblyFormat = "$value"; }

def Tile_RmwKind : Tile_Enum<"RmwKind", "atomic read-modify-write operation", [
  I32EnumAttrCase<"add", 0>, I32EnumAttrCase<"max", 1>, I32EnumAttrCase<"min", 2>, I32EnumAttrCase<"umax", 3>,
  I32EnumAttrCase<"umin", 4>, I32EnumAttrCase<"and_", 5, "and">, I32EnumAttrCase<"or_", 6, "or">,
  I32EnumAttrCase<"xor_", 7, "xor">, I32EnumAttrCase<"exchange", 8>]>;
def Tile_MemOrder : Tile_Enum<"MemOrder", "memory order of an atomic", [
  I32EnumAttrCase<"relaxed", 0>, I32EnumAttrCase<"acquire", 1>, I32EnumAttrCase<"release", 2>, I32EnumAttrCase<"acq_rel", 3>]>;
def Tile_MemScope : Tile_Enum<"MemScope", "who sees an atomic in order", [
  I32EnumAttrCase<"cta", 0>, I32EnumAttrCase<"gpu", 1>, I32EnumAttrCase<"sys", 2>]>;
def Tile_Precision : Tile_Enum<"Precision", "how a dot multiplies its operands", [
  I32EnumAttrCase<"ieee", 0>, I32EnumAttrCase<"tf32", 1>, I32EnumAttrCase<"tf32x3", 2>, I32EnumAttrCase<"bits", 3>]>;
def Tile_CacheHint : Tile_Enum<"CacheHint", "cache behaviour of a load or store", [
  I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"streaming", 1>, I32EnumAttrCase<"last", 2>, I32EnumAttrCase<"volatile_", 3, "volatile">]>;

def Tile_RmwKindAttr : Tile_EnumAttr<Tile_RmwKind, "rmw">;
def Tile_MemOrderAttr : Tile_EnumAttr<Tile_MemOrder, "order">;
def Tile_MemScopeAttr : Tile_EnumAttr<Tile_MemScope, "scope">;
def Tile_PrecisionAttr : Tile_EnumAttr<Tile_Precision, "precision">;
def Tile_CacheHintAttr : Tile_EnumAttr<Tile_CacheHint, "cache">;

#endif
