// attention_block_mask.h - the random mask of blocks of block-sparse attention's problems, and lists made of it on the
// device. Shared by forward and backward.
#pragma once
#include "kernels/attention_lists.h"
#include "kernels/catalog/attention_problem.h"

namespace tile::kernels {

/// Which blocks of queries and keys may meet.
class BlockMask {
 public:
  int64_t block, rows, columns, batches, heads;

  BlockMask(const Fields& f, const AttentionProblemData& data)
      : block(f.get("block", 128)),
        rows(cdiv(data.sq, block)),
        columns(cdiv(data.sk, block)),
        batches(f["per_head"] ? data.b : 1),
        heads(f["per_head"] ? data.hq : 1) {
    reference::HostTensor draw(DType::f32, {batches, heads, rows, columns});
    draw.fill_uniform(5, 0, 100);
    const auto density = static_cast<double>(f.get("density", 100));
    reference::for_each_index(draw.shape(), [&](std::span<const int64_t> at) {
      present_.push_back(draw.at(at) < density && !(f["hole"] && at[2] == 1));
    });
  }
  bool operator()(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const int64_t row = ((batches > 1 ? b : 0) * heads + (heads > 1 ? h : 0)) * rows + i / block;
    return present_[static_cast<size_t>(row * columns + j / block)];
  }
  reference::HostTensor tensor() const {
    reference::HostTensor t(DType::i32, {batches, heads, rows, columns});
    size_t next = 0;
    reference::for_each_index(t.shape(), [&](std::span<const int64_t> at) { t.set(at, present_[next++]); });
    return t;
  }
  /// Visible pairs of the problem over all heads; of heads that share a mask one is counted.
  double pairs(const AttentionProblemData& data) const {
    int64_t visible = 0;
    for (int64_t b = 0; b < batches; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < data.sq; ++i)
          for (int64_t j0 = 0; j0 < data.sk; j0 += block)
            if ((*this)(b, h, i, j0)) visible += visible_in_block(data, i, j0);
    return static_cast<double>(visible) * static_cast<double>(data.b * data.hq) / static_cast<double>(batches * heads);
  }

 private:
  int64_t visible_in_block(const AttentionProblemData& data, int64_t i, int64_t j0) const {
    const reference::AttentionSpec& s = data.spec;
    const int64_t aligned = s.top_left ? i : i + data.sk - data.sq, right = s.causal ? 0 : s.right;
    const int64_t begin = s.left < 0 ? j0 : std::max(j0, aligned - s.left);
    const int64_t end = std::min(j0 + block, data.sk);
    return std::max<int64_t>(0, (right < 0 ? end : std::min(end, aligned + right + 1)) - begin);
  }

  std::vector<char> present_;  ///< [batches, heads, rows, columns]
};

/// The lists one program reads: for blocks of queries or (`transposed`) of keys, blocks as large as its tiles.
class MaskLists {
 public:
  Status create(std::shared_ptr<Device> device, const AttentionProblemData& data, const BlockMask& mask,
                const AttentionConfig& config, bool transposed) {
    const reference::Dims matrix = {mask.batches, mask.heads, cdiv<int64_t>(data.sq, config.BM),
                                    cdiv<int64_t>(data.sk, config.BN)};
    const reference::Dims lists = {matrix[0], matrix[1], matrix[transposed ? 3 : 2], matrix[transposed ? 2 : 3]};
    Steps s;
    s(mask_.create(device, mask.tensor()))(kinds_.create(device, reference::HostTensor(DType::i32, matrix)));
    for (DeviceTensor* t : {&partial_blocks_, &full_blocks_})
      s(t->create(device, reference::HostTensor(DType::i32, lists)));
    for (DeviceTensor* t : {&partial_counts_, &full_counts_})
      s(t->create(device, reference::HostTensor(DType::i32, {lists[0], lists[1], lists[2]})));
    if (!s.ok()) return s.error();
    AttentionListsConfig c = attention_lists_config(config);
    c.MASK_BM = c.MASK_BN = static_cast<int>(mask.block);
    Stream& stream = device->default_stream();
    s(attention_block_kinds(attention_block_kinds_kernel(), stream, kinds_.view<int32_t, 4>(),
                            mask_.view<const int32_t, 4>(), data.sq, data.sk, static_cast<int>(data.spec.left),
                            static_cast<int>(data.spec.right), c));
    const TensorView<const int32_t, 4> kinds = kinds_.view<const int32_t, 4>();
    if (s.ok()) s(attention_lists(stream, transposed ? kinds.transposed() : kinds, views(), c));
    return s.status();
  }
  AttentionLists<int32_t> views() const {
    return {partial_counts_.view<int32_t, 3>(), partial_blocks_.view<int32_t, 4>(), full_counts_.view<int32_t, 3>(),
            full_blocks_.view<int32_t, 4>()};
  }

 private:
  DeviceTensor mask_, kinds_, partial_counts_, partial_blocks_, full_counts_, full_blocks_;
};

/// The names of the mask's fields, for a row's list.
inline std::vector<std::string> block_mask_field_names() {
  return {"density: percent of blocks present (100)", "block: size of those blocks (128)",
          "per_head: every head has its own blocks", "hole: the second row of blocks is empty"};
}

}  // namespace tile::kernels
