#include "dataserver/orangefs/fs_config.h"

#include <iterator>

#include <fmt/format.h>

namespace vpfs::dataserver {
namespace {

using Out = std::back_insert_iterator<std::string>;

std::int64_t whole_seconds(Duration duration) {
  return std::chrono::ceil<std::chrono::seconds>(duration).count();
}

void write_defaults(const ServerConfig& config, Out out) {
  fmt::format_to(out,
                 "<Defaults>\n"
                 "\tUnexpectedRequests 50\n"
                 "\tEventLogging none\n"
                 "\tBMIModules bmi_tcp\n"
                 "\tFlowModules flowproto_multiqueue\n"
                 "\tServerJobBMITimeoutSecs 30\n"
                 "\tServerJobFlowTimeoutSecs 30\n"
                 "\tClientJobBMITimeoutSecs {}\n"
                 "\tClientJobFlowTimeoutSecs {}\n"
                 "\tClientRetryLimit {}\n"
                 "\tClientRetryDelayMilliSecs {}\n"
                 "\tTCPBindSpecific yes\n"
                 "\t<Security>\n"
                 "\t\tTurnOffTimeouts yes\n"
                 "\t</Security>\n"
                 "</Defaults>\n\n",
                 whole_seconds(config.client_job_timeout),
                 whole_seconds(config.client_flow_timeout), config.client_retry_limit,
                 std::chrono::ceil<std::chrono::milliseconds>(config.client_retry_delay).count());
}

void write_aliases(const ServerConfig& config, Out out) {
  fmt::format_to(out, "<Aliases>\n");
  for (const ServerAddress& server : config.servers) {
    fmt::format_to(out, "\tAlias {} {}\n", server.alias, fmt::join(server.addresses, ","));
  }
  fmt::format_to(out, "</Aliases>\n\n");
}

void write_range(std::string_view alias, orangefs::HandleExtent range, Out out) {
  fmt::format_to(out, "\t\tRange {} {}-{}\n", alias, range.first, range.last);
}

void write_file_system(const ServerConfig& config, const HandleRanges& ranges, Out out) {
  const std::size_t datafiles = config.datafiles == 0 ? config.servers.size() : config.datafiles;
  fmt::format_to(out,
                 "<Filesystem>\n"
                 "\tName {}\n"
                 "\tID {}\n"
                 "\tRootHandle {}\n"
                 "\tFileStuffing no\n"
                 "\tDefaultNumDFiles {}\n"
                 "\tDistrDirServersInitial 1\n"
                 "\tDistrDirServersMax 1\n"
                 "\tDistrDirSplitSize 100\n"
                 "\tFlowBufferSizeBytes {}\n",
                 config.name, config.id, HandleRanges::kRoot, datafiles,
                 config.flow_buffer_size.count);
  fmt::format_to(out, "\t<MetaHandleRanges>\n");
  for (std::uint32_t i = 0; i < ranges.servers(); ++i) {
    write_range(config.servers[i].alias, ranges.meta(i), out);
  }
  fmt::format_to(out, "\t</MetaHandleRanges>\n\t<DataHandleRanges>\n");
  for (std::uint32_t i = 0; i < ranges.servers(); ++i) {
    write_range(config.servers[i].alias, ranges.data(i), out);
  }
  fmt::format_to(out,
                 "\t</DataHandleRanges>\n"
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
                 config.strip_size.count);
}

}  // namespace

std::string fs_config_text(const ServerConfig& config, const HandleRanges& ranges) {
  std::string text;
  const Out out(text);
  write_defaults(config, out);
  write_aliases(config, out);
  write_file_system(config, ranges, out);
  return text;
}

}  // namespace vpfs::dataserver
