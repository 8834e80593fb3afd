#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "net/async.h"
#include "net/descriptor.h"

namespace vpfs::net {

// Accepts TCP connections and hands each, with TCP_NODELAY set, to a callback.
//
// When descriptors run out, it closes new connections at once instead of letting them time out, and
// logs that at most once a second. Belongs to the strand of its io_context.
class Listener {
 public:
  using Handler = std::function<void(Socket)>;

  // Binds (port 0: the kernel chooses) and listens; [::] takes IPv4 connections too, whose peers
  // have mapped addresses. The error names the endpoint.
  [[nodiscard]] static Result<Listener> open(asio::io_context& context, const Endpoint& endpoint) {
    return open(context, endpoint, Descriptor());
  }
  // `inherited` listens already. It is used if it does so at `endpoint`; port 0 fits any.
  [[nodiscard]] static Result<Listener> open(asio::io_context& context, const Endpoint& endpoint,
                                             Descriptor inherited);

  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) noexcept;
  ~Listener();

  void start(Handler handler);
  // Stops accepting; no handler runs after it. Connections that it has not handed over are left to
  // another process that has the listening socket.
  void close();
  [[nodiscard]] Endpoint local_endpoint() const;
  [[nodiscard]] int native_handle() const;

 private:
  struct State;
  explicit Listener(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vpfs::net
