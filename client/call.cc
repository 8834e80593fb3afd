#include "client/call.h"

#include <spdlog/spdlog.h>

namespace vpfs::client {

void Call::begin(const pvfs2::Request& request, Duration patience) {
  op_ = pvfs2::op_of(request.body);
  latch_.expect();
  const pvfs2::Tag tag = connection_.begin(*this, patience);
  net::OutputQueue::Message message;
  message.head = pvfs2::request_message(tag, request);
  connection_.send(std::move(message));
}

bool Call::on_response(std::span<const std::byte> payload) {
  auto response = pvfs2::decode_response(payload);
  if (!response) {
    spdlog::error("the response to {} makes no sense: {}", pvfs2::name(op_),
                  pvfs2::describe(response.error()));
    return false;
  }
  const pvfs2::Op answered = pvfs2::op_of(response->body);
  if (answered == pvfs2::Op::proto_error) {
    failure_ = std::make_error_code(std::errc::protocol_not_supported);
  } else if (answered != op_) {
    spdlog::error("{} was answered with {}", pvfs2::name(op_), pvfs2::name(answered));
    return false;
  } else {
    response_ = std::move(*response);
  }
  connection_.forget(*this);
  latch_.done();
  return true;
}

void Call::on_failure(std::error_code error) {
  failure_ = error;
  latch_.done();
}

}  // namespace vpfs::client
