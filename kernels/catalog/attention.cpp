// attention.cpp - catalog row of attention.h.
#include "kernels/attention.h"

#include "kernels/catalog/case.h"
#include "kernels/catalog/rows.h"
#include "kernels/reference/attention.h"

namespace tile::kernels {
namespace {

using reference::Arithmetic;
using reference::Dims;
using reference::HostTensor;
using reference::Placement;

/// How a [B, H, S, D] tensor lies in memory.
enum class Layout : int64_t { bhsd, bshd, packed, transposed };

Placement placement(const Dims& shape, Layout layout, int64_t shift) {
  switch (layout) {
    case Layout::bhsd:
      return Placement::ordered(shape, {0, 1, 2, 3}, 0, shift);
    case Layout::bshd:
      return Placement::ordered(shape, {0, 2, 1, 3}, 0, shift);
    case Layout::packed: {  // one third of [B, S, 3, H, D]
      Placement p = Placement::ordered(shape, {0, 2, 1, 3}, 0, shift);
      p.strides = {shape[2] * 3 * shape[1] * shape[3], shape[3], 3 * shape[1] * shape[3], 1};
      return p;
    }
    case Layout::transposed:
      return Placement::ordered(shape, {0, 1, 3, 2}, 1, shift);  // neighbours along D are far apart
  }
  return Placement::dense(shape);
}

struct Sizes {
  int64_t b, hq, hkv, sq, sk, d, dv;
  bool causal;
  explicit Sizes(const Fields& f)
      : b(f.get("B", 1)),
        hq(f.get("Hq", 1)),
        hkv(f.get("Hkv", hq)),
        sq(f["Sq"]),
        sk(f.get("Sk", sq)),
        d(f["D"]),
        dv(f.get("DV", d)),
        causal(f["causal"] != 0) {}
};

/// Scale of a problem: 1/sqrt(D) as everybody uses, or its negative.
float scale_of(const Fields& f) { return (f["negative_scale"] ? -1.f : 1.f) / std::sqrt(static_cast<float>(f["D"])); }

template <class T>
class AttentionCase : public OutputCase {
 public:
  AttentionCase(const Problem& p, const ConfigWords& words)
      : s_(p.sizes), fields_(p.sizes), scale_(scale_of(p.sizes)), config_(attention_kernel<T>().from_words(words)) {}

  Status create(std::shared_ptr<Device> device) {
    auto layout = static_cast<Layout>(fields_["layout"]);
    int64_t shift = fields_["shift"];
    auto tensor = [&](int64_t h, int64_t s, int64_t d) {
      return HostTensor(dtype_of<T>(), placement({s_.b, h, s, d}, layout, shift));
    };
    HostTensor q = tensor(s_.hq, s_.sq, s_.d), k = tensor(s_.hkv, s_.sk, s_.d), v = tensor(s_.hkv, s_.sk, s_.dv);
    q.fill_normal(1, static_cast<double>(fields_.get("amp", 1))), k.fill_normal(2), v.fill_normal(3);
    if (fields_["nan_key"])  // E18: only the queries that see this key may turn NaN
      for (int64_t c = 0; c < s_.d; ++c) k.set({0, 0, fields_["nan_key"], c}, NAN);
    Steps s;
    s(q_.create(device, std::move(q)))(k_.create(device, std::move(k)))(v_.create(device, std::move(v)));
    s(o_.create(device, tensor(s_.hq, s_.sq, s_.dv)))(
        lse_.create(device, HostTensor(DType::f32, {s_.b, s_.hq, s_.sq})));
    return s.status();
  }
  Status launch(Stream& stream) override {
    return attention_forward<T>(stream, q_.view<const T, 4>(), k_.view<const T, 4>(), v_.view<const T, 4>(),
                                o_.view<T, 4>(), lse_.view<float, 3>(), scale_, config_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Arithmetic working = Arithmetic::working(dtype_of<T>());
    working.tf32 = config_.tf32;
    reference::AttentionSpec spec{s_.causal, scale_};
    double row_cost = 2.0 * static_cast<double>(s_.sk * (s_.d + s_.dv));
    int64_t rows_wanted = std::max<int64_t>(static_cast<int64_t>(budget / std::max(row_cost, 1.0)), 16);
    std::vector<int64_t> heads = sample(s_.b * s_.hq, s_.sq * s_.b * s_.hq <= rows_wanted ? s_.b * s_.hq : 8);
    Gathered o, lse;
    for (int64_t bh : heads) {
      int64_t b = bh / s_.hq, h = bh % s_.hq;
      std::vector<int64_t> rows = sample(s_.sq, rows_wanted / static_cast<int64_t>(heads.size()));
      auto exact = attention_rows(spec, q_.host, k_.host, v_.host, b, h, rows, Arithmetic::exact());
      auto base = attention_rows(spec, q_.host, k_.host, v_.host, b, h, rows, working);
      for (size_t r = 0; r < rows.size(); ++r) {
        o.add(o_.host.row({b, h, rows[r]}), exact[r].o, base[r].o);
        lse.add({lse_.host.at({b, h, rows[r]})}, {exact[r].lse}, {base[r].lse});
      }
    }
    // LSE is an f32 sum of f32 products of exact inputs, whatever their type; large logits cost their own rounding.
    double lse_bound = (config_.tf32     ? 1e-2
                        : sizeof(T) == 4 ? 1e-4
                                         : 1e-3) *
                       std::max<double>(1, static_cast<double>(fields_.get("amp", 1)) / 8);
    return std::vector<Check>{
        with_gaps("O", o.compare(reference::tolerance(dtype_of<T>(), s_.sk, config_.tf32)), o_.host),
        with_gaps("LSE", reference::compare_absolute(lse.actual, lse.exact, lse_bound), lse_.host)};
  }
  Work work() const override {
    double heads = static_cast<double>(s_.b * s_.hq),
           pairs = static_cast<double>(reference::visible_pairs(s_.sq, s_.sk, s_.causal));
    double elements = static_cast<double>(s_.b * (s_.hq * s_.sq * (s_.d + s_.dv) + s_.hkv * s_.sk * (s_.d + s_.dv)));
    return {2 * heads * pairs * static_cast<double>(s_.d + s_.dv),
            sizeof(T) * elements + 4 * heads * static_cast<double>(s_.sq)};
  }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&o_, &lse_}; }

