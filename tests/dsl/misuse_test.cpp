// misuse_test.cpp - launches that cannot work: every one is an error that names the line of the launch and the kernel's,
// says what was expected and what was found, and leaves everything as it was.
#include <algorithm>
#include <limits>

#include "traced.h"

using namespace tile;

namespace {

std::shared_ptr<Device> host() { return open_device("host").value_or_throw(); }

struct RowsCfg {
  int BM = 8;
};
constexpr int kRowsLine = __LINE__ + 2;
auto make_rows() {
  return kernel("misused_rows",
                [](const RowsCfg& c, Tensor<const float, 2> x, Tensor<float, 2> y) {
                  auto m = program_id(0) * c.BM;
                  y.store({m, 0}, x.load({m, 0}, {c.BM, 16}) + 1.f);
                })
      .grid([](const RowsCfg& c, const auto& x, const auto&) { return Grid{cdiv(x.shape[0], c.BM)}; });
}

struct Misuse : ::testing::Test {
  decltype(make_rows()) rows = make_rows();
  std::vector<float> x = std::vector<float>(16 * 16, 1.f), y = std::vector<float>(16 * 16 + 1, -1.f);
  TensorView<const float, 2> in{x.data(), {16, 16}};
  TensorView<float, 2> out{y.data(), {16, 16}};
  Stream& stream = host()->default_stream();
  void TearDown() override { EXPECT_EQ(y, std::vector<float>(16 * 16 + 1, -1.f)) << "a refused launch wrote"; }
};

/// `status`, of a launch at `line`, must be a user's error with `part` whose notes name that line and, if asked, the
/// kernel's.
void expect_refused(const Status& status, int line, const std::string& part, int kernel_line = kRowsLine) {
  ASSERT_FALSE(status.ok()) << part;
  const std::string text = status.error().to_string();
  EXPECT_EQ(status.error().kind, ErrorKind::user) << text;
  EXPECT_NE(text.find(part), std::string::npos) << "expected: " << part << "\n" << text;
  const auto names = [&](const std::string& note, int at) {
    const auto is_it = [&](const Diagnostic& d) {
      return d.message == note && d.file == __FILE__ && static_cast<int>(d.line) == at;
    };
    for (const Diagnostic& d : status.error().diagnostics)
      if (is_it(d) || std::any_of(d.notes.begin(), d.notes.end(), is_it)) return true;
    return false;
  };
  EXPECT_TRUE(names("launched here", line)) << "line " << line << "\n" << text;
  EXPECT_TRUE(kernel_line == 0 || names("kernel 'misused_rows' is defined here", kernel_line)) << text;
}

/// A wrapper: the line is its caller's.
template <class K>
Status run_rows(const K& k, StreamAt stream, TensorView<const float, 2> x, TensorView<float, 2> y) {
  if (x.shape != y.shape) return stream.refuse(user_error("run_rows: x and y must have one shape"));
  return k.try_call(stream, {}, x, y);
}

}  // namespace

TEST_F(Misuse, PointersNameTheLineOfTheLaunch) {
  TensorView<const float, 2> null(nullptr, {16, 16});
  expect_refused(rows.try_call(stream, {}, null, out), __LINE__, "argument 0: null pointer");
  TensorView<float, 2> odd(reinterpret_cast<float*>(reinterpret_cast<char*>(y.data()) + 2), {16, 16});
  expect_refused(rows.try_call(stream, {}, in, odd), __LINE__, "is not aligned for f32 (4 bytes)");
}

TEST_F(Misuse, SizesAndGridsNameTheLineOfTheLaunch) {
  TensorView<const float, 2> negative(x.data(), {-3, 16}, {16, 1});
  expect_refused(rows.try_launch(stream, {}, Grid{1}, negative, out), __LINE__,
                 "argument 0: dimension 0 is negative (-3)");
  expect_refused(rows.try_launch(stream, {}, Grid{-1}, in, out), __LINE__, "grid (-1, 1, 1) is negative in x");
  expect_refused(rows.try_launch(stream, {}, Grid{int64_t{1} << 40}, in, out), __LINE__,
                 "1099511627776 programs in x, the device takes");
  TensorView<const float, 2> far(x.data(), {16, 16}, {std::numeric_limits<int64_t>::max() / 8, 1});
  expect_refused(rows.try_call(stream, {}, far, out), __LINE__, "reaches 2^63 bytes or more");
}

