# Installs BUILD under WORK, and configures, builds and runs the project USER with nothing but that prefix; the same
# program by pkg-config; and configures SUBPROJECT, which has tile as a folder.
file(REMOVE_RECURSE ${WORK})
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT code EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\nended with ${code}:\n${text}")
  endif()
endfunction()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -G Ninja -S ${USER} -B ${WORK}/build -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/app)

# Without CMake.
find_program(PKG_CONFIG pkg-config REQUIRED)
file(GLOB_RECURSE pc ${WORK}/prefix/*/tile.pc)
get_filename_component(pc_dir ${pc} DIRECTORY)
execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc_dir} ${PKG_CONFIG} --cflags --libs tile
  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags)
execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc_dir} ${PKG_CONFIG} --variable=libdir tile
  OUTPUT_VARIABLE libdir OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
run(${CXX} -std=c++20 -I${USER}/include ${USER}/app.cpp -o ${WORK}/by_pkg_config ${flags} -Wl,-rpath,${libdir})
run(${WORK}/by_pkg_config)

# As a folder of a project that has targets of its own named like our tools.
run(${CMAKE_COMMAND} -G Ninja -S ${SUBPROJECT} -B ${WORK}/sub -DCMAKE_CXX_COMPILER=${CXX} -DTILE=${SOURCE})
file(READ ${WORK}/sub/compile_commands.json commands)
if(NOT commands MATCHES "-isystem ${SOURCE} [^\n]*main.cpp")
  message(FATAL_ERROR "tile's headers are not system headers of a project that has it as a folder")
endif()
