// stream.h - CUDA streams and events.
#pragma once
#include <memory>

#include "context.h"

namespace tile::cu {

class CudaEvent : public Event {
 public:
  CudaEvent(std::shared_ptr<CudaDevice> device, CUevent event) : device_(std::move(device)), event_(event) {}
  ~CudaEvent() override;
  Status synchronize() override;
  Result<bool> is_done() override;
  Result<double> elapsed_ms(const Event& start) const override;
  CUevent handle() const { return event_; }
  const CudaDevice& device() const { return *device_; }

 private:
  std::shared_ptr<CudaDevice> device_;
  CUevent event_;
};

class CudaStream : public Stream {
 public:
  /// `keep` is null for the device's own stream (the device would keep itself alive); `owned` streams are destroyed.
  CudaStream(CudaDevice& device, std::shared_ptr<CudaDevice> keep, CUstream stream, bool owned)
      : device_(device), keep_(std::move(keep)), stream_(stream), owned_(owned) {}
  ~CudaStream() override;

  Device& device() const override { return device_; }
  void* native() const override { return stream_; }
  bool capturing() const override;
  Status launch(const Module& module, const Grid& grid, const uint64_t* slots, size_t n) override;
  Status copy_to_device(void* dst, const void* src, size_t bytes) override;
  Status copy_to_host(void* dst, const void* src, size_t bytes) override;
  Status copy(void* dst, const void* src, size_t bytes) override;
  Status fill(void* dst, const void* pattern, size_t pattern_bytes, size_t count) override;
  Status record(Event& event) override;
  Status wait(const Event& event) override;
  Status synchronize() override;

 private:
  Result<CUdeviceptr> take_ring(const class CudaModule& module);
  Status check(CUresult result, const char* call) {
    return device_.check(result, call, last_kernel_.load(std::memory_order_relaxed));
  }
  CudaDevice& device_;
  std::shared_ptr<CudaDevice> keep_;
  CUstream stream_;
  bool owned_;
  std::atomic<double> share_before_{1};             ///< of the last launch (early_launch.h)
  std::atomic<const char*> last_kernel_{nullptr};  ///< for the message when something later fails
};

}  // namespace tile::cu
