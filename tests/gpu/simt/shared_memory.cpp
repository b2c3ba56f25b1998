// shared_memory.cpp - the books of shared_memory.h.
#include "tests/gpu/simt/shared_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace tile::testing {

SharedMemory::SharedMemory(char* window, uint32_t bytes, std::vector<BufferInfo> buffers, int threads)
    : window_(window),
      bytes_(bytes),
      buffers_(std::move(buffers)),
      writer_(kWindowBytes),
      unfenced_(static_cast<size_t>(threads)),
      reader_(kWindowBytes),
      unfencedReads_(static_cast<size_t>(threads)),
      published_(kWindowBytes),
      fencedAt_(static_cast<size_t>(threads)),
      copying_(kWindowBytes),
      reading_(kWindowBytes / kGranule),
      writing_(kWindowBytes / kGranule),
      operation_(kWindowBytes / kGranule) {}

void SharedMemory::clear() {
  std::memset(window_, kGarbage, kWindowBytes);  // NaN-ish garbage
  std::fill(writer_.begin(), writer_.end(), 0);
  std::fill(reader_.begin(), reader_.end(), 0);
  std::fill(published_.begin(), published_.end(), 0);
  std::fill(fencedAt_.begin(), fencedAt_.end(), 0);
  publications_ = 0;
  std::fill(copying_.begin(), copying_.end(), 0);
  std::fill(reading_.begin(), reading_.end(), 0);
  std::fill(writing_.begin(), writing_.end(), 0);
  for (auto* lists : {&unfenced_, &unfencedReads_})
    for (auto& list : *lists) list.clear();
  operations_.clear();
}

std::string SharedMemory::inFlight(uint32_t granule) const {
  return operations_[operation_[granule]] + (writing_[granule] ? " still writes it" : " still reads it");
}
uint32_t SharedMemory::note(const std::string& what) {
  if (operations_.empty() || operations_.back() != what) operations_.push_back(what);
  return static_cast<uint32_t>(operations_.size() - 1);
}

uint32_t SharedMemory::address(uint64_t pointer, uint32_t bytes) const {
  uint64_t at = pointer - reinterpret_cast<uint64_t>(window_);
  if (at < kSharedStart || at + bytes > uint64_t{kSharedStart} + bytes_)
    throw std::runtime_error(fmt::format("access to {} bytes at byte {} of shared memory, which has {}", bytes,
                                         static_cast<int64_t>(at) - kSharedStart, bytes_));
  return static_cast<uint32_t>(at);
}

namespace {
void append(std::vector<std::pair<uint32_t, uint32_t>>& list, uint32_t address, uint32_t bytes) {
  if (!list.empty() && list.back().second == address)
    list.back().second += bytes;
  else
    list.emplace_back(address, address + bytes);
}
}  // namespace

void SharedMemory::threadReads(int thread, uint32_t address, uint32_t bytes) {
  for (uint32_t g = address / kGranule; g <= (address + bytes - 1) / kGranule; ++g)
    if (writing_[g])
      throw std::runtime_error(fmt::format("thread {} reads {} while {}", thread, describe(address), inFlight(g)));
  checkCopied(address, bytes, fmt::format("thread {}", thread));
  std::fill_n(reader_.begin() + address, bytes, static_cast<uint16_t>(thread + 1));
  append(unfencedReads_[static_cast<size_t>(thread)], address, bytes);
}

void SharedMemory::loadsHaveLanded(int thread) {
  for (auto [first, end] : unfencedReads_[static_cast<size_t>(thread)])
    for (uint32_t i = first; i < end; ++i)
      if (reader_[i] == thread + 1) reader_[i] = 0;
  unfencedReads_[static_cast<size_t>(thread)].clear();
}

void SharedMemory::threadWrites(int thread, uint32_t address, uint32_t bytes) {
  for (uint32_t g = address / kGranule; g <= (address + bytes - 1) / kGranule; ++g)
    if (reading_[g] || writing_[g])
      throw std::runtime_error(fmt::format("thread {} writes {} while {}", thread, describe(address), inFlight(g)));
  checkCopied(address, bytes, fmt::format("thread {}", thread));
  for (uint32_t i = address; i < address + bytes; ++i)
    writer_[i] = static_cast<uint16_t>(thread + 1), published_[i] = 0;
  append(unfenced_[static_cast<size_t>(thread)], address, bytes);
}

void SharedMemory::fence(int thread) {
  for (auto [first, end] : unfenced_[static_cast<size_t>(thread)])
    for (uint32_t i = first; i < end; ++i)
      if (writer_[i] == thread + 1) writer_[i] = 0;
  unfenced_[static_cast<size_t>(thread)].clear();
  loadsHaveLanded(thread);
  fencedAt_[static_cast<size_t>(thread)] = publications_;
}

