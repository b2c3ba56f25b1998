// naive_gla.cpp - linear attention: the recurrence row by row, its gradients, the five steps of the chunked form from
// their formulas, the parallel form, one token, and the layer.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tools/bench/naive.h"

namespace tile::bench {
namespace {

/// Sizes of [B, H, L, K] and [B, H, L, V] tensors.
struct Sizes {
  explicit Sizes(NaiveData& data)
      : heads(data.dim("q", 0) * data.dim("q", 1)), l(data.dim("q", 2)), k(data.dim("q", 3)), v(data.dim("v", 3)) {}
  float scale() const { return 1 / std::sqrt(static_cast<float>(k)); }
  int64_t heads, l, k, v;
};

/// h = diag(decay) h + k v^T: one row's step of the state.
void step(float* h, const float* k, const float* v, const float* g, int64_t keys, int64_t values) {
  for (int64_t c = 0; c < keys; ++c) {
    const float decay = std::exp(g[c]);
    for (int64_t j = 0; j < values; ++j) h[c * values + j] = h[c * values + j] * decay + k[c] * v[j];
  }
}

/// One head, rows at the given distances: h = diag(decay) h + k v^T, o = scale q^T h. Without gates when `g` is null.
void recurrence(const float* q, const float* k, const float* v, const float* g, float* o, int64_t l, int64_t keys,
                int64_t values, int64_t key_row, int64_t value_row, float scale) {
  std::vector<float> h(static_cast<size_t>(keys * values));
  for (int64_t t = 0; t < l; ++t) {
    const float* vt = v + t * value_row;
    float* ot = o + t * value_row;
    for (int64_t j = 0; j < values; ++j) ot[j] = 0;
    for (int64_t c = 0; c < keys; ++c) {
      const int64_t at = t * key_row + c;
      const float decay = g ? std::exp(g[at]) : 1, kc = k[at], qc = q[at] * scale;
      float* hc = h.data() + c * values;
      for (int64_t j = 0; j < values; ++j) {
        hc[j] = hc[j] * decay + kc * vt[j];
        ot[j] += qc * hc[j];
      }
    }
  }
}

int64_t window_rows(NaiveData& data) { return data.dim("a_part", 3); }

}  // namespace

void naive_gla(NaiveData& data) {
  const Sizes s(data);
  const float *q = data.in("q"), *k = data.in("k"), *v = data.in("v"), *g = data.in("g");
  float* o = data.out("o");
  for (int64_t h = 0; h < s.heads; ++h) {
    const int64_t keys = h * s.l * s.k, values = h * s.l * s.v;
    recurrence(q + keys, k + keys, v + values, g + keys, o + values, s.l, s.k, s.v, s.k, s.v, s.scale());
  }
}

void naive_gla_backward(NaiveData& data) {
  const Sizes s(data);
  const float *q = data.in("q"), *k = data.in("k"), *v = data.in("v"), *g = data.in("g"), *d_o = data.in("do");
  float *dq = data.out("dq"), *dk = data.out("dk"), *dv = data.out("dv"), *dg = data.out("dg");
  const int64_t state = s.k * s.v;
  std::vector<float> h(static_cast<size_t>((s.l + 1) * state)), dh(static_cast<size_t>(state));
  for (int64_t head = 0; head < s.heads; ++head) {
    // States in front of every row, then back through the rows.
    std::fill(h.begin(), h.begin() + state, 0.f), std::fill(dh.begin(), dh.end(), 0.f);
    for (int64_t t = 0; t < s.l; ++t) {
      const int64_t row = head * s.l + t;
      float* next = h.data() + (t + 1) * state;
      std::copy(next - state, next, next);
      step(next, k + row * s.k, v + row * s.v, g + row * s.k, s.k, s.v);
    }
    for (int64_t t = s.l - 1; t >= 0; --t) {
      const int64_t row = head * s.l + t;
      const float *before = h.data() + t * state, *after = before + state, *vt = v + row * s.v, *dot = d_o + row * s.v;
      float* dvt = dv + row * s.v;
      for (int64_t j = 0; j < s.v; ++j) dvt[j] = 0;
      for (int64_t c = 0; c < s.k; ++c) {
        const float decay = std::exp(g[row * s.k + c]), qc = q[row * s.k + c] * s.scale(), kc = k[row * s.k + c];
        float to_q = 0, to_k = 0, to_g = 0;
        for (int64_t j = 0; j < s.v; ++j) {
          const float with_o = dh[static_cast<size_t>(c * s.v + j)] + qc * dot[j];
          to_q += after[c * s.v + j] * dot[j];
          to_k += with_o * vt[j];
          to_g += with_o * decay * before[c * s.v + j];
          dvt[j] += with_o * kc;
          dh[static_cast<size_t>(c * s.v + j)] = with_o * decay;
        }
        dq[row * s.k + c] = to_q * s.scale(), dk[row * s.k + c] = to_k, dg[row * s.k + c] = to_g;
      }
    }
  }
}

void naive_gla_decay_cumsum(NaiveData& data) {
  const Sizes s(data);
  const float* g = data.in("g");
  float* sums = data.out("sums");
  for (int64_t row = 0; row < s.heads * s.l; ++row)
    for (int64_t c = 0; c < s.k; ++c)
      sums[row * s.k + c] =
          (row % s.l % window_rows(data) ? sums[(row - 1) * s.k + c] : 0.f) + g[row * s.k + c] * 1.44269504f;
}

void naive_gla_prepare(NaiveData& data) {
  const Sizes s(data);
  const float *q = data.in("q"), *k = data.in("k"), *sums = data.in("sums");
  float *q_g = data.out("q_g"), *k_g = data.out("k_g");
  const int64_t window = window_rows(data);
  for (int64_t h = 0; h < s.heads; ++h)
    for (int64_t t = 0; t < s.l; ++t)
      for (int64_t c = 0; c < s.k; ++c) {
        const int64_t last = std::min(t - t % window + window, s.l) - 1, at = (h * s.l + t) * s.k + c;
        q_g[at] = q[at] * std::exp2(sums[at]) * s.scale();
        k_g[at] = k[at] * std::exp2(sums[(h * s.l + last) * s.k + c] - sums[at]);
      }
}

void naive_gla_inter_chunk(NaiveData& data) {
  const Sizes s(data);
  const float *q_g = data.in("q_g"), *k_g = data.in("k_g"), *v = data.in("v"), *sums = data.in("sums");
  float* o = data.out("o_part");
  const int64_t window = window_rows(data), parts = data.dim("o_part", 0), keys = (s.k + parts - 1) / parts;
  std::vector<float> h(static_cast<size_t>(s.k * s.v));
  for (int64_t head = 0; head < s.heads; ++head) {
    std::fill(h.begin(), h.end(), 0.f);
    for (int64_t first = 0; first < s.l; first += window) {
      const int64_t end = std::min(first + window, s.l);
      for (int64_t t = first; t < end; ++t)
        for (int64_t part = 0; part < parts; ++part) {
          float* to = o + ((part * s.heads + head) * s.l + t) * s.v;
          for (int64_t j = 0; j < s.v; ++j) to[j] = 0;
          for (int64_t c = part * keys; c < std::min(part * keys + keys, s.k); ++c)
            for (int64_t j = 0; j < s.v; ++j)
              to[j] += q_g[(head * s.l + t) * s.k + c] * h[static_cast<size_t>(c * s.v + j)];
        }
      for (int64_t c = 0; c < s.k; ++c) {
        const float decay = std::exp2(sums[(head * s.l + end - 1) * s.k + c]);
        for (int64_t j = 0; j < s.v; ++j) h[static_cast<size_t>(c * s.v + j)] *= decay;
        for (int64_t t = first; t < end; ++t)
          for (int64_t j = 0; j < s.v; ++j)
            h[static_cast<size_t>(c * s.v + j)] += k_g[(head * s.l + t) * s.k + c] * v[(head * s.l + t) * s.v + j];
      }
    }
  }
}

void naive_gla_inner_scores(NaiveData& data) {
  const Sizes s(data);
  const float *q = data.in("q"), *k = data.in("k"), *sums = data.in("sums");
  float* a = data.out("a_part");
  const int64_t window = window_rows(data), parts = data.dim("a_part", 0), keys = (s.k + parts - 1) / parts;
  for (int64_t part = 0; part < parts; ++part)
    for (int64_t row = 0; row < s.heads * s.l; ++row) {
      const int64_t inside = row % s.l % window;
      for (int64_t j = 0; j < window; ++j) {
        float sum = 0;
        const int64_t other = row - inside + j;
        if (j <= inside)
          for (int64_t c = part * keys; c < std::min(part * keys + keys, s.k); ++c)
            sum += q[row * s.k + c] * k[other * s.k + c] * std::exp2(sums[row * s.k + c] - sums[other * s.k + c]);
        a[(part * s.heads * s.l + row) * window + j] = sum * s.scale();
      }
    }
}

void naive_gla_combine(NaiveData& data) {
  const Sizes s(data);
  const float *v = data.in("v"), *o_part = data.in("o_part"), *a_part = data.in("a_part");
  float* o = data.out("o");
  const int64_t window = window_rows(data), parts = data.dim("o_part", 0);
  for (int64_t row = 0; row < s.heads * s.l; ++row) {
    float* to = o + row * s.v;
    for (int64_t c = 0; c < s.v; ++c) to[c] = 0;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t from = part * s.heads * s.l + row, inside = row % s.l % window;
      for (int64_t c = 0; c < s.v; ++c) to[c] += o_part[from * s.v + c];
      for (int64_t j = 0; j <= inside; ++j)
        for (int64_t c = 0; c < s.v; ++c) to[c] += a_part[from * window + j] * v[(row - inside + j) * s.v + c];
    }
  }
}

