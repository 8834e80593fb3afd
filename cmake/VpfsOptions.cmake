# Options of the build, and the compiler settings that all targets share.
option(VPFS_TESTS "Build the tests (needs GoogleTest)" OFF)
option(VPFS_BENCHMARKS "Build the programs that script/bench runs" OFF)
option(VPFS_WERROR "Treat compiler warnings as errors" OFF)
option(VPFS_CCACHE "Compile through ccache" OFF)
option(VPFS_HARDENED "Compile and link the programs so that faults in them are harder to use" OFF)
option(VPFS_SLURM "Build the plugin of Slurm where <slurm/spank.h> is found" ON)
option(VPFS_FUZZ "Build the libFuzzer targets (clang only)" OFF)
set(VPFS_SANITIZE "" CACHE STRING
    "Sanitizers, as -fsanitize= takes them: address,undefined or thread")

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

if(VPFS_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(VPFS_CCACHE_PROGRAM ccache REQUIRED)
  # Without the first, ccache does not cache objects that use a precompiled header. The others let
  # clones share objects that use none.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${VPFS_CCACHE_PROGRAM})
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-missing-field-initializers)
# Programs load only the libraries that they use.
add_link_options(LINKER:--as-needed)
if(VPFS_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # asio 1.22 does not detect coroutines in clang with libstdc++.
  add_compile_definitions(ASIO_HAS_CO_AWAIT=1 ASIO_HAS_STD_COROUTINE=1)
  add_compile_options(-Xclang -fno-pch-timestamp)
  # No object names the clone that it was compiled in.
  add_compile_options(-fdebug-compilation-dir=. -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 has false positives of these kinds in its own library and in coroutine frames.
  add_compile_options(-Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow
                      -Wno-array-bounds -Wno-tsan)
endif()
if(VPFS_HARDENED)
  add_compile_options(-fPIE -fstack-protector-strong -fstack-clash-protection -U_FORTIFY_SOURCE
                      -D_FORTIFY_SOURCE=3)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    add_compile_options(-fcf-protection=full)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64")
    add_compile_options(-mbranch-protection=standard)
  endif()
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>
                   LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack LINKER:--build-id=sha1)
endif()
if(VPFS_SANITIZE)
  add_compile_options(-fsanitize=${VPFS_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${VPFS_SANITIZE})
  if(NOT VPFS_FUZZ)
    # Tests start these programs thousands of times. Half of a start was relocations, in what
    # sanitizers know of variables and checks. A program at a fixed address needs none, and one
    # without unused code has less for them to know.
    add_compile_options(-fno-pie -ffunction-sections -fdata-sections)
    add_link_options(-no-pie LINKER:--gc-sections)
  endif()
  if(VPFS_SANITIZE MATCHES undefined)
    # This check opens a pipe when it first sees a type. If a test has used up all descriptors, it
    # reports correct code.
    add_compile_options(-fno-sanitize=vptr)
  endif()
endif()
if(VPFS_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
