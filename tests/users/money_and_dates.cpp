// money_and_dates.cpp - columns of data frames: products of decimals of 128 bits, rescaled and rounded, with nulls
// where 38 digits do not hold them; calendar fields and month arithmetic of day numbers.
#include <chrono>

#include "tests/users/use.h"
namespace users {
namespace money_and_dates {

// --- decimals: two words each, the lower first; product / 10^digits rounded half away from zero
struct DecimalCfg {
  int B = 256, warps = 4, digits = 6;  // digits 0: the divisor is an argument
};
struct Wide {
  Tile low, high;  // u64
};
Wide negated_where(const Tile& negative, const Wide& x) {
  auto low = ~x.low + 1;
  return {where(negative, low, x.low), where(negative, ~x.high + cast(low == 0, u64), x.high)};
}
/// x / d rounded half up, by words of 32 bits; d is below 2^31
template <class D>
Wide divided(const Wide& x, const D& d) {
  Tile remainder = zeros_like(x.low);
  auto digit = [&](const Tile& word) {
    Tile now = (remainder << 32) | word;
    Tile q = now / d;
    remainder = now - q * d;
    return q;
  };
  Tile w3 = digit(x.high >> 32), w2 = digit(x.high & uint64_t(0xFFFFFFFF));
  Tile w1 = digit(x.low >> 32), w0 = digit(x.low & uint64_t(0xFFFFFFFF));
  Tile up = cast(remainder * 2 >= d, u64);
  Tile low = (w1 << 32 | w0) + up;
  return {low, (w3 << 32 | w2) + cast(low < up, u64)};
}
auto decimal_mul =
    kernel("user_decimal_mul", [](const DecimalCfg& c, Ptr<const uint64_t> a, Ptr<const uint64_t> b, Ptr<uint64_t> out,
                                  Ptr<uint8_t> valid, U64 divisor, I64 n) {
      num_warps(c.warps);
      auto i = cast(program_id(0), i64) * c.B + arange(0, c.B);
      auto in = i < n;
      auto read = [&](Ptr<const uint64_t> p) {
        return Wide{load(p + i * 2, {.mask = in}), load(p + i * 2 + 1, {.mask = in})};
      };
      auto is_negative = [](const Wide& x) { return cast(x.high, i64) < 0; };
      Wide x = read(a), y = read(b);
      auto negative = is_negative(x) ^ is_negative(y);
      x = negated_where(is_negative(x), x), y = negated_where(is_negative(y), y);
      Wide p{x.low * y.low, mulhi(x.low, y.low)};
      auto over = (x.high != 0) & (y.high != 0);
      over = over | (mulhi(x.low, y.high) != 0) | (mulhi(x.high, y.low) != 0);
      for (const Tile& cross : {Tile(x.low * y.high), Tile(x.high * y.low)}) {
        p.high += cross;
        over = over | (p.high < cross);
      }
      uint64_t power = 1;
      for (int d = 0; d < c.digits; ++d) power *= 10;
      p = c.digits ? divided(p, power) : divided(p, divisor);
      const uint64_t most_high = 0x4B3B4CA85A86C47Aull, most_low = 0x098A224000000000ull;  // 10^38
      over = over | (p.high > most_high) | ((p.high == most_high) & (p.low >= most_low));
      p = negated_where(negative, p);
      store(out + i * 2, where(over, uint64_t(0), p.low), {.mask = in});
      store(out + i * 2 + 1, where(over, uint64_t(0), p.high), {.mask = in});
      store(valid + i, cast(~over, u8), {.mask = in});
    }).grid([](const DecimalCfg& c, auto, auto, auto, auto, uint64_t, int64_t n) { return Grid{cdiv(n, c.B)}; });
Register r1("decimal_mul", [](Env& e) {
  DecimalCfg c;
  if (!e.big) c = {48, 1, 6};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int64_t n = e.big ? 1 << 24 : 1003;
  // from a few digits to all: some products pass 38 digits, some 128 bits
  auto number = [&] {
    unsigned __int128 x = 0;
    for (int w = 0; w < 5; ++w) x = x << 24 | uint64_t(e.uniform() * 0x1p24);
    x >>= int(e.uniform() * 110);
    return e.uniform() < .5 ? x : -x;
  };
  auto numbers = [&] {
    bool upper = false;
    unsigned __int128 x = 0;
    return drawn<uint64_t>(e, 2 * n, [&, upper, x]() mutable {
      if (!upper) x = number();
      upper = !upper;
      return uint64_t(upper ? x : x >> 64);
    });
  };
  auto a = numbers(), b = numbers();
  auto out = constant<uint64_t>(e, 2 * n, 7), out2 = constant<uint64_t>(e, 2 * n, 7);
  auto valid = constant<uint8_t>(e, n, 9), valid2 = constant<uint8_t>(e, n, 9);
  auto c2 = c;
  c2.digits = 0;
  Job j;
  j.mbytes = 1e-6 * 49 * double(n);
  j.add(decimal_mul, c, a.p, b.p, out.p, valid.p, uint64_t(1), n);
  j.add(decimal_mul, c2, a.p, b.p, out2.p, valid2.p, uint64_t(1000), n);
  if (!e.big) j.add(decimal_mul, c, a.p, b.p, out.p, valid.p, uint64_t(1), int64_t(0));  // nothing to do
  j.check = [=] {
    using Big = unsigned __int128;
    Big most = 1;
    for (int d = 0; d < 38; ++d) most *= 10;
    auto wrong_with = [&](const Array<uint64_t>& result, const Array<uint8_t>& is_valid, uint64_t divisor) {
      const auto got = result.now();
      const auto good = is_valid.now();
      for (int64_t i = 0; i < n; ++i) {
        auto value = [&](const std::vector<uint64_t>& v) { return Big(v[2 * i + 1]) << 64 | v[2 * i]; };
        const Big x = value(a.h), y = value(b.h);
        const bool negative = (__int128(x) < 0) != (__int128(y) < 0);
        const Big mx = __int128(x) < 0 ? -x : x, my = __int128(y) < 0 ? -y : y;
        Big p = 0;
        bool fits = !__builtin_mul_overflow(mx, my, &p);
        p = p / divisor + (p % divisor * 2 >= divisor);
        fits &= p < most;
        const Big want = fits ? (negative ? -p : p) : Big(0);
        if (value(got) != want || good[i] != fits) return "number " + std::to_string(i) + " is wrong";
      }
      return std::string();
    };
    return wrong_with(out, valid, 1000000) + wrong_with(out2, valid2, 1000);
  };
  return j;
});

// --- civil dates of day numbers since 1970 (Hinnant's algorithm), ISO weekdays and weeks, months added
struct DateCfg {
  int B = 1024, warps = 4;
};
struct Date {
  Tile year, month, day;
};
Date civil(const Tile& days) {
  auto z = days + 719468, era = floor_div(z, 146097), doe = z - era * 146097;
  auto yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
  auto doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
  auto month = where(mp < 10, mp + 3, mp - 9);
  return {yoe + era * 400 + cast(month <= 2, i32), month, doy - (153 * mp + 2) / 5 + 1};
}
Tile day_number(const Date& date) {
  auto y = date.year - cast(date.month <= 2, i32), era = floor_div(y, 400), yoe = y - era * 400;
  auto doy = (153 * where(date.month > 2, date.month - 3, date.month + 9) + 2) / 5 + date.day - 1;
  return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}
auto calendar =
    kernel("user_calendar", [](const DateCfg& c, Tensor<const int32_t, 1> days, Tensor<const int16_t, 1> add,
                               Tensor<int16_t, 1> year, Tensor<int8_t, 1> month, Tensor<int8_t, 1> day,
                               Tensor<int8_t, 1> weekday, Tensor<int8_t, 1> week, Tensor<int32_t, 1> later) {
      num_warps(c.warps);
      auto at = program_id(0) * c.B;
      auto n = days.load({at}, {c.B});
      auto date = civil(n);
      auto iso = floor_mod(n + 3, 7);  // Monday: 0
      auto thursday = n - iso + 3;
      auto its_year = civil(thursday).year;
      auto first = day_number({its_year, full({c.B}, 1, i32), full({c.B}, 1, i32)});
      year.store({at}, cast(date.year, i16));
      month.store({at}, cast(date.month, i8));
      day.store({at}, cast(date.day, i8));
      weekday.store({at}, cast(iso + 1, i8));
      week.store({at}, cast((thursday - first) / 7 + 1, i8));
      auto months = date.year * 12 + date.month - 1 + cast(add.load({at}, {c.B}), i32);
      auto y = floor_div(months, 12), m = floor_mod(months, 12) + 1;
      auto leap = ((y % 4 == 0) & (y % 100 != 0)) | (y % 400 == 0);
      auto longest = where(m == 2, 28 + cast(leap, i32), 30 + ((m + (m >> 3)) & 1));
      later.store({at}, day_number({y, m, min(date.day, longest)}));
    }).grid([](const DateCfg& c, const auto& days, const auto&...) { return Grid{cdiv(days.shape[0], c.B)}; });
Register r2("calendar", [](Env& e) {
  DateCfg c;
  if (!e.big) c = {96, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int64_t n = e.big ? 1 << 24 : 2011;
  auto days = integers<int32_t>(e, n, -800000, 800000);
  auto add = integers<int16_t>(e, n, -2000, 2000);
  auto year = constant<int16_t>(e, n, 0);
  auto month = constant<int8_t>(e, n, 0), day = month, weekday = month, week = month;
  for (auto* a : {&day, &weekday, &week}) *a = constant<int8_t>(e, n, 0);
  auto later = constant<int32_t>(e, n, 0);
  Job j;
  j.mbytes = 1e-6 * 16 * double(n);
  j.add(calendar, c, days.view(n), add.view(n), year.view(n), month.view(n), day.view(n), weekday.view(n), week.view(n),
        later.view(n));
  if (!e.big)
    j.add(calendar, c, days.view(0), add.view(0), year.view(0), month.view(0), day.view(0), weekday.view(0),
          week.view(0), later.view(0));
  j.check = [=] {
    namespace ch = std::chrono;
    std::vector<double> y, m, d, w, k, l;
    for (int64_t i = 0; i < n; ++i) {
      const ch::sys_days at{ch::days{days.at(i)}};
      const ch::year_month_day date{at};
      y.push_back(int(date.year())), m.push_back(unsigned(date.month())), d.push_back(unsigned(date.day()));
      const unsigned iso = ch::weekday(at).iso_encoding();
      w.push_back(iso);
      const ch::sys_days thursday = at + ch::days{4 - int(iso)};
      const ch::sys_days first = ch::year_month_day(thursday).year() / 1 / 1;
      k.push_back(double((thursday - first).count() / 7 + 1));
      auto moved = date + ch::months{add.at(i)};
      if (!moved.ok()) moved = moved.year() / moved.month() / ch::last;
      l.push_back(double(ch::sys_days(moved).time_since_epoch().count()));
    }
    return agree(year.now(), y, .1, 0) + agree(month.now(), m, .1, 0) + agree(day.now(), d, .1, 0) +
           agree(weekday.now(), w, .1, 0) + agree(week.now(), k, .1, 0) + agree(later.now(), l, .1, 0);
  };
  return j;
});

}  // namespace money_and_dates
}  // namespace users
