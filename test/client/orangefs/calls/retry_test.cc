#include "client/orangefs/calls/retry.h"

#include <cerrno>
#include <system_error>

#include <gtest/gtest.h>

#include "client/orangefs/calls/error.h"
#include "protocols/orangefs/errors.h"

namespace vpfs::client {
namespace {

using namespace std::chrono_literals;

const std::error_code kReset = std::make_error_code(std::errc::connection_reset);
constexpr TimePoint kStart{1000s};

TEST(Retry, AsConfiguredItPausesEachTimeAndEndsAtTheLimit) {
  Retry retry({.limit = 2, .delay = 7ms}, kStart);
  EXPECT_EQ(retry.after(kReset, kStart), Duration(7ms));
  EXPECT_EQ(retry.after(std::make_error_code(std::errc::timed_out), kStart), Duration::zero());
  EXPECT_EQ(retry.after(kReset, kStart), std::nullopt);
}

TEST(Retry, ForATimeItBacksOffUpToTwoSecondsAndEndsWithTheTime) {
  Retry retry({.limit = 0, .delay = 7ms, .retry_for = 10s}, kStart);
  TimePoint now = kStart;
  for (const Duration pause : {50ms, 100ms, 200ms, 400ms, 800ms, 1600ms, 2000ms, 2000ms}) {
    EXPECT_EQ(retry.after(kReset, now), pause);
    now += pause;
  }
  EXPECT_EQ(retry.after(kReset, kStart + 9s), Duration(1s)) << "no later than the end";
  EXPECT_EQ(retry.after(kReset, kStart + 10s), std::nullopt);
}

TEST(Retry, TheTimeBeginsWithTheRequest) {
  Retry retry({.limit = 0, .retry_for = 10s}, kStart);
  EXPECT_EQ(retry.after(kReset, kStart + 5s), Duration(50ms));
  EXPECT_EQ(retry.after(kReset, kStart + 9999ms), Duration(1ms));
  EXPECT_EQ(retry.after(kReset, kStart + 10s), std::nullopt);
}

TEST(Retry, AFirstAttemptThatTookAllTheTimeIsRepeatedOnce) {
  Retry retry({.limit = 0, .retry_for = 1s}, kStart);
  EXPECT_EQ(retry.after(std::make_error_code(std::errc::timed_out), kStart + 300s), Duration(50ms));
  EXPECT_EQ(retry.after(kReset, kStart + 301s), std::nullopt);
}

TEST(Retry, AClosedSessionAndAnotherProtocolAreFinal) {
  for (const std::errc final : {std::errc::connection_aborted, std::errc::protocol_not_supported}) {
    const std::error_code failure = std::make_error_code(final);
    EXPECT_EQ(Retry({.limit = 9}, kStart).after(failure, kStart), std::nullopt);
    EXPECT_EQ(Retry({.retry_for = 9s}, kStart).after(failure, kStart), std::nullopt);
  }
}

TEST(ErrnoOf, AServersErrorIsItselfAndAFailedTransportIsEio) {
  EXPECT_EQ(errno_of(status_error("x", orangefs::status_from_errno(ENOSPC)).error()), ENOSPC);
  EXPECT_EQ(errno_of(fail("x", std::make_error_code(std::errc::file_exists)).error()), EEXIST);
  EXPECT_EQ(errno_of(transport_error("x", kReset).error()), EIO);
  EXPECT_EQ(errno_of(fail("x").error()), EIO) << "no code";
}

}  // namespace
}  // namespace vpfs::client
