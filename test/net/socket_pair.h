#pragma once

#include <utility>

#include <asio/io_context.hpp>
#include <asio/write.hpp>

#include "net/async.h"

namespace vpfs::net {

// Two connected TCP sockets on loopback, both non-blocking.
inline std::pair<Socket, Socket> connected_pair(asio::io_context& context) {
  asio::ip::tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  Socket one(context);
  one.connect(acceptor.local_endpoint());
  Socket other = acceptor.accept();
  one.non_blocking(true);
  other.non_blocking(true);
  one.native_non_blocking(true);
  other.native_non_blocking(true);
  return {std::move(one), std::move(other)};
}

}  // namespace vpfs::net
