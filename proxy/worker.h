#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/saved/saved_state.h"
#include "base/system_clock.h"
#include "net/descriptor.h"
#include "net/endpoint.h"
#include "net/epoll_set.h"
#include "net/mailbox.h"
#include "net/polling/busy_poll.h"
#include "proxy/client_list.h"
#include "proxy/dispatcher.h"
#include "proxy/identifier.h"
#include "proxy/opening.h"
#include "proxy/pump/pump_thread.h"
#include "proxy/pump/socket_calls.h"
#include "proxy/shared_state.h"
#include "proxy/worker_settings.h"

namespace vpfs::proxy {

class Session;

// What a worker packs at most of held requests while nothing is dispatched, so that clients which
// hold very much cannot make hand-overs fail.
struct PackBudget {
  std::uint64_t bytes = std::uint64_t{64} << 20;
  std::uint64_t requests = 100'000;
};

// One thread of the proxy: its sessions, their buffers and their dealings with the dispatcher. It
// has an event loop of its own: a wait for all sockets, for what other threads post, and for one
// deadline. Before it sleeps it may poll (BusyPoll). Only the constructor, run() and the methods
// marked so may be called from other threads.
class Worker {
 public:
  Worker(std::size_t index, SharedState& shared, Dispatcher& dispatcher);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Serves until stop().
  void run();

  // From any thread.
  void adopt(int client_socket, const net::Endpoint& client);
  void wake_up();
  // Calls `done` on the worker's thread with all connections and what they have shown. Takes
  // several events, so that no request waits long.
  using ListDone = std::function<void(std::vector<ShownConnection> connections)>;
  void list_connections(ListDone done);
  void stop();
  // How often its loop has turned. It does several times a second, also when it is idle.
  [[nodiscard]] std::uint64_t turns() const { return turns_.load(std::memory_order_relaxed); }

  // A hand-over to another process; see Session::pack(). Each calls `done` on the worker's thread.
  struct Packed {
    SavedState state;
    std::array<int, 2> descriptors;  // borrowed from the session
    std::shared_ptr<Session> session;
  };
  using PackDone = std::function<void(std::vector<Packed> packed)>;
  // Takes what the dispatcher has released before it froze.
  void take_released(std::function<void()> done);
  // Sessions beyond the budget are left out.
  void pack(PackDone done, PackBudget budget = {});
  // Packed sessions go on here.
  void unpack(std::function<void()> done);
  // Packed sessions are another process's from now on; others are sent off later (send_off()), each
  // by a call of `more`.
  void leave_packed(PackDone more, std::function<void()> done);
  // The session that was sent off has arrived, or not: then it ends.
  void sent_off(const std::shared_ptr<Session>& session, bool arrived);

  // A hand-over from another process. take(): before run(), on the thread that made the worker;
  // the session waits until run(). The requests that it holds come from take_arrivals().
  [[nodiscard]] Result<void> take(const SavedState& state, net::Descriptor client,
                                  net::Descriptor server);
  // The same with a connection that outlived a crash; one that cannot be taken on is closed.
  void take_kept(const SavedState& state, net::Descriptor client, net::Descriptor server);
  [[nodiscard]] std::vector<PendingIo*> take_arrivals();
  // After all of take().
  void taken();
  // From any thread, while it runs. A session that cannot be taken on is closed.
  void take_late(SavedState state, net::Descriptor client, net::Descriptor server);

  // For sessions, while an event is handled.
  [[nodiscard]] PumpThread& pump_thread() { return pump_thread_; }
  // The time of the event and its number.
  [[nodiscard]] TimePoint now() const { return pump_thread_.now(); }
  [[nodiscard]] std::uint64_t event() const { return pump_thread_.event(); }
  [[nodiscard]] SharedState& shared() { return shared_; }
  // Valid until the end of the event.
  [[nodiscard]] const WorkerSettings& settings() const { return *settings_; }
  // Changes with every reload.
  [[nodiscard]] std::uint64_t settings_number() const { return settings_number_; }
  [[nodiscard]] Dispatcher& dispatcher() { return dispatcher_; }
  [[nodiscard]] Identifier& identifier() { return identifier_; }
  // Seeds tables whose keys clients choose. Clients do not know it.
  [[nodiscard]] std::uint64_t table_seed() const { return table_seed_; }

