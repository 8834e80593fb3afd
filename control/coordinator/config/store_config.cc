#include "control/coordinator/config/store_config.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "control/wire/port_address.h"

namespace vpfs::coordinator {
namespace {

// What other systems call the keys.
constexpr std::array<ConfigWord, 3> kStoreWords = {
    {{"path", "directory"}, {"ttl", "lease"}, {"advertise", "addresses"}}};

constexpr std::string_view kSecure = "https://";
constexpr std::string_view kPlain = "http://";
constexpr std::size_t kMostEndpoints = 16;

bool is_secure(std::string_view endpoint) {
  return endpoint.starts_with(kSecure);
}

// Why it is not one; "": it is.
std::string problem_of(const std::string& endpoint) {
  std::string_view rest = endpoint;
  if (is_secure(rest)) {
    rest.remove_prefix(kSecure.size());
  } else if (rest.starts_with(kPlain)) {
    rest.remove_prefix(kPlain.size());
  } else {
    rest = "";
  }
  const auto address = control::parse_port_address("tcp:" + std::string(rest));
  if (!rest.empty() && rest.find('/') == std::string_view::npos && address) return "";
  return fmt::format("\"{}\" is not an endpoint: expected https://HOST:PORT or http://HOST:PORT",
                     endpoint);
}

void read_endpoints(ConfigReader& reader, EtcdConfig& etcd) {
  reader.require("endpoints");
  if (!reader.get("endpoints", &etcd.endpoints)) return;
  if (etcd.endpoints.size() > kMostEndpoints) {
    reader.report("endpoints", fmt::format("has {} endpoints: expected at most {}",
                                           etcd.endpoints.size(), kMostEndpoints));
  }
  std::set<std::string> seen;
  for (std::size_t i = 0; i < etcd.endpoints.size(); ++i) {
    const std::string& endpoint = etcd.endpoints[i];
    const std::string place = fmt::format("endpoints[{}]", i);
    if (const std::string problem = problem_of(endpoint); !problem.empty()) {
      reader.report(place, problem);
    } else if (is_secure(endpoint) != is_secure(etcd.endpoints.front())) {
      reader.report(place, "some endpoints use TLS and others do not: expected all, or none");
    } else if (!seen.insert(endpoint).second) {
      reader.report(place, fmt::format("\"{}\" is given twice", endpoint));
    }
  }
}

EtcdConfig read_etcd(ConfigReader& reader, const std::string& site) {
  EtcdConfig etcd;
  read_endpoints(reader, etcd);
  etcd.prefix = fmt::format("/vpfs/{}/", site);
  if (site.empty() && !reader.has("prefix")) {
    reader.report("prefix", "is missing: without a `name` of the site there is no usual one");
  }
  if (reader.get("prefix", &etcd.prefix)) {
    if (!etcd.prefix.starts_with('/') || etcd.prefix.size() < 2) {
      reader.report("prefix",
                    fmt::format("\"{}\" is not a prefix of keys: expected /NAME/", etcd.prefix));
    }
    if (!etcd.prefix.ends_with('/')) etcd.prefix += '/';
  }
  reader.get("ca", &etcd.tls.ca);
  reader.get("certificate", &etcd.tls.certificate);
  reader.get("key", &etcd.tls.key);
  reader.get("user", &etcd.user);
  reader.get("password_file", &etcd.password_file);
  const bool has_files = !etcd.tls.ca.empty() || !etcd.tls.certificate.empty();
  if (etcd.uses_tls() && etcd.tls.ca.empty()) {
    reader.report("endpoints",
                  "https needs `ca`: the file with the certificate of etcd's authority");
  } else if (!etcd.uses_tls() && has_files && !etcd.endpoints.empty()) {
    reader.report("ca", "is for endpoints with https");
  }
  if (etcd.tls.certificate.empty() != etcd.tls.key.empty()) {
    reader.report(etcd.tls.key.empty() ? "certificate" : "key",
                  "expected both `certificate` and `key`, or none");
  }
  if (etcd.user.empty() != etcd.password_file.empty()) {
    reader.report(etcd.user.empty() ? "password_file" : "user",
                  "expected both `user` and `password_file`, or none");
  }
  return etcd;
}

void read_addresses(ConfigReader& reader, StoreConfig& store) {
  if (!reader.has("addresses") || !reader.get("addresses", &store.addresses)) return;
  for (std::size_t i = 0; i < store.addresses.size(); ++i) {
    const auto address = control::parse_port_address(store.addresses[i]);
    if (!address) reader.report(fmt::format("addresses[{}]", i), address.error().message);
  }
}

}  // namespace

bool EtcdConfig::uses_tls() const {
  return std::ranges::any_of(endpoints, is_secure);
}

std::optional<StoreConfig> read_store(ConfigReader& parent, const std::string& site) {
  if (!parent.has("store")) return std::nullopt;
  ConfigReader reader = parent.child("store");
  StoreConfig store;
  reader.suggest(kStoreWords);
  if (reader.has("etcd")) {
    ConfigReader etcd = reader.child("etcd");
    store.etcd = read_etcd(etcd, site);
  }
  reader.get("directory", &store.directory);
  if (store.etcd.has_value() == !store.directory.empty() && reader.flawless()) {
    reader.report("", "expected one of `etcd` and `directory`");
  }
  reader.get("lease", &store.lease, std::chrono::seconds(2), std::chrono::minutes(10));
  read_addresses(reader, store);
  return store;
}

}  // namespace vpfs::coordinator
