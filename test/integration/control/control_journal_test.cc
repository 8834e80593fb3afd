// Live rules of a real vpfs-proxy whose journal cannot be written.

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "test/support/control/raw_peer.h"
#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Lets a program write no file beyond `size` bytes, as if its disk were full.
class FullDisk {
 public:
  FullDisk(pid_t program, std::uintmax_t size) : program_(program) {
    ::prlimit(program_, RLIMIT_FSIZE, nullptr, &before_);
    rlimit full = before_;
    full.rlim_cur = size;
    ::prlimit(program_, RLIMIT_FSIZE, &full, nullptr);
  }
  ~FullDisk() { ::prlimit(program_, RLIMIT_FSIZE, &before_, nullptr); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  const pid_t program_;
  rlimit before_ = {};
};

class ControlJournal : public ::testing::Test {
 protected:
  ControlJournal() {
    // A write beyond the limit fails instead of ending the program. Programs inherit this.
    std::signal(SIGXFSZ, SIG_IGN);
    proxy_.emplace(ProxySettings{
        .upstream = server_.port(),
        .control = fmt::format("socket: {}, journal: {}", socket().string(), journal().string())});
    connect();
  }
  ~ControlJournal() override { std::signal(SIGXFSZ, SIG_DFL); }

  void connect() {
    administrator_.emplace(socket());
    ASSERT_TRUE(administrator_->greet());
  }
  [[nodiscard]] std::filesystem::path socket() const { return directory_.path() / "control.sock"; }
  [[nodiscard]] std::filesystem::path journal() const { return directory_.path() / "journal"; }

  control::Envelope ask(const control::Rule& rule) {
    control::Envelope request;
    request.set_id(2);
    *request.mutable_rule() = rule;
    EXPECT_TRUE(administrator_->send(request));
    return administrator_->receive().value_or(control::Envelope());
  }
  control::Envelope start(const std::string& name) {
    control::Rule rule;
    rule.set_action(control::Rule::START);
    rule.set_name(name);
    rule.set_condition("jobid=" + name);
    rule.add_words("weight=2");
    return ask(rule);
  }
  std::vector<std::string> live_rules() {
    std::vector<std::string> names;
    for (const auto& rule : ask(control::Rule()).rule_reply().rules()) {
      if (rule.origin() == "administrator") names.push_back(rule.name());
    }
    return names;
  }

  TemporaryDirectory directory_;
  FakeDataServer server_;
  std::optional<ProxyProcess> proxy_;
  std::optional<RawPeer> administrator_;
};

TEST_F(ControlJournal, AChangeThatCannotBeWrittenIsRefusedAndChangesNothing) {
  ASSERT_TRUE(start("first").has_rule_reply());
  {
    const FullDisk full(proxy_->process().pid(), std::filesystem::file_size(journal()) + 10);
    for (int i = 0; i < 3; ++i) {
      const control::Envelope refused = start("second");
      ASSERT_TRUE(refused.has_error());
      EXPECT_EQ(refused.error().code(), control::Error::UNAVAILABLE);
      EXPECT_THAT(refused.error().text(), HasSubstr("journal"));
    }
    EXPECT_THAT(live_rules(), ElementsAre("first"));
    ProxiedLink link = open_link(*proxy_, server_);
    ASSERT_TRUE(link.client.send(small_read_request(1, {.size = 4096})));
    EXPECT_TRUE(link.server.receive());
  }
  ASSERT_TRUE(start("third").has_rule_reply());
  EXPECT_THAT(live_rules(), ElementsAre("third", "first"));

  proxy_->kill();
  proxy_->start();
  connect();
  EXPECT_THAT(live_rules(), ElementsAre("third", "first"));
}

}  // namespace
}  // namespace vpfs::test
