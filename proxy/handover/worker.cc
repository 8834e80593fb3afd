// How sessions go from the workers of one process to those of another.

#include "proxy/worker.h"

#include <algorithm>
#include <utility>

#include "net/connecting.h"
#include "net/endpoint.h"
#include "net/socket_options.h"
#include "proxy/session.h"

namespace vpfs::proxy {

void Worker::take_released(std::function<void()> done) {
  mailbox_.post([this, done = std::move(done)] {
    {
      const PumpThread::Event event(pump_thread_);
      need_turn_ = true;
    }
    done();
  });
}

void Worker::pack(PackDone done, PackBudget budget) {
  mailbox_.post([this, done = std::move(done), left = budget]() mutable {
    const PumpThread::Event event(pump_thread_);
    std::vector<Packed> packed;
    packed.reserve(sessions_.size());
    for (const std::shared_ptr<Session>& session : sessions_) {
      const PackBudget held = {.bytes = session->held_bytes(),
                               .requests = session->held_requests()};
      if (held.bytes > left.bytes || held.requests > left.requests) continue;
      if (std::optional<SavedState> state = session->pack()) {
        left.bytes -= held.bytes;
        left.requests -= held.requests;
        packed.push_back({.state = std::move(*state),
                          .descriptors = session->descriptors(),
                          .session = session});
      }
    }
    done(std::move(packed));
  });
}

void Worker::unpack(std::function<void()> done) {
  mailbox_.post([this, done = std::move(done)] {
    {
      const PumpThread::Event event(pump_thread_);
      for (const std::shared_ptr<Session>& session : sessions_) session->unpack();
      need_turn_ = true;
    }
    done();
  });
}

void Worker::leave_packed(PackDone more, std::function<void()> done) {
  mailbox_.post([this, more = std::move(more), done = std::move(done)]() mutable {
    {
      const PumpThread::Event event(pump_thread_);
      send_off_ = std::move(more);
      for (const std::shared_ptr<Session>& session : sessions_) {
        if (session->packed()) session->depart();
      }
    }
    done();
  });
}

bool Worker::send_off(Session& session) {
  if (!send_off_) return false;
  std::optional<SavedState> state = session.pack();
  if (!state) return false;
  std::vector<Packed> packed;
  packed.push_back({.state = std::move(*state),
                    .descriptors = session.descriptors(),
                    .session = session.shared_from_this()});
  send_off_(std::move(packed));
  return true;
}

void Worker::sent_off(const std::shared_ptr<Session>& session, bool arrived) {
  mailbox_.post([this, session, arrived] {
    const PumpThread::Event event(pump_thread_);
    arrived ? session->depart() : session->close("the process that took over is gone");
  });
}

std::shared_ptr<Session> Worker::add_session(net::Descriptor client, net::Descriptor server) {
  const Result<net::Endpoint> peer = net::remote_endpoint(client.get());
  // The client may have gone in between, which its session finds out.
  const net::Endpoint endpoint = peer ? net::unmapped(*peer) : net::Endpoint();
  auto session = std::make_shared<Session>(*this, std::move(client), std::move(server), endpoint);
  sessions_.insert(session);
  return session;
}

Result<void> Worker::take(const SavedState& state, net::Descriptor client, net::Descriptor server) {
  taking_ = true;
  ++shared_.counters.connections_open;
  const PumpThread::Event event(pump_thread_);
  return add_session(std::move(client), std::move(server))->restore(state);
}

void Worker::take_kept(const SavedState& state, net::Descriptor client, net::Descriptor server) {
  taking_ = true;
  const PumpThread::Event event(pump_thread_);
  const auto session = add_session(std::move(client), std::move(server));
  ++shared_.counters.connections_open;
  ++shared_.counters.connections_total;
  const Result<void> restored = session->restore_kept(state);
  if (!restored) session->close(restored.error().message);
}

std::vector<PendingIo*> Worker::take_arrivals() {
  sort_held();
  return std::exchange(turn_.arrived, {});
}

void Worker::taken() {
  if (!std::exchange(taking_, false)) return;
  const PumpThread::Event event(pump_thread_);
  for (const std::shared_ptr<Session>& session : sessions_) session->unpack();
  need_turn_ = true;
}

void Worker::take_late(SavedState state, net::Descriptor client, net::Descriptor server) {
  struct Late {
    SavedState state;
    net::Descriptor client;
    net::Descriptor server;
  };
  // It is here from now on: the next process waits for it.
  ++shared_.counters.connections_open;
  auto late = std::make_shared<Late>(Late{.state = std::move(state),
                                          .client = std::move(client),
                                          .server = std::move(server)});  // functions are copied
  mailbox_.post([this, late] {
    const PumpThread::Event event(pump_thread_);
    const auto session = add_session(std::move(late->client), std::move(late->server));
    const Result<void> restored = session->restore(late->state);
    sort_held();
    restored ? session->unpack() : session->close(restored.error().message);
  });
}

// The list is in the order of arrival, at whichever process.
void Worker::sort_held() {
  std::vector<PendingIo*> all;
  for (PendingIo* io = first_held_; io != nullptr; io = io->next_held) all.push_back(io);
  std::ranges::sort(all, {},
                    [](const PendingIo* io) { return std::pair(io->arrival, io->number); });
  first_held_ = last_held_ = nullptr;
  for (PendingIo* io : all) {
    io->previous_held = std::exchange(last_held_, io);
    io->next_held = nullptr;
    (io->previous_held != nullptr ? io->previous_held->next_held : first_held_) = io;
  }
}

}  // namespace vpfs::proxy
