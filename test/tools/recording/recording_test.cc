#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/recording/fio_iolog.h"
#include "tools/recording/json_lines.h"
#include "tools/recording/perfetto.h"
#include "tools/recording/perfetto.pb.h"

namespace vpfs::recording {
namespace {

using stage::Recorded;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Recording example() {
  Recording made;
  made.stage = "s0";
  made.began = WallTime(std::chrono::seconds(1'795'000'000));
  made.length = std::chrono::seconds(2);
  made.overwritten = 7;
  made.names = {"job-a", "b \"and\" c"};
  made.origins = {{.connection = 0, .client = "", .jobid = ""},
                  {.connection = 5, .client = "10.0.0.1", .jobid = "a"}};
  made.requests = {{.arrival_ns = -1000,
                    .asked = 4096,
                    .moved = 4096,
                    .wait = 30,
                    .service = 20,
                    .virtual_pfs = 0,
                    .origin = 0},
                   {.arrival_ns = 2000,
                    .file = 0xabcdef,
                    .offset = 65536,
                    .asked = 8192,
                    .moved = 100,
                    .wait = 10,
                    .service = 40,
                    .virtual_pfs = 1,
                    .origin = 1,
                    .uid = 1001,
                    .kind = IoKind::write,
                    .reason = stage::RecordedReason::traffic_class,
                    .end = stage::RecordedEnd::failed,
                    .unscheduled = true},
                   {.arrival_ns = 2000,
                    .file = 0xabcdef,
                    .offset = 0,
                    .asked = 512,
                    .moved = 512,
                    .service = 60,
                    .virtual_pfs = 1,
                    .origin = 1,
                    .kind = IoKind::read}};
  return made;
}

template <typename Write>
std::string text_of(Write write) {
  std::string text;
  (void)write([&](std::string_view part) { text += part; });
  return text;
}

std::string json_lines(const Recording& recording) {
  return text_of([&](const Sink& sink) { write_json_lines(recording, sink); });
}

Result<Recording> read(const std::string& text) {
  std::istringstream in(text);
  return read_json_lines(in, "x.json");
}

std::string problem(const std::string& text) {
  const auto read = recording::read(text);
  return read ? "" : read.error().message;
}

TEST(JsonLines, AllOfARecordingComesBack) {
  const Recording was = example();
  const auto back = read(json_lines(was));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->stage, was.stage);
  EXPECT_EQ(back->began, was.began);
  EXPECT_EQ(back->length, was.length);
  EXPECT_EQ(back->overwritten, was.overwritten);
  ASSERT_EQ(back->requests.size(), was.requests.size());
  for (std::size_t i = 0; i < was.requests.size(); ++i) {
    EXPECT_EQ(back->name_of(back->requests[i]), was.name_of(was.requests[i]));
    EXPECT_EQ(back->origin_of(back->requests[i]), was.origin_of(was.requests[i]));
    Recorded one = back->requests[i];
    one.virtual_pfs = was.requests[i].virtual_pfs;
    one.origin = was.requests[i].origin;
    EXPECT_EQ(one, was.requests[i]) << i;
  }
}

TEST(JsonLines, OriginsBeyondTheBoundAreNotThoseOfBefore) {
  Recording was = example();
  EXPECT_EQ(json_lines(was).find("names_are_full"), std::string::npos);
  was.origins.emplace_back();
  was.requests[1].origin = 2;
  const auto back = read(json_lines(was));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_TRUE(back->names_are_full);
  EXPECT_FALSE(back->is_one_of_many(back->requests[0]));
  EXPECT_TRUE(back->is_one_of_many(back->requests[1]));
  EXPECT_FALSE(back->is_one_of_many(back->requests[2]));
}

TEST(JsonLines, SaysIfNamesWereTooMany) {
  Recording was = example();
  was.names_are_full = true;
  const auto back = read(json_lines(was));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_TRUE(back->names_are_full);
}

TEST(JsonLines, WhatIsNotARecordingIsAnErrorWithItsLine) {
  EXPECT_EQ(problem(""), "x.json:1: the file is empty, or cannot be read");
  EXPECT_THAT(problem("{}\n"), StartsWith("x.json:1: expected the first line of a recording"));
  EXPECT_THAT(problem("applications:\n"), StartsWith("x.json:1: expected the first line"));
  EXPECT_EQ(problem("{\"vpfs_recording\":2}\n"),
            "x.json:1: is a recording of version 2, and this program knows 1");
}

TEST(JsonLines, ACutFileIsAnErrorWhereverItIsCut) {
  const std::string whole = json_lines(example());
  for (std::size_t size = 0; size + 1 < whole.size(); ++size) {
    EXPECT_NE(problem(whole.substr(0, size)), "") << size;
  }
  const std::string two = whole.substr(0, whole.rfind('\n', whole.size() - 2) + 1);
  EXPECT_EQ(problem(two), "x.json:4: expected 3 requests, and the file ends after 2: it was cut");
  EXPECT_EQ(problem(whole + "{}\n"), "x.json:5: expected the end of the file after 3 requests");
}

TEST(JsonLines, ARequestOfOtherValuesIsAnErrorWithItsLine) {
  const std::string whole = json_lines(example());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return problem(text.replace(at, from.size(), to));
  };
  EXPECT_EQ(with(R"("kind":"write")", R"("kind":"wrote")"),
            "x.json:3: expected a request: kind: \"wrote\" is not known");
  EXPECT_THAT(with(R"("wait_ns":1000,)", R"("wait_ns":"x",)"), StartsWith("x.json:3: expected a"));
  EXPECT_THAT(with(R"("virtual_pfs":"job-a",)", ""), StartsWith("x.json:2: expected a request"));
  EXPECT_THAT(with(R"("arrival_ns":-1000,)", R"("arrival_ns":-9223372036854775808,)"),
              HasSubstr("arrival_ns: expected a time within a year"));
  EXPECT_THAT(with(R"("moved":100,)", R"("moved":18446744073709551615,)"),
              HasSubstr("moved: expected a whole number from 0 to 1125899906842624"));
  for (const char* const wait : {"-5", "1.5", "true", "null"}) {
    EXPECT_THAT(with(R"("wait_ns":1000,)", fmt::format(R"("wait_ns":{},)", wait)),
                HasSubstr("wait_ns: expected a whole number from 0 to"));
  }
  EXPECT_THAT(with(R"("arrival_ns":-1000,)", R"("arrival_ns":-1.5,)"),
              HasSubstr("arrival_ns: expected a whole number"));
  EXPECT_THAT(with(R"("uid":1001)", R"("uid":4294967296)"),
              HasSubstr("uid: expected a whole number from 0 to 4294967295"));
  EXPECT_THAT(with(R"("requests":3,)", R"("requests":-3,)"),
              HasSubstr("requests: expected a whole number from 0 to"));
  EXPECT_THAT(with("0000000000abcdef", "xyz"), HasSubstr("expected a hexadecimal number"));
}

// Slices of a track nest, and each one ends.
TEST(Perfetto, EachRequestIsASliceOfItsVirtualPfs) {
  Recording recording = example();
  for (int i = 0; i < 5000; ++i) {
    recording.requests.push_back({.arrival_ns = i * 100,
                                  .asked = 1,
                                  .moved = 1,
                                  .wait = static_cast<std::uint32_t>(i % 7),
                                  .service = static_cast<std::uint32_t>(i % 11),
                                  .origin = 1});
  }
  perfetto::Trace trace;
  ASSERT_TRUE(
      trace.ParseFromString(text_of([&](const Sink& sink) { write_perfetto(recording, sink); })));
  std::map<std::uint64_t, std::string> tracks;
  std::map<std::uint64_t, std::vector<std::uint64_t>> open;  // begins, by track
  std::map<std::uint64_t, std::int64_t> counters;
  std::map<std::uint64_t, std::uint64_t> last;
  std::size_t requests = 0;
  for (const perfetto::TracePacket& packet : trace.packet()) {
    if (packet.has_track_descriptor()) {
      tracks[packet.track_descriptor().uuid()] = packet.track_descriptor().name();
      continue;
    }
    const perfetto::TrackEvent& event = packet.track_event();
    ASSERT_TRUE(tracks.contains(event.track_uuid()));
    EXPECT_GE(packet.timestamp(), last[event.track_uuid()]);
    last[event.track_uuid()] = packet.timestamp();
    std::vector<std::uint64_t>& begun = open[event.track_uuid()];
    if (event.type() == perfetto::TrackEvent::TYPE_SLICE_BEGIN) {
      requests += begun.empty() ? 1 : 0;
      begun.push_back(packet.timestamp());
    } else if (event.type() == perfetto::TrackEvent::TYPE_SLICE_END) {
      ASSERT_FALSE(begun.empty());
      begun.pop_back();
    } else {
      counters[event.track_uuid()] = event.counter_value();
      EXPECT_GE(event.counter_value(), 0);
    }
  }
  EXPECT_EQ(requests, recording.requests.size());
  for (const auto& [track, begun] : open) EXPECT_TRUE(begun.empty()) << tracks[track];
  ASSERT_EQ(counters.size(), 2U);
  for (const auto& [track, value] : counters) EXPECT_EQ(value, 0) << tracks[track];
}

TEST(FioIolog, HasReadsAndWritesByTheirArrivals) {
  Recording recording = example();
  recording.requests[2].arrival_ns = 5'002'000;
  std::uint64_t left_out = 0;
  const std::string text =
      text_of([&](const Sink& sink) { left_out = write_fio_iolog(recording, sink); });
  EXPECT_EQ(left_out, 1U) << "its file is not known";
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  const std::string file = "b__and__c.0000000000abcdef";
  EXPECT_THAT(lines, ElementsAre("fio version 3 iolog", "0 " + file + " add", "0 " + file + " open",
                                 "0 " + file + " write 65536 8192", "5000 " + file + " read 0 512",
                                 "5000 " + file + " close"));
}

TEST(Recording, TheTimeOfWhatWasOverwrittenIsLeftOut) {
  Recording all;
  all.length = std::chrono::seconds(60);
  all.names = {"a"};
  all.origins = {{}};
  all.overwritten = 5000;
  for (int i = 0; i < 10; ++i) {
    all.requests.push_back(
        {.arrival_ns = std::chrono::nanoseconds(std::chrono::seconds(50 + i)).count()});
  }
  drop_overwritten(all);
  EXPECT_EQ(all.length, std::chrono::seconds(10));
  ASSERT_EQ(all.requests.size(), 10U);
  EXPECT_EQ(all.requests[0].arrival_ns, 0);
}

TEST(Recording, ItsLastPartIsAsIfItHadBegunThen) {
  Recording all;
  all.began = WallTime(std::chrono::seconds(1'795'000'000));
  all.length = std::chrono::seconds(10);
  all.names = {"a"};
  all.origins = {{}};
  const auto ended_at = [](Duration end) {
    return Recorded{.arrival_ns = (end - std::chrono::milliseconds(3)).count(),
                    .wait = Recorded::ticks(std::chrono::milliseconds(1)),
                    .service = Recorded::ticks(std::chrono::milliseconds(2))};
  };
  using std::chrono::milliseconds;
  all.requests = {ended_at(milliseconds(7999)), ended_at(milliseconds(8000)),
                  ended_at(milliseconds(9500))};
  Recording last = all;
  keep_last(last, std::chrono::seconds(2));
  EXPECT_EQ(last.length, std::chrono::seconds(2));
  EXPECT_EQ(last.began, all.began + std::chrono::seconds(8));
  ASSERT_EQ(last.requests.size(), 2u);
  EXPECT_EQ(arrival(last.requests[0]), TimePoint(milliseconds(-3)));
  EXPECT_EQ(end(last.requests[1]), TimePoint(milliseconds(1500)));

  Recording whole = all;
  keep_last(whole, std::chrono::seconds(10));
  EXPECT_EQ(whole.requests, all.requests);
  EXPECT_EQ(whole.length, all.length);
}

}  // namespace
}  // namespace vpfs::recording