TEST_F(Misuse, OutputsNeedAnAddressForEveryElement) {
  const TensorView<float, 2> one_row(y.data(), {16, 16}, {0, 1});
  expect_refused(rows.try_call(stream, {}, in, one_row), __LINE__,
                 "argument 1: the kernel writes to it, so its elements need addresses of their own; shape [16, 16] with "
                 "strides [0, 1] has elements [1, 0] and [0, 0] at the same one");
  const TensorView<float, 2> overlapping(y.data(), {16, 16}, {15, 1});
  expect_refused(rows.try_call(stream, {}, in, overlapping), __LINE__,
                 "has elements [1, 0] and [0, 15] at the same one");
  // Steps without a common factor meet only at the far corner.
  const TensorView<float, 2> far(y.data(), {99992, 100004}, {100003, 99991});
  expect_refused(rows.try_launch(stream, {}, Grid{1}, in, far), __LINE__,
                 "has elements [99991, 0] and [0, 100003] at the same one");
}

TEST_F(Misuse, InputsMayRepeat) {
  std::vector<float> result(16 * 16);
  const TensorView<const float, 2> repeated(x.data(), {16, 16}, {0, 1});
  rows(stream, {}, repeated, TensorView<float, 2>(result.data(), {16, 16}));
  EXPECT_EQ(result, std::vector<float>(16 * 16, 2.f));
}

TEST_F(Misuse, CodeForOtherArguments) {
  auto special = rows.compile(host(), {}, in, out).value_or_throw();
  const TensorView<float, 2> shifted(y.data() + 1, {16, 16});
  expect_refused(special.try_launch(stream, Grid{2}, in, shifted), __LINE__,
                 "does not keep what this code was specialised to");
}

TEST_F(Misuse, ConfigurationsNoTileFits) {
  expect_refused(rows.try_call(stream, {.BM = 0}, in, out), __LINE__, "tile dims must be positive, found 0", 0);
  expect_refused(rows.try_call(stream, {.BM = -8}, in, out), __LINE__, "tile dims must be positive, found -8", 0);
  expect_refused(rows.try_call(stream, {.BM = 1 << 30}, in, out), __LINE__, "", 0);
}

TEST_F(Misuse, WrappersPassTheLineOfTheirCallers) {
  const TensorView<float, 2> null(nullptr, {16, 16}), short_one(y.data(), {4, 16});
  expect_refused(run_rows(rows, stream, in, null), __LINE__, "argument 1: null pointer");
  expect_refused(run_rows(rows, stream, in, short_one), __LINE__, "x and y must have one shape", 0);
}

TEST_F(Misuse, ExceptionsShowBothLines) {
  const int line = __LINE__ + 2;
  try {
    rows(stream, in, TensorView<float, 2>(nullptr, {16, 16}));
    FAIL() << "not refused";
  } catch (const Exception& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find(std::string(__FILE__) + ":" + std::to_string(line)), std::string::npos) << text;
    EXPECT_NE(text.find(std::string(__FILE__) + ":" + std::to_string(kRowsLine)), std::string::npos) << text;
  }
}

