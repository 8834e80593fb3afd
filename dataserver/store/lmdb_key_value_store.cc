#include "dataserver/store/lmdb_key_value_store.h"

#include <cerrno>
#include <utility>

#include <asio/post.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/named_file.h"

namespace vpfs::dataserver {
namespace {

MDB_val value_of(std::string_view bytes) {
  return {.mv_size = bytes.size(), .mv_data = const_cast<char*>(bytes.data())};
}
std::string text_of(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

Outcome<void> result_of(int code) {
  switch (code) {
    case MDB_SUCCESS:
      return {};
    case MDB_NOTFOUND:
      return refuse(ENOENT);
    case MDB_MAP_FULL:
    case MDB_TXN_FULL:
    case ENOSPC:
      return refuse(ENOSPC);
    default:
      spdlog::error("metadata store: {}", ::mdb_strerror(code));
      return refuse(EIO);
  }
}

}  // namespace

Result<std::unique_ptr<LmdbKeyValueStore>> LmdbKeyValueStore::open(asio::io_context& context,
                                                                   const std::string& directory,
                                                                   Bytes most) {
  // LMDB opens them as whatever they are, and does not name them in its errors.
  const std::string data = directory + "/data.mdb";
  for (const std::string& file : {data, directory + "/lock.mdb"}) {
    const Result<void> readable = check_readable_file(file);
    if (readable || readable.error().code == std::errc::no_such_file_or_directory) continue;
    return std::unexpected(readable.error());
  }
  const auto problem = [&](int code) {
    return fail(fmt::format("metadata store {}: {}", data, ::mdb_strerror(code)));
  };
  MDB_env* environment = nullptr;
  if (const int code = ::mdb_env_create(&environment)) return problem(code);
  std::unique_ptr<LmdbKeyValueStore> store(new LmdbKeyValueStore(context, environment));
  if (const int code = ::mdb_env_set_mapsize(environment, most.count)) return problem(code);
  // One thread uses it at a time, but not always the same: no per-thread state.
  if (const int code = ::mdb_env_open(environment, directory.c_str(), MDB_NOTLS, 0640)) {
    return problem(code);
  }
  if (const int code = store->open_table()) return problem(code);
  return store;
}

LmdbKeyValueStore::LmdbKeyValueStore(asio::io_context& context, MDB_env* environment)
    : context_(context), environment_(environment) {}

LmdbKeyValueStore::~LmdbKeyValueStore() {
  undo();
  commit_group();
  if (reader_ != nullptr) ::mdb_txn_abort(reader_);
  ::mdb_env_close(environment_);
}

int LmdbKeyValueStore::open_table() {
  MDB_txn* transaction = nullptr;
  if (const int code = ::mdb_txn_begin(environment_, nullptr, 0, &transaction)) return code;
  if (const int code = ::mdb_dbi_open(transaction, nullptr, 0, &table_)) {
    ::mdb_txn_abort(transaction);
    return code;
  }
  if (const int code = ::mdb_txn_commit(transaction)) return code;
  if (const int code = ::mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &reader_)) return code;
  ::mdb_txn_reset(reader_);
  return 0;
}

template <typename Read>
auto LmdbKeyValueStore::reading(Read read) -> decltype(read(nullptr)) {
  if (change_ != nullptr) return read(change_);
  if (group_txn_ != nullptr) return read(group_txn_);
  if (const int code = ::mdb_txn_renew(reader_)) return std::unexpected(result_of(code).error());
  auto result = read(reader_);
  ::mdb_txn_reset(reader_);
  return result;
}

Outcome<std::string> LmdbKeyValueStore::get(std::string_view key) {
  return reading([&](MDB_txn* transaction) -> Outcome<std::string> {
    MDB_val wanted = value_of(key);
    MDB_val found = {};
    const int code = ::mdb_get(transaction, table_, &wanted, &found);
    if (code != 0) return std::unexpected(result_of(code).error());
    return text_of(found);
  });
}

Outcome<KeyValueStore::Entry> LmdbKeyValueStore::first_from(std::string_view from) {
  return reading([&](MDB_txn* transaction) -> Outcome<Entry> {
    MDB_cursor* cursor = nullptr;
    if (const int code = ::mdb_cursor_open(transaction, table_, &cursor)) {
      return std::unexpected(result_of(code).error());
    }
    MDB_val key = value_of(from);
    MDB_val found = {};
    const int code = ::mdb_cursor_get(cursor, &key, &found, MDB_SET_RANGE);
    Outcome<Entry> entry;
    if (const Outcome<void> result = result_of(code)) {
      entry = Entry{.key = text_of(key), .value = text_of(found)};
    } else {
      entry = std::unexpected(result.error());
    }
    ::mdb_cursor_close(cursor);
    return entry;
  });
}

Outcome<void> LmdbKeyValueStore::begin() {
  if (group_txn_ == nullptr) {
    const int code = ::mdb_txn_begin(environment_, nullptr, 0, &group_txn_);
    if (code != 0) return result_of(code);
  }
  return result_of(::mdb_txn_begin(environment_, group_txn_, 0, &change_));
}

Outcome<void> LmdbKeyValueStore::put(std::string_view key, std::string_view value) {
  MDB_val name = value_of(key);
  MDB_val content = value_of(value);
  return result_of(::mdb_put(change_, table_, &name, &content, 0));
}

Outcome<void> LmdbKeyValueStore::erase(std::string_view key) {
  MDB_val name = value_of(key);
  const int code = ::mdb_del(change_, table_, &name, nullptr);
  return code == MDB_NOTFOUND ? Outcome<void>() : result_of(code);
}

Outcome<void> LmdbKeyValueStore::apply() {
  const int code = ::mdb_txn_commit(std::exchange(change_, nullptr));
  if (code != 0) return result_of(code);
  if (!group_) {
    group_ = std::make_shared<Group>(context_);
    asio::post(context_, [this, group = std::weak_ptr(group_)] {
      if (!group.expired()) commit_group();
    });
  }
  return {};
}

void LmdbKeyValueStore::undo() {
  if (change_ != nullptr) ::mdb_txn_abort(std::exchange(change_, nullptr));
}

void LmdbKeyValueStore::commit_group() {
  if (group_txn_ == nullptr) return;
  const Outcome<void> result = result_of(::mdb_txn_commit(std::exchange(group_txn_, nullptr)));
  if (const std::shared_ptr<Group> group = std::exchange(group_, nullptr)) {
    group->result = result;
    group->committed.notify_all();
  }
}

net::Task<Outcome<void>> LmdbKeyValueStore::make_durable() {
  const std::shared_ptr<Group> group = group_;
  if (!group) co_return Outcome<void>();
  while (!group->result) co_await group->committed.wait();
  co_return *group->result;
}

}  // namespace vpfs::dataserver
