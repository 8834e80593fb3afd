#include "tools/decode/pcap_reader.h"

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <zlib.h>

namespace vpfs {
namespace {

constexpr std::size_t kFileHeaderSize = 24;
constexpr std::size_t kPacketHeaderSize = 16;
constexpr std::uint32_t kMicrosecondMagic = 0xa1b2c3d4;
constexpr std::uint32_t kNanosecondMagic = 0xa1b23c4d;
constexpr std::uint32_t kPcapngMagic = 0x0a0d0d0a;
// More than any capture tool writes in one packet.
constexpr std::uint32_t kMaxPacketSize = 1U << 20;

bool is_known(LinkType type) {
  return type == LinkType::ethernet || type == LinkType::raw_ip || type == LinkType::linux_sll ||
         type == LinkType::linux_sll2;
}

}  // namespace

void PcapReader::CloseFile::operator()(void* file) const {
  gzclose(static_cast<gzFile>(file));
}

std::uint32_t PcapReader::u32(std::span<const std::byte> bytes) const {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t at = big_endian_ ? i : 3 - i;
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[at]);
  }
  return value;
}

Result<PcapReader> PcapReader::open(const std::string& path) {
  PcapReader reader(path);
  errno = 0;
  reader.file_.reset(gzopen(path.c_str(), "rb"));
  if (reader.file_ == nullptr) {
    const std::error_code code(errno != 0 ? errno : ENOMEM, std::generic_category());
    return fail(path + ": cannot open: " + code.message(), code);
  }
  if (const Result<void> header = reader.read_file_header(); !header) {
    return std::unexpected(header.error());
  }
  return reader;
}

Result<void> PcapReader::read_file_header() {
  std::array<std::byte, kFileHeaderSize> header{};
  const Result<std::size_t> size = read(header);
  if (!size) return std::unexpected(size.error());
  if (*size == 0) return fail(path_ + ": the file is empty");
  const std::span<const std::byte> bytes(header);
  for (const bool big_endian : {false, true}) {
    big_endian_ = big_endian;
    const std::uint32_t magic = u32(bytes);
    if (magic == kPcapngMagic) return fail(path_ + ": pcapng; convert it: editcap -F pcap IN OUT");
    nanoseconds_ = magic == kNanosecondMagic;
    if (magic != kMicrosecondMagic && !nanoseconds_) continue;
    if (*size < header.size()) return fail(path_ + ": ends in the file header");
    link_type_ = static_cast<LinkType>(u32(bytes.subspan(20)) & 0xffffU);
    if (is_known(link_type_)) return {};
    return fail(path_ + ": unknown link type " + std::to_string(std::to_underlying(link_type_)));
  }
  return fail(path_ + ": not a pcap file");
}

Result<std::size_t> PcapReader::read(std::span<std::byte> into) {
  const int size =
      gzread(static_cast<gzFile>(file_.get()), into.data(), static_cast<unsigned>(into.size()));
  int code = Z_OK;
  const char* message = gzerror(static_cast<gzFile>(file_.get()), &code);
  if (code == Z_OK && size >= 0) return static_cast<std::size_t>(size);
  if (code == Z_ERRNO) message = "read error";
  return fail(path_ + ": after packet " + std::to_string(packets_) + ": " + message);
}

Result<std::optional<Packet>> PcapReader::next() {
  std::array<std::byte, kPacketHeaderSize> header{};
  const Result<std::size_t> header_size = read(header);
  if (!header_size) return std::unexpected(header_size.error());
  if (*header_size == 0) return std::nullopt;
  const std::string place = path_ + ": packet " + std::to_string(packets_ + 1);
  if (*header_size < header.size()) return fail(place + ": the file ends in its header");
  const std::span<const std::byte> bytes(header);
  const std::uint32_t held = u32(bytes.subspan(8));
  const std::uint32_t original = u32(bytes.subspan(12));
  if (held > kMaxPacketSize) return fail(place + ": impossible size " + std::to_string(held));
  packet_.resize(held);
  const Result<std::size_t> size = read(packet_);
  if (!size) return std::unexpected(size.error());
  if (*size < held) return fail(place + ": the file ends in the packet");
  ++packets_;
  const std::chrono::nanoseconds fraction = nanoseconds_
                                                ? std::chrono::nanoseconds(u32(bytes.subspan(4)))
                                                : std::chrono::microseconds(u32(bytes.subspan(4)));
  return Packet{.time = std::chrono::seconds(u32(bytes)) + fraction,
                .bytes = packet_,
                .cut = held < original};
}

}  // namespace vpfs
