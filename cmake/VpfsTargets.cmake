# vpfs_library(NAME SOURCES ... LINK ...): the one library of a folder.
function(vpfs_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
endfunction()

# vpfs_program(NAME SOURCES ... LINK ...): a program; all of them land in <build>/bin. The target
# `programs` builds them without the tests.
add_custom_target(programs)
function(vpfs_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  target_compile_definitions(${name} PRIVATE VPFS_VERSION="${PROJECT_VERSION}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  add_dependencies(programs ${name})
endfunction()

# vpfs_test(NAME SOURCES ... LINK ... [LABEL unit|integration] [TIMEOUT seconds] [ASIO]): one
# GoogleTest program; every TEST in it is a test of ctest. ASIO says that it links asio: then it shares
# the precompiled headers of vpfs_test_headers, which halves the time to build it.
include(GoogleTest)
function(vpfs_test_places name)
  target_compile_definitions(${name} PRIVATE VPFS_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             VPFS_BIN_DIR="${PROJECT_BINARY_DIR}/bin")
endfunction()
function(vpfs_test name)
  cmake_parse_arguments(ARG "ASIO" "LABEL;TIMEOUT" "SOURCES;LINK" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
  vpfs_test_places(${name})
  if(ARG_ASIO)
    target_precompile_headers(${name} REUSE_FROM vpfs_test_headers)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
                       PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()
