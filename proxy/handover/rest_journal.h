#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/saved/saved_state.h"
#include "net/descriptor.h"
#include "proxy/handover/stream_counts.h"

namespace vpfs::proxy {

// A connection as it was when it was at rest: what the kernel had counted on either socket, and
// what a session needs to go on from there. It holds for as long as the kernel counts the same.
struct RestRecord {
  StreamCounts client;
  StreamCounts server;
  SavedState state;
};

// Records of connections at rest in memory that outlives the process, for the next process after a
// crash (docs/decisions/0072-connections-over-a-crash.md). Each place has one record, or none.
class RestJournal {
 public:
  static constexpr std::size_t kMostPlaces = 4096;

  // Nothing in it counts before open(). REQUIRES: places <= kMostPlaces.
  [[nodiscard]] static Result<RestJournal> make(std::size_t places);
  ~RestJournal();
  RestJournal(RestJournal&& other) noexcept;
  RestJournal& operator=(RestJournal&&) = delete;

  // The memory, for the service manager; borrowed.
  [[nodiscard]] int descriptor() const { return memory_.get(); }

  // For the thread that has the place. False: the state is too long, and the place has no record.
  [[nodiscard]] bool write(std::size_t place, const RestRecord& record);
  void clear(std::size_t place);

  // Whether the records count. Any thread.
  void open();
  void close();

  // Reads that of a process that has ended, whatever the descriptor is. The error says why none of
  // its records count.
  [[nodiscard]] static Result<std::vector<RestRecord>> read(int descriptor);

 private:
  struct Header;
  struct Place;

  RestJournal(net::Descriptor memory, std::span<std::byte> bytes)
      : memory_(std::move(memory)), bytes_(bytes) {}
  [[nodiscard]] Header& header();
  [[nodiscard]] Place& at(std::size_t place);

  net::Descriptor memory_;
  std::span<std::byte> bytes_;
};

}  // namespace vpfs::proxy
