#include "test/support/slow_link.h"

#include <algorithm>

#include <sys/socket.h>

namespace vpfs::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kBuffer = 32 << 10;  // of a socket; the kernel doubles it
constexpr double kQueue = 0.05;    // in seconds

void limit_buffers(const WirePeer& peer) {
  ::setsockopt(peer.socket(), SOL_SOCKET, SO_RCVBUF, &kBuffer, sizeof kBuffer);
  ::setsockopt(peer.socket(), SOL_SOCKET, SO_SNDBUF, &kBuffer, sizeof kBuffer);
}

}  // namespace

SlowLink::SlowLink(std::uint16_t to)
    : to_(to), thread_([this](const std::stop_token& stop) { run(stop); }) {}

void SlowLink::run(const std::stop_token& stop) {
  Clock::time_point last = Clock::now();
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(2ms);
    accept();
    const Clock::time_point now = Clock::now();
    const double elapsed = std::chrono::duration<double>(now - last).count();
    last = now;
    for (std::size_t way = 0; way < ways_.size(); ++way) {
      double& allowance = ways_[way].allowance;
      const double rate = std::min<double>(rate_, 1 << 30);
      allowance = std::min(allowance + rate * elapsed, rate * kQueue);
      move(way);
    }
    std::erase_if(connections_, [](const SlowConnection& each) {
      return each.lanes[0].ended && each.lanes[1].ended;
    });
  }
}

void SlowLink::accept() {
  for (;;) {
    WirePeer client = listener_.accept(0ms);
    if (client.socket() < 0) return;
    SlowConnection& made = connections_.emplace_back();
    made.peers = {std::move(client), WirePeer::connect(to_, kBuffer)};
    limit_buffers(made.peers[0]);
    limit_buffers(made.peers[1]);
    ++accepted_;
  }
}

void SlowLink::move(std::size_t way) {
  double& allowance = ways_[way].allowance;
  std::size_t idle = 0;
  while (allowance >= kPacket && idle < connections_.size()) {
    const std::size_t moved = pass(connections_.front(), way);
    connections_.splice(connections_.end(), connections_, connections_.begin());
    idle = moved == 0 ? idle + 1 : 0;
    allowance -= static_cast<double>(moved);
    ways_[way].moved += moved;
  }
}

std::size_t SlowLink::pass(SlowConnection& connection, std::size_t way) {
  Lane& lane = connection.lanes[way];
  if (lane.ended) return 0;
  const int from = connection.peers[way].socket();
  const int to = connection.peers[1 - way].socket();
  if (lane.begin == lane.end) {
    const ssize_t got = ::recv(from, lane.packet.data(), lane.packet.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (got <= 0) {
      ::shutdown(to, SHUT_WR);
      lane.ended = true;
      return 0;
    }
    lane.begin = 0;
    lane.end = static_cast<std::size_t>(got);
  }
  const ssize_t sent = ::send(to, lane.packet.data() + lane.begin, lane.end - lane.begin,
                              MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) {
    ::shutdown(from, SHUT_RD);
    lane.ended = true;
  }
  if (sent <= 0) return 0;
  lane.begin += static_cast<std::size_t>(sent);
  return static_cast<std::size_t>(sent);
}

}  // namespace vpfs::test
