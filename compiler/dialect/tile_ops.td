// tile_ops.td - what the tracer emits (with arith, math, scf, func) and every target lowers.
#ifndef TILE_OPS_TD
#define TILE_OPS_TD

include "compiler/dialect/tile_dialect.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;

def Tile_Number : Type<CPred<"::tile::ir::isNumber($_self)">, "number (i1, i8, i16, i32, i64, f8E4M3FN, f8E5M2, f16, bf16, f32, f64)">;
def Tile_Integer : Type<CPred<"(::tile::ir::isNumber($_self) && $_self.isInteger())">, "integer (i1, i8, i16, i32, i64)">;
// Unranked, dynamic, empty and absurdly large tensors end here: verifiers and passes may take a shape for granted.
class Tile_Of<list<Type> elements, list<Pred> more = [], string what = "tile">
    : ShapedContainerType<elements, And<!listconcat([CPred<"::tile::ir::isTileType($_self)">], more)>,
                          what # " (tensor of rank 1 to 8 with static positive dims and at most 4194304 elements)", "::mlir::TensorType">;
class Tile_OfRank<int rank, list<Type> elements> : Tile_Of<elements, [HasAnyRankOfPred<[rank]>], rank # "-D tile">;
def Tile_Tensor : Tile_Of<[Tile_Number, Tile_PtrType]>;
def Tile_NumTensor : Tile_Of<[Tile_Number]>;
def Tile_Offsets : Tile_Of<[I32, I64]>;
def Tile_Summed : Tile_Of<[I32, I64, F32, F64]>;  // what shared memory adds up
def Tile_IntLike : AnyTypeOf<[Tile_Integer, Tile_Of<[Tile_Integer]>]>;
def Tile_BoolLike : AnyTypeOf<[I1, Tile_Of<[I1]>]>;
def Tile_PtrLike : AnyTypeOf<[Tile_PtrType, Tile_Of<[Tile_PtrType]>]>;
def Tile_NumLike : AnyTypeOf<[Tile_Number, Tile_NumTensor]>;
def Tile_AnyLike : AnyTypeOf<[Tile_Number, Tile_PtrType, Tile_Tensor]>;

