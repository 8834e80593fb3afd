#include "client/orangefs/io_part.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>
#include <unistd.h>

#include "base/byte_reader.h"
#include "base/check.h"

namespace vpfs::client {
namespace {

net::OutputQueue::FilePart part_of(const net::OutputQueue::FilePart& file, std::uint64_t position,
                                   std::uint64_t size) {
  return {.descriptor = file.descriptor,
          .offset = file.offset + static_cast<std::int64_t>(position),
          .size = static_cast<std::size_t>(size)};
}

std::uint64_t physical(const IoPart::Plan& plan, std::int64_t logical) {
  if (plan.strip_size == 0) return static_cast<std::uint64_t>(logical);
  const orangefs::Distribution stripes = orangefs::SimpleStripe{.strip_size = plan.strip_size};
  return static_cast<std::uint64_t>(
      orangefs::physical_offset(stripes, plan.placement, logical).value_or(0));
}

}  // namespace

std::uint64_t IoPart::bytes_on_datafile(const Plan& plan) {
  return physical(plan, plan.offset + static_cast<std::int64_t>(plan.size)) -
         physical(plan, plan.offset);
}

IoPart::IoPart(const Plan& plan, const IoBytes& bytes, net::Latch& latch)
    : plan_(plan),
      bytes_(bytes),
      latch_(latch),
      walk_(plan.strip_size, plan.placement, plan.offset, plan.size),
      wanted_(bytes_on_datafile(plan)) {}

IoPart::~IoPart() {
  VPFS_ASSERT(!borrowed_);
}

void IoPart::begin(std::shared_ptr<ServerConnection> connection, const RequestTemplate& request) {
  connection_ = std::move(connection);
  latch_.expect();
  const orangefs::Tag tag = connection_->begin(*this, plan_.patience);
  const bool carries_data = plan_.small && plan_.type == orangefs::IoType::write;
  net::OutputQueue::Message message;
  message.head = request.message(tag, {.datafile = plan_.datafile,
                                       .server_nr = plan_.placement.server_nr,
                                       .offset = plan_.offset,
                                       .aggregate_size = static_cast<std::int64_t>(plan_.size),
                                       .data_size = carries_data ? wanted_ : 0});
  if (!carries_data) return connection_->send(std::move(message));
  add_pieces(std::move(message), wanted_, std::make_shared<Guard>(*this));
}

// Sends `message` with the next `size` bytes of this datafile behind its head.
void IoPart::add_pieces(net::OutputQueue::Message message, std::uint64_t size,
                        const std::shared_ptr<Guard>& guard) {
  borrowed_ = true;
  while (size > 0) {
    const std::optional<StripWalk::Piece> piece = walk_.next(size);
    VPFS_ASSERT(piece);
    if (bytes_.file.size > 0) {
      message.file = part_of(bytes_.file, piece->position, piece->size);
    } else {
      message.payload = bytes_.from.subspan(static_cast<std::size_t>(piece->position),
                                            static_cast<std::size_t>(piece->size));
    }
    message.owner = guard;
    connection_->send(std::move(message));
    message = {};
    size -= piece->size;
  }
}

bool IoPart::on_response(std::span<const std::byte> payload) {
  if (phase_ == Phase::ended) {
    spdlog::error("received a response to an I/O that has ended");
    return false;
  }
  ByteReader in(payload);
  const std::uint32_t version = in.u32();
  const std::uint32_t encoding = in.u32();
  const orangefs::Op op{in.i32()};
  const orangefs::Status status = in.i32();
  if (in.failed() || version / 1000 != orangefs::kProtocolVersion / 1000 ||
      encoding != orangefs::kEncodingLittleEndian) {
    spdlog::error("the response to an I/O is malformed");
    return false;
  }
  if (op == orangefs::Op::proto_error) {
    failure_ = std::make_error_code(std::errc::protocol_not_supported);
    end();
    return true;
  }
  const orangefs::Op expected = plan_.small                         ? orangefs::Op::small_io
                                : phase_ == Phase::write_completion ? orangefs::Op::write_completion
                                                                    : orangefs::Op::io;
  if (op != expected) {
    spdlog::error("received {}, expected {}", orangefs::name(op), orangefs::name(expected));
    return false;
  }
  if (status != 0) {
    status_ = status;
    moved_ = 0;
    end();
    return true;
  }
  return plan_.small ? on_small_io(in) : on_io(in);
}

bool IoPart::on_small_io(ByteReader& in) {
  (void)in.i32();  // io_type
  in.skip(4);
  (void)in.i64();  // bstream_size
  const std::int64_t result = in.i64();
  if (in.failed() || result < 0 || static_cast<std::uint64_t>(result) > wanted_) {
    spdlog::error("a SMALL_IO moved {} bytes instead of {}", result, wanted_);
    return false;
  }
  if (plan_.type == orangefs::IoType::read) {
    std::span<const std::byte> data = in.bytes(static_cast<std::size_t>(result));
    if (in.failed() || in.remaining() > 0) return false;
    remaining_ = data.size();
    while (remaining_ > 0) {
      const std::span<std::byte> into = next_room(remaining_).into;
      std::copy_n(data.begin(), into.size(), into.begin());
      data = data.subspan(into.size());
    }
  }
  moved_ = static_cast<std::uint64_t>(result);
  end();
  return true;
}

bool IoPart::on_io(ByteReader& in) {
  const std::int64_t number = in.i64();  // bstream_size, or what a write has completed
  if (in.failed()) return false;
  if (phase_ == Phase::write_completion) {
    moved_ = number < 0 ? 0 : std::min(static_cast<std::uint64_t>(number), wanted_);
    end();
    return true;
  }
  if (plan_.type == orangefs::IoType::write) {
    phase_ = Phase::write_completion;
    send_flow();
    return true;
  }
  const std::uint64_t begin = physical(plan_, plan_.offset);
  const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(number, 0));
  remaining_ = size <= begin ? 0 : std::min(size - begin, wanted_);
  phase_ = Phase::read_flow;
  if (remaining_ == 0) end();
  return true;
}

