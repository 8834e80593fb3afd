#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/gate/stage_gate.h"
#include "control/wire/control.pb.h"
#include "proxy/shown_identities.h"
#include "stage/config/config.h"

namespace vpfs::proxy {

// A connection, and what it has shown.
struct ShownConnection {
  std::string address;  // of its client
  std::vector<ShownIdentities::Row> rows;
};

// Collects the connections of all workers, client by client. Belongs to the main thread.
class ClientList {
 public:
  void add(std::vector<ShownConnection> connections);
  // As messages, with the names of virtual PFSes and rules. Bytes of clients that are not UTF-8 or
  // not printable are replaced.
  [[nodiscard]] std::vector<control::Client> messages(control::StageGate& gate, TimePoint now,
                                                      const stage::Config& config) const;

 private:
  struct Client {
    std::uint32_t connections = 0;
    std::vector<ShownIdentities::Row> rows;
  };
  std::map<std::string, Client> clients_;  // by address
};

}  // namespace vpfs::proxy
