#include <system_error>

#include <liburing.h>
#include <sys/socket.h>

#include "bench/data_path/relay/pump.h"

namespace vpfs::bench {
namespace {

struct Direction {
  int from = -1;
  int to = -1;
  std::vector<std::byte> buffer;
  std::size_t begin = 0;
  std::size_t end = 0;
  bool receiving = true;
  MessageWalk walk;
};

class UringRelay {
 public:
  UringRelay(const std::vector<std::pair<int, int>>& connections, std::size_t buffer) {
    const auto entries = static_cast<unsigned>(connections.size() * 4 + 8);
    const int made = io_uring_queue_init(entries, &ring_, IORING_SETUP_COOP_TASKRUN);
    if (made < 0) throw std::system_error(-made, std::generic_category(), "io_uring");
    directions_.reserve(connections.size() * 2);
    for (const auto& [client, server] : connections) {
      directions_.push_back(
          {.from = client, .to = server, .buffer = std::vector<std::byte>(buffer)});
      directions_.push_back(
          {.from = server, .to = client, .buffer = std::vector<std::byte>(buffer)});
    }
  }
  ~UringRelay() { io_uring_queue_exit(&ring_); }
  UringRelay(const UringRelay&) = delete;
  UringRelay& operator=(const UringRelay&) = delete;

  void run() {
    for (Direction& direction : directions_) submit(direction);
    for (;;) {
      const int submitted = io_uring_submit_and_wait(&ring_, 1);
      if (submitted < 0 && submitted != -EINTR) return;
      if (!take_completions()) return;
    }
  }

 private:
  bool take_completions() {
    io_uring_cqe* completion = nullptr;
    unsigned head = 0;
    unsigned count = 0;
    bool alive = true;
    io_uring_for_each_cqe(&ring_, head, completion) {
      ++count;
      auto& direction = *static_cast<Direction*>(io_uring_cqe_get_data(completion));
      alive = alive && completion->res > 0;
      if (!alive) continue;
      advance(direction, static_cast<std::size_t>(completion->res));
      submit(direction);
    }
    io_uring_cq_advance(&ring_, count);
    return alive;
  }

  static void advance(Direction& direction, std::size_t moved) {
    if (direction.receiving) {
      direction.begin = 0;
      direction.end = moved;
      direction.walk.pass(std::span(direction.buffer).first(moved));
    } else {
      direction.begin += moved;
    }
    direction.receiving = direction.begin == direction.end;
  }

  void submit(Direction& direction) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (direction.receiving) {
      io_uring_prep_recv(entry, direction.from, direction.buffer.data(), direction.buffer.size(),
                         0);
    } else {
      io_uring_prep_send(entry, direction.to, direction.buffer.data() + direction.begin,
                         direction.end - direction.begin, MSG_NOSIGNAL);
    }
    io_uring_sqe_set_data(entry, &direction);
  }

  io_uring ring_ = {};
  std::vector<Direction> directions_;
};

}  // namespace

void relay_with_uring(const std::vector<std::pair<int, int>>& connections, std::size_t buffer) {
  UringRelay(connections, buffer).run();
}

}  // namespace vpfs::bench
