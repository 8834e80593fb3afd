#include "tools/selftest/settings.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace vpfs::selftest {
namespace {

constexpr Bytes kLeastSize = {64 * kKiB};
constexpr Bytes kLargestSize = {16 * kMiB};
constexpr BytesPerSecond kLeastShare = {kMiB};

Result<FileSystem> file_system(const std::string& option, const std::string& text) {
  const auto named = [&](auto address) -> Result<FileSystem> {
    if (!address) return fail(fmt::format("{}: {}", option, address.error().message));
    return FileSystem(std::move(*address));
  };
  if (text.starts_with(client::kStorageScheme)) return named(client::parse_storage_address(text));
  return named(client::parse_mount_address(text));
}

Result<void> read_addresses(const Options& options, Settings& settings) {
  if (options.on.empty()) {
    return fail(
        "selftest needs --on ADDRESS: the file system through the proxy, such as "
        "tcp://stor0:4334/vpfs or beegfs://stor0:8003/101");
  }
  Result<FileSystem> through = file_system("--on", options.on);
  VPFS_TRY(through);
  settings.on = options.on;
  settings.through_proxy = std::move(*through);
  if (options.direct.empty()) return {};
  Result<FileSystem> past = file_system("--direct", options.direct);
  VPFS_TRY(past);
  if (past->index() != settings.through_proxy.index() || options.direct == options.on) {
    return fail(
        "--direct: expected another address of the file system of --on, that does not "
        "lead through the proxy");
  }
  settings.direct = options.direct;
  settings.past_proxy = std::move(*past);
  return {};
}

Result<void> read_share(const Options& options, Settings& settings) {
  if (options.share.empty()) {
    if (!options.busy) return {};
    return fail("--busy needs --share RATE: what the self-test may take beside the others");
  }
  const Result<BytesPerSecond> share = parse_rate(options.share);
  if (!share) return fail("--share: " + share.error().message);
  if (*share < kLeastShare) {
    return fail(fmt::format("--share: expected at least {}", to_string(kLeastShare)));
  }
  settings.share = *share;
  if (options.direct.empty()) return {};
  return fail("--direct: a load past the proxy is held by no share; leave --share out");
}

}  // namespace

Result<Settings> check(const Options& options) {
  Settings settings;
  VPFS_TRY(read_addresses(options, settings));
  VPFS_TRY(read_share(options, settings));
  settings.busy = options.busy;
  if (options.directory.empty() || !options.directory.starts_with('/')) {
    return fail(
        "selftest needs --directory PATH: where its files are, from the root of the file "
        "system, such as /selftest");
  }
  settings.directory = options.directory;
  if (options.minutes < kLeastMinutes || options.minutes > kMostMinutes) {
    return fail(fmt::format("--minutes: expected {} to {}", kLeastMinutes, kMostMinutes));
  }
  settings.time = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::ratio<60>>(options.minutes));
  const Result<Bytes> size = parse_bytes(options.size);
  if (!size) return fail("--size: " + size.error().message);
  if (*size < kLeastSize || *size > kLargestSize) {
    return fail(
        fmt::format("--size: expected {} to {}", to_string(kLeastSize), to_string(kLargestSize)));
  }
  settings.size = *size;
  settings.servers = options.servers;
  if (!settings.servers.empty() && settings.is_beegfs()) {
    return fail("--server: beegfs://... names the targets of one server already");
  }
  return settings;
}

}  // namespace vpfs::selftest
