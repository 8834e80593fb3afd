#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "protocols/orangefs/basic_types.h"
#include "protocols/orangefs/types.h"

namespace vpfs::orangefs {

// What vpfs knows of fs.conf, the configuration of OrangeFS servers that GETCONFIG returns.
struct FsConfig {
  struct Alias {
    std::string name;
    std::vector<std::string> addresses;  // "tcp://host:port", one for each zone
    // All of them as servers know the alias: the words after its name, with commas between them.
    // The servers in a request's layout are named by this text.
    std::string text = {};
    bool operator==(const Alias&) const = default;
  };
  // Handles of one server.
  struct Range {
    std::string alias;
    std::vector<HandleExtent> extents;
    bool operator==(const Range&) const = default;
  };
  struct FileSystem {
    std::string name;
    std::optional<FsId> id;
    Handle root = 0;
    std::uint32_t default_datafiles = 0;  // 0: all servers with data
    std::uint64_t flow_buffer_size = kDefaultFlowBufferSize;
    std::int64_t strip_size = 65536;
    std::vector<Range> meta;
    std::vector<Range> data;
    bool operator==(const FileSystem&) const = default;
  };

  // From <Defaults>; without a value where the text gives none.
  std::optional<Duration> client_job_timeout;
  std::optional<Duration> client_flow_timeout;
  std::optional<std::uint32_t> client_retry_limit;
  std::optional<Duration> client_retry_delay;
  // In file order.
  std::vector<Alias> aliases;
  std::vector<FileSystem> file_systems;

  bool operator==(const FsConfig&) const = default;
};

inline constexpr std::size_t kMostFsConfigSize = std::size_t{1} << 20;

struct FsConfigReading {
  FsConfig config;
  // The first one, "line 9: ...".
  std::optional<Error> problem;
};

// Ignores unknown sections and options. The reader skips a line with a problem and goes on; it
// reads nothing of a text above kMostFsConfigSize.
[[nodiscard]] FsConfigReading read_fs_config(std::string_view text);

// A whole fs.conf for clients, without the values that are not set. Servers with the same
// configuration make the same text, which clients compare.
[[nodiscard]] std::string write_fs_config(const FsConfig& config);

}  // namespace vpfs::orangefs
