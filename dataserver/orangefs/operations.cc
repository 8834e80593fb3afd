#include "dataserver/orangefs/operations.h"

#include <cerrno>
#include <utility>
#include <variant>

namespace vpfs::dataserver {

using orangefs::Op;
using orangefs::Response;
using orangefs::Status;

Response answer(Op op, Status status) {
  return {.status = status, .body = orangefs::EmptyResponse{.op = op}};
}
Response failure(Op op, Status status) {
  return answer(op, status);
}
Response failure(Op op, std::errc error) {
  return answer(op, status_of(error));
}

net::Task<Response> Operations::handle(const Request& request) {
  const orangefs::FsId fs_id = context_.config.id;
  const Op op = orangefs::op_of(request.body);
  const auto foreign = [fs_id](const auto& body) {
    if constexpr (requires { body.fs_id; }) return body.fs_id != fs_id;
    return false;
  };
  if (std::visit(foreign, request.body)) {
    co_return failure(op, status_of(ENODEV));
  }
  const auto dispatch = [this, &request](const auto& body) { return run(body, request); };
  Reply reply = std::visit(dispatch, request.body);
  co_return co_await std::move(reply);
}

template <typename Body>
Operations::Reply Operations::run(const Body& /*body*/, const Request& request) {
  co_return failure(orangefs::op_of(request.body), status_of(ENOSYS));
}

// A reply may show another client's change that is not durable yet, so it waits for that too.
Operations::Reply Operations::ready(Response response) {
  return settled(std::move(response));
}

Operations::Reply Operations::settled(Response response) {
  if (const Outcome<void> kept = co_await context_.metadata.durable(); !kept) {
    co_return failure(orangefs::op_of(response.body), kept.error());
  }
  co_return response;
}

bool Operations::is_ours(orangefs::Handle handle) const {
  return context_.ranges.server_of(handle) == context_.self;
}

Outcome<Operations::HandlesByServer> Operations::by_server(
    std::span<const orangefs::Handle> handles) const {
  HandlesByServer lists(context_.ranges.servers());
  for (std::size_t i = 0; i < handles.size(); ++i) {
    const auto server = context_.ranges.server_of(handles[i]);
    if (!server) return refuse(EINVAL);
    lists[*server].push_back(i);
  }
  return lists;
}

}  // namespace vpfs::dataserver
