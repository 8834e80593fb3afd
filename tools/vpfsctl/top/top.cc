#include "tools/vpfsctl/top/top.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <utility>

#include <asio/steady_timer.hpp>
#include <fmt/format.h>

#include "control/words/printable.h"
#include "tools/vpfsctl/top/top_model.h"
#include "tools/vpfsctl/top/top_poller.h"
#include "tools/vpfsctl/top/top_screen.h"
#include "tools/vpfsctl/top/top_table.h"

namespace vpfs::ctl {
namespace {

using namespace std::chrono_literals;

constexpr int kEscape = 27;

void wait_for(Duration time) {
  asio::io_context context;
  asio::steady_timer(context, time).wait();
}

void add(const ProxyAnswer& answer, std::size_t proxy, TopModel& model) {
  if (answer.outcome == Outcome::done && answer.reply.has_stats_reply()) {
    model.add(proxy, answer.reply.stats_reply());
  } else {
    model.lost(proxy, answer.outcome == Outcome::done ? "gave another answer" : answer.text);
  }
}

// The newest answer of each proxy, and what they make together.
class Latest {
 public:
  explicit Latest(const std::vector<Target>& targets) : model_(names_of(targets)) {
    for (const Target& target : targets) {
      answers_.push_back(unreachable(target.name, "unreachable", "no answer yet"));
    }
  }
  // The stages of a coordinator are shown.
  static Latest of_stages(const std::string& coordinator) {
    Latest latest({Target{.name = coordinator, .endpoint = {}}});
    latest.has_stages_ = true;
    return latest;
  }

  // Whether there was anything new.
  bool take(TopPoller& poller) {
    auto news = poller.take();
    for (auto& [proxy, answer] : news) {
      if (has_stages_) {
        take_stages(std::move(answer));
      } else {
        put(proxy, std::move(answer));
      }
    }
    return !news.empty();
  }
  [[nodiscard]] const TopModel& model() const { return model_; }
  [[nodiscard]] const std::vector<ProxyAnswer>& answers() const { return answers_; }

 private:
  static std::vector<std::string> names_of(const std::vector<Target>& targets) {
    std::vector<std::string> names;
    for (const Target& target : targets) names.push_back(target.name);
    return names;
  }

  void put(std::size_t proxy, ProxyAnswer answer) {
    add(answer, proxy, model_);
    model_.set_name(proxy, answer.name);
    answers_[proxy] = std::move(answer);
  }

  // If the coordinator does not answer, or has no stages yet, all that are known count as lost.
  void take_stages(ProxyAnswer coordinator) {
    const bool has_any = coordinator.outcome == Outcome::done &&
                         !coordinator.reply.forward_reply().answers().empty();
    if (!has_any) {
      const ProxyAnswer none = std::move(answers_of_stages(std::move(coordinator)).front());
      for (std::size_t i = 0; i < answers_.size(); ++i) {
        ProxyAnswer lost = none;
        if (knows_stages_) lost.name = answers_[i].name;
        put(i, std::move(lost));
      }
      return;
    }
    if (!std::exchange(knows_stages_, true)) {
      model_ = TopModel({});
      answers_.clear();
    }
    std::vector<bool> is_there(answers_.size());
    for (ProxyAnswer& answer : answers_of_stages(std::move(coordinator))) {
      const auto place = std::ranges::find(answers_, answer.name, &ProxyAnswer::name);
      const auto at = static_cast<std::size_t>(place - answers_.begin());
      if (place == answers_.end()) {
        model_.add_proxy(answer.name);
        answers_.emplace_back();
        is_there.push_back(true);
      }
      is_there[at] = true;
      put(at, std::move(answer));
    }
    for (std::size_t i = 0; i < is_there.size(); ++i) {
      if (!is_there[i]) put(i, unreachable(answers_[i].name, "unreachable", "is gone"));
    }
  }

