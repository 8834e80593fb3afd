#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace vpfs {

// Sends entries to the journal of systemd, as https://systemd.io/JOURNAL_NATIVE_PROTOCOL/ says. Not
// thread-safe.
//
// libsystemd does the same, but brings six more libraries into every program that links it.
class Journal {
 public:
  explicit Journal(std::string path) : path_(std::move(path)) {}
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Name and value.
  using Fields = std::vector<std::pair<std::string_view, std::string>>;

  // `priority` as syslog has them. `fields`: those beside the usual ones; one without a value is
  // left out. Waits while the journal's queue is full. Fails if there is no
  // journal, or if the message is longer than a datagram, some 200 KiB.
  [[nodiscard]] Result<void> send(std::string_view program, int priority, std::string_view message,
                                  const Fields& fields = {});

 private:
  const std::string path_;
  int socket_ = -1;
};

}  // namespace vpfs
