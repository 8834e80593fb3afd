#pragma once

#include <memory>
#include <optional>
#include <string>

#include <lmdb.h>

#include "base/result.h"
#include "base/units.h"
#include "dataserver/store/key_value_store.h"
#include "net/signal.h"

namespace vpfs::dataserver {

// Keeps its entries in an LMDB environment: one file in a directory of its own.
//
// Group commit: change sets are nested in one write transaction, which is committed, and with that
// synced to the disk, at the end of the turn of the event loop. Reads see what is not committed
// yet; no client does, as operations answer after make_durable(). When a commit fails, the sets in
// it are gone and make_durable() says so to all of their operations.
class LmdbKeyValueStore final : public KeyValueStore {
 public:
  // `directory` exists. `most` bounds the size of the store.
  [[nodiscard]] static Result<std::unique_ptr<LmdbKeyValueStore>> open(asio::io_context& context,
                                                                       const std::string& directory,
                                                                       Bytes most);
  ~LmdbKeyValueStore() override;

  Outcome<std::string> get(std::string_view key) override;
  Outcome<Entry> first_from(std::string_view from) override;
  Outcome<void> begin() override;
  Outcome<void> put(std::string_view key, std::string_view value) override;
  Outcome<void> erase(std::string_view key) override;
  Outcome<void> apply() override;
  void undo() override;
  net::Task<Outcome<void>> make_durable() override;

 private:
  // The change sets that are committed together.
  struct Group {
    explicit Group(asio::io_context& context) : committed(context.get_executor()) {}
    net::Signal committed;
    std::optional<Outcome<void>> result;
  };

  LmdbKeyValueStore(asio::io_context& context, MDB_env* environment);
  [[nodiscard]] int open_table();
  // Calls read(transaction) in the innermost open transaction, or in one of its own.
  template <typename Read>
  auto reading(Read read) -> decltype(read(nullptr));
  void commit_group();

  asio::io_context& context_;
  MDB_env* environment_;
  MDB_dbi table_ = 0;
  MDB_txn* reader_ = nullptr;     // reset between reads
  MDB_txn* group_txn_ = nullptr;  // of the group
  MDB_txn* change_ = nullptr;     // of the open change set, nested in it
  std::shared_ptr<Group> group_;  // shared with all that wait for it
};

}  // namespace vpfs::dataserver
