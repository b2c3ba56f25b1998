// test_kernels.ptx.h - the kernels of test_kernels.h for the GPU, as text the driver translates.
#pragma once

namespace tile::testing_kernels {

inline constexpr const char* kPtx = R"ptx(
.version 7.1
.target sm_80
.address_size 64

// out[i] = i for i < n
.visible .entry iota(.param .u64 out, .param .u32 n)
{
  .reg .pred %p;
  .reg .b32 %t, %b, %d, %i, %n;
  .reg .b64 %a, %o;
  mov.u32 %t, %tid.x;
  mov.u32 %b, %ctaid.x;
  mov.u32 %d, %ntid.x;
  mad.lo.s32 %i, %b, %d, %t;
  ld.param.u32 %n, [n];
  setp.ge.s32 %p, %i, %n;
  @%p bra done;
  ld.param.u64 %a, [out];
  mul.wide.s32 %o, %i, 4;
  add.s64 %a, %a, %o;
  st.global.u32 [%a], %i;
done:
  ret;
}

// y[i] += a * x[i] over y's shape, both strided
.visible .entry axpy(.param .u64 x, .param .u64 xn, .param .u64 xs, .param .u64 y, .param .u64 yn, .param .u64 ys, .param .f32 a)
{
  .reg .pred %p;
  .reg .b32 %t, %b, %d, %i;
  .reg .b64 %i64, %n, %px, %py, %s, %o;
  .reg .f32 %x, %y, %a;
  mov.u32 %t, %tid.x;
  mov.u32 %b, %ctaid.x;
  mov.u32 %d, %ntid.x;
  mad.lo.s32 %i, %b, %d, %t;
  cvt.s64.s32 %i64, %i;
  ld.param.u64 %n, [yn];
  setp.ge.s64 %p, %i64, %n;
  @%p bra done;
  ld.param.u64 %px, [x];
  ld.param.u64 %s, [xs];
  mul.lo.s64 %o, %i64, %s;
  shl.b64 %o, %o, 2;
  add.s64 %px, %px, %o;
  ld.param.u64 %py, [y];
  ld.param.u64 %s, [ys];
  mul.lo.s64 %o, %i64, %s;
  shl.b64 %o, %o, 2;
  add.s64 %py, %py, %o;
  ld.param.f32 %a, [a];
  ld.global.f32 %x, [%px];
  ld.global.f32 %y, [%py];
  fma.rn.f32 %y, %a, %x, %y;
  st.global.f32 [%py], %y;
done:
  ret;
}

// out[linear program] = x + 100 y + 10000 z
.visible .entry ids(.param .u64 out)
{
  .reg .pred %p;
  .reg .b32 %t, %x, %y, %z, %gx, %gy, %l, %v;
  .reg .b64 %a, %o;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %p, %t, 0;
  @%p bra done;
  mov.u32 %x, %ctaid.x;
  mov.u32 %y, %ctaid.y;
  mov.u32 %z, %ctaid.z;
  mov.u32 %gx, %nctaid.x;
  mov.u32 %gy, %nctaid.y;
  mad.lo.u32 %l, %z, %gy, %y;
  mad.lo.u32 %l, %l, %gx, %x;
  mad.lo.u32 %v, %y, 100, %x;
  mad.lo.u32 %v, %z, 10000, %v;
  ld.param.u64 %a, [out];
  mul.wide.u32 %o, %l, 4;
  add.s64 %a, %a, %o;
  st.global.u32 [%a], %v;
done:
  ret;
}

// waits `ns` nanoseconds, then out[0] = 2 * out[0] + value
.visible .entry delayed(.param .u64 out, .param .u32 value, .param .u64 ns)
{
  .reg .pred %p;
  .reg .b32 %t, %v, %w;
  .reg .b64 %a, %ns, %start, %now;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %p, %t, 0;
  @%p bra done;
  ld.param.u64 %ns, [ns];
  mov.u64 %start, %globaltimer;
again:
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %start;
  setp.lt.u64 %p, %now, %ns;
  @%p bra again;
  ld.param.u64 %a, [out];
  ld.param.u32 %v, [value];
  ld.global.u32 %w, [%a];
  shl.b32 %w, %w, 1;
  add.u32 %w, %w, %v;
  st.global.u32 [%a], %w;
done:
  ret;
}

// Writes one record; %i the element inside the tile, %v its bits, site in the second argument.
.func write_record(.param .u64 ring, .param .u32 site, .param .u32 element, .param .u32 bits)
{
  .reg .pred %p;
  .reg .b32 %s, %e, %v, %at, %cap, %x, %y, %z, %zero;
  .reg .b64 %r, %o;
  ld.param.u64 %r, [ring];
  ld.param.u32 %s, [site];
  ld.param.u32 %e, [element];
  ld.param.u32 %v, [bits];
  atom.global.sys.add.u32 %at, [%r], 1;
  ld.global.u32 %cap, [%r+4];
  setp.ge.u32 %p, %at, %cap;
  @%p bra full;
  mul.wide.u32 %o, %at, 32;
  add.s64 %r, %r, %o;
  mov.u32 %x, %ctaid.x;
  mov.u32 %y, %ctaid.y;
  mov.u32 %z, %ctaid.z;
  mov.u32 %zero, 0;
  st.global.u32 [%r+16], %s;
  st.global.u32 [%r+20], %x;
  st.global.u32 [%r+24], %y;
  st.global.u32 [%r+28], %z;
  st.global.u32 [%r+32], %e;
  st.global.u32 [%r+36], %zero;
  st.global.u32 [%r+40], %v;
  st.global.u32 [%r+44], %zero;
full:
  ret;
}

// Site 0: prints x[i] for i < n, a tile of 128 per program.
.visible .entry debug_print(.param .u64 x, .param .u32 n, .param .u64 ring)
{
  .reg .pred %p;
  .reg .b32 %t, %b, %d, %i, %n, %v, %site;
  .reg .b64 %a, %o, %ring;
  mov.u32 %t, %tid.x;
  mov.u32 %b, %ctaid.x;
  mov.u32 %d, %ntid.x;
  mad.lo.s32 %i, %b, %d, %t;
  ld.param.u32 %n, [n];
  setp.ge.s32 %p, %i, %n;
  @%p bra done;
  ld.param.u64 %a, [x];
  mul.wide.s32 %o, %i, 4;
  add.s64 %a, %a, %o;
  ld.global.u32 %v, [%a];
  ld.param.u64 %ring, [ring];
  mov.u32 %site, 0;
  call write_record, (%ring, %site, %t, %v);
done:
  ret;
}

// Site 0: asserts x[i] < limit for i < n. `hard`: ends the program by a trap.
.visible .entry debug_assert(.param .u64 x, .param .u32 n, .param .u32 limit, .param .u32 hard, .param .u64 ring)
{
  .reg .pred %p;
  .reg .b32 %t, %b, %d, %i, %n, %v, %limit, %site, %hard;
  .reg .b64 %a, %o, %ring;
  mov.u32 %t, %tid.x;
  mov.u32 %b, %ctaid.x;
  mov.u32 %d, %ntid.x;
  mad.lo.s32 %i, %b, %d, %t;
  ld.param.u32 %n, [n];
  setp.ge.s32 %p, %i, %n;
  @%p bra done;
  ld.param.u64 %a, [x];
  mul.wide.s32 %o, %i, 4;
  add.s64 %a, %a, %o;
  ld.global.u32 %v, [%a];
  ld.param.u32 %limit, [limit];
  setp.lt.s32 %p, %v, %limit;
  @%p bra done;
  ld.param.u64 %ring, [ring];
  mov.u32 %site, 0;
  call write_record, (%ring, %site, %t, %v);
  ld.param.u32 %hard, [hard];
  setp.eq.u32 %p, %hard, 0;
  @%p bra done;
  membar.sys;
  trap;
done:
  ret;
}

// Writes to an address nothing is mapped at.
.visible .entry fault(.param .u64 address)
{
  .reg .b32 %v;
  .reg .b64 %a;
  ld.param.u64 %a, [address];
  mov.u32 %v, 1;
  st.global.u32 [%a], %v;
  ret;
}

// out[0] = what was written to the last word of the dynamic shared memory
.extern .shared .align 16 .b8 pool[];
.visible .entry shared_end(.param .u64 out, .param .u32 bytes)
{
  .reg .b32 %v, %n, %base;
  .reg .b64 %a;
  ld.param.u32 %n, [bytes];
  mov.u32 %base, pool;
  add.u32 %base, %base, %n;
  mov.u32 %v, 77;
  st.volatile.shared.u32 [%base+-4], %v;
  ld.volatile.shared.u32 %v, [%base+-4];
  ld.param.u64 %a, [out];
  st.global.u32 [%a], %v;
  ret;
}

// Takes at most 64 threads.
.visible .entry narrow(.param .u64 out) .maxntid 64, 1, 1
{
  ret;
}

.visible .entry nothing()
{
  ret;
}

// Five slots, as a small real kernel has.
.visible .entry nothing5(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 m, .param .u32 n)
{
  ret;
}
)ptx";

}  // namespace tile::testing_kernels
