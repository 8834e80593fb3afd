#include "control/etcd/etcd_records.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/one_line.h"

namespace vpfs::control {
namespace {

using Why = SiteStore::Why;
using Place = EtcdKeys::Place;

// etcd takes requests of 1.5 MiB.
constexpr std::size_t kPart = std::size_t{1} << 20;
// etcd takes 128 comparisons in a transaction.
constexpr std::size_t kMostParts = 100;
constexpr std::size_t kMostRecord = kPart * kMostParts;
constexpr std::size_t kMostLoaded = std::size_t{512} << 20;
constexpr std::int64_t kPage = 1'000;
constexpr std::uint64_t kManyRecords = 1'000;
constexpr std::uint64_t kManyBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kGrowth = 4;
// Each try ends with something else found there. More than two would need others that write.
constexpr int kMostTries = 5;

std::unexpected<SiteStore::Failure> failed(const EtcdFailure& failure) {
  return std::unexpected(to_failure(failure));
}

std::unexpected<SiteStore::Failure> damaged(const std::string& key, const std::string& problem) {
  return std::unexpected(SiteStore::Failure{
      .why = Why::damaged, .text = fmt::format("etcd {}: {}", one_short_line(key), problem)});
}

std::unexpected<SiteStore::Failure> keeps_changing(const std::string& key) {
  return std::unexpected(SiteStore::Failure{
      .why = Why::unreachable, .text = fmt::format("etcd {} changes all the time", key)});
}

// Those that JSON has to escape. It may have DEL as it is, and a name in a record may too.
bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

std::vector<std::string_view> parts_of(std::string_view record) {
  std::vector<std::string_view> parts;
  while (record.size() > kPart) {
    parts.push_back(record.substr(0, kPart));
    record.remove_prefix(kPart);
  }
  parts.push_back(record);
  return parts;
}

}  // namespace

SiteStore::Failure to_failure(const EtcdFailure& failure) {
  switch (failure.why) {
    case EtcdFailure::Why::unreachable:
    case EtcdFailure::Why::compacted:
      return {.why = Why::unreachable, .text = failure.text};
    case EtcdFailure::Why::refused:
    case EtcdFailure::Why::not_found:
    case EtcdFailure::Why::too_large:
    case EtcdFailure::Why::denied:
      break;
  }
  return {.why = Why::refused, .text = failure.text};
}

std::unexpected<SiteStore::Failure> lost_office(const std::string& leader_key) {
  return std::unexpected(SiteStore::Failure{
      .why = Why::lost,
      .text =
          fmt::format("etcd {}: the lease has ended, or another coordinator leads", leader_key)});
}

// A smaller page may come in time.
bool is_too_much(const EtcdFailure& failure) {
  return failure.why == EtcdFailure::Why::too_large || failure.has_timed_out;
}

// What load() has read so far.
struct EtcdRecords::Page {
  StateStore::Loaded loaded;
  std::string parts;  // of the record that comes next
  std::size_t parts_count = 0;
  std::string own;  // the value of its key, which comes before its parts in the order of keys
  std::uint64_t number = 0;  // of the record that `own` is for; 0: none yet
  bool has_parts_only = false;
  std::uint64_t first_size = 0;
  std::uint64_t size = 0;

  // The record `number` is whole.
  void finish(const EtcdKeys& keys, std::uint64_t generation) {
    if (number == 0) return;
    StateStore::Record record = {
        .text = std::move(parts),
        .place = "etcd " + keys.record({.generation = generation, .number = number})};
    record.text += own;
    size += record.text.size();
    if (loaded.records.empty()) first_size = record.text.size();
    loaded.records.push_back(std::move(record));
    parts.clear();
    own.clear();
    parts_count = 0;
  }
};

EtcdCompare EtcdRecords::is_leader() const {
  return {.key = keys_.leader(),
          .target = EtcdCompare::Target::mod_revision,
          .revision = leader_revision_};
}

std::vector<EtcdCompare> EtcdRecords::guards(const Place& place) const {
  return {
      is_leader(),
      {.key = keys_.generation(),
       .target = EtcdCompare::Target::mod_revision,
       .revision = generation_revision_},
      {.key = keys_.record(place), .target = EtcdCompare::Target::create_revision, .revision = 0}};
}

EtcdRecords::Outcome<void> EtcdRecords::find_generation() {
  const auto answer = client_.transact({.compares = {is_leader()},
                                        .success = {etcd_range({.key = keys_.generation()})},
                                        .failure = {}},
                                       EtcdClient::Repeat::yes);
  if (!answer) return failed(answer.error());
  if (!answer->succeeded) return lost_office(keys_.leader());
  generation_ = 0;
  generation_revision_ = 0;
  if (answer->found[0].empty()) return {};
  const EtcdKeyValue& found = answer->found[0].front();
  const std::string& text = found.value;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), generation_);
  if (end.ec != std::errc{} || end.ptr != text.data() + text.size() || generation_ == 0) {
    return damaged(keys_.generation(), "'" + one_short_line(text, 50) + "' is not a generation");
  }
  generation_revision_ = found.mod_revision;
  return {};
}

