#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "protocols/registry.h"
#include "tools/decode/tcp_segment.h"
#include "tools/decode/tcp_stream.h"

namespace vpfs {

// The contents of a capture. ok() tells whether every byte of every stream was decoded.
struct CaptureTotals {
  std::map<std::string, std::uint64_t> messages;  // by TranscriptEntry::kind, without faults
  std::uint64_t stream_bytes = 0;
  std::uint64_t decoded_bytes = 0;
  std::uint64_t faults = 0;
  std::uint64_t connections = 0;

  [[nodiscard]] bool ok() const { return faults == 0 && stream_bytes == decoded_bytes; }
};

// Takes the packets of one capture in their order, finds the connections and their protocols, and
// hands every message to `report` as soon as it is complete.
class CaptureDecoder {
 public:
  struct Options {
    std::set<std::uint16_t> ports;  // only connections with one of these; empty: all
    bool details = false;
  };
  struct Line {
    std::chrono::nanoseconds time{0};  // since the first packet
    std::size_t connection = 0;
    // The message that the line is about; null for a line about the connection, which is `about`.
    const TranscriptEntry* entry = nullptr;
    std::string about;
    bool fault = false;
  };
  using Report = std::function<void(const Line&)>;

  CaptureDecoder(Options options, Report report)
      : options_(std::move(options)), report_(std::move(report)) {}

  void add(LinkType link, const Packet& packet);
  // The capture ends here. REQUIRES: called once, at the end.
  [[nodiscard]] CaptureTotals finish();

 private:
  struct Chunk {
    std::size_t side = 0;
    std::chrono::nanoseconds time{0};
    std::vector<std::byte> bytes;
  };
  // Side 0 sent the first packet.
  struct CapturedConnection {
    std::size_t number = 0;
    std::array<HostPort, 2> hosts;
    std::array<TcpStream, 2> streams;
    std::size_t client = 0;
    bool began = false;  // the capture has its SYN, so `client` is certain
    bool unknown = false;
    std::unique_ptr<Transcript> transcript;
    std::array<std::vector<std::byte>, 2> first_bytes;
    std::vector<Chunk> waiting;  // until the protocol is known

    [[nodiscard]] Sender sender(std::size_t side) const {
      return side == client ? Sender::client : Sender::server;
    }
  };

  CapturedConnection& connection_of(const TcpSegment& segment);
  void deliver(CapturedConnection& connection, Chunk chunk);
  void recognise(CapturedConnection& connection, std::size_t side);
  void begin(CapturedConnection& connection, const Protocol& protocol);
  void tell(const CapturedConnection& connection, const std::vector<TranscriptEntry>& entries,
            std::chrono::nanoseconds time);
  void tell(const CapturedConnection& connection, std::string about, bool fault);
  void finish(CapturedConnection& connection);

  Options options_;
  Report report_;
  std::vector<std::unique_ptr<CapturedConnection>> connections_;
  std::map<std::pair<HostPort, HostPort>, CapturedConnection*> by_hosts_;  // lower address first
  bool any_ = false;
  std::chrono::nanoseconds begin_{0};
  std::chrono::nanoseconds now_{0};
  CaptureTotals totals_;
};

}  // namespace vpfs