// ---- the grid
def Tile_ProgramIdOp : Tile_Op<"program_id", [Pure]> {
  let summary = "index of this program along one axis (0, 1, 2) of the grid";
  let arguments = (ins ConfinedAttr<I32Attr, [IntMinValue<0>, IntMaxValue<2>]>:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}
def Tile_NumProgramsOp : Tile_Op<"num_programs", [Pure]> {
  let summary = "programs along one axis (0, 1, 2) of the grid";
  let arguments = (ins ConfinedAttr<I32Attr, [IntMinValue<0>, IntMaxValue<2>]>:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

// ---- functions of elements that arith and math lack; tiles and scalars alike
class Tile_Like<Type element> : AnyTypeOf<[element, Tile_Of<[element]>]>;
class Tile_Function<string mnemonic, Type element, list<Trait> traits = []>
    : Tile_Op<mnemonic, [Pure, SameOperandsAndResultType] # ElementwiseMappable.traits # traits> {
  let arguments = (ins AnyTypeOf<[element, Tile_Of<[element]>]>:$x);
  let results = (outs AnyTypeOf<[element, Tile_Of<[element]>]>:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}
def Tile_IsFloatFunction : NativeOpTrait<"IsFloatFunction"> { let cppNamespace = "::tile::ir"; }
class Tile_FloatFunction<string mnemonic, string what>
    : Tile_Function<mnemonic, AnyTypeOf<[F16, BF16, F32, F64]>, [Tile_IsFloatFunction]> {
  let summary = what;
}
def Tile_LgammaOp : Tile_FloatFunction<"lgamma",
    "natural logarithm of |Gamma(x)|; infinite at 0 and negative whole numbers">;
def Tile_TgammaOp : Tile_FloatFunction<"tgamma", "Gamma(x): infinite at 0, NaN at negative whole numbers">;
def Tile_ErfinvOp : Tile_FloatFunction<"erfinv", "the y with erf(y) = x; infinite at 1 and -1, NaN beyond">;
def Tile_ErfcinvOp : Tile_FloatFunction<"erfcinv", "the y with erfc(y) = x; infinite at 0 and 2, NaN beyond">;
def Tile_GeluOp : Tile_FloatFunction<"gelu", "x normcdf(x)">;
def Tile_NormcdfOp : Tile_FloatFunction<"normcdf", "probability that a standard normal variable is at most x">;
def Tile_NormcdfinvOp : Tile_FloatFunction<"normcdfinv", "the y with normcdf(y) = x; infinite at 0 and 1, NaN beyond">;
def Tile_J0Op : Tile_FloatFunction<"j0", "Bessel function of the first kind, of order 0">;
def Tile_J1Op : Tile_FloatFunction<"j1", "Bessel function of the first kind, of order 1">;
def Tile_Y0Op : Tile_FloatFunction<"y0", "Bessel function of the second kind, of order 0; -inf at 0, NaN below">;
def Tile_Y1Op : Tile_FloatFunction<"y1", "Bessel function of the second kind, of order 1; -inf at 0, NaN below">;
// Rounded to nearest on their own: never approximated, never joined with a neighbour to one fma.
class Tile_Rounded<string mnemonic, dag operands, string form, string what>
    : Tile_Op<mnemonic, [Pure, SameOperandsAndResultType] # ElementwiseMappable.traits> {
  let summary = what;
  let arguments = operands;
  let results = (outs Tile_Like<AnyTypeOf<[F16, BF16, F32, F64]>>:$result);
  let assemblyFormat = form # " attr-dict `:` type($result)";
}
class Tile_RoundedBinary<string mnemonic, string what>
    : Tile_Rounded<mnemonic, (ins Tile_Like<AnyTypeOf<[F16, BF16, F32, F64]>>:$x,
                                  Tile_Like<AnyTypeOf<[F16, BF16, F32, F64]>>:$y), "$x `,` $y", what>;
def Tile_AddRnOp : Tile_RoundedBinary<"add_rn", "sum rounded to nearest by itself">;
def Tile_MulRnOp : Tile_RoundedBinary<"mul_rn", "product rounded to nearest by itself">;
def Tile_DivRnOp : Tile_RoundedBinary<"div_rn", "quotient rounded to nearest">;
def Tile_SqrtRnOp : Tile_Rounded<"sqrt_rn", (ins Tile_Like<AnyTypeOf<[F16, BF16, F32, F64]>>:$x), "$x",
    "square root rounded to nearest">;
def Tile_BitReverseOp : Tile_Function<"bit_reverse", Tile_Integer> {
  let summary = "the bits in the opposite order";
}

// ---- numbers of few bits that tiles hold in bytes
def Tile_WidenE2m1Op : Tile_Op<"widen_e2m1", [Pure, AllTypesMatch<["low", "high"]>] # ElementwiseMappable.traits> {
  let summary = "the two e2m1 numbers (sign, two bits of exponent, one of mantissa) of a byte: lower half, upper half";
  let arguments = (ins Tile_Like<I8>:$bytes);
  let results = (outs Tile_Like<AnyTypeOf<[F16, BF16, F32]>>:$low, Tile_Like<AnyTypeOf<[F16, BF16, F32]>>:$high);
  let assemblyFormat = "$bytes attr-dict `:` type($bytes) `->` type($low)";
}
def Tile_WidenE8m0Op : Tile_Op<"widen_e8m0", [Pure] # ElementwiseMappable.traits> {
  let summary = "2^(x - 127) of an unsigned byte, NaN of 255; rounded to the result's type";
  let arguments = (ins Tile_Like<I8>:$bytes);
  let results = (outs Tile_Like<AnyTypeOf<[F16, BF16, F32]>>:$result);
  let assemblyFormat = "$bytes attr-dict `:` type($bytes) `->` type($result)";
}

