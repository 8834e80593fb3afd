# There are four kinds of test programs:
#
#   vpfs_test(...)       tests code within its own process; built with every sanitizer, unless its
#                        label is bare: then it measures what a sanitizer changes, or computes
#                        over long runs what others check in short ones.
#   programs_test        starts programs and has nothing of its own to sanitize. It is built once,
#                        without a sanitizer. VPFS_PROGRAMS chooses the programs that it starts.
#   bare_programs_test   like programs_test, but measures what a sanitizer changes, or does more
#                        without one. It runs with the programs of dev too.
#   timing_test          like programs_test, but compares rates, shares or times by the wall clock.
#                        It runs once, with the programs of dev, and no other test runs meanwhile.
include(GoogleTest)

# Defines paths that only the build knows, for test/support/places.h.
function(vpfs_test_places target)
  target_compile_definitions(${target} PRIVATE VPFS_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                               VPFS_BIN_DIR="${PROJECT_BINARY_DIR}/bin")
endfunction()

# The target `tests_within_a_process` builds all programs of vpfs_test() and vpfs_fuzz(),
# `bare_tests` those with the label bare.
add_custom_target(tests_within_a_process)
add_custom_target(bare_tests)

# vpfs_test(NAME SOURCES ... LINK ... [LABEL unit|integration|bare] [SHARDS n] [ASIO]): one
# GoogleTest program. It is one test of ctest, since a process for each TEST would take more time
# than most TESTs do. SHARDS is for programs that take long: so many processes share its TESTs. Each
# process writes what GoogleTest reports to <build>/reports/TEST.xml, where script/test counts
# TESTs; <build>/reported_tests.txt has the names of these tests. ASIO is for programs that link
# asio: it chooses the precompiled headers, which halve the build time.
set(VPFS_TEST_REPORTS ${PROJECT_BINARY_DIR}/reports)
set_property(GLOBAL PROPERTY VPFS_REPORTED_TESTS "")
function(vpfs_test name)
  cmake_parse_arguments(ARG "ASIO" "LABEL;SHARDS" "SOURCES;LINK" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  if(VPFS_SANITIZE AND ARG_LABEL STREQUAL bare)
    return()
  endif()
  vpfs_test_executable(${name} ${ARG_ASIO})
  add_dependencies(tests_within_a_process ${name})
  if(ARG_LABEL STREQUAL bare)
    add_dependencies(bare_tests ${name})
  endif()
  target_sources(${name} PRIVATE ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  foreach(shard RANGE 1 ${ARG_SHARDS})
    set(test ${name})
    if(ARG_SHARDS GREATER 1)
      string(APPEND test .${shard})
    endif()
    math(EXPR index "${shard} - 1")
    add_test(NAME ${test} COMMAND ${name} --gtest_output=xml:${VPFS_TEST_REPORTS}/${test}.xml)
    set_tests_properties(${test} PROPERTIES
      LABELS ${ARG_LABEL} TIMEOUT 300
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
    if(ARG_SHARDS GREATER 1)
      set_tests_properties(${test} PROPERTIES COST 100)  # ctest starts these first
    endif()
    set_property(GLOBAL APPEND_STRING PROPERTY VPFS_REPORTED_TESTS "${test}\n")
  endforeach()
endfunction()

function(vpfs_test_executable name asio)
  add_executable(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE vpfs_base vpfs_places vpfs_test_logger GTest::gtest
                                        GTest::gmock GTest::gtest_main)
  vpfs_use_headers(${name} ${asio} TRUE)
endfunction()

# vpfs_programs_test(NAME LABEL): makes a program whose tests start programs. Folders add sources to
# it with vpfs_program_tests().
function(vpfs_programs_test name label)
  if(VPFS_SANITIZE)
    return()
  endif()
  vpfs_test_executable(${name} TRUE)
  add_dependencies(${name} programs)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES LABELS "${label}" TIMEOUT 300)
endfunction()

# vpfs_program_tests(programs_test|bare_programs_test|timing_test SOURCES ... LINK ...)
function(vpfs_program_tests name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  if(NOT TARGET ${name})
    return()
  endif()
  target_sources(${name} PRIVATE ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
endfunction()