  Sizes s_;
  Fields fields_;
  float scale_;
  AttentionConfig config_;
  DeviceTensor q_, k_, v_, o_, lse_;
};

void add_problems(CatalogRow& row) {
  auto add = [&](const char* dtype, Purpose purpose, Fields f) {
    row.problems.push_back({dtype, std::move(f), purpose});
  };
  for (const char* d : {"f16", "bf16", "f32"})
    for (int64_t causal : {0, 1}) {
      add(d, Purpose::test, {{"B", 2}, {"Hq", 2}, {"Sq", 128}, {"D", 64}, {"causal", causal}});
      add(d, Purpose::test, {{"B", 1}, {"Hq", 6}, {"Hkv", 2}, {"Sq", 113}, {"Sk", 203}, {"D", 64}, {"causal", causal}});
      add(d, Purpose::test, {{"B", 1}, {"Hq", 1}, {"Sq", 200}, {"D", 128}, {"causal", causal}});
      add(d, Purpose::edge, {{"B", 1}, {"Hq", 1}, {"Sq", 1}, {"Sk", 1}, {"D", 64}, {"causal", causal}});      // E01
      add(d, Purpose::edge, {{"B", 1}, {"Hq", 2}, {"Sq", 239}, {"Sk", 1}, {"D", 64}, {"causal", causal}});    // E03
      add(d, Purpose::edge, {{"B", 1}, {"Hq", 1}, {"Sq", 203}, {"Sk", 113}, {"D", 32}, {"causal", causal}});  // E03
      add(d, Purpose::edge, {{"B", 1}, {"Hq", 1}, {"Sq", 5}, {"Sk", 0}, {"D", 32}, {"causal", causal}});      // no keys
      add(d, Purpose::edge, {{"B", 2}, {"Hq", 3}, {"Sq", 70}, {"D", 64}, {"causal", causal}, {"layout", 1}});  // E27
      add(d, Purpose::edge, {{"B", 2}, {"Hq", 3}, {"Sq", 70}, {"D", 64}, {"causal", causal}, {"layout", 2}});  // E27
      add(d, Purpose::edge, {{"B", 1}, {"Hq", 2}, {"Sq", 70}, {"D", 64}, {"causal", causal}, {"layout", 3}});  // E27
    }
  for (int64_t sk : {1, 15, 63, 64, 65, 130})
    add("f16", Purpose::edge, {{"Hq", 2}, {"Sq", 1}, {"Sk", sk}, {"D", 64}, {"causal", 1}});  // E02
  for (int64_t d : {32, 40, 59, 80, 96, 111, 128, 160, 192, 224, 256})                        // E07
    add(d % 2 ? "bf16" : "f16", Purpose::edge, {{"Hq", 1}, {"Sq", 100}, {"Sk", 140}, {"D", d}, {"causal", 1}});
  add("f32", Purpose::edge, {{"Hq", 1}, {"Sq", 60}, {"Sk", 70}, {"D", 59}, {"DV", 40}, {"causal", 1}});
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 60}, {"Sk", 70}, {"D", 96}, {"DV", 64}});
  for (int64_t s : {63, 65, 127, 129, 257})
    add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", s}, {"D", 64}, {"causal", 1}});                                  // E09
  for (const char* d : {"f16", "bf16"}) add(d, Purpose::edge, {{"Hq", 1}, {"Sq", 128}, {"D", 64}, {"amp", 60}});  // E10
  add("f32", Purpose::edge, {{"Hq", 1}, {"Sq", 90}, {"D", 32}, {"causal", 1}, {"nan_key", 40}});                  // E18
  add("f16", Purpose::edge, {{"Hq", 6}, {"Hkv", 1}, {"Sq", 65}, {"D", 64}, {"causal", 1}});                       // E23
  add("f16", Purpose::edge, {{"Hq", 10}, {"Hkv", 2}, {"Sq", 33}, {"D", 64}});
  add("bf16", Purpose::edge, {{"Hq", 9}, {"Hkv", 3}, {"Sq", 33}, {"D", 64}});
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 100}, {"D", 64}, {"causal", 1}, {"shift", 1}});  // E28
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 100}, {"D", 64}, {"causal", 1}, {"negative_scale", 1}});
  add("tf32", Purpose::edge, {{"Hq", 2}, {"Sq", 100}, {"D", 64}, {"causal", 1}});
  add("f16", Purpose::edge, {{"Hq", 1}, {"Sq", 1023}, {"Sk", 1024}, {"D", 64}, {"causal", 1}});

  for (int64_t causal : {0, 1}) {
    add("f16", Purpose::bench, {{"B", 4}, {"Hq", 16}, {"Sq", 4096}, {"D", 128}, {"causal", causal}});
    add("bf16", Purpose::bench, {{"B", 4}, {"Hq", 16}, {"Sq", 4096}, {"D", 128}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 1}, {"Hq", 16}, {"Sq", 16384}, {"D", 128}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 16}, {"Hq", 16}, {"Sq", 1024}, {"D", 128}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 4}, {"Hq", 32}, {"Sq", 4096}, {"D", 64}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 4}, {"Hq", 8}, {"Sq", 4096}, {"D", 256}, {"causal", causal}});
    add("f16", Purpose::bench, {{"B", 4}, {"Hq", 48}, {"Sq", 4096}, {"D", 32}, {"causal", causal}});
    add("f32", Purpose::bench_host, {{"B", 1}, {"Hq", 8}, {"Sq", 1024}, {"D", 64}, {"causal", causal}});
  }
  add("f16", Purpose::bench_host, {{"B", 1}, {"Hq", 8}, {"Sq", 1024}, {"D", 64}});
}

}  // namespace

