#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

// Requests and answers of etcd's JSON gateway: numbers of 64 bits are strings, keys and values are
// base64, and a field that is absent has its default.
namespace vpfs::control {

struct EtcdKeyValue {
  std::string key;
  std::string value;
  std::int64_t create_revision = 0;
  std::int64_t mod_revision = 0;
  std::int64_t lease = 0;  // 0: none
};

struct EtcdRange {
  std::string key;
  std::string end;  // the first key behind the range; empty: this key alone
  std::int64_t limit = 0;
  std::int64_t revision = 0;  // 0: the newest
  bool keys_only = false;
  bool descending = false;
};

struct EtcdRangeAnswer {
  std::int64_t revision = 0;  // of the whole store
  std::uint64_t raft_term = 0;
  std::vector<EtcdKeyValue> found;  // in the order of keys
  bool has_more = false;
};

struct EtcdCompare {
  enum class Target : std::uint8_t { mod_revision, create_revision };
  std::string key;
  Target target = Target::mod_revision;
  std::int64_t revision = 0;  // 0: the key is absent
};

struct EtcdOperation {
  enum class Kind : std::uint8_t { put, erase, range };
  Kind kind = Kind::range;
  EtcdRange range;  // `key` alone for put; `key` and `end` for erase
  std::string value;
  std::int64_t lease = 0;
};
[[nodiscard]] EtcdOperation etcd_put(std::string key, std::string value, std::int64_t lease = 0);
[[nodiscard]] EtcdOperation etcd_erase(std::string key, std::string end = {});
[[nodiscard]] EtcdOperation etcd_range(EtcdRange range);

// `success` if all compares hold, else `failure`.
struct EtcdTransaction {
  std::vector<EtcdCompare> compares;
  std::vector<EtcdOperation> success;
  std::vector<EtcdOperation> failure;
};

struct EtcdTransactionAnswer {
  bool succeeded = false;
  std::int64_t revision = 0;  // after it
  // For each operation; empty for those that are not ranges.
  std::vector<std::vector<EtcdKeyValue>> found;
};

struct EtcdError {
  int code = 0;  // of gRPC
  std::string message;
};

enum class EtcdWatchMessage : std::uint8_t {
  nothing,    // it has begun, or goes on
  event,      // a key has changed
  compacted,  // keys may have changed: what was asked for is not kept any more
  ended,      // refused, or broken
};

// The first key behind those that begin with the prefix.
[[nodiscard]] std::string end_of_prefix(std::string prefix);

[[nodiscard]] nlohmann::json to_json(const EtcdRange& range);
[[nodiscard]] nlohmann::json to_json(const EtcdTransaction& transaction);

// An object with at most so many values as etcd has reason to send.
[[nodiscard]] Result<nlohmann::json> parse_etcd_json(std::string_view text);
// Errors name the field.
[[nodiscard]] Result<EtcdRangeAnswer> parse_range_answer(const nlohmann::json& answer);
[[nodiscard]] Result<EtcdTransactionAnswer> parse_transaction_answer(const nlohmann::json& answer);
[[nodiscard]] std::optional<EtcdError> parse_etcd_error(const nlohmann::json& answer);
[[nodiscard]] EtcdWatchMessage parse_watch_message(std::string_view text);
// 0 if it is absent.
[[nodiscard]] Result<std::int64_t> etcd_integer(const nlohmann::json& object, const char* name);
[[nodiscard]] Result<std::uint64_t> raft_term_of(const nlohmann::json& answer);

}  // namespace vpfs::control
