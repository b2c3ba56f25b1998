// pointer_caches.cpp - caches of narrow numbers in pages: rotated keys written as f8, keys and values quantised to int8
// by head and token, one query a sequence over pages of either, in parts.
#include "tests/users/use.h"
namespace users {
namespace pointer_caches {

float to_f8(double x) { return float(fp8_e4m3(float(x))); }

// --- NeoX rotation of queries (in place) and keys; keys and values written to pages of f8 (reshape_and_cache_flash)
struct RopeCfg {
  int D = 128, PAGE = 16;
};
auto rope_write =
    kernel("user_rope_write",
           [](const RopeCfg& c, Ptr<const bfloat16> key, Ptr<const bfloat16> value, Ptr<fp8_e4m3> key_cache,
              Ptr<fp8_e4m3> value_cache, Ptr<const float> cos_sin, Ptr<const int64_t> positions,
              Ptr<const int64_t> slot_mapping, Ptr<const float> k_scale, Ptr<const float> v_scale, I32 heads,
              I32 key_stride, I32 value_stride, I64 block_stride, I32 page_stride, I32) {
             auto token = program_id(0), head = program_id(1);
             auto slot = load(slot_mapping + token);
             return_if(slot < 0);
             auto block = slot / c.PAGE, in_block = slot % c.PAGE;
             auto position = load(positions + token);
             auto half_d = arange(0, c.D / 2), d = arange(0, c.D);
             auto cs = load(cos_sin + position * c.D + half_d), sn = load(cos_sin + position * c.D + c.D / 2 + half_d);
             auto k_at = key + cast(token, i64) * key_stride + head * c.D;
             auto x1 = cast(load(k_at + half_d), f32), x2 = cast(load(k_at + (c.D / 2 + half_d)), f32);
             auto inverse = 1.f / load(k_scale + head);
             auto to = block * block_stride + in_block * page_stride + head * c.D;
             store(key_cache + to + half_d, cast(clamp((x1 * cs - x2 * sn) * inverse, -448.f, 448.f), f8e4m3));
             store(key_cache + to + c.D / 2 + half_d,
                   cast(clamp((x2 * cs + x1 * sn) * inverse, -448.f, 448.f), f8e4m3));
             auto v = cast(load(value + cast(token, i64) * value_stride + head * c.D + d), f32);
             store(value_cache + to + d, cast(clamp(v / load(v_scale + head), -448.f, 448.f), f8e4m3));
           })
        .grid([](const RopeCfg&, auto, auto, auto, auto, auto, auto, auto, auto, auto, int heads, int, int, int64_t,
                 int, int T) {
          return Grid{T, heads};
        });
Register r1("rope_write", [](Env& e) {
  RopeCfg c;
  if (!e.big) c = {32, 16};
  const int T = e.big ? 16384 : 23, H = e.big ? 8 : 3, D = c.D, P = c.PAGE, pages = cdiv(T, P) + 2, longest = 64;
  auto k = random<bfloat16>(e, size_t(T) * H * D), v = random<bfloat16>(e, k.n);
  auto cs = random<float>(e, size_t(longest) * D);
  auto kc = constant<fp8_e4m3>(e, size_t(pages) * P * H * D, 0), vc = constant<fp8_e4m3>(e, kc.n, 0);
  auto positions = filled<int64_t>(e, T, [&](size_t i) { return int64_t(i * 5 % longest); });
  auto slots = filled<int64_t>(e, T, [&](size_t i) {
    return i % 11 == 4 ? int64_t(-1) : int64_t((i / P * P * 3 % (pages * P)) / P * P + i % P);
  });
  auto ks = random<float>(e, H, .01, .02), vs = random<float>(e, H, .01, .02);
  Job j;
  j.mbytes = 6e-6 * T * H * D;
  j.add(rope_write, c, k.p, v.p, kc.p, vc.p, cs.p, positions.p, slots.p, ks.p, vs.p, H, H * D, H * D,
        int64_t(P) * H * D, H * D, T);
  j.check = [=] {
    std::vector<double> wk(kc.n), wv(kc.n);
    for (int t = 0; t < T; ++t)
      for (int h = 0; h < H && slots.h[t] >= 0; ++h)
        for (int d = 0; d < D; ++d) {
          const size_t at = (size_t(t) * H + h) * D, to = (size_t(slots.h[t]) * H + h) * D + d,
                       p = size_t(positions.h[t]) * D;
          const double x = k[at + d], y = k[at + (d + D / 2) % D];
          wk[to] = to_f8((x * cs[p + d % (D / 2)] + (d < D / 2 ? -y : y) * cs[p + D / 2 + d % (D / 2)]) / ks[h]);
          wv[to] = to_f8(v[at + d] / vs[h]);
        }
    const auto wrong = agree(kc.now(), wk, 2e-3, .13);
    return wrong.empty() ? agree(vc.now(), wv, 2e-3, .13) : wrong;
  };
  return j;
});

// --- LightLLM's destindex_copy_quantize_kv: int8 by groups of 8 of a head, scales beside; a row of heads a program
struct CopyCfg {
  int H = 8, D = 128, G = 8;
};
auto copy_quant =
    kernel("user_copy_quant", [](const CopyCfg& c, Ptr<const half> K, Ptr<const int32_t> dest_loc, Ptr<int8_t> out,
                                 Ptr<half> out_scale, I32 stride_k_bs, I32 stride_k_h, I32 stride_o_bs, I32 stride_o_h,
                                 I32 stride_os_bs, I32 stride_os_h, I32 heads, I32) {
      auto cur = program_id(0), h = program_id(1);
      auto g = arange(0, c.D / c.G), d = arange(0, c.G);
      auto dest = cast(load(dest_loc + cur), i64);
      auto src = load(K + cur * stride_k_bs + h * stride_k_h + (g.col() * c.G + d.row()));
      auto scale = cast(max(cast(abs(src), f32), axis(1)) / 127.f, f16);
      auto q = cast(rint(cast(src, f32) / max(cast(scale, f32), 1e-8f)), i8);
      store(out + dest * stride_o_bs + h * stride_o_h + (g.col() * c.G + d.row()), q);
      store(out_scale + dest * stride_os_bs + h * stride_os_h + g, squeeze(scale, 1));
    }).grid([](const CopyCfg&, auto, auto, auto, auto, int, int, int, int, int, int, int heads, int T) {
      return Grid{T, heads};
    });
Register r2("copy_quant", [](Env& e) {
  CopyCfg c;
  if (!e.big) c = {3, 32, 8};
  const int T = e.big ? 16384 : 23, H = c.H, D = c.D, G = c.G;
  auto k = random<half>(e, size_t(T) * H * D);
  auto to = filled<int32_t>(e, T, [&](size_t i) { return int32_t(i * 7 % T); });
  auto out = constant<int8_t>(e, size_t(T) * H * D, 0);
  auto s = constant<half>(e, size_t(T) * H * D / G, NAN);
  Job j;
  j.mbytes = 3.3e-6 * T * H * D;
  j.add(copy_quant, c, k.p, to.p, out.p, s.p, H * D, D, H * D, D, H * D / G, D / G, H, T);
  j.check = [=] {
    std::vector<double> want(out.n), scales(s.n);
    for (int t = 0; t < T; ++t)
      for (int i = 0; i < H * D; i += G) {
        const size_t from = size_t(t) * H * D + i, at = size_t(to.h[t]) * H * D + i;
        double most = 0;
        for (int x = 0; x < G; ++x) most = std::max(most, std::abs(k[from + x]));
        scales[at / G] = in_half(most / 127);
        for (int x = 0; x < G; ++x) want[at + x] = std::rint(k[from + x] / scales[at / G]);
      }
    const auto wrong = agree(s.now(), scales, 1e-6, 1e-3);
    return wrong.empty() ? agree(out.now(), want, 1.01, 0) : wrong;
  };
  return j;
});

// --- one query a sequence over pages (vLLM's kernel_paged_attention_2d): f8 with a factor a head, or int8 with factors
// of tokens and heads beside the cache; SGLang's _fwd_grouped_kernel_stage1 and stage2 in outline
struct DecodeCfg {
  int H = 16, D = 128, PAGE = 16, BN = 64, SPLITS = 8;
};
template <class T>
auto decode_kernel(const char* name, bool by_token) {
  return kernel(
             name,
             [by_token](const DecodeCfg& c, Ptr<const bfloat16> Q, Ptr<const T> K_Buffer, Ptr<const T> V_Buffer,
                        Ptr<const float> ks, Ptr<const float> vs, Ptr<const int32_t> tables, Ptr<const int32_t> lens,
                        Ptr<float> Att_Out, Ptr<float> Att_Lse, F32 sm_scale, I32 B, I32 heads, I32 kv_heads,
                        I32 stride_table) {
               auto b = program_id(0), g = program_id(1), split = program_id(2);
               auto group = heads / kv_heads;
               auto h = g * group + arange(0, c.H);
               auto mask_h = arange(0, c.H) < group;
               auto d = arange(0, c.D);
               auto len = load(lens + b);
               auto per = cdiv(cdiv(len, c.SPLITS), c.BN) * c.BN;
               auto start = per * split, end = min(start + per, len);
               auto q = load(Q + ((b * heads + h).col() * c.D + d.row()), {.mask = mask_h.col(), .other = 0.f});
               auto scale = sm_scale * float(M_LOG2E);
               Tile e_max = full({c.H, 1}, -INFINITY, f32), e_sum = zeros({c.H, 1}, f32), acc = zeros({c.H, c.D}, f32);
               for (auto start_n : range(start, end, c.BN)) {
                 auto n = start_n + arange(0, c.BN);
                 auto inside = n < end;
                 auto page = load(tables + b * stride_table + n / c.PAGE, {.mask = inside, .other = 0});
                 auto row = (cast(page, i64) * c.PAGE + n % c.PAGE) * kv_heads + g;
                 auto k = cast(load(K_Buffer + (row.row() * c.D + d.col()), {.mask = inside.row()}), bf16);
                 auto s = dot(q, k);
                 if (by_token)
                   s = s * load(ks + row, {.mask = inside, .other = 0.f}).row();
                 else
                   s = s * load(ks + g);
                 s = where(mask_h.col() & inside.row(), s * scale, -INFINITY);
                 auto n_e_max = max(max(s, axis(1)), e_max);
                 n_e_max = max(n_e_max, -1e30f);
                 auto re_scale = exp2(e_max - n_e_max), p = exp2(s - n_e_max);
                 auto v = cast(load(V_Buffer + (row.col() * c.D + d.row()), {.mask = inside.col()}), bf16);
                 e_sum = e_sum * re_scale + sum(p, axis(1));
                 if (by_token) p = p * load(vs + row, {.mask = inside, .other = 0.f}).row();
                 acc = dot(cast(p, bf16), v, acc * re_scale);
                 e_max = n_e_max;
               }
               if (!by_token) acc = acc * load(vs + g);
               auto at = (b * heads + h) * c.SPLITS + split;
               store(Att_Out + (at.col() * c.D + d.row()), acc / max(e_sum, 1e-30f), {.mask = mask_h.col()});
               store(Att_Lse + at, squeeze(where(e_sum > 0, e_max + log2(e_sum), -INFINITY), 1), {.mask = mask_h});
             })
      .grid([](const DecodeCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, float, int B, int,
               int kv_heads, int) {
        return Grid{B, kv_heads, c.SPLITS};
      });
}
auto decode_f8 = decode_kernel<fp8_e4m3>("user_decode_f8", false);
auto decode_i8 = decode_kernel<int8_t>("user_decode_i8", true);
auto decode_merge = kernel("user_decode_merge", [](const DecodeCfg& c, Ptr<const float> Mid_O, Ptr<const float> Lse,
                                                   Ptr<bfloat16> O, I32) {
                      auto row = program_id(0);
                      auto d = arange(0, c.D), s = arange(0, c.SPLITS);
                      auto l = load(Lse + row * c.SPLITS + s);
                      auto w = exp2(l - max(l));
                      auto o = load(Mid_O + ((row * c.SPLITS + s).col() * c.D + d.row()));
                      store(O + row * c.D + d, cast(squeeze(sum(o * w.col(), axis(0)), 0) / sum(w), bf16));
                    }).grid([](const DecodeCfg&, auto, auto, auto, int rows) { return Grid{rows}; });
template <class T>
Job decode_job(
    Env& e,
    const Kernel<DecodeCfg, Ptr<const bfloat16>, Ptr<const T>, Ptr<const T>, Ptr<const float>, Ptr<const float>,
                 Ptr<const int32_t>, Ptr<const int32_t>, Ptr<float>, Ptr<float>, F32, I32, I32, I32, I32>& k_of,
    bool by_token, Array<T> K, Array<T> V, DecodeCfg c, int B, int HQ, int HK, int longest) {
  const int D = c.D, P = c.PAGE, per = cdiv(longest, P);
  auto q = random<bfloat16>(e, size_t(B) * HQ * D), o = constant<bfloat16>(e, q.n, NAN);
  const size_t factors = by_token ? K.n / D : HK;
  auto ks = random<float>(e, factors, .005, .01), vs = random<float>(e, factors, .005, .01);
  auto tables = filled<int32_t>(e, size_t(B) * per, [&](size_t i) { return int32_t((i * 7 + 3) % (size_t(B) * per)); });
  auto lens = filled<int32_t>(e, B, [&](size_t b) { return longest - int(b) * 19 % longest; });
  auto parts = constant<float>(e, size_t(B) * HQ * c.SPLITS * D, NAN),
       lse = constant<float>(e, size_t(B) * HQ * c.SPLITS, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.mbytes = 2e-6 * B * double(longest) * HK * D;
  j.add(k_of, c, q.p, K.p, V.p, ks.p, vs.p, tables.p, lens.p, parts.p, lse.p, scale, B, HQ, HK, per);
  j.add(decode_merge, c, parts.p, lse.p, o.p, B * HQ);
  j.check = [=] {
    std::vector<double> want(o.n);
    for (int r = 0; r < B * HQ; ++r) {
      const int b = r / HQ, g = r % HQ / (HQ / HK);
      double total = 0;
      for (int n = 0; n < lens.h[b]; ++n) {
        const size_t row = (size_t(tables.h[b * per + n / P]) * P + n % P) * HK + g, f = by_token ? row : g;
        double s = 0;
        for (int d = 0; d < D; ++d) s += q[size_t(r) * D + d] * K[row * D + d] * ks[f];
        total += s = std::exp(s * scale);
        for (int d = 0; d < D; ++d) want[size_t(r) * D + d] += s * V[row * D + d] * vs[f];
      }
      for (int d = 0; d < D; ++d) want[size_t(r) * D + d] /= total;
    }
    return agree(o.now(), want, by_token ? 4e-3 : 2e-4, 1e-2);
  };
  return j;
}
Register r3("decode_f8", [](Env& e) {
  DecodeCfg c;
  if (!e.big) c = {16, 32, 16, 16, 3};
  const int B = e.big ? 64 : 3, HQ = e.big ? 32 : 4, HK = e.big ? 8 : 2, longest = e.big ? 8192 : 83;
  const size_t n = size_t(B) * cdiv(longest, c.PAGE) * c.PAGE * HK * c.D;
  auto k = random<fp8_e4m3>(e, n, -4, 4), v = random<fp8_e4m3>(e, n, -4, 4);
  return decode_job(e, decode_f8, false, k, v, c, B, HQ, HK, longest);
});
Register r4("decode_i8", [](Env& e) {
  DecodeCfg c;
  if (!e.big) c = {16, 32, 16, 16, 3};
  const int B = e.big ? 64 : 3, HQ = e.big ? 32 : 4, HK = e.big ? 8 : 2, longest = e.big ? 8192 : 83;
  const size_t n = size_t(B) * cdiv(longest, c.PAGE) * c.PAGE * HK * c.D;
  auto k = integers<int8_t>(e, n, -127, 128), v = integers<int8_t>(e, n, -127, 128);
  return decode_job(e, decode_i8, true, k, v, c, B, HQ, HK, longest);
});

}  // namespace pointer_caches
}  // namespace users
