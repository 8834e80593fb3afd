#include "test/fuzz/beegfs_peers.h"

#include <algorithm>
#include <utility>

#include "base/byte_writer.h"
#include "test/fuzz/require.h"

namespace vpfs::test {
namespace {

using namespace beegfs;

// More than what a conversation lets pass at once.
constexpr std::uint64_t kMostBeegfsData = std::uint64_t{1200} * 1024;

bool is_io(MessageType type) {
  return type == MessageType::read_local_file || type == MessageType::write_local_file;
}

std::vector<std::byte> word(std::int64_t value, std::uint64_t data = 0) {
  std::vector<std::byte> bytes;
  ByteWriter(bytes).i64(value);
  bytes.resize(bytes.size() + static_cast<std::size_t>(data), std::byte{0x53});
  return bytes;
}

template <typename Io>
Io io_body(FuzzInput& input, std::uint64_t count) {
  Io io;
  io.offset = static_cast<std::int64_t>(input.size());
  io.count = static_cast<std::int64_t>(count);
  io.file_handle = "1#2-3-4";
  io.client = input.u8();
  if (input.below(2) == 0) {
    io.path = {.flags = PathInfo::kHasOrigin, .owner = input.u8(), .directory = "root"};
  }
  io.target = input.u8();
  return io;
}

}  // namespace

void BeegfsPeers::act() {
  switch (input_.below(16)) {
    case 0:
    case 1:
    case 2:
      return request_io();
    case 3:
      return request_other();
    case 4:
      return introduce();
    case 5:
      return send_data(std::uint64_t{1} << input_.below(22));
    case 6:
    case 7:
    case 8:
    case 9:
      return answer(std::uint64_t{1} << input_.below(22));
    case 10:
    case 11:
      return exchange_.release(0);
    case 12:
      return decide();
    case 13:
      return fail();
    case 14:
      return raw();
    default:
      damage_ = true;
      honest_ = false;
  }
}

void BeegfsPeers::send(Sender from, Buffer message) {
  if (std::exchange(damage_, false) && !message.empty()) {
    const std::size_t at = input_.u16() % message.size();
    if (input_.below(8) == 0) {
      message.resize(at);
    } else {
      message[at] = static_cast<std::byte>(input_.u8());
    }
  }
  exchange_.send(from, message);
}

void BeegfsPeers::end_io(Buffer message, std::uint64_t moved, bool failed) {
  const ConversationDriver& driver = exchange_.driver();
  const bool is_followed = !driver.outstanding().empty();
  send(Sender::server, std::move(message));
  if (!honest_ || !is_followed) return;
  require(driver.last_finished() && driver.last_finished()->bytes == moved &&
              driver.last_finished()->failed == failed,
          "an I/O ends otherwise than the server says");
}

// Behind a write nothing is said before its data.
void BeegfsPeers::request(MessageType type, const Body& body) {
  send_data(data_due_);
  const std::uint8_t any = input_.u8();
  MessageHeader header = {.target = static_cast<std::uint16_t>(any % 4), .user = any % 8U};
  if (any >= 192) header.feature_flags = any & (kWriteMirrored | kReadMirrored);
  send(Sender::client, encode_message({.header = header, .body = body}));
  if (is_io(type) || has_answer(type)) {
    requests_.push_back({.type = type, .end = exchange_.driver().received(Sender::client)});
  }
}

void BeegfsPeers::request_io() {
  const bool is_read = input_.below(2) == 0;
  std::uint64_t count = input_.size() & INT64_MAX;
  if (count > kMostBeegfsData || (!is_read && count == 0)) honest_ = false;
  if (is_read) {
    request(MessageType::read_local_file, io_body<ReadLocalFile>(input_, count));
  } else {
    request(MessageType::write_local_file, io_body<WriteLocalFile>(input_, count));
    data_due_ = count;
  }
  requests_.back().count = count;
  if (!is_read) requests_.back().end += count;
}

void BeegfsPeers::request_other() {
  switch (input_.below(6)) {
    case 0:
      return request(MessageType::fsync_local_file, FsyncLocalFile{.file_handle = "1#2-3-4"});
    case 1:
      return request(MessageType::stat_storage_path, StatStoragePath{.target = 1});
    case 2:
      return request(MessageType::close_chunk_file, CloseChunkFile{.file_handle = "1#2-3-4"});
    case 3:
      // It is not known whether it has an answer.
      honest_ = false;
      return request(MessageType{1}, Opaque{.type = MessageType{1}, .bytes = {}});
    case 4:
      honest_ = false;
      return request(MessageType::dummy, Opaque{.type = MessageType::dummy, .bytes = {}});
    default: {
      const bool wants_ack = input_.below(2) == 0;
      request(MessageType::refresh_target_states,
              RefreshTargetStates{.ack_id = wants_ack ? "7" : ""});
      if (wants_ack) {
        requests_.push_back({.type = MessageType::refresh_target_states,
                             .end = exchange_.driver().received(Sender::client)});
      }
    }
  }
}

void BeegfsPeers::introduce() {
  const NodeType type = input_.below(4) == 0 ? NodeType::storage : NodeType::client;
  request(MessageType::peer_info, PeerInfo{.node_type = type, .node = input_.u8()});
}

void BeegfsPeers::send_data(std::uint64_t most) {
  const std::uint64_t size = std::min({data_due_, most, kMostBeegfsData});
  data_due_ = size == kMostBeegfsData ? 0 : data_due_ - size;
  data_sent_ += size;
  send(Sender::client, Buffer(static_cast<std::size_t>(size), std::byte{0x42}));
}

bool BeegfsPeers::server_has(const Request& request) const {
  return exchange_.driver().has_passed(Sender::client, request.end) &&
         exchange_.driver().held().empty();
}

void BeegfsPeers::answer(std::uint64_t most) {
  if (requests_.empty()) return;
  Request& request = requests_.front();
  if (!server_has(request)) {
    if (input_.below(16) != 0) return;
    honest_ = false;  // it answers what it was not asked
  }
  if (request.type == MessageType::read_local_file) return answer_read(request, most);
  const Request over = request;
  requests_.pop_front();
  if (over.type == MessageType::write_local_file) {
    return end_io(write_answer(static_cast<std::int64_t>(over.count)), over.count, false);
  }
  if (asks_for_ack(over.type)) return send(Sender::server, encode_message({.body = Ack{}}));
  const MessageType type = answer_of(over.type).value_or(MessageType::generic_response);
  send(Sender::server, encode_message({.body = Opaque{.type = type, .bytes = Buffer(4)}}));
}

void BeegfsPeers::answer_read(Request& read, std::uint64_t most) {
  const std::uint64_t left = std::min(read.count - read.moved, kMostBeegfsData);
  const bool is_short = input_.below(16) == 1;
  if (left == 0 || is_short) {
    const std::uint64_t moved = read.moved;
    requests_.pop_front();
    return end_io(word(0), moved, false);
  }
  const std::uint64_t size = std::min(left, most);
  read.moved += size;
  Buffer bytes = word(static_cast<std::int64_t>(size), size);
  if (read.moved < read.count) return send(Sender::server, std::move(bytes));
  const Buffer end = word(0);
  bytes.insert(bytes.end(), end.begin(), end.end());
  const std::uint64_t moved = read.moved;
  requests_.pop_front();
  end_io(std::move(bytes), moved, false);
}

// A negative answer, or one that asks to come again.
void BeegfsPeers::fail() {
  if (requests_.empty() || !server_has(requests_.front())) return;
  const Request over = requests_.front();
  requests_.pop_front();
  if (over.type == MessageType::read_local_file) return end_io(word(-7), over.moved, true);
  if (over.type == MessageType::write_local_file) {
    if (input_.below(2) == 0) return end_io(write_answer(-14), over.count, true);
    return end_io(encode_message({.body = GenericResponse{}}), 0, true);
  }
  send(Sender::server, encode_message({.body = GenericResponse{}}));
}

// What a session decides for other reasons than its scheduler's.
void BeegfsPeers::decide() {
  switch (input_.below(4)) {
    case 0:
    case 1:
      return refuse();
    case 2:
      return exchange_.forget(0);
    default:
      return exchange_.forget_answers();
  }
}

// The server never sees the I/O; only the first of the requests can be held.
void BeegfsPeers::refuse() {
  if (exchange_.driver().held().empty()) return;
  const auto first = std::ranges::find_if(requests_, is_io, &Request::type);
  if (first != requests_.end()) requests_.erase(first);
  exchange_.refuse(0);
}

void BeegfsPeers::raw() {
  honest_ = false;
  const Sender from = input_.below(2) == 0 ? Sender::client : Sender::server;
  const std::size_t shape = input_.below(4);
  if (shape == 0) {
    const MessageHeader header = {.length = static_cast<std::uint32_t>(input_.size()),
                                  .type = MessageType{input_.u16()}};
    Buffer bytes;
    encode(header, bytes);
    exchange_.send(from, bytes);
  } else if (shape == 1) {
    exchange_.send(from, word(static_cast<std::int64_t>(input_.size())));
  }
  exchange_.send(from, input_.bytes(input_.u8()));
}

void BeegfsPeers::finish() {
  damage_ = false;
  if (!honest_) return;
  const ConversationDriver& driver = exchange_.driver();
  send_data(data_due_);
  while (!requests_.empty() || !driver.held().empty()) {
    const std::size_t before = driver.log().size();
    exchange_.release(0);
    answer(kMostBeegfsData);
    require(driver.log().size() > before && !driver.closed(), "honest peers get stuck");
  }
  require(driver.outstanding().empty(), "an I/O does not end");
  require(driver.has_passed(Sender::client, driver.received(Sender::client)) &&
              driver.has_passed(Sender::server, driver.received(Sender::server)),
          "honest peers are not heard to the end");
  require(driver.data_from_client() == data_sent_, "other file data than the client has sent");
  require(driver.at_rest(), "no rest although all is over");
}

}  // namespace vpfs::test
