// nvrtc.cpp - see nvrtc.h.
#include "runtime/cuda/nvrtc.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/cuda/nvrtc_library.h"

namespace tile {
namespace {

using nvrtc::Code;
using nvrtc::Library;

class Program {
 public:
  explicit Program(const Library& library) : library_(library) {}
  ~Program() {
    if (handle_) library_.nvrtcDestroyProgram(&handle_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  nvrtc::Program* out() { return &handle_; }
  nvrtc::Program get() const { return handle_; }
  std::string log() const {
    size_t bytes = 0;
    if (library_.nvrtcGetProgramLogSize(handle_, &bytes) != Code::success || bytes < 2) return "";
    std::string text(bytes, '\0');
    library_.nvrtcGetProgramLog(handle_, text.data());
    text.resize(bytes - 1);  // the size counts the terminator
    return text;
  }

 private:
  const Library& library_;
  nvrtc::Program handle_ = nullptr;
};

bool has_option(const std::vector<std::string>& options, std::string_view prefix) {
  return std::any_of(options.begin(), options.end(), [&](const std::string& o) { return o.starts_with(prefix); });
}

std::vector<std::string> full_options(const CudaSource& source, const std::string& target, const Library& library) {
  std::vector<std::string> out{"--gpu-architecture=" + target};
  if (!has_option(source.options, "-std") && !has_option(source.options, "--std")) out.push_back("--std=c++17");
  out.insert(out.end(), source.options.begin(), source.options.end());
  for (const std::string& directory : library.includes)
    out.push_back("--include-path=" + directory);  // after the user's own
  return out;
}

// Headers of the user's may change without the source changing, and the key does not see into them.
bool may_cache(const CudaSource& source) {
  return !has_option(source.options, "-I") && !has_option(source.options, "--include-path") &&
         !has_option(source.options, "-include") && !has_option(source.options, "--pre-include") &&
         source.source.find("#include \"") == std::string::npos;
}

Hash128 key_of(const CudaSource& source, const std::vector<std::string>& options, const Library& library) {
  Hasher h;
  h.add("cuda c++").add(static_cast<uint64_t>(library.major)).add(static_cast<uint64_t>(library.minor));
  h.add(source.source).add(source.file_name).add(source.entry);
  for (const std::string& o : options) h.add(o);
  return h.finish();
}

// The first line of the log that names an error, for the one-line message; the whole log goes below it.
std::string first_error(const std::string& log) {
  size_t at = log.find("error");
  if (at == std::string::npos) return "";
  const size_t begin = log.rfind('\n', at) == std::string::npos ? 0 : log.rfind('\n', at) + 1;
  return log.substr(begin, std::min(log.find('\n', at), log.size()) - begin);
}

Result<KernelBinary> compile(const CudaSource& source, const std::vector<std::string>& options,
                             const Library& library) {
  const auto fail = [&](const char* call, Code code) {
    return internal_error(fmt::format("{}: {}: {}", source.file_name, call, library.nvrtcGetErrorString(code)));
  };
  Program program(library);
  Code code =
      library.nvrtcCreateProgram(program.out(), source.source.c_str(), source.file_name.c_str(), 0, nullptr, nullptr);
  if (code != Code::success) return fail("nvrtcCreateProgram", code);
  code = library.nvrtcAddNameExpression(program.get(), source.entry.c_str());
  if (code != Code::success) return fail("nvrtcAddNameExpression", code);
  std::vector<const char*> raw;
  for (const std::string& o : options) raw.push_back(o.c_str());
  code = library.nvrtcCompileProgram(program.get(), static_cast<int>(raw.size()), raw.data());
  const std::string log = program.log();
  if (code != Code::success) {
    const std::string what = first_error(log);
    Error error = user_error(fmt::format("CUDA source '{}' does not compile: {}", source.file_name,
                                         what.empty() ? library.nvrtcGetErrorString(code) : what));
    Diagnostic whole;
    whole.severity = Severity::note;
    whole.message = "the compiler's log:\n" + log;
    error.diagnostics.push_back(std::move(whole));
    return error;
  }
  KernelBinary out;
  const char* lowered = nullptr;
  code = library.nvrtcGetLoweredName(program.get(), source.entry.c_str(), &lowered);
  if (code != Code::success) return fail("nvrtcGetLoweredName", code);
  out.entry = lowered;
  size_t bytes = 0;
  code = library.nvrtcGetCUBINSize(program.get(), &bytes);
  if (code != Code::success) return fail("nvrtcGetCUBINSize", code);
  out.bytes.resize(bytes);
  code = library.nvrtcGetCUBIN(program.get(), out.bytes.data());
  if (code != Code::success) return fail("nvrtcGetCUBIN", code);
  out.resources.log = log;
  return out;
}

}  // namespace

Result<std::string> nvrtc_version() {
  const Result<Library>& library = nvrtc::library();
  if (!library) return library.error();
  return fmt::format("{}.{}", library->major, library->minor);
}

Result<KernelBinary> compile_cuda(const CudaSource& source, const std::string& target, DiskCache* cache) {
  if (!target.starts_with("sm_"))
    return user_error(
        fmt::format("CUDA source cannot be compiled for '{}': a GPU target such as sm_80 is needed", target));
  if (source.entry.empty()) return user_error(fmt::format("CUDA source '{}': no entry is named", source.file_name));
  for (const ParamInfo& p : source.params)
    if (p.kind == ParamInfo::view)
      return user_error(
          fmt::format("CUDA source '{}': parameter '{}' is a view; CUDA kernels take pointers and scalars",
                      source.file_name, p.name));
  const Result<Library>& library = nvrtc::library();
  if (!library) return library.error();

  const std::vector<std::string> options = full_options(source, target, *library);
  const bool cached = cache != nullptr && may_cache(source);
  const Hash128 key = key_of(source, options, *library);
  std::optional<KernelBinary> found = cached ? cache->load_kernel(key) : std::nullopt;
  if (!found) {
    Result<KernelBinary> compiled = compile(source, options, *library);
    if (!compiled) return compiled.error();
    found = std::move(*compiled);
    if (cached) cache->store_kernel(key, *found);
  }
  // How it is launched is this call's business, not the cached code's.
  found->format = BinaryFormat::cubin;
  found->target = target;
  found->params = source.params;
  found->threads = source.threads;
  found->shared_bytes = source.shared_bytes;
  return std::move(*found);
}

}  // namespace tile
