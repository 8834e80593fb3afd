#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "control/etcd/etcd_client.h"
#include "control/etcd/etcd_keys.h"
#include "control/store/site_store.h"

namespace vpfs::control {

// The records of a site in etcd, as EtcdKeys lays them out.
//
// All that it writes is in transactions that hold only while the leader's key is the one that
// lead() names. A call whose answer did not come is sent again without harm: a record is written
// where none was, and what is there after a refusal says whether it was this one.
class EtcdRecords {
 public:
  template <typename T>
  using Outcome = SiteStore::Outcome<T>;

  // Both outlive it.
  EtcdRecords(EtcdClient& client, const EtcdKeys& keys) : client_(client), keys_(keys) {}

  // From now on the leader's key has to have this revision.
  void lead(std::int64_t leader_revision) { leader_revision_ = leader_revision; }

  // `between_pages` is called after each page: a lease may be shorter than the time of them all.
  [[nodiscard]] Outcome<StateStore::Loaded> load(const std::function<void()>& between_pages);
  [[nodiscard]] Outcome<void> append(std::string_view record);
  [[nodiscard]] Outcome<void> replace(std::string_view record);
  [[nodiscard]] bool wants_replacing() const;

 private:
  enum class Written : std::uint8_t {
    done,
    taken,      // another record is there, which this leader wrote before
    moved,      // another generation is in force, which this leader wrote before
    disturbed,  // parts of the record have changed meanwhile
  };
  struct Page;

  [[nodiscard]] EtcdCompare is_leader() const;
  [[nodiscard]] std::vector<EtcdCompare> guards(const EtcdKeys::Place& place) const;
  [[nodiscard]] Outcome<void> find_generation();
  [[nodiscard]] Outcome<void> find_last();
  [[nodiscard]] Outcome<StateStore::Loaded> load_once(const std::function<void()>& between_pages,
                                                      bool& is_compacted);
  [[nodiscard]] Outcome<void> take_page(const std::vector<EtcdKeyValue>& found, Page& page) const;

  [[nodiscard]] Outcome<Written> write(const EtcdKeys::Place& place, std::string_view record);
  // The answer of the last transaction, or of the first one that did not hold.
  [[nodiscard]] Outcome<EtcdTransactionAnswer> write_once(const EtcdKeys::Place& place,
                                                          std::string_view record);
  [[nodiscard]] Outcome<EtcdTransactionAnswer> write_guarded(std::vector<EtcdCompare> compares,
                                                             std::vector<EtcdOperation> operations,
                                                             const EtcdKeys::Place& place);
  // Why a guarded transaction did not hold.
  [[nodiscard]] Outcome<Written> judge(const EtcdTransactionAnswer& answer,
                                       const EtcdKeys::Place& place, std::string_view record);
  [[nodiscard]] Outcome<std::string> read_record(const EtcdKeys::Place& place);
  // Other generations than the one in force. It does not matter if it fails: it is tried again.
  void remove_leftovers();

  EtcdClient& client_;
  const EtcdKeys& keys_;
  std::int64_t leader_revision_ = 0;
  std::uint64_t generation_ = 0;
  std::int64_t generation_revision_ = 0;  // of its key; 0: it is absent
  std::uint64_t last_ = 0;                // number of the newest record
  std::uint64_t first_size_ = 0;          // bytes of the oldest record, and of all
  std::uint64_t size_ = 0;
};

// What a failure of etcd means to a leader.
[[nodiscard]] SiteStore::Failure to_failure(const EtcdFailure& failure);
[[nodiscard]] std::unexpected<SiteStore::Failure> lost_office(const std::string& leader_key);

}  // namespace vpfs::control
