#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/flat_table.h"
#include "base/result.h"
#include "stage/rules/address.h"

namespace vpfs::stage {

// The hint that carries a job's id.
inline constexpr std::string_view kJobHint = "jobid";

// A job that is registered, as the configuration has it.
struct RegisteredJob {
  std::string jobid;  // as is_good_name() wants it
  // Addresses or CIDR blocks that its I/O comes from; at least one.
  std::vector<std::string> clients;
  std::vector<std::uint64_t> uids;  // of its users; none: any user of these clients
  std::vector<std::uint64_t> gids = {};
  std::string account = {};
  std::uint32_t nodes = 0;  // 0: not known

  bool operator==(const RegisteredJob&) const = default;
};

// The registered jobs, by id and by client. The time of a look-up depends on neither the number of
// jobs nor that of a job's addresses, but on how many lengths of CIDR prefixes are in use.
// Allocates in add() only. Not thread-safe: complete it before sharing it.
class JobRegistry {
 public:
  struct Job {
    std::string jobid;
    std::string account;
    std::vector<std::uint64_t> gids;
    std::uint32_t nodes = 0;
    std::vector<std::uint64_t> uids;
    std::vector<Address> addresses;    // ascending
    std::vector<AddressBlock> blocks;  // the other clients
  };

  // An error changes nothing and names the wrong part of the entry: a known id or a bad name, no
  // client, or a client that is not an address.
  [[nodiscard]] Result<void> add(const RegisteredJob& job);

  // The job of this id if a request from a client with these addresses may have it, else null. One
  // of the addresses must be the job's. The uid counts if the job names uids and the protocol shows
  // one.
  [[nodiscard]] const Job* admitted(std::string_view jobid, std::span<const Address> client,
                                    std::optional<std::uint32_t> uid) const;
  [[nodiscard]] const Job* admitted(std::string_view jobid, const Address& client,
                                    std::optional<std::uint32_t> uid) const {
    return admitted(jobid, std::span(&client, 1), uid);
  }
  [[nodiscard]] bool admits(std::string_view jobid, const Address& client,
                            std::optional<std::uint32_t> uid) const {
    return admitted(jobid, client, uid) != nullptr;
  }
  // The job that a request belongs to which shows no id: the only one that admits it. Null if none
  // or several do.
  [[nodiscard]] const Job* only_job_of(std::span<const Address> client,
                                       std::optional<std::uint32_t> uid) const;
  [[nodiscard]] const Job* only_job_of(const Address& client,
                                       std::optional<std::uint32_t> uid) const {
    return only_job_of(std::span(&client, 1), uid);
  }

  [[nodiscard]] std::size_t size() const { return jobs_.size(); }
  // Whether a job names uids.
  [[nodiscard]] bool has_users() const { return has_users_; }

 private:
  // The first of the jobs with one block of addresses, and whether there are more. If there are,
  // owners_ also has this of each user of the block.
  struct BlockJobs {
    std::uint32_t job = 0;
    bool several = false;
  };
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library's name
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  // The users of entries beside single uids.
  static constexpr std::uint64_t kOfNobody = std::uint64_t{1} << 32U;  // jobs without uids
  static constexpr std::uint64_t kOfAll = kOfNobody + 1;

  // Calls `take` with what is noted of jobs that may have this user at this address.
  template <typename Take>
  void for_each_owner(const Address& address, std::optional<std::uint32_t> uid,
                      const Take& take) const;
  void note(const AddressBlock& block, std::uint32_t job);
  void note_user(const AddressBlock& block, std::uint64_t user, std::uint32_t job);
  void note_users(const AddressBlock& block, std::uint32_t job);

  std::vector<Job> jobs_;
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> by_id_;
  FlatTable<BlockJobs> owners_;
  std::vector<int> prefixes_;  // in use
  bool has_users_ = false;
};

}  // namespace vpfs::stage
