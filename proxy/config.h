#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config_reader.h"
#include "base/units.h"
#include "stage/config.h"

namespace vpfs::proxy {

struct Limits {
  std::size_t connections = 10'000;
  // Per connection. Beyond it reading stops, or if an I/O of it is at the data server goes on up to
  // four times of it.
  std::size_t held_requests = 4096;
  Bytes held_bytes = {kMiB};  // the same of the messages
};

struct Timeouts {
  Duration connect = std::chrono::seconds(5);
  std::optional<Duration> hold;  // nothing: automatic
  // However short a time-out clients are told, requests are held for so long.
  Duration hold_min = std::chrono::seconds(60);
  Duration drain = std::chrono::seconds(20);
  // An outstanding I/O without progress for so long is given up (its slot, not its connection).
  Duration service = std::chrono::seconds(60);
  // What clients may keep the data server waiting, each minute, by taking or sending file data more
  // slowly than the rate; then they give their slots back (see StallBudgets).
  Duration client_stall = std::chrono::seconds(2);
  BytesPerSecond client_min_rate = {kMiB};
};

inline constexpr std::string_view kOriginal = "original";

// A stage whose I/O is a relayed wire protocol.
struct Config : stage::Config {
  std::string listen;
  std::string upstream;  // kOriginal: where each client meant to go
  std::string protocol = "orangefs";
  // Addresses or CIDR blocks of the file system's other servers, whose I/O passes unscheduled.
  std::vector<std::string> servers;
  std::uint64_t workers = 1;
  std::string status_file;
  Duration status_interval = std::chrono::seconds(5);
  std::string log_level = "info";
  std::string upstream_congestion = "cubic";
  Limits limits;
  Timeouts timeouts;
  // Whether what a node's kernel writes back belongs to the only user of its file.
  bool write_back_by_file = true;
};

// Reads conf/proxy.yaml's schema. Whatever is wrong goes into `errors`; the result is only good
// when that is empty. Does no I/O: what the host lacks is for check_host(), and rules that never
// apply are for warn_of_hidden_rules().
// With `running`, the configuration of a proxy that runs, what cannot change meanwhile is reported.
[[nodiscard]] Config parse_config(std::string_view text, ConfigErrors& errors,
                                  const Config* running = nullptr);

}  // namespace vpfs::proxy
