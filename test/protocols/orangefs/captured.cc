#include "test/protocols/orangefs/captured.h"

#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "protocols/orangefs/bmi_header.h"
#include "protocols/orangefs/io_summary.h"

namespace vpfs::orangefs::test {
namespace {

// Calls use(payload, header, from) for each message of one connection.
template <typename Use>
void each_message(const CapturedStream& stream, Use use) {
  std::span<const std::byte> rest = stream.bytes;
  while (!rest.empty()) {
    const auto header = decode_bmi_header(rest);
    if (!header) throw std::runtime_error(stream.name + ": " + describe(header.error()));
    const auto size = static_cast<std::size_t>(header->payload_size);
    use(*header, rest.subspan(kBmiHeaderSize, size));
    rest = rest.subspan(kBmiHeaderSize + size);
  }
}

// The tags whose server messages, after the first, are data.
std::set<Tag> read_tags(const CapturedStream& client) {
  std::set<Tag> tags;
  each_message(client, [&](const BmiHeader& header, std::span<const std::byte> payload) {
    if (header.mode != BmiMode::unexpected || peek_operation(payload) != Op::io) return;
    const auto io = summarise_io(payload);
    if (io && io->io_type == IoType::read) tags.insert(header.tag);
  });
  return tags;
}

class PayloadCollector {
 public:
  void add(const CapturedStream& client, const CapturedStream& server) {
    const std::set<Tag> reads = read_tags(client);
    std::set<Tag> answered;
    each_message(client, [&](const BmiHeader& header, std::span<const std::byte> payload) {
      if (header.mode == BmiMode::unexpected) keep(client.name, true, payload);
    });
    each_message(server, [&](const BmiHeader& header, std::span<const std::byte> payload) {
      const bool is_first = answered.insert(header.tag).second;
      if (is_first || !reads.contains(header.tag)) keep(server.name, false, payload);
    });
  }
  std::vector<CapturedPayload> take() { return std::move(payloads_); }

 private:
  void keep(const std::string& name, bool is_request, std::span<const std::byte> payload) {
    const Op op = peek_operation(payload).value_or(Op::invalid);
    if (!seen_.insert({is_request, op, payload.size()}).second) return;
    payloads_.push_back({.name = name + " " + std::string(orangefs::name(op)),
                         .is_request = is_request,
                         .bytes = {payload.begin(), payload.end()}});
  }

  std::set<std::tuple<bool, Op, std::size_t>> seen_;
  std::vector<CapturedPayload> payloads_;
};

}  // namespace

std::vector<std::string> capture_files() {
  return vpfs::test::capture_files("orangefs");
}

const std::vector<CapturedPayload>& captured_payloads() {
  static const std::vector<CapturedPayload> kPayloads = [] {
    PayloadCollector collector;
    for (const std::string& file : capture_files()) {
      const std::vector<CapturedStream> streams = captured_streams(file);
      for (std::size_t i = 0; i + 1 < streams.size(); i += 2) {
        collector.add(streams[i], streams[i + 1]);
      }
    }
    return collector.take();
  }();
  return kPayloads;
}

}  // namespace vpfs::orangefs::test
