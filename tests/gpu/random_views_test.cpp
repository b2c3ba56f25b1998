// random_views_test.cpp - random kernels of boxes of every kind of view (random_views.h) on the host and on the simulated
// machines: the same bits in all memory (random_run.h has the settings).
#include "tests/gpu/random_views.h"

#include <deque>
#include <functional>

#include "tests/gpu/random_run.h"

namespace tile::testing {
namespace {

/// Memory of a view: between guard pages, as far as its strides reach, only some of it ever touched.
template <class T, int R>
struct RandomView {
  std::array<int64_t, R> shape{}, strides{};
  int64_t below = 0, elements = 1;  ///< of memory in front of element 0, and all of it
  std::unique_ptr<GuardedBuffer> memory;

  /// `apart`: no two elements at one address. `far`: it may reach over more than 2^31 elements.
  template <class Number>
  void make(Number&& number, bool apart, bool far) {
    std::array<int, R> order{};
    for (int d = 0; d < R; ++d) order[static_cast<size_t>(d)] = d;
    if (number(3) == 0)
      for (int d = R - 1; d > 0; --d) std::swap(order[static_cast<size_t>(d)], order[static_cast<size_t>(number(d + 1))]);
    int64_t step = number(6) ? 1 : 2 + number(2);
    const int unit = number(5) ? 16 / static_cast<int>(sizeof(T)) : 1;  // bulk copies want rows of 16 bytes
    elements = 1;
    for (int i = R - 1; i >= 0; --i) {
      const auto d = static_cast<size_t>(order[static_cast<size_t>(i)]);
      strides[d] = step;
      if (i == 0 && far && number(4) == 0) strides[d] = step = std::max(step, (int64_t{1} << 31) + 16 * number(9));
      if (!apart && number(10) == 0) strides[d] = 0;
      if (number(10) == 0) strides[d] = -strides[d];
      const int64_t span = std::abs(strides[d]) * (shape[d] - 1);
      if (span > 0) elements += span;
      if (strides[d] < 0 && span > 0) below += span;
      step *= std::max<int64_t>(shape[d], 1);
      step = (step + unit - 1) / unit * unit + unit * (number(3) == 0);
    }
    memory = std::make_unique<GuardedBuffer>(sizeof(T) * static_cast<size_t>(elements));
  }
  TensorView<T, R> view() const { return {memory->template as<T>() + below, shape, strides}; }
  /// Calls f for every element.
  template <class F>
  void each(F&& f) const {
    std::array<int64_t, R> at{};
    for (int64_t s : shape)
      if (s == 0) return;
    for (;;) {
      int64_t offset = below;
      for (size_t d = 0; d < R; ++d) offset += at[d] * strides[d];
      f(memory->template as<T>()[offset], at);
      size_t d = R;
      while (d > 0 && ++at[d - 1] == shape[d - 1]) at[--d] = 0;
      if (d == 0) return;
    }
  }
};

template <class T>
class RandomViews : public ::testing::Test {
 protected:
  using Sum = std::conditional_t<std::is_integral_v<T>, int32_t, float>;
  using Maker = ViewMaker<T, Sum>;
  static constexpr int kOut = Maker::kPrograms * Maker::kResults * Maker::kResult;

