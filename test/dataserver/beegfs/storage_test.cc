#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "protocols/beegfs/file_io.h"
#include "test/support/captured_streams.h"
#include "test/support/servers/beegfs_storage.h"
#include "test/support/servers/wire_peer.h"

namespace vpfs::test {
namespace {

using namespace std::chrono_literals;
using beegfs::MessageHeader;
using beegfs::MessageType;
using Kind = StorageFault::Kind;

constexpr std::size_t kWordSize = 8;
constexpr std::size_t kWriteAnswerSize = beegfs::kMessageHeaderSize + 8;

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Buffer bytes_of(const std::string& text_of) {
  const auto bytes = std::as_bytes(std::span(text_of));
  return {bytes.begin(), bytes.end()};
}

Buffer file_io(MessageType type, std::int64_t offset, std::int64_t count, std::uint16_t target,
               const std::string& handle = "1#entry") {
  beegfs::FileIo io;
  io.offset = offset;
  io.count = count;
  io.file_handle = handle;
  io.target = target;
  return beegfs::encode_file_io({.type = type, .target = target}, io);
}
Buffer read_message(std::int64_t offset, std::int64_t count, std::uint16_t target = 101) {
  return file_io(MessageType::read_local_file, offset, count, target);
}
Buffer write_message(std::int64_t offset, std::int64_t count, std::uint16_t target = 101) {
  return file_io(MessageType::write_local_file, offset, count, target);
}

Buffer short_message(MessageType type, std::size_t body, std::uint16_t flags = 0) {
  return beegfs::make_message({.feature_flags = flags, .type = type}, Buffer(body));
}

std::int64_t next_word(WirePeer& peer) {
  const Buffer bytes = peer.receive_bytes(kWordSize);
  return bytes.size() == kWordSize ? ByteReader(bytes).i64() : -1000;
}

struct ReadAnswer {
  Buffer data;
  std::vector<std::int64_t> words;
};
ReadAnswer receive_read(WirePeer& peer) {
  ReadAnswer answer;
  do {
    answer.words.push_back(next_word(peer));
    if (answer.words.back() <= 0) break;
    const Buffer piece = peer.receive_bytes(static_cast<std::size_t>(answer.words.back()));
    answer.data.insert(answer.data.end(), piece.begin(), piece.end());
  } while (answer.words.back() > 0);
  return answer;
}

std::int64_t receive_write(WirePeer& peer) {
  const Buffer bytes = peer.receive_bytes(kWriteAnswerSize);
  if (bytes.size() != kWriteAnswerSize) return -1000;
  return ByteReader(std::span(bytes).subspan(beegfs::kMessageHeaderSize)).i64();
}

TEST(BeegfsStorage, AnswersRequestsButNotIntroductions) {
  BeegfsStorage storage;
  WirePeer peer = WirePeer::connect(storage.port());
  peer.send(short_message(MessageType::authenticate_channel, 8));
  peer.send(short_message(MessageType::set_channel_direct, 4));
  peer.send(short_message(MessageType::peer_info, 8));
  EXPECT_FALSE(peer.readable(30ms));
  peer.send(write_message(0, 5));
  peer.send(bytes_of("12345"));
  EXPECT_EQ(receive_write(peer), 5);
  peer.send(read_message(1, 3));
  EXPECT_EQ(text(receive_read(peer).data), "234");
}

TEST(BeegfsStorage, AnswersPipelinedRequestsInTheirOrder) {
  BeegfsStorage storage;
  storage.put(101, "entry", bytes_of("abcdef"));
  WirePeer peer = WirePeer::connect(storage.port());
  Buffer all;
  for (std::int64_t offset = 0; offset < 6; ++offset) {
    const Buffer one = read_message(offset, 1);
    all.insert(all.end(), one.begin(), one.end());
  }
  peer.send(all);
  for (const char expected : {'a', 'b', 'c', 'd', 'e', 'f'}) {
    EXPECT_EQ(text(receive_read(peer).data), std::string(1, expected));
  }
  EXPECT_EQ(storage.record().peak_outstanding, 1U);
}

TEST(BeegfsStorage, DropsAConnectionAfterAnUnknownMessage) {
  BeegfsStorage storage;
  Buffer bad_prefix = read_message(0, 1);
  bad_prefix[12] ^= std::byte{1};
  const Buffer unknown_type = short_message(MessageType{9999}, 0);
  const Buffer unknown_flag = short_message(MessageType::stat_storage_path, 2, 1);
  const Buffer an_answer = beegfs::write_answer(1);
  const Buffer no_body = short_message(MessageType::unlink_local_file, 0);
  const Buffer unknown_target = write_message(0, 5, 999);
  for (const Buffer& each :
       {bad_prefix, unknown_type, unknown_flag, an_answer, no_body, unknown_target}) {
    WirePeer peer = WirePeer::connect(storage.port());
    peer.send(each);
    EXPECT_TRUE(peer.closed_by_peer());
  }
  EXPECT_TRUE(storage.wait_until([](const StorageRecord& now) { return now.dropped == 6; }));
}

TEST(BeegfsStorage, AReadOfAnUnknownTargetHasAnErrorForAnAnswer) {
  BeegfsStorage storage;
  WirePeer peer = WirePeer::connect(storage.port());
  peer.send(read_message(0, 5, 999));
  EXPECT_EQ(receive_read(peer).words, (std::vector<std::int64_t>{-15}));
  peer.send(read_message(0, 5));
  EXPECT_EQ(receive_read(peer).words, (std::vector<std::int64_t>{0}));
}

TEST(BeegfsStorage, WithASecretNothingElseComesFirst) {
  BeegfsStorage storage({.secret = 7});
  WirePeer stranger = WirePeer::connect(storage.port());
  stranger.send(read_message(0, 5));
  EXPECT_TRUE(stranger.closed_by_peer());
  Buffer body;
  ByteWriter(body).u64(7);
  WirePeer friendly = WirePeer::connect(storage.port());
  friendly.send(beegfs::make_message({.type = MessageType::authenticate_channel}, body));
  friendly.send(read_message(0, 5));
  EXPECT_EQ(receive_read(friendly).words, (std::vector<std::int64_t>{0}));
}

TEST(BeegfsStorage, AHalfSentHeaderStopsTheIntakeOfAllRequests) {
  BeegfsStorage storage({.header_patience = 200ms});
  WirePeer slow = WirePeer::connect(storage.port());
  WirePeer other = WirePeer::connect(storage.port());
  const Buffer message = read_message(0, 1);
  slow.send(std::span(message).first(20));
  std::this_thread::sleep_for(20ms);
  other.send(message);
  EXPECT_FALSE(other.readable(50ms));
  // The rest of the header ends the stall; the rest of the message may be late.
  slow.send(std::span(message).subspan(20, 20));
  EXPECT_EQ(receive_read(other).words, (std::vector<std::int64_t>{0}));
  slow.send(std::span(message).subspan(40));
  EXPECT_EQ(receive_read(slow).words, (std::vector<std::int64_t>{0}));
  EXPECT_EQ(storage.record().headers_in_pieces, 1U);
  EXPECT_TRUE(storage.record().connections[0].requests[0].header_in_pieces);

  // Its time-out ends the stall too, and the connection.
  slow.send(std::span(message).first(1));
  std::this_thread::sleep_for(20ms);
  other.send(message);
  EXPECT_FALSE(other.readable(50ms));
  EXPECT_TRUE(slow.closed_by_peer());
  EXPECT_EQ(receive_read(other).words, (std::vector<std::int64_t>{0}));
}

TEST(BeegfsStorage, ABodyThatDoesNotComeInTimeIsNeverAnswered) {
  BeegfsStorage storage({.body_patience = 50ms});
  WirePeer slow = WirePeer::connect(storage.port());
  const Buffer message = read_message(0, 1);
  slow.send(std::span(message).first(50));
  std::this_thread::sleep_for(100ms);
  slow.send(std::span(message).subspan(50));
  EXPECT_FALSE(slow.readable(100ms));
  WirePeer other = WirePeer::connect(storage.port());
  other.send(message);
  EXPECT_EQ(receive_read(other).words, (std::vector<std::int64_t>{0}));
}

TEST(BeegfsStorage, DataThatDoNotComeInTimeDropTheConnection) {
  BeegfsStorage storage({.data_patience = 50ms});
  WirePeer slow = WirePeer::connect(storage.port());
  slow.send(write_message(0, 65536));
  slow.send(Buffer(1000));
  EXPECT_TRUE(slow.closed_by_peer());
  EXPECT_EQ(storage.content(101, "entry").size(), 0U);
}

TEST(BeegfsStorage, AWriteOfNoBytesIsNeverAnswered) {
  BeegfsStorage storage({.data_patience = 50ms});
  for (const bool sends_more : {false, true}) {
    WirePeer peer = WirePeer::connect(storage.port());
    peer.send(write_message(0, 0));
    if (sends_more) peer.send(read_message(0, 1));
    EXPECT_TRUE(peer.closed_by_peer());
  }
  EXPECT_TRUE(storage.wait_until([](const StorageRecord& now) { return now.dropped == 2; }));
}

TEST(BeegfsStorage, BytesThatNoFileCanHaveDropTheConnection) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  BeegfsStorage storage;
  for (const Buffer& each :
       {read_message(kMost, 1), write_message(kMost, 5),
        read_message(std::numeric_limits<std::int64_t>::min(), 1), write_message(-1, 5)}) {
    WirePeer peer = WirePeer::connect(storage.port());
    peer.send(each);
    EXPECT_TRUE(peer.closed_by_peer());
  }
  EXPECT_TRUE(storage.wait_until([](const StorageRecord& now) { return now.dropped == 4; }));
}

TEST(BeegfsStorage, EachTargetServesAsManyRequestsAtOnceAsItHasWorkers) {
  BeegfsStorage storage({.targets = {101, 102}, .workers = 2});
  std::vector<WirePeer> busy;
  for (int i = 0; i < 2; ++i) {
    storage.inject({.kind = Kind::silence});
    busy.push_back(WirePeer::connect(storage.port()));
    busy.back().send(read_message(0, 1));
  }
  ASSERT_TRUE(storage.wait_until([](const StorageRecord& now) { return now.outstanding == 2; }));
  WirePeer waiting = WirePeer::connect(storage.port());
  waiting.send(read_message(0, 1));
  WirePeer elsewhere = WirePeer::connect(storage.port());
  elsewhere.send(read_message(0, 1, 102));
  EXPECT_EQ(receive_read(elsewhere).words, (std::vector<std::int64_t>{0}));
  EXPECT_FALSE(waiting.readable(30ms));
  busy[0].close();
  EXPECT_EQ(receive_read(waiting).words, (std::vector<std::int64_t>{0}));
}

TEST(BeegfsStorage, ReadsComeInPiecesThatGetSmallerInSequence) {
  BeegfsStorage storage;
  storage.put(101, "entry", Buffer(6 * kMiB, std::byte{1}));
  WirePeer peer = WirePeer::connect(storage.port());
  peer.send(read_message(0, 4 * kMiB));
  const ReadAnswer first = receive_read(peer);
  EXPECT_EQ(first.words, (std::vector<std::int64_t>{4 * kMiB - 8 * kKiB, 8 * kKiB, 0}));
  EXPECT_EQ(first.data, Buffer(4 * kMiB, std::byte{1}));
  peer.send(read_message(4 * kMiB, 300 * kKiB));
  EXPECT_EQ(receive_read(peer).words,
            (std::vector<std::int64_t>{128 * kKiB, 128 * kKiB, 44 * kKiB, 0}));
  peer.send(read_message(0, 300 * kKiB));
  EXPECT_EQ(receive_read(peer).words, (std::vector<std::int64_t>{300 * kKiB, 0}));
  // Up to the end of the file.
  peer.send(read_message(6 * kMiB - 10, 100));
  EXPECT_EQ(receive_read(peer).words, (std::vector<std::int64_t>{10, 0}));
}

TEST(BeegfsStorage, AFullServerTakesTheDataBeforeItSaysSo) {
  BeegfsStorage storage({.capacity = {kMiB}});
  WirePeer peer = WirePeer::connect(storage.port());
  for (int i = 0; i < 2; ++i) {
    peer.send(write_message(0, 3 * kMiB));
    peer.send(Buffer(3 * kMiB));
    EXPECT_EQ(receive_write(peer), -14);
  }
}

TEST(BeegfsStorage, AModelledDeviceTakesItsTime) {
  BeegfsStorage storage(
      {.device = DeviceSettings{.bandwidth = {10 * kMiB}, .per_request = {}, .parallelism = 1}});
  WirePeer peer = WirePeer::connect(storage.port());
  const auto begin = std::chrono::steady_clock::now();
  peer.send(write_message(0, kMiB));
  peer.send(Buffer(kMiB));
  EXPECT_EQ(receive_write(peer), kMiB);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 100ms);
}

