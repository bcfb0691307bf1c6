# liboctavo, shared and static, from the layers' objects. Only what include/octavo marks is exported.
# Before 1.0 every minor version may change the ABI, so the soname carries it.
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(octavo_soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
else()
    set(octavo_soversion ${PROJECT_VERSION_MAJOR})
endif()

if(octavo_objects)
    set(objects)
    foreach(layer IN LISTS octavo_objects)
        list(APPEND objects $<TARGET_OBJECTS:${layer}>)
    endforeach()

    add_library(octavo_shared SHARED ${objects})
    set_target_properties(octavo_shared PROPERTIES OUTPUT_NAME octavo EXPORT_NAME octavo
        VERSION ${PROJECT_VERSION} SOVERSION ${octavo_soversion} LINKER_LANGUAGE C)
    target_link_libraries(octavo_shared PRIVATE ${octavo_uses})
    if(NOT OCTAVO_SANITIZE AND NOT OCTAVO_FUZZ AND NOT APPLE)
        target_link_options(octavo_shared PRIVATE LINKER:--no-undefined)
    endif()

    add_library(octavo_static STATIC ${objects})
    set_target_properties(octavo_static PROPERTIES OUTPUT_NAME octavo EXPORT_NAME static LINKER_LANGUAGE C)
    target_link_libraries(octavo_static PRIVATE ${octavo_uses})

    foreach(library octavo_shared octavo_static)
        target_include_directories(${library} INTERFACE
            $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    endforeach()
endif()
