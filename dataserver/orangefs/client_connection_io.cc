// The file data of a ClientConnection: IO with its flows, and SMALL_IO.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include <spdlog/spdlog.h>

#include "base/result.h"
#include "dataserver/orangefs/client_connection.h"

namespace vpfs::dataserver {
namespace {

std::vector<std::byte> data_header(orangefs::Tag tag, std::size_t size) {
  const auto bytes = orangefs::encode(
      orangefs::BmiHeader{.mode = orangefs::expected_mode(size), .tag = tag, .payload_size = size});
  return {bytes.begin(), bytes.end()};
}

orangefs::Response io_response(std::int64_t bstream_size) {
  return {.status = 0, .body = orangefs::IoResponse{.bstream_size = bstream_size}};
}

// The next `size` bytes of a walk. A single run is borrowed, several are copied together.
net::Task<Outcome<std::vector<BstreamStore::Part>>> read_segments(BstreamStore& store,
                                                                  orangefs::Handle handle,
                                                                  SegmentWalk& walk,
                                                                  std::size_t size) {
  SegmentWalk::Segment segment = walk.next(static_cast<std::int64_t>(size));
  if (std::cmp_equal(segment.size, size))
    co_return co_await store.read(handle, segment.offset, size);
  const auto bytes = std::make_shared<std::vector<std::byte>>(size);
  for (std::size_t done = 0; segment.size > 0;) {
    auto parts =
        co_await store.read(handle, segment.offset, static_cast<std::size_t>(segment.size));
    VPFS_CO_TRY(parts);
    for (const BstreamStore::Part& part : *parts) {
      std::memcpy(bytes->data() + done, part.bytes.data(), part.bytes.size());
      done += part.bytes.size();
    }
    segment = walk.next(static_cast<std::int64_t>(size - done));
  }
  std::vector<BstreamStore::Part> all;
  all.push_back({.bytes = *bytes, .owner = bytes});
  co_return all;
}

}  // namespace

// The first piece is read before the answer, so that the answer can report a failing disk. Later
// failures can only close the connection.
net::Task<void> ClientConnection::run_read(Self self, orangefs::Tag tag, IoPlan plan) {
  BstreamStore& store = self->context_.bstreams;
  const Outcome<std::int64_t> end = self->context_.datafiles.size(plan.handle);
  if (!end) co_return self->send_error(tag, orangefs::Op::io, end.error());
  const std::int64_t total = plan.readable(*end);
  SegmentWalk walk(plan, *end);
  const auto piece_size = static_cast<std::int64_t>(self->context_.config.flow_buffer_size.count);
  for (std::int64_t done = 0; done < total || done == 0;) {
    const auto size = static_cast<std::size_t>(std::min(piece_size, total - done));
    if (!co_await self->output_has_room()) co_return;
    auto parts = co_await read_segments(store, plan.handle, walk, size);
    if (!parts && done == 0) co_return self->send_error(tag, orangefs::Op::io, parts.error());
    if (!parts) co_return self->give_up("a read failed half-way");
    // After a concurrent truncation or removal, the missing bytes would go out as zeros.
    const std::int64_t needed =
        plan.sparse ? *end : plan.offset + done + static_cast<std::int64_t>(size);
    if (size > 0 && self->context_.datafiles.size(plan.handle).value_or(0) < needed) {
      co_return self->give_up("a file became shorter while it was read");
    }
    const Bytes moved{size};
    co_await self->context_.device.pass(moved, done == 0);
    if (done == 0) {
      const orangefs::Response response = io_response(*end);
      self->output_.send(orangefs::response_message(tag, response));
    }
    if (size == 0) co_return;
    self->send_parts(data_header(tag, size), std::move(*parts));
    done += static_cast<std::int64_t>(size);
  }
}

bool ClientConnection::start_write(orangefs::Tag tag, const IoPlan& plan) {
  if (write_flows_.contains(tag)) {
    give_up("a tag is used by two writes at once");
    return false;
  }
  if (write_flows_.size() >= kMostWriteFlows) {
    give_up("too many writes at once");
    return false;
  }
  const Outcome<std::int64_t> end = context_.datafiles.size(plan.handle);
  if (!end) {
    send_error(tag, orangefs::Op::io, end.error());
    return true;
  }
  const auto flow = std::make_shared<WriteFlow>(tag, plan);
  output_.send(orangefs::response_message(tag, io_response(*end)));
  if (plan.size == 0) {
    finish_write(*flow);
  } else {
    write_flows_.emplace(tag, flow);
  }
  return true;
}

net::Task<bool> ClientConnection::take_data(orangefs::BmiHeader header) {
  const auto found = write_flows_.find(header.tag);
  if (found == write_flows_.end()) {
    give_up("received data that belong to no write");
    co_return false;
  }
  const WriteFlowPtr flow = found->second;
  const auto rest = static_cast<std::uint64_t>(flow->plan.size - flow->received);
  if (header.payload_size > rest) {
    give_up("more data than the write announced");
    co_return false;
  }
  // A message of the usual size takes one turn; a larger one goes piece by piece.
  auto left = static_cast<std::size_t>(header.payload_size);
  while (left > 0) {
    const std::size_t most = std::min(left, context_.bstreams.most_window());
    const SegmentWalk::Segment piece = flow->walk.next(static_cast<std::int64_t>(most));
    if (!co_await take_piece(flow, piece)) co_return false;
    left -= static_cast<std::size_t>(piece.size);
  }
  if (flow->received == flow->plan.size) {
    write_flows_.erase(header.tag);
    if (flow->uncommitted == 0) finish_write(*flow);
  }
  co_return true;
}

net::Task<bool> ClientConnection::take_piece(WriteFlowPtr flow, SegmentWalk::Segment piece) {
  const bool first = flow->received == 0;
  const auto size = static_cast<std::size_t>(piece.size);
  while (uncommitted_ >= kMostUncommitted && !shut_) co_await has_room_.wait();
  // The datafile may have been removed since the write began, and must not come back.
  const Outcome<std::int64_t> end = context_.datafiles.size(flow->plan.handle);
  if (flow->stored && !end) flow->stored = std::unexpected(end.error());
  // After a failure the rest of the data is dropped; the completion reports the failure.
  Outcome<BstreamStore::Window> window = refuse(ECANCELED);
  if (flow->stored) {
    window = co_await context_.bstreams.open_window(flow->plan.handle, piece.offset, size);
  }
  if (!window) {
    if (flow->stored) flow->stored = std::unexpected(window.error());
    if (!co_await input_.discard(size)) co_return false;
    flow->received += piece.size;
    co_return true;
  }
  for (const std::span<std::byte> part : window->parts) {
    if (!co_await input_.read(part)) {
      context_.bstreams.abandon(std::move(*window));
      co_return false;
    }
  }
  ++arrivals_;
  flow->received += piece.size;
  if (context_.bstreams.immediate() && !context_.device.modelled()) {
    const Outcome<void> stored = co_await context_.bstreams.commit(std::move(*window));
    if (flow->stored) flow->stored = stored;
    co_return true;
  }
  ++flow->uncommitted;
  ++uncommitted_;
  spawn(settle_piece(shared_from_this(), flow, std::move(*window), first));
  co_return true;
}

net::Task<void> ClientConnection::settle_piece(Self self, WriteFlowPtr flow,
                                               BstreamStore::Window window, bool first) {
  const Bytes size{window.size};
  const Outcome<void> stored = co_await self->context_.bstreams.commit(std::move(window));
  --self->uncommitted_;
  self->has_room_.notify_all();
  if (flow->stored) flow->stored = stored;
  co_await self->context_.device.pass(size, first);
  --flow->uncommitted;
  if (flow->uncommitted == 0 && flow->received == flow->plan.size) self->finish_write(*flow);
}

void ClientConnection::finish_write(WriteFlow& flow) {
  if (!flow.stored) {
    const orangefs::Status status = status_of(flow.stored);
    spdlog::warn("a write of {} failed: {}", peer_, orangefs::describe_status(status));
    return send_error(flow.tag, orangefs::Op::write_completion, status);
  }
  orangefs::Response response;
  response.body = orangefs::WriteCompletionResponse{.total_completed = flow.plan.size};
  output_.send(orangefs::response_message(flow.tag, response));
}

net::Task<void> ClientConnection::run_small_io(Self self, orangefs::Tag tag, IoPlan plan,
                                               std::vector<std::byte> data) {
  net::Task<void> task = plan.type == orangefs::IoType::read
                             ? self->small_read(tag, plan)
                             : self->small_write(tag, plan, std::move(data));
  co_await std::move(task);
}

net::Task<void> ClientConnection::small_read(orangefs::Tag tag, IoPlan plan) {
  BstreamStore& store = context_.bstreams;
  Outcome<std::int64_t> end = context_.datafiles.size(plan.handle);
  Outcome<std::vector<BstreamStore::Part>> parts;
  std::size_t size = 0;
  for (bool again = true; again;) {
    if (!end) co_return send_error(tag, orangefs::Op::small_io, end.error());
    size = static_cast<std::size_t>(plan.readable(*end));
    // The response is one message; a client that wants more must use IO.
    if (size > orangefs::kMaxEagerSize) {
      co_return send_error(tag, orangefs::Op::small_io, status_of(EMSGSIZE));
    }
    SegmentWalk walk(plan, *end);
    parts = co_await read_segments(store, plan.handle, walk, size);
    if (!parts) co_return send_error(tag, orangefs::Op::small_io, parts.error());
    // After a concurrent truncation, the missing bytes would go out as zeros.
    const Outcome<std::int64_t> now = context_.datafiles.size(plan.handle);
    again = !now || *now < *end;
    if (again) end = now;
  }
  const Bytes moved{size};
  co_await context_.device.pass(moved, true);
  if (!co_await output_has_room()) co_return;
  orangefs::SmallIoResponse response;
  response.io_type = orangefs::IoType::read;
  response.bstream_size = *end;
  response.result_size = static_cast<std::int64_t>(size);
  send_parts(orangefs::small_io_response_head(tag, response), std::move(*parts));
}

net::Task<Outcome<void>> ClientConnection::store_piece(orangefs::Handle handle, std::int64_t offset,
                                                       std::span<const std::byte> data) {
  VPFS_CO_TRY(context_.datafiles.size(handle));  // as in take_piece()
  auto window = co_await context_.bstreams.open_window(handle, offset, data.size());
  VPFS_CO_TRY(window);
  for (const std::span<std::byte> part : window->parts) {
    std::memcpy(part.data(), data.data(), part.size());
    data = data.subspan(part.size());
  }
  co_return co_await context_.bstreams.commit(std::move(*window));
}

net::Task<void> ClientConnection::small_write(orangefs::Tag tag, IoPlan plan,
                                              std::vector<std::byte> data) {
  if (!std::cmp_equal(data.size(), plan.size)) {
    co_return send_error(tag, orangefs::Op::small_io, status_of(EINVAL));
  }
  const Outcome<std::int64_t> end = context_.datafiles.size(plan.handle);
  if (!end) co_return send_error(tag, orangefs::Op::small_io, end.error());
  SegmentWalk walk(plan);
  for (std::span<const std::byte> rest = data; !rest.empty();) {
    const SegmentWalk::Segment segment = walk.next(static_cast<std::int64_t>(rest.size()));
    const std::span<const std::byte> piece = rest.first(static_cast<std::size_t>(segment.size));
    const Outcome<void> stored = co_await store_piece(plan.handle, segment.offset, piece);
    if (!stored) co_return send_error(tag, orangefs::Op::small_io, stored.error());
    rest = rest.subspan(piece.size());
  }
  const Bytes moved{data.size()};
  co_await context_.device.pass(moved, true);
  if (!co_await output_has_room()) co_return;
  orangefs::Response response;
  response.body = orangefs::SmallIoResponse{.io_type = orangefs::IoType::write,
                                            .bstream_size = *end,
                                            .result_size = plan.size,
                                            .data = {}};
  output_.send(orangefs::response_message(tag, response));
}

}  // namespace vpfs::dataserver