void SharedMemory::publish(int thread) {
  auto& list = unfenced_[static_cast<size_t>(thread)];
  if (list.empty()) return;
  ++publications_;
  for (auto [first, end] : list)
    for (uint32_t i = first; i < end; ++i)
      if (writer_[i] == thread + 1) published_[i] = publications_;
  list.clear();
}

void SharedMemory::checkFenced(int group, uint32_t address, uint32_t bytes, const std::string& what) const {
  const size_t first = static_cast<size_t>(group) * 128, end = std::min(first + 128, fencedAt_.size());
  uint32_t fenced = publications_;  // by all threads of the group
  for (size_t thread = first; thread < end; ++thread) fenced = std::min(fenced, fencedAt_[thread]);
  for (uint32_t i = address; i < address + bytes; ++i)
    if (writer_[i] && (!published_[i] || published_[i] > fenced))
      throw std::runtime_error(fmt::format("{} uses {}, which thread {} wrote without fence.proxy.async", what,
                                           describe(i), writer_[i] - 1));
}

void SharedMemory::checkCopied(uint32_t address, uint32_t bytes, const std::string& what) const {
  for (uint32_t i = address; i < address + bytes; ++i)
    if (copying_[i])
      throw std::runtime_error(
          fmt::format("{} uses {}, which thread {} still copies to", what, describe(i), copying_[i] - 1));
}

void SharedMemory::beginCopy(int thread, uint32_t address, uint32_t bytes) {
  for (uint32_t g = address / kGranule; g <= (address + bytes - 1) / kGranule; ++g)
    if (reading_[g] || writing_[g])
      throw std::runtime_error(fmt::format("thread {} copies to {} while {}", thread, describe(address), inFlight(g)));
  checkCopied(address, bytes, fmt::format("a copy of thread {}", thread));
  for (uint32_t i = address; i < address + bytes; ++i) copying_[i] = static_cast<uint16_t>(thread + 1);
  std::memset(at(address), kGarbage, bytes);  // whoever reads early gets garbage
}
void SharedMemory::endCopy(uint32_t address, uint32_t bytes) {
  // Plain stores pass these books by; what they left where a copy lands shows here.
  for (uint32_t i = address; i < address + bytes; ++i)
    if (*at(i) != kGarbage)
      throw std::runtime_error(
          fmt::format("somebody wrote {}, which thread {} still copied to", describe(i), copying_[i] - 1));
  std::fill_n(copying_.begin() + address, bytes, uint16_t{0});
}

void SharedMemory::beginRead(int group, uint32_t address, uint32_t bytes, const std::string& what) {
  checkCopied(address, bytes, what);
  checkFenced(group, address, bytes, what);
  const uint32_t id = note(what);
  for (uint32_t g = address / kGranule; g <= (address + bytes - 1) / kGranule; ++g) {
    if (writing_[g])
      throw std::runtime_error(fmt::format("{} reads {} while {}", what, describe(g * kGranule), inFlight(g)));
    ++reading_[g];
    operation_[g] = id;
  }
}
void SharedMemory::endRead(uint32_t address, uint32_t bytes) {
  for (uint32_t g = address / kGranule; g <= (address + bytes - 1) / kGranule; ++g) --reading_[g];
}

void SharedMemory::beginWrite(int group, uint32_t address, uint32_t bytes, const std::string& what) {
  checkCopied(address, bytes, what);
  checkFenced(group, address, bytes, what);
  const uint32_t id = note(what);
  for (uint32_t g = address / kGranule; g <= (address + bytes - 1) / kGranule; ++g) {
    if (reading_[g] || writing_[g])
      throw std::runtime_error(fmt::format("{} overwrites {} while {}", what, describe(g * kGranule), inFlight(g)));
    ++writing_[g];
    operation_[g] = id;
  }
  for (uint32_t i = address; i < address + bytes; ++i)
    if (reader_[i])
      throw std::runtime_error(fmt::format("{} overwrites {}, which thread {} read without fence.proxy.async", what,
                                           describe(i), reader_[i] - 1));
  std::memset(at(address), kGarbage, bytes);  // whoever reads early gets garbage
}
void SharedMemory::endWrite(uint32_t address, uint32_t bytes) {
  for (uint32_t g = address / kGranule; g <= (address + bytes - 1) / kGranule; ++g) --writing_[g];
}

std::string SharedMemory::describe(uint32_t address) const {
  int64_t offset = static_cast<int64_t>(address) - kSharedStart;
  for (const BufferInfo& b : buffers_)
    if (offset >= b.offset && offset < int64_t{b.offset} + b.bytes)
      return fmt::format("byte {} of {} ({}:{})", offset - b.offset, b.what, b.file, b.line);
  return fmt::format("byte {} of shared memory", offset);
}

}  // namespace tile::testing
