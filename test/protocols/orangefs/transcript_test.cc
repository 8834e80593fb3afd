#include "protocols/orangefs/transcript.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/protocols/orangefs/captured.h"

namespace vpfs::orangefs {
namespace {

using ::testing::HasSubstr;

using Entries = std::vector<TranscriptEntry>;

// Requests and their answers, as a client and a server would exchange them.
class Exchange {
 public:
  Exchange& client(const std::vector<std::byte>& bytes) { return feed(Sender::client, bytes); }
  Exchange& server(const std::vector<std::byte>& bytes) { return feed(Sender::server, bytes); }
  Entries end() {
    transcript_.finish(entries_);
    return std::move(entries_);
  }

 private:
  Exchange& feed(Sender from, const std::vector<std::byte>& bytes) {
    transcript_.feed(from, bytes, entries_);
    return *this;
  }

  OrangefsTranscript transcript_{false};
  Entries entries_;
};

std::vector<std::byte> io_request(Tag tag, IoType type, std::int64_t size) {
  return request_message(tag,
                         {.body = IoRequestBody{.io_type = type,
                                                .file_request = FileRequest::contiguous_bytes(),
                                                .aggregate_size = size}});
}
std::vector<std::byte> io_response(Tag tag, std::int64_t bstream_size) {
  return response_message(tag, {.body = IoResponse{.bstream_size = bstream_size}});
}
std::vector<std::byte> completion(Tag tag, std::int64_t size) {
  return response_message(tag, {.body = WriteCompletionResponse{.total_completed = size}});
}
std::vector<std::byte> data(Tag tag, std::size_t size) {
  const auto header =
      encode(BmiHeader{.mode = expected_mode(size), .tag = tag, .payload_size = size});
  std::vector<std::byte> message(header.begin(), header.end());
  message.resize(message.size() + size);
  return message;
}

std::vector<std::string> kinds(const Entries& entries) {
  std::vector<std::string> found;
  for (const TranscriptEntry& entry : entries) found.push_back(entry.kind);
  return found;
}

std::string faults(const Entries& entries) {
  std::string found;
  for (const TranscriptEntry& entry : entries) {
    if (entry.fault) found += entry.line + "\n";
  }
  return found;
}

TEST(Transcript, TellsAReadAndItsData) {
  const Entries entries = Exchange()
                              .client(io_request(1, IoType::read, 1000))
                              .server(io_response(1, 600))
                              .server(data(1, 600))
                              .end();
  EXPECT_EQ(kinds(entries),
            (std::vector<std::string>{"REQ IO UNEXP", "RESP IO EAGER", "DATA flow EAGER"}));
  EXPECT_THAT(entries[0].line, HasSubstr("READ handle=0 range=0+1000 here=1000 server=0/1"));
  EXPECT_THAT(entries[1].line, HasSubstr("will_send=600"));
}

TEST(Transcript, TellsAWriteUpToItsCompletion) {
  const Entries entries = Exchange()
                              .client(io_request(1, IoType::write, 30000))
                              .server(io_response(1, 0))
                              .client(data(1, 20000))
                              .client(data(1, 10000))
                              .server(completion(1, 30000))
                              .end();
  EXPECT_EQ(kinds(entries),
            (std::vector<std::string>{"REQ IO UNEXP", "RESP IO EAGER", "DATA flow REND",
                                      "DATA flow EAGER", "ACK WRITE_COMPLETION EAGER"}));
}

TEST(Transcript, DataThatLookLikeAResponseAreData) {
  std::vector<std::byte> looks_like_one = io_response(1, 5);
  const Entries entries = Exchange()
                              .client(io_request(1, IoType::read, 24))
                              .server(io_response(1, 1000))
                              .server(looks_like_one)
                              .end();
  EXPECT_EQ(entries.back().kind, "DATA flow EAGER");
}

TEST(Transcript, ReadThatCarriesLessThanItMustIsAFault) {
  const Entries entries = Exchange()
                              .client(io_request(1, IoType::read, 1000))
                              .server(io_response(1, 1000))
                              .server(data(1, 999))
                              .end();
  EXPECT_THAT(faults(entries), HasSubstr("read flow of tag=1 carried 999/1000"));
}

TEST(Transcript, CompletionOfOtherBytesThanWereSentIsAFault) {
  for (const auto& [sent, completed] : {std::pair(1000, 999), {999, 999}, {999, 1000}}) {
    const Entries entries = Exchange()
                                .client(io_request(1, IoType::write, 1000))
                                .server(io_response(1, 0))
                                .client(data(1, static_cast<std::size_t>(sent)))
                                .server(completion(1, completed))
                                .end();
    EXPECT_THAT(faults(entries), HasSubstr("WRITE_COMPLETION does not match"));
  }
}

TEST(Transcript, MessagesOutOfTurnAreFaults) {
  const auto request = request_message(1, {.body = EmptyRequest{.op = Op::mgmt_noop}});
  const auto answer = response_message(1, {.body = EmptyResponse{.op = Op::mgmt_noop}});
  EXPECT_THAT(faults(Exchange().server(request).end()), HasSubstr("from the accepting side"));
  EXPECT_THAT(faults(Exchange().server(answer).end()), HasSubstr("no request with that tag"));
  EXPECT_THAT(faults(Exchange().client(request).client(data(1, 5)).end()),
              HasSubstr("no request or response of its tag allows"));
  EXPECT_THAT(faults(Exchange().client(request).server(answer).server(answer).end()),
              HasSubstr("after the end of its operation"));
  EXPECT_EQ(faults(Exchange().client(request).server(answer).end()), "");
}

TEST(Transcript, LostFramingIsOneFaultAtItsOffset) {
  std::vector<std::byte> stream = request_message(1, {.body = EmptyRequest{}});
  const std::size_t end = stream.size();
  stream.resize(end + 100);
  const Entries entries = Exchange().client(stream).client(stream).end();
  EXPECT_EQ(faults(entries), "ERR bad magic number in the BMI header at stream offset " +
                                 std::to_string(end) + "\n");
}

TEST(Transcript, StreamThatEndsInAMessageIsAFault) {
  std::vector<std::byte> stream = request_message(1, {.body = EmptyRequest{}});
  for (std::size_t size = 1; size < stream.size(); ++size) {
    const auto end = stream.begin() + static_cast<std::ptrdiff_t>(size);
    const Entries entries = Exchange().client({stream.begin(), end}).end();
    ASSERT_THAT(faults(entries), HasSubstr("not complete at stream offset 0")) << size;
  }
}

TEST(Transcript, RecognisesItsFraming) {
  const auto request = request_message(1, {.body = EmptyRequest{}});
  EXPECT_EQ(recognise(request).match, Recognition::Match::yes);
  EXPECT_EQ(recognise(request).from, Sender::client);
  EXPECT_EQ(recognise(data(1, 5)).from, std::nullopt);
  EXPECT_EQ(recognise(std::span(request).first(23)).match, Recognition::Match::need_more);
  const std::vector<std::byte> other(24, std::byte{'S'});
  EXPECT_EQ(recognise(other).match, Recognition::Match::no);
}

// The messages by kind of a connection whose bytes come in pieces of at most that size.
std::map<std::string, int> kinds_of(const test::CapturedStream& client,
                                    const test::CapturedStream& server, std::size_t piece) {
  OrangefsTranscript transcript(false);
  const Entries entries = vpfs::test::told_in_pieces(transcript, client, server, piece);
  std::map<std::string, int> found;
  for (const TranscriptEntry& entry : entries) ++found[entry.kind];
  return found;
}

TEST(Transcript, PiecesOfAnySizeGiveTheSameMessagesWithoutFaults) {
  constexpr std::size_t kSmall = 20000;  // byte by byte would take long for more
  for (const std::string& file : test::capture_files()) {
    const auto streams = test::captured_streams(file);
    for (std::size_t i = 0; i + 1 < streams.size(); i += 2) {
      const auto whole = kinds_of(streams[i], streams[i + 1], std::size_t{1} << 30);
      EXPECT_EQ(whole.count("ERR"), 0U) << streams[i].name;
      const bool small = streams[i].bytes.size() + streams[i + 1].bytes.size() < kSmall;
      for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{4099}}) {
        if (piece < 4099 && !small) continue;
        EXPECT_EQ(kinds_of(streams[i], streams[i + 1], piece), whole)
            << streams[i].name << " by " << piece;
      }
    }
  }
}

}  // namespace
}  // namespace vpfs::orangefs
