#pragma once

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/use_awaitable.hpp>

// The names of asio that vpfs uses everywhere; asio's own spelling changes between versions.
namespace vpfs::net {

template <typename T = void>
using Task = asio::awaitable<T>;

// Completion token: `auto [error, n] = co_await socket.async_read_some(buffer, kUseTask);`
inline constexpr auto kUseTask = asio::experimental::as_tuple(asio::use_awaitable);

using Socket = asio::ip::tcp::socket;
using Endpoint = asio::ip::tcp::endpoint;

}  // namespace vpfs::net
