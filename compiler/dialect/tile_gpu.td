// tile_gpu.td - what the GPU passes add to the dialect: where elements live, and how they move between threads.
#ifndef TILE_GPU_TD
#define TILE_GPU_TD

include "compiler/dialect/tile_ops.td"
include "mlir/IR/TensorEncoding.td"

// ---- layouts
def Tile_LayoutParameter : AttrParameter<"::tile::layout::Layout", "digits of registers, lanes and warps"> {
  let cppAccessorType = "const ::tile::layout::Layout &";
}
def Tile_LayoutAttr : AttrDef<Tile_Dialect, "Layout", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "layout";
  let summary = "encoding of a tensor: in which register of which lane of which warp each element lives";
  let description = [{
    `#tile.layout<64x64 regs [1:8*1, 0:4*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>`: every digit is dim:count*stride, or
    rep:count where values share an element; minor digit first (see compiler/layout/layout.h).
  }];
  let parameters = (ins Tile_LayoutParameter:$value);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Tile_ConvertOp : Tile_Op<"convert", [Pure]> {
  let summary = "the same tile under another layout";
  let arguments = (ins Tile_Tensor:$source);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_TotalOp : Tile_Op<"total", [Pure]> {
  let summary = "what a scan has combined at its end: the last elements of its result along the axis (the first ones, of a reverse scan)";
  let description = [{
    The result has one element along the axis. Every thread holds the totals of its lines, which the scan knows anyway.
  }];
  let arguments = (ins Tile_NumTensor:$scanned);
  let results = (outs Tile_NumTensor:$result);
  let assemblyFormat = "$scanned attr-dict `:` type($scanned) `->` type($result)";
  let hasVerifier = 1;
}

#endif
