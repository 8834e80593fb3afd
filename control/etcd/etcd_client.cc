#include "control/etcd/etcd_client.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/one_line.h"

namespace vpfs::control {
namespace {

using Json = nlohmann::json;
using EtcdWhy = EtcdFailure::Why;

// A watch is told of few small keys.
constexpr std::size_t kMostWatchMessage = std::size_t{1} << 20;

// Codes of gRPC.
constexpr int kCancelled = 1;
constexpr int kDeadlineExceeded = 4;
constexpr int kNotFound = 5;
constexpr int kResourceExhausted = 8;
constexpr int kAborted = 10;
constexpr int kOutOfRange = 11;
constexpr int kUnavailable = 14;
constexpr int kUnauthenticated = 16;

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

EtcdWhy why_of(int status, const std::optional<EtcdError>& error) {
  if (!error) return status >= 500 ? EtcdWhy::unreachable : EtcdWhy::refused;
  const std::string& message = error->message;
  if (error->code == kUnauthenticated || has(message, "invalid auth token") ||
      has(message, "auth: revision in header is old")) {
    return EtcdWhy::denied;
  }
  switch (error->code) {
    case kCancelled:
    case kDeadlineExceeded:
    case kAborted:
    case kUnavailable:
      return EtcdWhy::unreachable;
    case kResourceExhausted:
      return has(message, "too many requests") ? EtcdWhy::unreachable : EtcdWhy::refused;
    case kNotFound:
      return EtcdWhy::not_found;
    case kOutOfRange:
      return has(message, "compacted") ? EtcdWhy::compacted : EtcdWhy::refused;
    default:
      break;
  }
  // "etcdserver: request timed out" has no code of its own in some versions.
  return has(message, "timed out") || has(message, "no leader") || has(message, "leader changed")
             ? EtcdWhy::unreachable
             : EtcdWhy::refused;
}

// Never throws: what is not UTF-8 in a password is replaced.
std::string text_of(const Json& request) {
  return json_text(request);
}

Result<void> check_url(const std::string& url) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (!url.starts_with(scheme)) continue;
    const std::string_view rest = std::string_view(url).substr(scheme.size());
    const std::size_t colon = rest.rfind(':');
    if (colon == 0 || colon == std::string_view::npos || colon + 1 == rest.size()) break;
    if (rest.find_first_not_of("0123456789", colon + 1) != std::string_view::npos) break;
    if (rest.find_first_of("/?#@ ") != std::string_view::npos) break;
    return {};
  }
  return fail("'" + one_short_line(url) + "' is not https://HOST:PORT or http://HOST:PORT");
}

EtcdFailure not_understood(const std::string& problem) {
  return {.why = EtcdWhy::unreachable, .text = "the answer of etcd is not understood: " + problem};
}

template <typename T>
EtcdOutcome<T> understood(Result<T> parsed) {
  if (!parsed) return std::unexpected(not_understood(parsed.error().message));
  return *std::move(parsed);
}

EtcdOutcome<EtcdClient::Lease> lease_of(const Json& answer) {
  const Result<std::int64_t> id = etcd_integer(answer, "ID");
  if (!id) return std::unexpected(not_understood(id.error().message));
  const Result<std::int64_t> seconds = etcd_integer(answer, "TTL");
  if (!seconds) return std::unexpected(not_understood(seconds.error().message));
  const Result<std::uint64_t> raft_term = raft_term_of(answer);
  if (!raft_term) return std::unexpected(not_understood(raft_term.error().message));
  constexpr std::int64_t kMostSeconds = 1'000'000'000;
  if (*seconds > kMostSeconds) return std::unexpected(not_understood("its field TTL is too large"));
  return EtcdClient::Lease{
      .id = *id, .time = std::chrono::seconds(*seconds), .raft_term = *raft_term};
}

}  // namespace

EtcdClient::EtcdClient(EtcdSettings settings, const Clock& clock, std::unique_ptr<CallGuard> guard)
    : settings_(std::move(settings)),
      clock_(clock),
      guard_(std::move(guard)),
      authentication_time_out_(settings_.call_time_out) {}

EtcdClient::~EtcdClient() = default;

Result<std::unique_ptr<EtcdClient>> EtcdClient::make(EtcdSettings settings, const Clock& clock) {
  if (settings.endpoints.empty()) return fail("there is no endpoint of etcd");
  for (const std::string& url : settings.endpoints) VPFS_TRY(check_url(url));
  Result<std::unique_ptr<CallGuard>> guard = CallGuard::start();
  VPFS_TRY(guard);
  std::unique_ptr<EtcdClient> client(new EtcdClient(std::move(settings), clock, *std::move(guard)));
  for (const std::string& url : client->settings_.endpoints) {
    auto endpoint = std::make_unique<HttpEndpoint>(
        HttpEndpoint::Settings{.url = url,
                               .files = client->settings_.files,
                               .connect_time_out = client->settings_.connect_time_out},
        *client->guard_, clock);
    VPFS_TRY(endpoint->check_files());
    client->endpoints_.push_back(std::move(endpoint));
  }
  return client;
}