// Indices are refused where they would wrap: they would touch other memory.
TEST_F(Misuse, IndicesThatLeave32Bits) {
  const int line = __LINE__ + 2;
  auto flat = kernel("misused_flat", [](Ptr<const float> x, Ptr<float> y, I64 n) {
    auto i = program_id(0) * 1024 + arange(0, 1024);
    store(y + i, load(x + i, {.mask = i < n}), {.mask = i < n});
  });
  const auto expect_line = [&](const Status& status, int at, const std::string& part) {
    ASSERT_FALSE(status.ok());
    const std::string text = status.error().to_string();
    EXPECT_NE(text.find(part), std::string::npos) << text;
    ASSERT_FALSE(status.error().diagnostics.empty()) << text;
    EXPECT_EQ(static_cast<int>(status.error().diagnostics[0].line), at) << text;
    EXPECT_NE(text.find("launched here"), std::string::npos) << text;
  };
  const int64_t all = int64_t{1} << 21;  // programs of 1024 elements that 31 bits can number
  expect_line(flat.try_launch(stream, {}, Grid{all + 1}, x.data(), y.data(), int64_t{1} << 31), line,
              "an index computed in i32 reaches 2147484671 and wraps");
  // Also where rows and columns are made of the index. As no launch lets it wrap, it says so.
  auto rows = kernel("misused_rows", [](Ptr<const float> x, Ptr<float> y, I64 n) {
    auto i = program_id(0) * 1024 + arange(0, 1024);
    store(y + (i / 64 % 12 * 64 + i % 64), load(x + i % 768), {.mask = cast(i, i64) < n});
  });
  const std::string text = rows.trace().text();
  EXPECT_EQ(tile::testing::count_of(text, "overflow<nsw>"), 2) << text;
  EXPECT_FALSE(rows.try_launch(stream, {}, Grid{all + 1}, x.data(), y.data(), int64_t{1}).ok());
  // And what a loop counts from, where the counter is divided.
  auto pages = kernel("misused_pages", [](Ptr<const float> x, Ptr<float> y, I32 n) {
    for (auto first : range(program_id(0) * 1024, n, 64)) {
      auto t = first + arange(0, 64);
      store(y + t, load(x + t / 16 * 32 + t % 16));
    }
  });
  EXPECT_EQ(tile::testing::count_of(pages.trace().text(), "overflow<nsw>"), 1) << pages.trace().text();
  EXPECT_FALSE(pages.try_launch(stream, {}, Grid{all + 1}, x.data(), y.data(), 0).ok());
  // However many ways there are through sums of sums.
  auto sums = kernel("misused_sums", [](Ptr<const float> x, Ptr<float> y) {
    I32 before = program_id(0), sum = before;
    for (int i = 0; i < 40; ++i) {
      I32 next = before + sum;
      before = sum, sum = next;
    }
    store(y, load(x + sum / 8));
  });
  EXPECT_EQ(tile::testing::count_of(sums.trace().text(), "overflow<nsw>"), 40) << sums.trace().text();
  std::vector<float> result(2048, -1.f);
  ASSERT_TRUE(flat.try_launch(stream, {}, Grid{2}, x.data(), result.data(), int64_t{256}));
  EXPECT_EQ(result[255], 1.f);
  EXPECT_EQ(result[256], -1.f);

  auto wide = kernel("misused_wide", [](Ptr<const float> x, Ptr<float> y, I64 n) {
    auto i = cast(program_id(0), i64) * 1024 + cast(arange(0, 1024), i64);
    return_if(program_id(0) > 0);
    store(y + i, load(x + i, {.mask = i < n}), {.mask = i < n});
  });
  ASSERT_TRUE(wide.compile(host(), NoConfig{}).ok());

  auto boxes = kernel("misused_boxes", [](Tensor<const float, 2> x, Tensor<float, 2> y) {
    y.store({program_id(1) * 65536, program_id(0) * 16}, x.load({0, 0}, {16, 16}));
  });
  expect_line(boxes.try_launch(stream, {}, Grid{1, 32769}, in, out), __LINE__ - 2, "reaches 2147483648 and wraps");
}

TEST_F(Misuse, SizesThatLeave32Bits) {
  auto sizes = kernel("misused_sizes", [](Ptr<const float>, Tensor<const float, 2> x, Tensor<float, 2> y) {
    y.store({0, 0}, zeros({16, 16}, f32) + cast(x.dim(0), f32));
  });
  const TensorView<const float, 2> many(x.data(), {3000000000, 16}, {0, 1});
  const Status status = sizes.try_launch(stream, {}, Grid{1}, x.data(), many, out);
  ASSERT_FALSE(status.ok());
  const std::string text = status.error().to_string();
  EXPECT_NE(text.find("argument 1: dimension 0 is 3000000000, which the kernel reads as i32"), std::string::npos) << text;
  ASSERT_FALSE(status.error().diagnostics.empty());
  EXPECT_EQ(static_cast<int>(status.error().diagnostics[0].line), __LINE__ - 8) << text;
}

