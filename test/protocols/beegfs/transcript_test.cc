#include "protocols/beegfs/transcript.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/byte_writer.h"
#include "test/protocols/beegfs/captured.h"

namespace vpfs::beegfs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Bytes = std::vector<std::byte>;
using Entries = std::vector<TranscriptEntry>;

// What a client and a server say, in this order.
class Exchange {
 public:
  Exchange& client(const Bytes& bytes) { return feed(Sender::client, bytes); }
  Exchange& server(const Bytes& bytes) { return feed(Sender::server, bytes); }
  Entries end() {
    transcript_.finish(entries_);
    return std::move(entries_);
  }

 private:
  Exchange& feed(Sender from, const Bytes& bytes) {
    transcript_.feed(from, bytes, entries_);
    return *this;
  }

  BeegfsTranscript transcript_{false};
  Entries entries_;
};

Bytes message(Body body) {
  return encode_message({.body = std::move(body)});
}
Bytes write_of(std::int64_t count) {
  return message(WriteLocalFile{.count = count});
}
Bytes read_of(std::int64_t count) {
  return message(ReadLocalFile{.count = count});
}
Bytes written(std::int64_t result) {
  return message(WriteLocalFileResp{.result = result});
}
Bytes data(std::size_t size) {
  return Bytes(size, std::byte{0xda});
}

// The given length words, each followed by that many bytes.
Bytes pieces(std::initializer_list<std::int64_t> words) {
  Bytes bytes;
  ByteWriter out(bytes);
  for (const std::int64_t word : words) {
    out.i64(word);
    if (word > 0) out.zeros(static_cast<std::size_t>(word));
  }
  return bytes;
}

std::vector<std::string> kinds(const Entries& entries) {
  std::vector<std::string> found;
  for (const TranscriptEntry& entry : entries) found.push_back(entry.kind);
  return found;
}

std::vector<std::string> faults(const Entries& entries) {
  std::vector<std::string> found;
  for (const TranscriptEntry& entry : entries) {
    if (entry.fault) found.push_back(entry.line);
  }
  return found;
}

std::uint64_t told(const Entries& entries) {
  std::uint64_t bytes = 0;
  for (const TranscriptEntry& entry : entries) bytes += entry.bytes;
  return bytes;
}

TEST(Transcript, TellsAWriteItsDataAndItsAnswer) {
  const Entries entries =
      Exchange().client(write_of(5000)).client(data(5000)).server(written(5000)).end();
  EXPECT_THAT(kinds(entries), ElementsAre("WriteLocalFile", "DATA write", "WriteLocalFileResp"));
  EXPECT_THAT(entries[0].line, HasSubstr("WriteLocalFile offset=0 count=5000 handle="));
  EXPECT_EQ(entries[1].line, "DATA write 5000");
  EXPECT_EQ(entries[2].line, "WriteLocalFileResp result=5000");
  EXPECT_EQ(told(entries), write_of(5000).size() + 5000 + written(5000).size());
}

TEST(Transcript, TellsTheWordsAndDataOfARead) {
  const Bytes answer = pieces({600, 300, 0});
  const Entries entries = Exchange().client(read_of(1000)).server(answer).end();
  EXPECT_THAT(kinds(entries), ElementsAre("ReadLocalFileV2", "DATA read", "DATA read", "END read"));
  EXPECT_EQ(entries[1].line, "DATA read 600 600/1000");
  EXPECT_EQ(entries[2].line, "DATA read 300 900/1000");
  EXPECT_EQ(entries[3].line, "END read 900/1000");
  EXPECT_EQ(told(entries), read_of(1000).size() + answer.size());
}

TEST(Transcript, ErrorsOfReadsAndWritesAreTold) {
  const Entries entries = Exchange()
                              .client(read_of(10))
                              .server(pieces({-15}))
                              .client(write_of(3))
                              .client(data(3))
                              .server(written(-14))
                              .end();
  EXPECT_THAT(faults(entries), IsEmpty());
  EXPECT_EQ(entries[1].line, "END read 0/10 error=-15 (unknown target)");
  EXPECT_EQ(entries[4].line, "WriteLocalFileResp result=-14 (no space)");
}

