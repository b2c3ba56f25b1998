// context.h - a GPU through one CUcontext: its primary one, or one the user created.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "debug_rings.h"
#include "driver.h"
#include "tensor_maps.h"
#include "tickets.h"
#include "../device.h"

namespace tile::cu {

/// Makes a context current for the calling thread while it lives. The thread's own choice comes back afterwards, unless
/// it had none. Costs one read of thread-local state when the context is current already.
class Current {
 public:
  Current(const Driver& driver, CUcontext context) : driver_(driver) {
    driver_.cuCtxGetCurrent(&before_);
    if (before_ != context) {
      driver_.cuCtxSetCurrent(context);
      restore_ = before_ != nullptr;
    }
  }
  ~Current() {
    if (restore_) driver_.cuCtxSetCurrent(before_);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Driver& driver_;
  CUcontext before_ = nullptr;
  bool restore_ = false;
};

class CudaDevice : public Device {
 public:
  CudaDevice(const Driver& driver, int ordinal, CUdevice handle, CUcontext context, std::string name);
  Status start();  ///< reads the properties, makes the default stream
  ~CudaDevice() override;

  void* native_context() const override { return context_; }
  Result<std::shared_ptr<Module>> load(const KernelBinary& binary) override;
  Stream& default_stream() override { return *stream_; }
  Result<std::shared_ptr<Stream>> create_stream() override;
  Result<std::shared_ptr<Stream>> wrap_stream(void* native) override;
  Result<std::shared_ptr<Event>> create_event() override;
  Result<void*> allocate(size_t bytes) override;
  void release(void* address) override;
  Result<MemoryInfo> memory() override;
  Status synchronize() override;
  Status enable_peer_access(Device& owner) override;

  const Driver& driver() const { return driver_; }
  CUcontext context() const { return context_; }
  DebugRings& rings() { return rings_; }
  Tickets& tickets() { return tickets_; }
  /// Made at the first call; the context must be current.
  Result<EmptyViews> empty_views();
  Current current() const { return Current(driver_, context_); }

  /// What a driver call said, as a Status. When the context is lost, rings are read for an assertion that explains it,
  /// and the message says which kernel went before (if known) and that nothing more will run.
  Status check(CUresult result, const char* call, const char* last_kernel = nullptr) {
    return result == CUDA_SUCCESS ? ok() : failure(result, call, last_kernel);
  }

 private:
  Status failure(CUresult result, const char* call, const char* last_kernel);
  int attribute(CUdevice_attribute which) const;

  const Driver& driver_;
  CUdevice handle_;
  CUcontext context_;
  DebugRings rings_;
  Tickets tickets_;
  std::mutex empty_mutex_;
  EmptyViews empty_views_;
  std::unique_ptr<Stream> stream_;
  std::mutex lost_mutex_;
  std::string lost_because_;  ///< the first error that lost the context
};

}  // namespace tile::cu
