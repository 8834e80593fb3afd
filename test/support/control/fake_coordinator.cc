#include "test/support/control/fake_coordinator.h"

#include <asio/local/stream_protocol.hpp>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vpfs::test {

FakeCoordinator::FakeCoordinator(const std::string& socket_path)
    : path_(socket_path), socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const asio::local::stream_protocol::endpoint endpoint(path_);
  EXPECT_EQ(::bind(socket_, endpoint.data(), static_cast<socklen_t>(endpoint.size())), 0);
  EXPECT_EQ(::listen(socket_, 16), 0);
}

FakeCoordinator::~FakeCoordinator() {
  ::close(socket_);
  ::unlink(path_.c_str());
}

std::optional<RawPeer> FakeCoordinator::accept(std::chrono::milliseconds patience) {
  pollfd wait = {.fd = socket_, .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, static_cast<int>(patience.count())) <= 0) return std::nullopt;
  const int accepted = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  if (accepted < 0) return std::nullopt;
  return RawPeer::adopt(accepted);
}

std::optional<RawPeer> FakeCoordinator::greeted() {
  std::optional<RawPeer> stage = accept();
  if (!stage) return std::nullopt;
  const auto said = stage->receive();
  if (!said || !said->has_hello() || !stage->send(hello(said->id()))) return std::nullopt;
  return stage;
}

bool FakeCoordinator::refuses_as_standby(std::chrono::milliseconds patience) {
  std::optional<RawPeer> stage = accept(patience);
  if (!stage) return false;
  const auto said = stage->receive();
  if (!said || !said->has_hello()) return false;
  control::Envelope answer = hello(said->id());
  answer.mutable_hello()->add_capabilities("standby");
  return stage->send(answer) && stage->closed_within();
}

control::Envelope FakeCoordinator::hello(std::uint64_t answers_to) {
  control::Envelope envelope;
  envelope.set_id(answers_to);
  envelope.set_answer(true);
  control::Hello& hello = *envelope.mutable_hello();
  hello.set_version(1);
  hello.set_least(1);
  hello.set_role(control::Hello::COORDINATOR);
  hello.set_name("site");
  hello.set_program("fake 1");
  return envelope;
}

}  // namespace vpfs::test
