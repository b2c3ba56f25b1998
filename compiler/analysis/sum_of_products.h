// sum_of_products.h - integers as sums of products of numbers that stand for themselves, collected.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace tile::ir {

/// The numbers of a product (sorted; which number stands for what is the user's), and its factor, which is not 0.
/// Factors wrap, as sums and products of 64 bits do.
using SumOfProducts = std::map<std::vector<uint32_t>, int64_t>;

inline int64_t wrappingProduct(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

/// a + factor * b
inline SumOfProducts plus(SumOfProducts a, const SumOfProducts& b, int64_t factor = 1) {
  for (const auto& [numbers, times] : b) {
    int64_t& sum = a[numbers];
    sum = static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(wrappingProduct(factor, times)));
    if (!sum) a.erase(numbers);
  }
  return a;
}

inline SumOfProducts times(const SumOfProducts& a, const SumOfProducts& b) {
  SumOfProducts product;
  for (const auto& [left, f] : a)
    for (const auto& [right, g] : b) {
      std::vector<uint32_t> numbers = left;
      numbers.insert(numbers.end(), right.begin(), right.end());
      std::sort(numbers.begin(), numbers.end());
      product = plus(std::move(product), {{numbers, wrappingProduct(f, g)}});
    }
  return product;
}

/// Whether there are at most so many products, of at most so many numbers.
inline bool isSmall(const SumOfProducts& sum, size_t products, size_t numbers) {
  return sum.size() <= products &&
         std::all_of(sum.begin(), sum.end(), [&](const auto& term) { return term.first.size() <= numbers; });
}

}  // namespace tile::ir
