#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "protocols/pvfs2/message.h"
#include "protocols/pvfs2/transcript.h"
#include "test/protocols/pvfs2/payload_properties.h"

// Any bytes, as a payload and as the streams of a connection. Run by libFuzzer (preset `fuzz`), and
// over the seed corpus by run_corpus.cc in every build.
namespace {

using namespace vpfs;

void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "pvfs2_fuzz: %s\n", what.c_str());
  std::abort();
}

void tell_as_streams(std::span<const std::byte> bytes) {
  pvfs2::Pvfs2Transcript transcript(true);
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
  pvfs2::Pvfs2Transcript transcript(true);
  std::vector<TranscriptEntry> entries;
  for (const auto& [from, mode] : {std::pair(Sender::client, pvfs2::BmiMode::unexpected),
                                   std::pair(Sender::server, pvfs2::BmiMode::eager),
                                   std::pair(Sender::client, pvfs2::BmiMode::eager)}) {
    const pvfs2::BmiHeader header{.mode = mode, .tag = 1, .payload_size = payload.size()};
    transcript.feed(from, pvfs2::encode(header), entries);
    transcript.feed(from, payload, entries);
  }
  require(entries.size() == 3, "a message was lost");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto problem = pvfs2::test::broken_property(bytes);
  require(!problem, problem.value_or(""));
  tell_as_streams(bytes);
  if (!bytes.empty()) tell_as_exchange(bytes);
  return 0;
}
