// Results of asynchronous products behind waits, stages released behind the wait that covers their readers.
// RUN: tile-opt %s -split-input-file --tile-async-waits | FileCheck %s
// RUN: tile-opt %s -split-input-file --tile-async-waits -tile-registers-in-flight=false | FileCheck %s -check-prefix=DRIVER

// A product that only accumulates runs on into the next iteration, which releases its stage. What finishes it behind the
// loop happens only when the loop ran.
// CHECK-LABEL: func.func @gemm
// CHECK: %[[RUNS:.*]] = arith.cmpi slt, %[[LB:.*]], %[[UB:.*]] :
// CHECK-NEXT: %[[ALL:.*]] = scf.if %[[RUNS]]
// CHECK-NEXT: %[[R:.*]] = scf.for %[[K:.*]] = %[[LB]] to %[[UB]] step {{.*}} iter_args(%[[ACC:[a-z0-9]+]] = %[[ZERO:[a-z0-9_]+]])
// CHECK: tile.ring_acquire
// CHECK: %[[D:.*]] = tile.mma wgmma_f16 {{.*}}, %[[ACC]] :
// CHECK-NEXT: tile.mma_wait 1{{$}}
// CHECK-NEXT: %[[LATER:.*]] = arith.cmpi ne, %[[K]], %[[LB]]
// CHECK-NEXT: tile.ring_release %{{.*}} if %[[LATER]]
// CHECK-NEXT: scf.yield %[[D]]
// CHECK: %[[DONE:.*]] = tile.mma_wait 0 of %[[R]]
// CHECK-NEXT: tile.ring_release %{{[^ ]*}} :
// CHECK-NEXT: scf.yield %[[DONE]]
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[ZERO]]
// CHECK-NEXT: }
// CHECK-NEXT: tile.tma_store %[[ALL]]
func.func @gemm(%a: !tile.view<2xf16>, %b: !tile.view<2xf16>, %c: !tile.view<2xf32>, %first: i32, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %bufA = tile.smem_alloc : !tile.smem<128x64xf16, minor = 1, stages = 4>
  %bufB = tile.smem_alloc : !tile.smem<64x256xf16, minor = 1, stages = 4>
  %out = tile.smem_alloc : !tile.smem<128x64xf32, minor = 1>
  %ring = tile.ring_alloc arrivals 2 : !tile.ring<4>
  tile.specialize regs(40, 232) producer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      scf.for %k = %first to %n step %c64 : i32 {
        %slot = tile.ring_reserve %ring bytes 49152 : !tile.ring<4>
        %sa = tile.smem_slot %bufA[%slot] : !tile.smem<128x64xf16, minor = 1, stages = 4> -> !tile.smem<128x64xf16, minor = 1>
        %sb = tile.smem_slot %bufB[%slot] : !tile.smem<64x256xf16, minor = 1, stages = 4> -> !tile.smem<64x256xf16, minor = 1>
        tile.tma_load %a[%x, %k : i32, i32] to %sa signals %ring[%slot] : !tile.view<2xf16>, !tile.smem<128x64xf16, minor = 1>, !tile.ring<4>
        tile.tma_load %b[%k, %y : i32, i32] to %sb signals %ring[%slot] : !tile.view<2xf16>, !tile.smem<64x256xf16, minor = 1>, !tile.ring<4>
      }
    }
  } consumer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %r = scf.for %k = %first to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
        %slot = tile.ring_acquire %ring : !tile.ring<4>
        %sa = tile.smem_slot %bufA[%slot] : !tile.smem<128x64xf16, minor = 1, stages = 4> -> !tile.smem<128x64xf16, minor = 1>
        %sb = tile.smem_slot %bufB[%slot] : !tile.smem<64x256xf16, minor = 1, stages = 4> -> !tile.smem<64x256xf16, minor = 1>
        %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %sb, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x256xf16, minor = 1> -> tensor<128x256xf32>
        tile.ring_release %ring : !tile.ring<4>
        scf.yield %d : tensor<128x256xf32>
      }
      tile.tma_store %r, %c[%x, %y : i32, i32] through %out : tensor<128x256xf32>, !tile.view<2xf32>, !tile.smem<128x64xf32, minor = 1>
    }
  }
  return
}

