#include "base/device_model.h"

#include <gtest/gtest.h>

#include "test/support/start_time.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;
using test::kStart;

DeviceSettings device(std::uint64_t rate, Duration fixed, std::uint64_t parallelism) {
  return {.bandwidth = BytesPerSecond{rate}, .per_request = fixed, .parallelism = parallelism};
}

TEST(DeviceModel, AnIdleDeviceTakesTheFixedTimeAndTheTransfer) {
  DeviceModel model(device(1'000'000, 5ms, 1));
  EXPECT_EQ(model.finish(kStart, Bytes{100'000}, true), kStart + 105ms);
}

TEST(DeviceModel, OneAtATimeServesOneAfterTheOther) {
  DeviceModel model(device(1'000'000, 5ms, 1));
  EXPECT_EQ(model.finish(kStart, Bytes{100'000}, true), kStart + 105ms);
  EXPECT_EQ(model.finish(kStart, Bytes{100'000}, true), kStart + 210ms);
}

TEST(DeviceModel, ParallelRequestsHideTheFixedTimeButShareTheBandwidth) {
  DeviceModel model(device(1'000'000, 5ms, 2));
  EXPECT_EQ(model.finish(kStart, Bytes{100'000}, true), kStart + 105ms);
  EXPECT_EQ(model.finish(kStart, Bytes{100'000}, true), kStart + 205ms);
  EXPECT_EQ(model.finish(kStart, Bytes{100'000}, true), kStart + 305ms);
}

TEST(DeviceModel, LaterPiecesOfARequestOnlyPassThePipe) {
  DeviceModel model(device(1'000'000, 5ms, 1));
  EXPECT_EQ(model.finish(kStart, Bytes{1000}, true), kStart + 6ms);
  EXPECT_EQ(model.finish(kStart, Bytes{1000}, false), kStart + 7ms);
}

TEST(DeviceModel, IdleTimeIsNotSavedUp) {
  DeviceModel model(device(1'000'000, 0ms, 4));
  EXPECT_EQ(model.finish(kStart, Bytes{1000}, true), kStart + 1ms);
  EXPECT_EQ(model.finish(kStart + 10s, Bytes{1000}, true), kStart + 10s + 1ms);
}

TEST(DeviceModel, BackloggedItMovesExactlyItsBandwidth) {
  DeviceModel model(device(400 * kMiB, 100us, 8));
  TimePoint last = kStart;
  for (int i = 0; i < 400; ++i) last = model.finish(kStart, Bytes{kMiB}, true);
  EXPECT_GE(last - kStart, 1s);
  EXPECT_LE(last - kStart, 1s + 1ms);
}

}  // namespace
}  // namespace vpfs
