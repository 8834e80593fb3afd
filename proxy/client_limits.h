#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "proxy/pending_io.h"

namespace vpfs::proxy {

// Where a client node's connections carry one request at a time it has few of them for all of its
// applications, and each request that is held takes one. This keeps an application from taking
// them all: of what it has beyond a limit, the youngest requests are to be refused, so that their
// connections are free and the client comes again with them. A request that comes again is as old
// as it was the first time, so none of them waits for ever. Clients do not come again for ever, and
// some do at once: a read is sent back so many times only, and a write that is back in no time
// stays.
//
// Not thread-safe: the dispatcher guards it.
class ClientLimits {
 public:
  struct Settings {
    // What an application may have held and outstanding from one client. Nothing: two thirds of the
    // most connections that the client has had open, at least kLeast, and no limit while it shows
    // one application only.
    std::optional<std::size_t> most;
    bool enabled = true;
  };
  static constexpr std::size_t kLeast = 4;
  // A kernel client gives a read up after some thirty answers of this kind (with the default of
  // connCommRetrySecs), and other reasons for them need some.
  static constexpr std::uint32_t kMostTimes = 12;
  // Writes of its page cache's mapped files come again without a pause: they would be sent back
  // and forth with all their data.
  static constexpr Duration kAtOnce = std::chrono::seconds(1);

  void configure(const Settings& settings) { settings_ = settings; }

  // A connection of the client with that name (address and number) is there, or not any more.
  [[nodiscard]] ClientId join(const std::string& name);
  void leave(ClientId client);

  // What becomes of a request with a client. A queued one is dispatched() or withdrawn(), a
  // dispatched one finished().
  void queued(PendingIo& io, TimePoint now);
  void dispatched(PendingIo& io);
  void withdrawn(PendingIo& io);
  void finished(const PendingIo& io);

  // A queued request that is to be refused, still queued; nullptr when there is none. It counts as
  // withdrawn and remembered from here on.
  [[nodiscard]] PendingIo* take_excess(TimePoint now);

  // For status and the log.
  struct Report {
    const std::string& name;
    std::size_t connections;
    std::optional<std::size_t> limit;  // in force
    std::uint64_t refused;
  };
  [[nodiscard]] std::size_t size() const { return clients_.size(); }
  [[nodiscard]] Report report(ClientId client, TimePoint now) const;

 private:
  struct Application {
    AppId app = {};
    std::vector<PendingIo*> held;
    std::size_t outstanding = 0;
    TimePoint last_seen = {};
  };
  struct Refused {
    TimePoint first_seen = {};
    TimePoint last = {};
    std::uint32_t times = 0;
  };
  struct Client {
    std::string name;
    std::size_t connections = 0;
    std::size_t most_connections = 0;
    std::vector<Application> applications;
    std::unordered_map<std::uint64_t, Refused> refused_requests;  // by fingerprint
    std::uint64_t refused = 0;
    bool touched = false;
    bool vacant = false;  // is in vacant_
  };

  [[nodiscard]] ClientId make(const std::string& name);
  [[nodiscard]] Client& client_of(const PendingIo& io) {
    return clients_[static_cast<std::size_t>(io.client)];
  }
  [[nodiscard]] static Application& application_of(Client& client, AppId app);
  [[nodiscard]] static Application& present_application(Client& client, AppId app, TimePoint now);
  [[nodiscard]] static bool is_present(const Application& application, TimePoint now);
  [[nodiscard]] std::size_t limit_of(const Client& client, TimePoint now) const;
  [[nodiscard]] static bool may_be_sent_back(const PendingIo& io);
  static void remember(Client& client, const PendingIo& io, TimePoint now);
  void remove_held(PendingIo& io);

  Settings settings_;
  std::vector<Client> clients_;
  std::deque<ClientId> vacant_;  // had no connection at a time, the longest ago first
  std::unordered_map<std::string, ClientId> by_name_;
  std::vector<ClientId> touched_;  // have got a request since the last look
};

}  // namespace vpfs::proxy
