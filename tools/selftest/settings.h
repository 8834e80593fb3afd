#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "client/beegfs/storage_address.h"
#include "client/orangefs/calls/mount_address.h"

namespace vpfs::selftest {

// What a command line says.
struct Options {
  std::string on;      // the file system through the proxy, as vpfs-load has it
  std::string direct;  // the same past the proxy
  std::string directory;
  double minutes = 3;
  std::string size = "1MiB";
  std::string share;
  std::vector<std::string> servers;
  bool busy = false;
  bool clean = false;
  std::string report;  // files
  std::string plot;
};

using FileSystem = std::variant<client::MountAddress, client::StorageAddress>;

// The same, checked.
struct Settings {
  std::string on;
  FileSystem through_proxy;
  std::string direct;  // "": there is no way past the proxy
  FileSystem past_proxy;
  std::string directory;
  Duration time = {};
  Bytes size = {};
  std::optional<BytesPerSecond> share;  // at most so much of the proxy's server
  std::vector<std::string> servers;     // by alias; none: the file system chooses
  bool busy = false;

  [[nodiscard]] bool is_beegfs() const {
    return std::holds_alternative<client::StorageAddress>(through_proxy);
  }
};

inline constexpr double kLeastMinutes = 0.02;
inline constexpr double kMostMinutes = 10;

// The error names the option.
[[nodiscard]] Result<Settings> check(const Options& options);

}  // namespace vpfs::selftest