  struct Memory {
    explicit Memory(int seed) : random(static_cast<uint32_t>(seed)) {
      auto next = [this](int below) { return number(below); };
      auto value = [&](T& x, const auto&) { x = whole<T>(number(5) - 2); };
      auto size = [&](int most) { return number(30) == 0 ? number(2) : 1 + number(most); };
      line.shape = {size(300)}, x.shape = {size(120), size(120)}, y.shape = {size(120), size(120)};
      z.shape = {size(6), size(60), size(60)}, w.shape = {3, size(4), size(30), size(4), size(30)};
      box.shape = {Maker::kPrograms, 10 + number(70), 10 + number(70)};
      sums.shape = {Maker::kPrograms, 3, 10 + number(50), 10 + number(50)};
      line.make(next, false, false), x.make(next, false, true), y.make(next, false, false);
      z.make(next, false, true), w.make(next, false, false), box.make(next, true, true), sums.make(next, true, false);
      line.each(value), x.each(value), y.each(value), z.each(value), w.each(value);
      std::generate_n(places.as<int32_t>(), Maker::kPlaces, [&] { return number(240) - 40; });
      std::fill_n(out.as<Sum>(), kOut, Sum(-77));
      limit = number(60);
      const int64_t fars[] = {-(int64_t{1} << 33), -(int64_t{1} << 31), -1, int64_t{1} << 31, int64_t{1} << 32,
                              int64_t{1} << 40};
      far = fars[number(6)] + number(9);
    }
    int number(int below) { return static_cast<int>(random() % static_cast<uint32_t>(below)); }

    std::mt19937 random;
    RandomView<T, 1> line;
    RandomView<T, 2> x, y;
    RandomView<T, 3> z, box;
    RandomView<T, 5> w;
    RandomView<Sum, 4> sums;
    GuardedBuffer places{4 * Maker::kPlaces}, out{sizeof(Sum) * kOut};
    int limit = 0;
    int64_t far = 0;
  };

  static Status run(const std::shared_ptr<Device>& device, Memory& m, int seed) {
    const auto k = kernel("random_views", [](const RandomSeed& c, Tensor<const T, 1> line, Tensor<const T, 2> x,
                                             Tensor<const T, 2> y, Tensor<const T, 3> z, Tensor<const T, 5> w,
                                             Ptr<const int32_t> places, Tensor<T, 3> box, Tensor<Sum, 4> sums,
                                             Ptr<Sum> out, I32 limit, I64 far) {
      Maker(c.seed, {line, x, y, z, w, places, box, sums, out, limit, far}).program();
    });
    Stream& stream = device->default_stream();
    Status ran = k.try_launch(stream, {seed}, Grid{Maker::kPrograms}, m.line.view(), m.x.view(), m.y.view(), m.z.view(),
                              m.w.view(), static_cast<const int32_t*>(m.places.template as<int32_t>()), m.box.view(),
                              m.sums.view(), m.out.template as<Sum>(), m.limit, m.far);
    return ran.ok() ? stream.synchronize() : ran;
  }
  /// The first element that differs, and how many.
  template <class View>
  static std::string difference(const View& got, const View& want) {
    std::string first;
    int count = 0;
    auto other = want.view();
    got.each([&](const auto& x, const auto& at) {
      const auto& expected = std::apply([&](auto... i) -> decltype(auto) { return other(i...); }, at);
      if (x == expected) return;
      if (count++ == 0)
        first = fmt::format("({}): {} instead of {}", fmt::join(at, ", "), float(x), float(expected));
    });
    return count ? fmt::format("{}; {} differ", first, count) : "";
  }
};

using Types = ::testing::Types<half, float, int8_t, fp8_e5m2>;
TYPED_TEST_SUITE(RandomViews, Types);

TYPED_TEST(RandomViews, HostAndGpusAgree) {
  if (std::getenv("TILE_RANDOM_DEVICE")) GTEST_SKIP() << "views as large as these have no copies";
  using Memory = typename TestFixture::Memory;
  using Sum = typename TestFixture::Sum;
  host_and_gpus_agree<Memory>(
      6, [&](const auto& device, Memory& m, int seed) { return this->run(device, m, seed); },
      [&](const std::string& target, const Memory& got, const Memory& want, int) {
        const size_t n = TestFixture::kOut;
        EXPECT_EQ(first_difference<Sum>({got.out.template as<Sum>(), n}, {want.out.template as<Sum>(), n},
                                        TestFixture::Maker::kResult),
                  "")
            << target << ", out";
        EXPECT_EQ(this->difference(got.box, want.box), "") << target << ", box";
        EXPECT_EQ(this->difference(got.sums, want.sums), "") << target << ", sums";
      });
  print_launches();
}

}  // namespace
}  // namespace tile::testing
