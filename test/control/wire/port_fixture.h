#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "control/wire/audit.h"
#include "control/wire/client.h"
#include "control/wire/port.h"
#include "test/support/control/fake_owner.h"
#include "test/support/control/raw_peer.h"
#include "test/support/process.h"

namespace vpfs::test {

// A control port of a FakeOwner on a UNIX socket.
class PortFixture : public ::testing::Test {
 protected:
  static constexpr Duration kPatience = std::chrono::seconds(10);

  PortFixture() {
    // Other users have to reach the socket.
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    config_.socket = folder_.path() / "port";
    config_.mode = 0666;
    config_.audit = folder_.path() / "audit";
  }

  void open() {
    auto port = control::Port::open(config_, owner_, clock_, options_);
    ASSERT_TRUE(port) << port.error().message;
    port_ = std::move(*port);
    port_->start();
  }

  [[nodiscard]] RawPeer peer() const { return RawPeer(config_.socket); }
  [[nodiscard]] RawPeer greeted() const {
    RawPeer raw(config_.socket);
    const auto hello = raw.greet();
    EXPECT_TRUE(hello && hello->has_hello());
    return raw;
  }
  [[nodiscard]] control::Reply<control::PortClient> client() const {
    return control::PortClient::connect({.path = config_.socket, .host = ""}, {});
  }

  static control::Envelope stats(std::uint64_t id) {
    control::Envelope request;
    request.set_id(id);
    request.mutable_stats();
    return request;
  }
  static control::Envelope reload(std::uint64_t id) {
    control::Envelope request;
    request.set_id(id);
    request.mutable_reload();
    return request;
  }

  TemporaryDirectory folder_;
  FakeOwner owner_;
  SystemClock clock_;
  control::PortConfig config_;
  control::Port::Options options_;
  std::unique_ptr<control::Port> port_;
};

}  // namespace vpfs::test
