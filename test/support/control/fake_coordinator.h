#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "test/support/control/raw_peer.h"

namespace vpfs::test {

// A coordinator that stages connect to, on a UNIX socket. What it says is the test's. Its calls
// block, with a time-out.
class FakeCoordinator {
 public:
  // The socket is there until the end of this object.
  explicit FakeCoordinator(const std::string& socket_path);
  ~FakeCoordinator();
  FakeCoordinator(const FakeCoordinator&) = delete;
  FakeCoordinator& operator=(const FakeCoordinator&) = delete;

  // The next connection of a stage; nothing after `patience`.
  std::optional<RawPeer> accept(std::chrono::milliseconds patience = 5s);
  // The same, once they have said Hello to each other.
  std::optional<RawPeer> greeted();

  // Whether a stage comes within `patience`, and is told that this one is a standby.
  bool refuses_as_standby(std::chrono::milliseconds patience = 5s);

  [[nodiscard]] static control::Envelope hello(std::uint64_t answers_to);

 private:
  const std::string path_;
  int socket_ = -1;
};

}  // namespace vpfs::test
