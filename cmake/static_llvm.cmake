# static_llvm.cmake - release builds: LLVM and MLIR from their static archives, so that a binary runs on machines without
# them and next to another LLVM in the same process. Never mix these with the imported CMake targets: those pull in the
# shared LLVM again, and two copies of its command-line options abort at start. `tile_static_llvm` is what to link.
find_program(TILE_LLVM_CONFIG NAMES llvm-config PATHS ${LLVM_TOOLS_BINARY_DIR} NO_DEFAULT_PATH REQUIRED)
set(tile_llvm_components nvptx x86 orcjit orcdebugging passes core support target mc asmparser bitreader bitwriter debuginfodwarf)
execute_process(COMMAND ${TILE_LLVM_CONFIG} --link-static --libfiles ${tile_llvm_components}
                OUTPUT_VARIABLE tile_llvm_archives OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(tile_llvm_archives)
file(GLOB tile_mlir_archives ${LLVM_LIBRARY_DIRS}/libMLIR*.a)
list(FILTER tile_mlir_archives EXCLUDE REGEX "libMLIR(CAPI|MlirOptMain|Execution|.*Runner|.*Test|Python)")
set(tile_static_llvm -Wl,--start-group ${tile_mlir_archives} ${tile_llvm_archives} -Wl,--end-group z zstd rt dl m
  -Wl,--gc-sections)
