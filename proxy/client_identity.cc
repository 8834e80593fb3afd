#include "proxy/client_identity.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "net/endpoint.h"
#include "stage/rules/template_name.h"

namespace vpfs::proxy {

void ClientIdentity::count_refusals(const Belonging& who) {
  if (who.name_refused && shared_.counters.names_refused++ == 0) {
    spdlog::warn(
        "client {}: its requests give no valid name for a virtual PFS (1 to {} bytes of printable "
        "text) and count as default",
        net::to_string(endpoint_), stage::kLongestName);
  }
  if (who.job_not_registered && shared_.counters.jobs_not_registered++ == 0) {
    spdlog::warn("client {}: its job id is not registered for it, so rules ignore the id",
                 net::to_string(endpoint_));
  }
}

// Data that a node's kernel writes back or reads ahead have uid 0, whichever user they are for.
std::optional<std::uint32_t> ClientIdentity::user_of(const IoDescription& io,
                                                     const WorkerSettings& settings,
                                                     TimePoint now) {
  if (io.open_file.empty() || !io.uid || !settings.config.write_back_by_file ||
      !settings.classifier.looks_at_uid()) {
    return io.uid;
  }
  const std::uint64_t file = OpenFileUsers::key(address_, io.node.value_or(0), io.open_file);
  if (*io.uid != 0) {
    // The table forgets what is not told again. It has locks.
    constexpr Duration kUntilToldAgain = std::chrono::seconds(1);
    const bool is_news = file != seen_file_ || *io.uid != seen_uid_;
    if (is_news || now - told_at_ >= kUntilToldAgain) {
      told_at_ = now;
      shared_.open_files.saw(file, *io.uid);
    }
    seen_file_ = file;
    seen_uid_ = *io.uid;
    return io.uid;
  }
  const std::optional<std::uint32_t> user = shared_.open_files.only_user(file);
  Counters& counters = shared_.counters;
  if (io.kind == IoKind::write) {
    ++(user ? counters.write_back_by_file : counters.write_back_unknown);
  } else {
    ++(user ? counters.read_by_file : counters.read_unknown);
  }
  return user ? user : io.uid;
}

void ClientIdentity::join(std::optional<std::uint32_t> node,
                          std::optional<std::uint16_t> server_port) {
  if (id_ != stage::kNoClient || !node) return;
  const bool is_known = *node != kUnknownNode;
  if (!is_known) ++shared_.counters.connections_unknown_node;
  std::string name = endpoint_.address().to_string();
  name += is_known ? fmt::format(" node {}", *node) : " unknown node";
  if (server_port) name += fmt::format(" to port {}", *server_port);
  id_ = dispatcher_.join_client(name);
}

void ClientIdentity::leave() {
  const stage::ClientId id = std::exchange(id_, stage::kNoClient);
  if (id != stage::kNoClient) dispatcher_.leave_client(id);
}

}  // namespace vpfs::proxy
