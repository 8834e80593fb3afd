#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "control/etcd/etcd_client.h"
#include "control/etcd/etcd_keys.h"
#include "control/etcd/etcd_records.h"
#include "control/store/site_store.h"

namespace vpfs::control {

struct EtcdStoreSettings {
  EtcdSettings etcd;
  std::string prefix;  // of all keys; default_etcd_prefix() has the usual one
  Duration lease = std::chrono::seconds(6);
};

// "/vpfs/SITE/".
[[nodiscard]] std::string default_etcd_prefix(std::string_view site);

// A site's state in etcd (EtcdKeys says where). Whoever holds the lease of the leader's key leads.
// It needs a majority of the members of etcd, and survives the loss of the others.
//
// A former leader learns of its loss as soon as it writes or confirms: each of its transactions
// compares the revision of the leader's key.
//
// confirm() takes two requests, look() and wait() one each, as long as etcd answers.
class EtcdSiteStore final : public SiteStore {
 public:
  // The error is about the settings; nothing is connected to. The lease has whole seconds, at least
  // two. `clock` outlives the store. REQUIRES: the process ignores SIGPIPE.
  [[nodiscard]] static Result<std::unique_ptr<EtcdSiteStore>> make(EtcdStoreSettings settings,
                                                                   const Clock& clock);

  [[nodiscard]] Traits traits() const override;
  [[nodiscard]] Outcome<Seen> look() override;
  [[nodiscard]] Outcome<void> claim(const Seen& seen, const Leadership& own) override;
  [[nodiscard]] Outcome<void> confirm() override;
  [[nodiscard]] Outcome<void> resign() override;
  [[nodiscard]] Outcome<StateStore::Loaded> load() override;
  [[nodiscard]] Outcome<void> append(std::string_view record) override;
  [[nodiscard]] Outcome<void> replace(std::string_view record) override;
  [[nodiscard]] bool wants_replacing() const override { return records_.wants_replacing(); }
  void wait(Duration patience) override;
  void cancel() override { client_->cancel(); }

  // How many were sent to etcd. Any thread.
  [[nodiscard]] std::uint64_t requests() const { return client_->requests(); }

 private:
  struct Office {
    Leadership own;
    std::int64_t lease = 0;
    std::int64_t revision = 0;  // of the leader's key
  };

  EtcdSiteStore(EtcdStoreSettings settings, const Clock& clock, std::unique_ptr<EtcdClient> client);

  [[nodiscard]] EtcdCompare has_revision(const std::string& key, std::int64_t revision) const;
  // This claim has been carried out before, with the lease of that time.
  [[nodiscard]] Outcome<void> take_earlier_claim(const Leadership& own, const EtcdKeyValue& leader,
                                                 std::int64_t lease);
  void take_office(const Leadership& own, std::int64_t lease, std::int64_t revision);

  const EtcdKeys keys_;
  const std::chrono::seconds lease_;
  const Clock& clock_;
  const std::unique_ptr<EtcdClient> client_;
  EtcdRecords records_;
  std::optional<Office> office_;
  std::int64_t seen_revision_ = 0;  // of etcd at the last look()
};

}  // namespace vpfs::control
