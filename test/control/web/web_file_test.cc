#include "control/web/web_file.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::control {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string text_of(std::string_view path) {
  const WebFile* const file = find_web_file(path);
  return file == nullptr ? "" : std::string(file->text);
}

TEST(WebFiles, AreThoseThatThePageNames) {
  const std::string page = text_of("/");
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
  for (const WebFile& file : web_files()) {
    EXPECT_FALSE(file.text.empty()) << file.path;
    if (file.path != "/") EXPECT_THAT(page, HasSubstr("\"" + std::string(file.path) + "\""));
  }
  EXPECT_EQ(web_files().size(), 5U);
  EXPECT_EQ(find_web_file("/page.html"), nullptr);
  EXPECT_EQ(find_web_file("/../page.js"), nullptr);
  EXPECT_EQ(find_web_file("/page.css")->type, "text/css; charset=utf-8");
}

// The policy of contents would stop them; the page would not work.
TEST(WebFiles, LoadNothingFromElsewhereAndHaveNoScriptWithin) {
  const std::string page = text_of("/");
  EXPECT_THAT(page, Not(HasSubstr("http")));
  EXPECT_THAT(page, Not(HasSubstr("style=")));
  EXPECT_THAT(page, Not(HasSubstr(" on")));
  const std::string script = text_of("/page.js");
  EXPECT_THAT(script, Not(HasSubstr("innerHTML")));
  EXPECT_THAT(script, Not(HasSubstr("insertAdjacentHTML")));
  EXPECT_THAT(script, Not(HasSubstr("document.write")));
}

TEST(WebHost, IsAnAddressOrLocalhost) {
  for (const char* good : {"127.0.0.1", "127.0.0.1:9090", "localhost", "localhost:1", "[::1]:80",
                           "[::1]", "10.0.0.7:80"}) {
    EXPECT_TRUE(is_own_host(good)) << good;
  }
  for (const char* bad : {"", "evil.example", "evil.example:9090", "localhost.evil.example",
                          "127.0.0.1.evil.example", "[::1", "[evil]:80", "LOCALHOST"}) {
    EXPECT_FALSE(is_own_host(bad)) << bad;
  }
}

}  // namespace
}  // namespace vpfs::control
