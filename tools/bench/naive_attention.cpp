// naive_attention.cpp - attention, row by row: dense, causal, over a mask of blocks, over pages; forward and backward.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tools/bench/naive.h"

namespace tile::bench {
namespace {

/// Sizes of [B, H, S, D] tensors, and which keys a query sees.
struct Pairs {
  explicit Pairs(NaiveData& data)
      : b(data.dim("q", 0)),
        hq(data.dim("q", 1)),
        sq(data.dim("q", 2)),
        d(data.dim("q", 3)),
        hkv(data.dim("k", 1)),
        sk(data.dim("k", 2)),
        causal(data.size("causal") != 0),
        block(data.size("block", 128)) {
    if (data.size("density", 100) == 100) return;
    blocks = data.ints("blocks");
    block_rows = data.dim("blocks", 2), block_columns = data.dim("blocks", 3);
  }
  bool sees(int64_t i, int64_t j) const {
    return (!causal || j <= i + sk - sq) && (!blocks || blocks[i / block * block_columns + j / block]);
  }
  /// First rows of a head of queries and of its keys.
  int64_t queries(int64_t bh) const { return bh * sq; }
  int64_t keys(int64_t bh) const { return (bh / hq * hkv + bh % hq / (hq / hkv)) * sk; }
  float scale() const { return 1 / std::sqrt(static_cast<float>(d)); }

  int64_t b, hq, sq, d, hkv, sk;
  bool causal;
  int64_t block, block_rows = 0, block_columns = 0;
  const int32_t* blocks = nullptr;  ///< one mask for all heads
};

}  // namespace

void naive_attention(NaiveData& data) {
  const Pairs pairs(data);
  const float *q = data.in("q"), *k = data.in("k"), *v = data.in("v");
  float* o = data.out("o");
  const int64_t d = pairs.d;
  std::vector<float> p(static_cast<size_t>(pairs.sk));
  for (int64_t bh = 0; bh < pairs.b * pairs.hq; ++bh)
    for (int64_t i = 0; i < pairs.sq; ++i) {
      const float *qi = q + (pairs.queries(bh) + i) * d, *kh = k + pairs.keys(bh) * d, *vh = v + pairs.keys(bh) * d;
      float* oi = o + (pairs.queries(bh) + i) * d;
      float top = -INFINITY, sum = 0;
      for (int64_t j = 0; j < pairs.sk; ++j) {
        if (!pairs.sees(i, j)) continue;
        float dot = 0;
        for (int64_t c = 0; c < d; ++c) dot += qi[c] * kh[j * d + c];
        p[static_cast<size_t>(j)] = dot * pairs.scale();
        top = std::max(top, p[static_cast<size_t>(j)]);
      }
      for (int64_t c = 0; c < d; ++c) oi[c] = 0;
      for (int64_t j = 0; j < pairs.sk; ++j) {
        if (!pairs.sees(i, j)) continue;
        const float weight = std::exp(p[static_cast<size_t>(j)] - top);
        sum += weight;
        for (int64_t c = 0; c < d; ++c) oi[c] += weight * vh[j * d + c];
      }
      for (int64_t c = 0; c < d; ++c) oi[c] = sum > 0 ? oi[c] / sum : 0;
    }
}

void naive_attention_backward(NaiveData& data) {
  const Pairs pairs(data);
  const float *q = data.in("q"), *k = data.in("k"), *v = data.in("v"), *o = data.in("o"), *d_o = data.in("do"),
              *lse = data.in("lse");
  float *dq = data.out("dq"), *dk = data.out("dk"), *dv = data.out("dv");
  const int64_t d = pairs.d, keys = pairs.b * pairs.hkv * pairs.sk;
  std::fill(dk, dk + keys * d, 0.f), std::fill(dv, dv + keys * d, 0.f);
  for (int64_t bh = 0; bh < pairs.b * pairs.hq; ++bh)
    for (int64_t i = 0; i < pairs.sq; ++i) {
      const int64_t row = pairs.queries(bh) + i;
      float delta = 0;
      for (int64_t c = 0; c < d; ++c) delta += o[row * d + c] * d_o[row * d + c], dq[row * d + c] = 0;
      for (int64_t j = 0; j < pairs.sk; ++j) {
        if (!pairs.sees(i, j)) continue;
        const int64_t key = pairs.keys(bh) + j;
        float dot = 0, dp = 0;
        for (int64_t c = 0; c < d; ++c) dot += q[row * d + c] * k[key * d + c];
        for (int64_t c = 0; c < d; ++c) dp += d_o[row * d + c] * v[key * d + c];
        const float p = std::exp(dot * pairs.scale() - lse[row]), ds = p * (dp - delta) * pairs.scale();
        for (int64_t c = 0; c < d; ++c) {
          dv[key * d + c] += p * d_o[row * d + c];
          dk[key * d + c] += ds * q[row * d + c];
          dq[row * d + c] += ds * k[key * d + c];
        }
      }
    }
}

void naive_paged_attention(NaiveData& data) {
  const float *q = data.in("q"), *k = data.in("k"), *v = data.in("v");
  const int32_t *tables = data.ints("tables"), *lengths = data.ints("lengths");
  float* y = data.out("y");
  const int64_t batch = data.dim("q", 0), heads = data.dim("q", 1), d = data.dim("q", 2);
  const int64_t page = data.dim("k", 1), key_heads = data.dim("k", 2), per = data.dim("tables", 1);
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  std::vector<float> p(static_cast<size_t>(per * page));
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      auto row = [&](int64_t t) {
        return ((tables[b * per + t / page] * page + t % page) * key_heads + h / (heads / key_heads)) * d;
      };
      const float* qh = q + (b * heads + h) * d;
      float* yh = y + (b * heads + h) * d;
      float top = -INFINITY, sum = 0;
      for (int64_t t = 0; t < lengths[b]; ++t) {
        float dot = 0;
        for (int64_t c = 0; c < d; ++c) dot += qh[c] * k[row(t) + c];
        p[static_cast<size_t>(t)] = dot * scale;
        top = std::max(top, p[static_cast<size_t>(t)]);
      }
      for (int64_t c = 0; c < d; ++c) yh[c] = 0;
      for (int64_t t = 0; t < lengths[b]; ++t) {
        const float weight = std::exp(p[static_cast<size_t>(t)] - top);
        sum += weight;
        for (int64_t c = 0; c < d; ++c) yh[c] += weight * v[row(t) + c];
      }
      for (int64_t c = 0; c < d; ++c) yh[c] = sum > 0 ? yh[c] / sum : 0;
    }
}

}  // namespace tile::bench
