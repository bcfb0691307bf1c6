# Instruction sets are chosen per file, by its name: src/LAYER/x86/*_avx2.c and so on. Everything else,
# detection included, is built at the architecture's baseline.
set(octavo_isa_flags_avx2 -mavx2 -mfma -mf16c)
set(octavo_isa_flags_avx512 ${octavo_isa_flags_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
set(octavo_isa_flags_avx512_vnni ${octavo_isa_flags_avx512} -mavx512vnni)
set(octavo_isa_flags_avx512_bf16 ${octavo_isa_flags_avx512_vnni} -mavx512bf16)
set(octavo_isa_flags_amx ${octavo_isa_flags_avx512_bf16} -mamx-tile -mamx-int8 -mamx-bf16)

# octavo_isa_sources(LAYER OUT): the layer's files of this architecture, with their flags set.
function(octavo_isa_sources layer out)
    set(found)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
        foreach(isa avx2 avx512 avx512_vnni avx512_bf16 amx)
            file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${layer}/x86/*_${isa}.c)
            set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS "${octavo_isa_flags_${isa}}")
            list(APPEND found ${files})
        endforeach()
    elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
        file(GLOB found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${layer}/arm/*.c)
    endif()
    set(${out} ${found} PARENT_SCOPE)
endfunction()
