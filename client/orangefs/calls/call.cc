#include "client/orangefs/calls/call.h"

#include <spdlog/spdlog.h>

namespace vpfs::client {

void Call::begin(const orangefs::Request& request, Duration patience) {
  op_ = orangefs::op_of(request.body);
  const orangefs::Tag tag = connection_.begin(*this, patience);
  net::OutputQueue::Message message;
  message.head = orangefs::request_message(tag, request);
  if (message.head.size() > orangefs::kBmiHeaderSize + orangefs::kMaxEagerSize) {
    connection_.forget(*this);
    failure_ = std::make_error_code(std::errc::message_size);
    return;
  }
  latch_.expect();
  connection_.send(std::move(message));
}

bool Call::on_response(std::span<const std::byte> payload) {
  auto response = orangefs::decode_response(payload);
  if (!response) {
    spdlog::error("the response to {} is malformed: {}", orangefs::name(op_),
                  orangefs::describe(response.error()));
    return false;
  }
  const orangefs::Op answered = orangefs::op_of(response->body);
  if (answered == orangefs::Op::proto_error) {
    failure_ = std::make_error_code(std::errc::protocol_not_supported);
  } else if (answered != op_) {
    spdlog::error("{} was answered with {}", orangefs::name(op_), orangefs::name(answered));
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