TEST(Transcript, DataThatLookLikeMessagesAreData) {
  const Bytes looks_like_one = read_of(7);
  const auto size = static_cast<std::int64_t>(looks_like_one.size());
  Bytes answer = pieces({size});
  std::ranges::copy(looks_like_one, answer.begin() + 8);
  const Entries entries = Exchange()
                              .client(write_of(size))
                              .client(looks_like_one)
                              .server(written(size))
                              .client(read_of(size))
                              .server(answer)
                              .server(pieces({0}))
                              .end();
  EXPECT_THAT(kinds(entries), ElementsAre("WriteLocalFile", "DATA write", "WriteLocalFileResp",
                                          "ReadLocalFileV2", "DATA read", "END read"));
}

TEST(Transcript, WriteOfNothingHasNoData) {
  const Entries entries = Exchange().client(write_of(0)).server(written(0)).end();
  EXPECT_THAT(kinds(entries), ElementsAre("WriteLocalFile", "WriteLocalFileResp"));
}

TEST(Transcript, AnswersBelongToRequestsInTheirOrder) {
  const Entries entries = Exchange()
                              .client(read_of(5))
                              .client(message(StatStoragePath{}))
                              .client(read_of(6))
                              .server(pieces({5, 0}))
                              .server(message(StatStoragePathResp{}))
                              .server(pieces({6, 0}))
                              .end();
  EXPECT_THAT(faults(entries), IsEmpty());
  EXPECT_EQ(entries[6].line, "DATA read 6 6/6");
}

TEST(Transcript, MessagesWithoutAnswerAreNotWaitedFor) {
  const Entries entries = Exchange()
                              .client(message(AuthenticateChannel{}))
                              .client(message(SetChannelDirect{}))
                              .client(message(PeerInfo{.node = 3}))
                              .client(message(PublishCapacities{}))
                              .client(message(Ack{}))
                              .client(message(FsyncLocalFile{}))
                              .server(message(FsyncLocalFileResp{}))
                              .end();
  EXPECT_THAT(faults(entries), IsEmpty());
  EXPECT_EQ(entries[2].line, "PeerInfo role=client node=3");
}

TEST(Transcript, NoticeThatAsksForItIsAnsweredByAnAck) {
  const Bytes notice = message(RefreshStoragePools{.ack_id = "7-1"});
  EXPECT_THAT(faults(Exchange().client(notice).server(message(Ack{.ack_id = "7-1"})).end()),
              IsEmpty());
  EXPECT_THAT(faults(Exchange().client(notice).server(message(StatStoragePathResp{})).end()),
              ElementsAre(HasSubstr("no answer of a RefreshStoragePools")));
}

TEST(Transcript, UnknownTypesAreAnsweredOneToOne) {
  const Bytes request = message(Opaque{.type = MessageType{4711}, .bytes = data(3)});
  const Bytes answer = message(Opaque{.type = MessageType{4713}, .bytes = data(5)});
  const Entries entries = Exchange().client(request).server(answer).end();
  EXPECT_THAT(kinds(entries), ElementsAre("type 4711", "type 4713"));
  EXPECT_EQ(entries[1].line, "type 4713 body=5 bytes");
}

TEST(Transcript, GenericResponseAnswersAllButIo) {
  const Bytes generic = message(GenericResponse{.text = "later"});
  const Entries entries = Exchange().client(message(CloseChunkFile{})).server(generic).end();
  EXPECT_EQ(entries[1].line, "GenericResponse code=0 text=later");
  EXPECT_THAT(faults(Exchange().client(write_of(0)).server(generic).end()),
              ElementsAre(HasSubstr("no answer of a WriteLocalFile at stream offset 0")));
  EXPECT_THAT(faults(Exchange().client(read_of(9)).server(generic).end()),
              ElementsAre(HasSubstr("ERR length word")));
}

TEST(Transcript, ReadThatCarriesMoreThanAskedForIsAFault) {
  EXPECT_THAT(
      faults(Exchange().client(read_of(1000)).server(pieces({600, 401})).end()),
      ElementsAre("ERR length word 401 after 600/1000 bytes of a read at stream offset 608"));
  EXPECT_THAT(faults(Exchange().client(read_of(1000)).server(pieces({600, 400, 0})).end()),
              IsEmpty());
}

