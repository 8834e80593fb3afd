#include "client/orangefs/calls/request_template.h"

#include <gtest/gtest.h>

namespace vpfs::client {
namespace {

template <typename Body>
orangefs::Request request() {
  orangefs::Request request;
  request.capability = {.issuer = "S:s0", .fs_id = 5, .op_mask = 6, .handles = {1, 2, 3}};
  request.hints = {
      {.type = orangefs::HintType::handle, .raw_type = 3, .number = 1},
      {.type = orangefs::HintType::named, .raw_type = 0, .key = "jobid", .text = "job42"}};
  Body body;
  body.handle = 2;
  body.fs_id = 5;
  body.io_type = orangefs::IoType::write;
  body.server_nr = 1;
  body.server_ct = 2;
  body.file_request = orangefs::FileRequest::contiguous_bytes();
  request.body = body;
  return request;
}

TEST(RequestTemplate, GivesTheMessageThatEncodingTheIoAnewWouldGive) {
  orangefs::Request wanted = request<orangefs::IoRequestBody>();
  const RequestTemplate made(wanted);
  auto& body = std::get<orangefs::IoRequestBody>(wanted.body);
  body.handle = 0x9876543210;
  body.server_nr = 77;
  body.file_request_offset = 0x123456789a;
  body.aggregate_size = 1 << 20;
  EXPECT_EQ(made.message(77, {.datafile = body.handle,
                              .server_nr = body.server_nr,
                              .offset = body.file_request_offset,
                              .aggregate_size = body.aggregate_size}),
            orangefs::request_message(77, wanted));
}

TEST(RequestTemplate, KnowsWhetherServersTakeTheRequest) {
  orangefs::Request large = request<orangefs::SmallIoRequest>();
  large.capability.handles.assign(1500, 1);
  const RequestTemplate made(large);
  const std::size_t payload =
      orangefs::small_io_request_head(0, large).size() - orangefs::kBmiHeaderSize;
  EXPECT_TRUE(made.fits(16384 - payload));
  EXPECT_FALSE(made.fits(16384 - payload + 1));
}

TEST(RequestTemplate, CountsTheDataOfASmallWrite) {
  orangefs::Request wanted = request<orangefs::SmallIoRequest>();
  const RequestTemplate made(wanted);
  auto& body = std::get<orangefs::SmallIoRequest>(wanted.body);
  body.handle = 3;
  body.server_nr = 0;
  body.file_request_offset = 4096;
  body.aggregate_size = 8192;
  body.total_bytes = 100;
  body.data.assign(100, std::byte{7});
  std::vector<std::byte> message = made.message(
      78,
      {.datafile = 3, .server_nr = 0, .offset = 4096, .aggregate_size = 8192, .data_size = 100});
  message.insert(message.end(), body.data.begin(), body.data.end());
  EXPECT_EQ(message, orangefs::request_message(78, wanted));
}

}  // namespace
}  // namespace vpfs::client
