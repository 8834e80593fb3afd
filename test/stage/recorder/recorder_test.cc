#include "stage/recorder/recorder.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::stage {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::SizeIs;

Recorded request(std::uint64_t number) {
  // All words depend on it, so that a mixture of two shows.
  return {.arrival_ns = static_cast<std::int64_t>(number),
          .file = number * 3,
          .offset = number * 5,
          .asked = number * 7,
          .moved = number * 11,
          .wait = static_cast<std::uint32_t>(number * 13),
          .service = static_cast<std::uint32_t>(number * 17),
          .origin = static_cast<std::uint32_t>(number * 19),
          .uid = static_cast<std::uint32_t>(number * 23)};
}

TEST(RecordedRequest, AllOfItComesBack) {
  Recorded all = request(41);
  all.arrival_ns = -5;
  all.virtual_pfs = 7;
  all.kind = IoKind::metadata;
  all.reason = RecordedReason::traffic_class;
  all.end = RecordedEnd::abandoned;
  all.unscheduled = true;
  EXPECT_EQ(Recorded::from(all.words()), all);
}

TEST(RecordedRequest, WordsWithoutAMeaningAreNone) {
  for (int shift = 32; shift < 64; shift += 8) {
    Recorded::Words words = request(1).words();
    words.back() |= std::uint64_t{9} << shift;
    EXPECT_FALSE(Recorded::from(words)) << shift;
  }
}

