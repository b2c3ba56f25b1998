// Which blocks attention visits and which of them it masks, against counting pairs, and counted by the loops themselves.
// Names carry the ids of the project's checklist.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/attention.h"
#include "kernels/reference/attention.h"

namespace tile::kernels {
namespace {

using reference::AttentionSpec;

std::shared_ptr<Device> host() { return open_device("host").value_or_throw(); }

/// The blocks visited are those with a visible pair, the unmasked ones those with visible pairs only.
TEST(AttentionBlocks, S4_4_BoundsAgreeWithCountingPairs) {
  for (int64_t sq : {1, 5, 64, 70, 200})
    for (int64_t sk : {0, 1, 63, 64, 130, 257})
      for (auto [left, right] : std::initializer_list<std::pair<int64_t, int64_t>>{
               {-1, -1}, {-1, 0}, {0, 0}, {3, 0}, {0, 5}, {-1, 4}, {40, 20}, {100, -1}, {500, 500}})
        for (bool top_left : {false, true})
          for (auto [height, width] : std::initializer_list<std::pair<int, int>>{{64, 64}, {128, 64}, {32, 80}}) {
            AttentionSpec spec;
            spec.left = left, spec.right = right, spec.top_left = top_left;
            const Band<int64_t> band{top_left ? 0 : sk - sq, std::max<int64_t>(left, 0), std::max<int64_t>(right, 0),
                                     left >= 0, right >= 0};
            const std::string where = fmt::format("{} x {} window {} {} top_left {} tiles {} x {}", sq, sk, left, right,
                                                  top_left, height, width);
            for (int64_t first = 0; first < sq; first += height) {
              const auto r = visible_blocks<int64_t>(band, first, height, sq, sk, width);
              ASSERT_TRUE(r.begin <= r.whole_begin && r.whole_begin <= r.whole_end && r.whole_end <= r.end) << where;
              for (int64_t block = 0; block * width < sk; ++block) {
                int64_t visible = 0, pairs = 0;
                for (int64_t i = first; i < std::min<int64_t>(first + height, sq); ++i)
                  for (int64_t j = block * width; j < (block + 1) * width; ++j, ++pairs)
                    visible += j < sk && in_band(spec, i, j, sq, sk);
                const bool whole = block >= r.whole_begin && block < r.whole_end;
                const bool visited = block >= r.begin && block < r.end;
                EXPECT_TRUE(visited || visible == 0) << where << " rows " << first << " block " << block;
                EXPECT_EQ(whole, visible == pairs) << where << " rows " << first << " block " << block;
              }
            }
            // The other way round: blocks of queries that see a block of keys.
            for (int64_t first = 0; first < sk; first += width) {
              const auto r = visible_blocks<int64_t>(band.transposed(), first, width, sk, sq, height);
              for (int64_t block = 0; block * height < sq; ++block)
                for (int64_t i = block * height; i < std::min<int64_t>((block + 1) * height, sq); ++i)
                  for (int64_t j = first; j < std::min<int64_t>(first + width, sk); ++j) {
                    const bool seen = in_band(spec, i, j, sq, sk);
                    const bool whole = block >= r.whole_begin && block < r.whole_end;
                    const bool visited = block >= r.begin && block < r.end;
                    ASSERT_TRUE(seen ? visited : !whole) << where << " keys " << first;
                  }
            }
          }
}

/// Every tile of every head is some program's, and the last heads take turns: all first tiles, then all second ones.
TEST(AttentionBlocks, TheLastHeadsTakeTurns) {
  struct Config {};
  const auto order = kernel("order", [](const Config&, Tensor<int32_t, 3> ORDER, I32 together) {
                       const HeadTile own = tile_of_heads(together);
                       auto program =
                           program_id(0) + num_programs(0) * (program_id(1) + num_programs(1) * program_id(2));
                       ORDER.store({own.batch, own.head, own.tile}, program);
                     }).grid([](const Config&, const auto& out, int) {
    return Grid{out.shape[2], out.shape[1], out.shape[0]};
  });
  auto device = host();
  auto stream = device->create_stream().value_or_throw();
  const int batches = 3, heads = 5, tiles = 4;
  for (int together : {1, 2, 4, 15, 64}) {
    auto out = Buffer<int32_t>::from(device, std::vector<int32_t>(batches * heads * tiles, -1)).value_or_throw();
    order(*stream, Config{}, out.view(batches, heads, tiles), together);
    const std::vector<int32_t> found = out.to_host().value_or_throw();
    int32_t next = 0;
    auto expect_next = [&](int head, int tile) {
      EXPECT_EQ(found[static_cast<size_t>(head * tiles + tile)], next++)
          << together << " together, head " << head << " tile " << tile;
    };
    const int first = std::max(batches * heads - together, 0);
    for (int head = 0; head < first; ++head)
      for (int tile = 0; tile < tiles; ++tile) expect_next(head, tile);
    for (int tile = 0; tile < tiles; ++tile)
      for (int head = first; head < batches * heads; ++head) expect_next(head, tile);
  }
}

TEST(AttentionBlocks, S4_4_CausalMasksOneBlockPerRowOfSquareBlocksAndSkipsHalf) {
  const int64_t s = 4096;
  const Band<int64_t> causal{0, 0, 0, false, true};
  int64_t visited = 0;
  for (int64_t m0 = 0; m0 < s; m0 += 128) {
    const auto r = visible_blocks<int64_t>(causal, m0, 128, s, s, 128);
    EXPECT_EQ(r.end - r.whole_end, 1);
    EXPECT_EQ(r.whole_begin, r.begin);
    visited += r.end - r.begin;
  }
  EXPECT_EQ(visited, 32 * 33 / 2);
}

/// The loops themselves, counted while they run: every block once, masked ones where the host says so.
TEST(AttentionBlocks, S4_4_IterationsCountedOnTheDevice) {
  struct Cfg {
    bool split = true;
    int BM = 64, BN = 32;
  };
  auto k = kernel("count_blocks", [](const Cfg& c, I32 sq, I32 sk, I32 left, I32 right, Tensor<int32_t, 3> counts) {
    const Band<Tile> band{sk - sq, left, right, true, true};
    const Tile m0 = program_id(0) * c.BM;
    for_each_block(visible_blocks(band, m0, c.BM, Tile(sq), Tile(sk), c.BN), true, true, c.split, {},
                   [&](const Tile& block, bool masked) {
                     const Tile mask(masked ? 1 : 0);
                     counts.store({program_id(0), block, mask}, counts.load({program_id(0), block, mask}) + 1);
                   });
  });
  const int sq = 300, sk = 333;
  for (int left : {0, 40, 100})
    for (int right : {0, 70}) {
      auto counts = Buffer<int32_t>::allocate(host(), 5 * 11 * 2).value_or_throw();
      Stream& stream = host()->default_stream();
      counts.fill(stream, 0).value_or_throw();
      k.try_launch(stream, {}, Grid{5}, sq, sk, left, right, counts.view(5, 11, 2)).value_or_throw();
      stream.synchronize().value_or_throw();
      const std::vector<int32_t> found = counts.to_host().value_or_throw();
      for (int64_t m = 0; m < 5; ++m) {
        const auto r = visible_blocks<int64_t>({int64_t{sk - sq}, left, right, true, true}, m * 64, 64, sq, sk, 32);
        for (int64_t n = 0; n < 11; ++n) {
          const bool whole = n >= r.whole_begin && n < r.whole_end, visited = n >= r.begin && n < r.end;
          EXPECT_EQ(found[(m * 11 + n) * 2], whole ? 1 : 0) << m << " " << n;
          EXPECT_EQ(found[(m * 11 + n) * 2 + 1], visited && !whole ? 1 : 0) << m << " " << n;
        }
      }
    }
}

}  // namespace
}  // namespace tile::kernels
