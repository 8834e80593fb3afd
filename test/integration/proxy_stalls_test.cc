// Clients that keep the data server waiting lose their slots to others.

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using orangefs::IoType;
using orangefs::Tag;

constexpr const char* kTwoJobs =
    "[{match: {hint: {jobid: a}}, virtual_pfs: a}, {match: {hint: {jobid: b}}, virtual_pfs: b}]";

// Starts `count` writes of 1 MiB: the data server has answered, and the data are still to come. All
// answers leave together, so that all writes stall from the same time.
void start_writes(ProxiedLink& link, Tag count, const std::string& job) {
  Buffer answers;
  for (Tag tag = 1; tag <= count; ++tag) {
    ASSERT_TRUE(
        link.client.send(io_request(tag, {.type = IoType::write, .size = 1 << 20, .job = job})));
    const auto request = link.server.receive();
    ASSERT_TRUE(request);
    const Buffer answer = io_response(request->header.tag, 0);
    answers.insert(answers.end(), answer.begin(), answer.end());
  }
  ASSERT_TRUE(link.server.send(answers));
  for (Tag tag = 1; tag <= count; ++tag) ASSERT_TRUE(link.client.receive());
}

// The victim's request comes, and waits for a slot if there is none. Slots that no request waits
// for are not taken away.
void ask(ProxiedLink& victim, Tag tag) {
  ASSERT_TRUE(victim.client.send(small_read_request(tag, {.size = 4096})));
}
// The victim's request reaches the data server and is answered.
void expect_answered(ProxiedLink& victim, Tag tag) {
  ASSERT_TRUE(victim.server.receive()) << "the victim has no slot";
  ASSERT_TRUE(victim.server.send(small_read_response(tag, Buffer(4096))));
  ASSERT_TRUE(victim.client.receive());
}

void expect_served(ProxiedLink& victim, Tag tag) {
  ask(victim, tag);
  expect_answered(victim, tag);
}

class ProxyStalls : public ::testing::Test {
 protected:
  FakeDataServer server_;
  ProxyProcess proxy_{{.upstream = server_.port(),
                       .depth = 4,
                       .timeouts = "client_stall: 400 ms",
                       .virtual_pfs = "a: {weight: 1}, b: {weight: 1}",
                       .rules = kTwoJobs}};
  ProxiedLink staller_ = open_link(proxy_, server_);
  ProxiedLink victim_ = open_link(proxy_, server_);
};

TEST_F(ProxyStalls, AWriterThatSendsNothingGivesItsSlotsUpAndItsDataPassWhenTheyCome) {
  start_writes(staller_, 4, "a");
  expect_served(victim_, 1);
  EXPECT_TRUE(proxy_.logs("does not send the data of its writes: 4 of its requests give up"));
  EXPECT_TRUE(proxy_.wait_until([](const nlohmann::json& now) {
    return now["outstanding"] == 0 && now["counters"]["slots_given_up"] == 4 &&
           now["virtual_pfs"][1]["given_up_requests"] == 4;
  }));

  // Late data still pass, and are counted.
  for (Tag tag = 1; tag <= 4; ++tag) {
    const Buffer data = data_message(tag, StampedFile{.file = tag}.bytes(0, 1 << 20));
    ASSERT_TRUE(staller_.client.send(data));
    ASSERT_EQ(staller_.server.receive().value().bytes(), data);
    ASSERT_TRUE(staller_.server.send(write_completion(tag, 1 << 20)));
    ASSERT_TRUE(staller_.client.receive());
  }
  ASSERT_TRUE(proxy_.wait_until([](const nlohmann::json& now) {
    return now["counters"]["late_bytes"] == 4 << 20 && now["counters"]["ios_alive"] == 0 &&
           now["virtual_pfs"][1]["done_requests"] == 4;
  }));
  EXPECT_EQ(proxy_.status()["virtual_pfs"][1]["done_bytes"], 4 << 20);
  start_writes(staller_, 1, "a");
}

TEST_F(ProxyStalls, AByteNowAndThenIsNotProgress) {
  start_writes(staller_, 4, "a");
  const Buffer data = data_message(1, Buffer(1 << 20));
  ASSERT_TRUE(victim_.client.send(small_read_request(1, {.size = 4096})));
  std::size_t sent = 0;
  const bool served = proxy_.wait_until([&](const nlohmann::json& status) {
    (void)staller_.client.send(std::span(data).subspan(sent++, 1));
    return status["counters"]["slots_given_up"] == 4;
  });
  EXPECT_TRUE(served);
  EXPECT_TRUE(victim_.server.receive());
}

