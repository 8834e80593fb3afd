#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "base/saved/saved_state.h"
#include "net/descriptor.h"
#include "net/inherited.h"

namespace vpfs::proxy {

// The connections of a process that has ended by a crash, as the service manager kept them
// (docs/decisions/0072-connections-over-a-crash.md).
struct KeptConnections {
  struct Connection {
    SavedState state;  // of its session
    net::Descriptor client;
    net::Descriptor server;
  };
  std::vector<Connection> connections;
  // Sockets of others, which are closed: no record says that they were at rest.
  std::size_t ended = 0;
  std::set<std::string> names;  // that the manager has for all of them
  std::string problem;          // why no record counts; empty: they count
};

// Takes the journal and the sockets out of what the manager has kept. `are_wanted`: otherwise all
// of the connections are closed.
[[nodiscard]] KeptConnections take_kept_connections(net::Inherited& kept, bool are_wanted);

}  // namespace vpfs::proxy