void IoPart::send_flow() {
  const auto guard = std::make_shared<Guard>(*this);
  for (std::uint64_t left = wanted_; left > 0;) {
    const std::uint64_t size = std::min(left, plan_.flow_buffer_size);
    const auto header = orangefs::encode(
        {.mode = orangefs::expected_mode(size), .tag = tag(), .payload_size = size});
    net::OutputQueue::Message message;
    message.head.assign(header.begin(), header.end());
    add_pieces(std::move(message), size, guard);
    left -= size;
  }
}

bool IoPart::on_data(std::uint64_t size) {
  return size > 0 && size <= remaining_;
}

Exchange::Room IoPart::next_room(std::uint64_t most) {
  if (bytes_.into.empty()) {
    take(most);
    return {.into = {}, .drop = most};
  }
  const std::optional<StripWalk::Piece> piece = walk_.next(most);
  VPFS_ASSERT(piece);
  take(piece->size);
  return {.into = bytes_.into.subspan(static_cast<std::size_t>(piece->position),
                                      static_cast<std::size_t>(piece->size))};
}

void IoPart::take(std::uint64_t size) {
  moved_ += size;
  remaining_ -= size;
}

void IoPart::on_data_end() {
  if (remaining_ == 0) end();
}

void IoPart::on_failure(std::error_code error) {
  failure_ = error;
  phase_ = Phase::ended;
  // Queued messages must not outlive the caller's memory.
  if (borrowed_) {
    connection_->close(error);
  } else {
    latch_.done();
  }
}

// A server may answer before it has taken all data. The deadline goes on until it has.
void IoPart::end() {
  phase_ = Phase::ended;
  if (!borrowed_) finish();
}

void IoPart::data_released() {
  borrowed_ = false;
  if (phase_ == Phase::ended) finish();
}

void IoPart::finish() {
  connection_->forget(*this);
  latch_.done();
}

}  // namespace vpfs::client
