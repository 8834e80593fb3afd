#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "stage/held.h"

namespace vpfs::stage {

// Where a client node's connections carry one request at a time it has few of them for all of its
// applications, and each request that is held takes one. This keeps those that wait from taking
// them all: a node has an allowance of connections for the requests of its applications that have
// some held, and what these have at the server counts with it. Beyond it requests are refused, so
// that their connections are free and the client comes again with them: the youngest of whoever has
// more than its part of the allowance, or, where nobody has, the youngest of all. An application
// whose requests are passed on at once takes no part in this.
//
// A request that comes again is as old as it was the first time, so none of them waits for ever.
// Clients do not come again for ever, and some do at once: a read is sent back so many times only,
// and a write that is back in no time stays.
//
// The work for a request does not grow with the applications that a node has shown, only, where
// it is one too many, with those that have requests held.
//
// Not thread-safe: the dispatcher guards it.
class ClientLimits {
 public:
  struct Settings {
    // The allowance of each client. Nothing: two thirds of the most connections that the client has
    // had open, at least kLeast, and no limit while it shows one application only.
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
  // An application's requests are passed on at once where its last one has waited less than this,
  // and it has not had any held for so long without a break: a server that is busy for a moment
  // makes nobody slow.
  static constexpr Duration kPassing = std::chrono::milliseconds(100);
  // But not for so long after it has had more than its part held: what is sent back comes again in
  // five seconds.
  static constexpr Duration kGreedy = std::chrono::seconds(6);

  void configure(const Settings& settings) { settings_ = settings; }

  // A connection of the client with that name (address and number) is there, or not any more.
  [[nodiscard]] ClientId join(const std::string& name);
  void leave(ClientId client);

  // What becomes of a request with a client. A queued one is dispatched() or withdrawn(), a
  // dispatched one finished().
  void queued(Held& io, TimePoint now);
  void dispatched(Held& io, TimePoint now);
  void withdrawn(Held& io);
  void finished(const Held& io);

  // A queued request that is to be refused, still queued; nullptr when there is none. It counts as
  // withdrawn and remembered from here on.
  [[nodiscard]] Held* take_excess(TimePoint now);

  // For status and the log.
  struct Report {
    const std::string& name;
    std::size_t connections;
    std::optional<std::size_t> allowance;  // in force
    std::uint64_t refused;
  };
  [[nodiscard]] std::size_t size() const { return clients_.size(); }
  [[nodiscard]] Report report(ClientId client, TimePoint now) const;
  // Applications and held requests looked at so far: what the work grows with.
  [[nodiscard]] std::uint64_t looks() const { return looks_; }

 private:
  struct Application {
    std::uint32_t generation = 0;  // of its number
    std::vector<Held*> held;       // each at its Held::held_at
    std::size_t outstanding = 0;
    std::size_t place = 0;      // in Client::waiting, while something is held
    TimePoint held_since = {};  // since when something is, without a break
    TimePoint last_seen = {};
    std::optional<Duration> last_wait;  // of what was passed on last
    std::optional<TimePoint> greedy;    // when it had more than its part held

    [[nodiscard]] std::size_t taken() const { return held.size() + outstanding; }
  };
  struct Seen {
    VirtualPfsId id;
    TimePoint last = {};
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
    std::unordered_map<AppId, Application> applications;
    std::size_t tidy_at = 64;           // applications
    std::vector<Application*> waiting;  // those with something held
    std::size_t taken = 0;              // by these
    std::size_t held = 0;
    std::size_t busy = 0;              // applications that have something here or at the server
    std::optional<Seen> last, before;  // the two that have asked last
    std::unordered_map<std::uint64_t, Refused> refused_requests;  // by fingerprint
    TimePoint tidied = {};                                        // these
    std::uint64_t refused = 0;
    bool touched = false;
    bool vacant = false;  // is in vacant_
  };
  // Of a client's waiting applications those that are not passed on at once.
  struct Slow {
    std::size_t count = 0;
    std::size_t taken = 0;
  };

  [[nodiscard]] ClientId make(const std::string& name);
  [[nodiscard]] Client& client_of(const Held& io) {
    return clients_[static_cast<std::size_t>(io.client)];
  }
  [[nodiscard]] static Application& application_of(Client& client, AppId app);
  [[nodiscard]] Application& present_application(Client& client, VirtualPfsId id, TimePoint now);
  static void add_held(Client& client, Application& application, Held& io, TimePoint now);
  static void remove_held(Client& client, Held& io);
  [[nodiscard]] static bool shows_several(const Client& client, TimePoint now);
  [[nodiscard]] std::size_t allowance_of(const Client& client, TimePoint now) const;
  [[nodiscard]] static bool is_slow(const Client& client, const Application& application,
                                    std::size_t allowance, TimePoint now);
  [[nodiscard]] Slow slow_ones(const Client& client, std::size_t allowance, TimePoint now);
  [[nodiscard]] Held* youngest_of(const Application& application);
  [[nodiscard]] Held* choose(Client& client, TimePoint now);
  [[nodiscard]] static bool may_be_sent_back(const Held& io);
  static void remember(Client& client, const Held& io, TimePoint now);

  Settings settings_;
  std::deque<Client> clients_;   // none is ever moved: they point into themselves
  std::deque<ClientId> vacant_;  // had no connection at a time, the longest ago first
  std::unordered_map<std::string, ClientId> by_name_;
  std::vector<ClientId> touched_;  // have got a request since the last look
  std::uint64_t looks_ = 0;
};

}  // namespace vpfs::stage
