#include "control/etcd/etcd_messages.h"

#include <charconv>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/base64.h"

namespace vpfs::control {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostDepth = 32;
// A page of 1,000 keys has 7,000.
constexpr std::size_t kMostValues = 200'000;

// Counts what a text has, before anything is made from it: a value may take fifty times its text.
class Count final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return one(); }
  bool boolean(bool) override { return one(); }
  bool number_integer(number_integer_t) override { return one(); }
  bool number_unsigned(number_unsigned_t) override { return one(); }
  bool number_float(number_float_t, const string_t&) override { return one(); }
  bool string(string_t&) override { return one(); }
  bool binary(binary_t&) override { return one(); }
  bool start_object(std::size_t) override { return ++depth_ <= kMostDepth && one(); }
  bool key(string_t&) override { return true; }
  bool end_object() override { return --depth_, true; }
  bool start_array(std::size_t) override { return ++depth_ <= kMostDepth && one(); }
  bool end_array() override { return --depth_, true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool one() { return ++values_ <= kMostValues; }

  std::size_t depth_ = 0;
  std::size_t values_ = 0;
};

const Json* member(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::unexpected<Error> wrong(const char* name) {
  return fail("its field " + std::string(name) + " is not understood");
}

template <typename Integer>
Result<Integer> integer(const Json& object, const char* name) {
  const Json* const field = member(object, name);
  if (field == nullptr) return Integer{0};
  if (field->is_number_integer()) return field->get<Integer>();
  if (!field->is_string()) return wrong(name);
  const auto& text = field->get_ref<const std::string&>();
  Integer value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc{} || end.ptr != text.data() + text.size()) return wrong(name);
  return value;
}

Result<bool> boolean(const Json& object, const char* name) {
  const Json* const field = member(object, name);
  if (field == nullptr) return false;
  if (!field->is_boolean()) return wrong(name);
  return field->get<bool>();
}

Result<std::string> bytes(const Json& object, const char* name) {
  const Json* const field = member(object, name);
  if (field == nullptr) return std::string();
  if (!field->is_string()) return wrong(name);
  std::optional<std::string> decoded = from_base64(field->get_ref<const std::string&>());
  if (!decoded) return wrong(name);
  return *std::move(decoded);
}

Result<EtcdKeyValue> key_value(const Json& object) {
  if (!object.is_object()) return wrong("kvs");
  Result<std::string> key = bytes(object, "key");
  VPFS_TRY(key);
  Result<std::string> value = bytes(object, "value");
  VPFS_TRY(value);
  const Result<std::int64_t> created = etcd_integer(object, "create_revision");
  VPFS_TRY(created);
  const Result<std::int64_t> modified = etcd_integer(object, "mod_revision");
  VPFS_TRY(modified);
  const Result<std::int64_t> lease = etcd_integer(object, "lease");
  VPFS_TRY(lease);
  return EtcdKeyValue{.key = *std::move(key),
                      .value = *std::move(value),
                      .create_revision = *created,
                      .mod_revision = *modified,
                      .lease = *lease};
}

Result<std::vector<EtcdKeyValue>> key_values(const Json& range) {
  std::vector<EtcdKeyValue> all;
  const Json* const list = member(range, "kvs");
  if (list == nullptr) return all;
  if (!list->is_array()) return wrong("kvs");
  for (const Json& each : *list) {
    Result<EtcdKeyValue> one = key_value(each);
    VPFS_TRY(one);
    all.push_back(*std::move(one));
  }
  return all;
}

Result<std::int64_t> revision_of(const Json& answer) {
  const Json* const header = member(answer, "header");
  if (header == nullptr || !header->is_object()) return wrong("header");
  return etcd_integer(*header, "revision");
}

Json to_json(const EtcdOperation& operation) {
  switch (operation.kind) {
    case EtcdOperation::Kind::put: {
      Json put = {{"key", to_base64(operation.range.key)}, {"value", to_base64(operation.value)}};
      if (operation.lease != 0) put["lease"] = std::to_string(operation.lease);
      return {{"request_put", std::move(put)}};
    }
    case EtcdOperation::Kind::erase: {
      Json erase = {{"key", to_base64(operation.range.key)}};
      if (!operation.range.end.empty()) erase["range_end"] = to_base64(operation.range.end);
      return {{"request_delete_range", std::move(erase)}};
    }
    case EtcdOperation::Kind::range:
      break;
  }
  return {{"request_range", to_json(operation.range)}};
}

Json to_json(const EtcdCompare& compare) {
  const bool is_mod = compare.target == EtcdCompare::Target::mod_revision;
  return {{"result", "EQUAL"},
          {"target", is_mod ? "MOD" : "CREATE"},
          {"key", to_base64(compare.key)},
          {is_mod ? "mod_revision" : "create_revision", std::to_string(compare.revision)}};
}

template <typename Items>
Json list_of(const Items& items) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(to_json(item));
  return list;
}

}  // namespace

EtcdOperation etcd_put(std::string key, std::string value, std::int64_t lease) {
  return {.kind = EtcdOperation::Kind::put,
          .range = {.key = std::move(key)},
          .value = std::move(value),
          .lease = lease};
}

