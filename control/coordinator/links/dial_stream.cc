#include "control/coordinator/links/dial_stream.h"

#include <utility>

#include "base/result.h"
#include "control/wire/client_connect.h"
#include "net/socket_options.h"

namespace vpfs::coordinator {

net::Task<DialledStream> dial_stream(DialTarget target, Duration within,
                                     std::shared_ptr<net::TlsContext> tls) {
  control::ClientOptions options;
  options.connect_within = within;
  options.peer = std::move(target.peer);
  options.key = std::move(target.key);
  options.names_users = false;
  auto socket = co_await control::connect_socket(target.address, std::move(options),
                                                 std::move(target.endpoints));
  VPFS_CO_TRY(socket);
  if (target.address.is_unix()) co_return net::make_ready_stream(std::move(*socket));
  net::keep_alive(socket->native_handle());
  co_return net::make_ready_tls_stream(std::move(*socket), std::move(tls), net::TlsSide::client,
                                       target.address.host);
}

}  // namespace vpfs::coordinator
