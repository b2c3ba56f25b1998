// passes.td - rewrites of tile IR that every target wants, and the pass that shows the analysis to tests.
#ifndef TILE_TRANSFORMS_PASSES_TD
#define TILE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def RaisePointers : Pass<"tile-raise-pointers", "::mlir::func::FuncOp"> {
  let summary = "pointer tiles become a scalar base and an offset tile";
  let description = [{
    Before: memory operations take `tensor<..x!tile.ptr<T>>` values built by splat, ptr_add, select, reshapes and carried
    through scf. After: no tile of pointers is left; every access has a scalar base and i32 or i64 element offsets, and
    the part of an offset that is equal for all elements is in the base, added with 64 bits.
  }];
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def SinkBroadcasts : Pass<"tile-sink-broadcasts", "::mlir::func::FuncOp"> {
  let summary = "elementwise work on repeated values is done once, before they are repeated";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def SplitLoads : Pass<"tile-split-loads", "::mlir::func::FuncOp"> {
  let summary = "boxes that are read to be cut are read piece by piece";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def JoinCats : Pass<"tile-join-cats", "::mlir::func::FuncOp"> {
  let summary = "cats of cats along one axis become one";
  let options = [Option<"keepAlike", "keep-alike", "bool", "false",
                        "cats of pieces of one shape do not get pieces of several">];
  let dependentDialects = ["::tile::ir::TileDialect"];
}

def ShiftByTakes : Pass<"tile-shift-by-takes", "::mlir::func::FuncOp"> {
  let summary = "tiles that are moved along an axis (cats of pieces of one tile and fillings) are lookups in it";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def LookUpChosen : Pass<"tile-look-up-chosen", "::mlir::func::FuncOp"> {
  let summary = "what a loop chooses of a tile made in front of it by a sum of one element and zeros is looked up";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def FoldArguments : Pass<"tile-fold-arguments", "::mlir::func::FuncOp"> {
  let summary = "arguments that are promised to be 1 are that number";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def ChooseForms : Pass<"tile-choose-forms", "::mlir::func::FuncOp"> {
  let summary = "inline assembly or what stands in for it on hosts";
  let options = [Option<"host", "host", "bool", "false", "the target is a host">];
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def ShareReductions : Pass<"tile-share-reductions", "::mlir::func::FuncOp"> {
  let summary = "a tile is combined once along an axis that several reductions of it have";
  let dependentDialects = ["::tile::ir::TileDialect"];
}

def WholePowers : Pass<"tile-whole-powers", "::mlir::func::FuncOp"> {
  let summary = "small whole powers are products";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def NarrowMoves : Pass<"tile-narrow-moves", "::mlir::func::FuncOp"> {
  let summary = "tiles that are rounded behind a permutation of several dims are rounded in front of it";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def AccumulateProducts : Pass<"tile-accumulate-products", "::mlir::func::FuncOp"> {
  let summary = "sums behind products are their accumulators";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def MultiplyNarrow : Pass<"tile-multiply-narrow", "::mlir::func::FuncOp"> {
  let summary = "products of widened numbers multiply the narrow ones";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def UnrollBatches : Pass<"tile-unroll-batches", "::mlir::func::FuncOp"> {
  let summary = "products of several matrices are one product for each, unless single warps compute them";
  let options = [Option<"host", "host", "bool", "false", "the target is a host">];
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def SmallProducts : Pass<"tile-small-products", "::mlir::func::FuncOp"> {
  let summary = "many small products that no tensor core multiplies are computed element by element";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def SplitCarried : Pass<"tile-split-carried", "::mlir::func::FuncOp"> {
  let summary = "tiles that loops cut and put together again in every iteration are carried in pieces";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::scf::SCFDialect"];
}

def CountSteps : Pass<"tile-count-steps", "::mlir::func::FuncOp"> {
  let summary = "integers that loops advance by the same number in every iteration are counted, not carried";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def GuardSteps : Pass<"tile-guard-steps", "::mlir::func::FuncOp"> {
  let summary = "loops whose step may be 0 or less when the kernel runs have no iteration then";
  let options = [Option<"report", "report", "bool", "false", "a step that is not positive fails an assertion as well">];
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def SimplifyMasks : Pass<"tile-simplify-masks", "::mlir::func::FuncOp"> {
  let summary = "comparisons that ranges decide become constants; masks that are always true disappear";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def DropMultiples : Pass<"tile-drop-multiples", "::mlir::func::FuncOp"> {
  let summary = "remainders by powers of two forget the multiples that were added";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def PeelMasks : Pass<"tile-peel-masks", "::mlir::func::FuncOp"> {
  let summary = "masks of loops with products are computed in the first and last iterations only, where they matter";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def PrintFacts : Pass<"tile-print-facts", "::mlir::func::FuncOp"> {
  let summary = "a remark with the facts about the result of every operation that has the attribute `facts`";
}

#endif
