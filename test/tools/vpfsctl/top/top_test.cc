#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <regex>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/support/places.h"
#include "test/tools/vpfsctl/proxies.h"

// vpfsctl top and vpfsctl stat.
namespace vpfs::test {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// A stage whose virtual PFS does 10 MiB in each 100 ms of its own clock, which goes on by 100 ms
// with each request.
class Stage {
 public:
  control::Envelope operator()(const control::Envelope&) {
    const std::uint64_t tick = ++*ticks_;
    control::Envelope reply;
    auto& stats = *reply.mutable_stats_reply();
    stats.set_at_us(1'000'000 + tick * 100'000);
    stats.set_started_at(1);
    stats.set_policy("sfq");
    auto& each = *stats.add_virtual_pfs();
    each.set_name(name_);
    each.set_weight(1);
    each.set_rule("dd");
    each.mutable_read()->set_bytes(tick * (10 << 20));
    each.mutable_read()->set_requests(tick * 10);
    each.set_cost_done(tick * (10 << 20));
    return reply;
  }
  explicit Stage(std::string name = "alice") : name_(std::move(name)) {}

 private:
  std::string name_;
  // Shared by the copies that std::function makes.
  std::shared_ptr<std::atomic<std::uint64_t>> ticks_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);
};

TEST(VpfsctlTop, PrintsATableEachPeriodWhereThereIsNoTerminal) {
  Proxies proxies({Mood::obeys});
  proxies.on_ask(Stage());
  const Outcome outcome = vpfsctl({"top", "-n", "2", "-d", "100ms", "--proxies", proxies.file()});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  const std::regex titles("(^|\n)NAME +RULE");
  EXPECT_EQ(
      std::distance(std::sregex_iterator(outcome.output.begin(), outcome.output.end(), titles),
                    std::sregex_iterator()),
      2);
  // 10 MiB and 10 operations in 100 ms.
  EXPECT_THAT(outcome.output, HasSubstr("\nalice dd   -            -     100.0 100.0   100 100"));
}

TEST(VpfsctlTop, ShowsAProxyThatVanishesAndGoesOnWhenItIsBack) {
  Proxies proxies({Mood::obeys, Mood::obeys});
  proxies.on_ask(Stage());
  Process top({program("vpfsctl"), "top", "--plain", "-d", "100ms", "--proxies", proxies.file()});
  ASSERT_TRUE(top.wait_for_line("2 proxies: "));
  proxies.stop(1);
  ASSERT_TRUE(top.wait_for_line("? s1: "));
  const std::size_t length = top.output().size();
  proxies.start(1);
  // The last table that is whole has no word of it.
  const auto is_back = [&top, length] {
    const std::string text = top.output().substr(length);
    const std::size_t last = text.rfind("2 proxies: ");
    const std::size_t before = text.rfind("2 proxies: ", last == 0 ? last : last - 1);
    return last != std::string::npos && before < last &&
           text.substr(before, last - before).find("? s1: ") == std::string::npos;
  };
  for (int i = 0; i < 100 && !is_back(); ++i) usleep(50'000);
  EXPECT_TRUE(is_back()) << top.output().substr(length);
}

TEST(VpfsctlTop, ASilentProxyDelaysNoOther) {
  Proxies proxies({Mood::obeys, Mood::silent});
  proxies.on_ask(Stage());
  const Outcome outcome =
      vpfsctl({"top", "-n", "2", "-d", "100ms", "--timeout", "30s", "--proxies", proxies.file()});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.output, HasSubstr("alice dd   -            -     100.0"));
}

TEST(VpfsctlTop, JsonIsALineEachPeriod) {
  Proxies proxies({Mood::obeys});
  proxies.on_ask(Stage());
  const Outcome outcome =
      vpfsctl({"top", "--json", "-n", "2", "-d", "100ms", "--proxies", proxies.file()});
  std::istringstream lines(outcome.output);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_EQ(Json::parse(line)["proxies"][0]["data"]["virtual_pfs"][0]["name"], "alice");
  }
  EXPECT_EQ(count, 2);
}

