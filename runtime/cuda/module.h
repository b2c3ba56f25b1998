// module.h - a cubin or PTX loaded into one context.
#pragma once
#include <memory>

#include "context.h"

namespace tile::cu {

/// CUDA's classic limit of 4096 bytes of parameters, in slots; one is kept for the debug ring.
inline constexpr size_t kMaxSlots = 511;
inline constexpr size_t kMaxParamBytes = 4096;

class CudaModule : public Module {
 public:
  static Result<std::shared_ptr<Module>> load(std::shared_ptr<CudaDevice> device, const KernelBinary& binary);
  CudaModule(std::shared_ptr<CudaDevice> device, const KernelBinary& binary, CUmodule module, CUfunction function);
  ~CudaModule() override;

  CUfunction function() const { return function_; }
  /// The kernel as the reader of its debug records needs it; null if it writes none. Outlives the module.
  const std::shared_ptr<const KernelBinary>& debug_info() const { return debug_info_; }
  /// The entry's name with the lifetime of the process.
  const char* lasting_name() const { return lasting_name_; }
  int resident_programs() const override;
  /// Persistent kernels: how many programs run at a time.
  int64_t concurrent_programs() const { return concurrent_programs_; }
  /// The kernel waits itself for what is in front of it in its stream (launch_marks.h).
  bool waits_for_stream() const { return waits_for_stream_; }
  /// Of such kernels: programs that a multiprocessor has room for (at least 1), and whether they are short.
  int room() const { return room_; }
  bool is_short() const { return is_short_; }
  /// Null if the kernel has no tensor maps.
  TensorMaps* tensor_maps() const { return tensor_maps_.get(); }

 private:
  Status prepare_hidden();
  /// How many programs run at a time in clusters of info_.cluster; `most` would without them.
  int64_t programs_of_clusters(int64_t most) const;
  CudaDevice& cuda() const { return static_cast<CudaDevice&>(*device_); }
  CUmodule module_;
  CUfunction function_;
  std::shared_ptr<const KernelBinary> debug_info_;
  const char* lasting_name_;
  int64_t concurrent_programs_ = 0;
  bool waits_for_stream_ = false, is_short_ = false;
  int room_ = 1;
  std::unique_ptr<TensorMaps> tensor_maps_;
};

}  // namespace tile::cu
