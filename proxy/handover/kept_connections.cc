#include "proxy/handover/kept_connections.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "proxy/handover/connection_keeper.h"
#include "proxy/handover/rest_journal.h"
#include "proxy/handover/stream_counts.h"

namespace vpfs::proxy {
namespace {

// Sockets by their cookies. A manager may have copies of one.
class KeptSockets {
 public:
  void add(net::Descriptor socket) {
    if (const auto counts = stream_counts(socket.get())) {
      sockets_.emplace(counts->cookie, Socket{.counts = *counts, .descriptor = std::move(socket)});
    } else {
      end(socket);
    }
  }

  [[nodiscard]] bool has(const StreamCounts& counts) const {
    const auto found = sockets_.find(counts.cookie);
    return found != sockets_.end() && found->second.counts == counts;
  }
  [[nodiscard]] net::Descriptor take(const StreamCounts& counts) {
    return std::move(sockets_.extract(counts.cookie).mapped().descriptor);
  }

  // Returns how many have ended.
  std::size_t end_the_rest() {
    for (auto& [cookie, socket] : sockets_) end(socket.descriptor);
    sockets_.clear();
    return ended_;
  }

 private:
  struct Socket {
    StreamCounts counts;
    net::Descriptor descriptor;
  };

  // For the manager too, which drops it then.
  void end(net::Descriptor& socket) {
    end_stream(socket.get());
    socket.close();
    ++ended_;
  }

  std::map<std::uint64_t, Socket> sockets_;
  std::size_t ended_ = 0;
};

Result<std::vector<RestRecord>> records_of(const net::Descriptor& journal) {
  if (!journal) return fail("there is none");
  return RestJournal::read(journal.get());
}

}  // namespace

KeptConnections take_kept_connections(net::Inherited& kept, bool are_wanted) {
  KeptConnections all;
  const net::Descriptor journal = kept.take(ConnectionKeeper::kJournalName);
  KeptSockets sockets;
  for (auto& [name, socket] : kept.take_all(ConnectionKeeper::kSocketNames)) {
    sockets.add(std::move(socket));
    all.names.insert(name);
  }
  if (all.names.empty()) return all;
  Result<std::vector<RestRecord>> records =
      are_wanted ? records_of(journal) : fail("connections are not kept any more");
  if (!records) {
    all.problem = records.error().message;
    records.emplace();
  }
  for (RestRecord& each : *records) {
    if (!sockets.has(each.client) || !sockets.has(each.server)) continue;
    if (each.client.cookie == each.server.cookie) continue;
    all.connections.push_back({.state = std::move(each.state),
                               .client = sockets.take(each.client),
                               .server = sockets.take(each.server)});
  }
  all.ended = sockets.end_the_rest();
  return all;
}

}  // namespace vpfs::proxy
