#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/byte_reader.h"
#include "protocols/orangefs/message.h"
#include "protocols/orangefs/striping.h"
#include "protocols/orangefs/transcript.h"
#include "test/fuzz/require.h"
#include "test/protocols/orangefs/payload_properties.h"

// Any bytes, as a payload and as the streams of a connection. Run by libFuzzer (preset `fuzz`), and
// over the seed corpus by run_corpus.cc in every build.
namespace {

using namespace vpfs;
using test::require;

void tell_as_streams(std::span<const std::byte> bytes) {
  orangefs::OrangefsTranscript transcript(true);
  std::vector<TranscriptEntry> entries;
  transcript.feed(Sender::client, bytes, entries);
  transcript.feed(Sender::server, bytes.subspan(bytes.size() / 2), entries);
  transcript.finish(entries);
  std::uint64_t told = 0;
  for (const TranscriptEntry& entry : entries) told += entry.bytes;
  require(told <= 2 * bytes.size(), "more bytes told than fed");
}

// The payload as a request that the other side answers with the same payload.
void tell_as_exchange(std::span<const std::byte> payload) {
  orangefs::OrangefsTranscript transcript(true);
  std::vector<TranscriptEntry> entries;
  for (const auto& [from, mode] : {std::pair(Sender::client, orangefs::BmiMode::unexpected),
                                   std::pair(Sender::server, orangefs::BmiMode::eager),
                                   std::pair(Sender::client, orangefs::BmiMode::eager)}) {
    const orangefs::BmiHeader header{.mode = mode, .tag = 1, .payload_size = payload.size()};
    transcript.feed(from, orangefs::encode(header), entries);
    transcript.feed(from, payload, entries);
  }
  require(entries.size() == 3, "a message was lost");
}

orangefs::Distribution any_distribution(ByteReader& in) {
  switch (in.u8() % 3) {
    case 0:
      return orangefs::SimpleStripe{.strip_size = in.i32()};
    case 1:
      return orangefs::BasicDistribution{};
    default:
      return orangefs::TwoDStripe{
          .groups = in.u8() % 8U, .strip_size = in.i32(), .factor = in.u8() % 8U};
  }
}

// The size of a sparse IO, counted run by run.
std::int64_t bytes_of_runs(const orangefs::SparseIo& io) {
  const orangefs::Datatype::Range range = io.range();
  std::int64_t bytes = 0;
  for (std::int64_t at = range.offset; at < range.offset + range.size;) {
    const orangefs::Datatype::Run run = io.datatype().run_at(at);
    const std::int64_t size = std::min(run.size, range.offset + range.size - at);
    require(size > 0, "a run without bytes");
    bytes += io.layout().below(run.logical + size) - io.layout().below(run.logical);
    at += size;
  }
  return bytes;
}

// The bytes as a datatype, and what is asked of it.
void count_as_datatype(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const orangefs::Distribution distribution = any_distribution(in);
  const orangefs::Placement placement{.server_nr = in.u8() % 8U, .server_ct = in.u8() % 8U};
  const orangefs::IoFields io{.distribution = distribution,
                              .strips = {},
                              .placement = placement,
                              .offset = in.i32(),
                              .size = in.i32()};
  const orangefs::WireElements elements(in.bytes(in.remaining()));
  const orangefs::IoPart part = orangefs::part_of(io, elements);
  require(part.requested.bytes >= 0 && part.requested.bytes <= std::max<std::int64_t>(io.size, 0),
          "more bytes than are asked for");
  const auto sparse = orangefs::SparseIo::of(io, elements);
  require((sparse != nullptr) == (part.kind == orangefs::IoPart::Kind::sparse), "sparse or not");
  if (!sparse || io.size == 0) return;
  std::int64_t before = 0;
  for (std::int64_t end = 1; end < std::int64_t{1} << 40; end *= 3) {
    const orangefs::TransferSize size = sparse->readable(end);
    require(size.bytes >= before && size.bytes <= part.requested.bytes, "a longer file gives less");
    if (size.exact) before = size.bytes;
  }
  if (io.size > 20'000) return;
  require(bytes_of_runs(*sparse) == part.requested.bytes, "counted is not what the runs have");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto problem = orangefs::test::broken_property(bytes);
  require(!problem, problem.value_or(""));
  tell_as_streams(bytes);
  if (!bytes.empty()) tell_as_exchange(bytes);
  count_as_datatype(bytes);
  // Where the elements are in the commonest IO.
  constexpr std::size_t kElements = 168;
  if (bytes.size() > kElements) count_as_datatype(bytes.subspan(kElements - 12));
  return 0;
}
