// The assembler: found, refused, missing, and what it reports.
// REQUIRES: ptxas
// RUN: rm -rf %t && tilec compile %S/Inputs/add.mlir -t sm_80,sm_90a -e cubin,json -o %t && test -s %t/add.sm_80.cubin && test -s %t/add.sm_90a.cubin
// RUN: FileCheck %s < %t/add.sm_80.json
// CHECK: "format": "cubin"
// CHECK: "registers": {{[1-9]}}
// CHECK: "spill_store_bytes": 0

// Without ptxas the kernel is PTX for the driver; asking for a cubin then says what is missing.
// RUN: tilec report %S/Inputs/add.mlir -t sm_80 --json --ptxas none | FileCheck %s -check-prefix=NONE
// RUN: env TILE_PTXAS=none tilec report %S/Inputs/add.mlir -t sm_80 --json | FileCheck %s -check-prefix=NONE
// NONE: "format": "ptx"
// RUN: %exit3 tilec compile %S/Inputs/add.mlir -t sm_80 --ptxas none -e cubin -o %t 2>&1 | FileCheck %s -check-prefix=MISSING
// MISSING: tilec: no cubin for sm_80: ptxas was not found (see tilec doctor)

// A wrong path is an error that names it; so is an assembler that fails.
// RUN: %exit1 tilec report %S/Inputs/add.mlir -t sm_80 --ptxas /nowhere/ptxas 2>&1 | FileCheck %s -check-prefix=WRONG
// WRONG: cannot run /nowhere/ptxas on kernel `{{.*}}add` for sm_80
// RUN: printf '#!/bin/sh\necho "ptxas fatal : no good" >&2\nexit 255\n' > %t.fails && chmod +x %t.fails
// RUN: %exit1 tilec report %S/Inputs/add.mlir -t sm_80 --ptxas %t.fails 2>&1 | FileCheck %s -check-prefix=FAILS
// FAILS: failed on kernel `{{.*}}add` for sm_80
// FAILS: ptxas fatal : no good

// Code that spills with registers left is assembled again without room for other programs, and kept if that spills less.
// RUN: printf '#!/bin/sh\nprintf "\\177ELF" > "$6"\nif grep -q "^.minnctapersm 1" "$4"; then echo "Used 255 registers"; else echo "Used 64 registers"; echo "16 bytes stack frame, 20 bytes spill stores, 8 bytes spill loads"; fi\n' > %t.spills && chmod +x %t.spills
// RUN: sed 's/attributes {tile.kernel}/attributes {tile.kernel, tile.num_warps = 2 : i32}/' %S/Inputs/add.mlir > %t.two.mlir
// RUN: tilec report %t.two.mlir -t sm_80 --json --ptxas %t.spills | FileCheck %s -check-prefix=AGAIN
// RUN: tilec report %S/Inputs/add.mlir -t sm_80 --json --ptxas %t.spills | FileCheck %s -check-prefix=AGAIN
// AGAIN: "registers": 255
// AGAIN: "spill_store_bytes": 0
// Where the threads have all registers that there are, once is enough.
// RUN: sed 's/attributes {tile.kernel}/attributes {tile.kernel, tile.num_warps = 32 : i32}/' %S/Inputs/add.mlir > %t.all.mlir
// RUN: tilec report %t.all.mlir -t sm_80 --json --ptxas %t.spills | FileCheck %s -check-prefix=ONCE
// ONCE: "registers": 64
// So it is where more than two warps spill a few words: an occupancy step is worth them. One or two have no such steps.
// RUN: sed 's/20 bytes/12 bytes/' %t.spills > %t.few && chmod +x %t.few
// RUN: tilec report %S/Inputs/add.mlir -t sm_80 --json --ptxas %t.few | FileCheck %s -check-prefix=ONCE
// RUN: tilec report %t.two.mlir -t sm_80 --json --ptxas %t.few | FileCheck %s -check-prefix=AGAIN

// A producer of the fewest registers that spills gets more of them from the consumers.
// RUN: printf '#!/bin/sh\nprintf "\\177ELF" > "$6"\necho "Used 168 registers"; if grep -q "dec.sync.aligned.u32 .40;" "$4" && grep -q "inc.sync.aligned.u32 .232;" "$4"; then true; else echo "8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads"; fi\n' > %t.lean && chmod +x %t.lean
// RUN: tilec report gla_scan_output dtype=bf16 BK=256 BV=128 warps=8 stages=2 -t sm_90a --json --ptxas %t.lean | FileCheck %s -check-prefix=LEAN
// LEAN: "spill_store_bytes": 0
// As long as that spills less, and no longer.
// RUN: printf '#!/bin/sh\nprintf "\\177ELF" > "$6"\necho "Used 168 registers"; if grep -q "dec.sync.aligned.u32 .56;" "$4" && grep -q "inc.sync.aligned.u32 .224;" "$4"; then n=4; elif grep -q "dec.sync.aligned.u32 .40;" "$4"; then n=12; else n=20; fi; echo "8 bytes stack frame, $n bytes spill stores, 0 bytes spill loads"\n' > %t.twice && chmod +x %t.twice
// RUN: tilec report gla_scan_output dtype=bf16 BK=256 BV=128 warps=8 stages=2 -t sm_90a --json --ptxas %t.twice | FileCheck %s -check-prefix=TWICE
// TWICE: "spill_store_bytes": 4
