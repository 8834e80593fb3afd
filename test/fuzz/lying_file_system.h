#pragma once

#include <memory>
#include <string>
#include <utility>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>

#include "base/system_clock.h"
#include "client/orangefs/file_system.h"
#include "dataserver/orangefs/server.h"
#include "net/listener.h"
#include "test/fuzz/lying_relay.h"

namespace vpfs::test {

// An OrangeFS server in memory and a client of it, on one thread; a relay between them lies for one
// of the two. Every operation ends: connections that are silent for long are cut.
class LyingFileSystem {
 public:
  LyingFileSystem(FuzzInput& lies, LyingRelay::Liar liar);
  ~LyingFileSystem();
  LyingFileSystem(const LyingFileSystem&) = delete;
  LyingFileSystem& operator=(const LyingFileSystem&) = delete;

  // Calls most of the client's operations, some of them with what the server told before.
  void use();
  // Whether a client that connects to the server itself is answered.
  [[nodiscard]] bool serves_others();

 private:
  void run(net::Task<> task);
  [[nodiscard]] net::Task<> use_through_relay();
  [[nodiscard]] net::Task<> ask_directly(bool& good);

  asio::io_context loop_{1};
  SystemClock clock_;
  LyingRelay relay_;
  std::unique_ptr<dataserver::Server> server_;
  net::Endpoint direct_;
};

}  // namespace vpfs::test
