#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <sys/epoll.h>
#include <unistd.h>

#include "bench/data_path/relay/pump.h"

namespace vpfs::bench {
namespace {

// A pump, and whether it is in the list of pumps that can continue.
struct Runner {
  std::unique_ptr<Pump> pump;
  bool listed = false;
};

class EpollRelay {
 public:
  EpollRelay(const std::vector<std::pair<int, int>>& connections, Mechanism mechanism,
             std::size_t buffer)
      : poll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (poll_ < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
    runners_.reserve(connections.size() * 2);
    for (const auto& [client, server] : connections) {
      runners_.push_back({.pump = make_pump(mechanism, buffer, client, server)});
      runners_.push_back({.pump = make_pump(mechanism, buffer, server, client)});
    }
    for (std::size_t i = 0; i < connections.size(); ++i) {
      watch(connections[i].first, i);
      watch(connections[i].second, i);
    }
  }
  ~EpollRelay() { ::close(poll_); }
  EpollRelay(const EpollRelay&) = delete;
  EpollRelay& operator=(const EpollRelay&) = delete;

  void run() {
    std::vector<Runner*> turn;
    while (collect()) {
      turn.swap(ready_);
      for (Runner* runner : turn) {
        runner->listed = false;
        const Pump::State state = runner->pump->step();
        if (state == Pump::State::ended) return;
        if (state == Pump::State::more) list(*runner);
      }
      turn.clear();
    }
  }

 private:
  void watch(int socket, std::size_t connection) {
    epoll_event event = {};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.u64 = connection;
    if (::epoll_ctl(poll_, EPOLL_CTL_ADD, socket, &event) != 0) {
      throw std::system_error(errno, std::generic_category(), "epoll_ctl");
    }
  }

  void list(Runner& runner) {
    if (runner.listed) return;
    runner.listed = true;
    ready_.push_back(&runner);
  }

  // An event of either socket may unblock both directions.
  bool collect() {
    std::array<epoll_event, 64> events = {};
    const int count = ::epoll_wait(poll_, events.data(), static_cast<int>(events.size()),
                                   ready_.empty() ? -1 : 0);
    if (count < 0) return errno == EINTR;
    for (std::size_t i = 0; std::cmp_less(i, count); ++i) {
      const std::size_t connection = events[i].data.u64;
      list(runners_[connection * 2]);
      list(runners_[connection * 2 + 1]);
    }
    return true;
  }

  int poll_;
  std::vector<Runner> runners_;
  std::vector<Runner*> ready_;
};

}  // namespace

void relay_with_epoll(const std::vector<std::pair<int, int>>& connections, Mechanism mechanism,
                      std::size_t buffer) {
  EpollRelay(connections, mechanism, buffer).run();
}

}  // namespace vpfs::bench