EtcdRecords::Outcome<StateStore::Loaded> EtcdRecords::load(
    const std::function<void()>& between_pages) {
  for (int time = 0; time < kMostTries; ++time) {
    bool is_compacted = false;
    Outcome<StateStore::Loaded> loaded = load_once(between_pages, is_compacted);
    if (loaded) remove_leftovers();
    if (loaded || !is_compacted) return loaded;
  }
  return keeps_changing(keys_.records());
}

EtcdRecords::Outcome<StateStore::Loaded> EtcdRecords::load_once(
    const std::function<void()>& between_pages, bool& is_compacted) {
  VPFS_TRY(find_generation());
  const std::string begin = keys_.records_of(generation_);
  EtcdRange range = {.key = begin, .end = end_of_prefix(begin), .limit = kPage};
  Page page;
  for (;;) {
    const EtcdOutcome<EtcdRangeAnswer> answer = client_.range(range);
    if (!answer && is_too_much(answer.error()) && range.limit > 1) {
      between_pages();
      range.limit = std::max<std::int64_t>(1, range.limit / 8);
      continue;
    }
    if (!answer) {
      // Another client has compacted the revision of the first page.
      is_compacted = answer.error().why == EtcdFailure::Why::compacted;
      return failed(answer.error());
    }
    VPFS_TRY(take_page(answer->found, page));
    if (!answer->has_more) break;
    if (answer->found.empty()) return damaged(range.key, "etcd has more keys, but gives none");
    between_pages();
    range.key = answer->found.back().key + '\0';
    range.revision = range.revision == 0 ? answer->revision : range.revision;
  }
  page.finish(keys_, generation_);
  last_ = page.loaded.records.size();
  first_size_ = page.first_size;
  size_ = page.size;
  return std::move(page.loaded);
}

EtcdRecords::Outcome<void> EtcdRecords::take_page(const std::vector<EtcdKeyValue>& found,
                                                  Page& page) const {
  for (const EtcdKeyValue& each : found) {
    const std::optional<EtcdKeys::RecordKey> key = keys_.parse(each.key, generation_);
    if (!key) return damaged(each.key, "it is not a key of vpfs");
    if (has_control_characters(each.value)) {
      return damaged(each.key, "it has control characters, which no record has");
    }
    if (page.size + page.parts.size() + each.value.size() > kMostLoaded) {
      return damaged(each.key, fmt::format("there are more than {} bytes", kMostLoaded));
    }
    if (!key->part) {
      page.finish(keys_, generation_);
      if (page.has_parts_only || key->number != page.number + 1) {
        const Place missing = {.generation = generation_, .number = page.number + 1};
        return damaged(keys_.record(missing), "this record is missing");
      }
      page.number = key->number;
      page.own = each.value;
    } else if (key->number == page.number && !page.has_parts_only) {
      if (*key->part != page.parts_count) return damaged(each.key, "a part before it is missing");
      page.parts += each.value;
      ++page.parts_count;
    } else {
      page.has_parts_only = true;  // of a record that was not written to its end
    }
  }
  return {};
}

EtcdRecords::Outcome<void> EtcdRecords::find_last() {
  const std::string begin = keys_.records_of(generation_);
  const auto answer = client_.range({.key = begin,
                                     .end = end_of_prefix(begin),
                                     .limit = static_cast<std::int64_t>(2 * kMostParts),
                                     .revision = 0,
                                     .keys_only = true,
                                     .descending = true});
  if (!answer) return failed(answer.error());
  last_ = 0;
  for (const EtcdKeyValue& each : answer->found) {
    const std::optional<EtcdKeys::RecordKey> key = keys_.parse(each.key, generation_);
    if (!key) return damaged(each.key, "it is not a key of vpfs");
    if (!key->part) {
      last_ = key->number;
      break;
    }
  }
  return {};
}

EtcdRecords::Outcome<void> EtcdRecords::append(std::string_view record) {
  for (int time = 0; time < kMostTries; ++time) {
    const Outcome<Written> written =
        write({.generation = generation_, .number = last_ + 1}, record);
    VPFS_TRY(written);
    switch (*written) {
      case Written::done:
        ++last_;
        size_ += record.size();
        if (last_ == 1) first_size_ = record.size();
        return {};
      case Written::taken:
        ++last_;
        break;
      case Written::moved:
      case Written::disturbed:
        VPFS_TRY(find_generation());
        VPFS_TRY(find_last());
        break;
    }
  }
  return keeps_changing(keys_.records());
}

EtcdRecords::Outcome<void> EtcdRecords::replace(std::string_view record) {
  for (int time = 0; time < kMostTries; ++time) {
    const Outcome<Written> written = write({.generation = generation_ + 1, .number = 1}, record);
    VPFS_TRY(written);
    VPFS_TRY(find_generation());
    if (*written == Written::done) {
      last_ = 1;
      first_size_ = size_ = record.size();
      remove_leftovers();
      return {};
    }
    VPFS_TRY(find_last());
  }
  return keeps_changing(keys_.generation());
}