// -----

// Few stages: an iteration finishes what it started and gives its stage back; it would keep the copies' room otherwise.
// CHECK-LABEL: func.func @one_stage
// CHECK: scf.for
// CHECK-NEXT: tile.ring_acquire
// CHECK: %[[D:.*]] = tile.mma wgmma
// CHECK-NEXT: %[[DONE:.*]] = tile.mma_wait 0 of %[[D]]
// CHECK-NEXT: tile.ring_release %{{[^ ]*}} :
// CHECK-NEXT: scf.yield %[[DONE]]
func.func @one_stage(%b: !tile.smem<64x256xf16, minor = 1>, %n: i32) -> tensor<64x256xf32> attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x256xf32>
  %buf = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1, stages = 1>
  %ring = tile.ring_alloc arrivals 1 : !tile.ring<1>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x256xf32>) : i32 {
    %slot = tile.ring_acquire %ring : !tile.ring<1>
    %a = tile.smem_slot %buf[%slot] : !tile.smem<64x64xf16, minor = 1> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %a, %b, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x256xf16, minor = 1> -> tensor<64x256xf32>
    tile.ring_release %ring : !tile.ring<1>
    scf.yield %d : tensor<64x256xf32>
  }
  return %r : tensor<64x256xf32>
}

// -----

// Two accumulators, one of them through two products: three groups stay in flight.
// CHECK-LABEL: func.func @three
// CHECK: tile.mma wgmma
// CHECK: tile.mma wgmma
// CHECK: %[[X:.*]] = tile.mma wgmma
// CHECK-NEXT: tile.mma_wait 3{{$}}
// CHECK-NEXT: scf.yield
// CHECK: %{{.*}}:2 = tile.mma_wait 0 of %{{.*}}#{{[01]}}, %{{.*}}#{{[01]}} :
func.func @three(%a: !tile.smem<64x64xf16, minor = 1>, %b: !tile.smem<64x64xf16, minor = 1>, %n: i32) -> (tensor<64x64xf32>, tensor<64x64xf32>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%x = %zero, %y = %zero) -> (tensor<64x64xf32>, tensor<64x64xf32>) : i32 {
    %x1 = tile.mma wgmma_f16 k 64 warps(4, 1) %a, %b, %x : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %y1 = tile.mma wgmma_f16 k 64 warps(4, 1) %b, %b, %y : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %x2 = tile.mma wgmma_f16 k 64 warps(4, 1) %b, %a, %x1 : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %x2, %y1 : tensor<64x64xf32>, tensor<64x64xf32>
  }
  return %r#0, %r#1 : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// The rotated attention loop: scores are read while the other product runs, K's stage is released then; the weights are
