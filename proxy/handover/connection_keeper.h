#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/saved/saved_state.h"
#include "net/descriptor.h"
#include "net/manager/manager_socket.h"
#include "proxy/handover/rest_journal.h"

namespace vpfs::proxy {

// Has the service manager keep connections that are at rest, and a journal of them, so that they
// outlive a crash of this process (docs/decisions/0072-connections-over-a-crash.md). A connection
// has a place in both. The manager drops a socket by itself when the connection ends.
//
// Any thread, where nothing else is said.
class ConnectionKeeper {
 public:
  // The names that the manager knows the journal and the sockets by; the latter with more behind.
  static constexpr const char* kJournalName = "proxy.connections";
  static constexpr const char* kSocketNames = "conn-";

  // For `most` connections, or as many as the manager keeps. Null: it keeps too few, or none has
  // started this program.
  [[nodiscard]] static std::unique_ptr<ConnectionKeeper> make(std::size_t most);
  ConnectionKeeper(const ConnectionKeeper&) = delete;
  ConnectionKeeper& operator=(const ConnectionKeeper&) = delete;

  // Sockets that the manager kept for the process before have these names. Before start().
  void adopt(std::set<std::string> names);
  // The records count from now on, and the manager is told.
  void start() { journal_.open(); }
  // Borrowed.
  [[nodiscard]] int journal() const { return journal_.descriptor(); }
  // Places in use.
  [[nodiscard]] std::size_t kept() const { return kept_.load(std::memory_order_relaxed); }

  // Whether take_place() gives none for now. Cheap.
  [[nodiscard]] bool is_full() const {
    return kept() >= places_ || is_over_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::optional<std::size_t> take_place(TimePoint now);
  void give_back(std::size_t place, TimePoint now);
  // The connection of the place is at rest. False: that cannot be recorded.
  [[nodiscard]] bool record(std::size_t place, std::array<int, 2> sockets, SavedState state);
  // The manager is to keep copies of them; tell_some() tells it.
  void offer(std::array<int, 2> sockets);

  // Tells what a busy manager takes at once, and not very much; a few times a second. From one
  // thread.
  void tell_some();

  // A hand-over: no record counts between pause() and go_on(). leave(): another process has the
  // connections, and the manager drops its copies.
  void pause() { journal_.close(); }
  void go_on() { journal_.open(); }
  void leave();

 private:
  struct Message {
    std::string words;
    std::array<net::Descriptor, 2> sockets;
  };

  ConnectionKeeper(net::ManagerSocket manager, RestJournal journal, std::size_t places);
  [[nodiscard]] std::optional<Message> next_message();
  void put_back(Message message);
  void give_up(int error);

  const net::ManagerSocket manager_;
  RestJournal journal_;
  const std::size_t places_;
  std::set<std::string> names_;  // of what the manager has; the first is for more
  std::atomic<std::size_t> kept_ = 0;
  std::atomic<bool> is_over_ = false;                   // nothing more is offered
  std::mutex mutex_;                                    // guards what follows
  std::deque<std::pair<TimePoint, std::size_t>> free_;  // places, and since when
  std::deque<Message> untold_;
};

}  // namespace vpfs::proxy