// The proxy has released these requests, but cannot forward them.
TEST_F(ProxyStalls, RequestsBehindHalfAMessageGiveTheirSlotsUp) {
  Buffer burst;
  for (Tag tag = 1; tag <= 4; ++tag) {
    const Buffer request = io_request(tag, {.size = 65536, .job = "a"});
    burst.insert(burst.end(), request.begin(), request.end());
  }
  const Buffer half = passing_request(99, 100);
  burst.insert(burst.end(), half.begin(), half.begin() + 60);
  ASSERT_TRUE(staller_.client.send(burst));
  ASSERT_TRUE(proxy_.wait_for_outstanding(4));
  ask(victim_, 1);
  ASSERT_TRUE(proxy_.wait_until(
      [](const nlohmann::json& status) { return status["counters"]["slots_given_up"] == 4; }));
  expect_answered(victim_, 1);
  ASSERT_TRUE(staller_.client.send(std::span(half).subspan(60)));
  EXPECT_EQ(staller_.server.receive().value().bytes(), half);
  for (Tag tag = 1; tag <= 4; ++tag) EXPECT_TRUE(staller_.server.receive());
}

// The proxy stops reading a client that sends too many requests. The client's writes still count as
// stalled.
TEST_F(ProxyStalls, AClientThatIsNotReadBecauseItAsksForTooMuchStallsAllTheSame) {
  start_writes(staller_, 4, "a");
  std::jthread flood([&] {
    for (Tag tag = 1000; tag < 40'000; ++tag) {
      if (!staller_.client.send(getattr_request(tag))) return;
    }
  });
  ask(victim_, 1);
  EXPECT_TRUE(proxy_.wait_until(
      [](const nlohmann::json& status) { return status["counters"]["slots_given_up"] == 4; }));
  expect_answered(victim_, 1);
  staller_.server.close();
}

// After its stall the client may have one request at a time, which takes no slot from others.
TEST_F(ProxyStalls, AClientThatStallsAgainAndAgainTakesNoSlotFromOthers) {
  start_writes(staller_, 4, "a");
  ask(victim_, 1);
  ASSERT_TRUE(proxy_.logs("4 of its requests give up their slots"));
  expect_answered(victim_, 1);
  for (Tag tag = 11; tag <= 20; ++tag) {
    ASSERT_TRUE(staller_.client.send(
        io_request(tag, {.type = IoType::write, .size = 1 << 20, .job = "a"})));
  }
  ASSERT_TRUE(staller_.server.receive());
  ASSERT_TRUE(staller_.server.send(io_response(11, 0)));
  ASSERT_TRUE(proxy_.wait_for_outstanding(0));
  for (Tag tag = 1; tag <= 5; ++tag) expect_served(victim_, tag);
  EXPECT_FALSE(staller_.server.readable(0ms)) << "one at a time";
}

TEST_F(ProxyStalls, SlotsThatAreNotWaitedForAreKept) {
  start_writes(staller_, 4, "a");
  std::this_thread::sleep_for(1500ms);
  const nlohmann::json status = proxy_.status();
  EXPECT_EQ(status["counters"]["slots_given_up"], 0);
  EXPECT_EQ(status["counters"]["client_stalls"], 0);
  EXPECT_EQ(status["outstanding"], 4);
  expect_served(victim_, 1);
}

TEST_F(ProxyStalls, WhileOneThatStalledWaitsTheStatusSaysSo) {
  start_writes(staller_, 4, "a");
  ask(victim_, 1);
  ASSERT_TRUE(proxy_.logs("4 of its requests give up their slots"));
  expect_answered(victim_, 1);
  ASSERT_TRUE(staller_.client.send(small_read_request(5, {.size = 4096, .job = "a"})));
  ASSERT_TRUE(staller_.client.send(small_read_request(6, {.size = 4096, .job = "a"})));
  ASSERT_TRUE(staller_.server.receive());
  EXPECT_TRUE(proxy_.wait_until([](const nlohmann::json& now) {
    const nlohmann::json& row = now["virtual_pfs"][1];
    return row.value("oldest_waits_for", "") == "its client is slow" &&
           row["held_us"]["client"] > 0 && row["queued_requests"] == 0;
  }));
}