// packed behind the wait of the product that reads the old ones, V's stage is released there.
// CHECK-LABEL: func.func @attention
// CHECK: scf.for {{.*}} iter_args(%[[O:.*]] = %{{.*}}, %[[P:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}})
// CHECK: %[[S:.*]] = tile.mma wgmma_f16
// CHECK-NEXT: tile.ring_acquire %[[RV:.*]] :
// CHECK: %[[NEXT:.*]] = tile.mma wgmma_f16 {{.*}} %[[P]], %{{.*}}, %[[O]]
// CHECK-NEXT: %[[SCORES:.*]] = tile.mma_wait 1 of %[[S]]
// CHECK-NEXT: tile.ring_release %[[RK:[0-9]+]] :
// CHECK-NEXT: %[[W:.*]] = math.exp2 %[[SCORES]]
// CHECK-NEXT: %[[ALPHA:.*]] = arith.addf %[[W]], %[[M]]
// CHECK-NEXT: %[[OUT:.*]] = tile.mma_wait 0 of %[[NEXT]]
// CHECK-NEXT: tile.ring_release %[[RV]] :
// CHECK-NEXT: %[[PACKED:.*]] = arith.truncf %[[W]]
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[OUT]], %[[ALPHA]]
// CHECK-NEXT: scf.yield %[[SCALED]], %[[PACKED]], %[[ALPHA]]
func.func @attention(%kv: !tile.view<2xf16>, %q: !tile.smem<64x64xf16, minor = 1>, %o: tensor<64x64xf32>, %p0: tensor<64x64xf16>, %n: i32) -> tensor<64x64xf32> attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %bufK = tile.smem_alloc : !tile.smem<64x64xf16, minor = 0, stages = 2>
  %bufV = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1, stages = 2>
  %rk = tile.ring_alloc arrivals 1 : !tile.ring<2>
  %rv = tile.ring_alloc arrivals 1 : !tile.ring<2>
  %r:3 = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %o, %p = %p0, %m = %zero) -> (tensor<64x64xf32>, tensor<64x64xf16>, tensor<64x64xf32>) : i32 {
    %ik = tile.ring_acquire %rk : !tile.ring<2>
    %k = tile.smem_slot %bufK[%ik] : !tile.smem<64x64xf16, minor = 0, stages = 2> -> !tile.smem<64x64xf16, minor = 0>
    %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %k, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 0> -> tensor<64x64xf32>
    tile.ring_release %rk : !tile.ring<2>
    %iv = tile.ring_acquire %rv : !tile.ring<2>
    %v = tile.smem_slot %bufV[%iv] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %p, %v, %acc : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    tile.ring_release %rv : !tile.ring<2>
    %w = math.exp2 %s : tensor<64x64xf32>
    %packed = arith.truncf %w : tensor<64x64xf32> to tensor<64x64xf16>
    %alpha = arith.addf %w, %m : tensor<64x64xf32>
    %scaled = arith.mulf %d, %alpha : tensor<64x64xf32>
    scf.yield %scaled, %packed, %alpha : tensor<64x64xf32>, tensor<64x64xf16>, tensor<64x64xf32>
  }
  return %r#0 : tensor<64x64xf32>
}

// -----

// With statistics between: the wait stands in front of what reads the reduced scores, the weights are computed behind it.
// CHECK-LABEL: func.func @softmax
// CHECK: scf.for
// CHECK: %[[S:.*]] = tile.mma wgmma_f16
// CHECK: %[[NEXT:.*]] = tile.mma wgmma_f16
// CHECK-NEXT: %[[SCORES:.*]] = tile.mma_wait 1 of %[[S]]
// CHECK: %[[COLUMN:.*]] = tile.reduce %[[SCORES]]
// CHECK: %[[OUT:.*]] = tile.mma_wait 0 of %[[NEXT]]
// CHECK-NEXT: tile.ring_release
// CHECK-NEXT: arith.maximumf %{{.*}}, %[[COLUMN]]
// CHECK: math.exp2
// CHECK-NOT: tile.mma_wait
// CHECK: scf.yield
func.func @softmax(%q: !tile.smem<64x64xf16, minor = 1>, %o: tensor<64x64xf32>, %p0: tensor<64x64xf16>, %m0: tensor<64x1xf32>, %n: i32) -> tensor<64x64xf32> attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %bufK = tile.smem_alloc : !tile.smem<64x64xf16, minor = 0, stages = 2>
  %bufV = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1, stages = 2>
  %rk = tile.ring_alloc arrivals 1 : !tile.ring<2>
  %rv = tile.ring_alloc arrivals 1 : !tile.ring<2>
  %r:3 = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %o, %p = %p0, %m = %m0) -> (tensor<64x64xf32>, tensor<64x64xf16>, tensor<64x1xf32>) : i32 {
    %ik = tile.ring_acquire %rk : !tile.ring<2>
    %k = tile.smem_slot %bufK[%ik] : !tile.smem<64x64xf16, minor = 0, stages = 2> -> !tile.smem<64x64xf16, minor = 0>
    %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %k, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 0> -> tensor<64x64xf32>
    tile.ring_release %rk : !tile.ring<2>
    %iv = tile.ring_acquire %rv : !tile.ring<2>
    %v = tile.smem_slot %bufV[%iv] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %p, %v, %acc : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    tile.ring_release %rv : !tile.ring<2>
    %column = tile.reduce %s axis 1 : (tensor<64x64xf32>) -> tensor<64x1xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.maximumf %a, %b : f32
      tile.yield %c : f32
    }
    %new = arith.maximumf %m, %column : tensor<64x1xf32>
    %wide = tile.broadcast %new : tensor<64x1xf32> -> tensor<64x64xf32>
    %less = arith.subf %s, %wide : tensor<64x64xf32>
    %w = math.exp2 %less : tensor<64x64xf32>
    %packed = arith.truncf %w : tensor<64x64xf32> to tensor<64x64xf16>
    %scaled = arith.mulf %d, %wide : tensor<64x64xf32>
    scf.yield %scaled, %packed, %new : tensor<64x64xf32>, tensor<64x64xf16>, tensor<64x1xf32>
  }
  return %r#0 : tensor<64x64xf32>
}