TEST_F(Misuse, MistakesInTheKernelSayWhereItWasLaunched) {
  auto bad = kernel("misused_types", [](Ptr<float> p, I32 n) { store(p, n * 0.5f); });
  const int line = __LINE__ + 1;
  const Status status = bad.try_launch(stream, {}, Grid{1}, y.data(), 1);
  ASSERT_FALSE(status.ok());
  ASSERT_EQ(status.error().diagnostics.size(), 1u);
  EXPECT_EQ(static_cast<int>(status.error().diagnostics[0].line), line - 2);
  ASSERT_FALSE(status.error().diagnostics[0].notes.empty());
  EXPECT_EQ(status.error().diagnostics[0].notes.back().message, "launched here");
  EXPECT_EQ(static_cast<int>(status.error().diagnostics[0].notes.back().line), line);
}

// On hosts a step that is not positive is an error that names the loop; elsewhere the loop has no iteration
// (tests/ops).
TEST_F(Misuse, StepsOfZero) {
  std::vector<int32_t> count(1, -1);
  const int line = __LINE__ + 3;
  auto steps = kernel("misused_step", [](Ptr<int32_t> p, I32 step) {
    Tile n = 0;
    for (auto i : range(0, 10, step)) n += 1;
    store(p, n);
  });
  for (int step : {0, -1, std::numeric_limits<int>::min()}) {
    const Status status = steps.try_launch(stream, {}, Grid{1}, count.data(), step);
    ASSERT_FALSE(status.ok()) << step;
    const std::string text = status.error().to_string();
    EXPECT_NE(text.find("the step of a range must be positive"), std::string::npos) << text;
    EXPECT_NE(text.find(std::string(__FILE__) + ":" + std::to_string(line)), std::string::npos) << text;
    EXPECT_EQ(count[0], -1);
  }
  ASSERT_TRUE(steps.try_launch(stream, {}, Grid{1}, count.data(), 3));
  EXPECT_EQ(count[0], 4);
}

// Constants below 0 count down, ends excluded, as in Python: values of the launch, wide and unsigned ones, early exits.
TEST_F(Misuse, StepsBackwards) {
  auto digits = kernel("steps_backwards", [](Ptr<int64_t> p, I32 n, U32 u, I64 wide) {
    auto all = [&](int at, const auto& loop, const Tile& most) {
      Tile seen = cast(full({}, 0, i32), i64), count = full({}, 0, i32);
      for (auto i : loop) {
        break_if(count == most);
        seen = seen * 10 + cast(i, i64), count += 1;
      }
      store(p + at, seen);
    };
    all(0, range(n - 1, -1, -1), 9 + n * 0);
    all(1, range(n, 0, -2, {.unroll = 2}), 9 + n * 0);
    all(2, range(u, 1, -3), 9 + n * 0);
    all(3, range(wide, -5, -4), 2 + n * 0);
    all(4, range(0, n, -1), 9 + n * 0);
    all(5, range(n - 2000000000, n + 2000000000, -1), 9 + n * 0);  // further than 32 bits say: no iteration either
  });
  std::vector<int64_t> seen(6, -1);
  ASSERT_TRUE(digits.try_launch(stream, {}, Grid{1}, seen.data(), 6, 8u, int64_t{9}));
  EXPECT_EQ(seen, (std::vector<int64_t>{543210, 642, 852, 95, 0, 0}));
}

