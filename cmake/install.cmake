# install.cmake - what `cmake --install` puts under the prefix: libtile.so, tilec, the headers (the language and the
# kernels) under include/tile, and a package, so that a user's project says
#   find_package(tile REQUIRED)
#   target_link_libraries(app PRIVATE tile::tile)      # tile::kernels as well, for kernels/*.h
# and others ask pkg-config for `tile`.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The kernels are headers.
add_library(tile_user_kernels INTERFACE)
add_library(tile::kernels ALIAS tile_user_kernels)
set_target_properties(tile_user_kernels PROPERTIES EXPORT_NAME kernels)
target_link_libraries(tile_user_kernels INTERFACE tile)

# They find each other wherever the prefix is, and a shared LLVM where it was at build time.
set(tile_installed tile)
if(TILE_BUILD_TOOLS)
  list(APPEND tile_installed tilec)
  install(TARGETS tilec RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
set_target_properties(${tile_installed} PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}" INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS tile tile_user_kernels EXPORT tile_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(layer runtime dsl kernels)
  install(DIRECTORY ${tile_SOURCE_DIR}/${layer} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tile
    FILES_MATCHING PATTERN "*.h" PATTERN "*.def"
    PATTERN catalog EXCLUDE PATTERN catalog.h EXCLUDE PATTERN reference EXCLUDE PATTERN tracing EXCLUDE PATTERN tuned EXCLUDE)
endforeach()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tile)
install(EXPORT tile_targets NAMESPACE tile:: DESTINATION ${package})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tile-config.cmake.in ${tile_BINARY_DIR}/tile-config.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${tile_BINARY_DIR}/tile-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${tile_BINARY_DIR}/tile-config.cmake ${tile_BINARY_DIR}/tile-config-version.cmake DESTINATION ${package})

file(RELATIVE_PATH tile_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/tile.pc.in ${tile_BINARY_DIR}/tile.pc @ONLY)
install(FILES ${tile_BINARY_DIR}/tile.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