EtcdOutcome<EtcdTransactionAnswer> EtcdClient::transact(const EtcdTransaction& transaction,
                                                        Repeat repeat) {
  const EtcdOutcome<Json> answer = call("/v3/kv/txn", to_json(transaction), repeat);
  VPFS_TRY(answer);
  EtcdOutcome<EtcdTransactionAnswer> parsed = understood(parse_transaction_answer(*answer));
  VPFS_TRY(parsed);
  // So that callers need not count.
  const auto& operations = parsed->succeeded ? transaction.success : transaction.failure;
  parsed->found.resize(operations.size());
  return parsed;
}

EtcdOutcome<EtcdRangeAnswer> EtcdClient::range(const EtcdRange& range) {
  const EtcdOutcome<Json> answer = call("/v3/kv/range", to_json(range), Repeat::yes);
  VPFS_TRY(answer);
  return understood(parse_range_answer(*answer));
}

EtcdOutcome<void> EtcdClient::put(std::string key, std::string value) {
  const EtcdTransaction one = {
      .compares = {}, .success = {etcd_put(std::move(key), std::move(value))}, .failure = {}};
  VPFS_TRY(transact(one, Repeat::no));
  return {};
}

EtcdOutcome<void> EtcdClient::erase(std::string key, std::string end) {
  const EtcdTransaction one = {
      .compares = {}, .success = {etcd_erase(std::move(key), std::move(end))}, .failure = {}};
  VPFS_TRY(transact(one, Repeat::no));
  return {};
}

EtcdOutcome<EtcdClient::Lease> EtcdClient::grant_lease(std::chrono::seconds time) {
  // One that is granted twice ends by itself.
  const EtcdOutcome<Json> answer =
      call("/v3/lease/grant", {{"TTL", std::to_string(time.count())}}, Repeat::yes);
  VPFS_TRY(answer);
  EtcdOutcome<Lease> lease = lease_of(*answer);
  if (lease && lease->id == 0) return std::unexpected(not_understood("it has no lease"));
  return lease;
}

EtcdOutcome<EtcdClient::Lease> EtcdClient::keep_alive(std::int64_t lease) {
  const EtcdOutcome<Json> answer =
      call("/v3/lease/keepalive", {{"ID", std::to_string(lease)}}, Repeat::yes);
  VPFS_TRY(answer);
  const auto result = answer->find("result");
  if (result == answer->end()) return std::unexpected(not_understood("it has no result"));
  EtcdOutcome<Lease> kept = lease_of(*result);
  if (kept && kept->time == Duration::zero()) {
    return std::unexpected(EtcdFailure{.why = EtcdWhy::not_found, .text = "the lease has ended"});
  }
  return kept;
}

EtcdOutcome<void> EtcdClient::revoke_lease(std::int64_t lease) {
  VPFS_TRY(call("/v3/lease/revoke", {{"ID", std::to_string(lease)}}, Repeat::yes));
  return {};
}

EtcdOutcome<Json> EtcdClient::call(const char* path, const Json& request, Repeat repeat) {
  HttpEndpoint::Call call = {.path = path,
                             .token = {},
                             .body = text_of(request),
                             .time_out = settings_.call_time_out,
                             .patience = {}};
  // Tokens end: etcd forgets them after a time, and at a restart.
  for (bool is_second = false;; is_second = true) {
    VPFS_TRY(authenticate());
    call.token = token_;
    EtcdOutcome<Json> answer = send(call, repeat);
    if (answer || answer.error().why != EtcdWhy::denied) return answer;
    token_.clear();
    if (is_second || settings_.user.empty()) {
      answer.error().why = EtcdWhy::refused;
      return answer;
    }
  }
}

EtcdOutcome<void> EtcdClient::authenticate() {
  if (settings_.user.empty() || !token_.empty()) return {};
  const Json request = {{"name", settings_.user}, {"password", settings_.password}};
  EtcdOutcome<Json> answer = send({.path = "/v3/auth/authenticate",
                                   .token = {},
                                   .body = text_of(request),
                                   .time_out = authentication_time_out_,
                                   .patience = {}},
                                  Repeat::yes);
  if (!answer) {
    const Duration longest = std::max(kLongestAuthentication, settings_.call_time_out);
    if (answer.error().has_timed_out) {
      authentication_time_out_ = std::min(2 * authentication_time_out_, longest);
    }
    if (answer.error().why == EtcdWhy::denied) answer.error().why = EtcdWhy::refused;
    return std::unexpected(answer.error());
  }
  const auto token = answer->find("token");
  if (token == answer->end() || !token->is_string()) {
    return std::unexpected(not_understood("it has no token"));
  }
  token_ = token->get<std::string>();
  authentication_time_out_ = std::max(authentication_time_out_ / 2, settings_.call_time_out);
  return {};
}