bool EtcdRecords::wants_replacing() const {
  return last_ > kManyRecords || size_ > std::max(kManyBytes, kGrowth * first_size_);
}

EtcdRecords::Outcome<EtcdRecords::Written> EtcdRecords::write(const Place& place,
                                                              std::string_view record) {
  if (record.size() > kMostRecord) {
    return std::unexpected(SiteStore::Failure{
        .why = Why::refused,
        .text = fmt::format("etcd {}: a record of {} bytes is too long; {} are possible",
                            keys_.record(place), record.size(), kMostRecord)});
  }
  for (int time = 0; time < kMostTries; ++time) {
    const Outcome<EtcdTransactionAnswer> answer = write_once(place, record);
    VPFS_TRY(answer);
    if (answer->succeeded) return Written::done;
    const Outcome<Written> judged = judge(*answer, place, record);
    if (!judged || *judged != Written::disturbed) return judged;
  }
  return keeps_changing(keys_.record(place));
}

EtcdRecords::Outcome<EtcdTransactionAnswer> EtcdRecords::write_once(const Place& place,
                                                                    std::string_view record) {
  std::vector<std::string_view> parts = parts_of(record);
  const std::string_view last = parts.back();
  parts.pop_back();
  std::vector<EtcdCompare> compares = guards(place);
  for (std::size_t index = 0; index < parts.size(); ++index) {
    const std::string key = keys_.part(place, index);
    auto answer = write_guarded(guards(place), {etcd_put(key, std::string(parts[index]))}, place);
    if (!answer || !answer->succeeded) return answer;
    // A part that was sent twice may come once more, after others.
    compares.push_back(
        {.key = key, .target = EtcdCompare::Target::mod_revision, .revision = answer->revision});
  }
  // Parts of an earlier record that was not written to its end may be there.
  std::vector<EtcdOperation> operations = {
      etcd_erase(keys_.part(place, parts.size()), end_of_prefix(keys_.parts(place))),
      etcd_put(keys_.record(place), std::string(last))};
  if (place.generation != generation_) {
    operations.push_back(etcd_put(keys_.generation(), std::to_string(place.generation)));
  }
  return write_guarded(std::move(compares), std::move(operations), place);
}

EtcdRecords::Outcome<EtcdTransactionAnswer> EtcdRecords::write_guarded(
    std::vector<EtcdCompare> compares, std::vector<EtcdOperation> operations, const Place& place) {
  auto answer =
      client_.transact({.compares = std::move(compares),
                        .success = std::move(operations),
                        .failure = {etcd_range({.key = keys_.leader(), .keys_only = true}),
                                    etcd_range({.key = keys_.generation(), .keys_only = true}),
                                    etcd_range({.key = keys_.record(place), .keys_only = true})}},
                       EtcdClient::Repeat::yes);
  if (!answer) return failed(answer.error());
  return *std::move(answer);
}

EtcdRecords::Outcome<EtcdRecords::Written> EtcdRecords::judge(const EtcdTransactionAnswer& answer,
                                                              const Place& place,
                                                              std::string_view record) {
  const auto revision_of = [](const std::vector<EtcdKeyValue>& found) {
    return found.empty() ? 0 : found.front().mod_revision;
  };
  VPFS_ASSERT(answer.found.size() == 3);
  if (revision_of(answer.found[0]) != leader_revision_) return lost_office(keys_.leader());
  if (!answer.found[2].empty()) {
    const Outcome<std::string> stored = read_record(place);
    VPFS_TRY(stored);
    return *stored == record ? Written::done : Written::taken;
  }
  if (revision_of(answer.found[1]) != generation_revision_) return Written::moved;
  return Written::disturbed;
}

EtcdRecords::Outcome<std::string> EtcdRecords::read_record(const Place& place) {
  // One answer for each part: all at once may be too much.
  const auto own = client_.range({.key = keys_.record(place)});
  if (!own) return failed(own.error());
  std::string record;
  for (std::size_t index = 0; index <= kMostParts; ++index) {
    const auto part = client_.range({.key = keys_.part(place, index)});
    if (!part) return failed(part.error());
    if (part->found.empty()) break;
    record += part->found.front().value;
  }
  if (!own->found.empty()) record += own->found.front().value;
  return record;
}

void EtcdRecords::remove_leftovers() {
  const std::string begin = keys_.records();
  const std::string own = keys_.records_of(generation_);
  (void)client_.transact(
      {.compares = {is_leader(),
                    {.key = keys_.generation(),
                     .target = EtcdCompare::Target::mod_revision,
                     .revision = generation_revision_}},
       .success = {etcd_erase(begin, own), etcd_erase(end_of_prefix(own), end_of_prefix(begin))},
       .failure = {}},
      EtcdClient::Repeat::yes);
}

}  // namespace vpfs::control