// -----

// Nobody else waits for the product that reads the old weights: the packing itself does, at the end of the iteration.
// CHECK-LABEL: func.func @pack_alone
// CHECK: %[[S:.*]] = tile.mma wgmma
// CHECK-NEXT: %[[D:.*]] = tile.mma wgmma
// CHECK-NEXT: %[[W:.*]] = tile.mma_wait 1 of %[[S]]
// CHECK-NEXT: %[[E:.*]] = math.exp2 %[[W]]
// CHECK-NEXT: %[[OUT:.*]] = tile.mma_wait 0 of %[[D]]
// CHECK-NEXT: %[[P:.*]] = arith.truncf %[[E]]
// CHECK-NEXT: scf.yield %[[OUT]], %[[P]]
func.func @pack_alone(%q: !tile.smem<64x64xf16, minor = 1>, %o: tensor<64x64xf32>, %p0: tensor<64x64xf16>, %n: i32) -> tensor<64x64xf32> attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r:2 = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %o, %p = %p0) -> (tensor<64x64xf32>, tensor<64x64xf16>) : i32 {
    %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %p, %q, %acc : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %w = math.exp2 %s : tensor<64x64xf32>
    %packed = arith.truncf %w : tensor<64x64xf32> to tensor<64x64xf16>
    scf.yield %d, %packed : tensor<64x64xf32>, tensor<64x64xf16>
  }
  return %r#0 : tensor<64x64xf32>
}

// -----

// An operand made from loads is written again in the next iteration while the product that reads it is in flight: it
// waits for that one first, with the independent work in front.
// CHECK-LABEL: func.func @operand_again
// CHECK: scf.for
// CHECK-NEXT: %[[X:.*]] = tile.load
// CHECK-NEXT: tile.mma_wait 0{{$}}
// CHECK-NEXT: %[[A:.*]] = arith.truncf %[[X]]
// CHECK-NEXT: tile.mma wgmma_f16 {{.*}} %[[A]],
// CHECK-NEXT: scf.yield
func.func @operand_again(%x: !tile.view<2xf32>, %q: !tile.smem<64x64xf16, minor = 1>, %o: tensor<64x64xf32>, %n: i32) -> tensor<64x64xf32> attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %o) -> (tensor<64x64xf32>) : i32 {
    %l = tile.load %x[%c0, %j : i32, i32] : !tile.view<2xf32> -> tensor<64x64xf32>
    %a = arith.truncf %l : tensor<64x64xf32> to tensor<64x64xf16>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %a, %q, %acc : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// The staged form: nobody may pass the barrier that frees a slot while a product still reads it.
// CHECK-LABEL: func.func @staged
// CHECK: scf.for
// CHECK-NEXT: tile.async_wait 1
// CHECK-NEXT: tile.mma_wait 0{{$}}
// CHECK-NEXT: tile.barrier
// CHECK: tile.mma wgmma
// CHECK-NEXT: scf.yield
// CHECK: tile.mma_wait 0 of
// CHECK: } else {
// CHECK: }
// CHECK-NEXT: tile.async_wait 0
// CHECK-NEXT: tile.barrier
func.func @staged(%x: !tile.view<2xf16>, %b: !tile.smem<64x64xf16, minor = 1>, %o: tensor<64x64xf32>, %n: i32) -> tensor<64x64xf32> attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %buf = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1, stages = 3>
  %r:2 = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %o, %i = %c0) -> (tensor<64x64xf32>, i32) : i32 {
    tile.async_wait 1
    tile.barrier
    %slot = tile.smem_slot %buf[%i] : !tile.smem<64x64xf16, minor = 1, stages = 3> -> !tile.smem<64x64xf16, minor = 1>
    tile.async_copy %x[%c0, %j : i32, i32] to %slot box [64, 64] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>
    tile.async_commit
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %slot, %b, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d, %i : tensor<64x64xf32>, i32
  }
  tile.async_wait 0
  tile.barrier
  return %r#0 : tensor<64x64xf32>
}