// ---- pointers and views
def Tile_PtrAddOp : Tile_Op<"ptr_add", [Pure, AllTypesMatch<["ptr", "result"]>]> {
  let summary = "pointer plus offset in elements; 64-bit address arithmetic whatever the offset's width (signed)";
  let description = "Scalar + scalar, or tile + tile of one shape. raise_pointers leaves only scalar ones.";
  let arguments = (ins Tile_PtrLike:$ptr, Tile_IntLike:$offset);
  let results = (outs Tile_PtrLike:$result);
  let assemblyFormat = "$ptr `,` $offset attr-dict `:` type($ptr) `,` type($offset)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_PtrToIntOp : Tile_Op<"ptr_to_int", [Pure]> {
  let arguments = (ins Tile_PtrType:$ptr);
  let results = (outs I64:$result);
  let assemblyFormat = "$ptr attr-dict `:` type($ptr)";
}
def Tile_IntToPtrOp : Tile_Op<"int_to_ptr", [Pure]> {
  let summary = "address from an integer, for tables of pointers";
  let arguments = (ins I64:$address);
  let results = (outs Tile_PtrType:$result);
  let assemblyFormat = "$address attr-dict `:` type($result)";
}
def Tile_MakeViewOp : Tile_Op<"make_view", [Pure, AttrSizedOperandSegments]> {
  let summary = "view from pointer, dims and strides (in elements)";
  let arguments = (ins Tile_PtrType:$ptr, Variadic<I64>:$dims, Variadic<I64>:$strides);
  let results = (outs Tile_ViewType:$result);
  let assemblyFormat = "$ptr `,` `dims` `(` $dims `)` `,` `strides` `(` $strides `)` attr-dict `:` type($ptr) `->` type($result)";
  let hasVerifier = 1;
}
def Tile_ViewPtrOp : Tile_Op<"view_ptr", [Pure]> {
  let arguments = (ins Tile_ViewType:$view);
  let results = (outs Tile_PtrType:$result);
  let assemblyFormat = "$view attr-dict `:` type($view) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_ViewDimOp : Tile_Op<"view_dim", [Pure]> {
  let summary = "size of the view along one dim";
  let arguments = (ins Tile_ViewType:$view, I32Attr:$dim);
  let results = (outs I64:$result);
  let assemblyFormat = "$view `,` $dim attr-dict `:` type($view)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_ViewStrideOp : Tile_Op<"view_stride", [Pure]> {
  let summary = "distance in elements between neighbours along one dim";
  let arguments = (ins Tile_ViewType:$view, I32Attr:$dim);
  let results = (outs I64:$result);
  let assemblyFormat = "$view `,` $dim attr-dict `:` type($view)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

// ---- memory: views and coordinates
def Tile_LoadOp : Tile_Op<"load", [MemoryEffects<[MemRead]>]> {
  let summary = "box of a view at integer coordinates; elements outside the view read as `pad`";
  let description = [{
    One index per view dim (i32 or i64, may be negative or past the end). The tile's rank r is at most the view's rank
    R: tile dims are the last r view dims, the leading R - r dims have extent 1. A scalar result reads one element.
    `pad` is converted to the element type; absent means 0.
  }];
  let arguments = (ins Tile_ViewType:$view, Variadic<AnyTypeOf<[I32, I64]>>:$indices, OptionalAttr<F64Attr>:$pad,
                       DefaultValuedAttr<Tile_CacheHintAttr, "CacheHint::none">:$cache);
  let results = (outs AnyTypeOf<[Tile_Number, Tile_NumTensor]>:$result);
  let assemblyFormat = "$view `[` $indices `:` type($indices) `]` (`pad` $pad^)? (`cache` $cache^)? attr-dict `:` type($view) `->` type($result)";
  let hasVerifier = 1;
}
def Tile_StoreOp : Tile_Op<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "writes a box of a view; elements outside the view are not written";
  let arguments = (ins AnyTypeOf<[Tile_Number, Tile_NumTensor]>:$value, Tile_ViewType:$view, Variadic<AnyTypeOf<[I32, I64]>>:$indices,
                       DefaultValuedAttr<Tile_CacheHintAttr, "CacheHint::none">:$cache);
  let assemblyFormat = "$value `,` $view `[` $indices `:` type($indices) `]` (`cache` $cache^)? attr-dict `:` type($value) `,` type($view)";
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
}

