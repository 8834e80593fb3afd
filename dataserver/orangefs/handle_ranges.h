#pragma once

#include <cstdint>
#include <optional>

#include "protocols/orangefs/basic_types.h"

namespace vpfs::dataserver {

// Which server owns which handles, and how handles are named.
//
// The lower half of the handles names metadata objects, the upper half datafiles; each half is cut
// into one range per server, as GETCONFIG announces them. A server numbers the objects that it
// creates with a serial number. Serial s of server m gives the metadata handle meta(m).first + s,
// and for a file also one datafile handle in the range of each data server d: that range is cut
// once more, into a part per metadata server, and the handle is part(m) + s. So a metadata server
// names the datafiles of others without asking them (docs/decisions/0020-datafile-handles.md).
class HandleRanges {
 public:
  // 1 to kMostServers.
  explicit HandleRanges(std::uint32_t servers);

  static constexpr orangefs::Handle kRoot = 1048576;

  [[nodiscard]] std::uint32_t servers() const { return servers_; }
  [[nodiscard]] orangefs::HandleExtent meta(std::uint32_t server) const;
  [[nodiscard]] orangefs::HandleExtent data(std::uint32_t server) const;
  // The server of a metadata or datafile handle; empty for handles outside all ranges.
  [[nodiscard]] std::optional<std::uint32_t> server_of(orangefs::Handle handle) const;
  [[nodiscard]] static bool is_datafile(orangefs::Handle handle) { return handle >= kFirstData; }

  [[nodiscard]] orangefs::Handle meta_handle(std::uint32_t server, std::uint64_t serial) const;
  [[nodiscard]] orangefs::Handle datafile_handle(std::uint32_t meta_server,
                                                 std::uint32_t data_server,
                                                 std::uint64_t serial) const;
  // Serial numbers are below this.
  [[nodiscard]] std::uint64_t serial_limit() const { return part_width_; }
  // The first serial number of a server that starts at this time of day (milliseconds since the
  // epoch), unless it knows of higher ones. So a server that lost its metadata never reuses a
  // handle.
  [[nodiscard]] std::uint64_t first_serial(std::int64_t epoch_milliseconds) const;

 private:
  static constexpr orangefs::Handle kFirstMeta = 3;
  static constexpr orangefs::Handle kFirstData = orangefs::Handle{1} << 62;
  static constexpr orangefs::Handle kEndData = (orangefs::Handle{1} << 63) - 1;

  std::uint32_t servers_;
  std::uint64_t meta_width_;
  std::uint64_t data_width_;
  std::uint64_t part_width_;
};

}  // namespace vpfs::dataserver