// -----

// Branches and loops in between: everything is finished at their edges; a branch without products waits only for what it
// reads.
// CHECK-LABEL: func.func @regions
// CHECK: %[[S:.*]] = tile.mma wgmma
// CHECK-NEXT: %[[T:.*]] = tile.mma wgmma
// CHECK-NEXT: arith.addi
// CHECK-NEXT: %[[READY:.*]] = tile.mma_wait 1 of %[[S]]
// CHECK-NEXT: %[[IF:.*]] = scf.if
// CHECK-NEXT: arith.addf %[[READY]], %[[READY]]
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[READY]]
// CHECK: %[[DONE:.*]] = tile.mma_wait 0 of %[[T]]
// CHECK-NEXT: scf.if
// CHECK-NEXT: %[[U:.*]] = tile.mma wgmma_f16 {{.*}}, %[[DONE]] :
// CHECK-NEXT: %[[V:.*]] = tile.mma_wait 0 of %[[U]]
// CHECK-NEXT: scf.yield %[[V]]
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[DONE]]
func.func @regions(%q: !tile.smem<64x64xf16, minor = 1>, %o: tensor<64x64xf32>, %c: i1, %i: i32) -> (tensor<64x64xf32>, tensor<64x64xf32>, i32) attributes {tile.num_warps = 4 : i32} {
  %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %o : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
  %t = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %o : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
  %j = arith.addi %i, %i : i32
  %x = scf.if %c -> (tensor<64x64xf32>) {
    %y = arith.addf %s, %s : tensor<64x64xf32>
    scf.yield %y : tensor<64x64xf32>
  } else {
    scf.yield %s : tensor<64x64xf32>
  }
  %z = scf.if %c -> (tensor<64x64xf32>) {
    %u = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %t : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %u : tensor<64x64xf32>
  } else {
    scf.yield %t : tensor<64x64xf32>
  }
  return %x, %z, %j : tensor<64x64xf32>, tensor<64x64xf32>, i32
}

// -----

// A store to shared memory may reuse the bytes a product reads; an accumulator that somebody else reads, too, is read.
// CHECK-LABEL: func.func @hazards
// CHECK: %[[S:.*]] = tile.mma wgmma
// CHECK-NEXT: %[[READY:.*]] = tile.mma_wait 0 of %[[S]]
// CHECK-NEXT: %[[T:.*]] = tile.mma wgmma_f16 {{.*}}, %[[READY]] :
// CHECK-NEXT: %[[DONE:.*]] = tile.mma_wait 0 of %[[T]]
// CHECK-NEXT: tile.smem_store
// CHECK-NEXT: arith.addf %[[READY]], %[[DONE]]
func.func @hazards(%q: !tile.smem<64x64xf16, minor = 1>, %o: tensor<64x64xf32>, %x: tensor<64x64xf16>) -> tensor<64x64xf32> attributes {tile.num_warps = 4 : i32} {
  %buf = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %o : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
  %t = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %s : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
  tile.smem_store %x, %buf : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1>
  %sum = arith.addf %s, %t : tensor<64x64xf32>
  return %sum : tensor<64x64xf32>
}