EtcdOutcome<Json> EtcdClient::send(const HttpEndpoint::Call& call, Repeat repeat) {
  std::string problems;
  bool has_timed_out = false;
  for (std::size_t tried = 0; tried < endpoints_.size(); ++tried) {
    const std::size_t index = (first_ + tried) % endpoints_.size();
    HttpEndpoint& endpoint = *endpoints_[index];
    ++requests_;
    auto answer = endpoint.post(call, kMostAnswer);
    if (!answer && answer.error().was_kept && !guard_->is_cancelled() &&
        answer.error().why == HttpEndpoint::Failure::Why::failed && repeat == Repeat::yes) {
      ++requests_;
      answer = endpoint.post(call, kMostAnswer);  // on a new connection
    }
    bool may_be_done = true;
    if (answer) {
      EtcdOutcome<Json> judged = judge(endpoint, call.path, *answer);
      if (judged || judged.error().why != EtcdWhy::unreachable) {
        first_ = index;
        return judged;
      }
      problems += (problems.empty() ? "" : "; ") + judged.error().text;
    } else {
      const auto& failure = answer.error();
      may_be_done = failure.was_sent;
      has_timed_out |= failure.why == HttpEndpoint::Failure::Why::timed_out;
      problems += fmt::format("{}etcd at {} {}", problems.empty() ? "" : "; ", endpoint.url(),
                              failure.text);
      if (failure.why == HttpEndpoint::Failure::Why::too_large) {
        return std::unexpected(EtcdFailure{.why = EtcdWhy::too_large, .text = std::move(problems)});
      }
    }
    if (guard_->is_cancelled() || (may_be_done && repeat == Repeat::no)) break;
  }
  return std::unexpected(EtcdFailure{
      .why = EtcdWhy::unreachable, .text = std::move(problems), .has_timed_out = has_timed_out});
}

EtcdOutcome<Json> EtcdClient::judge(const HttpEndpoint& endpoint, const std::string& path,
                                    const HttpEndpoint::Answer& answer) {
  Result<Json> body = parse_etcd_json(answer.body);
  const bool is_ok = answer.status == 200;
  std::optional<EtcdError> error = body ? parse_etcd_error(*body) : std::nullopt;
  if (is_ok && body && !error) return *std::move(body);
  if (!error && (is_ok || answer.may_be_cut)) {
    return std::unexpected(EtcdFailure{
        .why = EtcdWhy::unreachable,
        .text = fmt::format("etcd at {} gave an answer to {} that is not understood: {}",
                            endpoint.url(), path, body ? "it is cut off" : body.error().message)});
  }
  std::string said = error ? error->message : answer.body;
  while (said.ends_with('\n')) said.pop_back();
  if (has(said, "CommonName of client")) {
    said += " (with a user, it needs a client certificate without a common name)";
  }
  return std::unexpected(EtcdFailure{
      .why = why_of(answer.status, error),
      .text = fmt::format("etcd at {} answered {} with HTTP {}{}: {}", endpoint.url(), path,
                          answer.status, error ? fmt::format(", code {}", error->code) : "",
                          one_short_line(said))});
}

EtcdClient::Watched EtcdClient::watch(const std::vector<std::string>& keys, std::int64_t revision,
                                      Duration patience) {
  if (const EtcdOutcome<void> allowed = authenticate(); !allowed) return Watched::broken;
  HttpEndpoint::Call call = {.path = "/v3/watch",
                             .token = token_,
                             .body = {},
                             .time_out = settings_.call_time_out,
                             .patience = patience};
  for (const std::string& key : keys) {
    Json create = to_json(EtcdRange{.key = key});
    if (revision != 0) create["start_revision"] = std::to_string(revision + 1);
    create["watch_id"] = std::to_string(&key - keys.data() + 1);
    call.body += text_of({{"create_request", std::move(create)}}) + "\n";
  }
  EtcdWatchMessage last = EtcdWatchMessage::nothing;
  std::string rest;  // of a line
  const auto receive = [&](int status, std::string_view part) {
    if (status != 200) last = EtcdWatchMessage::ended;
    rest += part;
    for (std::size_t end = 0;
         last == EtcdWatchMessage::nothing && (end = rest.find('\n')) != std::string::npos;) {
      last = parse_watch_message(std::string_view(rest).substr(0, end));
      rest.erase(0, end + 1);
    }
    if (rest.size() > kMostWatchMessage) last = EtcdWatchMessage::ended;
    return last == EtcdWatchMessage::nothing;
  };
  const TimePoint end = clock_.now() + patience;
  for (std::size_t tried = 0; tried < endpoints_.size() && !guard_->is_cancelled(); ++tried) {
    call.patience = end - clock_.now();
    if (call.patience <= Duration::zero()) return Watched::nothing;
    const std::size_t index = (first_ + tried) % endpoints_.size();
    ++requests_;
    const auto done = endpoints_[index]->stream(call, receive);
    if (last == EtcdWatchMessage::event || last == EtcdWatchMessage::compacted) {
      return Watched::event;
    }
    if (last == EtcdWatchMessage::ended) {
      token_.clear();  // etcd does not say whether that is the reason
      return Watched::broken;
    }
    if (done) return Watched::broken;
    if (clock_.now() >= end) return Watched::nothing;
    rest.clear();
  }
  return Watched::broken;
}

}  // namespace vpfs::control