CatalogRow attention_row() {
  CatalogRow row;
  row.name = "attention_forward";
  row.summary = "O = softmax(scale Q K^T) V and LSE, causal or full, grouped heads, any strides";
  row.peers = "FlashAttention-2 and cuDNN through torch sdpa";
  row.dtypes = {"f16", "bf16", "f32", "tf32"};
  row.sizes = {"B: batch (1)",
               "Hq: query heads (1)",
               "Hkv: key heads (Hq)",
               "Sq: queries",
               "Sk: keys (Sq)",
               "D: channels of Q and K",
               "DV: channels of V (D)",
               "causal: 0 or 1",
               "layout: 0 [B,H,S,D], 1 [B,S,H,D], 2 part of [B,S,3,H,D], 3 [B,H,D,S]",
               "shift: elements by which bases are misaligned",
               "amp: standard deviation of Q",
               "nan_key: this key is NaN",
               "negative_scale: scale is -1/sqrt(D)"};
  add_problems(row);
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* { return &attention_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    Sizes s(p.sizes);
    AttentionConfig c =
        default_attention_config(storage_of(p.dtype), s.sq, s.d, s.dv, s.causal, scale_of(p.sizes), machine);
    c.tf32 = p.dtype == "tf32";
    return attention_kernel<float>().words(c);
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_float_type(p.dtype, [&](auto t) { return make_case<AttentionCase<decltype(t)>>(device, p, c); });
  };
  return row;
}

}  // namespace tile::kernels