// A counter of 32 bits that wrapped behind the last iteration would stay below the end: such ranges count in 64.
TEST_F(Misuse, RangesThatPass32Bits) {
  auto far = kernel("ranges_that_pass_32_bits", [](Ptr<int64_t> p) {
    auto all = [&](int at, const auto& loop) {
      Tile last = cast(full({}, 0, i32), i64), count = full({}, 0, i32);
      for (auto i : loop) last = cast(i, i64), count += 1;
      store(p + at, last), store(p + at + 1, cast(count, i64));
    };
    all(0, range(2147483600, 2147483647, 32));
    all(2, range(2147483600, -2147483000, -(1 << 30)));
    all(4, range(2147483647, -1, -2147483647));
    all(6, range(2147483000, 2147483647 - 31, 32));  // ends just in time
  });
  const std::string text = far.trace().text();
  EXPECT_EQ(tile::testing::count_of(text, ": i64 {") + tile::testing::count_of(text, ": i64{"), 3) << text;
  std::vector<int64_t> seen(8, -1);
  ASSERT_TRUE(far.try_launch(stream, {}, Grid{1}, seen.data()));
  EXPECT_EQ(seen, (std::vector<int64_t>{2147483632, 2, -1073741872, 4, 0, 2, 2147483608, 20}));
}

namespace {

/// The message a call throws.
template <class F>
std::string thrown(F f) {
  try {
    (void)f();
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().kind, ErrorKind::user);
    return e.error().message;
  }
  return "nothing thrown";
}

}  // namespace

TEST_F(Misuse, WordsOfAnotherKernel) {
  const AnyKernel& any = rows;
  const std::string fields = "kernel 'misused_rows' takes a configuration of 1 words, one for each field, found 0: words(config) makes them",
                    params = "kernel 'misused_rows' has 2 parameters, found a specialisation of 1 words";
  EXPECT_EQ(any.trace({}).error().message, fields);
  EXPECT_EQ(any.check_budget("sm_80", {}).error().message, fields);
  EXPECT_EQ(any.compile_for("host", {}).error().message, fields);
  EXPECT_EQ(any.compile(host(), {}).error().message, fields);
  EXPECT_EQ(any.parse_config({}, {1, 2}).error().message, "kernel 'misused_rows' takes a configuration of 1 words, one for each field, found 2");
  EXPECT_EQ(thrown([&] { return any.symbol({}); }), fields);
  EXPECT_EQ(thrown([&] { return rows.from_words({}).BM; }), "a configuration of 1 fields, found 0 words");
  const ConfigWords words = any.default_config();
  const Specialization one{0};
  EXPECT_NE(any.trace(words, one).error().message.find(params), std::string::npos) << any.trace(words, one).error().message;
  EXPECT_FALSE(any.compile_for("host", words, one));
  EXPECT_FALSE(any.compile(host(), words, one));
  const uint64_t slots[10] = {};
  expect_refused(any.launch(stream, words, one, {1}, slots), __LINE__, params);
  expect_refused(any.launch(stream, {}, {}, {1}, slots), __LINE__, fields);
  EXPECT_NE(any.trace(words, {5 << 1, 0}).error().message.find("a stride of 1 in dimension 4, the view has 2 dimensions"),
            std::string::npos);
}

TEST_F(Misuse, WhatWasNeverMade) {
  const Traced traced;
  EXPECT_FALSE(traced.ok());
  EXPECT_NE(traced.error().message.find("nothing was traced"), std::string::npos);
  EXPECT_EQ(traced.text() + traced.hash() + traced.symbol(), "");
  EXPECT_EQ(traced.operations(), 0u);
  const Compiled<Tensor<const float, 2>, Tensor<float, 2>> none;
  const std::string why = "no kernel was compiled: this Compiled is default-constructed or moved from";
  expect_refused(none.try_launch(stream, {1}, in, out), __LINE__, why, /*kernel_line=*/0);
  EXPECT_NE(none.ir("tile").error().message.find(why), std::string::npos);
  EXPECT_EQ(thrown([&] { return none.info().threads; }).find(why), 0u);
  EXPECT_EQ(thrown([&] { return none.module(); }).find(why), 0u);
  EXPECT_EQ(thrown([&] { return &none.device(); }).find(why), 0u);
  EXPECT_EQ(thrown([&] { return none.compile_ms(); }).find(why), 0u);
}