// -----

// A state that decays and is accumulated on: its registers are left alone while other products run.
// CHECK-LABEL: func.func @state
// CHECK: scf.for {{.*}} iter_args(%[[H:.*]] = %{{.*}})
// CHECK-NEXT: %[[A:.*]] = tile.mma wgmma
// CHECK-NEXT: %[[OUT:.*]] = tile.mma_wait 0 of %[[A]]
// CHECK-NEXT: %[[DECAYED:.*]] = arith.mulf %[[H]]
// CHECK-NEXT: %[[NEXT:.*]] = tile.mma wgmma_f16 {{.*}}, %[[DECAYED]] :
// CHECK-NEXT: tile.store %[[OUT]]
// CHECK-NEXT: %[[DONE:.*]] = tile.mma_wait 0 of %[[NEXT]]
// CHECK-NEXT: scf.yield %[[DONE]]
func.func @state(%q: !tile.smem<64x64xf16, minor = 1>, %h0: tensor<64x64xf32>, %decay: tensor<64x64xf32>, %v: !tile.view<2xf32>, %n: i32) -> tensor<64x64xf32> attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%h = %h0) -> (tensor<64x64xf32>) : i32 {
    %o = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %decayed = arith.mulf %h, %decay : tensor<64x64xf32>
    %next = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %decayed : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    tile.store %o, %v[%j, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// Synchronous engines need nothing.
// CHECK-LABEL: func.func @synchronous
// CHECK-NOT: mma_wait
func.func @synchronous(%q: !tile.smem<64x64xf16, minor = 1>, %o: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {tile.num_warps = 4 : i32} {
  %s = tile.mma m16n8k16_f16 k 64 warps(4, 1) %q, %q, %o : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
  return %s : tensor<64x64xf32>
}

// -----

// The registers of a first operand are computed under another name, then turned: the computation waits for the product of
// the iteration before, which may still read them. (Done earlier, it gave wrong sums on an H200: ptxas does not notice.)
// CHECK-LABEL: func.func @renamed
// CHECK: scf.for
// CHECK-NEXT: %[[WIDE:.*]] = arith.sitofp
// CHECK-NEXT: tile.mma_wait 0{{$}}
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[WIDE]]
// CHECK-NEXT: %[[TURNED:.*]] = tile.trans %[[SCALED]]
// CHECK-NEXT: tile.mma wgmma_f16 {{.*}} %[[TURNED]]
// CHECK-NEXT: scf.yield
// Code of the driver's assembler, which nobody looks at, has no such product running when the next iteration begins.
// DRIVER-LABEL: func.func @renamed
// DRIVER: scf.for
// DRIVER-NEXT: arith.sitofp
// DRIVER-NEXT: arith.mulf
// DRIVER-NEXT: tile.trans
// DRIVER-NEXT: %[[D:.*]] = tile.mma wgmma_f16
// DRIVER-NEXT: %[[DONE:.*]] = tile.mma_wait 0 of %[[D]]
// DRIVER-NEXT: scf.yield %[[DONE]]
func.func @renamed(%w: tensor<16x64xi8>, %s: tensor<16x64xf16>, %b: !tile.smem<16x64xf16, minor = 1>, %n: i32) -> tensor<64x64xf32> attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %wide = arith.sitofp %w : tensor<16x64xi8> to tensor<16x64xf16>
    %scaled = arith.mulf %wide, %s : tensor<16x64xf16>
    %a = tile.trans %scaled, [1, 0] : tensor<16x64xf16> -> tensor<64x16xf16>
    %d = tile.mma wgmma_f16 k 16 warps(4, 1) %a, %b, %acc : tensor<64x16xf16>, !tile.smem<16x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----
// A store into the buffer that the product of the last iteration does not read does not wait for it, nor does where
// threads meet: that happens in front of this one's product, where a barrier will tell everybody.
// CHECK-LABEL: func.func @taking_turns
// CHECK: } consumer {
// CHECK: scf.for %[[K:.*]] = {{.*}} iter_args(%[[ACC:[a-z0-9]+]] = {{.*}}, %[[EARLY:.*]] = {{.*}})
// CHECK-NOT: tile.mma_wait
// CHECK: %[[MINE:.*]] = tile.smem_slot
// CHECK-NEXT: tile.smem_store %[[EARLY]], %[[MINE]]
// CHECK-NOT: tile.mma_wait
// CHECK: tile.ring_acquire
// CHECK: tile.mma_wait 0{{$}}
// CHECK: tile.ring_release
// CHECK: %[[D:.*]] = tile.mma wgmma_f16 {{.*}}, %[[MINE]], %[[ACC]]
// CHECK-NOT: tile.mma_wait
// CHECK: scf.yield %[[D]]
func.func @taking_turns(%a: !tile.view<2xf16>, %b: !tile.view<2xf16>, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %bufA = tile.smem_alloc : !tile.smem<128x64xf16, minor = 1, stages = 4>
  %turns = tile.smem_alloc {tile.alternates} : !tile.smem<64x128xf16, minor = 1, stages = 2>
  %ring = tile.ring_alloc arrivals 2 : !tile.ring<4>
  tile.specialize regs(40, 232) producer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      scf.for %k = %c0 to %n step %c1 : i32 {
        %slot = tile.ring_reserve %ring bytes 16384 : !tile.ring<4>
        %sa = tile.smem_slot %bufA[%slot] : !tile.smem<128x64xf16, minor = 1, stages = 4> -> !tile.smem<128x64xf16, minor = 1>
        tile.tma_load %a[%x, %k : i32, i32] to %sa signals %ring[%slot] : !tile.view<2xf16>, !tile.smem<128x64xf16, minor = 1>, !tile.ring<4>
      }
    }
  } consumer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %first = tile.load %b[%c0, %y : i32, i32] : !tile.view<2xf16> -> tensor<64x128xf16>
      %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %early = %first) -> (tensor<128x128xf32>, tensor<64x128xf16>) : i32 {
        %next = arith.addf %early, %early : tensor<64x128xf16>
        tile.barrier
        %turn = arith.andi %k, %c1 : i32
        %mine = tile.smem_slot %turns[%turn] : !tile.smem<64x128xf16, minor = 1, stages = 2> -> !tile.smem<64x128xf16, minor = 1>
        tile.smem_store %early, %mine : tensor<64x128xf16>, !tile.smem<64x128xf16, minor = 1>
        %slot = tile.ring_acquire %ring : !tile.ring<4>
        %sa = tile.smem_slot %bufA[%slot] : !tile.smem<128x64xf16, minor = 1, stages = 4> -> !tile.smem<128x64xf16, minor = 1>
        %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %mine, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<128x128xf32>
        tile.ring_release %ring : !tile.ring<4>
        scf.yield %d, %next : tensor<128x128xf32>, tensor<64x128xf16>
      }
      tile.store %r#0, %c[%x, %y : i32, i32] : tensor<128x128xf32>, !tile.view<2xf32>
    }
  }
  return
}

