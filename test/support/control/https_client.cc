#include "test/support/control/https_client.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>

#include "net/async.h"
#include "net/channel.h"
#include "net/tls.h"
#include "test/support/control/certificates.h"

namespace vpfs::test {
namespace {

net::Task<> converse(asio::io_context& context, net::Endpoint port,
                     std::shared_ptr<net::TlsContext> tls, std::string request,
                     std::optional<std::string>& answer) {
  net::Socket socket(context);
  const auto [refused] = co_await socket.async_connect(port, net::kUseTask);
  if (refused) co_return;
  const auto channel =
      net::connect_tls(net::StreamSocket(std::move(socket)), std::move(tls), "localhost");
  const Result<void> shaken = co_await channel->handshake();
  if (!shaken) co_return;
  (void)co_await channel->write(std::as_bytes(std::span(request)));
  std::array<std::byte, 65536> part = {};
  std::string all;
  for (;;) {
    const net::Transfer got = co_await channel->read_some(part);
    if (got.size > 0) all.append(reinterpret_cast<const char*>(part.data()), got.size);
    if (got.error) break;
  }
  // With TLS 1.3 the client's handshake ends before the server has looked at its certificate.
  if (!all.empty()) answer = std::move(all);
  channel->close();
}

}  // namespace

std::optional<std::string> ask_https(const net::Endpoint& port,
                                     const std::filesystem::path& certificates,
                                     const std::string& name, const std::string& request) {
  asio::io_context context;
  std::optional<std::string> answer;
  asio::co_spawn(context, converse(context, port, client_tls(certificates, name), request, answer),
                 asio::detached);
  context.run_for(std::chrono::seconds(10));
  return answer;
}

}  // namespace vpfs::test