def Tile_AccumulateOp : Tile_Op<"accumulate", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "adds a box to a view, element by element atomically (relaxed, device scope); elements outside the view are left alone";
  let description = "Indices and shapes as for store. The order of additions from several programs is not specified.";
  let arguments = (ins AnyTypeOf<[Tile_Number, Tile_NumTensor]>:$value, Tile_ViewType:$view, Variadic<AnyTypeOf<[I32, I64]>>:$indices);
  let assemblyFormat = "$value `,` $view `[` $indices `:` type($indices) `]` attr-dict `:` type($value) `,` type($view)";
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
}

// ---- memory: pointers. Traced form: `ptr` alone (scalar or tile). After raise_pointers: scalar `ptr` + tile `offsets`
// (i32 or i64, in elements, signed), or scalar `ptr` alone for scalar accesses.
def Tile_GatherOp : Tile_Op<"gather", [MemoryEffects<[MemRead]>, AttrSizedOperandSegments]> {
  let summary = "load through pointers; lanes with mask false read `other` (0 when absent) and touch no memory";
  let arguments = (ins Tile_PtrLike:$ptr, Optional<Tile_Offsets>:$offsets, Optional<Tile_BoolLike>:$mask, Optional<Tile_NumLike>:$other,
                       DefaultValuedAttr<Tile_CacheHintAttr, "CacheHint::none">:$cache);
  let results = (outs Tile_NumLike:$result);
  let assemblyFormat = "$ptr (`offsets` $offsets^ `:` type($offsets))? (`mask` $mask^ `:` type($mask))? (`other` $other^ `:` type($other))? (`cache` $cache^)? attr-dict `:` type($ptr) `->` type($result)";
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
}
def Tile_ScatterOp : Tile_Op<"scatter", [MemoryEffects<[MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "store through pointers; lanes with mask false touch no memory";
  let arguments = (ins Tile_PtrLike:$ptr, Optional<Tile_Offsets>:$offsets, Tile_NumLike:$value, Optional<Tile_BoolLike>:$mask,
                       DefaultValuedAttr<Tile_CacheHintAttr, "CacheHint::none">:$cache);
  let assemblyFormat = "$value `,` $ptr (`offsets` $offsets^ `:` type($offsets))? (`mask` $mask^ `:` type($mask))? (`cache` $cache^)? attr-dict `:` type($value) `,` type($ptr)";
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
}
def Tile_AtomicRmwOp : Tile_Op<"atomic_rmw", [MemoryEffects<[MemRead, MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "atomic update; returns the values before it (undefined where mask is false)";
  let arguments = (ins Tile_RmwKindAttr:$kind, Tile_MemOrderAttr:$order, Tile_MemScopeAttr:$scope, Tile_PtrLike:$ptr,
                       Optional<Tile_Offsets>:$offsets, Tile_NumLike:$value, Optional<Tile_BoolLike>:$mask);
  let results = (outs Tile_NumLike:$result);
  let assemblyFormat = "$kind $order $scope $ptr (`offsets` $offsets^ `:` type($offsets))? `,` $value (`mask` $mask^ `:` type($mask))? attr-dict `:` type($ptr) `,` type($value) `->` type($result)";
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
}
def Tile_AtomicCasOp : Tile_Op<"atomic_cas", [MemoryEffects<[MemRead, MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "compare and swap on integers; returns the values before it";
  let arguments = (ins Tile_MemOrderAttr:$order, Tile_MemScopeAttr:$scope, Tile_PtrLike:$ptr, Optional<Tile_Offsets>:$offsets,
                       Tile_NumLike:$expected, Tile_NumLike:$desired, Optional<Tile_BoolLike>:$mask);
  let results = (outs Tile_NumLike:$result);
  let assemblyFormat = "$order $scope $ptr (`offsets` $offsets^ `:` type($offsets))? `,` $expected `,` $desired (`mask` $mask^ `:` type($mask))? attr-dict `:` type($ptr) `,` type($expected) `,` type($desired) `->` type($result)";
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
}

// ---- making and reshaping tiles
def Tile_IotaOp : Tile_Op<"iota", [Pure]> {
  let summary = "rank-1 tile start, start+1, ...";
  let arguments = (ins DefaultValuedAttr<I64Attr, "0">:$start);
  let results = (outs Tile_OfRank<1, [Tile_Integer]>:$result);
  let assemblyFormat = "(`from` $start^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Tile_SplatOp : Tile_Op<"splat", [Pure]> {
  let summary = "tile with one scalar in every element";
  let arguments = (ins AnyTypeOf<[Tile_Number, Tile_PtrType]>:$value);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_BroadcastOp : Tile_Op<"broadcast", [Pure]> {
  let summary = "repeats dims of size 1; rank and other dims stay";
  let arguments = (ins Tile_Tensor:$source);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_ReshapeOp : Tile_Op<"reshape", [Pure]> {
  let summary = "same elements in row-major order under another shape (also adds and drops dims of size 1)";
  let arguments = (ins Tile_Tensor:$source);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_TransOp : Tile_Op<"trans", [Pure]> {
  let summary = "permutes dims: result dim i is source dim permutation[i]";
  let arguments = (ins Tile_Tensor:$source, DenseI32ArrayAttr:$permutation);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source `,` $permutation attr-dict `:` type($source) `->` type($result)";
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_CatOp : Tile_Op<"cat", [Pure]> {
  let summary = "tiles one after another along an axis";
  let arguments = (ins Variadic<Tile_Tensor>:$sources, I32Attr:$axis);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$sources `axis` $axis attr-dict `:` type($sources) `->` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}
def Tile_ExtractOp : Tile_Op<"extract", [Pure]> {
  let summary = "box of a tile at static offsets; the box's shape is the result's";
  let arguments = (ins Tile_Tensor:$source, DenseI32ArrayAttr:$offsets);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source $offsets attr-dict `:` type($source) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
}
def Tile_TakeOp : Tile_Op<"take", [Pure]> {
  let summary = "result[.., i, ..] = source[.., indices[.., i, ..], ..] along an axis; indices outside the axis are undefined values, never out-of-bounds reads";
  let arguments = (ins Tile_NumTensor:$source, Tile_Of<[I32]>:$indices, I32Attr:$axis);
  let results = (outs Tile_NumTensor:$result);
  let assemblyFormat = "$source `,` $indices `axis` $axis attr-dict `:` type($source) `,` type($indices) `->` type($result)";
  let hasVerifier = 1;
}
def Tile_PutOp : Tile_Op<"put", [Pure, SameVariadicOperandSize]> {
  let summary = "into, with result[.., indices[.., i, ..], ..] = values[.., i, ..] along an axis; the inverse of take";
  let description = [{
    Elements whose index, as an unsigned number, is outside of the axis are put nowhere. Of several that are put to one
    place one stays, which is not specified and may be another one each time. Several pairs of values and indices, all of
    one shape, are put one after the other: where pairs meet the later one stays. `whole`: each element of the result is
    put, so that nothing of `into` stays; one that is not has no specified value.
  }];
  let arguments = (ins Variadic<Tile_NumTensor>:$values, Variadic<Tile_Of<[I32]>>:$indices, Tile_NumTensor:$into,
                       I32Attr:$axis, UnitAttr:$whole);
  let results = (outs Tile_NumTensor:$result);
  let assemblyFormat = "$values `at` $indices `into` $into `axis` $axis attr-dict `:` functional-type(operands, results)";
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
}
def Tile_HistogramOp : Tile_Op<"histogram", [Pure]> {
  let summary = "how many elements are 0, 1, .. up to the result's size, or the sums of their weights; others are not counted";
  let description = "Weights are added in any order, which may be another one each time.";
  let arguments = (ins Tile_Of<[I32]>:$source, Optional<Tile_Summed>:$weights);
  let results = (outs Tile_Summed:$result);
  let assemblyFormat = "$source (`weights` $weights^ `:` type($weights))? attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}
def Tile_ItemOp : Tile_Op<"item", [Pure]> {
  let summary = "the element of a one-element tile as a scalar, the same in every thread (what a branch or loop bound needs)";
  let arguments = (ins Tile_Tensor:$source);
  let results = (outs AnyTypeOf<[Tile_Number, Tile_PtrType]>:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

// ---- across elements
def Tile_ReduceOp : Tile_Op<"reduce", [Pure, SameVariadicOperandSize, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "combines all elements along an axis, keeping the axis with size 1";
  let description = [{
    n operands of one shape give n results; the region takes 2n scalars (accumulated, then next) and yields n. The
    combiner must be associative and commutative: the order is unspecified but fixed for a given target and config.
  }];
  let arguments = (ins Variadic<Tile_NumTensor>:$sources, I32Attr:$axis);
  let results = (outs Variadic<Tile_NumTensor>:$results);
  let regions = (region SizedRegion<1>:$combiner);
  let assemblyFormat = "$sources `axis` $axis attr-dict `:` functional-type($sources, $results) custom<Combiner>($combiner)";
  let hasFolder = 1;
  let hasVerifier = 1;
}
def Tile_ScanOp : Tile_Op<"scan", [Pure, SameVariadicOperandSize, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "inclusive prefix combination along an axis (from the end when `reverse`); the combiner must be associative";
  let arguments = (ins Variadic<Tile_NumTensor>:$sources, I32Attr:$axis, UnitAttr:$reverse);
  let results = (outs Variadic<Tile_NumTensor>:$results);
  let regions = (region SizedRegion<1>:$combiner);
  let assemblyFormat = "$sources `axis` $axis (`reverse` $reverse^)? attr-dict `:` functional-type($sources, $results) custom<Combiner>($combiner)";
  let hasFolder = 1;
  let hasVerifier = 1;
}
def Tile_BallotOp : Tile_Op<"ballot", [RecursiveMemoryEffects, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "a question asked 32 times at once: bit j of the result is what the region says of j";
  let description = [{
    The region takes j (i32, 0 to 31) and yields an i1; it computes with scalars and may read memory. Every warp asks by
    itself, a lane for each j. Made by list_steps for GPUs. With `combined` it yields an i32 instead, and the result is
    what the 32 numbers come to: made by specialize of loop bounds that are extremes or sums of tiles.
  }];
  let arguments = (ins OptionalAttr<Tile_RmwKindAttr>:$combined);
  let results = (outs I32:$bits);
  let regions = (region SizedRegion<1>:$steps);
  let assemblyFormat = "(`combined` $combined^)? custom<Combiner>($steps) attr-dict";
  let hasVerifier = 1;
}
def Tile_YieldOp : Tile_Op<"yield", [Pure, Terminator, ReturnLike, ParentOneOf<["ReduceOp", "ScanOp", "BallotOp"]>]> {
  let arguments = (ins Variadic<Tile_Number>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ (void)$_builder; (void)$_state; }]>];
}

// ---- matrix product
def Tile_DotOp : Tile_Op<"dot", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "acc + a * b for an MxK and a KxN tile";
  let description = [{
    f16, bf16, f8 and f32 operands (of one type; f8 may differ) accumulate in f32; f64 in f64; i8 in i32. `precision` is about f32
    operands: ieee multiplies exactly rounded f32, tf32 keeps 10 mantissa bits, tf32x3 sums three tf32 products.
    i32 operands are words of `precision bits`: a product of two is the number of bits that both have, acc is i32.
  }];
  let arguments = (ins Tile_OfRank<2, [Tile_Number]>:$a, Tile_OfRank<2, [Tile_Number]>:$b, Tile_OfRank<2, [Tile_Number]>:$acc,
                       DefaultValuedAttr<Tile_PrecisionAttr, "Precision::ieee">:$precision);
  let results = (outs Tile_OfRank<2, [Tile_Number]>:$result);
  let assemblyFormat = "$a `,` $b `,` $acc (`precision` $precision^)? attr-dict `:` type($a) `,` type($b) `->` type($acc)";
  let hasVerifier = 1;
}

def Tile_BatchDotOp : Tile_Op<"batch_dot", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "acc[i] + a[i] * b[i] for every matrix i of BxMxK and BxKxN tiles";
  let description = [{
    As many products as `dot` would be asked for one by one; types and `precision` are those of `dot`.
  }];
  let arguments = (ins Tile_OfRank<3, [Tile_Number]>:$a, Tile_OfRank<3, [Tile_Number]>:$b, Tile_OfRank<3, [Tile_Number]>:$acc,
                       DefaultValuedAttr<Tile_PrecisionAttr, "Precision::ieee">:$precision);
  let results = (outs Tile_OfRank<3, [Tile_Number]>:$result);
  let assemblyFormat = "$a `,` $b `,` $acc (`precision` $precision^)? attr-dict `:` type($a) `,` type($b) `->` type($acc)";
  let hasVerifier = 1;
}

// ---- the machine's own language
def Tile_OnHostOp : Tile_Op<"on_host", [Pure]> {
  let summary = "whether this is compiled for a host: a constant from the tile stage on";
  let results = (outs I1:$result);
  let assemblyFormat = "attr-dict";
}
def Tile_InlineAsmOp : Tile_Op<"inline_asm", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>] #
                                            ElementwiseMappable.traits> {
  let summary = "PTX on registers of `pack` elements at a time (compiler/dialect/inline_asm.h has the rules)";
  let description = [{
    `$0`, `$1` .. in the text are the registers of the results, then those of the arguments. Elements narrower than 32
    bits share registers of 32 bits as far as `pack` goes. GPUs only: on hosts a branch of tile.on_host stands beside it.
    Not pure: its effects are kept, in order, as often as the machine has copies of an element.
  }];
  let arguments = (ins StrAttr:$text, StrAttr:$constraints, Variadic<Tile_NumLike>:$args,
                       DefaultValuedAttr<I32Attr, "1">:$pack, UnitAttr:$pure);
  let results = (outs Variadic<Tile_NumLike>:$results);
  let assemblyFormat = "$text `,` $constraints `(` $args `)` (`pack` $pack^)? (`pure` $pure^)? attr-dict `:` functional-type($args, $results)";
  let hasVerifier = 1;
}

// ---- hints and debugging
def Tile_AssumeOp : Tile_Op<"assume", [Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "the value, with the promise that every element is a multiple of `multiple_of`, and lies between two ends";
  let arguments = (ins Tile_IntLike:$value, ConfinedAttr<I64Attr, [IntPositive]>:$multiple_of,
                       OptionalAttr<I64Attr>:$at_least, OptionalAttr<I64Attr>:$at_most);
  let results = (outs Tile_IntLike:$result);
  let hasFolder = 1;
  let assemblyFormat = "$value `multiple_of` $multiple_of (`from` $at_least^)? (`to` $at_most^)? attr-dict `:` type($value)";
}
def Tile_AssumeTrueOp : Tile_Op<"assume_true", [MemoryEffects<[MemWrite]>]> {
  let summary = "promise that a scalar condition holds";
  let arguments = (ins I1:$condition);
  let assemblyFormat = "$condition attr-dict";
}
def Tile_PrintOp : Tile_Op<"print", [MemoryEffects<[MemWrite]>]> {
  let summary = "appends every element to the debug ring under a message";
  // Integers have no sign of their own: how they read is said here.
  let arguments = (ins Tile_NumLike:$value, StrAttr:$message, UnitAttr:$is_unsigned);
  let assemblyFormat = "$message $value (`unsigned` $is_unsigned^)? attr-dict `:` type($value)";
}
def Tile_AssertOp : Tile_Op<"assert", [MemoryEffects<[MemWrite]>]> {
  let summary = "where the condition is false: a record in the debug ring, then the launch fails";
  let arguments = (ins Tile_BoolLike:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict `:` type($condition)";
}

#endif
