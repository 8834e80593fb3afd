#pragma once

#include <gtest/gtest.h>

#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {

// Serves one small read through `link` and checks its data.
inline void expect_works(ProxiedLink& link, orangefs::Tag tag) {
  const StampedFile file = {.file = 77, .generation = tag};
  ASSERT_TRUE(link.client.send(small_read_request(tag, {.size = 8192})));
  const auto request = link.server.receive();
  ASSERT_TRUE(request);
  ASSERT_EQ(request->bytes(), small_read_request(tag, {.size = 8192}));
  ASSERT_TRUE(link.server.send(small_read_response(tag, file.bytes(0, 8192))));
  EXPECT_EQ(link.client.receive().value().bytes(), small_read_response(tag, file.bytes(0, 8192)));
}

}  // namespace vpfs::test
