#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "protocols/orangefs/message.h"
#include "protocols/protocol.h"

// The messages that tests of the conversation exchange.
namespace vpfs::orangefs {

using Buffer = std::vector<std::byte>;

inline Request io_request(IoType type, std::int64_t offset, std::int64_t size,
                          const std::string& job = "") {
  Request request;
  request.capability.issuer = "S:s0";
  request.capability.handles = {100, 200};
  request.hints.push_back({.type = HintType::handle, .raw_type = 3, .number = 100});
  if (!job.empty()) request.hints.push_back({.key = "jobid", .text = job});
  request.body = IoRequestBody{.handle = 200,
                               .fs_id = 7,
                               .io_type = type,
                               .distribution = SimpleStripe{},
                               .file_request = FileRequest::contiguous_bytes(),
                               .file_request_offset = offset,
                               .aggregate_size = size};
  return request;
}

inline Request small_write(std::size_t size) {
  Request request;
  request.body = SmallIoRequest{.handle = 200,
                                .fs_id = 7,
                                .io_type = IoType::write,
                                .distribution = SimpleStripe{},
                                .file_request = FileRequest::contiguous_bytes(),
                                .aggregate_size = static_cast<std::int64_t>(size),
                                .total_bytes = static_cast<std::int64_t>(size),
                                .data = Buffer(size, std::byte{0x5a})};
  return request;
}

inline Request getattr(std::uint32_t uid) {
  Request request;
  request.body = GetattrRequest{.handle = 100, .fs_id = 7, .credential = {.uid = uid}};
  return request;
}

inline Buffer raw_message(BmiMode mode, Tag tag, std::size_t payload_size) {
  const auto header = encode(BmiHeader{.mode = mode, .tag = tag, .payload_size = payload_size});
  Buffer message(header.begin(), header.end());
  message.resize(message.size() + payload_size, std::byte{0xcd});
  return message;
}

// Feeds a whole message and expects one step that covers it. A request that is held is released.
inline Step feed(Conversation& conversation, Sender from, const Buffer& message) {
  const Step step = conversation.next(from, message);
  EXPECT_EQ(step.size, message.size());
  if (step.action == Step::Action::hold) conversation.released(conversation.held().key);
  return step;
}

inline Buffer io_response(Tag tag, std::int64_t bstream_size) {
  return response_message(tag, {.body = IoResponse{.bstream_size = bstream_size}});
}

}  // namespace vpfs::orangefs
