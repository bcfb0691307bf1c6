# Instruction sets are chosen per file, by its name: src/LAYER/x86/*_avx2.c, src/LAYER/arm/*_neon.c and
# so on. Everything else, detection included, is built at the architecture's baseline. A level that the
# compiler cannot build is left out; OCTAVO_HAVE_<LEVEL> (always 0 or 1) tells the tables about it.
include(CheckCSourceCompiles)

set(octavo_isa_levels avx2 avx512 avx512_vnni avx512_vbmi avx512_bf16 amx neon)
set(octavo_isa_flags_avx2 -mavx2 -mfma -mf16c)
set(octavo_isa_flags_avx512 ${octavo_isa_flags_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl
    -mprefer-vector-width=512)
set(octavo_isa_flags_avx512_vnni ${octavo_isa_flags_avx512} -mavx512vnni)
set(octavo_isa_flags_avx512_vbmi ${octavo_isa_flags_avx512_vnni} -mavx512vbmi)
set(octavo_isa_flags_avx512_bf16 ${octavo_isa_flags_avx512_vbmi} -mavx512bf16)
set(octavo_isa_flags_amx ${octavo_isa_flags_avx512_bf16} -mamx-tile -mamx-int8 -mamx-bf16)
set(octavo_isa_flags_neon)

# One statement that only a compiler which knows the level accepts; `x` is a pointer to 64 bytes.
set(octavo_isa_probe_avx2 "__m256 v = _mm256_loadu_ps((const float *)x);
    _mm256_storeu_ps((float *)x, _mm256_fmadd_ps(v, v, _mm256_cvtph_ps(_mm256_castsi256_si128(
        _mm256_abs_epi8(_mm256_castps_si256(v))))))")
set(octavo_isa_probe_avx512 "_mm512_storeu_si512(x, _mm512_sad_epu8(_mm512_loadu_si512(x),
    _mm512_and_si512(_mm512_loadu_si512(x), _mm512_set1_epi32(1))))")
set(octavo_isa_probe_avx512_vnni "__m512i v = _mm512_loadu_si512(x);
    _mm512_storeu_si512(x, _mm512_dpbusd_epi32(v, v, v))")
set(octavo_isa_probe_avx512_vbmi "__m512i v = _mm512_loadu_si512(x);
    _mm512_storeu_si512(x, _mm512_permutex2var_epi8(v, v, v))")
set(octavo_isa_probe_avx512_bf16 "__m512 v = _mm512_loadu_ps(x);
    __m512bh h = _mm512_cvtne2ps_pbh(v, v); _mm512_storeu_ps(x, _mm512_dpbf16_ps(v, h, h))")
set(octavo_isa_probe_amx "_tile_loadconfig(x); _tile_dpbssd(0, 1, 2); _tile_dpbf16ps(0, 1, 2);
    _tile_release()")
set(octavo_isa_probe_neon "vst1q_f32((float *)x, vfmaq_f32(vld1q_f32((const float *)x),
    vld1q_f32((const float *)x), vld1q_f32((const float *)x)))")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
    set(octavo_isa_folder x86)
    set(octavo_isa_header immintrin.h)
    set(octavo_isa_native avx2 avx512 avx512_vnni avx512_vbmi avx512_bf16 amx)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(octavo_isa_folder arm)
    set(octavo_isa_header arm_neon.h)
    set(octavo_isa_native neon)
else()
    set(octavo_isa_folder)
    set(octavo_isa_native)
endif()

set(octavo_isa_built)
foreach(level IN LISTS octavo_isa_levels)
    string(TOUPPER ${level} upper)
    set(have 0)
    if(level IN_LIST octavo_isa_native)
        list(JOIN octavo_isa_flags_${level} " " CMAKE_REQUIRED_FLAGS)
        check_c_source_compiles("#include <${octavo_isa_header}>
            void probe(void *x);
            void probe(void *x) { ${octavo_isa_probe_${level}}; }
            int main(void) { return 0; }" OCTAVO_COMPILER_HAS_${upper})
        unset(CMAKE_REQUIRED_FLAGS)
        if(OCTAVO_COMPILER_HAS_${upper})
            set(have 1)
            list(APPEND octavo_isa_built ${level})
        endif()
    endif()
    target_compile_definitions(octavo_flags INTERFACE OCTAVO_HAVE_${upper}=${have})
endforeach()

# octavo_isa_sources(LAYER OUT): the layer's files of this architecture, with their flags set.
function(octavo_isa_sources layer out)
    set(found)
    foreach(level IN LISTS octavo_isa_built)
        file(GLOB files CONFIGURE_DEPENDS
            ${CMAKE_CURRENT_SOURCE_DIR}/src/${layer}/${octavo_isa_folder}/*_${level}.c)
        if(files)
            set_source_files_properties(${files} PROPERTIES
                COMPILE_OPTIONS "${octavo_isa_flags_${level}}")
            list(APPEND found ${files})
        endif()
    endforeach()
    set(${out} ${found} PARENT_SCOPE)
endfunction()
