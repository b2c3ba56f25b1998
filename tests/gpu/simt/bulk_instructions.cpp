// bulk_instructions.cpp - bulk tensor copies (TMA): boxes between global and shared memory, later, by somebody else.
#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "runtime/made_views.h"
#include "tests/gpu/simt/barriers.h"
#include "tests/gpu/simt/machine.h"
#include "tests/gpu/simt/numbers.h"
#include "tests/gpu/simt/tensor_map.h"

namespace tile::testing {

void SimulatedTensorMap::check() const {
  auto refuse = [](const std::string& why) { fail("cuTensorMapEncodeTiled refuses: " + why); };
  if (rank < 1 || rank > 5) refuse(fmt::format("rank {}", rank));
  if (address % 16) refuse("the address is not a multiple of 16");
  for (size_t d = 0; d < rank; ++d) {
    if (box[d] == 0 || box[d] > 256) refuse(fmt::format("box dim {} is {}", d, box[d]));
    if (d && (strides[d] % 16 || strides[d] >= uint64_t{1} << 40))
      refuse(fmt::format("stride {} is {} bytes", d, strides[d]));
  }
  uint32_t inner = box[0] * static_cast<uint32_t>(elementBytes());
  if (inner % 16) refuse(fmt::format("{} bytes in the inner box dim", inner));
  if (swizzle && inner > swizzle) refuse(fmt::format("{} bytes in the inner box dim, swizzle {}", inner, swizzle));
}

SimulatedTensorMap encodeTensorMap(const TensorMapInfo& info, const KernelBinary& kernel, const uint64_t* slots) {
  size_t first = 0;
  for (uint32_t p = 0; p < info.param; ++p) first += kernel.params[p].slots();
  std::vector<uint64_t> made(info.made.size());
  if (!made.empty()) made_view(info, slot_bits(kernel), slots, slots[first] == 0, made.data());
  slots = made.empty() ? slots + first : made.data();
  const size_t rank = made.empty() ? kernel.params.at(info.param).rank : info.rank;
  SimulatedTensorMap map;
  map.dtype = info.dtype;
  map.rank = info.rank;
  map.swizzle = info.swizzle;
  map.tf32 = info.tf32;
  map.address = slots[0];
  uint64_t bytes = size_of(info.dtype);
  bool empty = false;
  for (size_t d = 0; d < rank; ++d) empty |= slots[1 + d] == 0;
  for (size_t d = 0; d < info.rank; ++d) {
    const size_t dim = static_cast<size_t>(info.dims[d]);
    map.dims[d] = static_cast<uint32_t>(slots[1 + dim]);
    map.strides[d] = d ? slots[1 + rank + dim] * bytes : bytes;
    if (d && (empty || map.dims[d] == 1)) map.strides[d] = 16;  // what the launcher says of dims with one element
    map.box[d] = info.box[d];
  }
  if (info.remainder && map.dims[1] % map.box[1] != 0) map.box[1] = static_cast<uint16_t>(map.dims[1] % map.box[1]);
  if (empty) map.address = 0, map.dims = {};  // every element is outside: the launcher gives a map with the same effect
  map.check();
  return map;
}

namespace {

const SimulatedTensorMap& mapAt(uint64_t pointer) {
  const auto* map = reinterpret_cast<const SimulatedTensorMap*>(pointer);
  if (map->magic == SimulatedTensorMap::kUnfenced) fail("a bulk copy's tensor map was written, and not fenced since");
  if (pointer % 64 || map->magic != SimulatedTensorMap::kMagic) fail("a bulk copy's tensor map is none");
  return *map;
}

/// tensormap.replace of one field; `dim` of those that have one. The values of .elemtype are those of the PTX ISA.
void replaceField(const Call& c) {
  auto& map = *reinterpret_cast<SimulatedTensorMap*>(c.args[0]);
  map.magic = SimulatedTensorMap::kUnfenced;
  auto field = [&](const char* name) { return c.has(name); };
  const uint64_t dim = c.args[1], value = c.args[2];
  if (field(".global.address")) {
    map.address = c.args[1];
  } else if (field(".rank")) {
    map.rank = static_cast<uint8_t>(c.args[1] + 1);
  } else if (field(".elemtype")) {
    static constexpr DType kTypes[] = {DType::i8,  DType::i16, DType::i32, DType::i32, DType::i64,  DType::i64,
                                       DType::f16, DType::f32, DType::f32, DType::f64, DType::bf16, DType::f32};
    map.dtype = kTypes[c.args[1]];
    map.tf32 = c.args[1] == 11;
    map.strides[0] = size_of(map.dtype);
  } else if (field(".swizzle.mode")) {
    map.swizzle = static_cast<uint8_t>(c.args[1] ? 16 << c.args[1] : 0);
  } else if (field(".box.dim")) {
    map.box.at(dim) = static_cast<uint16_t>(value);
  } else if (field(".global.dim")) {
    map.dims.at(dim) = static_cast<uint32_t>(value);
  } else if (field(".global.stride")) {
    map.strides.at(dim + 1) = value;
  } else if (field(".element.stride") ? value != 1 : c.args[1] != 0) {
    fail("simulated machine: unknown value in " + c.inst.name);
  }
}

void fenceMap(uint64_t pointer) {
  if (pointer % 128) fail("a tensor map in global memory is not aligned to 128 bytes");
  // One that lies beside others that were written may be made known again as it is.
  if (const auto& reads = machine->readsOfMaps[pointer];
      reads.copies && std::memcmp(reads.bytes.data(), reinterpret_cast<const void*>(pointer), reads.bytes.size()) != 0)
    fail("a tensor map was written while a bulk copy reads it");
  auto& map = *reinterpret_cast<SimulatedTensorMap*>(pointer);
  map.check();
  for (size_t d = 0; d < map.rank; ++d)
    if (map.dims[d] == 0) fail("a tensor map has a dim without elements");
  map.magic = SimulatedTensorMap::kMagic;
}

/// The hardware's swizzle permutes 16-byte chunks by address bits.
uint32_t swizzled(uint32_t address, int bytes) {
  uint32_t mask = bytes == 128 ? 7 : bytes == 64 ? 3 : bytes == 32 ? 1 : 0;
  return address ^ (address >> 7 & mask) << 4;
}

/// Calls move(shared address, global address or null when outside) for each element of the box.
template <class Move>
void forBox(const SimulatedTensorMap& map, const std::array<int32_t, 5>& at, uint32_t shared, Move move) {
  std::array<uint32_t, 5> i{};
  uint32_t row = 0;
  for (uint32_t done = 0; done < map.boxBytes(); done += static_cast<uint32_t>(map.elementBytes())) {
    uint64_t address = map.address;
    bool inside = true;
    for (size_t d = 0; d < map.rank; ++d) {
      int64_t index = int64_t{at[d]} + i[d];
      inside &= index >= 0 && index < map.dims[d];
      address += static_cast<uint64_t>(index) * map.strides[d];
    }
    const uint32_t offset = row * map.rowPitch() + i[0] * static_cast<uint32_t>(map.elementBytes());
    move(swizzled(shared + offset, map.swizzle), inside ? reinterpret_cast<char*>(address) : nullptr);
    for (size_t d = 0; d < map.rank && ++i[d] == map.box[d]; ++d) i[d] = 0;
    row += i[0] == 0;
  }
}

uint32_t boxAddress(const SimulatedTensorMap& map, uint64_t pointer) {
  uint32_t address = program().shared.address(pointer, map.sharedBytes());
  if (address % 128)
    fail("a bulk copy's shared memory is not aligned to 128 bytes: " + program().shared.describe(address));
  return address;
}
std::string boxText(const char* verb, const std::array<int32_t, 5>& at, int rank) {
  return fmt::format("bulk {} of box [{}] of thread {}", verb, fmt::join(at.begin(), at.begin() + rank, ", "),
                     self().thread);
}

/// The box into one program, at a time of its own.
void startLoad(Program* p, const SimulatedTensorMap& map, const std::array<int32_t, 5>& at, uint32_t to,
               uint32_t signal, const std::string& what) {
  checkAlive(*p, "a bulk copy into");
  barrierAt(*p, signal);
  p->shared.beginWrite(self().thread / 128, to, map.sharedBytes(), what);
  const auto address = reinterpret_cast<uint64_t>(&map);
  Machine::MapReads& reads = machine->readsOfMaps[address];
  if (!reads.copies++) std::memcpy(reads.bytes.data(), &map, reads.bytes.size());
  machine->later(machine->nextQueue++, what, [=, &map] {
    --machine->readsOfMaps[address].copies;
    forBox(map, at, to, [&](uint32_t shared, const char* global) {
      size_t bytes = static_cast<size_t>(map.elementBytes());
      global ? std::memcpy(p->shared.at(shared), global, bytes) : std::memset(p->shared.at(shared), 0, bytes);
      if (!map.tf32) return;
      uint32_t bits = 0;
      std::memcpy(&bits, p->shared.at(shared), sizeof bits);
      bits = roundedToTf32(bits);
      std::memcpy(p->shared.at(shared), &bits, sizeof bits);
    });
    p->shared.endWrite(to, map.sharedBytes());
    bytesArrived(*p, signal, map.boxBytes());
  });
}

/// `programs`: bits of the programs of the cluster that get the box; 0: this one.
void loadBox(uint64_t target, uint64_t barrier, uint64_t mapPointer, const std::array<int32_t, 5>& at, int rank,
             uint64_t programs = 0) {
  const SimulatedTensorMap& map = mapAt(mapPointer);
  if (map.rank != rank) fail(fmt::format("a {}-dim bulk copy with a tensor map of {} dims", rank, map.rank));
  uint32_t to = boxAddress(map, target), signal = program().shared.address(barrier, 8);
  std::string what = boxText("load", at, rank);
  if (programs) {
    const std::vector<Program*>* all = program().cluster ? &program().cluster->programs : nullptr;
    for (size_t i = 0; i < 16; ++i) {
      if (!(programs >> i & 1)) continue;
      if (!all || i >= all->size()) fail(fmt::format("{} to program {} of the cluster, which does not exist", what, i));
      startLoad((*all)[i], map, at, to, signal, what);
    }
  } else {
    startLoad(&program(), map, at, to, signal, what);
  }
}

/// Bytes as they are, from global memory into this program.
void loadBytes(uint64_t target, uint64_t barrier, uint64_t source, uint32_t bytes) {
  if (target % 16 || source % 16 || bytes % 16 || !bytes)
    fail(fmt::format("a bulk copy of {} bytes: not in units of 16", bytes));
  Program* p = &program();
  const uint32_t to = p->shared.address(target, bytes), signal = p->shared.address(barrier, 8);
  const std::string what = fmt::format("bulk load of {} bytes of thread {}", bytes, self().thread);
  barrierAt(*p, signal);
  p->shared.beginWrite(self().thread / 128, to, bytes, what);
  machine->later(machine->nextQueue++, what, [=] {
    std::memcpy(p->shared.at(to), reinterpret_cast<const char*>(source), bytes);
    p->shared.endWrite(to, bytes);
    bytesArrived(*p, signal, bytes);
  });
}

void addTo(char* to, const char* from, DType dtype) {
  auto add = [&](auto zero) {
    auto a = zero, b = zero;
    std::memcpy(&a, to, sizeof a);
    std::memcpy(&b, from, sizeof b);
    a = static_cast<decltype(zero)>(a + b);
    std::memcpy(to, &a, sizeof a);
  };
  if (dtype == DType::f32) return add(0.0f);
  if (dtype == DType::i32) return add(int32_t{0});
  if (dtype == DType::f64) return add(0.0);
  if (dtype == DType::f16 || dtype == DType::bf16) {
    uint16_t a = 0, b = 0;
    std::memcpy(&a, to, 2);
    std::memcpy(&b, from, 2);
    auto value = [&](uint16_t bits) { return dtype == DType::f16 ? halfToFloat(bits) : bf16ToFloat(bits); };
    float sum = value(a) + value(b);
    a = dtype == DType::f16 ? half(sum).bits : bfloat16(sum).bits;
    return void(std::memcpy(to, &a, 2));
  }
  fail("bulk reduction of an element type that has none");
}

void storeBox(uint64_t source, uint64_t mapPointer, const std::array<int32_t, 5>& at, int rank, bool add) {
  const SimulatedTensorMap& map = mapAt(mapPointer);
  if (map.rank != rank) fail(fmt::format("a {}-dim bulk copy with a tensor map of {} dims", rank, map.rank));
  uint32_t from = boxAddress(map, source);
  Program* p = &program();
  std::string what = boxText(add ? "reduction" : "store", at, rank);
  p->shared.beginRead(self().thread / 128, from, map.sharedBytes(), what);
  if (!self().openBulk) self().openBulk = std::make_shared<BulkGroup>();
  std::shared_ptr<BulkGroup> group = self().openBulk;
  ++group->reading, ++group->writing;
  group->sources.emplace_back(from, map.sharedBytes());
  uint64_t queue = machine->nextQueue++;
  auto content = std::make_shared<std::vector<char>>();
  machine->later(queue, what, [=, &map] {
    forBox(map, at, from, [&](uint32_t shared, char*) {
      content->insert(content->end(), p->shared.at(shared), p->shared.at(shared) + map.elementBytes());
    });
    --group->reading;
  });
  machine->later(queue, what, [=, &map] {
    const char* next = content->data();
    forBox(map, at, from, [&](uint32_t, char* global) {
      if (global && add) addTo(global, next, map.dtype);
      if (global && !add) std::memcpy(global, next, static_cast<size_t>(map.elementBytes()));
      next += map.elementBytes();
    });
    --group->writing;
  });
}

void commitBulk() {
  Fiber& fiber = self();
  fiber.bulkGroups.push_back(fiber.openBulk ? fiber.openBulk : std::make_shared<BulkGroup>());
  fiber.openBulk = nullptr;
}

void waitBulk(uint64_t pending, bool onlyRead) {
  Fiber& fiber = self();
  if (fiber.bulkGroups.size() <= pending) return;
  size_t count = fiber.bulkGroups.size() - pending;
  for (size_t i = 0; i < count; ++i) {
    BulkGroup& group = *fiber.bulkGroups[i];
    waitUntil([&] { return group.reading == 0 && (onlyRead || group.writing == 0); },
              [&] { return std::string("cp.async.bulk.wait_group") + (onlyRead ? ".read" : ""); });
    for (auto [address, bytes] : group.sources) fiber.program->shared.endRead(address, bytes);
    group.sources.clear();
  }
  while (!fiber.bulkGroups.empty() && fiber.bulkGroups.front()->writing == 0 &&
         fiber.bulkGroups.front()->sources.empty())
    fiber.bulkGroups.pop_front();
}

/// The N of "...tile.Nd".
int rankOf(const std::string& name) {
  size_t at = name.find(".tile.");
  if (at == std::string::npos) fail("simulated machine: unknown instruction " + name);
  return name[at + 6] - '0';
}

}  // namespace

bool bulkInstruction(const Call& c) {
  auto coordinates = [&](int first, int rank) {
    std::array<int32_t, 5> at{};
    for (int d = 0; d < rank; ++d) at[static_cast<size_t>(d)] = static_cast<int32_t>(c.args[first + d]);
    return at;
  };
  if (c.is("cp.async.bulk.tensor.g2s.")) {
    int rank = rankOf(c.inst.name);
    // Behind the coordinates: the mask of programs, a cache policy, and whether each counts.
    const auto behind = static_cast<size_t>(3 + rank);
    loadBox(c.args[0], c.args[1], c.args[2], coordinates(3, rank), rank, c.args[behind + 2] & 1 ? c.args[behind] : 0);
  } else if (c.is("cp.async.bulk.tensor.s2g.") || c.is("cp.async.bulk.tensor.reduce.add.")) {
    int rank = rankOf(c.inst.name);
    storeBox(c.args[0], c.args[1], coordinates(2, rank), rank, c.has(".reduce."));
  } else if (c.is("cp.async.bulk.global.to.shared.cluster")) {
    loadBytes(c.args[0], c.args[1], c.args[2], static_cast<uint32_t>(c.args[3]));
  } else if (c.is("cp.async.bulk.commit.group")) {
    commitBulk();
  } else if (c.is("cp.async.bulk.wait.group")) {
    waitBulk(c.args[0], c.has(".read"));
  } else if (c.is("tensormap.replace.")) {
    replaceField(c);
  } else if (c.is("fence.proxy.tensormap_generic.acquire")) {
    fenceMap(c.args[0]);
  } else {
    return c.is("prefetch.tensormap") || c.is("fence.proxy.tensormap_generic.release");
  }
  return true;
}

bool bulkStatement(const AsmStatement& s, AsmFrame& f) {
  // [map, {coordinates}]
  auto box = [&](const AsmOperand& o, int& rank) {
    std::array<int32_t, 5> at{};
    const std::vector<AsmOperand>& list = o.parts.at(1).parts;
    rank = static_cast<int>(list.size());
    for (size_t d = 0; d < list.size() && d < 5; ++d) at[d] = static_cast<int32_t>(f.get(list[d]));
    return at;
  };
  int rank = 0;
  if (s.is("cp.async.bulk.tensor.") && s.has(".mbarrier::complete_tx::bytes")) {
    std::array<int32_t, 5> at = box(s.operands[1], rank);
    loadBox(f.address(s.operands[0]), f.address(s.operands[2]), f.get(s.operands[1].parts[0]), at, rank);
  } else if (s.is("cp.async.bulk.tensor.") || s.is("cp.reduce.async.bulk.tensor.")) {
    std::array<int32_t, 5> at = box(s.operands[0], rank);
    storeBox(f.address(s.operands[1]), f.get(s.operands[0].parts[0]), at, rank, s.is("cp.reduce"));
  } else if (s.is("cp.async.bulk.commit_group")) {
    commitBulk();
  } else if (s.is("cp.async.bulk.wait_group")) {
    waitBulk(f.get(s.operands[0]), s.has(".read"));
  } else {
    return false;
  }
  return true;
}

}  // namespace tile::testing
