#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/vpfsctl/record_dump.h"
#include "tools/vpfsctl/record_text.h"

namespace vpfs::ctl {
namespace {

using control::Envelope;
using control::Record;
using control::RecordReply;
using stage::Recorded;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(RecordText, SaysHowMuchThereIs) {
  RecordReply reply;
  EXPECT_EQ(record_text(reply), "there is no recording\n");
  reply.set_number(3);
  reply.set_running(true);
  reply.set_capacity(1000);
  reply.set_written(10);
  reply.set_length_us(12'000'000);
  reply.set_left_us(3'000'000);
  EXPECT_EQ(record_text(reply),
            "recording 3, running for 12 s: 10 requests, room for 1000; ends in 3 s\n");
  reply.set_running(false);
  reply.set_written(2500);
  reply.clear_left_us();
  EXPECT_EQ(record_text(reply),
            "recording 3, ended for 12 s: 2500 requests, the latest 1000 are kept\n");
}

// A stage with a recording, which answers in small parts.
class RecordingStage {
 public:
  explicit RecordingStage(std::size_t requests) {
    for (std::size_t i = 0; i < requests; ++i) {
      Recorded one;
      one.arrival_ns = static_cast<std::int64_t>(i);
      one.virtual_pfs = static_cast<std::uint32_t>(i % kNames);
      one.origin = static_cast<std::uint32_t>(i % kNames);
      requests_.push_back(one.words());
    }
  }
  std::vector<ProxyAnswer> operator()(const Envelope& request) {
    ++asked;
    const Record& record = request.record();
    Envelope envelope;
    RecordReply& reply = *envelope.mutable_record_reply();
    reply.set_number(1);
    reply.set_began_at(1'795'000'000);
    reply.set_length_us(5'000'000);
    reply.set_written(requests_.size());
    reply.set_capacity(requests_.size());
    if (record.action() == Record::READ) {
      const std::uint64_t first = std::max(record.from(), overwritten);
      std::string words;
      for (std::uint64_t i = first; i < std::min(first + kPart, std::uint64_t{requests_.size()});
           ++i) {
        words.append(reinterpret_cast<const char*>(requests_[i].data()), sizeof(Recorded::Words));
      }
      reply.set_first(first);
      reply.set_requests(std::move(words));
      for (std::uint32_t i = record.names(); i < std::min(record.names() + 2, names); ++i) {
        reply.add_names("job-" + std::to_string(i));
      }
      for (std::uint32_t i = record.origins(); i < std::min(record.origins() + 2, names); ++i) {
        reply.add_origins()->set_connection(i);
      }
    }
    return {make_answer("s0", std::move(envelope))};
  }

  static constexpr std::uint32_t kNames = 7;
  static constexpr std::size_t kPart = 10;
  std::uint64_t overwritten = 0;
  std::uint32_t names = kNames;
  int asked = 0;

 private:
  std::vector<Recorded::Words> requests_;
};

TEST(FetchRecording, BringsAllRequestsAndNames) {
  RecordingStage stage(95);
  const Result<Fetched> fetched = fetch_recording(std::ref(stage));
  ASSERT_TRUE(fetched) << fetched.error().message;
  const recording::Recording& got = fetched->recording;
  EXPECT_EQ(got.stage, "s0");
  ASSERT_THAT(got.requests, SizeIs(95));
  for (std::size_t i = 0; i < got.requests.size(); ++i) {
    EXPECT_EQ(got.requests[i].arrival_ns, static_cast<std::int64_t>(i));
    EXPECT_EQ(got.name_of(got.requests[i]), "job-" + std::to_string(i % 7));
    EXPECT_EQ(got.origin_of(got.requests[i]).connection, i % 7);
  }
  EXPECT_EQ(got.overwritten, 0U);
}

TEST(FetchRecording, CountsWhatIsNotThereAnyMore) {
  RecordingStage stage(95);
  stage.overwritten = 30;
  const Result<Fetched> fetched = fetch_recording(std::ref(stage));
  ASSERT_TRUE(fetched) << fetched.error().message;
  EXPECT_THAT(fetched->recording.requests, SizeIs(65));
  EXPECT_EQ(fetched->recording.overwritten, 30U);
}

TEST(FetchRecording, ARequestWithoutANameIsAnError) {
  RecordingStage stage(20);
  stage.names = 3;
  const Result<Fetched> fetched = fetch_recording(std::ref(stage));
  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().message, "s0: its recording has a request without a name");
}

TEST(FetchRecording, WordsWithoutAMeaningAreAnError) {
  const auto ask = [](const Envelope& request) {
    Envelope envelope;
    RecordReply& reply = *envelope.mutable_record_reply();
    reply.set_number(1);
    reply.set_written(1);
    if (request.record().action() == Record::READ && request.record().names() == 0) {
      reply.set_requests(std::string(64, '\xff'));
      reply.add_names("x");
    }
    return std::vector<ProxyAnswer>{make_answer("s0", std::move(envelope))};
  };
  const Result<Fetched> fetched = fetch_recording(ask);
  ASSERT_FALSE(fetched);
  EXPECT_THAT(fetched.error().message, HasSubstr("words that this program does not know"));
}

// A page that was overwritten before it was read is empty, and begins later.
TEST(FetchRecording, AStageThatOverwritesFasterThanItIsReadIsReadToItsEnd) {
  RecordingStage stage(100);
  int pages = 0;
  const auto ask = [&](const Envelope& request) {
    std::vector<ProxyAnswer> answers = stage(request);
    RecordReply& reply = *answers.front().reply.mutable_record_reply();
    if (request.record().action() == Record::READ && request.record().from() != UINT64_MAX &&
        ++pages == 2) {
      reply.clear_requests();
      reply.set_first(60);
      stage.overwritten = 60;
    }
    return answers;
  };
  const Result<Fetched> fetched = fetch_recording(ask);
  ASSERT_TRUE(fetched);
  EXPECT_EQ(fetched->recording.requests.size(), 50U);
  EXPECT_EQ(fetched->recording.requests.back().arrival_ns, 99);
  EXPECT_EQ(fetched->recording.overwritten, 50U);
}

TEST(FetchRecording, AStageWithoutEndIsLeft) {
  std::uint64_t asked = 0;
  std::string name;
  const auto ask = [&](const Envelope&) {
    Envelope envelope;
    RecordReply& reply = *envelope.mutable_record_reply();
    reply.set_number(1);
    reply.set_written(UINT64_MAX);
    for (int i = 0; i < 1000; ++i) reply.add_names(name);
    ++asked;
    return std::vector<ProxyAnswer>{make_answer("s0", std::move(envelope))};
  };
  const auto problem = [&](std::string of_name) {
    asked = 0;
    name = std::move(of_name);
    const Result<Fetched> fetched = fetch_recording(ask);
    return fetched ? "" : fetched.error().message;
  };
  EXPECT_THAT(problem("x"), HasSubstr("has more than 1048576 names"));
  EXPECT_LT(asked, 2000U);
  EXPECT_THAT(problem(std::string(65536, 'x')), HasSubstr("more than 268435456 bytes of names"));
  EXPECT_LT(asked, 10U);
}

TEST(FetchRecording, APartOfARequestIsAnError) {
  std::uint64_t asked = 0;
  const auto ask = [&](const Envelope&) {
    Envelope envelope;
    RecordReply& reply = *envelope.mutable_record_reply();
    reply.set_number(1);
    reply.set_written(10);
    reply.set_requests("short");
    ++asked;
    return std::vector<ProxyAnswer>{make_answer("s0", std::move(envelope))};
  };
  const Result<Fetched> fetched = fetch_recording(ask);
  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().message, "s0: its recording has a part of a request");
  EXPECT_LT(asked, 5U);
}

TEST(FetchRecording, WhatAProxyAnswersInsteadIsHandedOn) {
  const auto ask = [](const Envelope&) {
    return std::vector<ProxyAnswer>{unreachable("s0", "UNAVAILABLE", "is not there")};
  };
  const Result<Fetched> fetched = fetch_recording(ask);
  ASSERT_TRUE(fetched);
  ASSERT_THAT(fetched->failures, SizeIs(1));
  EXPECT_EQ(fetched->failures.front().outcome, Outcome::unreachable);
}

TEST(DumpFormat, IsThatOfTheName) {
  EXPECT_EQ(format_of("a.perfetto-trace"), DumpFormat::perfetto);
  EXPECT_EQ(format_of("a.pftrace"), DumpFormat::perfetto);
  EXPECT_EQ(format_of("a.iolog"), DumpFormat::fio);
  EXPECT_EQ(format_of("a.json"), DumpFormat::json);
  EXPECT_EQ(format_of("a"), DumpFormat::json);
}

TEST(WriteRecording, AFileThatCannotBeWrittenIsAnErrorAndTheOldOneStays) {
  const recording::Recording none;
  const auto gone = write_recording(none, "/nonexistent/x", DumpFormat::json);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().message, "/nonexistent/x: cannot be written: No such file or directory");
}

}  // namespace
}  // namespace vpfs::ctl
