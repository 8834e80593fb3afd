#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/joined.h"
#include "protocols/orangefs/fs_config.h"

namespace vpfs::orangefs {
namespace {

using Out = std::back_insert_iterator<std::string>;

template <typename Unit>
void write_duration(std::string_view key, const std::optional<Duration>& value, Out out) {
  if (value) fmt::format_to(out, "\t{} {}\n", key, std::chrono::ceil<Unit>(*value).count());
}

void write_defaults(const FsConfig& config, Out out) {
  fmt::format_to(out,
                 "<Defaults>\n"
                 "\tUnexpectedRequests 50\n"
                 "\tEventLogging none\n"
                 "\tBMIModules bmi_tcp\n"
                 "\tFlowModules flowproto_multiqueue\n"
                 "\tServerJobBMITimeoutSecs 30\n"
                 "\tServerJobFlowTimeoutSecs 30\n");
  write_duration<std::chrono::seconds>("ClientJobBMITimeoutSecs", config.client_job_timeout, out);
  write_duration<std::chrono::seconds>("ClientJobFlowTimeoutSecs", config.client_flow_timeout, out);
  if (config.client_retry_limit) {
    fmt::format_to(out, "\tClientRetryLimit {}\n", *config.client_retry_limit);
  }
  write_duration<std::chrono::milliseconds>("ClientRetryDelayMilliSecs", config.client_retry_delay,
                                            out);
  fmt::format_to(out,
                 "\tTCPBindSpecific yes\n"
                 "\t<Security>\n"
                 "\t\tTurnOffTimeouts yes\n"
                 "\t</Security>\n"
                 "</Defaults>\n\n");
}

void write_aliases(const FsConfig& config, Out out) {
  fmt::format_to(out, "<Aliases>\n");
  for (const FsConfig::Alias& alias : config.aliases) {
    const std::string addresses = joined(alias.addresses, ",");
    fmt::format_to(out, "\tAlias {} {}\n", alias.name, alias.text.empty() ? addresses : alias.text);
  }
  fmt::format_to(out, "</Aliases>\n\n");
}

void write_ranges(std::string_view section, const std::vector<FsConfig::Range>& ranges, Out out) {
  fmt::format_to(out, "\t<{}>\n", section);
  for (const FsConfig::Range& range : ranges) {
    std::string_view before = " ";
    fmt::format_to(out, "\t\tRange {}", range.alias);
    for (const HandleExtent& extent : range.extents) {
      fmt::format_to(out, "{}{}-{}", std::exchange(before, ","), extent.first, extent.last);
    }
    fmt::format_to(out, "\n");
  }
  fmt::format_to(out, "\t</{}>\n", section);
}

void write_file_system(const FsConfig::FileSystem& file_system, Out out) {
  fmt::format_to(out, "<Filesystem>\n\tName {}\n", file_system.name);
  if (file_system.id) fmt::format_to(out, "\tID {}\n", *file_system.id);
  fmt::format_to(out,
                 "\tRootHandle {}\n"
                 "\tFileStuffing no\n"
                 "\tDefaultNumDFiles {}\n"
                 "\tDistrDirServersInitial 1\n"
                 "\tDistrDirServersMax 1\n"
                 "\tDistrDirSplitSize 100\n"
                 "\tFlowBufferSizeBytes {}\n",
                 file_system.root, file_system.default_datafiles, file_system.flow_buffer_size);
  write_ranges("MetaHandleRanges", file_system.meta, out);
  write_ranges("DataHandleRanges", file_system.data, out);
  fmt::format_to(out,
                 "\t<Distribution>\n"
                 "\t\tName simple_stripe\n"
                 "\t\tParam strip_size\n"
                 "\t\tValue {}\n"
                 "\t</Distribution>\n"
                 "\t<StorageHints>\n"
                 "\t\tTroveSyncMeta yes\n"
                 "\t\tTroveSyncData no\n"
                 "\t\tTroveMethod alt-aio\n"
                 "\t</StorageHints>\n"
                 "</Filesystem>\n",
                 file_system.strip_size);
}

}  // namespace

std::string write_fs_config(const FsConfig& config) {
  std::string text;
  const Out out(text);
  write_defaults(config, out);
  write_aliases(config, out);
  for (const FsConfig::FileSystem& file_system : config.file_systems) {
    write_file_system(file_system, out);
  }
  return text;
}

}  // namespace vpfs::orangefs
