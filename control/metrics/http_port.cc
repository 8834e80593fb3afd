#include "control/metrics/http_port.h"

#include <algorithm>
#include <array>
#include <exception>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "base/result.h"
#include "control/metrics/http_request.h"
#include "control/metrics/metrics.h"
#include "control/web/web_file.h"
#include "control/web/web_question.h"
#include "net/async.h"
#include "net/channel.h"
#include "net/listener.h"
#include "net/signal.h"
#include "net/start_thread.h"
#include "net/tls.h"

namespace vpfs::control {
namespace {

constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kJsonType = "application/json";
constexpr const char* kNoReader =
    "the names in your certificate are in neither control.readers nor control.writers\n";

using Text = std::shared_ptr<const std::string>;  // shared by the answers that are being sent

struct Page {
  int status = 200;
  std::string_view type = HttpAnswer().type;
  Text body;
  std::string_view more = "";  // lines of the head
};

Page page(int status, std::string text) {
  return {.status = status, .body = std::make_shared<const std::string>(std::move(text))};
}

Page json(int status, std::string text) {
  Page made = page(status, std::move(text));
  made.type = kJsonType;
  made.more = kWebHeaders;
  return made;
}

std::string error_json(std::string_view text) {
  nlohmann::ordered_json error;
  error["error"] = text;
  return error.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Page answer_page(const WebQuestion& question, const Envelope& reply) {
  const auto answer = web_answer(question, reply);
  return answer ? json(200, *answer) : json(503, error_json(answer.error().text()));
}

Result<net::Endpoint> loopback_endpoint(const std::string& address) {
  VPFS_TRY(check_loopback(address));
  Result<net::Endpoint> endpoint = net::resolve_endpoint(address);
  VPFS_TRY(endpoint);
  // A name server could give localhost another address.
  if (!endpoint->address().is_loopback()) {
    return fail(address + " is not a loopback address on this host");
  }
  return endpoint;
}

// Carries answers to the port's thread, from any other and even when the port is gone.
template <typename Item>
class Inbox {
 public:
  explicit Inbox(std::function<void(Item)> deliver) : deliver_(std::move(deliver)) {}

  void put(Item item) {
    const std::lock_guard lock(mutex_);
    if (deliver_) deliver_(std::move(item));
  }
  void close() {
    const std::lock_guard lock(mutex_);
    deliver_ = nullptr;
  }

 private:
  std::mutex mutex_;
  std::function<void(Item)> deliver_;
};

struct Reply {
  std::uint64_t question = 0;
  Envelope envelope;
};

struct HttpConnection {
  HttpConnection(std::unique_ptr<net::Channel> from, std::string of, asio::io_context& context)
      : channel(std::move(from)), peer(std::move(of)), deadline(context) {}

  void close() {
    is_open = false;
    channel->close();
  }

  const std::unique_ptr<net::Channel> channel;
  const std::string peer;  // its address
  asio::steady_timer deadline;
  bool is_open = true;
  bool asked = false;  // its request is complete
};
using HttpConnectionPtr = std::shared_ptr<HttpConnection>;  // its coroutine and its timer share it

}  // namespace

class HttpPort::State {
 public:
  State(HttpSource source, MetricsOptions options, const Clock& clock, HttpLimits limits,
        std::optional<HttpTls> tls)
      : tls_(std::move(tls)),
        source_(std::move(source)),
        options_(std::move(options)),
        clock_(clock),
        limits_(limits),
        made_(context_.get_executor()),
        inbox_(std::make_shared<Inbox<HttpSource::MakeText>>([this](HttpSource::MakeText make) {
          asio::post(context_, [this, make = std::move(make)] { use(make()); });
        })),
        free_(context_.get_executor()),
        replied_(context_.get_executor()),
        replies_(std::make_shared<Inbox<Reply>>([this](Reply reply) {
          asio::post(context_, [this, reply = std::move(reply)]() mutable {
            const auto asked = questions_.find(reply.question);
            if (asked == questions_.end()) return;  // its patience is over
            asked->second = std::move(reply.envelope);
            replied_.notify_all();
          });
        })) {}
  ~State() {
    inbox_->close();
    replies_->close();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Result<net::Endpoint> listen(const net::Endpoint& endpoint) {
    Result<net::Listener> listener = net::Listener::open(context_, endpoint);
    VPFS_TRY(listener);
    listener_.emplace(std::move(*listener));
    listener_->start([this](net::Socket socket) { accepted(std::move(socket)); });
    return listener_->local_endpoint();
  }
  void run() {
    for (;;) {
      try {
        context_.run();
        return;
      } catch (const std::exception& problem) {
        // An exception of a library, such as for want of memory, must not end the stage.
        spdlog::error("control.http: {}", problem.what());
      }
    }
  }
  void use(HttpTls tls) {
    asio::post(context_, [this, tls = std::move(tls)]() mutable { tls_ = std::move(tls); });
  }
  // Ends run().
  void stop() { context_.stop(); }
  // After run(): ends all that uses a channel, before the channels are destroyed.
  void close() {
    listener_.reset();
    for (const HttpConnectionPtr& each : connections_) {
      each->deadline.cancel();
      each->close();
    }
    context_.restart();
    context_.poll();
  }

 private:
  void accepted(net::Socket socket);
  [[nodiscard]] std::unique_ptr<net::Channel> channel_of(net::Socket socket) const;
  void make_room();
  net::Task<> serve(HttpConnectionPtr connection);
  net::Task<std::string> head_of(HttpConnection& connection, int& problem);
  net::Task<> answer(HttpConnection& connection);
  net::Task<Page> page_of(const HttpRequest& request);
  net::Task<Text> metrics();
  net::Task<Page> answer_of(const HttpRequest& request);
  [[nodiscard]] const Page* answered(const std::string& key) const;
  net::Task<bool> turn();
  void end_turn(Duration took);
  net::Task<std::optional<Envelope>> ask(const Envelope& question);
  void ask_source();
  void use(std::string text);
  net::Task<> send(HttpConnection& connection, const Page& page, bool head_only);

  asio::io_context context_{1};
  std::optional<HttpTls> tls_;  // of new connections
  HttpSource source_;
  const MetricsOptions options_;
  const Clock& clock_;
  const HttpLimits limits_;
  std::optional<net::Listener> listener_;
  std::list<HttpConnectionPtr> connections_;  // the oldest first
  Text text_;
  TimePoint text_at_ = {};
  std::uint64_t texts_ = 0;
  std::optional<TimePoint> asked_at_;                   // while an answer is to come
  net::Signal made_;                                    // a text
  std::shared_ptr<Inbox<HttpSource::MakeText>> inbox_;  // shared with answers to come
  // What was answered in the last moment, by question.
  struct Answered {
    Page page;
    TimePoint at = {};
  };
  std::map<std::string, Answered> answers_;
  std::size_t waiting_ = 0;  // questions whose turn is to come
  bool is_asking_ = false;
  TimePoint free_at_ = {};  // the next may be asked
  net::Signal free_;
  // Questions of the page; nothing: the reply is to come.
  std::map<std::uint64_t, std::optional<Envelope>> questions_;
  std::uint64_t last_question_ = 0;
  net::Signal replied_;
  std::shared_ptr<Inbox<Reply>> replies_;  // shared likewise
};

void HttpPort::State::accepted(net::Socket socket) {
  if (connections_.size() >= limits_.connections) make_room();
  std::error_code gone;
  const auto peer = socket.remote_endpoint(gone);
  if (gone) return;
  auto connection = std::make_shared<HttpConnection>(channel_of(std::move(socket)),
                                                     peer.address().to_string(), context_);
  connections_.push_back(connection);
  connection->deadline.expires_after(limits_.patience);
  connection->deadline.async_wait([connection](std::error_code error) {
    if (!error) connection->close();
  });
  asio::co_spawn(context_, serve(connection), asio::detached);
}

// The address with the most connections loses its oldest one that has asked for nothing yet.
void HttpPort::State::make_room() {
  std::map<std::string_view, std::size_t> of_peer;
  for (const HttpConnectionPtr& each : connections_) ++of_peer[each->peer];
  const auto goes_before = [&](const HttpConnectionPtr& one, const HttpConnectionPtr& other) {
    if (one->asked != other->asked) return !one->asked;
    return of_peer[one->peer] > of_peer[other->peer];
  };
  const auto last = std::ranges::min_element(connections_, goes_before);
  (*last)->deadline.cancel();
  (*last)->close();
  connections_.erase(last);
}

std::unique_ptr<net::Channel> HttpPort::State::channel_of(net::Socket socket) const {
  net::StreamSocket stream(std::move(socket));
  return tls_ ? net::accept_tls(std::move(stream), tls_->context)
              : net::make_plain_channel(std::move(stream));
}

net::Task<> HttpPort::State::serve(HttpConnectionPtr connection) {
  try {
    const Result<void> shaken = co_await connection->channel->handshake();
    if (shaken) co_await answer(*connection);
  } catch (const std::exception& problem) {
    spdlog::error("control.http: {}", problem.what());
  }
  connection->deadline.cancel();
  connection->close();
  connections_.remove(connection);
}

net::Task<> HttpPort::State::answer(HttpConnection& connection) {
  int problem = 0;
  const std::string head = co_await head_of(connection, problem);
  connection.asked = true;
  if (!connection.is_open || (problem == 0 && head.empty())) co_return;
  const auto request = problem == 0 ? parse_request(head) : std::unexpected(problem);
  if (!request) {
    const Page refusal = page(request.error(), "this port serves GET and HEAD of HTTP/1.1\n");
    co_await send(connection, refusal, false);
  } else if (tls_ && !tls_->may_read(connection.channel->peer_names())) {
    const Page refusal = page(403, kNoReader);
    co_await send(connection, refusal, request->head_only);
  } else {
    const Page found = co_await page_of(*request);
    co_await send(connection, found, request->head_only);
  }
}

// "": the client ended first.
net::Task<std::string> HttpPort::State::head_of(HttpConnection& connection, int& problem) {
  std::string head;
  std::array<std::byte, 2048> part = {};
  while (head_size(head) == 0 && problem == 0) {
    const net::Transfer got = co_await connection.channel->read_some(part);
    if (got.error) {
      head.clear();
      break;
    }
    head.append(reinterpret_cast<const char*>(part.data()), got.size);
    if (!may_be_request(head)) problem = 400;
    if (head_size(head) == 0 && head.size() >= limits_.head) problem = 431;
  }
  co_return head;
}

net::Task<Page> HttpPort::State::page_of(const HttpRequest& request) {
  if (request.path == "/healthz") co_return page(200, "ok\n");
  if (request.path == "/readyz") {
    const std::string problem = source_.not_ready();
    co_return problem.empty() ? page(200, "ready\n") : page(503, problem + "\n");
  }
  if (request.path == "/metrics") {
    Text text = co_await metrics();
    if (text == nullptr) co_return page(503, "the stage gives no statistics\n");
    co_return Page{.type = kMetricsType, .body = std::move(text)};
  }
  const WebFile* const file = source_.ask != nullptr ? find_web_file(request.path) : nullptr;
  const bool is_question = source_.ask != nullptr && is_web_question(request.path);
  if (file == nullptr && !is_question) {
    co_return page(404, "there is /metrics, /healthz and /readyz, and / for people\n");
  }
  // With TLS, a foreign page cannot have its name lead here: the certificate has other names.
  if (!tls_ && !is_own_host(request.host)) {
    co_return page(403, "use an address or localhost, not another name\n");
  }
  if (is_question) {
    Page answer = co_await answer_of(request);
    co_return answer;
  }
  co_return Page{.type = file->type,
                 .body = std::make_shared<const std::string>(file->text),
                 .more = kWebHeaders};
}

net::Task<Page> HttpPort::State::answer_of(const HttpRequest& request) {
  const auto question = read_web_question(request.path, request.query, source_.is_site);
  if (!question) co_return json(400, error_json(question.error()));
  const std::string key = question->request.SerializeAsString();
  if (const Page* const known = answered(key)) co_return *known;
  if (waiting_ >= limits_.questions) {
    co_return json(503, error_json("too many ask at once: try again"));
  }
  ++waiting_;
  const bool is_first = co_await turn();
  --waiting_;
  if (!is_first) co_return json(503, error_json("too many ask at once: try again"));
  if (const Page* const known = answered(key)) {
    end_turn({});
    co_return *known;
  }
  const TimePoint begin = clock_.now();
  Page made;
  try {
    const std::optional<Envelope> reply = co_await ask(question->request);
    made = reply ? answer_page(*question, *reply)
                 : json(503, error_json("there is no answer in time"));
  } catch (const std::exception& problem) {
    made = json(503, error_json(problem.what()));
  }
  end_turn(clock_.now() - begin);
  std::erase_if(answers_, [this](const auto& each) {
    return clock_.now() - each.second.at >= limits_.fresh;
  });
  if (answers_.size() >= limits_.answers) answers_.clear();
  if (made.status == 200) answers_[key] = {.page = made, .at = clock_.now()};
  co_return made;
}

const Page* HttpPort::State::answered(const std::string& key) const {
  const auto found = answers_.find(key);
  const bool is_fresh = found != answers_.end() && clock_.now() - found->second.at < limits_.fresh;
  return is_fresh ? &found->second.page : nullptr;
}

// Questions are asked one after the other. After each, the port pauses for three times what it
// took, up to kLongestPause. So users that ask all the time leave most of the thread that answers
// to others.
net::Task<bool> HttpPort::State::turn() {
  const TimePoint end = clock_.now() + limits_.stats_patience;
  while (is_asking_ || clock_.now() < free_at_) {
    const TimePoint now = clock_.now();
    if (now >= end) co_return false;
    const Duration pause = is_asking_ ? end - now : std::min(end, free_at_) - now;
    (void)co_await free_.wait_for(pause);
  }
  is_asking_ = true;
  co_return true;
}

void HttpPort::State::end_turn(Duration took) {
  constexpr Duration kLongestPause = std::chrono::milliseconds(300);
  is_asking_ = false;
  free_at_ = clock_.now() + std::min(3 * took, kLongestPause);
  free_.notify_all();
}

net::Task<std::optional<Envelope>> HttpPort::State::ask(const Envelope& question) {
  const std::uint64_t number = ++last_question_;
  questions_.emplace(number, std::nullopt);
  source_.ask(question, [inbox = replies_, number](Envelope reply) {
    inbox->put({.question = number, .envelope = std::move(reply)});
  });
  const TimePoint end = clock_.now() + limits_.stats_patience;
  bool is_in_time = true;
  while (is_in_time && !questions_.at(number)) {
    is_in_time = co_await replied_.wait_for(end - clock_.now());
  }
  std::optional<Envelope> reply = std::move(questions_.at(number));
  questions_.erase(number);
  co_return reply;
}

// All requests of a moment share one text.
net::Task<Text> HttpPort::State::metrics() {
  const TimePoint now = clock_.now();
  if (text_ != nullptr && now - text_at_ < limits_.fresh) co_return text_;
  if (!asked_at_ || now - *asked_at_ >= limits_.stats_patience) {
    asked_at_ = now;
    ask_source();
  }
  const std::uint64_t before = texts_;
  const bool came = co_await made_.wait_for(limits_.stats_patience);
  co_return came&& texts_ != before ? text_ : nullptr;
}

void HttpPort::State::ask_source() {
  if (source_.metrics != nullptr) {
    return source_.metrics(
        [inbox = inbox_](HttpSource::MakeText make) { inbox->put(std::move(make)); });
  }
  source_.stats([inbox = inbox_, options = options_](StatsReply reply) {
    inbox->put([reply = std::move(reply), options] { return metrics_text(reply, options); });
  });
}

void HttpPort::State::use(std::string text) {
  text_ = std::make_shared<const std::string>(std::move(text));
  text_at_ = clock_.now();
  ++texts_;
  asked_at_.reset();
  made_.notify_all();
}

net::Task<> HttpPort::State::send(HttpConnection& connection, const Page& page, bool head_only) {
  const std::string head = answer_head(
      {.status = page.status, .type = page.type, .size = page.body->size(), .more = page.more});
  const std::string_view body = head_only ? std::string_view() : std::string_view(*page.body);
  std::error_code gone = co_await connection.channel->write(std::as_bytes(std::span(head)));
  if (!gone) gone = co_await connection.channel->write(std::as_bytes(std::span(body)));
  if (!gone) connection.channel->end_output();
  // A connection that is closed with unread bytes takes back what was sent.
  std::array<std::byte, 2048> rest = {};
  for (std::size_t left = limits_.head; !gone && left > 0;) {
    const net::Transfer got = co_await connection.channel->read_some(rest);
    gone = got.error;
    left -= std::min(left, got.size);
  }
}

HttpPort::HttpPort(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpPort::~HttpPort() {
  state_->stop();
  if (thread_.joinable()) thread_.join();
  state_->close();
}

void HttpPort::use(HttpTls tls) {
  state_->use(std::move(tls));
}

Result<std::unique_ptr<HttpPort>> HttpPort::open(const HttpConfig& config, HttpSource source,
                                                 std::string version, const Clock& clock,
                                                 HttpLimits limits, std::optional<HttpTls> tls) {
  const bool has_tls = tls.has_value();
  const std::string& address = has_tls ? config.tls_address : config.address;
  const auto refused = [has_tls](const vpfs::Error& error) {
    return fail((has_tls ? "control.https: " : "control.http: ") + error.message, error.code);
  };
  const Result<net::Endpoint> endpoint =
      has_tls ? net::resolve_endpoint(address) : loopback_endpoint(address);
  if (!endpoint) return refused(endpoint.error());
  auto state = std::make_unique<State>(
      std::move(source),
      MetricsOptions{.version = std::move(version), .most_virtual_pfs = config.most_virtual_pfs},
      clock, limits, std::move(tls));
  const Result<net::Endpoint> local = state->listen(*endpoint);
  if (!local) return refused(local.error());
  std::unique_ptr<HttpPort> port(new HttpPort(std::move(state)));
  port->endpoint_ = *local;
  Result<std::thread> thread = net::start_thread([&state = *port->state_] { state.run(); });
  if (!thread) return refused(thread.error());
  port->thread_ = std::move(*thread);
  return port;
}

}  // namespace vpfs::control
