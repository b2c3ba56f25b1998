// config_test.cpp - configuration structs by reflection: names, words, text in both directions.
#include <cstring>

#include "traced.h"

using namespace tile;

namespace {
enum class Order2 : uint8_t { row, column };
struct Cfg {
  int BM = 128;
  bool causal = true;
  DType dtype = DType::f16;
  float scale = 0.5f;
  uint8_t warps = 4;
  Order2 order = Order2::column;
  int64_t big = -1;
};
struct Padded {  // bytes between the fields must not matter
  bool a = false;
  int64_t b = 1;
};
auto k = kernel("cfg", [](const Cfg&) {});

Result<ConfigWords> parse(std::vector<std::string> a) { return k.parse_config(a, k.default_config()); }
}  // namespace

TEST(Config, FieldsByName) {
  std::vector<std::string> names;
  for (const ConfigField& f : k.fields()) names.push_back(f.name);
  EXPECT_EQ(names, (std::vector<std::string>{"BM", "causal", "dtype", "scale", "warps", "order", "big"}));
  EXPECT_EQ(k.describe_config(k.default_config()),
            "BM=128, causal=true, dtype=f16, scale=0.5, warps=4, order=1, big=-1");
}

TEST(Config, WordsComeBack) {
  Cfg c{.BM = -3,
        .causal = false,
        .dtype = DType::bf16,
        .scale = 1.25f,
        .warps = 200,
        .order = Order2::row,
        .big = INT64_MIN};
  const Cfg d = k.from_words(k.words(c));
  EXPECT_EQ(d.BM, -3);
  EXPECT_EQ(d.causal, false);
  EXPECT_EQ(d.dtype, DType::bf16);
  EXPECT_EQ(d.scale, 1.25f);
  EXPECT_EQ(d.warps, 200);
  EXPECT_EQ(d.order, Order2::row);
  EXPECT_EQ(d.big, INT64_MIN);
}

TEST(Config, TheMostFields) {
  struct Many {
    int a0 = 0, a1 = 1, a2 = 2, a3 = 3, a4 = 4, a5 = 5, a6 = 6, a7 = 7, a8 = 8, a9 = 9, b0 = 10, b1 = 11, b2 = 12;
    int b3 = 13, b4 = 14, b5 = 15, b6 = 16, b7 = 17, b8 = 18, b9 = 19, c0 = 20, c1 = 21, c2 = 22, c3 = 23;
  };
  const auto words = detail::config_words(Many{});
  ASSERT_EQ(words.size(), 24u);
  for (size_t i = 0; i < words.size(); ++i) EXPECT_EQ(words[i], i);
  EXPECT_EQ((detail::field_name<Many, 0>()), "a0");
  EXPECT_EQ((detail::field_name<Many, 23>()), "c3");
  EXPECT_EQ(detail::config_words(detail::config_from_words<Many>(words.data())), words);
}

TEST(Config, PaddingBytesDoNotMatter) {
  Padded x, y;
  std::memset(static_cast<void*>(&x), 0xff, sizeof x);
  std::memset(static_cast<void*>(&y), 0x00, sizeof y);
  x.a = y.a = true;
  x.b = y.b = 7;
  EXPECT_EQ(detail::config_words(x), detail::config_words(y));
}

TEST(Config, ParsesFields) {
  auto w = parse({"BM=64", "causal=false", "dtype=bf16", "scale=-2.5", "warps=8"});
  ASSERT_TRUE(w.ok()) << w.error().to_string();
  EXPECT_EQ(k.describe_config(*w), "BM=64, causal=false, dtype=bf16, scale=-2.5, warps=8, order=1, big=-1");
}

TEST(Config, RefusesWhatItDoesNotKnow) {
  auto message = [](std::vector<std::string> a) {
    auto r = parse(std::move(a));
    EXPECT_FALSE(r.ok());
    EXPECT_EQ(r.error().kind, ErrorKind::user);
    return r.error().message;
  };
  EXPECT_NE(message({"causl=true"}).find("did you mean 'causal'"), std::string::npos) << message({"causl=true"});
  EXPECT_NE(message({"BM"}).find("expected field=value"), std::string::npos);
  EXPECT_NE(message({"BM=big"}).find("field 'BM' takes a whole number of 32 bits, found 'big'"), std::string::npos);
  EXPECT_NE(message({"BM=3000000000"}).find("field 'BM' takes"), std::string::npos);
  EXPECT_NE(message({"warps=-1"}).find("not negative"), std::string::npos);
  EXPECT_NE(message({"warps=256"}).find("of 8 bits"), std::string::npos);
  EXPECT_NE(message({"causal=maybe"}).find("takes true or false"), std::string::npos);
  EXPECT_NE(message({"dtype=f17"}).find("takes an element type"), std::string::npos);
  EXPECT_NE(message({"BM=64x"}).find("field 'BM' takes"), std::string::npos);
}

namespace {
struct Named {  // what compilers that cannot spell fields need
  int x = 1, y = 2;
  static constexpr std::array<std::string_view, 2> names() { return {"rows", "columns"}; }
};
}  // namespace
TEST(Config, NamesGivenByTheStruct) {
  auto named = kernel("named", [](const Named&) {});
  EXPECT_EQ(named.describe_config(named.default_config()), "rows=1, columns=2");
}

TEST(Config, KernelsWithoutOne) {
  auto plain = kernel("plain", [](I32 n) { auto r = n + 1; });
  EXPECT_TRUE(plain.fields().empty());
  std::vector<std::string> bad{"BM=1"};
  EXPECT_FALSE(plain.parse_config(bad, {}).ok());
}
