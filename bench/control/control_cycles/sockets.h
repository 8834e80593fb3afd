#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>

#include <sys/epoll.h>
#include <sys/types.h>

#include "control/wire/port_address.h"
#include "net/descriptor.h"

// Sockets for programs of one thread that wait in one epoll. Whatever fails throws
// std::system_error.
namespace vpfs::bench {

[[noreturn]] void fail_with_errno(std::string_view what);

// Lets this process open as many files as it may.
void raise_file_limit();

// At port 0 the kernel chooses one; `address` gets it.
[[nodiscard]] net::Descriptor listen_at(control::PortAddress& address);
[[nodiscard]] net::Descriptor accept_from(const net::Descriptor& listener);
// Waits until the connection is made; then calls on it never wait. TCP sends at once.
[[nodiscard]] net::Descriptor connect_to(const control::PortAddress& address);

// Waits for many descriptors. Each has a number of the caller's. It is named once when bytes have
// arrived, or room to send, and again only after more have.
class Poll {
 public:
  Poll();
  void watch(const net::Descriptor& descriptor, std::size_t number,
             std::uint32_t events = EPOLLIN | EPOLLRDHUP);
  // Those that are ready, valid until the next call. wait() waits for the first one.
  [[nodiscard]] std::span<const epoll_event> ready() { return ask(0); }
  [[nodiscard]] std::span<const epoll_event> wait() { return ask(-1); }
  [[nodiscard]] std::span<const epoll_event> wait_for(int milliseconds) {
    return ask(milliseconds);
  }

 private:
  static constexpr std::size_t kBatch = 512;
  [[nodiscard]] std::span<const epoll_event> ask(int patience);

  net::Descriptor poll_;
  epoll_event events_[kBatch] = {};
};

// The processor time that a process has used.
[[nodiscard]] std::chrono::nanoseconds cpu_time(pid_t process);

}  // namespace vpfs::bench
