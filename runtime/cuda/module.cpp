// module.cpp - see module.h. Everything that can be refused is refused here, so that a launch has nothing left to check
// but its grid and arguments.
#include "runtime/cuda/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <set>

#include "runtime/launch_marks.h"

namespace tile::cu {
namespace {

constexpr uint32_t kSharedWithoutOptIn = 48 * 1024;
constexpr int kOverlapDriver = 12030;  ///< from here on overlapping launches can be captured into graphs, too

// "sm_90a" -> 90, exact. Exact targets run on that very architecture only, in any form.
struct TargetName {
  int sm = 0;
  bool exact = false;
};
TargetName parse_target(const std::string& target) {
  TargetName out;
  if (!target.starts_with("sm_")) return out;
  const char* end = target.data() + target.size();
  const char* rest = std::from_chars(target.data() + 3, end, out.sm).ptr;
  out.exact = rest != end;
  return out;
}

Status check_target(const KernelBinary& k, const Device& device) {
  const std::string where =
      fmt::format("{} is an {} (sm_{})", device.name(), device.properties().model, device.properties().sm);
  if (k.abi_version != kAbiVersion)
    return user_error(fmt::format("kernel '{}' has ABI version {}, this runtime has {}", display_name(k), k.abi_version,
                                  kAbiVersion));
  if (k.format == BinaryFormat::host_object)
    return user_error(fmt::format("kernel '{}' was compiled for the host, {}", display_name(k), where));
  const TargetName t = parse_target(k.target);
  if (t.sm == 0)
    return user_error(fmt::format("kernel '{}' has the unknown target '{}'; {}", display_name(k), k.target, where));
  const int sm = device.properties().sm;
  const bool runs = t.exact                         ? sm == t.sm
                    : k.format == BinaryFormat::ptx ? sm >= t.sm
                                                    : sm / 10 == t.sm / 10 && sm >= t.sm;
  if (!runs)
    return user_error(fmt::format("kernel '{}' was compiled for {} ({}), {}", display_name(k), k.target,
                                  k.format == BinaryFormat::ptx ? "PTX" : "cubin", where));
  return ok();
}

// One line per shared buffer, largest first, at the user's line that needs it.
std::vector<Diagnostic> buffer_table(const KernelBinary& k) {
  std::vector<BufferInfo> buffers = k.buffers;
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const BufferInfo& a, const BufferInfo& b) { return a.bytes > b.bytes; });
  std::vector<Diagnostic> table;
  for (const BufferInfo& b : buffers) {
    Diagnostic d;
    d.severity = Severity::note;
    d.message = fmt::format("{:>8} bytes at {:>6}: {}", b.bytes, b.offset, b.what);
    d.file = b.file;
    d.line = b.line;
    table.push_back(std::move(d));
  }
  return table;
}

Status check_shared(const KernelBinary& k, const Device& device, uint32_t static_bytes) {
  const uint64_t wanted = uint64_t{k.shared_bytes} + static_bytes;
  const uint32_t limit = device.properties().max_shared_bytes;
  if (wanted <= limit) return ok();
  return make_error(ErrorKind::compile,
                    fmt::format("kernel '{}' needs {} bytes of shared memory per program, {} ({}) has {}",
                                display_name(k), wanted, device.name(), device.properties().model, limit),
                    buffer_table(k));
}

Status check_threads(const KernelBinary& k, const Device& device) {
  const auto limit = static_cast<uint32_t>(device.properties().max_threads);
  if (k.threads >= 1 && k.threads <= limit) return ok();
  return compile_error(fmt::format("kernel '{}' runs {} threads per program, {} takes 1 to {}", display_name(k),
                                   k.threads, device.name(), limit));
}

