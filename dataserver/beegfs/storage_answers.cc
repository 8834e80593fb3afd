#include "dataserver/beegfs/storage_answers.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/byte_reader.h"
#include "base/byte_writer.h"

namespace vpfs::dataserver {
namespace {

using beegfs::MessageType;
using beegfs::OpsError;
using Message = std::optional<std::vector<std::byte>>;

constexpr std::uint16_t kTruncateHasOwner = 2;

std::uint16_t known_flags(MessageType type) {
  using enum MessageType;
  switch (type) {
    case write_local_file:
      return 1 | 2 | 4 | 8 | 16 | 32;
    case read_local_file:
    case fsync_local_file:
    case trunc_local_file:
      return 1 | 2 | 4 | 8;
    case close_chunk_file:
      return 1 | 4 | 8;
    case set_local_attr:
      return 1 | 2 | 4;
    case get_chunk_file_attribs:
    case unlink_local_file:
      return 1 | 2;
    default:
      return 0;
  }
}

std::string_view read_text(ByteReader& in) {
  constexpr std::size_t kAlignment = 4;
  const std::uint32_t size = in.u32();
  const std::string_view text = in.text(size);
  in.skip(kAlignment - size % kAlignment);
  return text;
}

void skip_path(ByteReader& in) {
  if ((in.u32() & 1U) == 0) return;
  in.skip(4);
  (void)read_text(in);
}

Message answer(MessageType request, const std::vector<std::byte>& body) {
  beegfs::MessageHeader header{.type = beegfs::answer_of(request).value()};
  // Says that the answer has attributes; the other answers always have them.
  if (request == MessageType::set_local_attr) header.feature_flags = 1;
  return beegfs::make_message(header, body);
}

Message short_result(MessageType request, OpsError error) {
  std::vector<std::byte> body;
  ByteWriter(body).i32(std::to_underlying(error));
  return answer(request, body);
}

// Size, blocks, times, version and result of a chunk file.
Message attributes(MessageType request, std::int64_t size, OpsError error) {
  constexpr std::int64_t kBlock = 512;
  constexpr std::int64_t kTime = 1'700'000'000;
  std::vector<std::byte> body;
  ByteWriter out(body);
  out.i64(size);
  out.i64((size + kBlock - 1) / kBlock);
  out.i64(kTime);
  out.i64(kTime);
  out.u64(1);
  out.i32(std::to_underlying(error));
  return answer(request, body);
}

Message attributes_of(StorageContext& context, MessageType request, std::string_view entry,
                      std::uint16_t id) {
  StorageTarget* const target = context.find_target(id);
  if (target == nullptr) return attributes(request, 0, OpsError::unknown_target);
  const std::int64_t size = context.store.size(target->chunk_file(entry)).value_or(0);
  return attributes(request, size, OpsError::success);
}

Message unlink(StorageContext& context, ByteReader in) {
  const std::string_view entry = read_text(in);
  skip_path(in);
  StorageTarget* const target = context.find_target(in.u16());
  if (in.failed()) return std::nullopt;
  if (target == nullptr)
    return short_result(MessageType::unlink_local_file, OpsError::unknown_target);
  (void)context.store.remove(target->chunk_file(entry));
  return short_result(MessageType::unlink_local_file, OpsError::success);
}

Message truncate(StorageContext& context, const beegfs::MessageHeader& header, ByteReader in) {
  const std::int64_t size = in.i64();
  if ((header.feature_flags & kTruncateHasOwner) != 0) in.skip(8);
  const std::string_view entry = read_text(in);
  skip_path(in);
  const std::uint16_t id = in.u16();
  if (in.failed()) return std::nullopt;
  StorageTarget* const target = context.find_target(id);
  if (target != nullptr) (void)context.store.truncate(target->chunk_file(entry), size);
  return attributes_of(context, header.type, entry, id);
}

Message close_file(StorageContext& context, ByteReader in) {
  in.skip(4);
  const std::string_view handle = read_text(in);
  skip_path(in);
  const std::uint16_t id = in.u16();
  if (in.failed()) return std::nullopt;
  StorageTarget* const target = context.find_target(id);
  if (target != nullptr) target->forget_handle(handle);
  return attributes_of(context, MessageType::close_chunk_file, handle.substr(handle.find('#') + 1),
                       id);
}

Message entry_attributes(StorageContext& context, MessageType request, ByteReader in) {
  constexpr std::size_t kAttributesSet = 32;
  if (request == MessageType::set_local_attr) in.skip(kAttributesSet);
  const std::string_view entry = read_text(in);
  skip_path(in);
  const std::uint16_t id = in.u16();
  if (in.failed()) return std::nullopt;
  return attributes_of(context, request, entry, id);
}

Message sync(StorageContext& context, ByteReader in) {
  in.skip(4);
  (void)read_text(in);
  const bool known = context.find_target(in.u16()) != nullptr;
  if (in.failed()) return std::nullopt;
  std::vector<std::byte> body;
  ByteWriter(body).i64(known ? 0 : std::to_underlying(OpsError::unknown_target));
  return answer(MessageType::fsync_local_file, body);
}

Message storage_path(StorageContext& context, ByteReader in) {
  const bool known = context.find_target(in.u16()) != nullptr;
  if (in.failed()) return std::nullopt;
  constexpr std::int64_t kInodes = 1'000'000;
  const BstreamStore::Space space = context.store.space();
  std::vector<std::byte> body;
  ByteWriter out(body);
  out.i32(std::to_underlying(known ? OpsError::success : OpsError::unknown_target));
  out.u64(known ? space.total.count : 0);
  out.u64(known ? space.available.count : 0);
  out.i64(known ? kInodes : 0);
  out.i64(known ? kInodes : 0);
  return answer(MessageType::stat_storage_path, body);
}

// Types made for datagrams: an Ack with the text they carry, if that is not empty.
Message acknowledge(std::span<const std::byte> body) {
  constexpr std::uint32_t kMostText = 4096;
  ByteReader in(body);
  const std::uint32_t size = in.u32();
  const std::string_view text = in.text(std::min(size, kMostText));
  if (in.failed() || size > kMostText) return std::nullopt;
  if (text.empty()) return std::vector<std::byte>();
  std::vector<std::byte> out;
  ByteWriter writer(out);
  writer.u32(size);
  writer.text(text);
  writer.u8(0);
  return beegfs::make_message({.type = MessageType::ack}, out);
}

}  // namespace

bool is_understood(const beegfs::MessageHeader& header) {
  return !beegfs::name(header.type).empty() && !beegfs::is_answer(header.type) &&
         (header.feature_flags & ~known_flags(header.type)) == 0;
}

Message answer_to(StorageContext& context, const beegfs::MessageHeader& header,
                  std::span<const std::byte> message) {
  using enum MessageType;
  const std::span<const std::byte> body = message.subspan(beegfs::kMessageHeaderSize);
  if (beegfs::asks_for_ack(header.type)) return acknowledge(body);
  if (!beegfs::has_answer(header.type)) return std::vector<std::byte>();
  if (!beegfs::answer_of(header.type)) return std::nullopt;
  const ByteReader in(body);
  switch (header.type) {
    case unlink_local_file:
      return unlink(context, in);
    case trunc_local_file:
      return truncate(context, header, in);
    case close_chunk_file:
      return close_file(context, in);
    case get_chunk_file_attribs:
    case set_local_attr:
      return entry_attributes(context, header.type, in);
    case fsync_local_file:
      return sync(context, in);
    case stat_storage_path:
      return storage_path(context, in);
    default:
      return short_result(header.type, OpsError::success);
  }
}

}  // namespace vpfs::dataserver