EtcdOperation etcd_erase(std::string key, std::string end) {
  return {.kind = EtcdOperation::Kind::erase,
          .range = {.key = std::move(key), .end = std::move(end)},
          .value = {},
          .lease = 0};
}

EtcdOperation etcd_range(EtcdRange range) {
  return {.kind = EtcdOperation::Kind::range, .range = std::move(range), .value = {}, .lease = 0};
}

std::string end_of_prefix(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (prefix.empty()) return std::string(1, '\0');  // no key is behind
  prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

Json to_json(const EtcdRange& range) {
  Json json = {{"key", to_base64(range.key)}};
  if (!range.end.empty()) json["range_end"] = to_base64(range.end);
  if (range.limit != 0) json["limit"] = std::to_string(range.limit);
  if (range.revision != 0) json["revision"] = std::to_string(range.revision);
  if (range.keys_only) json["keys_only"] = true;
  if (!range.end.empty()) {
    json["sort_target"] = "KEY";
    json["sort_order"] = range.descending ? "DESCEND" : "ASCEND";
  }
  return json;
}

Json to_json(const EtcdTransaction& transaction) {
  return {{"compare", list_of(transaction.compares)},
          {"success", list_of(transaction.success)},
          {"failure", list_of(transaction.failure)}};
}

Result<Json> parse_etcd_json(std::string_view text) {
  Count count;
  if (!Json::sax_parse(text, &count)) return fail("it is not JSON, is cut off, or is too complex");
  Json answer = Json::parse(text, nullptr, false);
  if (!answer.is_object()) return fail("it is not a JSON object");
  return answer;
}

Result<std::int64_t> etcd_integer(const Json& object, const char* name) {
  return integer<std::int64_t>(object, name);
}

Result<std::uint64_t> raft_term_of(const Json& answer) {
  const Json* const header = member(answer, "header");
  if (header == nullptr) return wrong("header");
  return integer<std::uint64_t>(*header, "raft_term");
}

Result<EtcdRangeAnswer> parse_range_answer(const Json& answer) {
  EtcdRangeAnswer range;
  const Result<std::int64_t> revision = revision_of(answer);
  VPFS_TRY(revision);
  range.revision = *revision;
  const Result<std::uint64_t> raft_term = raft_term_of(answer);
  VPFS_TRY(raft_term);
  range.raft_term = *raft_term;
  Result<std::vector<EtcdKeyValue>> found = key_values(answer);
  VPFS_TRY(found);
  range.found = *std::move(found);
  const Result<bool> more = boolean(answer, "more");
  VPFS_TRY(more);
  range.has_more = *more;
  return range;
}

Result<EtcdTransactionAnswer> parse_transaction_answer(const Json& answer) {
  EtcdTransactionAnswer transaction;
  const Result<bool> succeeded = boolean(answer, "succeeded");
  VPFS_TRY(succeeded);
  transaction.succeeded = *succeeded;
  const Result<std::int64_t> revision = revision_of(answer);
  VPFS_TRY(revision);
  transaction.revision = *revision;
  const Json* const responses = member(answer, "responses");
  if (responses == nullptr) return transaction;
  if (!responses->is_array()) return wrong("responses");
  for (const Json& response : *responses) {
    const Json* const range = member(response, "response_range");
    Result<std::vector<EtcdKeyValue>> found = key_values(range != nullptr ? *range : Json());
    VPFS_TRY(found);
    transaction.found.push_back(*std::move(found));
  }
  return transaction;
}

std::optional<EtcdError> parse_etcd_error(const Json& answer) {
  const Json* error = member(answer, "error");
  if (error == nullptr) return std::nullopt;
  // In a stream it is an object.
  if (!error->is_object()) error = &answer;
  const Result<std::int64_t> code = etcd_integer(*error, error == &answer ? "code" : "grpc_code");
  const Json* const message = member(*error, "message");
  return EtcdError{.code = code ? static_cast<int>(*code) : 0,
                   .message = message != nullptr && message->is_string()
                                  ? message->get<std::string>()
                                  : std::string()};
}

EtcdWatchMessage parse_watch_message(std::string_view text) {
  const Result<Json> message = parse_etcd_json(text);
  const Json* const result = message ? member(*message, "result") : nullptr;
  if (result == nullptr) return EtcdWatchMessage::ended;
  const Result<bool> cancelled = boolean(*result, "canceled");
  const Result<std::int64_t> compacted = etcd_integer(*result, "compact_revision");
  if (!cancelled || !compacted) return EtcdWatchMessage::ended;
  if (*cancelled) {
    return *compacted != 0 ? EtcdWatchMessage::compacted : EtcdWatchMessage::ended;
  }
  const Json* const events = member(*result, "events");
  if (events == nullptr) return EtcdWatchMessage::nothing;
  return events->is_array() && !events->empty() ? EtcdWatchMessage::event
                                                : EtcdWatchMessage::nothing;
}

}  // namespace vpfs::control
