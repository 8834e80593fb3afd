// Files that programs open at their start by a configured name, where the name leads to something
// else: one clear error each, and no start that waits for ever.

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/odd_files.h"
#include "test/support/places.h"
#include "test/support/process.h"

namespace vpfs::test {
namespace {

using ::testing::HasSubstr;

// How a program is started so that it opens a file of this name.
struct Opened {
  std::string name;    // of the row
  std::string suffix;  // what the program puts behind the configured name
  std::string program;
  std::string text;                       // of the configuration; @ is the configured name
  std::vector<std::string> options = {};  // with @ likewise

  friend std::ostream& operator<<(std::ostream& out, const Opened& row) { return out << row.name; }
};

const std::string kProxy = "proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:1'";

// The certificates before the odd one are regular files, which are not looked into.
std::string tls(const std::string& certificate, const std::string& key, const std::string& ca) {
  return "control: {tcp: '127.0.0.1:0', certificate: '" + certificate + "', key: '" + key +
         "', ca: '" + ca + "', writers: ['cert:ops']}\n";
}

std::vector<Opened> rows() {
  const std::string proxy = kProxy + "}\n";
  const std::string regular = source("conf/proxy.yaml");
  return {
      {"journal", "", "vpfs-proxy", proxy + "control: {socket: '@.s', journal: '@'}\n"},
      {"journals_lock", ".lock", "vpfs-proxy", proxy + "control: {socket: '@.s', journal: '@'}\n"},
      {"audit", "", "vpfs-proxy", proxy + "control: {socket: '@.s', audit: '@'}\n"},
      {"status_file", "", "vpfs-proxy", kProxy + ", status_file: '@'}\n"},
      {"status_lock", ".lock", "vpfs-proxy", kProxy + ", status_file: '@'}\n"},
      {"certificate", "", "vpfs-proxy", proxy + tls("@", regular, regular)},
      {"key", "", "vpfs-proxy", proxy + tls(regular, "@", regular)},
      {"ca", "", "vpfs-proxy", proxy + tls(regular, regular, "@")},
      {"socket", "", "vpfs-proxy", proxy + "control: {socket: '@'}\n"},
      {"configuration", "", "vpfs-proxy", "", {"--config", "@"}},
      {"coordinators_configuration", "", "vpfs-coordinator", "", {"--config", "@"}},
      {"coordinators_journal", "", "vpfs-coordinator",
       "policy: total\njournal: '@'\ncontrol: {socket: '@.s'}\nstages: {listen: {socket: "
       "'@.l'}}\n"},
      {"coordinators_term", ".term", "vpfs-coordinator",
       "policy: total\njournal: '@'\nstages: {listen: {socket: '@.l'}}\n"},
      {"coordinators_audit", "", "vpfs-coordinator",
       "policy: total\njournal: '@.j'\ncontrol: {socket: '@.s', audit: '@'}\n"
       "stages: {listen: {socket: '@.l'}}\n"},
      {"servers_configuration", "", "vpfs-server", "", {"--config", "@"}},
  };
}

std::string filled_in(std::string text, const std::string& name) {
  for (std::size_t at = text.find('@'); at != std::string::npos; at = text.find('@', at)) {
    text.replace(at, 1, name);
    at += name.size();
  }
  return text;
}

class StartFiles : public ::testing::TestWithParam<Opened> {
 protected:
  // What a start says that must fail.
  std::string refusal(const std::string& name) {
    const Opened& row = GetParam();
    std::vector<std::string> command = {program(row.program)};
    for (const std::string& each : row.options) command.push_back(filled_in(each, name));
    if (!row.text.empty()) {
      command.insert(command.end(),
                     {"--config", directory_.write("c.yaml", filled_in(row.text, name))});
    }
    if (row.program == "vpfs-server") command.insert(command.end(), {"--server", "s0"});
    Process process(command);
    const auto exit = process.wait(std::chrono::seconds(20));
    EXPECT_TRUE(exit.has_value()) << "it waits";
    if (!exit) return "";
    EXPECT_GT(exit->code, 0) << process.output() << process.errors();
    return process.errors();
  }

  TemporaryDirectory directory_;
};

TEST_P(StartFiles, WhatIsNotARegularFileIsOneErrorThatNamesIt) {
  int number = 0;
  for (const OddFile kind : kOddFiles) {
    if (kind == OddFile::full_device && GetParam().name.ends_with("audit")) continue;
    if (kind == OddFile::endless_device && GetParam().name.ends_with("audit")) continue;
    if (kind == OddFile::socket && GetParam().name == "socket") continue;
    const std::string name = (directory_.path() / std::to_string(++number)).string();
    const std::string path = name + GetParam().suffix;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    put_odd_file(kind, path);
    const std::string errors = refusal(name);
    EXPECT_THAT(errors, HasSubstr(path));
    std::size_t lines = 0;
    for (const char c : errors) lines += c == '\n' ? 1U : 0U;
    EXPECT_EQ(lines, 1U) << errors;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, StartFiles, ::testing::ValuesIn(rows()),
                         [](const auto& row) { return row.param.name; });

TEST(JournalAtTheStart, OneOfZerosIsDamagedAndNotEmpty) {
  const TemporaryDirectory directory;
  const std::string journal = directory.write("j", std::string(4096, '\0'));
  const std::string config = directory.write(
      "c.yaml", fmt::format("proxy: {{listen: '127.0.0.1:0', upstream: '127.0.0.1:1'}}\n"
                            "control: {{socket: '{0}.s', journal: '{0}'}}\n",
                            journal));
  Process proxy({program("vpfs-proxy"), "--config", config});
  const auto exit = proxy.wait();
  ASSERT_TRUE(exit);
  EXPECT_GT(exit->code, 0);
  EXPECT_THAT(proxy.errors(), HasSubstr(journal + ": has 4096 bytes, but no line of a journal"));
}

}  // namespace
}  // namespace vpfs::test
