// A kernel that does not say how many warps it has gets 4, fewer where its tiles have no element for each thread, more
// where a thread would hold too much.
// RUN: sed 's/SIZE/32/g' %s | tilec report - -t sm_80 --json | FileCheck %s --check-prefix=ONE
// RUN: sed 's/SIZE/64/g' %s | tilec report - -t sm_80 --json | FileCheck %s --check-prefix=TWO
// RUN: sed 's/SIZE/128/g' %s | tilec report - -t sm_80 --json | FileCheck %s --check-prefix=FOUR
// RUN: sed 's/SIZE/8192/g' %s | tilec report - -t sm_80 --json | FileCheck %s --check-prefix=EIGHT
// ONE: "threads": 32,
// TWO: "threads": 64,
// FOUR: "threads": 128,
// EIGHT: "threads": 256,
func.func @k(%p: !tile.ptr<f32>) attributes {tile.kernel} {
  %i = tile.iota : tensor<SIZExi32>
  %x = arith.sitofp %i : tensor<SIZExi32> to tensor<SIZExf32>
  tile.scatter %x, %p offsets %i : tensor<SIZExi32> : tensor<SIZExf32>, !tile.ptr<f32>
  return
}