TEST_F(Misuse, KernelsThatLaunchThemselves) {
  using Self = decltype(kernel("self", [](Ptr<int>) {}));
  static const Self* self = nullptr;
  static int launches = 0;
  static std::string found;
  const Self k = kernel("self", [](Ptr<int> p) {
    store(p, 1);
    if (++launches > 3) return;
    int word = 0;
    const Status again = self->try_launch(host()->default_stream(), {}, {1}, &word);
    found = again ? "launched" : again.error().message;
    EXPECT_NE(self->trace().error().message.find("by itself"), std::string::npos);
  });
  self = &k;
  int word = 0;
  ASSERT_TRUE(k.try_launch(stream, {}, {1}, &word)) << "what the body found is its own business";
  EXPECT_EQ(word, 1);
  EXPECT_NE(found.find("kernel 'self' is launched, compiled or traced by itself"), std::string::npos) << found;

  // The same from what a policy calls while the kernel is compiled.
  const auto other = kernel("told", [](Ptr<int> p) { store(p, 2); });
  std::string told;
  set_jit_policy({.use_disk = false, .on_compile = [&](const std::string&) {
                    const Status again = other.try_launch(host()->default_stream(), {}, {1}, &word);
                    told = again ? "launched" : again.error().message;
                  }});
  ASSERT_TRUE(other.try_launch(stream, {}, {1}, &word));
  set_jit_policy({});
  EXPECT_EQ(word, 2);
  EXPECT_NE(told.find("kernel 'told' is launched, compiled or traced by itself"), std::string::npos) << told;
}

TEST_F(Misuse, KernelsThatWereMovedFrom) {
  auto k = rows;
  const auto moved = std::move(k);
  std::vector<float> result(16 * 16);
  EXPECT_EQ(k.name(), "misused_rows");
  EXPECT_TRUE(k.try_call(stream, {}, in, TensorView<float, 2>(result.data(), {16, 16})));
  EXPECT_EQ(result, std::vector<float>(16 * 16, 2.f));
  expect_refused(k.try_launch(stream, {}, Grid{-1}, in, out), __LINE__, "grid (-1, 1, 1) is negative in x");
}

TEST_F(Misuse, ViewsThatAVariantDoesNotRead) {
  struct Biased {
    bool bias = false;
  };
  const auto k = kernel("biased", [](const Biased& c, Tensor<const float, 1> bias, Tensor<float, 1> y) {
    Tile v = full({16}, cast(bias.dim(0), f32), f32);
    if (c.bias) v += bias.load({0}, {16});
    y.store({0}, v);
  });
  std::vector<float> result(16);
  const TensorView<const float, 1> null(nullptr, {16});
  const TensorView<float, 1> to(result.data(), {16});
  const Status launched = k.try_launch(stream, {}, Grid{1}, null, to);
  ASSERT_TRUE(launched) << launched.error().to_string();
  EXPECT_EQ(result, std::vector<float>(16, 16.f));
  expect_refused(k.try_launch(stream, {.bias = true}, Grid{1}, null, to), __LINE__, "argument 0: null pointer", 0);
}

TEST_F(Misuse, KernelsThatLaunchTheirNextConfiguration) {
  struct Depth {
    int n = 0;
  };
  using Chain = decltype(kernel("chain", [](const Depth&, Ptr<int>) {}));
  static const Chain* chain = nullptr;
  static std::string deepest;
  const Chain k = kernel("chain", [](const Depth& d, Ptr<int> p) {
    store(p, d.n);
    if (d.n < 0) return;
    const Traced next = chain->trace({d.n + 1});
    if (!next) deepest = deepest.empty() ? next.error().message : deepest;
  });
  chain = &k;
  EXPECT_TRUE(k.trace({-1}));
  EXPECT_TRUE(k.trace({0}));
  EXPECT_NE(deepest.find("inside 64 other such calls"), std::string::npos) << deepest;
}
