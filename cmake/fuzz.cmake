# tests/fuzz/fuzz_NAME.c -> fuzz_NAME, a libFuzzer program over the whole library, which is built with
# coverage too. Needs clang.
if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "OCTAVO_FUZZ needs clang: configure with CC=clang")
endif()
file(GLOB sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_include_directories(${name} PRIVATE src include)
    target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
    target_link_libraries(${name} PRIVATE octavo_flags octavo_static)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()
