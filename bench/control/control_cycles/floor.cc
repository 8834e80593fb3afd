#include "bench/control/control_cycles/floor.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <stdexcept>
#include <utility>

#include <sys/socket.h>

namespace vpfs::bench {
namespace {

constexpr std::size_t kRoom = 64 << 10;

std::size_t largest(const std::vector<RoundTrip>& cycle, std::size_t RoundTrip::*size) {
  std::size_t most = 0;
  for (const RoundTrip& each : cycle) most = std::max(most, each.*size);
  return most;
}

// A connection never has more than one message under way, so there is room for it.
void send_all(const net::Descriptor& socket, const std::vector<std::byte>& bytes,
              std::size_t size) {
  const ssize_t sent = ::send(socket.get(), bytes.data(), size, MSG_NOSIGNAL);
  if (sent < 0) fail_with_errno("send");
  if (static_cast<std::size_t>(sent) != size) throw std::runtime_error("a message was cut");
}

// How many bytes have arrived; nothing: the peer has closed the connection.
std::optional<std::size_t> receive(const net::Descriptor& socket, std::vector<std::byte>& into) {
  const ssize_t size = ::recv(socket.get(), into.data(), into.size(), 0);
  if (size > 0) return static_cast<std::size_t>(size);
  if (size == 0 || errno == ECONNRESET) return std::nullopt;
  if (errno != EAGAIN) fail_with_errno("recv");
  return 0;
}

}  // namespace

void play_stages(const control::PortAddress& address, std::size_t stages,
                 const std::vector<RoundTrip>& cycle) {
  struct Stage {
    net::Descriptor socket;
    std::size_t step = 0;     // of the cycle
    std::size_t missing = 0;  // bytes of the request
  };
  const std::vector<std::byte> out(largest(cycle, &RoundTrip::answer));
  std::vector<std::byte> in(kRoom);
  std::vector<Stage> all(stages);
  Poll poll;
  for (std::size_t i = 0; i < stages; ++i) {
    all[i] = {.socket = connect_to(address), .missing = cycle.front().request};
    poll.watch(all[i].socket, i);
  }
  for (;;) {
    for (const epoll_event& event : poll.wait()) {
      Stage& stage = all[event.data.u64];
      const std::optional<std::size_t> size = receive(stage.socket, in);
      if (!size) return;
      if (*size > stage.missing) throw std::runtime_error("a request is longer than agreed");
      stage.missing -= *size;
      if (*size == 0 || stage.missing > 0) continue;
      send_all(stage.socket, out, cycle[stage.step].answer);
      stage.step = stage.step + 1 == cycle.size() ? 0 : stage.step + 1;
      stage.missing = cycle[stage.step].request;
    }
  }
}

FloorServer::FloorServer(const net::Descriptor& listener, std::size_t stages,
                         std::vector<RoundTrip> cycle, std::size_t burst)
    : cycle_(std::move(cycle)),
      burst_(burst),
      out_(largest(cycle_, &RoundTrip::request)),
      in_(kRoom) {
  links_.reserve(stages);
  for (std::size_t i = 0; i < stages; ++i) {
    links_.push_back({.socket = accept_from(listener)});
    poll_.watch(links_.back().socket, i);
  }
}

void FloorServer::run_cycle() {
  for (const RoundTrip& each : cycle_) run_round_trip(each);
}

void FloorServer::run_round_trip(const RoundTrip& sizes) {
  missing_answers_ = links_.size();
  for (std::size_t next = 0; next < links_.size();) {
    const std::size_t end = std::min(next + burst_, links_.size());
    for (; next < end; ++next) {
      links_[next].missing = sizes.answer;
      send_all(links_[next].socket, out_, sizes.request);
    }
    if (end < links_.size()) take_answers(poll_.ready());
  }
  while (missing_answers_ > 0) take_answers(poll_.wait());
}

void FloorServer::take_answers(std::span<const epoll_event> events) {
  for (const epoll_event& event : events) {
    AwaitedStage& link = links_[event.data.u64];
    const std::optional<std::size_t> size = receive(link.socket, in_);
    if (!size) throw std::runtime_error("a stage has closed its connection");
    if (*size > link.missing) throw std::runtime_error("an answer is longer than agreed");
    link.missing -= *size;
    if (*size > 0 && link.missing == 0) --missing_answers_;
  }
}

}  // namespace vpfs::bench
