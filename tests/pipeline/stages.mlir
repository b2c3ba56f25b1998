// Every stage can be written, under its contract name, for every target.
// RUN: rm -rf %t && tilec compile %S/Inputs/add.mlir -t host,host:x86-64,sm_80 -e mlir:traced,mlir:tile,llvm,json -o %t
// RUN: FileCheck %s -check-prefix=TRACED < %t/add.host.traced.mlir
// RUN: FileCheck %s -check-prefix=TILE < %t/add.host.tile.mlir
// RUN: FileCheck %s -check-prefix=TILE < %t/add.sm_80.tile.mlir
// RUN: FileCheck %s -check-prefix=HOSTLLVM < %t/add.host-x86-64.ll
// RUN: FileCheck %s -check-prefix=GPULLVM < %t/add.sm_80.ll
// RUN: FileCheck %s -check-prefix=HOSTJSON < %t/add.host.json
// RUN: FileCheck %s -check-prefix=GPUJSON < %t/add.sm_80.json
// TRACED: tile.ptr_add {{.*}} : tensor<256x!tile.ptr<f32>>
// TILE-NOT: tensor<256x!tile.ptr<f32>>
// TILE: tile.gather %{{.*}} offsets %{{.*}} : tensor<256xi32> mask
// HOSTLLVM: define {{.*}}void @
// GPULLVM: target triple = "nvptx64-nvidia-cuda"
// HOSTJSON: "target": "host"
// HOSTJSON: "format": "object"
// GPUJSON: "target": "sm_80"
// GPUJSON: "params": [
// GPUJSON: "kind": "pointer"
// GPUJSON: "align": 16
// GPUJSON: "milliseconds"

// RUN: tilec compile %S/Inputs/add.mlir -t sm_80 -e mlir:layout | FileCheck %s -check-prefix=LAYOUT
// LAYOUT: #tile.layout
// RUN: tilec compile %S/Inputs/add.mlir -t sm_80 -e mlir:gpu | FileCheck %s -check-prefix=LAYOUT
// RUN: tilec compile %S/Inputs/add.mlir -t host -e mlir:cpu | FileCheck %s -check-prefix=TILE
// The same by pass pipelines, for compiler developers.
// RUN: tile-opt %S/Inputs/add.mlir -pass-pipeline='builtin.module(tile-pipeline)' | FileCheck %s -check-prefix=TILE
// RUN: tile-opt %S/Inputs/add.mlir --tile-pipeline --tile-gpu-pipeline --tile-target=sm_80 --tile-warps=8 | FileCheck %s -check-prefix=WARPS
// WARPS: tile.num_warps = 8
// WARPS: #tile.layout<256 {{.*}} warps [0:8*32]>
// RUN: tilec compile - -t sm_90a -e ptx < %S/Inputs/add.mlir | FileCheck %s -check-prefix=PTX
// PTX: .target sm_90a
// PTX: .entry {{.*}}add
// PTX: ld.global
// RUN: tilec compile %S/Inputs/add.mlir -t host -e obj -o %t && test -s %t/add.host.o