void naive_gla_parallel(NaiveData& data) {
  const Sizes s(data);
  const float *q = data.in("q"), *k = data.in("k"), *v = data.in("v"), *g = data.in("g");
  float* o = data.out("o");
  std::vector<float> sums(static_cast<size_t>(s.l * s.k));
  for (int64_t head = 0; head < s.heads; ++head) {
    const int64_t keys = head * s.l * s.k;
    for (int64_t i = 0; i < s.l * s.k; ++i)
      sums[static_cast<size_t>(i)] = (i < s.k ? 0.f : sums[static_cast<size_t>(i - s.k)]) + g[keys + i];
    for (int64_t t = 0; t < s.l; ++t) {
      float* to = o + (head * s.l + t) * s.v;
      for (int64_t j = 0; j < s.v; ++j) to[j] = 0;
      for (int64_t u = 0; u <= t; ++u) {
        float p = 0;
        for (int64_t c = 0; c < s.k; ++c)
          p += q[keys + t * s.k + c] * k[keys + u * s.k + c] *
               std::exp(sums[static_cast<size_t>(t * s.k + c)] - sums[static_cast<size_t>(u * s.k + c)]);
        for (int64_t j = 0; j < s.v; ++j) to[j] += p * s.scale() * v[(head * s.l + u) * s.v + j];
      }
    }
  }
}

