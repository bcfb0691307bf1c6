# `cmake --install`: libraries, headers, pkg-config and CMake files, the command, man pages, completion.
include(CMakePackageConfigHelpers)

set(octavo_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/octavo)
install(DIRECTORY include/octavo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

# The static library's own dependencies are looked for only by those who link it, hence two files.
if(TARGET octavo_shared)
    install(TARGETS octavo_shared EXPORT octavo_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(TARGETS octavo_static EXPORT octavo_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(EXPORT octavo_shared FILE octavo-shared.cmake NAMESPACE octavo::
        DESTINATION ${octavo_cmake_dir})
    install(EXPORT octavo_static FILE octavo-static.cmake NAMESPACE octavo::
        DESTINATION ${octavo_cmake_dir})
endif()
configure_package_config_file(cmake/octavoConfig.cmake.in octavoConfig.cmake
    INSTALL_DESTINATION ${octavo_cmake_dir})
write_basic_package_version_file(octavoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/octavoConfig.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/octavoConfigVersion.cmake DESTINATION ${octavo_cmake_dir})

# hwloc is named by its flags for linking to the shared libhwloc: through Requires.private it would ask
# for static libraries that systems do not ship. octavo.pc finds its prefix from its own place, so an installed tree may be moved.
set(octavo_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH octavo_pc_prefix ${CMAKE_INSTALL_PREFIX}/${octavo_pc_dir} ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" octavo_pc_prefix "${octavo_pc_prefix}")
list(JOIN hwloc_LDFLAGS " " octavo_pc_hwloc)
set(octavo_pc_dl ${CMAKE_DL_LIBS})
list(TRANSFORM octavo_pc_dl PREPEND "-l")
configure_file(cmake/octavo.pc.in octavo.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/octavo.pc DESTINATION ${octavo_pc_dir})

if(TARGET octavo)
    install(TARGETS octavo RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    file(GLOB pages CONFIGURE_DEPENDS docs/man/*.1)
    install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    file(GLOB format_pages CONFIGURE_DEPENDS docs/man/*.5)
    install(FILES ${format_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
    install(FILES completions/octavo.bash RENAME octavo
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES completions/_octavo DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
