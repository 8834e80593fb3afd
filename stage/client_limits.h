#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/saved/saved_state.h"
#include "stage/config/client_limit_settings.h"
#include "stage/held.h"

namespace vpfs::stage {

// Keeps held requests from taking all connections of a client node. It is for protocols whose
// connections carry one request at a time: a node has few connections for all of its applications,
// and each held request takes one. The applications with held requests share an allowance of the
// node's connections; their requests at the server count too. Requests beyond the allowance are
// refused, which frees their connections, and the client retries. The youngest request of an
// application with more than its part is refused first, or else the youngest of all. Applications
// whose requests are forwarded at once do not count.
//
// A refusal costs its application seconds, so it must help another one. If the allowance is not
// configured, requests are refused only while the client has no free connection, and only those of
// an application whose requests wait several times as long as those of the client's quickest one.
// One that always has a request here is not the quickest: it gets its share of the server as it is.
//
// A retry is as old as its first try, so no request waits for ever. Retries are finite and may be
// immediate: a read is sent back a few times only, and a write that returns at once stays.
//
// The work for a request does not depend on how many applications a node has shown. Only the work
// for a refusal grows with the applications that have held requests.
//
// Not thread-safe: its stage owns it.
class ClientLimits {
 public:
  using Settings = ClientLimitSettings;
  static constexpr std::size_t kLeast = 4;
  // A kernel client gives a read up after about thirty such answers (with the default of
  // connCommRetrySecs), and they may have other causes too.
  static constexpr std::uint32_t kMostTimes = 12;
  // Writes of mapped files in its page cache return without a pause, and would be sent back and
  // forth with all their data.
  static constexpr Duration kAtOnce = std::chrono::seconds(1);
  // An application counts as fast if its last request waited less than this and it has had none
  // held for this long without a break. A server that is busy for a moment makes no application
  // slow.
  static constexpr Duration kPassing = std::chrono::milliseconds(100);
  // An application is not fast for this long after more than its part was held: its refused
  // requests return in five seconds.
  static constexpr Duration kGreedy = std::chrono::seconds(6);
  // Requests are refused only if they wait so many times as long as those of the quickest one.
  static constexpr int kLag = 4;
  // They wait at least so long, or kPassing if some of the client's requests are at the server.
  static constexpr Duration kLeastLag = std::chrono::milliseconds(10);

  void configure(const Settings& settings) { settings_ = settings; }

  // A connection of the client with that name (address and number) opens, or closes.
  [[nodiscard]] ClientId join(const std::string& name);
  void leave(ClientId client);

  // The life of a request with a client: queued, then dispatched() or withdrawn(), and finished()
  // after it was dispatched.
  void queued(Held& io, TimePoint now);
  void dispatched(Held& io, TimePoint now);
  void withdrawn(Held& io);
  void finished(const Held& io);

  // The next request to refuse, still in the scheduler; nullptr: there is none. It counts as
  // withdrawn and remembered from now on.
  [[nodiscard]] Held* take_excess(TimePoint now);

  // What is remembered of clients, by their names, for a successor: before any of them joins.
  void save(SavedState& to) const;
  void restore(const SavedState& from);

  // For status and the log.
  struct Report {
    const std::string& name;
    std::size_t connections;
    std::optional<std::size_t> allowance;  // in force
    std::uint64_t refused;
  };
  [[nodiscard]] std::size_t size() const { return clients_.size(); }
  [[nodiscard]] Report report(ClientId client, TimePoint now) const;
  // Applications and held requests visited so far: a measure of the work.
  [[nodiscard]] std::uint64_t looks() const { return looks_; }

 private:
  struct Application {
    std::uint32_t generation = 0;  // of its number
    std::vector<Held*> held;       // each at its Held::held_at
    std::size_t outstanding = 0;
    std::size_t place = 0;      // in Client::waiting, while something is held
    TimePoint held_since = {};  // since when something is, without a break
    TimePoint last_seen = {};
    std::optional<Duration> last_wait;  // of the last request forwarded
    TimePoint last_forwarded = {};
    Duration usual_wait = {};         // of the last few requests forwarded, on average
    std::optional<TimePoint> greedy;  // when more than its part was held

    [[nodiscard]] std::size_t taken() const { return held.size() + outstanding; }
  };
  struct Seen {
    VirtualPfsId id;
    TimePoint last = {};
  };
  // The application whose requests have waited least lately, of those that are not backlogged.
  struct Quickest {
    VirtualPfsId id;
    Duration wait = {};
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
    std::size_t present = 0;           // requests here and at the server
    std::size_t busy = 0;              // applications that have some
    std::optional<Seen> last, before;  // the last two that asked
    std::optional<Quickest> quickest;
    std::unordered_map<std::uint64_t, Refused> refused_requests;  // by fingerprint
    TimePoint tidied = {};                                        // these
    std::uint64_t refused = 0;
    bool touched = false;
    bool vacant = false;  // is in vacant_
  };
  // The client's waiting applications whose requests are not forwarded at once.
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
  // It had something held for kPassing without a break, so it gets what its share allows. More
  // connections would not help it.
  [[nodiscard]] static bool is_backlogged(const Application& application, TimePoint now);
  static void note_wait(Client& client, Application& application, const Held& io, TimePoint now);
  // The requests of the application wait much longer than those of the quickest one.
  [[nodiscard]] static bool lags(const Client& client, const Application& application,
                                 TimePoint now);
  [[nodiscard]] bool is_slow(const Client& client, const Application& application,
                             std::size_t allowance, TimePoint now) const;
  [[nodiscard]] Slow slow_ones(const Client& client, std::size_t allowance, TimePoint now);
  [[nodiscard]] Held* youngest_of(const Application& application);
  [[nodiscard]] Held* choose(Client& client, TimePoint now);
  [[nodiscard]] static bool may_be_sent_back(const Held& io);
  static void remember(Client& client, const Held& io, TimePoint now);

  Settings settings_;
  std::deque<Client> clients_;   // never moved: they point into themselves
  std::deque<ClientId> vacant_;  // once without a connection, the longest ago first
  std::unordered_map<std::string, ClientId> by_name_;
  std::vector<ClientId> touched_;  // got a request since the last call
  std::uint64_t looks_ = 0;
};

}  // namespace vpfs::stage