TEST(VpfsctlStat, PrintsRatesOnce) {
  Proxies proxies({Mood::obeys, Mood::absent});
  proxies.on_ask(Stage());
  const Outcome outcome = vpfsctl({"stat", "--each", "--proxies", proxies.file()});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.output, HasSubstr("NAME  PROXY RULE"));
  EXPECT_THAT(outcome.output, HasSubstr("alice s0    dd   -            -     100.0"));
  EXPECT_THAT(outcome.errors, HasSubstr("vpfsctl: s1: unreachable"));
}

// The program on a terminal of this size; its output so far.
class Terminal {
 public:
  Terminal(std::vector<std::string> arguments, unsigned short columns, unsigned short rows) {
    arguments.insert(arguments.begin(), program("vpfsctl"));
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    winsize size = {.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    pid_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (pid_ == 0) {
      setenv("TERM", "xterm", 1);
      execv(words[0], words.data());
      _exit(127);
    }
  }
  ~Terminal() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(terminal_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool wait_for(const std::string& text) {
    for (int i = 0; i < 200 && output.find(text) == std::string::npos; ++i) read_some();
    return output.find(text) != std::string::npos;
  }
  void press(char key) const { EXPECT_EQ(write(terminal_, &key, 1), 1); }
  // The exit code, or the signal with a minus; nothing if it does not end.
  std::optional<int> wait() {
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (std::chrono::steady_clock::now() < end) {
      // A terminal that the program has closed is always ready.
      read_some();
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
      }
    }
    return std::nullopt;
  }

  std::string output;

 private:
  void read_some() {
    pollfd ready = {.fd = terminal_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, 50) <= 0) return;
    std::array<char, 4096> bytes = {};
    const ssize_t size = read(terminal_, bytes.data(), bytes.size());
    if (size > 0) output.append(bytes.data(), static_cast<std::size_t>(size));
  }

  pid_t pid_ = -1;
  int terminal_ = -1;
};

TEST(VpfsctlTop, IsAScreenOnATerminalUntilXIsPressed) {
  Proxies proxies({Mood::obeys});
  proxies.on_ask(Stage());
  Terminal terminal({"top", "-d", "100ms", "--proxy", proxies.socket(0)}, 100, 24);
  EXPECT_TRUE(terminal.wait_for("alice"));
  EXPECT_TRUE(terminal.wait_for("100.0"));
  EXPECT_TRUE(terminal.wait_for("x exit"));
  terminal.press('?');
  EXPECT_TRUE(terminal.wait_for("Any key goes back")) << "it fits";
  terminal.press(' ');
  terminal.press('p');
  EXPECT_TRUE(terminal.wait_for("PROXY"));
  EXPECT_TRUE(terminal.wait_for("fake")) << "as it names itself";
  terminal.press('x');
  EXPECT_EQ(terminal.wait(), 0);
}

TEST(VpfsctlTop, TinyTerminalsAndLongNamesDoNotBreakTheScreen) {
  Proxies proxies({Mood::obeys});
  proxies.on_ask(Stage(std::string(128, 'n')));
  struct Size {
    unsigned short columns;
    unsigned short rows;
    const char* shown;
  };
  for (const Size& size : {Size{20, 5, "nnnnnnn~"}, Size{8, 2, "nnnnnnn"}, Size{1, 1, "~"}}) {
    Terminal terminal({"top", "-d", "50ms", "--proxies", proxies.file()}, size.columns, size.rows);
    EXPECT_TRUE(terminal.wait_for(size.shown)) << size.columns << "\n" << terminal.output;
    terminal.press('x');
    EXPECT_EQ(terminal.wait(), 0) << size.columns << terminal.output;
  }
}

}  // namespace
}  // namespace vpfs::test