  // Takes a request from the pool until recycle(), and appends it to the list of held requests.
  [[nodiscard]] PendingIo& make_held(TimePoint arrival);
  void leave_held_list(PendingIo& io);
  void recycle(PendingIo& io);

  // What the event brought. The dispatcher learns it at the end of the event.
  void arrived(PendingIo& io) { turn_.arrived.push_back(&io); }
  void parked(PendingIo& io, stage::SlowClient whose) {
    turn_.parked.push_back({.io = &io, .whose = whose});
  }
  void ended(PendingIo& io, std::uint64_t bytes, bool failed) {
    turn_.ended.push_back({.io = &io, .bytes = bytes, .failed = failed});
  }
  void released_too_late(PendingIo& io) {
    turn_.ended.push_back({.io = &io, .bytes = 0, .failed = false, .refused = true});
  }
  void gave_slot_up(PendingIo& io) { turn_.gave_slots_up.push_back(&io); }
  // More than the dispatcher counts. PendingIo::moved is up to date.
  void has_moved(PendingIo& io) { turn_.moved.push_back(&io); }
  // Its end will never be seen. Likewise.
  void abandoned(PendingIo& io) { turn_.abandoned.push_back(&io); }
  void slots_changed() { need_turn_ = true; }
  void flush_later(Session& session) { to_flush_.push_back(&session); }
  void close_later(std::shared_ptr<Session> session) { to_close_.push_back(std::move(session)); }
  // Sends a session to the process that has taken over, if it can be packed.
  [[nodiscard]] bool send_off(Session& session);

 private:
  [[nodiscard]] std::shared_ptr<Session> add_session(net::Descriptor client,
                                                     net::Descriptor server);
  void sort_held();
  void begin_session(net::Descriptor client_socket, const net::Endpoint& client);
  [[nodiscard]] Result<void> begin_opening(net::Descriptor client_socket,
                                           const net::Endpoint& client,
                                           const net::Endpoint& upstream);
  void opened(Opening& opening);
  void end_opening(const Opening& opening);
  void refuse_late_openings(TimePoint now);
  void make_session(Opening& opening);
  [[nodiscard]] Result<net::Endpoint> upstream_of(int client) const;
  void give_memory_back(PendingIo& io);
  void refused(const net::Endpoint& client, const Result<net::Endpoint>& upstream,
               const std::string& problem);
  struct Listing;
  void list_more(std::shared_ptr<Listing> listing);
  [[nodiscard]] Duration patience(TimePoint now) const;
  void wait(TimePoint now);
  [[nodiscard]] bool poll(Duration longest);
  [[nodiscard]] Duration longest_poll() const;
  void take_timers(TimePoint now);
  void sweep();
  void refuse_overdue(TimePoint now);
  void take_turn();
  void take_on(WorkerSettingsPtr settings);
  void end_of_event();

  const std::size_t index_;
  SharedState& shared_;
  Dispatcher& dispatcher_;
  WorkerSettingsPtr settings_;
  std::uint64_t settings_number_ = 1;

  net::EpollSet set_;
  net::Mailbox mailbox_{set_};
  const SystemClock waits_;  // what the waits go by; the shared clock is for decisions
  const Duration ahead_;     // of the shared clock; not zero where a test has a clock of its own
  net::BusyPoll busy_poll_;
  TimePoint next_sweep_ = {};
  TimePoint ask_again_ = kNever;  // by the shared clock

  SocketCalls calls_;
  PumpThread pump_thread_;
  std::list<Opening> openings_;                            // by deadline
  std::unordered_set<std::shared_ptr<Session>> sessions_;  // a listing shares them

  const std::uint64_t table_seed_;
  Identifier identifier_;
  std::vector<std::unique_ptr<PendingIo>> pool_;
  std::vector<PendingIo*> free_;  // requests of pool_
  std::uint64_t requests_ = 0;    // made so far
  PendingIo* first_held_ = nullptr;
  PendingIo* last_held_ = nullptr;

  Turn turn_;
  std::vector<PendingIo*> released_;
  std::vector<Session*> to_flush_;
  std::vector<Session*> flushing_;
  std::vector<std::shared_ptr<Session>> to_close_;
  std::atomic<std::uint64_t> turns_ = 0;
  std::size_t swept_ = 0;  // buckets of sessions_ checked in this round
  bool need_turn_ = false;
  bool stopping_ = false;
  bool taking_ = false;  // sessions of another process wait for run()
  PackDone send_off_;    // once another process has taken over
};

}  // namespace vpfs::proxy
