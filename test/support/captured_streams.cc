#include "test/support/captured_streams.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <span>
#include <stdexcept>

#include "test/support/places.h"
#include "tools/decode/pcap_reader.h"
#include "tools/decode/tcp_segment.h"
#include "tools/decode/tcp_stream.h"

namespace vpfs::test {
namespace {
using HostPair = std::pair<HostPort, HostPort>;  // client, server
}  // namespace

std::vector<std::string> capture_files(std::string_view folder) {
  std::vector<std::string> files;
  const std::filesystem::path data = source("test/data");
  for (const auto& entry : std::filesystem::directory_iterator(data / folder)) {
    const std::string file = entry.path().string();
    if (file.ends_with(".pcap") || file.ends_with(".pcap.gz")) files.push_back(file);
  }
  std::ranges::sort(files);
  return files;
}

std::vector<CapturedStream> captured_streams(const std::string& file) {
  auto reader = PcapReader::open(file);
  if (!reader) throw std::runtime_error(reader.error().message);
  std::map<HostPair, std::array<std::pair<TcpStream, CapturedStream>, 2>> connections;
  for (;;) {
    const auto packet = reader->next();
    if (!packet) throw std::runtime_error(packet.error().message);
    const auto& next = *packet;
    if (!next) break;
    const auto segment = parse_tcp(reader->link_type(), next->bytes);
    if (!segment) continue;
    // The servers of these captures listen on low ports.
    const bool from_client = segment->from.port > segment->to.port;
    auto& sides = connections[from_client ? HostPair(segment->from, segment->to)
                                          : HostPair(segment->to, segment->from)];
    auto& [stream, captured] = sides[from_client ? 0 : 1];
    const auto bytes = stream.add(*segment);
    captured.bytes.insert(captured.bytes.end(), bytes.begin(), bytes.end());
    sides[0].second.order.emplace_back(from_client ? Sender::client : Sender::server, bytes.size());
  }
  std::vector<CapturedStream> streams;
  for (auto& [hosts, sides] : connections) {
    for (const Sender from : {Sender::client, Sender::server}) {
      CapturedStream& stream = sides[static_cast<std::size_t>(from)].second;
      stream.from = from;
      stream.name = std::filesystem::path(file).filename().string() + " " + to_string(hosts.first) +
                    (from == Sender::client ? " ->" : " <-");
      streams.push_back(std::move(stream));
    }
  }
  return streams;
}

std::vector<TranscriptEntry> told_in_pieces(Transcript& transcript, const CapturedStream& client,
                                            const CapturedStream& server, std::size_t piece) {
  std::vector<TranscriptEntry> entries;
  std::array<std::span<const std::byte>, 2> rest = {client.bytes, server.bytes};
  for (const auto& [from, size] : client.order) {
    std::span<const std::byte>& stream = rest[static_cast<std::size_t>(from)];
    for (std::size_t left = size; left > 0;) {
      const std::size_t now = std::min(piece, left);
      transcript.feed(from, stream.first(now), entries);
      stream = stream.subspan(now);
      left -= now;
    }
  }
  transcript.finish(entries);
  return entries;
}

}  // namespace vpfs::test