TEST_F(ProxyStalls, AnotherConnectionOfTheApplicationGoesOn) {
  start_writes(staller_, 4, "a");
  ask(victim_, 1);
  ASSERT_TRUE(proxy_.logs("4 of its requests give up their slots"));
  expect_answered(victim_, 1);
  ProxiedLink other = open_link(proxy_, server_);
  for (Tag tag = 1; tag <= 4; ++tag) {
    ASSERT_TRUE(other.client.send(small_read_request(tag, {.size = 4096, .job = "a"})));
    ASSERT_TRUE(other.server.receive());
  }
  EXPECT_EQ(proxy_.status()["outstanding"], 4) << "requests with a slot";
}

// The data server has a queue for each datafile. While a write of "a" waits for its slow client,
// requests of another link for the same datafile wait there too.
class ProxyStallsBehindAHandle : public ProxyStalls {
 protected:
  static constexpr orangefs::Handle kOther = 4711;

  void expect_other_served(ProxiedLink& link, Tag tag) {
    ASSERT_TRUE(link.client.send(small_read_request(tag, {.size = 4096, .datafile = kOther})));
    expect_answered(link, tag);
  }
  void expect_answer_to(Tag tag) {
    ASSERT_TRUE(queued_.server.send(small_read_response(tag, Buffer(4096))));
    EXPECT_EQ(queued_.client.receive().value().bytes(), small_read_response(tag, Buffer(4096)));
  }
  // A write that stalls, and behind it as many reads as there are slots. At least three of them
  // lose theirs; the last one may have been sent too late for that.
  void fill_the_queue() {
    start_writes(staller_, 1, "a");
    for (Tag tag = 1; tag <= 4; ++tag) {
      ASSERT_TRUE(queued_.client.send(small_read_request(tag, {.size = 4096})));
    }
    // The last one has the slot of the write.
    for (Tag tag = 1; tag <= 4; ++tag) ASSERT_TRUE(queued_.server.receive());
    ASSERT_TRUE(victim_.client.send(small_read_request(1, {.size = 4096, .datafile = kOther})));
    expect_answered(victim_, 1);
    EXPECT_TRUE(proxy_.logs("of its requests wait at the data server for a slow client"));
  }
  // The slow write gets its data, and ends.
  void end_write() {
    const Buffer data = data_message(1, StampedFile{.file = 1}.bytes(0, 1 << 20));
    ASSERT_TRUE(staller_.client.send(data));
    ASSERT_EQ(staller_.server.receive().value().bytes(), data);
    ASSERT_TRUE(staller_.server.send(write_completion(1, 1 << 20)));
    ASSERT_TRUE(staller_.client.receive());
  }

  ProxiedLink queued_ = open_link(proxy_, server_);
  Tag sent_ = 0;      // to the server by that link
  Tag answered_ = 0;  // of these
};

TEST_F(ProxyStallsBehindAHandle, RequestsThatTheServerQueuesGiveTheirSlotsUp) {
  fill_the_queue();
  for (Tag tag = 2; tag <= 6; ++tag) expect_other_served(victim_, tag);
  EXPECT_GE(proxy_.status()["counters"]["slots_given_up"], 4);
  end_write();
  for (Tag tag = 1; tag <= 4; ++tag) expect_answer_to(tag);
  EXPECT_TRUE(proxy_.wait_until([](const nlohmann::json& now) {
    return now["counters"]["ios_alive"] == 0 && now["virtual_pfs"][0]["done_requests"] == 10;
  }));
}

TEST_F(ProxyStallsBehindAHandle, LaterOnesOfTheFileWaitUntilTheSlowWriteEndsAndOthersGoOn) {
  fill_the_queue();
  ASSERT_TRUE(queued_.client.send(small_read_request(5, {.size = 4096})));
  expect_other_served(queued_, 6);
  EXPECT_TRUE(proxy_.wait_until([](const nlohmann::json& now) {
    const nlohmann::json& row = now["virtual_pfs"][0];
    return row.value("oldest_waits_for", "") == "another client of its file is slow" &&
           row["held_us"]["client"] > 0 && row["queued_requests"] == 0;
  }));
  EXPECT_FALSE(queued_.server.readable(0ms));
  end_write();
  EXPECT_EQ(queued_.server.receive().value().bytes(), small_read_request(5, {.size = 4096}));
  for (Tag tag = 1; tag <= 5; ++tag) expect_answer_to(tag);
}

