# Writes OUT with a hash over the compiler's sources, so that any change of the compiler makes cached kernels stale, and a
# rebuild of a user's program does not. Arguments: -DOUT=header -DROOT=source dir
file(GLOB_RECURSE sources ${ROOT}/compiler/*.cpp ${ROOT}/compiler/*.h ${ROOT}/compiler/*.td ${ROOT}/compiler/*.def
     ${ROOT}/runtime/abi.h ${ROOT}/runtime/dtype.h)
list(SORT sources)
set(hashes "")
foreach(source ${sources})
  file(SHA256 ${source} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 id "${hashes}")
string(SUBSTRING ${id} 0 16 id)
set(text "// Made by build_id.cmake: a hash of the compiler's sources.\n#pragma once\n#define TILE_BUILD_ID \"${id}\"\n")
if(EXISTS ${OUT})
  file(READ ${OUT} old)
endif()
if(NOT "${old}" STREQUAL "${text}")
  file(WRITE ${OUT} "${text}")
endif()
