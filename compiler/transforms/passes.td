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
  let summary = "boxes that are loaded only to be cut are loaded piece by piece";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def JoinCats : Pass<"tile-join-cats", "::mlir::func::FuncOp"> {
  let summary = "cats of cats along one axis become one cat";
  let options = [Option<"keepAlike", "keep-alike", "bool", "false",
                        "a cat of pieces of one shape takes no pieces of other shapes">];
  let dependentDialects = ["::tile::ir::TileDialect"];
}

def ShiftByTakes : Pass<"tile-shift-by-takes", "::mlir::func::FuncOp"> {
  let summary = "tiles that are shifted along an axis (cats of pieces of one tile and fillings) become lookups in it";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def LookUpChosen : Pass<"tile-look-up-chosen", "::mlir::func::FuncOp"> {
  let summary = "selecting an element by a sum over a mask, in a loop that does not make the tile, becomes a lookup";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def FoldArguments : Pass<"tile-fold-arguments", "::mlir::func::FuncOp"> {
  let summary = "arguments that are promised to be 1 become the constant";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def KeepPromises : Pass<"tile-keep-promises", "::mlir::func::FuncOp"> {
  let summary = "what conditions that are assumed say of numbers goes with the numbers";
  let dependentDialects = ["::tile::ir::TileDialect"];
}

def ChooseForms : Pass<"tile-choose-forms", "::mlir::func::FuncOp"> {
  let summary = "inline assembly, or the form given for hosts, is chosen";
  let options = [Option<"host", "host", "bool", "false", "the target is a host">];
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def ShareReductions : Pass<"tile-share-reductions", "::mlir::func::FuncOp"> {
  let summary = "a tile is reduced once along an axis that several of its reductions have in common";
  let dependentDialects = ["::tile::ir::TileDialect"];
}

def WholePowers : Pass<"tile-whole-powers", "::mlir::func::FuncOp"> {
  let summary = "powers by small integers become products, by halves roots";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def NarrowMoves : Pass<"tile-narrow-moves", "::mlir::func::FuncOp"> {
  let summary = "tiles that are rounded after a permutation of several dims are rounded before it";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def AccumulateProducts : Pass<"tile-accumulate-products", "::mlir::func::FuncOp"> {
  let summary = "sums behind products become their accumulators";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def MultiplyNarrow : Pass<"tile-multiply-narrow", "::mlir::func::FuncOp"> {
  let summary = "products of widened numbers multiply the narrow ones";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def UnrollBatches : Pass<"tile-unroll-batches", "::mlir::func::FuncOp"> {
  let summary = "batched products become one product for each matrix, unless single warps compute them";
  let options = [Option<"host", "host", "bool", "false", "the target is a host">];
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def SmallProducts : Pass<"tile-small-products", "::mlir::func::FuncOp"> {
  let summary = "many small products that no tensor core multiplies are computed element by element";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def SplitCarried : Pass<"tile-split-carried", "::mlir::func::FuncOp"> {
  let summary = "tiles that a loop cuts and puts together again in every iteration are carried in pieces";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::scf::SCFDialect"];
}

def CarryElements : Pass<"tile-carry-elements", "::mlir::func::FuncOp"> {
  let summary = "integers that loops and branches hand on as tiles of one element are handed on as scalars";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::scf::SCFDialect"];
}

def CountWhiles : Pass<"tile-count-whiles", "::mlir::func::FuncOp"> {
  let summary = "loops with a condition whose number of iterations is known when they begin become loops that count";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect"];
}

def NestLoops : Pass<"tile-nest-loops", "::mlir::func::FuncOp"> {
  let summary = "loops over the blocks of all tiles, with a counter that starts again, become loops over blocks in loops over tiles";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def CountSteps : Pass<"tile-count-steps", "::mlir::func::FuncOp"> {
  let summary = "integers that loops advance by one number in every iteration are computed from a counter, not carried";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def GuardSteps : Pass<"tile-guard-steps", "::mlir::func::FuncOp"> {
  let summary = "loops whose step turns out to be 0 or less at run time have no iteration";
  let options = [Option<"report", "report", "bool", "false", "a step that is not positive fails an assertion as well">];
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def SimplifyMasks : Pass<"tile-simplify-masks", "::mlir::func::FuncOp"> {
  let summary = "comparisons that ranges decide become constants; masks that are always true disappear";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def NearAngles : Pass<"tile-near-angles", "::mlir::func::FuncOp"> {
  let summary = "sines and cosines of arguments that are known to be near zero are marked";
  let dependentDialects = ["::tile::ir::TileDialect"];
}

def DropMultiples : Pass<"tile-drop-multiples", "::mlir::func::FuncOp"> {
  let summary = "multiples of n are dropped from the dividends of remainders by n, a power of two";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def ChainQuotients : Pass<"tile-chain-quotients", "::mlir::func::FuncOp"> {
  let summary = "quotients by products go on from quotients by their factors";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def ShareBases : Pass<"tile-share-bases", "::mlir::func::FuncOp"> {
  let summary = "addresses that differ by strides of the launch are made from each other";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def NarrowGathers : Pass<"tile-narrow-gathers", "::mlir::func::FuncOp"> {
  let summary = "gathers read once what neighbours along a dim share, and repeat it";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect"];
}

def PeelEdges : Pass<"tile-peel-edges", "::mlir::func::FuncOp"> {
  let summary = "programs wholly inside a picture or grid do without clamps and masks of places";
  let options = [Option<"host", "host", "bool", "false", "the target is a host: one mask is worth a copy of the code">];
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def UnrollShort : Pass<"tile-unroll-short", "::mlir::func::FuncOp"> {
  let summary = "short loops that read memory become straight-line code: their loads start together";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def UnrollChosen : Pass<"tile-unroll-chosen", "::mlir::func::FuncOp"> {
  let summary = "loops that choose rows or columns of a carried tile by their own number become straight-line code";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def PeelMasks : Pass<"tile-peel-masks", "::mlir::func::FuncOp"> {
  let summary = "loops with products are split: masks are computed only in the iterations that need them";
  let dependentDialects = ["::tile::ir::TileDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def PrintFacts : Pass<"tile-print-facts", "::mlir::func::FuncOp"> {
  let summary = "a remark with the facts about the result of every operation that has the attribute `facts`";
}

#endif
