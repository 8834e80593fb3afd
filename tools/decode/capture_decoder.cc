#include "tools/decode/capture_decoder.h"

#include <algorithm>

namespace vpfs {

void CaptureDecoder::add(LinkType link, const Packet& packet) {
  if (!any_) begin_ = packet.time;
  any_ = true;
  now_ = packet.time - begin_;
  const std::optional<TcpSegment> segment = parse_tcp(link, packet.bytes);
  if (!segment) return;
  const auto wanted = [&](const HostPort& host) { return options_.ports.contains(host.port); };
  if (!options_.ports.empty() && !wanted(segment->from) && !wanted(segment->to)) return;
  CapturedConnection& connection = connection_of(*segment);
  const std::size_t side = connection.hosts[0] == segment->from ? 0 : 1;
  const std::span<const std::byte> bytes = connection.streams[side].add(*segment);
  if (bytes.empty()) return;
  deliver(
      connection,
      {.side = side, .time = now_, .bytes = std::vector<std::byte>(bytes.begin(), bytes.end())});
}

CaptureDecoder::CapturedConnection& CaptureDecoder::connection_of(const TcpSegment& segment) {
  CapturedConnection*& found = by_hosts_[std::minmax(segment.from, segment.to)];
  const bool opens = segment.syn && !segment.ack;
  if (found != nullptr) {
    const std::size_t side = found->hosts[0] == segment.from ? 0 : 1;
    if (!opens || !found->streams[side].is_other_beginning(segment)) return *found;
  }
  auto connection = std::make_unique<CapturedConnection>();
  connection->number = connections_.size();
  connection->hosts = {segment.from, segment.to};
  connection->began = segment.syn;
  // Without a SYN the side with the higher port counts as the client until the bytes tell.
  const bool from_client = segment.syn ? opens : segment.from.port > segment.to.port;
  connection->client = from_client ? 0 : 1;
  found = connection.get();
  connections_.push_back(std::move(connection));
  return *found;
}

void CaptureDecoder::deliver(CapturedConnection& connection, Chunk chunk) {
  if (connection.unknown) return;
  const std::size_t side = chunk.side;
  if (connection.transcript == nullptr) {
    std::vector<std::byte>& first = connection.first_bytes[side];
    first.insert(first.end(), chunk.bytes.begin(), chunk.bytes.end());
    connection.waiting.push_back(std::move(chunk));
    return recognise(connection, side);
  }
  std::vector<TranscriptEntry> entries;
  connection.transcript->feed(connection.sender(side), chunk.bytes, entries);
  tell(connection, entries, chunk.time);
}

void CaptureDecoder::recognise(CapturedConnection& connection, std::size_t side) {
  bool open = false;
  for (const Protocol& protocol : protocols()) {
    const Recognition found = protocol.recognise(connection.first_bytes[side]);
    if (found.match == Recognition::Match::need_more) open = true;
    if (found.match != Recognition::Match::yes) continue;
    if (found.from && !connection.began) {
      connection.client = *found.from == Sender::client ? side : 1 - side;
    }
    return begin(connection, protocol);
  }
  connection.unknown = !open;
}

void CaptureDecoder::begin(CapturedConnection& connection, const Protocol& protocol) {
  connection.transcript = protocol.make_transcript(options_.details);
  const HostPort& client = connection.hosts[connection.client];
  const HostPort& server = connection.hosts[1 - connection.client];
  tell(connection,
       to_string(client) + " -> " + to_string(server) + " " + std::string(protocol.name) +
           (connection.began ? "" : ", began before the capture"),
       false);
  for (Chunk& chunk : std::exchange(connection.waiting, {})) deliver(connection, std::move(chunk));
  connection.first_bytes = {};
}

void CaptureDecoder::tell(const CapturedConnection& connection,
                          const std::vector<TranscriptEntry>& entries,
                          std::chrono::nanoseconds time) {
  for (const TranscriptEntry& entry : entries) {
    totals_.decoded_bytes += entry.bytes;
    if (entry.fault) {
      ++totals_.faults;
    } else {
      ++totals_.messages[entry.kind];
    }
    report_({.time = time, .connection = connection.number, .entry = &entry, .fault = entry.fault});
  }
}

void CaptureDecoder::tell(const CapturedConnection& connection, std::string about, bool fault) {
  if (fault) ++totals_.faults;
  report_(
      {.time = now_, .connection = connection.number, .about = std::move(about), .fault = fault});
}

void CaptureDecoder::finish(CapturedConnection& connection) {
  for (std::size_t side = 0; side < 2; ++side) {
    const TcpStream& stream = connection.streams[side];
    totals_.stream_bytes += stream.size();
    const std::optional<TcpStream::Gap> gap = stream.gap();
    if (!gap) continue;
    totals_.stream_bytes += gap->bytes_beyond;
    tell(connection,
         std::to_string(gap->missing) + " bytes are missing in the stream of " +
             to_string(connection.hosts[side]) + " at offset " + std::to_string(gap->offset),
         true);
  }
  if (connection.transcript != nullptr) {
    std::vector<TranscriptEntry> entries;
    connection.transcript->finish(entries);
    tell(connection, entries, now_);
  } else if (const std::uint64_t size = connection.streams[0].size() + connection.streams[1].size();
             size > 0) {
    tell(connection,
         to_string(connection.hosts[0]) + " -> " + to_string(connection.hosts[1]) + " " +
             std::to_string(size) + " bytes of no protocol that vpfs knows",
         true);
  }
}

CaptureTotals CaptureDecoder::finish() {
  for (const auto& connection : connections_) finish(*connection);
  totals_.connections = connections_.size();
  return totals_;
}

}  // namespace vpfs
