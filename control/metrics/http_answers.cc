#include "control/metrics/http_answers.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

#include <asio/post.hpp>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "control/web/web_file.h"

namespace vpfs::control {
namespace {

constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kJsonType = "application/json";

HttpPage json(int status, std::string text) {
  HttpPage made = http_page(status, std::move(text));
  made.type = kJsonType;
  made.more = kWebHeaders;
  return made;
}

std::string error_json(std::string_view text) {
  nlohmann::ordered_json error;
  error["error"] = text;
  return json_text(error) + "\n";
}

HttpPage answer_page(const WebQuestion& question, const Envelope& reply) {
  const auto answer = web_answer(question, reply);
  return answer ? json(200, *answer) : json(503, error_json(answer.error().text()));
}

}  // namespace

HttpPage http_page(int status, std::string text) {
  return {.status = status, .body = std::make_shared<const std::string>(std::move(text))};
}

// Carries answers to the port's thread, from any other and even when the port is gone.
template <typename Item>
class HttpAnswers::Inbox {
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

HttpAnswers::HttpAnswers(asio::io_context& context, HttpSource source, MetricsOptions options,
                         const Clock& clock, const HttpLimits& limits)
    : context_(context),
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

HttpAnswers::~HttpAnswers() {
  inbox_->close();
  replies_->close();
}

net::Task<HttpPage> HttpAnswers::page_of(const HttpRequest& request, bool any_host) {
  if (request.path == "/healthz") co_return http_page(200, "ok\n");
  if (request.path == "/readyz") {
    const std::string problem = source_.not_ready();
    co_return problem.empty() ? http_page(200, "ready\n") : http_page(503, problem + "\n");
  }
  if (request.path == "/metrics") {
    Text text = co_await metrics();
    if (text == nullptr) co_return http_page(503, "the stage gives no statistics\n");
    co_return HttpPage{.type = kMetricsType, .body = std::move(text)};
  }
  const WebFile* const file = source_.ask != nullptr ? find_web_file(request.path) : nullptr;
  const bool is_question = source_.ask != nullptr && is_web_question(request.path);
  if (file == nullptr && !is_question) {
    co_return http_page(404, "there is /metrics, /healthz and /readyz, and / for people\n");
  }
  if (!any_host && !is_own_host(request.host)) {
    co_return http_page(403, "use an address or localhost, not another name\n");
  }
  if (is_question) {
    HttpPage answer = co_await answer_of(request);
    co_return answer;
  }
  co_return HttpPage{.type = file->type,
                     .body = std::make_shared<const std::string>(file->text),
                     .more = kWebHeaders};
}

net::Task<HttpPage> HttpAnswers::answer_of(const HttpRequest& request) {
  const auto question = read_web_question(request.path, request.query, source_.is_site);
  if (!question) co_return json(400, error_json(question.error()));
  const std::string key = question->request.SerializeAsString();
  if (const HttpPage* const known = answered(key)) co_return *known;
  if (waiting_ >= limits_.questions) {
    co_return json(503, error_json("too many ask at once: try again"));
  }
  ++waiting_;
  const bool is_first = co_await turn();
  --waiting_;
  if (!is_first) co_return json(503, error_json("too many ask at once: try again"));
  if (const HttpPage* const known = answered(key)) {
    end_turn({});
    co_return *known;
  }
  const TimePoint begin = clock_.now();
  HttpPage made;
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

const HttpPage* HttpAnswers::answered(const std::string& key) const {
  const auto found = answers_.find(key);
  const bool is_fresh = found != answers_.end() && clock_.now() - found->second.at < limits_.fresh;
  return is_fresh ? &found->second.page : nullptr;
}

// Questions are asked one after the other. After each, the port pauses for three times what it
// took, up to kLongestPause. So users that ask all the time leave most of the thread that answers
// to others.
net::Task<bool> HttpAnswers::turn() {
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

void HttpAnswers::end_turn(Duration took) {
  constexpr Duration kLongestPause = std::chrono::milliseconds(300);
  is_asking_ = false;
  free_at_ = clock_.now() + std::min(3 * took, kLongestPause);
  free_.notify_all();
}

net::Task<std::optional<Envelope>> HttpAnswers::ask(const Envelope& question) {
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
net::Task<HttpAnswers::Text> HttpAnswers::metrics() {
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

void HttpAnswers::ask_source() {
  if (source_.metrics != nullptr) {
    return source_.metrics(
        [inbox = inbox_](HttpSource::MakeText make) { inbox->put(std::move(make)); });
  }
  source_.stats([inbox = inbox_, options = options_](StatsReply reply) {
    inbox->put([reply = std::move(reply), options] { return metrics_text(reply, options); });
  });
}

void HttpAnswers::use(std::string text) {
  text_ = std::make_shared<const std::string>(std::move(text));
  text_at_ = clock_.now();
  ++texts_;
  asked_at_.reset();
  made_.notify_all();
}

}  // namespace vpfs::control