// What the slots and hidden parameters take together, each slot as 8 bytes.
Status check_param_bytes(const KernelBinary& k) {
  size_t slots = 0;
  for (const ParamInfo& p : k.params) slots += p.slots();
  if (slots > kMaxSlots)
    return compile_error(
        fmt::format("kernel '{}' has {} argument slots, a launch takes {}", display_name(k), slots, kMaxSlots));
  size_t bytes = 8 * (slots + (k.uses_debug_ring ? 1 : 0) + (k.uses_tickets ? 1 : 0)) + (k.persistent ? 16 : 0);
  if (!k.tensor_maps.empty())
    bytes = (bytes + kTensorMapAlign - 1) / kTensorMapAlign * kTensorMapAlign + kTensorMapBytes * k.tensor_maps.size();
  if (bytes > kMaxParamBytes)
    return compile_error(
        fmt::format("kernel '{}' has {} bytes of parameters ({} argument slots, {} tensor maps), a launch "
                    "takes {}",
                    display_name(k), bytes, slots, k.tensor_maps.size(), kMaxParamBytes));
  return ok();
}

const char* intern(const std::string& text) {
  static std::mutex mutex;
  static auto* names = new std::set<std::string>;
  std::lock_guard lock(mutex);
  return names->insert(text).first->c_str();
}

std::string indented(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) out += "\n  " + text.substr(at, end - at);
    at = end + 1;
  }
  return out;
}

}  // namespace

Result<std::shared_ptr<Module>> CudaModule::load(std::shared_ptr<CudaDevice> device, const KernelBinary& binary) {
  if (Status s = check_target(binary, *device); !s) return s.error();
  if (Status s = check_threads(binary, *device); !s) return s.error();
  if (Status s = check_shared(binary, *device, binary.resources.static_shared_bytes); !s) return s.error();
  if (Status s = check_param_bytes(binary); !s) return s.error();
  if (Status s = check_hidden(binary); !s) return s.error();
  const Driver& d = device->driver();
  if (!binary.tensor_maps.empty() && d.cuTensorMapEncodeTiled == nullptr) {
    Error e =
        device_error(fmt::format("kernel '{}' uses bulk tensor copies, which the NVIDIA driver of {} does not know: "
                                 "CUDA 12.0 or newer is needed",
                                 display_name(binary), device->name()));
    e.needs_plain_copies = true;
    return e;
  }
  const Current current = device->current();
  std::string info(8192, '\0'), errors(8192, '\0');
  CUjit_option names[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
                          CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_LOG_VERBOSE};
  void* values[] = {info.data(), reinterpret_cast<void*>(info.size()), errors.data(),
                    reinterpret_cast<void*>(errors.size()), reinterpret_cast<void*>(uintptr_t{1})};
  CUmodule module = nullptr;
  // std::string is zero-terminated, which PTX text has to be.
  const CUresult loaded = d.cuModuleLoadDataEx(&module, binary.bytes.c_str(), std::size(names), names, values);
  info.resize(std::char_traits<char>::length(info.c_str()));
  errors.resize(std::char_traits<char>::length(errors.c_str()));
  if (loaded != CUDA_SUCCESS) {
    Error error = device->check(loaded, "cuModuleLoadDataEx").error();
    error.message = fmt::format("kernel '{}' ({} for {}) does not load: {}{}", display_name(binary),
                                binary.format == BinaryFormat::ptx ? "PTX" : "cubin", binary.target, error.message,
                                indented(errors));
    return error;
  }
  CUfunction function = nullptr;
  if (const CUresult r = d.cuModuleGetFunction(&function, module, binary.entry.c_str()); r != CUDA_SUCCESS) {
    d.cuModuleUnload(module);
    return internal_error(
        fmt::format("the code of kernel '{}' has no entry of that name: {}", display_name(binary), d.describe(r)));
  }
  auto out = std::make_shared<CudaModule>(std::move(device), binary, module, function);  // unloads from here on

  const auto has_mark = [&](const char* name) {
    CUdeviceptr mark = 0;
    size_t bytes = 0;
    return d.cuModuleGetGlobal(&mark, &bytes, module, name) == CUDA_SUCCESS;
  };
  out->waits_for_stream_ =
      d.cuLaunchKernelEx != nullptr && d.version >= kOverlapDriver && has_mark(kWaitsForStreamMark);
  out->is_short_ = out->waits_for_stream_ && has_mark(kShortMark);

  const auto attribute = [&](CUfunction_attribute which) {
    int value = 0;
    return d.cuFuncGetAttribute(&value, which, function) == CUDA_SUCCESS ? value : 0;
  };
  Resources& r = out->info_.resources;
  r.registers = attribute(CU_FUNC_ATTRIBUTE_NUM_REGS);
  r.static_shared_bytes = static_cast<uint32_t>(attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  r.stack_bytes = attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  if (r.log.empty()) r.log = info;
  const Device& dev = out->device();
  if (Status s = check_shared(binary, dev, r.static_shared_bytes); !s) return s.error();
  const int launchable = attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  if (launchable > 0 && binary.threads > static_cast<uint32_t>(launchable))
    return compile_error(fmt::format(
        "kernel '{}' runs {} threads per program of {} registers each ({} in all); {} can launch {} "
        "such threads (it has {} registers per multiprocessor)",
        display_name(binary), binary.threads, r.registers, binary.threads * static_cast<uint32_t>(r.registers),
        dev.name(), launchable, dev.properties().registers_per_multiprocessor));
  if (binary.shared_bytes + r.static_shared_bytes > kSharedWithoutOptIn) {
    if (Status s = out->cuda().check(d.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                          static_cast<int>(binary.shared_bytes)),
                                     "cuFuncSetAttribute(MAX_DYNAMIC_SHARED_SIZE_BYTES)");
        !s)
      return s.error();
    // All of the L1 as shared memory, so that as many programs as fit are resident. A hint: failure changes nothing
    // else.
    d.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100);
  }
  if (out->waits_for_stream_) out->room_ = std::max(1, out->resident_programs());
  if (Status s = out->prepare_hidden(); !s) return s.error();
  return std::shared_ptr<Module>(std::move(out));
}

