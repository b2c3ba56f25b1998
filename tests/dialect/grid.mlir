// RUN: tile-opt %s -split-input-file -verify-diagnostics | tile-opt -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @grid
// CHECK: tile.program_id 0
// CHECK: tile.num_programs 2
func.func @grid() attributes {tile.kernel} {
  %0 = tile.program_id 0
  %1 = tile.num_programs 2
  return
}

// -----

func.func @axis() {
  // expected-error @+1 {{attribute 'axis' failed to satisfy constraint}}
  %0 = tile.program_id 3
  return
}

// -----

func.func @negative_axis() {
  // expected-error @+1 {{attribute 'axis' failed to satisfy constraint}}
  %0 = tile.num_programs -1
  return
}
