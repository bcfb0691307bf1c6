# Sanitizers hold for everything that is linked, so they are set for the whole tree. Any finding ends
# the program: a test that only prints one would pass.
if(OCTAVO_SANITIZE)
    add_compile_options(-fsanitize=${OCTAVO_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${OCTAVO_SANITIZE})
endif()

# libFuzzer needs coverage in all code that it drives, before the targets exist.
if(OCTAVO_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
    add_link_options(-fsanitize=fuzzer-no-link)
endif()
