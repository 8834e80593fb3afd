#include "tools/decode/pcap_reader.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include <pcap/pcap.h>
#include <sys/types.h>
#include <zlib.h>

#include "base/result.h"

namespace vpfs {
namespace {

// Maps libpcap's DLT numbers.
std::optional<LinkType> link_type_of(int number) {
  switch (number) {
    case DLT_EN10MB:
      return LinkType::ethernet;
    case DLT_RAW:
    case DLT_IPV4:
    case DLT_IPV6:
      return LinkType::raw_ip;
    case DLT_NULL:
    case DLT_LOOP:
      return LinkType::loopback;
    case DLT_LINUX_SLL:
      return LinkType::linux_sll;
    case DLT_LINUX_SLL2:
      return LinkType::linux_sll2;
    default:
      return std::nullopt;
  }
}

std::string name_of(int link_type) {
  const char* const name = pcap_datalink_val_to_name(link_type);
  return std::to_string(link_type) + (name == nullptr ? "" : std::string(" (") + name + ")");
}

}  // namespace

// The file behind libpcap's stream. zlib passes uncompressed files through.
struct PcapReader::File {
  gzFile gzip = nullptr;
  bool any = false;     // the file is not empty
  std::string problem;  // why reading failed

  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (gzip != nullptr) gzclose(gzip);
  }

  [[nodiscard]] ssize_t read(char* into, std::size_t size) {
    const int got = gzread(gzip, into, static_cast<unsigned>(size));
    int code = Z_OK;
    const char* const message = gzerror(gzip, &code);
    if (got < 0 || code != Z_OK) {
      problem = code == Z_ERRNO ? std::generic_category().message(errno) : message;
      errno = EIO;
      return -1;
    }
    any = any || got > 0;
    return got;
  }
};

void PcapReader::CloseCapture::operator()(void* capture) const {
  pcap_close(static_cast<pcap_t*>(capture));
}

PcapReader::PcapReader(std::string path)
    : path_(std::move(path)), file_(std::make_unique<File>()) {}
PcapReader::PcapReader(PcapReader&&) noexcept = default;
PcapReader& PcapReader::operator=(PcapReader&&) noexcept = default;
PcapReader::~PcapReader() = default;

Result<PcapReader> PcapReader::open(const std::string& path) {
  PcapReader reader(path);
  errno = 0;
  reader.file_->gzip = gzopen(path.c_str(), "rb");
  if (reader.file_->gzip == nullptr) {
    const std::error_code code(errno != 0 ? errno : ENOMEM, std::generic_category());
    return fail(path + ": cannot open: " + code.message(), code);
  }
  VPFS_TRY(reader.start());
  return reader;
}

// Reads the header of the file.
Result<void> PcapReader::start() {
  const cookie_io_functions_t functions = {
      .read = [](void* file, char* into,
                 std::size_t size) { return static_cast<File*>(file)->read(into, size); },
      .write = nullptr,
      .seek = nullptr,
      .close = nullptr};
  std::FILE* const stream = fopencookie(file_.get(), "rb", functions);
  if (stream == nullptr) return fail(path_ + ": out of memory");
  std::array<char, PCAP_ERRBUF_SIZE> problem = {};
  pcap_t* const capture =
      pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, problem.data());
  if (capture == nullptr) {
    std::fclose(stream);
    if (!file_->problem.empty()) return fail(path_ + ": " + file_->problem);
    if (!file_->any) return fail(path_ + ": the file is empty");
    return fail(path_ + ": not a capture: " + problem.data());
  }
  capture_.reset(capture);
  const int number = pcap_datalink(capture);
  const std::optional<LinkType> link_type = link_type_of(number);
  if (!link_type) return fail(path_ + ": unknown link type " + name_of(number));
  link_type_ = *link_type;
  return {};
}

Result<std::optional<Packet>> PcapReader::next() {
  auto* const capture = static_cast<pcap_t*>(capture_.get());
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  const int outcome = pcap_next_ex(capture, &header, &bytes);
  if (outcome == PCAP_ERROR_BREAK) return std::nullopt;
  ++packets_;
  if (outcome != 1) {
    const std::string problem = file_->problem.empty() ? pcap_geterr(capture) : file_->problem;
    return fail(path_ + ": packet " + std::to_string(packets_) + ": " + problem);
  }
  // With nanoseconds asked for, tv_usec has them.
  return Packet{.time = std::chrono::seconds(header->ts.tv_sec) +
                        std::chrono::nanoseconds(header->ts.tv_usec),
                .bytes = std::as_bytes(std::span(bytes, header->caplen)),
                .cut = header->caplen < header->len};
}

}  // namespace vpfs
