#include "client/orangefs/caller_session.h"

#include "base/result.h"

namespace vpfs::client {

net::Task<Result<orangefs::Response>> CallerSession::ask_server(std::size_t server,
                                                                orangefs::Handle object,
                                                                orangefs::Capability capability,
                                                                orangefs::RequestBody body,
                                                                bool* repeated) const {
  orangefs::Request request{
      .capability = std::move(capability), .hints = hints(object), .body = std::move(body)};
  co_return co_await session_->call(server, std::move(request), repeated);
}

net::Task<Result<orangefs::Response>> CallerSession::ask(orangefs::Handle target,
                                                         orangefs::Handle object,
                                                         orangefs::Capability capability,
                                                         orangefs::RequestBody body,
                                                         bool* repeated) const {
  const Result<std::size_t> server = session_->server_of(target);
  VPFS_CO_TRY(server);
  co_return co_await ask_server(*server, object, std::move(capability), std::move(body), repeated);
}

}  // namespace vpfs::client
