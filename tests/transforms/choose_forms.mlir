// RUN: tile-opt %s -split-input-file -tile-choose-forms | FileCheck %s --check-prefix=GPU
// RUN: tile-opt %s -split-input-file -tile-choose-forms=host -verify-diagnostics | FileCheck %s --check-prefix=HOST
// On GPUs inline assembly, on hosts the branch beside it; assembly that stands alone is an error there.

// GPU-LABEL: func.func @both(
// GPU-NOT: tile.on_host
// GPU-NOT: scf.if
// GPU: tile.inline_asm
// GPU-NOT: arith.addi
// HOST-LABEL: func.func @both(
// HOST-NOT: tile.inline_asm
// HOST-NOT: scf.if
// HOST: arith.addi
// HOST-NOT: tile.inline_asm
func.func @both(%x: tensor<8xi32>) -> tensor<8xi32> {
  %host = tile.on_host
  %r = scf.if %host -> tensor<8xi32> {
    %a = arith.addi %x, %x : tensor<8xi32>
    scf.yield %a : tensor<8xi32>
  } else {
    %a = tile.inline_asm "add.s32 $0, $1, $1;", "=r,r" (%x) pure : (tensor<8xi32>) -> tensor<8xi32>
    scf.yield %a : tensor<8xi32>
  }
  return %r : tensor<8xi32>
}

// -----

// GPU-LABEL: func.func @alone(
// GPU: tile.inline_asm
func.func @alone(%x: tensor<8xi32>) -> tensor<8xi32> {
  // expected-error @+1 {{inline assembly is for GPUs and this one has no form for hosts}}
  %a = tile.inline_asm "add.s32 $0, $1, $1;", "=r,r" (%x) pure : (tensor<8xi32>) -> tensor<8xi32>
  return %a : tensor<8xi32>
}