void naive_gla_decode(NaiveData& data) {
  const float *q = data.in("q"), *k = data.in("k"), *v = data.in("v"), *g = data.in("g"), *state = data.in("state");
  float *next = data.out("next"), *o = data.out("o");
  const int64_t heads = data.dim("q", 0) * data.dim("q", 1), keys = data.dim("q", 2), values = data.dim("v", 2);
  const float scale = 1 / std::sqrt(static_cast<float>(keys));
  for (int64_t h = 0; h < heads; ++h) {
    float* to = o + h * values;
    for (int64_t j = 0; j < values; ++j) to[j] = 0;
    for (int64_t c = 0; c < keys; ++c) {
      const float decay = std::exp(g[h * keys + c]);
      for (int64_t j = 0; j < values; ++j) {
        const int64_t at = (h * keys + c) * values + j;
        next[at] = state[at] * decay + k[h * keys + c] * v[h * values + j];
        to[j] += q[h * keys + c] * scale * next[at];
      }
    }
  }
}

void naive_linear_attention(NaiveData& data) {
  const Sizes s(data);
  const float *q = data.in("q"), *k = data.in("k"), *v = data.in("v");
  float* o = data.out("o");
  for (int64_t h = 0; h < s.heads; ++h) {
    const int64_t keys = h * s.l * s.k, values = h * s.l * s.v;
    recurrence(q + keys, k + keys, v + values, nullptr, o + values, s.l, s.k, s.v, s.k, s.v, s.scale());
  }
}