TEST(Transcript, WriteThatReportsMoreThanWasSentIsAFault) {
  EXPECT_THAT(faults(Exchange().client(write_of(9)).client(data(9)).server(written(10)).end()),
              ElementsAre(HasSubstr("ERR wrote 10/9 bytes at stream offset 0")));
}

TEST(Transcript, AnswerBeforeTheEndOfTheDataIsAFaultAndTheDataGoOn) {
  const Entries entries = Exchange()
                              .client(write_of(9))
                              .client(data(8))
                              .server(written(-14))
                              .client(data(1))
                              .client(read_of(1))
                              .server(pieces({0}))
                              .end();
  EXPECT_THAT(faults(entries), ElementsAre(HasSubstr("an answer before the end of the data")));
  EXPECT_THAT(kinds(entries),
              ElementsAre("WriteLocalFile", "ERR", "DATA write", "ReadLocalFileV2", "END read"));
}

TEST(Transcript, MessagesOutOfTurnAreFaults) {
  const Bytes stat = message(StatStoragePath{});
  const Bytes answer = message(StatStoragePathResp{});
  EXPECT_THAT(faults(Exchange().server(answer).end()),
              ElementsAre("ERR bytes that no request asks for at stream offset 0"));
  EXPECT_THAT(faults(Exchange().client(stat).server(answer).server(answer).end()),
              ElementsAre(HasSubstr("no request asks for")));
  EXPECT_THAT(faults(Exchange().client(answer).end()),
              ElementsAre(HasSubstr("an answer from the connecting side")));
  EXPECT_THAT(faults(Exchange().client(stat).server(message(UnlinkLocalFileResp{})).end()),
              ElementsAre(HasSubstr("no answer of a StatStoragePath")));
}

TEST(Transcript, LostFramingIsOneFaultAtItsOffset) {
  Bytes stream = message(SetChannelDirect{});
  const std::size_t end = stream.size();
  stream.resize(end + 100);
  const Entries entries = Exchange().client(stream).client(stream).end();
  EXPECT_THAT(
      faults(entries),
      ElementsAre("ERR bad prefix in the message header at stream offset " + std::to_string(end)));
  EXPECT_EQ(told(entries), end);
}

Bytes with_trailing_byte(Bytes message) {
  message.push_back(std::byte{0});
  message[0] = static_cast<std::byte>(message.size());
  return message;
}

TEST(Transcript, DamagedBodyOfAnIoEndsTheStory) {
  for (const Bytes& io : {write_of(5), read_of(5)}) {
    const Entries entries = Exchange().client(with_trailing_byte(io)).client(data(5)).end();
    EXPECT_THAT(faults(entries), ElementsAre(HasSubstr("ERR bytes behind the last field")));
    EXPECT_EQ(told(entries), 0U);
  }
}

TEST(Transcript, DamagedBodyOfAnotherMessageDoesNot) {
  const Entries entries = Exchange()
                              .client(with_trailing_byte(message(StatStoragePath{})))
                              .server(with_trailing_byte(message(StatStoragePathResp{})))
                              .client(write_of(0))
                              .server(written(0))
                              .end();
  EXPECT_THAT(kinds(entries), ElementsAre("ERR", "ERR", "WriteLocalFile", "WriteLocalFileResp"));
}

