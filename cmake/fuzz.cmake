# tests/fuzz/fuzz_NAME.c -> fuzz_NAME, a libFuzzer program over the layers that parse, which are built with
# coverage too, and over attention (of the kernels only its own: the others read no untrusted bytes, and
# take minutes to build this way).
# tests/fuzz/fuzz_NAME_seeds.c -> fuzz_NAME_seeds, which writes a first corpus into a folder. Needs clang.
if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "OCTAVO_FUZZ needs clang: configure with CC=clang")
endif()
add_custom_target(fuzz)
file(GLOB kernels CONFIGURE_DEPENDS src/kernels/attention.c src/kernels/order.c
    src/kernels/scalar/attention_scalar.c src/kernels/scalar/vector_scalar.c
    src/kernels/${octavo_isa_folder}/attention_*.c)
add_library(fuzz_kernels OBJECT EXCLUDE_FROM_ALL ${kernels})
target_include_directories(fuzz_kernels PRIVATE src include)
target_compile_definitions(fuzz_kernels PRIVATE _GNU_SOURCE)
target_link_libraries(fuzz_kernels PRIVATE octavo_flags)
file(GLOB sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} EXCLUDE_FROM_ALL ${source})
    target_include_directories(${name} PRIVATE src include)
    target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
    target_link_libraries(${name} PRIVATE octavo_flags octavo_base octavo_formats octavo_text)
    if(name STREQUAL "fuzz_attention")
        target_link_libraries(${name} PRIVATE octavo_attention fuzz_kernels)
    endif()
    if(NOT name MATCHES "_seeds$")
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    endif()
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY fuzz)
    add_dependencies(fuzz ${name})
endforeach()
