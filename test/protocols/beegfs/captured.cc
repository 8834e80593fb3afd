#include "test/protocols/beegfs/captured.h"

#include <algorithm>
#include <set>
#include <span>
#include <stdexcept>

#include "base/byte_reader.h"
#include "protocols/beegfs/file_io.h"
#include "protocols/beegfs/message_header.h"

namespace vpfs::beegfs::test {
namespace {

class MessageCollector {
 public:
  void add(const CapturedStream& client, const CapturedStream& server) {
    std::vector<MessageType> answered;
    for (std::span<const std::byte> rest = client.bytes; !rest.empty();) {
      const auto [header, message] = take(client.name, rest);
      if (header.type == MessageType::write_local_file) {
        rest = rest.subspan(static_cast<std::size_t>(decode_file_io(header, message)->count));
      }
      if (has_answer(header.type)) answered.push_back(header.type);
    }
    std::span<const std::byte> rest = server.bytes;
    for (const MessageType type : answered) {
      if (rest.empty()) break;  // the capture ends here
      if (type == MessageType::read_local_file) {
        skip_read_answer(rest);
      } else {
        take(server.name, rest);
      }
    }
    if (!rest.empty()) throw std::runtime_error(server.name + ": bytes after the last answer");
  }
  std::vector<CapturedMessage> take_all() { return std::move(messages_); }

 private:
  struct Taken {
    MessageHeader header;
    std::span<const std::byte> message;
  };

  Taken take(const std::string& stream, std::span<const std::byte>& rest) {
    const auto header = decode_message_header(rest);
    if (!header) throw std::runtime_error(stream + ": " + describe(header.error()));
    const std::span<const std::byte> message = rest.first(header->length);
    rest = rest.subspan(header->length);
    std::vector<std::byte> bytes(message.begin(), message.end());
    if (seen_.insert(bytes).second) {
      messages_.push_back({.name = stream + " " + std::string(beegfs::name(header->type)),
                           .bytes = std::move(bytes)});
    }
    return {.header = *header, .message = message};
  }

  static void skip_read_answer(std::span<const std::byte>& rest) {
    constexpr std::size_t kWordSize = 8;
    std::int64_t word = 0;
    do {
      word = ByteReader(rest).i64();
      rest = rest.subspan(kWordSize + static_cast<std::size_t>(std::max<std::int64_t>(word, 0)));
    } while (word > 0);
  }

  std::set<std::vector<std::byte>> seen_;
  std::vector<CapturedMessage> messages_;
};

}  // namespace

std::vector<std::string> capture_files() {
  return vpfs::test::capture_files("beegfs");
}

const std::vector<CapturedMessage>& captured_messages() {
  static const std::vector<CapturedMessage> messages = [] {
    MessageCollector collector;
    for (const std::string& file : capture_files()) {
      const std::vector<CapturedStream> streams = captured_streams(file);
      for (std::size_t i = 0; i + 1 < streams.size(); i += 2) {
        collector.add(streams[i], streams[i + 1]);
      }
    }
    return collector.take_all();
  }();
  return messages;
}

}  // namespace vpfs::beegfs::test
