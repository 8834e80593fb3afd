#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "test/fuzz/require.h"
#include "tools/decode/capture_decoder.h"
#include "tools/decode/pcap_reader.h"

// A capture file, as vpfs-decode reads it: the file, the packets, the streams, their messages.
namespace {

// A file without a place in the file system.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : descriptor_(memfd_create("capture", 0)) {
    vpfs::test::require(descriptor_ >= 0, "no memory file");
    const ssize_t written = size == 0 ? 0 : ::write(descriptor_, data, size);
    vpfs::test::require(written == static_cast<ssize_t>(size), "a short write");
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(descriptor_); }

  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vpfs;
  const MemoryFile file(data, size);
  const auto check_message = [&](const Error& error) {
    test::require(error.message.starts_with(file.path() + ": "), "an error without the file");
  };
  auto reader = PcapReader::open(file.path());
  if (!reader) {
    check_message(reader.error());
    return 0;
  }
  std::uint64_t told = 0;
  CaptureDecoder decoder({.ports = {}, .details = true}, [&](const CaptureDecoder::Line& line) {
    if (line.entry != nullptr) told += line.entry->bytes;
  });
  std::uint64_t captured = 0;
  for (;;) {
    const auto packet = reader->next();
    if (!packet) {
      check_message(packet.error());
      break;
    }
    if (!packet->has_value()) break;
    captured += (*packet)->bytes.size();
    decoder.add(reader->link_type(), **packet);
  }
  const CaptureTotals totals = decoder.finish();
  test::require(totals.decoded_bytes == told, "the totals are not what was told");
  test::require(totals.decoded_bytes <= captured, "more bytes decoded than captured");
  return 0;
}
