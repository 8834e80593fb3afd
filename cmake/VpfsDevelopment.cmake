# The library of those who write policies (docs/schedulers.md), with its headers, for CMake's
# find_package(vpfs) and for pkg-config. A plugin has a copy of what it uses of it: so no program of
# ours exports anything, and the code that they run is compiled without regard to plugins.
if(VPFS_SANITIZE)
  return()
endif()
include(CMakePackageConfigHelpers)

set(vpfs_development_headers
    base/check.h base/clock.h base/config/errors.h base/config_reader.h base/io_kind.h base/result.h
    base/saved/saved_state.h base/units.h base/wide.h schedulers/conformance/rules.h
    schedulers/policies/registry.h)
file(GLOB vpfs_scheduler_headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/schedulers/*.h)
list(APPEND vpfs_development_headers ${vpfs_scheduler_headers})

# What policies need of base/, and all of schedulers/.
set(vpfs_development_sources
    base/byte_reader.cc base/check.cc base/config/errors.cc base/config_reader.cc
    base/nearest_word.cc base/one_line.cc base/saved/saved_state.cc base/units.cc base/utf8.cc
    base/yaml_tree.cc)
foreach(library vpfs_schedulers vpfs_conformance)
  get_target_property(sources ${library} SOURCES)
  list(TRANSFORM sources PREPEND schedulers/)
  list(APPEND vpfs_development_sources ${sources})
endforeach()

add_library(vpfs_scheduler_development STATIC ${vpfs_development_sources})
target_include_directories(vpfs_scheduler_development
  PRIVATE ${PROJECT_SOURCE_DIR} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(vpfs_scheduler_development PUBLIC fmt::fmt yaml-cpp)
target_compile_features(vpfs_scheduler_development PUBLIC cxx_std_23)
# Hidden, so that a plugin uses its own copy, and exports nothing of it. After -fPIE of
# VPFS_HARDENED.
target_compile_options(vpfs_scheduler_development PRIVATE -fPIC)
set_target_properties(vpfs_scheduler_development PROPERTIES
  OUTPUT_NAME vpfs-schedulers EXPORT_NAME schedulers CXX_VISIBILITY_PRESET hidden
  VISIBILITY_INLINES_HIDDEN ON)
vpfs_computes(vpfs_scheduler_development)
add_dependencies(programs vpfs_scheduler_development)

set(vpfs_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/vpfs)
set(vpfs_plugin_dir lib/vpfs/schedulers)
install(TARGETS vpfs_scheduler_development EXPORT vpfsTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT vpfs-dev)
install(EXPORT vpfsTargets NAMESPACE vpfs:: DESTINATION ${vpfs_package_dir} COMPONENT vpfs-dev)
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/vpfsConfig.cmake.in ${PROJECT_BINARY_DIR}/vpfsConfig.cmake
  INSTALL_DESTINATION ${vpfs_package_dir} PATH_VARS vpfs_plugin_dir)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/vpfsConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/vpfsConfig.cmake ${PROJECT_BINARY_DIR}/vpfsConfigVersion.cmake
        DESTINATION ${vpfs_package_dir} COMPONENT vpfs-dev)
file(RELATIVE_PATH vpfs_prefix_of_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/vpfs-schedulers.pc.in
               ${PROJECT_BINARY_DIR}/vpfs-schedulers.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/vpfs-schedulers.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT vpfs-dev)

# In the sources, headers include each other from the root. Installed, that is the folder vpfs.
install(CODE "
  foreach(header ${vpfs_development_headers})
    file(READ \"${PROJECT_SOURCE_DIR}/\${header}\" text)
    string(REGEX REPLACE \"(#include \\\")(base|schedulers)/\" \"\\\\1vpfs/\\\\2/\"
           text \"\${text}\")
    set(headers \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/vpfs\")
    set(place \"\${headers}/\${header}\")
    file(WRITE \"\${place}\" \"\${text}\")
    file(CHMOD \"\${place}\" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  endforeach()" COMPONENT vpfs-dev)
