// nvrtc_library.cpp - see nvrtc_library.h.
#include "runtime/cuda/nvrtc_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "runtime/env.h"

namespace tile::nvrtc {
namespace {

namespace fs = std::filesystem;
constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

// Subdirectories of `base` whose names start with `prefix`.
std::vector<fs::path> matching(const fs::path& base, const std::string& prefix) {
  std::vector<fs::path> out;
  std::error_code ec;
  for (fs::directory_iterator at(base, ec), end; !ec && at != end; at.increment(ec))
    if (at->path().filename().string().starts_with(prefix)) out.push_back(at->path());
  return out;
}

// Where pip puts NVIDIA's packages under an environment's root: nvidia/cuda_nvrtc (CUDA 12), nvidia/cu13.
void add_python(const fs::path& root, std::vector<fs::path>& out) {
  for (const fs::path& python : matching(root / "lib", "python3"))
    for (const char* packages : {"site-packages", "dist-packages"})
      for (const char* package : {"cu13", "cuda_nvrtc"}) out.push_back(python / packages / "nvidia" / package / "lib");
}

std::vector<fs::path> directories() {
  std::vector<fs::path> toolkits, out;
  for (Env home : {Env::cuda_home, Env::cuda_path})
    if (const auto path = env_text(home)) toolkits.push_back(*path);
  toolkits.push_back("/usr/local/cuda");
  for (const fs::path& t : toolkits)
    for (const char* lib : {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"})
      out.push_back(t / lib);
  for (Env root : {Env::virtual_env, Env::conda_prefix})
    if (const auto path = env_text(root)) add_python(*path, out);
  if (const auto home = env_text(Env::home)) add_python(fs::path(*home) / ".local", out);
  add_python("/usr/local", out);
  add_python("/usr", out);
  return out;
}

void* open_any(std::vector<std::string>& tried) {
  const auto attempt = [&](const std::string& path) {
    tried.push_back(path);
    return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  };
  if (const auto path = env_text(Env::nvrtc)) return attempt(*path);  // named by the user: nothing else will do
  for (const char* name : kNames)
    if (void* found = attempt(name)) return found;
  std::error_code ec;
  for (const fs::path& directory : directories())
    for (const char* name : kNames)
      if (fs::exists(directory / name, ec))
        if (void* found = attempt((directory / name).string())) return found;
  return nullptr;
}

// The toolkit's headers lie next to its libraries; pip has them in another package.
std::vector<std::string> find_includes(const fs::path& library) {
  const fs::path lib = library.parent_path();
  std::vector<fs::path> candidates{lib.parent_path() / "include", lib.parent_path() / "../../include",
                                   lib.parent_path() / "../cuda_runtime/include"};
  for (Env home : {Env::cuda_home, Env::cuda_path})
    if (const auto path = env_text(home)) candidates.push_back(fs::path(*path) / "include");
  candidates.push_back("/usr/local/cuda/include");
  std::error_code ec;
  std::vector<std::string> out;
  for (const fs::path& c : candidates) {
    if (!fs::exists(c / "cuda_fp16.h", ec)) continue;
    out.push_back(c.lexically_normal().string());
    // CUDA 13 keeps libcu++ and CUB one level down.
    if (fs::exists(c / "cccl", ec)) out.push_back((c / "cccl").lexically_normal().string());
    break;
  }
  return out;
}

Result<Library> open_library() {
  std::vector<std::string> tried;
  void* handle = open_any(tried);
  if (handle == nullptr)
    return user_error(
        fmt::format("libnvrtc is not on this machine (tried {}); install the CUDA toolkit or pip's "
                    "nvidia-cuda-nvrtc, or set TILE_NVRTC",
                    fmt::join(tried, ", ")));
  Library out;
  out.path = tried.back();
#define TILE_NVRTC_FIND(name, params)                                    \
  out.name = reinterpret_cast<decltype(out.name)>(dlsym(handle, #name)); \
  if (out.name == nullptr)                                               \
    return user_error(fmt::format("'{}' has no {}; NVRTC of CUDA 12 or newer is needed", out.path, #name));
  TILE_NVRTC_FUNCTIONS(TILE_NVRTC_FIND)
#undef TILE_NVRTC_FIND
  out.nvrtcGetErrorString = reinterpret_cast<decltype(out.nvrtcGetErrorString)>(dlsym(handle, "nvrtcGetErrorString"));
  if (out.nvrtcGetErrorString == nullptr) return user_error(fmt::format("'{}' has no nvrtcGetErrorString", out.path));
  out.nvrtcVersion(&out.major, &out.minor);
  Dl_info where;  // the full path, also when the loader found it by name
  if (dladdr(reinterpret_cast<void*>(out.nvrtcVersion), &where) != 0 && where.dli_fname != nullptr) {
    std::error_code ec;
    const fs::path real = fs::canonical(where.dli_fname, ec);
    out.includes = find_includes(ec ? fs::path(where.dli_fname) : real);
  }
  return out;
}

}  // namespace

const Result<Library>& library() {
  static const auto* outcome = new Result<Library>(open_library());
  return *outcome;
}

}  // namespace tile::nvrtc
