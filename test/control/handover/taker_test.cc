#include "control/handover/taker.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "test/net/few_descriptors.h"
#include "test/support/comes_true.h"
#include "test/support/process.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Duration kPatience = 20s;

SavedState named(const std::string& name) {
  SavedState state;
  state.set("name", name);
  return state;
}

// A pipe, by its reading end.
net::Descriptor pipe_end() {
  std::array<int, 2> ends = {};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const net::Descriptor writing(ends[1]);
  return net::Descriptor(ends[0]);
}

ino_t inode(const net::Descriptor& file) {
  struct stat its = {};
  EXPECT_EQ(::fstat(file.get(), &its), 0);
  return its.st_ino;
}

// The test is the running program; the taker is of the same process.
class Taker : public ::testing::Test {
 protected:
  Taker() : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const std::string path = socket();
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    std::jthread offers([this] {
      giver_.emplace(net::Descriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
      const Result<HandoverMessage> hello = giver_->receive(kPatience);
      EXPECT_TRUE(hello && hello->kind == HandoverKind::hello);
      send(HandoverKind::belongings, {});
    });
    Result<Predecessor> met = Predecessor::meet(socket());
    offers.join();
    if (met) taker_.emplace(std::move(*met));
  }
  ~Taker() override {
    if (taker_) taker_->stop();
  }

  [[nodiscard]] std::string socket() const { return folder_.path() / "restart.sock"; }
  void send(HandoverKind kind, const SavedState& state, std::span<const int> descriptors = {}) {
    EXPECT_TRUE(giver_->send(kind, state, descriptors, kPatience));
  }

  test::TemporaryDirectory folder_;
  net::Descriptor listener_;
  std::optional<HandoverChannel> giver_;
  std::optional<Predecessor> taker_;
};

TEST_F(Taker, WithoutDescriptorsForItsPartsItDoesNotTakeOver) {
  ASSERT_TRUE(taker_);
  const net::Descriptor part = pipe_end();
  send(HandoverKind::parcel, named("part"), std::array{part.get()});
  const test::FewDescriptors none(STDERR_FILENO + 1);
  const Result<Predecessor::Everything> all = taker_->receive();
  ASSERT_FALSE(all);
  EXPECT_THAT(all.error().message, HasSubstr("limit of open files"));
}

// Those of the others that come later are not lost with it.
TEST_F(Taker, InChargeItLosesOnlyThePartForWhichDescriptorsLack) {
  ASSERT_TRUE(taker_);
  std::vector<std::string> parts;
  std::vector<ino_t> inodes;
  std::atomic<int> changes = 0;
  std::atomic<bool> ended = false;
  bool as_planned = false;
  taker_->receive_the_rest({.parcel =
                                [&](const Predecessor::Parcel& parcel) {
                                  parts.emplace_back(parcel.state.text("name"));
                                  for (const auto& each : parcel.descriptors) {
                                    inodes.push_back(inode(each));
                                  }
                                },
                            .changes = [&](const SavedState& /*state*/) { ++changes; },
                            .end =
                                [&](bool planned) {
                                  as_planned = planned;
                                  ended = true;
                                }});
  const net::Descriptor first = pipe_end();
  const net::Descriptor second = pipe_end();
  {
    const test::FewDescriptors none(STDERR_FILENO + 1);
    send(HandoverKind::parcel, named("lost"), std::array{first.get()});
    send(HandoverKind::load, {});
    ASSERT_TRUE(test::comes_true([&] { return changes == 1; }));
  }
  send(HandoverKind::parcel, named("kept"), std::array{second.get()});
  send(HandoverKind::end, {});
  ASSERT_TRUE(test::comes_true([&] { return ended.load(); }));
  EXPECT_TRUE(as_planned);
  EXPECT_THAT(parts, ElementsAre("kept"));
  EXPECT_THAT(inodes, ElementsAre(inode(second)));
}

// The process before must not believe that it may go on sending.
TEST_F(Taker, InChargeItEndsWhatDoesNotSpeakTheProtocol) {
  ASSERT_TRUE(taker_);
  std::atomic<bool> ended = false;
  bool as_planned = true;
  taker_->receive_the_rest({.parcel = [](const Predecessor::Parcel& /*parcel*/) {},
                            .changes = [](const SavedState& /*state*/) {},
                            .end =
                                [&](bool planned) {
                                  as_planned = planned;
                                  ended = true;
                                }});
  const std::string nonsense(64, 'x');
  ASSERT_EQ(::send(giver_->native_handle(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL), 64);
  ASSERT_TRUE(test::comes_true([&] { return ended.load(); }));
  EXPECT_FALSE(as_planned);
  EXPECT_FALSE(giver_->send(HandoverKind::load, named("more"), kPatience));
}

}  // namespace
}  // namespace vpfs::control
