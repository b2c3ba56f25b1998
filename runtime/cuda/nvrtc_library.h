// nvrtc_library.h - libnvrtc opened at run time, and where its headers are. Private to nvrtc.cpp.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "../error.h"

namespace tile::nvrtc {

using Program = struct ProgramHandle*;
enum class Code : int { success = 0, compilation = 6 };

// Every function used: name, parameters after which the code is returned. nvrtcGetErrorString alone returns text.
#define TILE_NVRTC_FUNCTIONS(F)                                                                \
  F(nvrtcVersion, (int* major, int* minor))                                                    \
  F(nvrtcCreateProgram, (Program * program, const char* source, const char* name, int headers, \
                         const char* const* texts, const char* const* names))                  \
  F(nvrtcDestroyProgram, (Program * program))                                                  \
  F(nvrtcAddNameExpression, (Program program, const char* expression))                         \
  F(nvrtcGetLoweredName, (Program program, const char* expression, const char** lowered))      \
  F(nvrtcCompileProgram, (Program program, int count, const char* const* options))             \
  F(nvrtcGetProgramLogSize, (Program program, size_t * bytes))                                 \
  F(nvrtcGetProgramLog, (Program program, char* log))                                          \
  F(nvrtcGetCUBINSize, (Program program, size_t * bytes))                                      \
  F(nvrtcGetCUBIN, (Program program, char* cubin))

struct Library {
#define TILE_NVRTC_MEMBER(name, params) Code(*name) params = nullptr;
  TILE_NVRTC_FUNCTIONS(TILE_NVRTC_MEMBER)
#undef TILE_NVRTC_MEMBER
  const char* (*nvrtcGetErrorString)(Code code) = nullptr;
  std::string path;                   ///< of the file that was opened
  std::vector<std::string> includes;  ///< directories with cuda_fp16.h and friends; may be empty
  int major = 0, minor = 0;
};

/// Opened at the first call; the outcome stays.
const Result<Library>& library();

}  // namespace tile::nvrtc
