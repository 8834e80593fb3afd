#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <asio/io_context.hpp>

#include "base/clock.h"
#include "control/metrics/http_request.h"
#include "control/metrics/metrics.h"
#include "control/web/web_question.h"
#include "control/wire/control.pb.h"
#include "net/async.h"
#include "net/signal.h"

namespace vpfs::control {

// The stage or coordinator that an HTTP port tells of. All are called on the port's thread and must
// not block.
struct HttpSource {
  // Calls `answer` once with the statistics and the rules, at once or later, from any thread, also
  // when the port is gone. A request without an answer fails after a while.
  std::function<void(std::function<void(StatsReply)> answer)> stats;
  // Why the stage cannot serve clients; "": it can.
  std::function<std::string()> not_ready;
  // Used instead of `stats` by programs that are not stages. Calls `answer` once, likewise, with a
  // function that makes the text and is called on the port's thread.
  using MakeText = std::function<std::string()>;
  std::function<void(std::function<void(MakeText)> answer)> metrics = nullptr;
  // What the page asks, as one that may read. Calls `answer` once, likewise. Nothing: there is no
  // page.
  std::function<void(Envelope question, std::function<void(Envelope)> answer)> ask = nullptr;
  bool is_site = false;  // the page is a coordinator's
};

struct HttpLimits {
  // Beyond it, one of the address that has the most is closed: the oldest that has sent nothing
  // complete, or else the oldest.
  std::size_t connections = 64;
  std::size_t head = std::size_t{8} * 1024;
  Duration patience = std::chrono::seconds(5);  // for a request, and for each piece of its answer
  Duration sending = std::chrono::minutes(1);   // for all of the answer
  Duration stats_patience = std::chrono::seconds(2);
  Duration fresh = std::chrono::seconds(1);  // metrics are made at most this often
  std::size_t questions = 8;                 // that may wait for their turn; others are refused
  std::size_t answers = 16;                  // that are kept for those that ask the same
};

struct HttpPage {
  int status = 200;
  std::string_view type = HttpAnswer().type;
  std::shared_ptr<const std::string> body;  // shared by the answers that are being sent
  std::string_view more = "";               // lines of the head
};
[[nodiscard]] HttpPage http_page(int status, std::string text);

// What an HTTP port answers, whatever way a request came. Belongs to the port's thread.
class HttpAnswers {
 public:
  // `context` and `clock` outlive it. Coroutines that wait for a page end with `context`.
  HttpAnswers(asio::io_context& context, HttpSource source, MetricsOptions options,
              const Clock& clock, const HttpLimits& limits);
  ~HttpAnswers();
  HttpAnswers(const HttpAnswers&) = delete;
  HttpAnswers& operator=(const HttpAnswers&) = delete;

  // `any_host`: the request's Host is not looked at, since no foreign page can have sent it.
  [[nodiscard]] net::Task<HttpPage> page_of(const HttpRequest& request, bool any_host);

 private:
  using Text = std::shared_ptr<const std::string>;
  struct Reply {
    std::uint64_t question = 0;
    Envelope envelope;
  };
  template <typename Item>
  class Inbox;

  net::Task<Text> metrics();
  net::Task<HttpPage> answer_of(const HttpRequest& request);
  [[nodiscard]] const HttpPage* answered(const std::string& key) const;
  net::Task<bool> turn();
  void end_turn(Duration took);
  net::Task<std::optional<Envelope>> ask(const Envelope& question);
  void ask_source();
  void use(std::string text);

  asio::io_context& context_;
  const HttpSource source_;
  const MetricsOptions options_;
  const Clock& clock_;
  const HttpLimits limits_;
  Text text_;
  TimePoint text_at_ = {};
  std::uint64_t texts_ = 0;
  std::optional<TimePoint> asked_at_;                   // while an answer is to come
  net::Signal made_;                                    // a text
  std::shared_ptr<Inbox<HttpSource::MakeText>> inbox_;  // shared with answers to come
  // What was answered in the last moment, by question.
  struct Answered {
    HttpPage page;
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

}  // namespace vpfs::control
