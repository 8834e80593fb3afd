#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "stage/address.h"

namespace vpfs::stage {

// The hint that carries a job's id.
inline constexpr std::string_view kJobHint = "jobid";

// A job whose id counts, as the configuration has it.
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

// The registered jobs, by id. The time of a look-up depends on the clients and uids of the job
// found, not on the number of jobs. Allocates in add() only. Not thread-safe: complete it before
// sharing it.
class JobRegistry {
 public:
  // An error changes nothing and names the wrong part of the entry: a known id or a bad name, no
  // client, or a client that is no address.
  [[nodiscard]] Result<void> add(const RegisteredJob& job);

  // Whether a request from this client may have this job id. The uid counts if the job names uids
  // and the protocol shows one.
  [[nodiscard]] bool admits(std::string_view jobid, const Address& client,
                            std::optional<std::uint32_t> uid) const;
  [[nodiscard]] std::size_t size() const { return jobs_.size(); }

 private:
  struct Job {
    std::vector<AddressBlock> clients;
    std::vector<std::uint64_t> uids;
  };
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library's name
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  std::unordered_map<std::string, Job, Hash, std::equal_to<>> jobs_;
};

}  // namespace vpfs::stage
