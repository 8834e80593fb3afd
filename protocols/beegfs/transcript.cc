#include "protocols/beegfs/transcript.h"

#include <algorithm>
#include <string>
#include <type_traits>

#include "base/byte_reader.h"
#include "protocols/beegfs/describe.h"

namespace vpfs::beegfs {
namespace {

constexpr std::size_t kWordSize = 8;

// Fills `pending` up to that size from the front of `bytes`; returns how many bytes it took.
std::size_t fill(std::vector<std::byte>& pending, std::size_t size,
                 std::span<const std::byte> bytes) {
  const std::size_t taken = std::min(size - pending.size(), bytes.size());
  pending.insert(pending.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(taken));
  return taken;
}

bool is_answered(const Message& message) {
  return std::visit(
      [type = message.header.type](const auto& body) {
        if constexpr (requires { body.ack_id; }) {
          return asks_for_ack(type) && !body.ack_id.empty();
        } else {
          return has_answer(type);
        }
      },
      message.body);
}

template <typename Count>
std::string progress(Count moved, Count count) {
  return std::to_string(moved) + "/" + std::to_string(count);
}

}  // namespace

void BeegfsTranscript::feed(Sender from, std::span<const std::byte> bytes,
                            std::vector<TranscriptEntry>& entries) {
  while (!bytes.empty() && !stream(from).lost) bytes = bytes.subspan(take(from, bytes, entries));
}

std::size_t BeegfsTranscript::take(Sender from, std::span<const std::byte> bytes,
                                   Entries& entries) {
  if (stream(from).data_left > 0) return take_data(from, bytes, entries);
  if (from == Sender::client) return take_message(from, bytes, entries);
  if (requests_.empty()) {
    lose(from, "bytes that no request asks for", entries);
    return bytes.size();
  }
  if (requests_.front().type == MessageType::read_local_file) return take_word(bytes, entries);
  return take_message(from, bytes, entries);
}

std::size_t BeegfsTranscript::take_data(Sender from, std::span<const std::byte> bytes,
                                        Entries& entries) {
  Stream& stream = this->stream(from);
  const auto taken =
      static_cast<std::size_t>(std::min<std::uint64_t>(stream.data_left, bytes.size()));
  stream.data_left -= taken;
  if (stream.data_left > 0) return taken;
  TranscriptEntry entry{.from = from, .bytes = stream.data};
  const std::string size = std::to_string(stream.data);
  if (from == Sender::client) {
    entry.kind = "DATA write";
    entry.line = "DATA write " + size;
  } else {
    const Request& read = requests_.front();
    entry.bytes += kWordSize;
    entry.kind = "DATA read";
    entry.line = "DATA read " + size + " " + progress(read.moved, read.count);
  }
  stream.offset += entry.bytes;
  entries.push_back(std::move(entry));
  return taken;
}

std::size_t BeegfsTranscript::take_word(std::span<const std::byte> bytes, Entries& entries) {
  Stream& stream = this->stream(Sender::server);
  const std::size_t taken = fill(stream.pending, kWordSize, bytes);
  if (stream.pending.size() < kWordSize) return taken;
  const std::int64_t word = ByteReader(stream.pending).i64();
  stream.pending.clear();
  length_word(word, entries);
  return taken;
}

void BeegfsTranscript::length_word(std::int64_t word, Entries& entries) {
  Stream& stream = this->stream(Sender::server);
  Request& read = requests_.front();
  read.begun = true;
  if (word > read.count - read.moved) {
    return lose(Sender::server,
                "length word " + std::to_string(word) + " after " +
                    progress(read.moved, read.count) + " bytes of a read",
                entries);
  }
  if (word > 0) {
    stream.data = static_cast<std::uint64_t>(word);
    stream.data_left = stream.data;
    read.moved += word;
    return;
  }
  TranscriptEntry entry{.from = Sender::server, .bytes = kWordSize, .kind = "END read"};
  entry.line = "END read " + progress(read.moved, read.count);
  if (word < 0) entry.line += " error=" + describe_result(word);
  stream.offset += kWordSize;
  requests_.pop_front();
  entries.push_back(std::move(entry));
}

std::size_t BeegfsTranscript::take_message(Sender from, std::span<const std::byte> bytes,
                                           Entries& entries) {
  Stream& stream = this->stream(from);
  const bool has_header = stream.pending.size() >= kMessageHeaderSize;
  const std::size_t taken =
      fill(stream.pending, has_header ? stream.header.length : kMessageHeaderSize, bytes);
  if (!has_header) {
    if (stream.pending.size() < kMessageHeaderSize) return taken;
    const auto header = decode_message_header(stream.pending);
    if (!header) {
      lose(from, describe(header.error()), entries);
      return taken;
    }
    stream.header = *header;
  }
  if (stream.pending.size() < stream.header.length) return taken;
  entries.push_back(whole_message(from));
  stream.offset += stream.header.length;
  stream.pending.clear();
  return taken;
}

TranscriptEntry BeegfsTranscript::whole_message(Sender from) {
  Stream& stream = this->stream(from);
  TranscriptEntry entry{.from = from, .bytes = stream.header.length};
  entry.kind = type_name(stream.header.type);
  entry.line = entry.kind;
  const auto message = decode_message(stream.header, stream.pending);
  if (from == Sender::client) {
    if (message) {
      request(*message, entry);
    } else {
      make_fault(entry, describe(message.error()));
      damaged_request(stream.header.type);
    }
  } else if (message) {
    answer(*message, entry);
  } else {
    make_fault(entry, describe(message.error()));
    requests_.pop_front();
  }
  return entry;
}

void BeegfsTranscript::request(const Message& message, TranscriptEntry& entry) {
  const MessageType type = message.header.type;
  if (is_answer(type)) return make_fault(entry, "an answer from the connecting side");
  Request request{.type = type};
  if (const auto* read = std::get_if<ReadLocalFile>(&message.body)) request.count = read->count;
  if (const auto* write = std::get_if<WriteLocalFile>(&message.body)) {
    request.count = write->count;
    Stream& client = stream(Sender::client);
    client.data = static_cast<std::uint64_t>(write->count);
    client.data_left = client.data;
  }
  if (is_answered(message)) requests_.push_back(request);
  tell(message, entry);
}

// Without the body of an I/O request the next message cannot be found. Other requests get an answer
// whatever their body is.
void BeegfsTranscript::damaged_request(MessageType type) {
  if (is_file_io(type)) {
    stream(Sender::client).lost = true;
  } else if (has_answer(type) && !is_answer(type)) {
    requests_.push_back({.type = type});
  }
}

void BeegfsTranscript::answer(const Message& message, TranscriptEntry& entry) {
  const bool early = front_is_being_sent();
  const Request request = requests_.front();
  requests_.pop_front();
  const MessageType type = message.header.type;
  const bool may_be_generic = request.type != MessageType::write_local_file;
  if (!(type == MessageType::generic_response && may_be_generic) &&
      answer_of(request.type).value_or(type) != type) {
    return make_fault(entry, "no answer of a " + type_name(request.type));
  }
  if (early) return make_fault(entry, "an answer before the end of the data");
  const auto* written = std::get_if<WriteLocalFileResp>(&message.body);
  if (written != nullptr && written->result > request.count) {
    return make_fault(entry, "wrote " + progress(written->result, request.count) + " bytes");
  }
  tell(message, entry);
}

// Only the last request on a connection can be incomplete.
bool BeegfsTranscript::front_is_being_sent() {
  return requests_.size() == 1 && stream(Sender::client).data_left > 0;
}

void BeegfsTranscript::tell(const Message& message, TranscriptEntry& entry) {
  if (const std::string text = summary(message); !text.empty()) entry.line += " " + text;
  if (with_details_) entry.details = details(message);
}

void BeegfsTranscript::finish(std::vector<TranscriptEntry>& entries) {
  for (const Sender from : {Sender::client, Sender::server}) {
    const Stream& stream = this->stream(from);
    if (stream.lost) continue;
    if (stream.data_left > 0) {
      add_fault(from, "data end after " + progress(stream.data - stream.data_left, stream.data),
                entries);
    } else if (!stream.pending.empty()) {
      add_fault(from, describe(HeaderError::need_more), entries);
    } else if (from == Sender::server && !requests_.empty() && requests_.front().begun) {
      const Request& read = requests_.front();
      add_fault(from, "a read without end after " + progress(read.moved, read.count), entries);
    }
  }
}

void BeegfsTranscript::make_fault(TranscriptEntry& entry, std::string_view what) {
  entry.fault = true;
  entry.bytes = 0;
  entry.kind = "ERR";
  if (!entry.line.empty()) entry.line += ' ';
  entry.line.append("ERR ").append(what).append(" at stream offset ");
  entry.line += std::to_string(stream(entry.from).offset);
}

void BeegfsTranscript::add_fault(Sender from, std::string_view what, Entries& entries) {
  TranscriptEntry entry{.from = from};
  make_fault(entry, what);
  entries.push_back(std::move(entry));
}

void BeegfsTranscript::lose(Sender from, std::string_view what, Entries& entries) {
  add_fault(from, what, entries);
  stream(from).lost = true;
  stream(from).pending.clear();
}

Recognition recognise(std::span<const std::byte> first_bytes) {
  const auto header = decode_message_header(first_bytes);
  if (!header) {
    const bool more = header.error() == HeaderError::need_more;
    return {.match = more ? Recognition::Match::need_more : Recognition::Match::no};
  }
  Recognition recognition{.match = Recognition::Match::yes};
  if (is_answer(header->type)) {
    recognition.from = Sender::server;
  } else if (!name(header->type).empty() && header->type != MessageType::ack) {
    recognition.from = Sender::client;
  }
  return recognition;
}

std::unique_ptr<Transcript> make_transcript(bool with_details) {
  return std::make_unique<BeegfsTranscript>(with_details);
}

}  // namespace vpfs::beegfs
