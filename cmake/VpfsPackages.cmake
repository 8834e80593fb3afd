# All dependencies are packages of the distribution; script/bootstrap installs them.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
# Makes manual pages and completions.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Protobuf REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(prometheus-cpp REQUIRED COMPONENTS core)
if(VPFS_TESTS)
  find_package(GTest REQUIRED)
endif()
pkg_check_modules(libpcap REQUIRED IMPORTED_TARGET libpcap)
pkg_check_modules(fuse3 REQUIRED IMPORTED_TARGET fuse3)
pkg_check_modules(liburing REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(cpp_httplib REQUIRED IMPORTED_TARGET cpp-httplib)
pkg_check_modules(ncursesw REQUIRED ncursesw)
find_path(ASIO_INCLUDE_DIR asio.hpp REQUIRED)
find_path(LMDB_INCLUDE_DIR lmdb.h REQUIRED)
find_library(LMDB_LIBRARY lmdb REQUIRED)

# Debian's Slurm has its plugins in a directory of another name than Slurm's own.
find_path(VPFS_SLURM_HEADERS slurm/spank.h)
if(EXISTS /etc/debian_version)
  set(VPFS_SLURM_PLUGINS ${CMAKE_INSTALL_LIBDIR}/slurm-wlm CACHE STRING
      "Directory of Slurm's plugins, below the prefix")
else()
  set(VPFS_SLURM_PLUGINS ${CMAKE_INSTALL_LIBDIR}/slurm CACHE STRING
      "Directory of Slurm's plugins, below the prefix")
endif()

add_library(vpfs_asio INTERFACE)
target_include_directories(vpfs_asio SYSTEM INTERFACE ${ASIO_INCLUDE_DIR})
# asio looks whether the standard library has aligned_alloc() before it includes the library, so its
# answer depends on what a source includes first. One source then frees what another allocated.
target_compile_definitions(vpfs_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED
                                               ASIO_DISABLE_STD_ALIGNED_ALLOC)
target_link_libraries(vpfs_asio INTERFACE Threads::Threads)

add_library(vpfs_lmdb INTERFACE)
target_include_directories(vpfs_lmdb SYSTEM INTERFACE ${LMDB_INCLUDE_DIR})
target_link_libraries(vpfs_lmdb INTERFACE ${LMDB_LIBRARY})

# Without the macros of its pkg-config file, which redefine those of the compiler.
add_library(vpfs_ncurses INTERFACE)
target_link_libraries(vpfs_ncurses INTERFACE ${ncursesw_LINK_LIBRARIES})
