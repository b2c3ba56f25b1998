// fake_driver.cpp - a libcuda for machines without a GPU: the driver functions of driver.def over host memory, so that
// everything above the driver is tested everywhere (TILE_LIBCUDA names this library). Kernels are the C++ functions of
// host_kernels.cpp. It is stricter than a GPU: work runs as late as the rules allow, calls without a current context
// fail, freed or unknown addresses are errors, and a dead context stays dead.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda/driver.h"
#include "tests/device/host_kernels.h"

namespace tile::cu {

constexpr int kDevices = 2;
constexpr size_t kMemory = size_t{256} << 20;
constexpr uint64_t kMapAddressAlign = 16, kMapExtent = uint64_t{1} << 32, kMapStride = uint64_t{1} << 40;
constexpr int kSharedOptIn = 166912, kSharedDefault = 49152;

constexpr CUresult kInvalidValue = static_cast<CUresult>(1), kInvalidContext = static_cast<CUresult>(201),
                   kNoBinary = static_cast<CUresult>(209), kInvalidHandle = static_cast<CUresult>(400),
                   kCaptureUnsupported = static_cast<CUresult>(900),
                   kLaunchOutOfResources = static_cast<CUresult>(701), kInvalidDevice = static_cast<CUresult>(101);

struct QueueHandle {
  Context* context;
  std::deque<std::function<void()>> work;
};
struct EventHandle {
  QueueHandle* stream = nullptr;  ///< of the last record
  bool done = false;
  double ms = 0;
  int queries = 0;  ///< since the last record
};
struct Context {
  int device = 0;
  bool primary = false;
  CUresult dead = CUDA_SUCCESS;
  size_t used = 0;
  std::map<CUdeviceptr, size_t> memory;
  std::set<QueueHandle*> streams;
  std::set<Context*> reaches;  ///< whose memory its kernels may use
  QueueHandle legacy{this, {}};
};
struct Function {
  LoadedModule* module;
  const testing_kernels::HostKernel* kernel;  ///< null: code of the compiler's, which the fake driver cannot run
  int max_dynamic_shared = kSharedDefault;
};
struct LoadedModule {
  Context* context;
  std::string text;
  std::vector<std::unique_ptr<Function>> functions;
};

namespace {

std::recursive_mutex g_mutex;
int g_maps_encoded = 0;    ///< calls of cuTensorMapEncodeTiled that succeeded
int g_maps_to_refuse = 0;  ///< calls of it that will be refused
unsigned g_last_grid[3]{};
std::atomic<bool> g_capturing{false};  ///< all streams say so, and nothing can be loaded
std::atomic<int> g_early_launches{0};  ///< launches allowed to start while the one in front ends
Context g_primary[kDevices];
int g_primary_users[kDevices];
std::set<Context*> g_contexts;  ///< made by cuCtxCreate
thread_local Context* t_current = nullptr;
thread_local Context* t_running = nullptr;

using Lock = std::lock_guard<std::recursive_mutex>;

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
CUresult state() { return t_current == nullptr ? kInvalidContext : t_current->dead; }
#define NEED_CONTEXT()      \
  const Lock lock(g_mutex); \
  if (const CUresult bad = state(); bad != CUDA_SUCCESS) return bad

QueueHandle* queue_of(CUstream stream) {
  if (stream == nullptr) return t_current ? &t_current->legacy : nullptr;
  for (int d = 0; d < kDevices; ++d)
    if (g_primary[d].streams.count(stream)) return stream;
  for (Context* c : g_contexts)
    if (c->streams.count(stream)) return stream;
  return nullptr;
}
void run(QueueHandle* q) {
  while (!q->work.empty()) {
    auto job = std::move(q->work.front());
    q->work.pop_front();
    t_running = q->context;
    if (q->context->dead == CUDA_SUCCESS) job();
  }
}
void run_all(Context* c) {
  for (QueueHandle* q : std::set<QueueHandle*>(c->streams)) run(q);
  run(&c->legacy);
}
void die(int error) { t_running->dead = static_cast<CUresult>(error); }

bool inside(CUdeviceptr address, size_t bytes) {
  const auto in = [&](Context& c) {
    auto at = c.memory.upper_bound(address);
    if (at == c.memory.begin()) return false;
    --at;
    return address + bytes <= at->first + at->second;
  };
  for (Context& c : g_primary)
    if (in(c)) return true;
  return std::any_of(g_contexts.begin(), g_contexts.end(), [&](Context* c) { return in(*c); });
}
CUresult enqueue(CUstream stream, std::function<void()> job) {
  QueueHandle* q = queue_of(stream);
  if (q == nullptr) return kInvalidHandle;
  q->work.push_back(std::move(job));
  return CUDA_SUCCESS;
}
template <class T>
CUresult fill(CUdeviceptr dst, T value, size_t count, CUstream stream) {
  NEED_CONTEXT();
  if (!inside(dst, count * sizeof(T)) || dst % sizeof(T) != 0) return kInvalidValue;
  return enqueue(stream, [=] { std::fill_n(reinterpret_cast<T*>(dst), count, value); });
}

}  // namespace

CUresult cuInit(unsigned) {
  const Lock lock(g_mutex);
  for (int d = 0; d < kDevices; ++d) g_primary[d].device = d, g_primary[d].primary = true;
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) { return *version = 12040, CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult error, const char** text) {
  static const std::map<int, const char*> names{{0, "CUDA_SUCCESS"},
                                                {1, "CUDA_ERROR_INVALID_VALUE"},
                                                {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                {201, "CUDA_ERROR_INVALID_CONTEXT"},
                                                {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
                                                {218, "CUDA_ERROR_INVALID_PTX"},
                                                {400, "CUDA_ERROR_INVALID_HANDLE"},
                                                {500, "CUDA_ERROR_NOT_FOUND"},
                                                {600, "CUDA_ERROR_NOT_READY"},
                                                {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                                {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
                                                {719, "CUDA_ERROR_LAUNCH_FAILED"}};
  const auto at = names.find(error);
  *text = at == names.end() ? nullptr : at->second;
  return *text ? CUDA_SUCCESS : kInvalidValue;
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  if (error == CUDA_ERROR_ILLEGAL_ADDRESS) return *text = "an illegal memory access was encountered", CUDA_SUCCESS;
  return *text = "as said by the fake driver", CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) { return *count = kDevices, CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (ordinal < 0 || ordinal >= kDevices) return kInvalidDevice;
  return *device = ordinal + 100, CUDA_SUCCESS;  // handles are not ordinals
}
CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  std::strncpy(name, device == 100 ? "Fake A100" : "Fake H200", static_cast<size_t>(size));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      *value = 2147483647;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      *value = 65535;
      break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      *value = 32;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 4;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = device == 100 ? 8 : 9;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = 0;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = kSharedOptIn;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      *value = kSharedOptIn + 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      *value = 65536;
      break;
    default:
      *value = 1000;
      break;
  }
  return CUDA_SUCCESS;
}
CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice owner) {
  return *can = device != owner, CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) { return *bytes = kMemory, CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const Lock lock(g_mutex);
  ++g_primary_users[device - 100];
  return *context = &g_primary[device - 100], CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  const Lock lock(g_mutex);
  return g_primary_users[device - 100]-- > 0 ? CUDA_SUCCESS : kInvalidContext;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  const Lock lock(g_mutex);
  *flags = 0;
  *active = g_primary_users[device - 100] > 0;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) { return *context = t_current, CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext context) { return t_current = context, CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice* device) {
  if (t_current == nullptr) return kInvalidContext;
  return *device = t_current->device + 100, CUDA_SUCCESS;
}
CUresult cuCtxEnablePeerAccess(CUcontext owner, unsigned flags) {
  NEED_CONTEXT();
  if (flags != 0 || owner->device == t_current->device) return kInvalidValue;
  return t_current->reaches.insert(owner).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}
CUresult cuCtxSynchronize() {
  NEED_CONTEXT();
  run_all(t_current);
  return state();
}
CUresult cuMemGetInfo(size_t* free, size_t* total) {
  NEED_CONTEXT();
  *total = kMemory;
  *free = kMemory - t_current->used;
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  NEED_CONTEXT();
  if (bytes == 0) return kInvalidValue;
  if (bytes > kMemory - t_current->used) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  t_current->memory[*address] = bytes;
  t_current->used += bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr address) {
  const Lock lock(g_mutex);
  if (t_current == nullptr) return kInvalidContext;
  const auto at = t_current->memory.find(address);
  if (at == t_current->memory.end()) return state() != CUDA_SUCCESS ? state() : kInvalidValue;
  run_all(t_current);
  t_current->used -= at->second;
  std::memset(reinterpret_cast<void*>(address), 0xdd, at->second);
  std::free(reinterpret_cast<void*>(address));
  t_current->memory.erase(at);
  return state();  // of a dead context the memory is gone too, and the call says what the context died of
}
CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  NEED_CONTEXT();
  return *address = std::aligned_alloc(256, (bytes + 255) / 256 * 256), CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void* address) { return std::free(address), CUDA_SUCCESS; }
CUresult cuMemHostGetDevicePointer(CUdeviceptr* device, void* host, unsigned) {
  return *device = reinterpret_cast<CUdeviceptr>(host), CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void* src, size_t bytes, CUstream stream) {
  NEED_CONTEXT();
  if (!inside(dst, bytes)) return kInvalidValue;
  // From pageable memory the real driver takes its copy before it returns.
  return enqueue(stream, [dst, copy = std::string(static_cast<const char*>(src), bytes)] {
    std::memcpy(reinterpret_cast<void*>(dst), copy.data(), copy.size());
  });
}
CUresult cuMemcpyDtoHAsync(void* dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  NEED_CONTEXT();
  if (!inside(src, bytes)) return kInvalidValue;
  return enqueue(stream, [=] { std::memcpy(dst, reinterpret_cast<void*>(src), bytes); });
}
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  NEED_CONTEXT();
  if (!inside(dst, bytes) || !inside(src, bytes)) return kInvalidValue;
  return enqueue(stream, [=] { std::memmove(reinterpret_cast<void*>(dst), reinterpret_cast<void*>(src), bytes); });
}
CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char v, size_t n, CUstream s) { return fill(dst, v, n, s); }
CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short v, size_t n, CUstream s) { return fill(dst, v, n, s); }
CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned v, size_t n, CUstream s) { return fill(dst, v, n, s); }
CUresult cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned value, size_t width, size_t height,
                            CUstream stream) {
  NEED_CONTEXT();
  if (!inside(dst, (height - 1) * pitch + width * 4)) return kInvalidValue;
  return enqueue(stream, [=] {
    for (size_t row = 0; row < height; ++row) std::fill_n(reinterpret_cast<unsigned*>(dst + row * pitch), width, value);
  });
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* names, void** values) {
  NEED_CONTEXT();
  const char* text = static_cast<const char*>(image);
  if (std::strstr(text, ".entry") == nullptr) {
    for (unsigned i = 0; i < count; ++i)
      if (names[i] == CU_JIT_ERROR_LOG_BUFFER)
        std::strcpy(static_cast<char*>(values[i]), "fake assembler: line 1; syntax error\n");
    return CUDA_ERROR_INVALID_PTX;
  }
  if (g_capturing) return kCaptureUnsupported;
  *module = new LoadedModule{t_current, text, {}};
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) {
  const Lock lock(g_mutex);
  const CUresult result = state();
  if (result == CUDA_SUCCESS && module->context != t_current) return kInvalidContext;
  for (QueueHandle* q : module->context->streams)
    if (!q->work.empty() && result == CUDA_SUCCESS) std::abort();  // code unloaded under work that may need it
  delete module;
  return result;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  NEED_CONTEXT();
  const auto* kernel = testing_kernels::find_host_kernel(name);
  if (module->text.find(std::string(".entry ") + name) == std::string::npos) return CUDA_ERROR_NOT_FOUND;
  module->functions.push_back(std::make_unique<Function>(Function{module, kernel}));
  *function = module->functions.back().get();
  return CUDA_SUCCESS;
}
CUresult cuModuleGetGlobal(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  NEED_CONTEXT();
  if (module->text.find(std::string(" ") + name) == std::string::npos) return CUDA_ERROR_NOT_FOUND;
  *address = 0, *bytes = 1;
  return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  NEED_CONTEXT();
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = function->kernel && std::string(function->kernel->name) == "narrow" ? 64 : 1024;
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 24;
      break;
    default:
      *value = 0;
      break;
  }
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  NEED_CONTEXT();
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
  if (value > kSharedOptIn) return kInvalidValue;
  return function->max_dynamic_shared = value, CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int threads, size_t shared) {
  NEED_CONTEXT();
  *blocks =
      static_cast<int>(std::min<size_t>(2048 / static_cast<size_t>(threads), shared ? kSharedOptIn / shared : 32));
  return CUDA_SUCCESS;
}
// One cluster at a time, of whatever size: fewer programs than the multiprocessors hold.
CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction, const LaunchConfig* config) {
  NEED_CONTEXT();
  if (config->grid_x == 0 || config->block_x == 0) return kInvalidValue;
  return *clusters = 1, CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned threads, unsigned,
                        unsigned, unsigned shared, CUstream stream, void** params, void**) {
  // Now and then a caller is held up here, so that other threads get between what it did before and after.
  static std::atomic<unsigned> calls{0};
  if (calls++ % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  NEED_CONTEXT();
  if (gx == 0 || gy == 0 || gz == 0 || gy > 65535 || gz > 65535) return kInvalidValue;
  if (function->module->context != t_current) return kInvalidContext;
  if (threads > 1024 || shared > static_cast<unsigned>(function->max_dynamic_shared)) return kLaunchOutOfResources;
  const auto* kernel = function->kernel;
  g_last_grid[0] = gx, g_last_grid[1] = gy, g_last_grid[2] = gz;
  if (kernel == nullptr) return enqueue(stream, [] {});
  std::vector<uint64_t> slots;  // parameters are taken when the launch is made
  int at = 0;
  for (; at < kernel->slots; ++at) slots.push_back(*static_cast<uint64_t*>(params[at]));
  for (int d = 0; kernel->persistent && d < 3; ++d)
    slots.push_back(static_cast<uint64_t>(*static_cast<int32_t*>(params[at++])));
  if (kernel->tickets) {
    slots.push_back(*static_cast<uint64_t*>(params[at++]));
    if (!inside(slots.back(), sizeof(TicketCounter))) return kInvalidValue;
  }
  auto maps = std::make_shared<std::vector<testing_kernels::FakeTensorMap>>(static_cast<size_t>(kernel->maps));
  for (auto& map : *maps) {
    std::memcpy(&map, params[at++], sizeof(map));
    slots.push_back(reinterpret_cast<uint64_t>(&map));
  }
  return enqueue(stream, [=] {
    (void)maps;  // alive as long as the work
    testing_kernels::t_die = die;
    HostProgram p{{0, 0, 0}, {static_cast<int>(gx), static_cast<int>(gy), static_cast<int>(gz)}};
    for (p.id[2] = 0; p.id[2] < p.grid[2]; ++p.id[2])
      for (p.id[1] = 0; p.id[1] < p.grid[1]; ++p.id[1])
        for (p.id[0] = 0; p.id[0] < p.grid[0]; ++p.id[0])
          if (t_running->dead == CUDA_SUCCESS) kernel->entry(slots.data(), &p, nullptr);
  });
}
// Work of a queue runs in order here: an early start shows nothing, so only who asks for one is counted.
CUresult cuLaunchKernelEx(const LaunchConfig* c, CUfunction function, void** params, void** extra) {
  for (unsigned i = 0; i < c->count; ++i)
    if (c->attributes[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION && c->attributes[i].value == 1)
      ++g_early_launches;
  return cuLaunchKernel(function, c->grid_x, c->grid_y, c->grid_z, c->block_x, c->block_y, c->block_z, c->shared_bytes,
                        c->stream, params, extra);
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  NEED_CONTEXT();
  *stream = new QueueHandle{t_current, {}};
  t_current->streams.insert(*stream);
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream stream) {
  const Lock lock(g_mutex);
  QueueHandle* q = queue_of(stream);
  if (q == nullptr || stream == nullptr) return kInvalidHandle;
  run(q);
  q->context->streams.erase(q);
  delete q;
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
  NEED_CONTEXT();
  QueueHandle* q = queue_of(stream);
  if (q == nullptr) return kInvalidHandle;
  run(q);
  return q->context->dead;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  NEED_CONTEXT();
  return enqueue(stream, [event] {
    Context* own = t_running;
    while (event->stream != nullptr && !event->done && !event->stream->work.empty()) {
      auto job = std::move(event->stream->work.front());
      event->stream->work.pop_front();
      t_running = event->stream->context;
      job();
    }
    t_running = own;
  });
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  const Lock lock(g_mutex);
  QueueHandle* q = queue_of(stream);
  if (q == nullptr) return stream ? kInvalidHandle : kInvalidContext;
  return *context = q->context, CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* status) {
  return *status = static_cast<CUstreamCaptureStatus>(g_capturing ? 1 : CU_STREAM_CAPTURE_STATUS_NONE), CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  NEED_CONTEXT();
  return *event = new EventHandle, CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) {
  const Lock lock(g_mutex);
  if (event->stream && !event->done) run(event->stream);  // the real one is released when it is done
  delete event;
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  NEED_CONTEXT();
  event->stream = queue_of(stream);
  event->done = false;
  event->queries = 0;
  return enqueue(stream, [event] { event->done = true, event->ms = now_ms(); });
}
CUresult cuEventQuery(CUevent event) {
  NEED_CONTEXT();
  if (event->stream == nullptr || event->done) return CUDA_SUCCESS;
  if (++event->queries > 3) run(event->stream);  // a GPU gets there by itself, if not at once
  return CUDA_ERROR_NOT_READY;
}
CUresult cuEventSynchronize(CUevent event) {
  NEED_CONTEXT();
  if (event->stream && !event->done) run(event->stream);
  return state();
}
CUresult cuEventElapsedTime(float* ms, CUevent start, CUevent end) {
  NEED_CONTEXT();
  if (start->stream == nullptr || end->stream == nullptr) return kInvalidHandle;
  if (!start->done || !end->done) return CUDA_ERROR_NOT_READY;
  return *ms = static_cast<float>(end->ms - start->ms), CUDA_SUCCESS;
}

// The limits that cuda.h documents for tiled maps without interleaving.
CUresult cuTensorMapEncodeTiled(TensorMap* out, CUtensorMapDataType type, uint32_t rank, void* address,
                                const uint64_t* dims, const uint64_t* strides, const uint32_t* box,
                                const uint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
  const Lock lock(g_mutex);
  if (g_maps_to_refuse > 0) return --g_maps_to_refuse, kInvalidValue;
  constexpr unsigned kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  if (reinterpret_cast<uintptr_t>(out) % 64 != 0 || static_cast<size_t>(type) >= std::size(kBytes))
    return kInvalidValue;
  if (rank < 1 || rank > 5 || reinterpret_cast<uintptr_t>(address) % kMapAddressAlign != 0) return kInvalidValue;
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || swizzle < 0 || swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
    return kInvalidValue;
  if (promotion < 0 || promotion > 3 || fill < 0 || fill > 1) return kInvalidValue;
  testing_kernels::FakeTensorMap map{};
  map.address = reinterpret_cast<uint64_t>(address);
  map.rank = static_cast<uint8_t>(rank);
  map.element_bytes = static_cast<uint8_t>(kBytes[type]);
  for (uint32_t d = 0; d < rank; ++d) {
    if (dims[d] == 0 || dims[d] > kMapExtent || box[d] == 0 || box[d] > 256) return kInvalidValue;
    if (element_strides[d] == 0 || element_strides[d] > 8) return kInvalidValue;
    if (d > 0 && (strides[d - 1] == 0 || strides[d - 1] % 16 != 0 || strides[d - 1] >= kMapStride))
      return kInvalidValue;
    map.dims[d] = dims[d];
    map.box[d] = static_cast<uint16_t>(box[d]);
    if (d > 0) map.strides[d - 1] = strides[d - 1];
  }
  const uint32_t row = box[0] * map.element_bytes;
  if (row % 16 != 0 || (swizzle != CU_TENSOR_MAP_SWIZZLE_NONE && row > 16u << swizzle)) return kInvalidValue;
  if (!inside(map.address, map.element_bytes)) return kInvalidValue;  // the real one would fault later
  std::memcpy(out, &map, sizeof(map));
  ++g_maps_encoded;
  return CUDA_SUCCESS;
}

}  // namespace tile::cu

using namespace tile::cu;

extern "C" {
__attribute__((visibility("default"))) CUresult cuGetProcAddress_v2(const char* name, void** symbol, int, uint64_t,
                                                                    int* status) {
  *symbol = nullptr;
#define TILE_DRIVER(function, params) \
  if (std::strcmp(name, #function) == 0) *symbol = reinterpret_cast<void*>(&function);
#include "runtime/cuda/driver.def"
#undef TILE_DRIVER
  *status = *symbol ? 0 : 1;
  return *symbol ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
// For tests: what happened, and what is to go wrong.
__attribute__((visibility("default"))) int fake_maps_encoded() {
  const Lock lock(g_mutex);
  return g_maps_encoded;
}
__attribute__((visibility("default"))) void fake_refuse_maps(int calls) {
  const Lock lock(g_mutex);
  g_maps_to_refuse = calls;
}
__attribute__((visibility("default"))) void fake_capture(int on) { g_capturing = on != 0; }
__attribute__((visibility("default"))) int fake_early_launches() { return g_early_launches; }
__attribute__((visibility("default"))) unsigned fake_last_grid(int dim) {
  const Lock lock(g_mutex);
  return g_last_grid[dim];
}
// What a user's program calls by itself (cuda_test.cpp).
__attribute__((visibility("default"))) CUresult cuCtxCreate_v2(CUcontext* context, unsigned, CUdevice device) {
  const Lock lock(g_mutex);
  *context = new Context;
  (*context)->device = device - 100;
  g_contexts.insert(*context);
  t_current = *context;
  return CUDA_SUCCESS;
}
__attribute__((visibility("default"))) CUresult cuCtxDestroy_v2(CUcontext context) {
  const Lock lock(g_mutex);
  run_all(context);
  g_contexts.erase(context);
  if (t_current == context) t_current = nullptr;
  for (QueueHandle* q : context->streams) delete q;
  for (const auto& [address, bytes] : context->memory) std::free(reinterpret_cast<void*>(address));
  delete context;
  return CUDA_SUCCESS;
}
}
