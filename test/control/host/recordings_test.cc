// The recorder, as administrators use it.
#include "control/admin/recordings.h"

#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "control/wire/requests.h"
#include "test/control/host/administration_rig.h"

namespace vpfs::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class RecordingsTest : public AdministrationTest {
 protected:
  static constexpr std::uint64_t kBytes = Recordings::kLeastBytes;  // 1024 requests

  static Record action(Record::Action what, std::uint64_t bytes = 0, std::uint64_t seconds = 0) {
    Record request;
    request.set_action(what);
    request.set_bytes(bytes);
    request.set_for_seconds(seconds);
    return request;
  }
  Envelope ask(const Record& request, const Caller& caller = kChief) {
    Envelope envelope;
    *envelope.mutable_record() = request;
    return AdministrationTest::ask(envelope, caller);
  }
  RecordReply show() { return ask(action(Record::SHOW)).record_reply(); }
  Envelope read(std::uint32_t number, std::uint64_t from = 0, std::uint32_t names = 0,
                std::uint32_t origins = 0) {
    Record request = action(Record::READ);
    request.set_number(number);
    request.set_from(from);
    request.set_names(names);
    request.set_origins(origins);
    return ask(request);
  }
  static std::vector<stage::Recorded> requests_in(const Envelope& reply) {
    const std::string& words = reply.record_reply().requests();
    std::vector<stage::Recorded> all;
    for (std::size_t at = 0; at < words.size(); at += sizeof(stage::Recorded::Words)) {
      stage::Recorded::Words one;
      std::memcpy(one.data(), words.data() + at, sizeof one);
      all.push_back(stage::Recorded::from(one).value());
    }
    return all;
  }
  void serve(const std::string& jobid, int times = 1) {
    for (int i = 0; i < times; ++i) stage_->serve(stage_->find(jobid));
  }
  void seconds(int count) {
    for (int i = 0; i < count; ++i) {
      wall_ += std::chrono::seconds(1);
      stage_->advance(std::chrono::seconds(1));
      administration_->tick();
    }
  }
};

TEST_F(RecordingsTest, WhatArrivesIsKeptUntilItIsDropped) {
  ASSERT_EQ(why_not(AdministrationTest::ask(job_of("mine", 1001))), "");
  serve("mine");
  EXPECT_EQ(show().number(), 0U);
  const Envelope started = ask(action(Record::START, kBytes));
  ASSERT_EQ(why_not(started), "");
  EXPECT_TRUE(started.record_reply().running());
  EXPECT_EQ(started.record_reply().capacity(), 1024U);
  EXPECT_EQ(stage_->recording(), 1U);
  serve("mine", 3);
  seconds(2);
  ASSERT_EQ(why_not(ask(action(Record::STOP))), "");
  EXPECT_EQ(stage_->recording(), 0U);
  serve("mine");
  const RecordReply shown = show();
  EXPECT_FALSE(shown.running());
  EXPECT_EQ(shown.written(), 3U);
  EXPECT_EQ(shown.length_us(), 2'000'000U);
  const Envelope all = read(1);
  EXPECT_THAT(requests_in(all), SizeIs(3));
  EXPECT_THAT(all.record_reply().names(), ElementsAre("", "job-mine"));
  ASSERT_EQ(why_not(ask(action(Record::DROP))), "");
  EXPECT_EQ(show().number(), 0U);
  EXPECT_EQ(why_not(read(1)), "number: there is no recording: `record start` begins one");
}

TEST_F(RecordingsTest, ItEndsByItself) {
  ASSERT_EQ(why_not(ask(action(Record::START, kBytes, 3))), "");
  EXPECT_EQ(show().left_us(), 3'000'000U);
  serve("a");
  seconds(4);
  serve("a");
  const RecordReply shown = show();
  EXPECT_FALSE(shown.running());
  EXPECT_EQ(shown.written(), 1U);
  EXPECT_EQ(shown.length_us(), 3'000'000U);
}

TEST_F(RecordingsTest, TheLatestAreKept) {
  ASSERT_EQ(why_not(ask(action(Record::START, kBytes))), "");
  serve("a", 1500);
  const Envelope reply = read(1);
  EXPECT_EQ(reply.record_reply().written(), 1500U);
  EXPECT_THAT(requests_in(reply), SizeIs(1023));
  EXPECT_EQ(reply.record_reply().first(), 477U);
  EXPECT_THAT(requests_in(read(1, 1400)), SizeIs(100));
}

TEST_F(RecordingsTest, NamesComeInParts) {
  ASSERT_EQ(why_not(ask(action(Record::START, kBytes))), "");
  stage::Recorder* recorder = stage_->get().recorder();
  ASSERT_NE(recorder, nullptr);
  for (std::uint64_t i = 1; i <= 600; ++i) {
    (void)recorder->number_of(stage::Origin{
        .connection = i, .client = stage::Address::parse("10.0.0.7").value(), .jobid = "x"});
  }
  std::vector<std::uint64_t> connections;
  for (int parts = 0; parts < 10; ++parts) {
    const Envelope reply = read(1, UINT64_MAX, 0, static_cast<std::uint32_t>(connections.size()));
    if (reply.record_reply().origins().empty()) break;
    for (const RecordOrigin& origin : reply.record_reply().origins()) {
      connections.push_back(origin.connection());
      if (origin.connection() == 0) continue;
      EXPECT_EQ(origin.client(), "10.0.0.7");
    }
  }
  ASSERT_THAT(connections, SizeIs(601));
  EXPECT_EQ(connections.back(), 600U);
}

TEST_F(RecordingsTest, MistakesChangeNothing) {
  for (const std::uint64_t bytes : {std::uint64_t{100}, UINT64_MAX / 2}) {
    EXPECT_EQ(why_not(ask(action(Record::START, bytes))), "size: expected 64 KiB to 1 GiB");
  }
  EXPECT_EQ(why_not(ask(action(Record::STOP))), ": there is no recording");
  EXPECT_EQ(why_not(ask(action(Record::DROP))), ": there is no recording");
  ASSERT_EQ(why_not(ask(action(Record::START, kBytes))), "");
  serve("a");
  EXPECT_THAT(why_not(ask(action(Record::START, kBytes))), HasSubstr("is running since"));
  EXPECT_EQ(why_not(read(2)), "number: another recording has begun since");
  EXPECT_EQ(show().written(), 1U);
}

TEST_F(RecordingsTest, OneThatTakesTheMemoryOfOthersIsRefused) {
  Recordings recordings(*stage_, [] { return kBytes; });
  const auto refused = recordings.answer(action(Record::START, kBytes), stage_->now(), wall_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("half of the memory that is available here"));
  EXPECT_EQ(stage_->recording(), 0U);
}

TEST_F(RecordingsTest, OnlyThoseWhoMayChangeRulesBeginOrEndOne) {
  const auto right_for = [](Record::Action what) {
    Envelope envelope;
    *envelope.mutable_record() = action(what);
    return needed_right(envelope);
  };
  EXPECT_EQ(right_for(Record::START), Rights::change);
  EXPECT_EQ(right_for(Record::STOP), Rights::change);
  EXPECT_EQ(right_for(Record::DROP), Rights::change);
  EXPECT_EQ(right_for(Record::SHOW), Rights::read);
  EXPECT_EQ(right_for(Record::READ), Rights::read);
}

TEST_F(RecordingsTest, TheEndOfAProgramEndsIt) {
  ASSERT_EQ(why_not(ask(action(Record::START, kBytes))), "");
  administration_.reset();
  EXPECT_EQ(stage_->recording(), 0U);
  serve("a");
}

}  // namespace
}  // namespace vpfs::control