TEST(Transcript, StreamThatEndsAnywhereInAnExchangeIsAFault) {
  const Bytes write = write_of(5);
  const Bytes answer = pieces({3, 0});
  for (std::size_t size = 1; size < write.size(); ++size) {
    const Bytes part(write.begin(), write.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_THAT(faults(Exchange().client(part).end()),
                ElementsAre(HasSubstr("not complete at stream offset 0")));
  }
  EXPECT_THAT(
      faults(Exchange().client(write).client(data(4)).end()),
      ElementsAre("ERR data end after 4/5 at stream offset " + std::to_string(write.size())));
  for (std::size_t size = 1; size < answer.size(); ++size) {
    const Bytes part(answer.begin(), answer.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_EQ(faults(Exchange().client(read_of(9)).server(part).end()).size(), 1U) << size;
  }
}

TEST(Transcript, RequestThatIsNotAnsweredInTheCaptureIsNotAFault) {
  EXPECT_THAT(faults(Exchange().client(write_of(5)).client(data(5)).end()), IsEmpty());
  EXPECT_THAT(faults(Exchange().client(read_of(5)).end()), IsEmpty());
}

// More than fits into any machine.
TEST(Transcript, DataAreCountedNotKept) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  const Bytes some = data(std::size_t{1} << 20);
  Exchange exchange;
  exchange.client(write_of(kHuge));
  for (int i = 0; i < 100; ++i) exchange.client(some);
  EXPECT_THAT(faults(exchange.end()), ElementsAre(HasSubstr("data end after 104857600/")));
}

TEST(Transcript, RecognisesItsFraming) {
  const Bytes request = read_of(1);
  EXPECT_EQ(recognise(request).match, Recognition::Match::yes);
  EXPECT_EQ(recognise(request).from, Sender::client);
  EXPECT_EQ(recognise(written(1)).from, Sender::server);
  EXPECT_EQ(recognise(message(Opaque{.type = MessageType{4711}})).from, std::nullopt);
  for (std::size_t size = 0; size < kMessageHeaderSize; ++size) {
    ASSERT_EQ(recognise(std::span(request).first(size)).match, Recognition::Match::need_more);
  }
  EXPECT_EQ(recognise(data(9)).match, Recognition::Match::no);
  EXPECT_EQ(recognise(std::span(request).subspan(8)).match, Recognition::Match::no);
  Bytes too_long = request;
  too_long[3] = std::byte{0xff};
  EXPECT_EQ(recognise(too_long).match, Recognition::Match::no);
}

// The transcript of a connection whose bytes come in pieces of at most that size.
std::vector<std::string> lines_of(const test::CapturedStream& client,
                                  const test::CapturedStream& server, std::size_t piece) {
  BeegfsTranscript transcript(false);
  const Entries entries = vpfs::test::told_in_pieces(transcript, client, server, piece);
  EXPECT_THAT(faults(entries), IsEmpty()) << client.name;
  EXPECT_EQ(told(entries), client.bytes.size() + server.bytes.size()) << client.name;
  std::vector<std::string> lines;
  for (const TranscriptEntry& entry : entries) lines.push_back(entry.line);
  return lines;
}

TEST(Transcript, PiecesOfAnySizeGiveTheSameMessagesWithoutFaults) {
  constexpr std::size_t kSmall = 200000;  // byte by byte would take long for more
  for (const std::string& file : test::capture_files()) {
    const auto streams = test::captured_streams(file);
    for (std::size_t i = 0; i + 1 < streams.size(); i += 2) {
      const auto whole = lines_of(streams[i], streams[i + 1], std::size_t{1} << 30);
      const bool small = streams[i].bytes.size() + streams[i + 1].bytes.size() < kSmall;
      for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{4099}}) {
        if (piece < 4099 && !small) continue;
        EXPECT_EQ(lines_of(streams[i], streams[i + 1], piece), whole)
            << streams[i].name << " by " << piece;
      }
    }
  }
}

// A captured request, cut in two anywhere.
TEST(Transcript, MessageSplitAtAnyByteIsOneMessage) {
  for (const test::CapturedMessage& captured : test::captured_messages()) {
    const std::span<const std::byte> bytes = captured.bytes;
    if (is_answer(decode_message_header(bytes)->type)) continue;
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
      BeegfsTranscript transcript(false);
      Entries entries;
      transcript.feed(Sender::client, bytes.first(size), entries);
      ASSERT_EQ(entries.size(), size == bytes.size() ? 1U : 0U) << captured.name;
      transcript.feed(Sender::client, bytes.subspan(size), entries);
      ASSERT_EQ(entries.size(), 1U) << captured.name;
      ASSERT_FALSE(entries[0].fault) << captured.name;
      ASSERT_EQ(entries[0].bytes, bytes.size());
    }
  }
}

}  // namespace
}  // namespace vpfs::beegfs
