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

// out[position] = x + 100 y + 10000 z; programs[i] += 1 for program i
.visible .entry work_ids(.param .u64 out, .param .u64 programs, .param .u32 gx, .param .u32 gy, .param .u32 gz)
{
  .reg .pred %p;
  .reg .b32 %t, %b, %n, %gx, %gy, %gz, %total, %x, %y, %z, %v;
  .reg .b64 %a, %o;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %p, %t, 0;
  @%p bra done;
  mov.u32 %b, %ctaid.x;
  mov.u32 %n, %nctaid.x;
  ld.param.u64 %a, [programs];
  mul.wide.u32 %o, %b, 4;
  add.s64 %a, %a, %o;
  red.global.add.u32 [%a], 1;
  ld.param.u32 %gx, [gx];
  ld.param.u32 %gy, [gy];
  ld.param.u32 %gz, [gz];
  mul.lo.u32 %total, %gx, %gy;
  mul.lo.u32 %total, %total, %gz;
next:
  setp.ge.u32 %p, %b, %total;
  @%p bra done;
  rem.u32 %x, %b, %gx;
  div.u32 %y, %b, %gx;
  div.u32 %z, %y, %gy;
  rem.u32 %y, %y, %gy;
  mad.lo.u32 %v, %y, 100, %x;
  mad.lo.u32 %v, %z, 10000, %v;
  ld.param.u64 %a, [out];
  mul.wide.u32 %o, %b, 4;
  add.s64 %a, %a, %o;
  st.global.u32 [%a], %v;
  add.u32 %b, %b, %n;
  bra next;
done:
  ret;
}

// out[position] += 1, positions drawn from the counter; the last program puts it back to zero
.visible .entry work_tickets(.param .u64 out, .param .u32 gx, .param .u32 gy, .param .u32 gz, .param .u64 counter)
{
  .reg .pred %p;
  .reg .b32 %t, %n, %g, %total;
  .reg .b64 %a, %o, %c;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %p, %t, 0;
  @%p bra done;
  ld.param.u32 %total, [gx];
  ld.param.u32 %g, [gy];
  mul.lo.u32 %total, %total, %g;
  ld.param.u32 %g, [gz];
  mul.lo.u32 %total, %total, %g;
  ld.param.u64 %c, [counter];
next:
  atom.global.add.u32 %t, [%c], 1;
  setp.ge.u32 %p, %t, %total;
  @%p bra finish;
  ld.param.u64 %a, [out];
  mul.wide.u32 %o, %t, 4;
  add.s64 %a, %a, %o;
  red.global.add.u32 [%a], 1;
  bra next;
finish:
  membar.gl;
  atom.global.add.u32 %t, [%c+4], 1;
  add.u32 %t, %t, 1;
  mov.u32 %n, %nctaid.x;
  setp.ne.u32 %p, %t, %n;
  @%p bra done;
  st.global.u32 [%c], 0;
  st.global.u32 [%c+4], 0;
done:
  ret;
}
)ptx";

/// Bulk tensor copies, for sm_90 and later.
inline constexpr const char* kTmaPtx = R"ptx(
.version 8.0
.target sm_90
.address_size 64

// Program (i, j) copies the box of 8 rows of 32 floats at column 32 i, row 8 j of x to the same place of y.
.visible .entry copy_boxes(.param .u64 x, .param .u64 x0, .param .u64 x1, .param .u64 xs0, .param .u64 xs1,
                           .param .u64 y, .param .u64 y0, .param .u64 y1, .param .u64 ys0, .param .u64 ys1,
                           .param .align 64 .b8 xmap[128], .param .align 64 .b8 ymap[128])
{
  .reg .pred %p;
  .reg .b32 %t, %c, %r, %box, %bar;
  .reg .b64 %xm, %ym;
  .shared .align 128 .b8 box[1024];
  .shared .align 8 .b64 bar;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %p, %t, 0;
  @%p bra done;
  mov.b64 %xm, xmap;
  cvta.param.u64 %xm, %xm;
  mov.b64 %ym, ymap;
  cvta.param.u64 %ym, %ym;
  mov.u32 %box, box;
  mov.u32 %bar, bar;
  mov.u32 %c, %ctaid.x;
  shl.b32 %c, %c, 5;
  mov.u32 %r, %ctaid.y;
  shl.b32 %r, %r, 3;
  mbarrier.init.shared::cta.b64 [%bar], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 1024;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%box], [%xm, {%c, %r}], [%bar];
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;
  @!%p bra wait;
  fence.proxy.async.shared::cta;
  cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%ym, {%c, %r}], [%box];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
done:
  ret;
}
)ptx";

}  // namespace tile::testing_kernels
