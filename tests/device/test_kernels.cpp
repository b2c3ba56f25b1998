// test_kernels.cpp - see test_kernels.h.
#include "tests/device/test_kernels.h"

#include "runtime/host/host_device.h"
#include "tests/device/test_kernels.ptx.h"

namespace tile::testing_kernels {
namespace {

ParamInfo pointer(std::string name, DType dtype = DType::i32) {
  return {.kind = ParamInfo::pointer, .dtype = dtype, .name = std::move(name)};
}
ParamInfo scalar(std::string name, DType dtype = DType::i32) {
  return {.kind = ParamInfo::scalar, .dtype = dtype, .name = std::move(name)};
}
ParamInfo view(std::string name, uint8_t rank = 1) {
  return {.kind = ParamInfo::view, .dtype = DType::f32, .rank = rank, .name = std::move(name)};
}

std::vector<ParamInfo> params_of(const std::string& name) {
  if (name == "iota") return {pointer("out"), scalar("n")};
  if (name == "axpy") return {view("x"), view("y"), scalar("a", DType::f32)};
  if (name == "ids" || name == "narrow" || name == "use_arena") return {pointer("out")};
  if (name == "delayed") return {pointer("out"), scalar("value"), scalar("ns", DType::i64)};
  if (name == "debug_print") return {pointer("x"), scalar("n")};
  if (name == "debug_assert") return {pointer("x"), scalar("n"), scalar("limit"), scalar("hard")};
  if (name == "fault") return {scalar("address", DType::i64)};
  if (name == "shared_end") return {pointer("out"), scalar("bytes")};
  if (name == "nothing5") return {pointer("a"), pointer("b"), pointer("c"), scalar("m"), scalar("n")};
  if (name == "work_ids") return {pointer("out"), pointer("programs")};
  if (name == "work_tickets") return {pointer("out")};
  if (name == "copy_boxes") return {view("x", 2), view("y", 2)};
  return {};
}

// The host's "object file" of these tests is just the name; the loader looks it up.
Result<HostCode> load_by_name(const std::string& object, const std::string& entry) {
  const HostKernel* kernel = object == "test kernels" ? find_host_kernel(entry.c_str()) : nullptr;
  if (kernel == nullptr) return internal_error("no such test kernel: " + entry);
  return HostCode{kernel->entry, nullptr};
}

}  // namespace

void install_host_loader() { set_host_loader(load_by_name); }

KernelBinary binary_for(const Device& device, const std::string& name) {
  KernelBinary k;
  k.entry = name;
  k.params = params_of(name);
  const bool gpu = device.kind() == DeviceKind::cuda;
  k.format = gpu ? BinaryFormat::ptx : BinaryFormat::host_object;
  k.target = gpu ? "sm_80" : "host";
  k.bytes = gpu ? kPtx : "test kernels";
  k.threads = gpu ? kThreads : 1;
  k.persistent = name == "work_ids" || name == "work_tickets";
  k.uses_tickets = name == "work_tickets";
  if (name == "copy_boxes") {
    k.target = "sm_90";
    k.bytes = kTmaPtx;
    k.tensor_maps = {{0, DType::f32, 2, {1, 0}, {kBoxCols, kBoxRows}},
                     {1, DType::f32, 2, {1, 0}, {kBoxCols, kBoxRows}}};
    k.tensor_maps[1].written = true;
  }
  if (name == "use_arena") k.arena_bytes = 1000;
  if (name == "debug_print" || name == "debug_assert") {
    k.uses_debug_ring = true;
    DebugSite site;
    site.kind = name == "debug_print" ? DebugSite::print : DebugSite::assertion;
    site.message = name == "debug_print" ? "x" : "x < limit";
    site.dtype = DType::i32;
    site.shape = {kThreads};
    site.file = "kernel.cpp";
    site.line = 42;
    k.debug_sites = {site};
  }
  return k;
}

}  // namespace tile::testing_kernels