  TopModel model_;
  std::vector<ProxyAnswer> answers_;
  bool has_stages_ = false;
  bool knows_stages_ = false;
};

void write_out(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

ExitCode run_plain(Latest& latest, TopPoller& poller, const TopSettings& settings, Duration period,
                   const std::string& version) {
  // Half a period behind the samples, so that each table is of new ones.
  wait_for(period / 2);
  for (std::uint64_t shown = 0; settings.count == 0 || shown < settings.count; ++shown) {
    wait_for(period);
    latest.take(poller);
    if (settings.json) {
      write_out(answers_json(latest.answers(), version, -1));
    } else {
      write_out((shown == 0 ? "" : "\n") + top_text(latest.model(), settings.view));
    }
    if (std::ferror(stdout) != 0) break;  // the reader has gone
  }
  return exit_code(latest.answers());
}

ExitCode run_screen(Latest& latest, TopPoller& poller, const TopSettings& settings,
                    TopScreen& screen) {
  TopView view = settings.view;
  for (;;) {
    latest.take(poller);
    const TopLines lines = top_lines(latest.model().proxies(), latest.model().rows(view.each_proxy),
                                     view, screen.width());
    screen.draw(top_page(lines, view, screen.width(), screen.height()));
    const std::optional<int> key = screen.key(100ms);
    if (!key) continue;
    if (*key == 'x' || *key == kEscape) return ExitCode::done;
    view.press(*key);
  }
}

// What follows the first sample of a table.
using AskAgain = std::function<std::vector<ProxyAnswer>(const std::vector<std::size_t>& proxies)>;

ExitCode show_stat(std::vector<ProxyAnswer> answers, const AskAgain& ask_again,
                   const TopSettings& settings) {
  std::vector<std::string> names;
  for (const ProxyAnswer& answer : answers) names.push_back(answer.name);
  TopModel model(names);
  // Whoever has not answered in time is not waited for a second time.
  std::vector<std::size_t> answering;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    add(answers[i], i, model);
    if (answers[i].outcome == Outcome::done) answering.push_back(i);
  }
  if (!answering.empty()) {
    wait_for(1s);
    std::vector<ProxyAnswer> second = ask_again(answering);
    for (std::size_t i = 0; i < answering.size(); ++i) {
      const std::size_t proxy = answering[i];
      answers[proxy] = std::move(second[i]);
      add(answers[proxy], proxy, model);
    }
  }
  if (exit_code(answers) == ExitCode::done || exit_code(answers) == ExitCode::partly) {
    write_out(top_text(model, settings.view));
  }
  for (const ProxyAnswer& answer : answers) {
    if (answer.outcome == Outcome::done) continue;
    const std::string text = error_text(answer, "");
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  return exit_code(answers);
}

// REQUIRES: top_period() is good.
ExitCode show(Latest latest, TopPoller& poller, const TopSettings& settings,
              const std::string& version) {
  const bool is_plain = settings.is_plain || settings.json || settings.count > 0;
  if (const auto screen = is_plain ? nullptr : TopScreen::open()) {
    return run_screen(latest, poller, settings, *screen);
  }
  return run_plain(latest, poller, settings, *top_period(settings), version);
}

}  // namespace

Result<Duration> top_period(const TopSettings& settings) {
  const Result<Duration> period = parse_duration(settings.period);
  if (period && *period >= 10ms && *period <= 1min) return period;
  return fail("--period: expected a time from 10ms to 1min, such as 2s");
}

ExitCode run_top(std::vector<Target> targets, SiteOptions options, const TopSettings& settings,
                 const control::Envelope& request, const std::string& version) {
  const Latest latest(targets);
  TopPoller poller(std::move(targets), std::move(options), request, *top_period(settings));
  return show(latest, poller, settings, version);
}

ExitCode run_site_top(const std::vector<control::PortAddress>& coordinators, SiteOptions options,
                      const TopSettings& settings, const std::vector<std::string>& stages,
                      const control::Envelope& request, const std::string& version) {
  const Duration period = *top_period(settings);
  TopPoller poller(coordinators, for_coordinator(std::move(options)), forwarded(request, stages),
                   period);
  return show(Latest::of_stages(control::to_string(coordinators)), poller, settings, version);
}

ExitCode run_stat(AskedProxies& proxies, const TopSettings& settings,
                  const control::Envelope& request) {
  return show_stat(
      proxies.ask_all(request),
      [&](const std::vector<std::size_t>& chosen) {
        std::vector<Question> questions;
        for (const std::size_t proxy : chosen) {
          questions.push_back({.proxy = proxy, .request = request});
        }
        return proxies.ask(questions);
      },
      settings);
}

ExitCode run_site_stat(CoordinatorClient& coordinator, const TopSettings& settings,
                       const std::vector<std::string>& stages, const control::Envelope& request) {
  const std::vector<ProxyAnswer> first = coordinator.ask_stages(request, stages);
  return show_stat(
      first,
      [&](const std::vector<std::size_t>& numbers) {
        std::vector<std::string> names;
        for (const std::size_t stage : numbers) names.push_back(first[stage].name);
        const std::vector<ProxyAnswer> came = coordinator.ask_stages(request, names);
        std::vector<ProxyAnswer> second;
        for (const std::string& name : names) {
          const auto answer = std::ranges::find(came, name, &ProxyAnswer::name);
          second.push_back(answer != came.end() ? *answer
                                                : unreachable(name, "unreachable", "is gone"));
        }
        return second;
      },
      settings);
}

}  // namespace vpfs::ctl
