// Where the proxy's log goes, and what it says at the start and at a reload.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string content(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// Waits until the file has the text.
bool comes_to_have(const std::filesystem::path& file, const std::string& text) {
  for (int i = 0; i < 500 && !content(file).contains(text); ++i) ::usleep(10'000);
  return content(file).contains(text);
}

class ProxyLog : public ::testing::Test {
 protected:
  [[nodiscard]] ProxySettings settings(const std::string& proxy, unsigned depth = 16) const {
    return {.upstream = server_.port(), .proxy = proxy, .depth = depth};
  }

  FakeDataServer server_;
};

TEST_F(ProxyLog, StartSaysWhatTheProxyDoes) {
  ProxyProcess proxy(settings(""));
  EXPECT_TRUE(proxy.logs("vpfs-proxy info: version 0."));
  EXPECT_TRUE(proxy.logs("info: listens at 127.0.0.1:"));
  EXPECT_TRUE(proxy.logs("info: policy sfq, 16 requests at the data server at once"));
  EXPECT_TRUE(proxy.logs("info: 0 rules and the default, 1 declared virtual PFS"));
}

TEST_F(ProxyLog, ReloadSaysWhatItChanged) {
  ProxyProcess proxy(settings(""));
  proxy.reload(settings(""));
  EXPECT_TRUE(proxy.logs("reloaded, nothing changed"));
  proxy.reload(settings("", 32));
  EXPECT_TRUE(proxy.logs("reloaded, 1 change:"));
  EXPECT_TRUE(proxy.logs("  scheduler.depth.requests 16 -> 32"));
}

TEST_F(ProxyLog, EachReloadThatFailsIsAnswered) {
  ProxyProcess proxy(settings(""));
  for (int i = 0; i < 3; ++i) proxy.reload(settings("nonsense: 1"));
  EXPECT_EQ(proxy.lines_with("proxy.nonsense: unknown key"), 3U);
}

TEST_F(ProxyLog, FileIsReopenedOnASignalAndChangedByAReload) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory.path() / "proxy.log";
  ProxyProcess proxy(settings("log: " + file.string()));
  EXPECT_TRUE(comes_to_have(file, "info: listens at "));
  const std::filesystem::path old = directory.path() / "proxy.log.1";
  std::filesystem::rename(file, old);
  ASSERT_EQ(::kill(proxy.process().pid(), SIGUSR2), 0);
  (void)proxy.status();  // signals come in order
  proxy.reload(settings("log: " + file.string(), 32));
  EXPECT_TRUE(comes_to_have(file, "scheduler.depth.requests 16 -> 32"));
  EXPECT_THAT(content(file), Not(HasSubstr("listens at")));
  EXPECT_THAT(content(old), Not(HasSubstr("reloaded")));

  const std::filesystem::path other = directory.path() / "other.log";
  proxy.reload(settings("log: " + other.string(), 32));
  EXPECT_TRUE(comes_to_have(other, "proxy.log " + file.string() + " -> " + other.string()));
}

TEST_F(ProxyLog, MissingFolderIsAWarningAndStandardErrorGetsTheLog) {
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "missing" / "log").string();
  ProxyProcess proxy(settings("log: " + file));
  EXPECT_TRUE(proxy.logs("log file " + file + ": No such file or directory"));
  EXPECT_TRUE(proxy.logs("proxy.log: the folder '"));
  EXPECT_TRUE(proxy.logs("info: listens at "));
}

}  // namespace
}  // namespace vpfs::test
