#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/system_clock.h"
#include "control/wire/port.h"
#include "test/support/control/fake_owner.h"
#include "test/support/outcome.h"
#include "test/support/process.h"

// Control ports with owners that do as they are told, and the program that asks them.
namespace vpfs::test {

// What an owner does with a request.
enum class Mood {
  obeys,
  refuses,
  silent,  // takes requests and never answers
  absent   // there is no port
};

class Proxies {
 public:
  // s0, s1, ...; listed in a file for --proxies.
  explicit Proxies(const std::vector<Mood>& moods);
  ~Proxies();

  // What a proxy answers to a request if it obeys. Called on its own thread.
  using Reply = std::function<control::Envelope(const control::Envelope&)>;
  void on_ask(Reply reply);
  // Changes what one action of rules meets at one proxy.
  void set(std::size_t proxy, control::Rule::Action action, Mood mood);

  // Otherwise they call themselves stages.
  void call_itself(std::size_t proxy, control::Hello::Role role) {
    proxies_[proxy]->owner.call_itself(role);
  }

  void stop(std::size_t proxy);
  void start(std::size_t proxy);

  [[nodiscard]] std::string file() const { return file_; }
  [[nodiscard]] std::string socket(std::size_t proxy) const;
  [[nodiscard]] const TemporaryDirectory& directory() const { return directory_; }
  // The requests that a proxy got.
  [[nodiscard]] std::vector<control::Envelope> asked(std::size_t proxy) const;

 private:
  struct Proxy {
    Mood mood = Mood::obeys;
    std::map<control::Rule::Action, Mood> moods;
    FakeOwner owner;
    std::unique_ptr<control::Port> port;
    std::vector<control::Answer> unanswered;  // kept, so that nothing is answered
  };
  void answer(Proxy& proxy, const control::Envelope& request, control::Answer to);

  const TemporaryDirectory directory_;
  const SystemClock clock_;
  std::string file_;
  std::mutex mutex_;  // of what the owners look at
  Reply reply_;
  std::vector<std::unique_ptr<Proxy>> proxies_;
};

// Runs vpfsctl to its end.
[[nodiscard]] Outcome vpfsctl(
    std::vector<std::string> arguments,
    const std::vector<std::pair<std::string, std::string>>& environment = {});

}  // namespace vpfs::test