// -----

// What a product that runs on accumulates on at first is written in front of its loop: ptxas serialises all products
// when it finds a load or a join of branches there (C7515). A constant is written anyway.
// CHECK-LABEL: func.func @started
// CHECK-SAME: %[[O:[a-z0-9]+]]: tensor<64x64xf32>
// CHECK: %[[WRITTEN:.*]] = tile.inline_asm "add.f32 $0, $1, 0f80000000;", "=f,f"(%[[O]]) pure
// CHECK: scf.if
// CHECK: scf.for {{.*}} iter_args(%{{[a-z0-9]+}} = %[[WRITTEN]], %{{[a-z0-9]+}} = %cst
func.func @started(%q: !tile.smem<64x64xf16, minor = 1>, %o: tensor<64x64xf32>, %n: i32) -> (tensor<64x64xf32>, tensor<64x64xf32>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%x = %o, %y = %zero) -> (tensor<64x64xf32>, tensor<64x64xf32>) : i32 {
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %x : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %e = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %y : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d, %e : tensor<64x64xf32>, tensor<64x64xf32>
  }
  return %r#0, %r#1 : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// Sums that a loop around carries from a constant, for this loop alone, are in its registers already: no copies.
// CHECK-LABEL: func.func @started_around
// CHECK-NOT: tile.inline_asm
// CHECK: return
func.func @started_around(%q: !tile.smem<64x64xf16, minor = 1>, %n: i32) -> tensor<64x64xf32> attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %tap = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = scf.for %k = %c0 to %n step %c1 iter_args(%x = %sum) -> (tensor<64x64xf32>) : i32 {
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %x : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    scf.yield %s : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// Where the loop around works on them, too, they are written.
// CHECK-LABEL: func.func @started_around_scaled
// CHECK: tile.inline_asm
func.func @started_around_scaled(%q: !tile.smem<64x64xf16, minor = 1>, %n: i32) -> tensor<64x64xf32> attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %tap = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = scf.for %k = %c0 to %n step %c1 iter_args(%x = %sum) -> (tensor<64x64xf32>) : i32 {
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %x : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %t = arith.addf %s, %s : tensor<64x64xf32>
    scf.yield %t : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// Whole numbers: a zero that the assembler does not know is added.
// CHECK-LABEL: func.func @started_whole
// CHECK-SAME: %[[O:[a-z0-9]+]]: tensor<64x64xi32>
// CHECK: %[[ZERO:.*]] = tile.inline_asm "{{.*}}%smid{{.*}}", "=r"() pure
// CHECK: %[[ZEROS:.*]] = tile.splat %[[ZERO]]
// CHECK: %[[WRITTEN:.*]] = tile.inline_asm "add.s32 $0, $1, $2;", "=r,r,r"(%[[O]], %[[ZEROS]]) pure
// CHECK: iter_args(%{{[a-z0-9]+}} = %[[WRITTEN]])
func.func @started_whole(%q: !tile.smem<64x64xi8, minor = 1>, %p: !tile.smem<64x64xi8, minor = 0>, %o: tensor<64x64xi32>, %n: i32) -> tensor<64x64xi32> attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%x = %o) -> (tensor<64x64xi32>) : i32 {
    %d = tile.mma wgmma_s8 k 64 warps(4, 1) %q, %p, %x : !tile.smem<64x64xi8, minor = 1>, !tile.smem<64x64xi8, minor = 0> -> tensor<64x64xi32>
    scf.yield %d : tensor<64x64xi32>
  }
  return %r : tensor<64x64xi32>
}

