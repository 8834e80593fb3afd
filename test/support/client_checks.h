#pragma once

#include <cstdint>

#include "client/orangefs/file_system.h"
#include "net/async.h"

// Checks of a client that hold on every server of the protocol, embedded or real. Each check makes
// and removes its own files, and reports through GoogleTest.
namespace vpfs::test {

void check_names(asio::io_context& loop, client::FileSystem& file_system);
void check_attributes(asio::io_context& loop, client::FileSystem& file_system);
void check_extended_attributes(asio::io_context& loop, client::FileSystem& file_system);
void check_long_directory(asio::io_context& loop, client::FileSystem& file_system);
// Compares random reads and writes of all sizes with a copy in memory.
void check_data(asio::io_context& loop, client::FileSystem& file_system, std::uint64_t seed);
void check_holes_and_truncation(asio::io_context& loop, client::FileSystem& file_system);
void check_concurrent_io(asio::io_context& loop, client::FileSystem& file_system);

}  // namespace vpfs::test
