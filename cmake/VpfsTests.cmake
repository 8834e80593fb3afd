# How tests are built. There are three kinds:
#
#   vpfs_test(...)           tests parts of vpfs within its own process; built with every sanitizer.
#   programs_test            starts programs of vpfs and has nothing of its own to sanitize. It is built
#                            once, without a sanitizer; VPFS_PROGRAMS says whose programs it starts.
#   timing_test              the same for what compares rates, shares or times by the clock on the wall:
#                            it runs once, without a sanitizer, and with nothing beside it.
include(GoogleTest)

# Names the places that only a build knows; see test/support/places.h.
function(vpfs_test_places target)
  target_compile_definitions(${target} PRIVATE VPFS_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                               VPFS_BIN_DIR="${PROJECT_BINARY_DIR}/bin")
endfunction()

# vpfs_test(NAME SOURCES ... LINK ... [LABEL unit|integration] [TIMEOUT seconds] [ASIO]): one
# GoogleTest program; every TEST in it is a test of ctest. ASIO says that it links asio, which decides
# whose precompiled headers it shares: they halve the time to build it.
function(vpfs_test name)
  cmake_parse_arguments(ARG "ASIO" "LABEL;TIMEOUT" "SOURCES;LINK" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  vpfs_test_executable(${name} ${ARG_ASIO})
  target_sources(${name} PRIVATE ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
                       PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()

function(vpfs_test_executable name asio)
  add_executable(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE vpfs_base vpfs_places GTest::gtest GTest::gmock
                                        GTest::gtest_main)
  if(asio)
    target_precompile_headers(${name} REUSE_FROM vpfs_asio_test_headers)
  else()
    target_precompile_headers(${name} REUSE_FROM vpfs_test_headers)
  endif()
endfunction()

# vpfs_programs_test(NAME): programs_test or timing_test; folders add to it with vpfs_program_tests().
function(vpfs_programs_test name label)
  if(VPFS_SANITIZE)
    return()
  endif()
  vpfs_test_executable(${name} TRUE)
  add_dependencies(${name} programs)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES LABELS "${label}" TIMEOUT 300)
endfunction()

# vpfs_program_tests(programs_test|timing_test SOURCES ... LINK ...)
function(vpfs_program_tests name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  if(NOT TARGET ${name})
    return()
  endif()
  target_sources(${name} PRIVATE ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
endfunction()
