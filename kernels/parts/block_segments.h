// block_segments.h - how the block rows of a sparse matrix are handed to programs when their lengths differ: longest
// first, and very long ones in several parts whose sums are added in a fixed order. Made on the host, once per pattern.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "../../runtime/buffer.h"
#include "../../runtime/tensor.h"

namespace tile::kernels {

class BlockSegments {
 public:
  /// `offsets`: where each block row's entries begin, and the end of the last. Rows longer than `longest` entries are cut
  /// into equal parts of at most that many. `columns`: of the dense operand (sizes the memory for the parts).
  static Result<BlockSegments> create(const std::shared_ptr<Device>& device, std::span<const int32_t> offsets,
                                      int64_t longest, int rows_per_block, int64_t columns) {
    struct Part {
      int32_t row, begin, end, slot;
    };
    std::vector<Part> parts;
    std::vector<int32_t> split;
    int32_t slots = 0;
    longest = std::max<int64_t>(longest, 1);
    for (int32_t row = 0; row + 1 < static_cast<int32_t>(offsets.size()); ++row) {
      const int64_t begin = offsets[row], count = offsets[row + 1] - begin;
      const int64_t pieces = std::max<int64_t>(1, (count + longest - 1) / longest);
      if (pieces > 1) split.insert(split.end(), {row, slots, static_cast<int32_t>(pieces)});
      for (int64_t i = 0; i < pieces; ++i)
        parts.push_back({row, static_cast<int32_t>(begin + count * i / pieces),
                         static_cast<int32_t>(begin + count * (i + 1) / pieces), pieces > 1 ? slots++ : -1});
    }
    // The longest start first; the short ones fill the end of the launch.
    std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.end - a.begin > b.end - b.begin; });
    std::vector<int32_t> flat;
    for (const Part& p : parts) flat.insert(flat.end(), {p.row, p.begin, p.end, p.slot});

    BlockSegments out;
    out.segment_count_ = static_cast<int64_t>(parts.size()), out.split_count_ = static_cast<int64_t>(split.size() / 3);
    out.slots_ = slots, out.partial_bytes_ = size_t{4} * slots * rows_per_block * columns;
    auto upload = [&](DeviceMemory& memory, const std::vector<int32_t>& data) -> Status {
      Result<DeviceMemory> made = DeviceMemory::allocate(device, std::max<size_t>(16, 4 * data.size()));
      if (!made) return made.error();
      memory = std::move(*made);
      return data.empty() ? Status(Ok{}) : memory.copy_from(data.data(), 4 * data.size());
    };
    if (Status s = upload(out.segments_, flat); !s) return s.error();
    if (Status s = upload(out.split_, split); !s) return s.error();
    Result<DeviceMemory> partial = DeviceMemory::allocate(device, std::max<size_t>(16, out.partial_bytes_));
    if (!partial) return partial.error();
    out.partial_ = std::move(*partial);
    return out;
  }

  TensorView<const int32_t, 2> segments() const {
    return {static_cast<const int32_t*>(segments_.data()), {segment_count_, 4}};
  }
  TensorView<const int32_t, 2> split_rows() const {
    return {static_cast<const int32_t*>(split_.data()), {split_count_, 3}};
  }
  /// [slots, rows, columns] f32; a user error when it was made for a smaller product.
  Result<TensorView<float, 3>> partial(int rows, int64_t columns) const {
    if (static_cast<size_t>(slots_ * rows * columns) * 4 > partial_bytes_)
      return Error{ErrorKind::user,
                   "the segments were made for products of at most " + std::to_string(partial_bytes_) +
                       " bytes of partial sums, found " + std::to_string(slots_ * rows * columns * 4),
                   {}};
    return TensorView<float, 3>(static_cast<float*>(partial_.data()), {slots_, rows, columns});
  }

 private:
  DeviceMemory segments_, split_, partial_;
  int64_t segment_count_ = 0, split_count_ = 0, slots_ = 0;
  size_t partial_bytes_ = 0;
};

}  // namespace tile::kernels
