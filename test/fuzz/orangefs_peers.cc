#include "test/fuzz/orangefs_peers.h"

#include <algorithm>
#include <array>
#include <utility>

#include "test/fuzz/require.h"

namespace vpfs::test {
namespace {

using namespace orangefs;

constexpr std::int64_t kMostOrangefsData = std::int64_t{128} * 1024;

// A strided datatype: blocks of a contiguous one.
FileRequest vector_of_bytes(std::int32_t blocks, std::int32_t block, std::int64_t stride) {
  FileRequest request = FileRequest::contiguous_bytes();
  FileRequestElement whole;
  whole.num_blocks = blocks;
  whole.num_ereqs = block;
  whole.stride = stride;
  whole.ub = static_cast<std::int64_t>(static_cast<std::uint64_t>(stride) *
                                       static_cast<std::uint64_t>(blocks));
  whole.aggregate_size = std::int64_t{blocks} * block;
  whole.num_contig_chunks = blocks;
  whole.depth = 1;
  whole.num_nested_req = 1;
  whole.ereq = 1;
  request.elements.insert(request.elements.begin(), whole);
  return request;
}

Response answer_of(Op op, std::int64_t size) {
  switch (op) {
    case Op::io:
      return {.body = IoResponse{.bstream_size = size}};
    case Op::getattr:
      return {.body = AttributesResponse{.op = Op::getattr}};
    case Op::statfs:
      return {.body = StatfsResponse{}};
    case Op::getconfig:
      return {.body = GetconfigResponse{
                  .config = "<FileSystem>\nID 7\n</FileSystem>\nClientJobBMITimeoutSecs 30\n"}};
    default:
      return {.body = EmptyResponse{.op = op}};
  }
}

}  // namespace

void OrangefsPeers::act() {
  switch (input_.below(16)) {
    case 0:
    case 1:
      return request_io();
    case 2:
      return request_small_io();
    case 3:
      return request_other();
    case 4:
      return send_data();
    case 5:
    case 6:
    case 7:
    case 8:
      return answer();
    case 9:
    case 10:
      return exchange_.release(input_.u8());
    case 11:
      return decide();
    case 12:
      return fail();
    case 13:
      return request_many();
    case 14:
      return raw();
    default:
      damage_ = true;
      honest_ = false;
  }
}

void OrangefsPeers::send(Sender from, Buffer message) {
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

void OrangefsPeers::end(Operation& operation, Buffer message, std::int64_t moved, bool failed) {
  operation.phase = Phase::over;
  const ConversationDriver& driver = exchange_.driver();
  const bool is_followed = driver.is_outstanding(operation.tag);
  send(Sender::server, std::move(message));
  if (!honest_ || !is_followed) return;
  require(!driver.is_outstanding(operation.tag), "an I/O does not end with its last message");
  const FinishedIo& io = *driver.last_finished();
  require(io.key == operation.tag && io.failed == failed &&
              io.bytes == static_cast<std::uint64_t>(moved),
          "an I/O ends otherwise than the server says");
}

Tag OrangefsPeers::new_tag() {
  if (operations_.empty() || input_.below(32) != 0) return ++last_tag_;
  const Operation& old = operations_[input_.u8() % operations_.size()];
  // That of a request that was given up stays in use.
  if (old.phase != Phase::over || has_forgotten_) honest_ = false;
  return old.tag;
}

void OrangefsPeers::add(Operation operation, const Request& request) {
  send(Sender::client, request_message(operation.tag, request));
  operation.end = exchange_.driver().received(Sender::client);
  std::erase_if(operations_, [&](const Operation& each) { return each.tag == operation.tag; });
  operations_.push_back(operation);
}

void OrangefsPeers::request_io() {
  Operation io = {.tag = new_tag(), .op = Op::io, .is_read = input_.below(2) == 0};
  io.offset = static_cast<std::int64_t>(input_.size());
  io.size = static_cast<std::int64_t>(input_.size());
  IoRequestBody body = {.handle = 200 + input_.below(2),
                        .fs_id = 7,
                        .io_type = io.is_read ? IoType::read : IoType::write,
                        .distribution = SimpleStripe{},
                        .file_request = FileRequest::contiguous_bytes(),
                        .file_request_offset = io.offset,
                        .aggregate_size = io.size};
  const std::size_t shape = input_.below(8);
  if (shape == 6) {
    body.file_request = vector_of_bytes(static_cast<std::int32_t>(input_.u8()) - 1, input_.u8(),
                                        static_cast<std::int64_t>(input_.size()));
  } else if (shape == 7) {
    body.server_ct = input_.u8();
    body.server_nr = input_.u8();
    body.distribution = TwoDStripe{.groups = input_.u8()};
  }
  const bool is_odd = io.offset < 0 || io.size < 0 || io.offset + 1 > INT64_MAX - io.size;
  // Only of plain ranges these peers know what is moved.
  if (shape >= 6 || is_odd || io.size > kMostOrangefsData) honest_ = false;
  Request request;
  request.body = std::move(body);
  if (input_.below(4) == 0) request.hints.push_back({.key = "jobid", .text = "job"});
  add(io, request);
}

void OrangefsPeers::request_small_io() {
  Operation io = {.tag = new_tag(), .op = Op::small_io, .is_read = input_.below(2) == 0};
  io.size = input_.u16() % 8192;
  SmallIoRequest body = {.handle = 200,
                         .fs_id = 7,
                         .io_type = io.is_read ? IoType::read : IoType::write,
                         .distribution = BasicDistribution{},
                         .file_request = FileRequest::contiguous_bytes(),
                         .aggregate_size = io.size,
                         .total_bytes = io.is_read ? 0 : io.size};
  if (!io.is_read) body.data.resize(static_cast<std::size_t>(io.size));
  add(io, {.capability = {}, .hints = {}, .body = std::move(body)});
}

void OrangefsPeers::request_other() {
  Request request;
  switch (input_.below(6)) {
    case 0:
      request.body = GetattrRequest{.handle = 100, .fs_id = 7, .credential = {.uid = input_.u8()}};
      break;
    case 1:
      request.body = StatfsRequest{.fs_id = 7};
      break;
    case 2:
      request.body = TruncateRequest{.handle = 200, .fs_id = 7};
      break;
    case 3:
      request.body = EmptyRequest{.op = Op::getconfig};
      break;
    case 4:
      request.body = EmptyRequest{.op = Op::imm_copies};  // of servers: it may have no answer
      honest_ = false;
      break;
    default:
      request.body = EmptyRequest{.op = Op::mgmt_noop};
  }
  const Op op = op_of(request.body);
  add({.tag = new_tag(), .op = op, .phase = op == Op::imm_copies ? Phase::over : Phase::answer},
      request);
}

// More requests than pass before the client's stream waits for answers, or fewer.
void OrangefsPeers::request_many() {
  if (input_.below(64) != 0) return;
  Buffer messages;
  const std::size_t first = operations_.size();
  for (std::size_t i = input_.u8() * std::size_t{6}; i > 0; --i) {
    operations_.push_back({.tag = ++last_tag_, .op = Op::mgmt_noop});
    const Buffer message = request_message(
        last_tag_, {.capability = {}, .hints = {}, .body = EmptyRequest{.op = Op::mgmt_noop}});
    messages.insert(messages.end(), message.begin(), message.end());
    operations_.back().end = exchange_.driver().received(Sender::client) + messages.size();
  }
  if (operations_.size() > first) exchange_.send(Sender::client, messages);
}

OrangefsPeers::Operation* OrangefsPeers::any_operation() {
  std::vector<Operation*> open;
  for (Operation& each : operations_) {
    if (each.phase != Phase::over) open.push_back(&each);
  }
  return open.empty() ? nullptr : open[input_.u8() % open.size()];
}

bool OrangefsPeers::server_has(const Operation& operation) const {
  return exchange_.driver().has_passed(Sender::client, operation.end) &&
         std::ranges::find(exchange_.driver().held(), operation.tag) ==
             exchange_.driver().held().end();
}

OrangefsPeers::Buffer OrangefsPeers::data_message(Tag tag, std::size_t size) const {
  const auto header =
      encode(BmiHeader{.mode = expected_mode(size), .tag = tag, .payload_size = size});
  Buffer message(header.begin(), header.end());
  message.resize(message.size() + size, std::byte{0xbf});
  return message;
}

// The size of a piece of file data.
std::int64_t OrangefsPeers::any_piece() {
  return std::int64_t{1} << input_.u8() % 18;
}

// File data of a write that has been accepted.
void OrangefsPeers::send_data() {
  Operation* const io = any_operation();
  if (io == nullptr || io->phase != Phase::write_data || io->left == 0) return;
  send_data(*io, any_piece());
}

void OrangefsPeers::send_data(Operation& write, std::int64_t most) {
  const std::int64_t size = std::min(write.left, most);
  write.left -= size;
  write.moved += size;
  if (exchange_.driver().is_outstanding(write.tag)) data_sent_ += static_cast<std::uint64_t>(size);
  send(Sender::client, data_message(write.tag, static_cast<std::size_t>(size)));
}

void OrangefsPeers::answer() {
  Operation* const operation = any_operation();
  if (operation == nullptr) return;
  if (!server_has(*operation)) {
    if (input_.below(16) != 0) return;
    honest_ = false;  // it answers what it was not asked
  }
  answer(*operation, input_.below(2) == 0 ? INT64_MAX : static_cast<std::int64_t>(input_.size()));
}

void OrangefsPeers::answer(Operation& operation, std::int64_t file_size) {
  switch (operation.op) {
    case Op::io:
      return answer_io(operation, file_size);
    case Op::small_io: {
      SmallIoResponse body = {.io_type = operation.is_read ? IoType::read : IoType::write,
                              .bstream_size = operation.size,
                              .result_size = operation.size};
      if (operation.is_read) body.data.resize(static_cast<std::size_t>(operation.size));
      return end(operation, response_message(operation.tag, {.body = std::move(body)}),
                 operation.size, false);
    }
    default:
      return end(operation, response_message(operation.tag, answer_of(operation.op, file_size)), 0,
                 false);
  }
}

void OrangefsPeers::answer_io(Operation& io, std::int64_t file_size) {
  switch (io.phase) {
    case Phase::answer:
      file_size = std::max<std::int64_t>(file_size, 0);
      io.left = io.is_read
                    ? std::clamp<std::int64_t>(file_size - std::max<std::int64_t>(io.offset, 0), 0,
                                               std::max<std::int64_t>(io.size, 0))
                    : io.size;
      io.phase = io.is_read ? Phase::read_data : Phase::write_data;
      if (io.is_read && io.left == 0) {
        return end(io, response_message(io.tag, answer_of(Op::io, file_size)), 0, false);
      }
      return send(Sender::server, response_message(io.tag, answer_of(Op::io, file_size)));
    case Phase::read_data: {
      // Past its end the input asks for nothing.
      const std::int64_t size = std::min(io.left, input_.empty() ? kMostOrangefsData : any_piece());
      io.left -= size;
      io.moved += size;
      Buffer message = data_message(io.tag, static_cast<std::size_t>(size));
      if (io.left == 0) return end(io, std::move(message), io.moved, false);
      return send(Sender::server, std::move(message));
    }
    case Phase::write_data:
      if (io.left > 0) return;
      return end(
          io,
          response_message(io.tag, {.body = WriteCompletionResponse{.total_completed = io.moved}}),
          io.moved, false);
    case Phase::over:
      return;
  }
}

// A negative answer.
void OrangefsPeers::fail() {
  Operation* const operation = any_operation();
  if (operation == nullptr || operation->phase == Phase::read_data) return;
  if (!server_has(*operation)) return;
  const bool is_completion = operation->phase == Phase::write_data;
  has_forgotten_ |= is_completion && operation->left > 0;  // data may be on their way
  const Op op = is_completion ? Op::write_completion : operation->op;
  end(*operation, error_message(operation->tag, op, -5), operation->moved, true);
}

// What a session decides for other reasons than its scheduler's.
void OrangefsPeers::decide() {
  const std::uint8_t any = input_.u8();
  switch (input_.below(8)) {
    case 0:
    case 1:
    case 2: {
      const auto& held = exchange_.driver().held();
      if (held.empty()) return;
      const IoKey key = held[any % held.size()];
      for (Operation& each : operations_) {
        if (each.tag == key) each.phase = Phase::over;
      }
      return exchange_.refuse(any);
    }
    case 3:
      has_forgotten_ = true;
      return exchange_.forget(any);
    case 4:
      has_forgotten_ = true;
      return exchange_.forget_ending();
    case 5:
      has_forgotten_ = true;
      return exchange_.forget_answers();
    default:
      return exchange_.hold_metadata(any % 2 == 0);
  }
}

void OrangefsPeers::raw() {
  honest_ = false;
  const Sender from = input_.below(2) == 0 ? Sender::client : Sender::server;
  static constexpr std::array kModes = {BmiMode::unexpected, BmiMode::eager, BmiMode::immediate,
                                        BmiMode::rendezvous};
  const std::size_t shape = input_.below(8);
  if (shape < 4) {
    const auto header = encode(BmiHeader{
        .mode = kModes[shape], .tag = input_.u8(), .payload_size = input_.size() % (1U << 25)});
    exchange_.send(from, header);
  }
  exchange_.send(from, input_.bytes(input_.u8()));
}

void OrangefsPeers::finish() {
  damage_ = false;
  const ConversationDriver& driver = exchange_.driver();
  for (bool some = true; some && honest_;) {
    some = false;
    while (!driver.held().empty() && !driver.closed()) {
      exchange_.release(0);
      some = true;
    }
    for (Operation& each : operations_) {
      if (each.phase == Phase::over || !server_has(each)) continue;
      some = true;
      while (each.phase == Phase::write_data && each.left > 0) send_data(each, 65536);
      answer(each, INT64_MAX);
    }
  }
  if (!honest_) return;
  if (has_forgotten_ && driver.closed()) return;  // there are bounds
  require(!driver.closed(), "honest peers lose their connection");
  require(driver.held().empty() && driver.outstanding().empty(), "an I/O does not end");
  require(driver.has_passed(Sender::client, driver.received(Sender::client)) &&
              driver.has_passed(Sender::server, driver.received(Sender::server)),
          "honest peers are not heard to the end");
  require(driver.data_from_client() == data_sent_, "other file data than the client has sent");
  require(driver.at_rest(), "no rest although all is over");
}

}  // namespace vpfs::test
