#include "proxy/pump/pump_output.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/socket_options.h"
#include "test/net/socket_pair.h"
#include "test/proxy/counting_clock.h"
#include "test/proxy/faulty_calls.h"

namespace vpfs::proxy {
namespace {

using Outcome = PumpOutput::Outcome;
using Spans = std::vector<std::span<const std::byte>>;

std::vector<std::byte> bytes_of(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(seed + i * 7);
  return bytes;
}

class PumpOutputTest : public ::testing::Test {
 protected:
  PumpOutputTest() {
    net::ignore_broken_pipes();
    sink_.set_option(asio::socket_base::send_buffer_size(64 * 1024));
    taker_.set_option(asio::socket_base::receive_buffer_size(64 * 1024));
  }

  // Sends until the socket takes no more. expected_ has everything that was sent or kept.
  void block() {
    const std::vector<std::byte> piece = bytes_of(100'000, 1);
    const PumpThread::Event event(thread_);
    while (forward({piece}) == Outcome::all) {
    }
    output_.set_blocked();
    ASSERT_GT(output_.unsent(), 0U);
  }
  Outcome forward(const Spans& runs) {
    for (const auto& each : runs) expect(each);
    return output_.forward(runs);
  }
  void expect(std::span<const std::byte> bytes) {
    expected_.insert(expected_.end(), bytes.begin(), bytes.end());
  }
  // Receives and writes in turn until everything has arrived.
  void expect_all_comes_out() {
    std::array<std::byte, 65536> buffer;
    for (int idle = 0; idle < 1000 && taken_.size() < expected_.size();) {
      (void)output_.write();
      const ssize_t got =
          ::recv(taker_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got > 0) {
        taken_.insert(taken_.end(), buffer.begin(), buffer.begin() + got);
        idle = 0;
      } else {
        pollfd state = {.fd = taker_.native_handle(), .events = POLLIN, .revents = 0};
        (void)::poll(&state, 1, 5);
        ++idle;
      }
    }
    EXPECT_EQ(output_.write(), Outcome::all);
    ASSERT_TRUE(taken_ == expected_) << taken_.size() << " of " << expected_.size();
    EXPECT_EQ(output_.bytes_sent(), expected_.size());
    EXPECT_EQ(output_.unsent(), 0U);
    EXPECT_TRUE(output_.empty());
  }

  asio::io_context context_;
  std::pair<net::Socket, net::Socket> out_ = net::connected_pair(context_);
  std::pair<net::Socket, net::Socket> in_ = net::connected_pair(context_);
  net::Socket& sink_ = out_.first;
  net::Socket& taker_ = out_.second;
  CountingClock clock_;
  FaultyCalls calls_;
  net::EpollSet set_;
  PumpThread thread_{set_, clock_, calls_, [] {}};
  PumpOutput output_{sink_.native_handle(), thread_};
  std::vector<std::byte> expected_;
  std::vector<std::byte> taken_;
};

TEST_F(PumpOutputTest, WhatTheSocketDoesNotTakeIsKeptInItsOrder) {
  block();
  const std::vector<std::byte> more = bytes_of(1000, 9);
  EXPECT_EQ(forward({more, more}), Outcome::all);
  output_.inject(more);
  expect(more);
  expect_all_comes_out();
}

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::size_t>(::getpagesize());
}

// The taker is a little slower than what is sent, so that something is always kept.
TEST_F(PumpOutputTest, ASocketThatNeverTakesAllOfItDoesNotGrowIt) {
  constexpr std::size_t kTimes = 20'000;
  block();
  std::array<std::byte, 4096> buffer;
  const std::vector<std::byte> piece = bytes_of(buffer.size(), 3);
  const auto before = static_cast<std::int64_t>(resident_bytes());
  std::size_t through = 0;
  for (std::size_t i = 0; i < kTimes; ++i) {
    const ssize_t got = ::recv(taker_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0) through += static_cast<std::size_t>(got);
    while (output_.unsent() < 400'000) output_.inject(piece);
    (void)output_.write();
    ASSERT_GT(output_.unsent(), 0U);
  }
  EXPECT_GT(through, kTimes * buffer.size() / 2) << "the test moves little";
  const auto grown = static_cast<std::int64_t>(resident_bytes()) - before;
  EXPECT_LT(grown, static_cast<std::int64_t>(through) / 4);
}

TEST_F(PumpOutputTest, MorePartsThanOneCallTakesGoOutInTheirOrder) {
  std::vector<std::vector<std::byte>> parts;
  for (unsigned i = 0; i < 200; ++i) parts.push_back(bytes_of(i % 7 == 0 ? 0 : i, i));
  EXPECT_EQ(forward(Spans(parts.begin(), parts.end())), Outcome::all);
  EXPECT_EQ(calls_.made(Call::sendmsg), 4U);
  expect_all_comes_out();
}

TEST_F(PumpOutputTest, APartialSendKeepsExactlyTheRest) {
  const std::vector<std::vector<std::byte>> parts = {bytes_of(5, 1), bytes_of(6, 2),
                                                     bytes_of(7, 3)};
  for (std::size_t most = 1; most < 18; ++most) {
    calls_.limit(SIZE_MAX, most);
    EXPECT_EQ(forward(Spans(parts.begin(), parts.end())), Outcome::blocked);
    EXPECT_EQ(output_.unsent(), 18 - most);
    calls_.limit(SIZE_MAX, SIZE_MAX);
    expect_all_comes_out();
  }
}

TEST_F(PumpOutputTest, InMidMessageInjectedOnesWaitForItsEnd) {
  const std::vector<std::byte> first_half = bytes_of(100, 1);
  const std::vector<std::byte> second_half = bytes_of(50, 2);
  const std::vector<std::byte> next = bytes_of(30, 3);
  const std::vector<std::byte> injected = bytes_of(20, 4);
  output_.set_in_mid_message(true);
  EXPECT_EQ(forward({first_half}), Outcome::all);
  {
    const PumpThread::Event event(thread_);
    output_.inject(injected);
    output_.inject_borrowed(injected);
    EXPECT_EQ(output_.send_injected(true), Outcome::all);
  }
  EXPECT_EQ(output_.waiting_since(), clock_.now());
  EXPECT_TRUE(output_.empty()) << "nothing can go before the message ends";
  EXPECT_EQ(output_.write(), Outcome::all);
  EXPECT_EQ(output_.bytes_sent(), first_half.size());
  EXPECT_EQ(output_.unsent(), 2 * injected.size());

  output_.set_in_mid_message(false);
  EXPECT_FALSE(output_.empty());
  EXPECT_EQ(output_.forward(Spans{second_half, next}), Outcome::all);
  for (const std::vector<std::byte>& each : {second_half, injected, injected, next}) expect(each);
  expect_all_comes_out();
  EXPECT_FALSE(output_.waiting_since());
}

TEST_F(PumpOutputTest, TheEndOfOneMessageIsNotTheEndOfTheNext) {
  const std::vector<std::byte> half = bytes_of(50, 1);
  const std::vector<std::byte> injected = bytes_of(20, 2);
  output_.set_in_mid_message(true);
  EXPECT_EQ(forward({half}), Outcome::all);
  output_.inject(injected);
  // The rest of the first message arrives with half of the next one.
  EXPECT_EQ(output_.forward(Spans{half, half}), Outcome::all);
  for (const std::vector<std::byte>& each : {half, injected, half}) expect(each);
  expect_all_comes_out();
}

TEST_F(PumpOutputTest, BorrowedMessagesGoInOneCallWithWhatIsBehindThem) {
  const std::vector<std::byte> one = bytes_of(20, 1);
  const std::vector<std::byte> two = bytes_of(30, 2);
  output_.inject_borrowed(one);
  output_.inject_borrowed(two);
  EXPECT_EQ(output_.send_injected(true), Outcome::all);
  output_.inject_borrowed(one);
  EXPECT_EQ(output_.send_behind_injected(Spans{two}, false), Outcome::all);
  EXPECT_EQ(calls_.made(Call::sendmsg), 2U);
  EXPECT_EQ(calls_.made(Call::send), 0U);
  for (const std::vector<std::byte>& each : {one, two, one, two}) expect(each);
  expect_all_comes_out();
}

TEST_F(PumpOutputTest, BorrowedMessagesAreCopiedWhileTheSocketIsWaitedFor) {
  block();
  {
    const std::vector<std::byte> gone_soon = bytes_of(40, 5);
    output_.inject_borrowed(gone_soon);
    EXPECT_EQ(output_.send_injected(false), Outcome::all);
    expect(gone_soon);
  }
  expect_all_comes_out();
}

TEST_F(PumpOutputTest, SplicedBytesGoBeforeWhatIsInjectedBehindThem) {
  const std::vector<std::byte> spliced = bytes_of(50'000, 6);
  const std::vector<std::byte> injected = bytes_of(20, 7);
  ASSERT_EQ(::send(in_.first.native_handle(), spliced.data(), spliced.size(), 0), 50'000);
  pollfd state = {.fd = in_.second.native_handle(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&state, 1, 5000), 1);
  std::size_t in = 0;
  while (in < spliced.size()) {
    const auto moved = output_.splice_from(in_.second.native_handle(), spliced.size() - in);
    ASSERT_TRUE(moved);
    ASSERT_GT(*moved, 0);
    expect(std::span(spliced).subspan(in, static_cast<std::size_t>(*moved)));
    in += static_cast<std::size_t>(*moved);
    output_.inject(injected);  // behind a message that is still in the pipe
    expect(injected);
    EXPECT_FALSE(output_.empty());
    EXPECT_EQ(output_.write(), Outcome::all);
  }
  expect_all_comes_out();
}

TEST_F(PumpOutputTest, APipeThatTookNothingIsFreeAgain) {
  EXPECT_EQ(output_.splice_from(in_.second.native_handle(), 1000), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_TRUE(output_.empty());
  in_.first.close();
  pollfd state = {.fd = in_.second.native_handle(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&state, 1, 5000), 1);
  EXPECT_EQ(output_.splice_from(in_.second.native_handle(), 1000), 0);
  EXPECT_TRUE(output_.empty());
}

TEST_F(PumpOutputTest, TellsSinceWhenTheSocketTakesNothingAndOnceWhenItDoesAgain) {
  block();
  const TimePoint since = clock_.now();
  clock_.advance(std::chrono::seconds(3));
  {
    const PumpThread::Event event(thread_);
    output_.set_blocked();
    EXPECT_EQ(output_.write(), Outcome::blocked);
  }
  EXPECT_EQ(output_.blocked_since(), since);
  EXPECT_FALSE(output_.take_unblocked());
  expect_all_comes_out();
  EXPECT_FALSE(output_.blocked_since());
  EXPECT_TRUE(output_.take_unblocked());
  EXPECT_FALSE(output_.take_unblocked());
}

TEST_F(PumpOutputTest, AFailureIsToldWithItsError) {
  const std::vector<std::byte> bytes = bytes_of(100, 1);
  calls_.fail(Call::sendmsg, 1, EPIPE);
  EXPECT_EQ(output_.forward(Spans{bytes}), Outcome::failed);
  EXPECT_EQ(output_.error().value(), EPIPE);
  output_.inject(bytes);
  calls_.fail(Call::send, 1, ECONNRESET);
  EXPECT_EQ(output_.write(), Outcome::failed);
  EXPECT_EQ(output_.error().value(), ECONNRESET);
}

}  // namespace
}  // namespace vpfs::proxy