// -----

// What threads read from shared memory for a product lies in registers, too, while it runs.
// CHECK-LABEL: func.func @fragments
// CHECK: scf.for
// CHECK: %[[D:.*]] = tile.mma wgmma_tf32
// CHECK-NEXT: tile.mma_wait 1{{$}}
// CHECK-NEXT: scf.yield %[[D]]
// DRIVER-LABEL: func.func @fragments
// DRIVER: scf.for
// DRIVER: %[[D:.*]] = tile.mma wgmma_tf32
// DRIVER-NEXT: %[[DONE:.*]] = tile.mma_wait 0 of %[[D]]
// DRIVER-NEXT: scf.yield %[[DONE]]
func.func @fragments(%out: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %a = tile.smem_alloc : !tile.smem<64x32xf32, minor = 0>
  %b = tile.smem_alloc : !tile.smem<32x32xf32, minor = 0>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x32xf32>) : i32 {
    %d = tile.mma wgmma_tf32 k 32 warps(4, 1) %a, %b, %acc : !tile.smem<64x32xf32, minor = 0>, !tile.smem<32x32xf32, minor = 0> -> tensor<64x32xf32>
    scf.yield %d : tensor<64x32xf32>
  }
  tile.store %r, %out[%c0, %c0 : i32, i32] : tensor<64x32xf32>, !tile.view<2xf32>
  return
}