void naive_gla_output_gate(NaiveData& data) {
  const float *o = data.in("o"), *r = data.in("r"), *w = data.in("w");
  float* y = data.out("y");
  const int64_t rows = data.dim("o", 0), n = data.dim("o", 1);
  for (int64_t i = 0; i < rows; ++i) {
    float squares = 0;
    for (int64_t j = 0; j < n; ++j) squares += o[i * n + j] * o[i * n + j];
    const float rstd = 1 / std::sqrt(squares / static_cast<float>(n) + 1e-5f);
    for (int64_t j = 0; j < n; ++j)
      y[i * n + j] = o[i * n + j] * rstd * w[j] * r[i * n + j] / (1 + std::exp(-r[i * n + j]));
  }
}

namespace {
std::vector<float> product(const float* a, const float* b, int64_t m, int64_t n, int64_t k) {
  std::vector<float> c(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t l = 0; l < k; ++l)
      for (int64_t j = 0; j < n; ++j) c[static_cast<size_t>(i * n + j)] += a[i * k + l] * b[l * n + j];
  return c;
}
}  // namespace

void naive_gla_layer(NaiveData& data) {
  const float *x = data.in("x"), *norm = data.in("norm");
  const int64_t rows = data.dim("x", 0), width = data.dim("x", 1), rank = data.dim("w1", 1), length = data.size("L");
  const int64_t keys = data.dim("wq", 1), values = data.dim("wv", 1), heads = data.size("H");
  const int64_t k_head = keys / heads, v_head = values / heads;
  const std::vector<float> q = product(x, data.in("wq"), rows, keys, width),
                           k = product(x, data.in("wk"), rows, keys, width),
                           v = product(x, data.in("wv"), rows, values, width),
                           r = product(x, data.in("wr"), rows, values, width),
                           low = product(x, data.in("w1"), rows, rank, width);
  std::vector<float> g = product(low.data(), data.in("w2"), rows, keys, rank), o(static_cast<size_t>(rows * values));
  for (float& z : g) z = (std::min(z, 0.f) - std::log1p(std::exp(-std::fabs(z)))) / 16;
  for (int64_t b = 0; b < rows / length; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t key = b * length * keys + h * k_head, value = b * length * values + h * v_head;
      recurrence(q.data() + key, k.data() + key, v.data() + value, g.data() + key, o.data() + value, length, k_head,
                 v_head, keys, values, 1 / std::sqrt(static_cast<float>(k_head)));
    }
  for (int64_t i = 0; i < rows * heads; ++i) {
    float squares = 0;
    for (int64_t j = 0; j < v_head; ++j) squares += o[i * v_head + j] * o[i * v_head + j];
    const float rstd = 1 / std::sqrt(squares / static_cast<float>(v_head) + 1e-5f);
    for (int64_t j = 0; j < v_head; ++j) {
      const float z = r[static_cast<size_t>(i * v_head + j)];
      o[static_cast<size_t>(i * v_head + j)] *= rstd * norm[j] * z / (1 + std::exp(-z));
    }
  }
  const std::vector<float> y = product(o.data(), data.in("wo"), rows, width, values);
  std::copy(y.begin(), y.end(), data.out("out"));
}

}  // namespace tile::bench
