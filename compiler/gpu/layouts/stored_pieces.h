// stored_pieces.h - how well stores, and additions to memory, fill sectors when their tiles lie as the loaded ones they
// are computed of.
#pragma once
#include "compiler/analysis/facts.h"
#include "compiler/layout/layout.h"

namespace tile::ir {

/// The stores and additions that a loaded tile reaches element by element, through loops and scans, and where elements
/// become neighbours (the numbers of a byte): how far an instruction fills sectors (sectorUse) under the layout that
/// follows from `layout` of the loaded tile. The least of all; 1: all whole, or none reached.
///
/// Widened elements need it: 16 bytes that a thread loads become 32 or 64, which it writes in pieces of 16 that lie
/// apart from those of its neighbours. The second-level cache is sent each piece of a sector by itself. Bytes to f32
/// took 0.182 ms on an H200 with 16 elements in a thread, 0.133 with 8, and take 0.086 with 4; f16 to f32 0.119 with 8
/// and 0.100 with 4; bytes to f16 0.061 with 16 and 0.053 with 8; gradients that are added in f32 at sampled places, of
/// f16, 0.65 with 8 and 0.37 with 4. It counts where as much is written as read, about.
double shareOfSectorsStored(mlir::Value loaded, const layout::Layout& layout, const Facts& facts);

}  // namespace tile::ir