TEST_F(ProxyStallsBehindAHandle, LaterOnesGoOnceTheServerHasAnsweredThoseThatItQueued) {
  fill_the_queue();
  ASSERT_TRUE(queued_.client.send(small_read_request(5, {.size = 4096})));
  for (Tag tag = 1; tag <= 4; ++tag) expect_answer_to(tag);
  EXPECT_TRUE(queued_.server.receive()) << "the slow write keeps none waiting";
  expect_answer_to(5);
}

TEST_F(ProxyStallsBehindAHandle, LaterOnesGoWhenTheSlowClientIsGone) {
  fill_the_queue();
  ASSERT_TRUE(queued_.client.send(small_read_request(5, {.size = 4096})));
  staller_.client.close();
  EXPECT_TRUE(queued_.server.receive());
  for (Tag tag = 1; tag <= 5; ++tag) expect_answer_to(tag);
}

TEST_F(ProxyStallsBehindAHandle, LaterOnesGoWhenThoseInTheQueueAreGone) {
  fill_the_queue();
  ProxiedLink later = open_link(proxy_, server_);
  ASSERT_TRUE(later.client.send(small_read_request(1, {.size = 4096})));
  expect_other_served(later, 2);
  EXPECT_FALSE(later.server.readable(0ms));
  queued_.client.close();
  EXPECT_TRUE(later.server.receive());
}

// Those that the scheduler has already do not take the slots in turn.
TEST_F(ProxyStallsBehindAHandle, NoMoreThanTheDepthIsSentBehindASlowClient) {
  start_writes(staller_, 1, "a");
  constexpr Tag kAll = 100;
  for (Tag tag = 1; tag <= kAll; ++tag) {
    ASSERT_TRUE(queued_.client.send(small_read_request(tag, {.size = 4096})));
  }
  for (Tag tag = 1; tag <= 10; ++tag) expect_other_served(victim_, tag);
  EXPECT_TRUE(proxy_.logs("of its requests wait at the data server for a slow client"));
  std::vector<Tag> sent;
  while (queued_.server.readable(300ms)) sent.push_back(queued_.server.receive()->header.tag);
  EXPECT_LE(sent.size(), 8U) << "the depth, and what the first of them gave up";
  end_write();
  for (const Tag tag : sent) expect_answer_to(tag);
  for (std::size_t i = sent.size(); i < kAll; ++i) {
    const auto request = queued_.server.receive();
    ASSERT_TRUE(request);
    expect_answer_to(request->header.tag);
  }
}

// An application has a budget for that at each address.
TEST_F(ProxyStallsBehindAHandle, OneThatWaitedThereForTooLongIsKeptFromSlowFilesAlone) {
  start_writes(staller_, 1, "a");
  const auto ask_for = [&](Tag tag) {
    ASSERT_TRUE(queued_.client.send(small_read_request(tag, {.size = 4096, .job = "b"})));
  };
  Tag tag = 0;
  for (int turn = 0; turn < 3; ++turn) {
    const Tag first = tag + 1;
    for (int i = 0; i < 4; ++i) ask_for(++tag);
    for (Tag each = first; each <= tag; ++each) {
      if (!queued_.server.readable(500ms)) break;
      ASSERT_TRUE(queued_.server.receive());
      ++sent_;
    }
    expect_other_served(victim_, static_cast<Tag>(turn + 1));
    for (; answered_ < sent_;) expect_answer_to(++answered_);
  }
  EXPECT_LT(sent_, tag) << "the server has answered all, and the last ones wait all the same";
  EXPECT_FALSE(queued_.server.readable(300ms));

  // Other applications and other files are as before.
  ASSERT_TRUE(victim_.client.send(small_read_request(50, {.size = 4096})));
  expect_answered(victim_, 50);
  expect_other_served(queued_, 51);
  end_write();
  for (; answered_ < tag;) {
    ASSERT_TRUE(queued_.server.receive());
    expect_answer_to(++answered_);
  }
}

}  // namespace
}  // namespace vpfs::test