// Everything a launch of hidden parameters needs, so that it allocates nothing and asks nothing.
Status CudaModule::prepare_hidden() {
  if (info_.persistent) {
    const int resident = resident_programs();
    if (resident < 1)
      return compile_error(
          fmt::format("kernel '{}': no program of {} threads and {} bytes of shared memory is resident on {}",
                      display_name(info_), info_.threads, info_.shared_bytes, device_->name()));
    concurrent_programs_ = int64_t{resident} * device_->properties().multiprocessors;
    if (info_.cluster > 1) concurrent_programs_ = programs_of_clusters(concurrent_programs_);
  }
  if (info_.uses_tickets)
    if (Status s = cuda().tickets().prepare(static_cast<CUstream>(cuda().default_stream().native())); !s) return s;
  if (!info_.tensor_maps.empty()) {
    Result<EmptyViews> empty = cuda().empty_views();
    if (!empty) return empty.error();
    tensor_maps_ = std::make_unique<TensorMaps>(cuda().driver(), info_, *empty);
  }
  return ok();
}

CudaModule::CudaModule(std::shared_ptr<CudaDevice> device, const KernelBinary& binary, CUmodule module,
                       CUfunction function)
    : Module(std::move(device), binary),
      module_(module),
      function_(function),
      lasting_name_(intern(std::string(display_name(binary)))) {
  if (info_.uses_debug_ring) debug_info_ = std::make_shared<const KernelBinary>(info_);
}

CudaModule::~CudaModule() {
  const Current current = cuda().current();
  cuda().driver().cuCtxSynchronize();  // a launch of it may still be running
  cuda().driver().cuModuleUnload(module_);
}

int CudaModule::resident_programs() const {
  const Current current = cuda().current();
  int programs = 0;
  cuda().driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(&programs, function_, static_cast<int>(info_.threads),
                                                              info_.shared_bytes);
  return programs;
}

// Programs of a cluster run on multiprocessors side by side, whose number a cluster's size need not divide.
int64_t CudaModule::programs_of_clusters(int64_t most) const {
  const int64_t size = info_.cluster;
  const Driver& d = cuda().driver();
  int clusters = 0;
  if (d.cuOccupancyMaxActiveClusters) {
    const Current current = cuda().current();
    const auto programs = static_cast<unsigned>(most - most % size);
    const LaunchConfig config{programs, 1, 1, info_.threads, 1, 1, info_.shared_bytes, nullptr, nullptr, 0};
    if (d.cuOccupancyMaxActiveClusters(&clusters, function_, &config) != CUDA_SUCCESS) clusters = 0;
  }
  const int64_t whole = most / size;
  return (clusters > 0 ? std::min<int64_t>(clusters, whole) : whole) * size;
}

}  // namespace tile::cu