TEST(RecordedRequest, LongTimesAreTheLongestOnes) {
  EXPECT_EQ(Recorded::ticks(milliseconds(1)), 10'000U);
  EXPECT_EQ(Recorded::ticks(milliseconds(-1)), 0U);
  EXPECT_EQ(Recorded::ticks(std::chrono::hours(1)), UINT32_MAX);
}

TEST(RecordedReasons, TheLongestCounts) {
  EXPECT_EQ(reason_of({}), RecordedReason::nothing);
  EXPECT_EQ(reason_of({.limit = milliseconds(1), .depth = milliseconds(2)}), RecordedReason::depth);
  EXPECT_EQ(reason_of({.traffic_class = milliseconds(2)}), RecordedReason::traffic_class);
}

std::vector<std::int64_t> read(const RecordedRing& ring, std::uint64_t from, std::size_t count,
                               std::uint64_t* first = nullptr) {
  std::vector<Recorded::Words> words;
  const std::uint64_t begin = ring.read(from, count, words);
  if (first != nullptr) *first = begin;
  std::vector<std::int64_t> arrivals;
  for (const Recorded::Words& each : words) {
    arrivals.push_back(Recorded::from(each).value().arrival_ns);
  }
  return arrivals;
}

TEST(RecordedRingTest, KeepsTheLatest) {
  RecordedRing ring(4);
  EXPECT_THAT(read(ring, 0, 10), SizeIs(0));
  for (std::uint64_t i = 0; i < 3; ++i) ring.write(request(i));
  EXPECT_THAT(read(ring, 0, 10), ElementsAre(0, 1, 2));
  EXPECT_THAT(read(ring, 1, 1), ElementsAre(1));
  EXPECT_THAT(read(ring, 5, 1), SizeIs(0));
  for (std::uint64_t i = 3; i < 9; ++i) ring.write(request(i));
  // The next one goes to the place of number 5.
  std::uint64_t first = 0;
  EXPECT_THAT(read(ring, 0, 10, &first), ElementsAre(6, 7, 8));
  EXPECT_EQ(first, 6U);
  EXPECT_EQ(ring.written(), 9U);
}

TEST(RecordedRingTest, AReaderThatIsFarBehindGetsTheOldestThatAreKept) {
  RecordedRing ring(1024);
  for (std::uint64_t i = 0; i < 100'000; ++i) ring.write(request(i));
  std::uint64_t first = 0;
  EXPECT_THAT(read(ring, 0, 100, &first), SizeIs(100));
  EXPECT_EQ(first, 100'000U - 1023);
  EXPECT_THAT(read(ring, 0, 1'000'000, &first), SizeIs(1023));
  EXPECT_THAT(read(ring, 99'990, SIZE_MAX), SizeIs(10));
  EXPECT_THAT(read(ring, UINT64_MAX, 10), SizeIs(0));
}

TEST(RecordedRingTest, AReaderNeverSeesHalfARequest) {
  constexpr std::uint64_t kRequests = 300'000;
  RecordedRing ring(64);
  std::thread writer([&] {
    for (std::uint64_t i = 0; i < kRequests; ++i) ring.write(request(i));
  });
  std::uint64_t next = 0;
  while (next < kRequests) {
    std::vector<Recorded::Words> words;
    const std::uint64_t first = ring.read(next, 64, words);
    ASSERT_GE(first, std::min(next, first));
    for (std::size_t i = 0; i < words.size(); ++i) {
      ASSERT_EQ(Recorded::from(words[i]), request(first + i));
    }
    next = first + words.size();
    if (ring.written() == kRequests && words.empty()) break;
  }
  writer.join();
  EXPECT_EQ(ring.written(), kRequests);
}

TEST(RecorderTest, NamesAreThoseOfTheTimeOfTheRequest) {
  Recorder recorder({.requests = 8});
  const TimePoint now = TimePoint(milliseconds(1));
  recorder.write(request(1), {.app = AppId{3}, .generation = 0}, "job-1", now);
  recorder.write(request(2), {.app = AppId{3}, .generation = 1}, "job-2", now);
  recorder.write(request(3), {.app = AppId{3}, .generation = 1}, "job-2", now);
  recorder.write(request(4), {.app = AppId{0}, .generation = 0}, "default", now);
  EXPECT_THAT(recorder.names(), ElementsAre("", "job-1", "job-2", "default"));
  std::vector<Recorded::Words> words;
  (void)recorder.ring().read(0, 8, words);
  std::vector<std::uint32_t> numbers;
  for (const Recorded::Words& each : words) {
    numbers.push_back(Recorded::from(each).value().virtual_pfs);
  }
  EXPECT_THAT(numbers, ElementsAre(1, 2, 2, 3));
}

TEST(RecorderTest, OriginsHaveOneNumberEach) {
  Recorder recorder({.requests = 1});
  const Address here = Address::parse("10.0.0.1").value();
  EXPECT_EQ(recorder.number_of({.connection = 1, .client = here, .jobid = "a"}), 1U);
  EXPECT_EQ(recorder.number_of({.connection = 1, .client = here, .jobid = "b"}), 2U);
  EXPECT_EQ(recorder.number_of({.connection = 2, .client = here, .jobid = "a"}), 3U);
  EXPECT_EQ(recorder.number_of({.connection = 1, .client = here, .jobid = "b"}), 2U);
  EXPECT_EQ(recorder.origins()[2].jobid, "b");
  EXPECT_EQ(recorder.number_of({.connection = 0, .client = {}, .jobid = ""}), 0U);
}

TEST(RecorderTest, NamesAndOriginsHaveABound) {
  Recorder recorder({.requests = 1});
  for (std::uint32_t i = 1; i < Recorder::kMostNames + 10; ++i) {
    recorder.write(request(i), {.app = AppId{i % 100}, .generation = i}, "job", {});
    (void)recorder.number_of(Origin{.connection = i, .client = {}, .jobid = ""});
  }
  EXPECT_TRUE(recorder.is_full());
  EXPECT_THAT(recorder.names(), SizeIs(Recorder::kMostNames));
  EXPECT_THAT(recorder.origins(), SizeIs(Recorder::kMostNames));
  const std::uint32_t many =
      recorder.number_of(Origin{.connection = 1'000'000, .client = {}, .jobid = ""});
  EXPECT_NE(many, 0U) << "that is what came before the recording began";
  EXPECT_EQ(recorder.origins()[many], Origin());
}

TEST(RecorderTest, OneConnectionCannotTakeAllOrigins) {
  Recorder recorder({.requests = 1});
  const auto number = [&](std::uint64_t connection, const std::string& jobid) {
    return recorder.number_of(Origin{.connection = connection, .client = {}, .jobid = jobid});
  };
  for (std::size_t i = 0; i < Recorder::kMostJobs; ++i) {
    EXPECT_EQ(recorder.origins()[number(1, std::to_string(i))].jobid, std::to_string(i));
  }
  EXPECT_FALSE(recorder.is_full());
  for (std::uint32_t i = 0; i < Recorder::kMostNames; ++i) (void)number(1, "x" + std::to_string(i));
  EXPECT_TRUE(recorder.is_full());
  EXPECT_EQ(number(1, "y"), number(1, "")) << "it still has its connection";
  EXPECT_EQ(recorder.origins()[number(2, "y")].jobid, "y");
  EXPECT_THAT(recorder.origins(), SizeIs(Recorder::kMostJobs + 3));
}

TEST(RecorderTest, EndsAtItsTime) {
  Recorder recorder({.requests = 8, .end = TimePoint(milliseconds(10))});
  recorder.write(request(1), {}, "default", TimePoint(milliseconds(10)));
  recorder.write(request(2), {}, "default", TimePoint(milliseconds(11)));
  EXPECT_EQ(recorder.ring().written(), 1U);
}

}  // namespace
}  // namespace vpfs::stage
