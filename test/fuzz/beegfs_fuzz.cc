#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "protocols/beegfs/transcript.h"
#include "test/fuzz/require.h"
#include "test/protocols/beegfs/message_properties.h"

// Any bytes, as a message and as the streams of a connection. Run by libFuzzer (preset `fuzz`), and
// over the seed corpus by run_corpus.cc in every build.
namespace {

using namespace vpfs;
using test::require;

using Bytes = std::span<const std::byte>;

// What a connection tells whose sides send this, in pieces of at most that size.
std::vector<std::string> tell(Bytes client, Bytes server, std::size_t piece) {
  beegfs::BeegfsTranscript transcript(true);
  std::vector<TranscriptEntry> entries;
  for (const auto& [from, stream] : {std::pair(Sender::client, client), {Sender::server, server}}) {
    for (Bytes rest = stream; !rest.empty(); rest = rest.subspan(std::min(piece, rest.size()))) {
      transcript.feed(from, rest.first(std::min(piece, rest.size())), entries);
    }
  }
  transcript.finish(entries);
  std::uint64_t told = 0;
  std::vector<std::string> lines;
  for (const TranscriptEntry& entry : entries) {
    told += entry.bytes;
    lines.push_back(entry.line + "\n" + entry.details);
  }
  require(told <= client.size() + server.size(), "more bytes told than fed");
  return lines;
}

void tell_in_pieces(Bytes client, Bytes server) {
  const auto whole = tell(client, server, client.size() + server.size());
  require(tell(client, server, 1) == whole, "pieces tell another story");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  const auto problem = beegfs::test::broken_property(bytes);
  require(!problem, problem.value_or(""));
  (void)beegfs::recognise(bytes);
  static const std::vector<std::byte> read_request =
      beegfs::encode_message({.body = beegfs::ReadLocalFile{.count = 10}});
  tell_in_pieces(bytes, bytes);
  tell_in_pieces(bytes.first(size / 2), bytes.subspan(size / 2));
  tell_in_pieces(read_request, bytes);
  return 0;
}
