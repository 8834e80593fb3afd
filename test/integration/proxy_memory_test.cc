// The memory that vpfs-proxy allocates, and what is resident of its code and its libraries.

#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/integration/small_read.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

constexpr std::size_t kKib = 1024;

// The bounds leave room for the libraries of other distributions, which change memory at their
// start. Here the proxy took 1.5 MiB and 2.6 KiB.
class ProxyMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (programs_have_sanitizer()) GTEST_SKIP() << "sanitizers keep memory";
  }
  // Each connection serves a request.
  void open_busy_links(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      links_.push_back(open_link(proxy_, server_));
      expect_works(links_.back(), 1);
    }
  }

  FakeDataServer server_;
  ProxyProcess proxy_{{.upstream = server_.port()}};
  std::vector<ProxiedLink> links_;
};

TEST_F(ProxyMemory, SixtyFourConnectionsAtWorkTakeThreeMebibytes) {
  open_busy_links(64);
  const std::size_t own = proxy_.own_memory();
  RecordProperty("kib", std::to_string(own / kKib));
  EXPECT_LT(own, 3072 * kKib);
}

// With the pages that only the start touched it would be nearly twice as much.
TEST_F(ProxyMemory, WhatItsStartNeededDoesNotStayResident) {
  open_busy_links(64);
  const std::size_t resident = proxy_.memory();
  RecordProperty("kib", std::to_string(resident / kKib));
  EXPECT_LT(resident, 12 * kKib * kKib);
}

TEST_F(ProxyMemory, AConnectionTakesFourKibibytes) {
  constexpr std::size_t kCount = 500;
  open_busy_links(1);
  const std::size_t before = proxy_.own_memory();
  open_busy_links(kCount);
  const std::size_t each = (proxy_.own_memory() - before) / kCount;
  RecordProperty("bytes", std::to_string(each));
  EXPECT_LT(each, 4 * kKib);
}

}  // namespace
}  // namespace vpfs::test
