#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/system_clock.h"
#include "control/etcd/etcd_site_store.h"
#include "test/support/etcd_cluster.h"

namespace vpfs::control {

// For constructors of fixtures.
inline void skip_without_etcd() {
  if (const std::string missing = test::EtcdCluster::missing(); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
}

// An etcd of one member, which begins with its first use.
inline test::EtcdCluster& one_member() {
  static test::EtcdCluster cluster({.members = 1, .more = {}});
  return cluster;
}

// Each call has another site.
inline std::string new_prefix() {
  static int sites = 0;
  return default_etcd_prefix("site" + std::to_string(++sites));
}

inline std::unique_ptr<EtcdSiteStore> open_store(const EtcdSettings& etcd,
                                                 const std::string& prefix, Duration lease) {
  static const SystemClock clock;
  auto store = EtcdSiteStore::make({.etcd = etcd, .prefix = prefix, .lease = lease}, clock);
  if (!store) throw std::runtime_error(store.error().message);
  return *std::move(store);
}

}  // namespace vpfs::control
