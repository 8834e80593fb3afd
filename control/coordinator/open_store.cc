#include "control/coordinator/open_store.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "control/etcd/etcd_site_store.h"
#include "control/store/directory_site_store.h"
#include "control/store/file_calls.h"
#include "control/store/file_site_store.h"

namespace vpfs::coordinator {
namespace {

using control::SiteStore;

// The first line of a file.
Result<std::string> read_password(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) {
    return fail(
        fmt::format("store.etcd.password_file: {}: expected a file whose first line is the "
                    "password",
                    path));
  }
  return line;
}

Result<std::unique_ptr<SiteStore>> open_etcd(const StoreConfig& config, const Clock& clock) {
  const EtcdConfig& etcd = *config.etcd;
  control::EtcdStoreSettings settings = {
      .etcd = {.endpoints = etcd.endpoints, .files = etcd.tls, .user = etcd.user},
      .prefix = etcd.prefix,
      .lease = config.lease};
  // A member that hangs must not cost the office.
  settings.etcd.connect_time_out = std::min(settings.etcd.connect_time_out, config.lease / 10);
  settings.etcd.call_time_out = std::min(settings.etcd.call_time_out, config.lease / 6);
  if (!etcd.password_file.empty()) {
    auto password = read_password(etcd.password_file);
    VPFS_TRY(password);
    settings.etcd.password = std::move(*password);
  }
  auto store = control::EtcdSiteStore::make(std::move(settings), clock);
  if (!store) return fail("store.etcd: " + store.error().message, store.error().code);
  return std::move(*store);
}

}  // namespace

Result<std::unique_ptr<SiteStore>> open_store(const Config& config, const Clock& clock) {
  static control::FileCalls calls;
  if (!config.store) {
    auto store = control::FileSiteStore::open(config.journal, calls);
    if (!store) return fail("journal: " + store.error().message, store.error().code);
    return std::move(*store);
  }
  if (config.store->etcd) return open_etcd(*config.store, clock);
  auto store =
      control::DirectorySiteStore::open(config.store->directory, config.store->lease, calls);
  if (!store) return fail("store.directory: " + store.error().message, store.error().code);
  return std::move(*store);
}

}  // namespace vpfs::coordinator
