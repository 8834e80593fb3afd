#include "protocols/beegfs/file_io.h"

#include "base/byte_reader.h"
#include "base/byte_writer.h"

namespace vpfs::beegfs {
namespace {

constexpr std::size_t kAlignment = 4;

bool is_write(const MessageHeader& header) {
  return header.type == MessageType::write_local_file;
}

// Length, bytes, an uncounted NUL, and zeros up to a multiple of 4 from the beginning.
std::string_view read_text(ByteReader& in) {
  const std::size_t begin = in.offset();
  const std::uint32_t length = in.u32();
  const std::string_view text = in.text(length);
  in.skip(1);
  const std::size_t past = (in.offset() - begin) % kAlignment;
  if (past != 0) in.skip(kAlignment - past);
  return text;
}

void write_text(ByteWriter& out, std::string_view text) {
  const std::size_t begin = out.offset();
  out.u32(static_cast<std::uint32_t>(text.size()));
  out.text(text);
  out.u8(0);
  const std::size_t past = (out.offset() - begin) % kAlignment;
  if (past != 0) out.zeros(kAlignment - past);
}

}  // namespace

const char* describe(FileIoError error) {
  switch (error) {
    case FileIoError::too_short:
      return "the body is shorter than its fields";
    case FileIoError::bad_text:
      return "a NUL inside a text";
    case FileIoError::negative_count:
      return "the count of bytes is negative";
  }
  return "unknown error";
}

std::expected<FileIo, FileIoError> decode_file_io(const MessageHeader& header,
                                                  std::span<const std::byte> message) {
  ByteReader in(message);
  in.skip(kMessageHeaderSize);
  FileIo io;
  io.offset = in.i64();
  io.count = in.i64();
  io.access_flags = in.u32();
  if (is_write(header) && (header.feature_flags & kWriteHasOwner) != 0) {
    io.owner.emplace();
    io.owner->uid = in.u32();
    io.owner->gid = in.u32();
  }
  io.file_handle = read_text(in);
  io.client = in.u32();
  io.path.flags = in.u32();
  if ((io.path.flags & PathInfo::kHasOrigin) != 0) {
    io.path.owner = in.u32();
    io.path.directory = read_text(in);
  }
  io.target = in.u16();
  if (in.failed()) return std::unexpected(FileIoError::too_short);
  if (io.file_handle.contains('\0') || io.path.directory.contains('\0')) {
    return std::unexpected(FileIoError::bad_text);
  }
  if (io.count < 0) return std::unexpected(FileIoError::negative_count);
  return io;
}

std::vector<std::byte> encode_file_io(MessageHeader header, const FileIo& io) {
  if (io.owner) header.feature_flags |= kWriteHasOwner;
  std::vector<std::byte> body;
  ByteWriter out(body);
  out.i64(io.offset);
  out.i64(io.count);
  out.u32(io.access_flags);
  if (io.owner) {
    out.u32(io.owner->uid);
    out.u32(io.owner->gid);
  }
  write_text(out, io.file_handle);
  out.u32(io.client);
  out.u32(io.path.flags);
  if ((io.path.flags & PathInfo::kHasOrigin) != 0) {
    out.u32(io.path.owner);
    write_text(out, io.path.directory);
  }
  out.u16(io.target);
  return make_message(header, body);
}

std::vector<std::byte> write_answer(std::int64_t result) {
  std::vector<std::byte> body;
  ByteWriter(body).i64(result);
  return make_message({.type = MessageType::write_local_file_resp}, body);
}

}  // namespace vpfs::beegfs
