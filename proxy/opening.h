#pragma once

#include <functional>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "net/descriptor.h"
#include "net/endpoint.h"
#include "net/epoll_set.h"

namespace vpfs::proxy {

// A client whose upstream connection is being made.
class Opening final : private net::EpollSet::Member {
 public:
  // `done` is called once, when the connection is made or has failed. It may end the opening.
  using Done = std::function<void(Opening& opening)>;

  // `server`: a socket of net::begin_connect(). The set outlives the opening.
  Opening(net::EpollSet& set, net::Descriptor client_socket, net::Descriptor server_socket,
          Done done)
      : client(std::move(client_socket)),
        server(std::move(server_socket)),
        set_(set),
        done_(std::move(done)) {}
  ~Opening() override { leave(); }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

  [[nodiscard]] Result<void> watch() {
    Result<void> added = set_.add(server.get(), *this, true);
    is_watched_ = added.has_value();
    return added;
  }

  net::Descriptor client;
  net::Descriptor server;
  net::Endpoint client_endpoint;
  net::Endpoint upstream;
  TimePoint deadline = kNever;

 private:
  void ready(bool /*readable*/, bool writable, bool /*has_ended*/) override {
    if (!writable) return;
    leave();
    done_(*this);
  }
  void leave() {
    if (std::exchange(is_watched_, false)) set_.remove(server.get(), *this);
  }

  net::EpollSet& set_;
  const Done done_;
  bool is_watched_ = false;
};

}  // namespace vpfs::proxy
