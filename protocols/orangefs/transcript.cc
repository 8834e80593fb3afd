#include "protocols/orangefs/transcript.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "protocols/orangefs/describe.h"

namespace vpfs::orangefs {
namespace {

std::string_view label(BmiMode mode) {
  switch (mode) {
    case BmiMode::immediate:
      return "IMMED";
    case BmiMode::unexpected:
      return "UNEXP";
    case BmiMode::eager:
      return "EAGER";
    case BmiMode::rendezvous:
      return "REND";
  }
  return "?";
}

void make_fault(TranscriptEntry& entry, std::string_view what) {
  entry.fault = true;
  entry.bytes = 0;
  entry.kind = "ERR";
  entry.line.append("ERR ").append(what);
}

TranscriptEntry fault_at(Sender from, std::uint64_t offset, std::string_view what) {
  TranscriptEntry entry{.from = from};
  make_fault(entry, std::string(what) + " at stream offset " + std::to_string(offset));
  return entry;
}

void describe_as(TranscriptEntry& entry, std::string_view type, std::string_view what, BmiMode mode,
                 std::string_view rest) {
  entry.kind.append(type).append(" ").append(what).append(" ").append(label(mode));
  entry.line.append(type).append(" ").append(what);
  if (!rest.empty()) entry.line.append(" ").append(rest);
}

std::string progress(std::int64_t moved, const TransferSize& expected) {
  return std::to_string(moved) + (expected.exact ? "/" : "/<=") + std::to_string(expected.bytes);
}

}  // namespace

void OrangefsTranscript::feed(Sender from, std::span<const std::byte> bytes,
                              std::vector<TranscriptEntry>& entries) {
  Stream& stream = streams_[static_cast<std::size_t>(from)];
  if (stream.lost) return;
  stream.pending.insert(stream.pending.end(), bytes.begin(), bytes.end());
  const std::size_t taken = take_messages(from, stream.pending, entries);
  stream.pending.erase(stream.pending.begin(),
                       stream.pending.begin() + static_cast<std::ptrdiff_t>(taken));
  stream.offset += taken;
}

std::size_t OrangefsTranscript::take_messages(Sender from, std::span<const std::byte> bytes,
                                              std::vector<TranscriptEntry>& entries) {
  Stream& stream = streams_[static_cast<std::size_t>(from)];
  std::size_t taken = 0;
  while (taken < bytes.size()) {
    const std::span<const std::byte> rest = bytes.subspan(taken);
    const auto header = decode_bmi_header(rest);
    if (!header && header.error() != BmiError::need_more) {
      entries.push_back(fault_at(from, stream.offset + taken, describe(header.error())));
      stream.lost = true;
      return taken;
    }
    if (!header || rest.size() - kBmiHeaderSize < header->payload_size) break;
    const auto size = static_cast<std::size_t>(header->payload_size);
    entries.push_back(message(from, *header, rest.subspan(kBmiHeaderSize, size)));
    taken += kBmiHeaderSize + size;
  }
  return taken;
}

void OrangefsTranscript::finish(std::vector<TranscriptEntry>& entries) {
  for (const Sender from : {Sender::client, Sender::server}) {
    const Stream& stream = streams_[static_cast<std::size_t>(from)];
    if (stream.lost || stream.pending.empty()) continue;
    entries.push_back(fault_at(from, stream.offset, describe(BmiError::need_more)));
  }
  for (const auto& [tag, operation] : operations_) {
    if (operation.phase != Phase::read_flow || !operation.expected.exact) continue;
    if (operation.moved == operation.expected.bytes) continue;
    TranscriptEntry entry{.from = Sender::server};
    make_fault(entry, "read flow of tag=" + std::to_string(tag) + " carried " +
                          progress(operation.moved, operation.expected));
    entries.push_back(std::move(entry));
  }
}

TranscriptEntry OrangefsTranscript::message(Sender from, const BmiHeader& header,
                                            std::span<const std::byte> payload) {
  TranscriptEntry entry{.from = from, .bytes = kBmiHeaderSize + payload.size()};
  entry.line = std::string(label(header.mode)) + " tag=" + std::to_string(header.tag) +
               " size=" + std::to_string(header.payload_size) + " ";
  if (header.mode == BmiMode::unexpected) {
    request(header, payload, entry);
  } else if (const auto found = operations_.find(header.tag); found == operations_.end()) {
    make_fault(entry, "no request with that tag");
  } else {
    expected_message(found->second, header, payload, entry);
  }
  return entry;
}

void OrangefsTranscript::request(const BmiHeader& header, std::span<const std::byte> payload,
                                 TranscriptEntry& entry) {
  if (entry.from != Sender::client) return make_fault(entry, "a request from the accepting side");
  auto request = decode_request(payload);
  if (!request) return make_fault(entry, describe(request.error()));
  describe_as(entry, "REQ", name(op_of(request->body)), header.mode, summary(*request));
  if (with_details_) entry.details = details(*request);
  Operation operation;
  if (auto* io = std::get_if<IoRequestBody>(&request->body)) {
    operation.io = std::move(*io);
    operation.expected = requested_bytes(operation.io);
  }
  operations_[header.tag] = std::move(operation);
}

void OrangefsTranscript::expected_message(Operation& operation, const BmiHeader& header,
                                          std::span<const std::byte> payload,
                                          TranscriptEntry& entry) {
  const Sender flow_from = operation.phase == Phase::read_flow ? Sender::server : Sender::client;
  const bool flowing = operation.phase == Phase::read_flow || operation.phase == Phase::write_flow;
  if (flowing && entry.from == flow_from) {
    operation.moved += static_cast<std::int64_t>(payload.size());
    describe_as(entry, "DATA", "flow", header.mode, progress(operation.moved, operation.expected));
  } else if (entry.from != Sender::server) {
    make_fault(entry, "a message that no request or response of its tag allows");
  } else if (operation.phase == Phase::response) {
    response(operation, header, payload, entry);
  } else if (operation.phase == Phase::write_flow) {
    completion(operation, header, payload, entry);
  } else {
    make_fault(entry, "a message after the end of its operation");
  }
}

void OrangefsTranscript::response(Operation& operation, const BmiHeader& header,
                                  std::span<const std::byte> payload, TranscriptEntry& entry) {
  const auto response = decode_response(payload);
  if (!response) return make_fault(entry, describe(response.error()));
  std::string text = summary(*response);
  operation.phase = Phase::done;
  if (const auto* answer = std::get_if<IoResponse>(&response->body)) {
    const bool reads = operation.io.io_type == IoType::read;
    operation.phase = reads ? Phase::read_flow : Phase::write_flow;
    if (reads) {
      operation.expected = readable_bytes(operation.io, answer->bstream_size);
      text += (operation.expected.exact ? " will_send=" : " will_send<=") +
              std::to_string(operation.expected.bytes);
    }
  }
  describe_as(entry, "RESP", name(op_of(response->body)), header.mode, text);
  if (with_details_) entry.details = details(*response);
}

void OrangefsTranscript::completion(Operation& operation, const BmiHeader& header,
                                    std::span<const std::byte> payload, TranscriptEntry& entry) {
  const auto response = decode_response(payload);
  if (!response) return make_fault(entry, describe(response.error()));
  operation.phase = Phase::done;
  const std::string text =
      summary(*response) + " sent=" + progress(operation.moved, operation.expected);
  if (response->status == 0) {
    const auto* done = std::get_if<WriteCompletionResponse>(&response->body);
    if (done == nullptr) return make_fault(entry, "no WRITE_COMPLETION at the end of a write");
    const bool as_asked = !operation.expected.exact || operation.expected.bytes == operation.moved;
    if (done->total_completed != operation.moved || !as_asked) {
      return make_fault(entry, "WRITE_COMPLETION does not match the flow: " + text);
    }
  }
  describe_as(entry, "ACK", name(op_of(response->body)), header.mode, text);
  if (with_details_) entry.details = details(*response);
}

Recognition recognise(std::span<const std::byte> first_bytes) {
  const auto header = decode_bmi_header(first_bytes);
  if (!header) {
    const bool more = header.error() == BmiError::need_more;
    return {.match = more ? Recognition::Match::need_more : Recognition::Match::no};
  }
  Recognition recognition{.match = Recognition::Match::yes};
  if (header->mode == BmiMode::unexpected) recognition.from = Sender::client;
  return recognition;
}

std::unique_ptr<Transcript> make_transcript(bool with_details) {
  return std::make_unique<OrangefsTranscript>(with_details);
}

}  // namespace vpfs::orangefs
