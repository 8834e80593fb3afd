#include "test/support/io_messages.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "protocols/orangefs/io_summary.h"

namespace vpfs::test {
namespace {

using namespace orangefs;

constexpr Handle kMetafile = 100;
constexpr Handle kDatafile = 200;
constexpr FsId kFsId = 7;
constexpr std::size_t kBlock = 4096;

Request request_with_hints(const IoSpec& spec) {
  Request request;
  request.capability.issuer = "S:s0";
  request.capability.handles = {kMetafile, kDatafile};
  request.hints.push_back({.type = HintType::handle, .raw_type = 3, .number = kMetafile});
  if (!spec.job.empty()) request.hints.push_back({.key = "jobid", .text = spec.job});
  return request;
}

Handle datafile_of(const IoSpec& spec) {
  return spec.datafile != 0 ? spec.datafile : kDatafile;
}

SmallIoRequest small_io(const IoSpec& spec) {
  return {.handle = datafile_of(spec),
          .fs_id = kFsId,
          .io_type = spec.type,
          .distribution = SimpleStripe{},
          .file_request = FileRequest::contiguous_bytes(),
          .file_request_offset = spec.offset,
          .aggregate_size = spec.size};
}

std::array<std::uint64_t, kBlock / 8> stamped_block(const StampedFile& file, std::uint64_t number) {
  std::array<std::uint64_t, kBlock / 8> words = {file.file, number * kBlock, file.generation, 0};
  std::uint64_t mixed = file.file * 0x9e3779b97f4a7c15ULL + number * 31 + file.generation;
  std::uint64_t sum = words[0] ^ words[1] ^ words[2];
  for (std::size_t i = 4; i < words.size(); ++i) {
    mixed = mixed * 6364136223846793005ULL + 1442695040888963407ULL;
    words[i] = mixed;
    sum = (sum << 1 | sum >> 63) ^ mixed;
  }
  words[3] = sum;
  return words;
}

}  // namespace

Buffer StampedFile::bytes(std::uint64_t offset, std::size_t size) const {
  Buffer out(size);
  for (std::size_t done = 0; done < size;) {
    const std::uint64_t at = offset + done;
    const auto block = stamped_block(*this, at / kBlock);
    const std::size_t skip = at % kBlock;
    const std::size_t part = std::min(kBlock - skip, size - done);
    std::memcpy(out.data() + done, std::as_bytes(std::span(block)).data() + skip, part);
    done += part;
  }
  return out;
}

std::string problem_of(std::span<const std::byte> bytes, const StampedFile& expected,
                       std::uint64_t offset) {
  const Buffer good = expected.bytes(offset, bytes.size());
  const auto [wrong, right] = std::ranges::mismatch(bytes, good);
  if (wrong == bytes.end()) return {};
  return "byte " + std::to_string(offset + static_cast<std::uint64_t>(wrong - bytes.begin())) +
         " of file " + std::to_string(expected.file) + " is wrong";
}

Buffer io_request(Tag tag, const IoSpec& spec) {
  Request request = request_with_hints(spec);
  request.body = IoRequestBody{.handle = datafile_of(spec),
                               .fs_id = kFsId,
                               .io_type = spec.type,
                               .distribution = SimpleStripe{},
                               .file_request = FileRequest::contiguous_bytes(),
                               .file_request_offset = spec.offset,
                               .aggregate_size = spec.size};
  return request_message(tag, request);
}

Buffer small_read_request(Tag tag, const IoSpec& spec) {
  Request request = request_with_hints(spec);
  request.body = small_io(spec);
  return request_message(tag, request);
}

Buffer small_write_request(Tag tag, const IoSpec& spec, const Buffer& data) {
  Request request = request_with_hints(spec);
  SmallIoRequest body = small_io(spec);
  body.io_type = IoType::write;
  body.aggregate_size = body.total_bytes = static_cast<std::int64_t>(data.size());
  body.data = data;
  request.body = std::move(body);
  return request_message(tag, request);
}

Buffer getattr_request(Tag tag) {
  Request request;
  request.body = GetattrRequest{.handle = kMetafile, .fs_id = kFsId, .credential = {.uid = 1000}};
  return request_message(tag, request);
}

Buffer getconfig_request(Tag tag) {
  Request request;
  request.body = EmptyRequest{.op = Op::getconfig};
  return request_message(tag, request);
}

Buffer io_response(Tag tag, std::int64_t bstream_size) {
  return response_message(tag, {.body = IoResponse{.bstream_size = bstream_size}});
}

Buffer small_read_response(Tag tag, const Buffer& data) {
  const auto size = static_cast<std::int64_t>(data.size());
  return response_message(
      tag, {.body = SmallIoResponse{.bstream_size = size, .result_size = size, .data = data}});
}

Buffer small_write_response(Tag tag, std::int64_t written) {
  return response_message(
      tag, {.body = SmallIoResponse{.io_type = IoType::write, .result_size = written}});
}

Buffer write_completion(Tag tag, std::int64_t written) {
  return response_message(tag, {.body = WriteCompletionResponse{.total_completed = written}});
}

Buffer getattr_response(Tag tag) {
  return response_message(tag, {.body = AttributesResponse{}});
}

Buffer getconfig_response(Tag tag, unsigned client_timeout_seconds) {
  const std::string text = "<Defaults>\n\tUnexpectedRequests 50\n\tClientJobBMITimeoutSecs " +
                           std::to_string(client_timeout_seconds) +
                           "\n\tClientJobFlowTimeoutSecs 300\n</Defaults>\n"
                           "<FileSystem>\n\tName vpfs\n\tID 9\n</FileSystem>\n";
  const auto size = static_cast<std::uint32_t>(text.size() + 1);
  return response_message(tag, {.body = GetconfigResponse{.size = size, .config = text}});
}

Buffer passing_request(Tag tag, std::size_t size) {
  Request noop;
  noop.body = EmptyRequest{.op = Op::mgmt_noop};
  Buffer payload;
  encode_request(noop, payload);
  payload.resize(size);
  const auto head =
      encode(BmiHeader{.mode = BmiMode::unexpected, .tag = tag, .payload_size = size});
  Buffer message(head.begin(), head.end());
  message.insert(message.end(), payload.begin(), payload.end());
  return message;
}

Buffer data_message(Tag tag, std::span<const std::byte> data) {
  const auto head = encode(
      BmiHeader{.mode = expected_mode(data.size()), .tag = tag, .payload_size = data.size()});
  Buffer message(head.begin(), head.end());
  message.insert(message.end(), data.begin(), data.end());
  return message;
}

std::optional<Op> operation_of_request(const WireMessage& message) {
  if (message.header.mode != BmiMode::unexpected) return std::nullopt;
  return peek_operation(message.payload);
}

bool is_error_response(const WireMessage& message, Op op) {
  const auto response = decode_response(message.payload);
  return message.header.mode == BmiMode::eager && response && response->status != 0 &&
         op_of(response->body) == op;
}

}  // namespace vpfs::test