// Replays what captured clients sent. Answers must be as long as the captured ones; those to reads
// and writes must be equal byte for byte.
class CapturedTrafficTest : public testing::TestWithParam<std::string> {
 protected:
  struct Exchange {
    MessageHeader header;
    std::span<const std::byte> request;  // with the data of a write
    std::span<const std::byte> answer;
    std::optional<beegfs::FileIo> io;
  };

  static std::vector<Exchange> exchanges(const CapturedStream& client,
                                         const CapturedStream& server) {
    std::vector<Exchange> found;
    std::span<const std::byte> requests = client.bytes;
    std::span<const std::byte> answers = server.bytes;
    while (!requests.empty()) {
      Exchange each;
      each.header = beegfs::decode_message_header(requests).value();
      std::size_t size = each.header.length;
      if (is_io(each.header)) {
        each.io = beegfs::decode_file_io(each.header, requests.first(size)).value();
        if (is_write(each.header)) size += static_cast<std::size_t>(each.io->count);
      }
      each.request = take(requests, size);
      if (beegfs::has_answer(each.header.type)) {
        each.answer = take(answers, answer_size(each.header, answers));
      }
      found.push_back(each);
    }
    return found;
  }

  static bool is_write(const MessageHeader& header) {
    return header.type == MessageType::write_local_file;
  }
  static bool is_io(const MessageHeader& header) {
    return is_write(header) || header.type == MessageType::read_local_file;
  }
  static std::span<const std::byte> take(std::span<const std::byte>& from, std::size_t size) {
    const auto taken = from.first(size);
    from = from.subspan(size);
    return taken;
  }
  static std::size_t answer_size(const MessageHeader& header, std::span<const std::byte> answers) {
    if (header.type != MessageType::read_local_file) {
      return beegfs::decode_message_header(answers).value().length;
    }
    for (std::size_t at = 0;;) {
      const std::int64_t word = ByteReader(answers.subspan(at)).i64();
      at += kWordSize;
      if (word <= 0) return at;
      at += static_cast<std::size_t>(word);
    }
  }
  // The data of a read's answer.
  static Buffer data_of(std::span<const std::byte> answer) {
    Buffer data;
    for (std::size_t at = 0; at < answer.size();) {
      const std::int64_t word = ByteReader(answer.subspan(at)).i64();
      at += kWordSize;
      if (word <= 0) break;
      const auto piece = answer.subspan(at, static_cast<std::size_t>(word));
      data.insert(data.end(), piece.begin(), piece.end());
      at += piece.size();
    }
    return data;
  }

  // Gives the read that follows the data that it found in the capture.
  static void prepare(BeegfsStorage& storage, const Exchange& read) {
    const std::string handle(read.io->file_handle);
    const Buffer found = data_of(read.answer);
    Buffer whole(static_cast<std::size_t>(read.io->offset));
    whole.insert(whole.end(), found.begin(), found.end());
    storage.put(read.io->target, handle.substr(handle.find('#') + 1), whole);
  }
};

TEST_P(CapturedTrafficTest, IsAnsweredAsItWas) {
  BeegfsStorage storage({.targets = {1, 2}});
  const std::vector<CapturedStream> streams = captured_streams(GetParam());
  std::size_t compared = 0;
  for (std::size_t i = 0; i + 1 < streams.size(); i += 2) {
    WirePeer peer = WirePeer::connect(storage.port());
    for (const Exchange& each : exchanges(streams[i], streams[i + 1])) {
      if (each.answer.empty() && beegfs::has_answer(each.header.type)) break;  // the capture ends
      const std::string name(beegfs::name(each.header.type));
      const bool is_read = each.header.type == MessageType::read_local_file;
      if (is_read) prepare(storage, each);
      ASSERT_TRUE(peer.send(each.request)) << name;
      if (is_read) {
        const ReadAnswer answer = receive_read(peer);
        EXPECT_EQ(answer.words.back(), 0);
        EXPECT_EQ(answer.data, data_of(each.answer)) << name;
      } else {
        const Buffer answer = peer.receive_bytes(each.answer.size());
        ASSERT_EQ(answer.size(), each.answer.size()) << name;
        if (is_write(each.header)) {
          EXPECT_TRUE(std::ranges::equal(answer, each.answer)) << name;
        } else if (!answer.empty()) {
          const auto then = beegfs::decode_message_header(each.answer);
          EXPECT_EQ(beegfs::decode_message_header(answer), then) << name;
        }
      }
      ++compared;
    }
    EXPECT_FALSE(peer.readable(5ms));
  }
  EXPECT_GE(compared, 2U);
  EXPECT_EQ(storage.record().dropped, 0U);
}

INSTANTIATE_TEST_SUITE_P(Each, CapturedTrafficTest, testing::ValuesIn(capture_files("beegfs")),
                         [](const auto& each) {
                           const std::string name = std::filesystem::path(each.param).filename();
                           return name.substr(0, name.find('.'));
                         });

}  // namespace
}  // namespace vpfs::test
