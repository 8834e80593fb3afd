// Files that programs open at their start by a configured name, where the name leads to something
// else: one clear error each, and no start that waits for ever.

#include <algorithm>
#include <filesystem>
#include <set>
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
  enum class Found { new_name, among_its_own } found = Found::new_name;
  bool is_directory = false;  // a directory is what it should be

  friend std::ostream& operator<<(std::ostream& out, const Opened& row) { return out << row.name; }
};

const std::string kProxy = "proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:1'";

// The certificates before the odd one are regular files, which are not looked into.
std::string tls(const std::string& certificate, const std::string& key, const std::string& ca) {
  return "control: {tcp: '127.0.0.1:0', certificate: '" + certificate + "', key: '" + key +
         "', ca: '" + ca + "', writers: ['cert:ops']}\n";
}

// A server with a storage directory. Its other files are there from an earlier start.
Opened stored(const std::string& name, const std::string& suffix, bool is_directory = false) {
  return {.name = "servers_" + name,
          .suffix = suffix,
          .program = "vpfs-server",
          .text =
              "file_system: {id: 1}\nservers: [{alias: s0, addresses: ['tcp://127.0.0.1:0']}]\n"
              "storage: {engine: directory, path: '@'}\n",
          .found = Opened::Found::among_its_own,
          .is_directory = is_directory};
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
      stored("directory", "", true),
      stored("part_of_the_directory", "/s0", true),
      stored("lock", "/s0/lock"),
      stored("format", "/s0/format"),
      stored("metadata_directory", "/s0/metadata", true),
      stored("metadata", "/s0/metadata/data.mdb"),
      stored("metadatas_lock", "/s0/metadata/lock.mdb"),
      stored("data_directory", "/s0/data", true),
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
  [[nodiscard]] std::vector<std::string> command(const std::string& name) const {
    const Opened& row = GetParam();
    std::vector<std::string> words = {program(row.program)};
    for (const std::string& each : row.options) words.push_back(filled_in(each, name));
    if (!row.text.empty()) {
      words.insert(words.end(),
                   {"--config", directory_.write("c.yaml", filled_in(row.text, name))});
    }
    if (row.program == "vpfs-server") words.insert(words.end(), {"--server", "s0"});
    return words;
  }
  // A start that makes its files, all but this one.
  void make_other_files(const std::string& name, const std::string& path) const {
    Process process(command(name));
    ASSERT_TRUE(process.wait_for_line("ready on")) << process.errors();
    ASSERT_TRUE(process.stop().ok());
    ASSERT_GT(std::filesystem::remove_all(path), 0U);
  }
  // What a start says that must fail.
  [[nodiscard]] std::string refusal(const std::string& name) const {
    Process process(command(name));
    const auto exit = process.wait(std::chrono::seconds(20));
    EXPECT_TRUE(exit.has_value()) << "it waits";
    if (!exit) return "";
    EXPECT_GT(exit->code, 0) << process.output() << process.errors();
    return process.errors();
  }
  // The error is one line that names the file.
  void expect_clear(const std::string& errors, const std::string& path) const {
    EXPECT_THAT(errors, HasSubstr(path));
    EXPECT_EQ(std::ranges::count(errors, '\n'), 1) << errors;
  }

  TemporaryDirectory directory_;
};

TEST_P(StartFiles, WhatIsNotARegularFileIsOneErrorThatNamesIt) {
  int number = 0;
  for (const OddFile kind : kOddFiles) {
    if (kind == OddFile::full_device && GetParam().name.ends_with("audit")) continue;
    if (kind == OddFile::endless_device && GetParam().name.ends_with("audit")) continue;
    if (kind == OddFile::socket && GetParam().name == "socket") continue;
    if (kind == OddFile::directory && GetParam().is_directory) continue;
    const std::string name = (directory_.path() / std::to_string(++number)).string();
    const std::string path = name + GetParam().suffix;
    if (GetParam().found == Opened::Found::among_its_own) {
      ASSERT_NO_FATAL_FAILURE(make_other_files(name, path));
    }
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    put_odd_file(kind, path);
    SCOPED_TRACE(name_of(kind));
    expect_clear(refusal(name), path);
  }
}

using StartFilesOfZeros = StartFiles;

TEST_P(StartFilesOfZeros, AreOneErrorThatNamesThem) {
  const std::string name = (directory_.path() / "1").string();
  const std::string path = name + GetParam().suffix;
  if (GetParam().found == Opened::Found::among_its_own) {
    ASSERT_NO_FATAL_FAILURE(make_other_files(name, path));
  }
  directory_.write("1" + GetParam().suffix, std::string(8192, '\0'));
  const std::string errors = refusal(name);
  expect_clear(errors, path);
  EXPECT_EQ(errors.find('\0'), std::string::npos) << errors;
}

// Files whose contents are read at the start.
std::vector<Opened> read_rows() {
  const std::set<std::string> names = {
      "journal",           "certificate",          "configuration",  "coordinators_configuration",
      "coordinators_term", "coordinators_journal", "servers_format", "servers_configuration",
      "servers_metadata"};
  std::vector<Opened> read = rows();
  std::erase_if(read, [&](const Opened& each) { return !names.contains(each.name); });
  EXPECT_EQ(read.size(), names.size());
  return read;
}
INSTANTIATE_TEST_SUITE_P(Files, StartFilesOfZeros, ::testing::ValuesIn(read_rows()),
                         [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(Files, StartFiles, ::testing::ValuesIn(rows()),
                         [](const auto& row) { return row.param.name; });

using ServersMetadata = StartFiles;

TEST_P(ServersMetadata, ThatAreGoneDoNotMakeANewFileSystemWhereDataAre) {
  const std::string name = (directory_.path() / "1").string();
  const std::string path = name + GetParam().suffix;
  ASSERT_NO_FATAL_FAILURE(make_other_files(name, path));
  EXPECT_EQ(directory_.write("1" + GetParam().suffix, ""), path);
  Process nothing_lost(command(name));
  EXPECT_TRUE(nothing_lost.wait_for_line("ready on")) << nothing_lost.errors();
  nothing_lost.kill();
  std::filesystem::create_directories(name + "/s0/data/07");
  directory_.write("1/s0/data/07/0000000000000007", "data");
  directory_.write("1" + GetParam().suffix, "");
  expect_clear(refusal(name), path + ": is empty, but " + name + "/s0/data has data");
  std::filesystem::remove(path);
  expect_clear(refusal(name), path + ": is missing, but " + name + "/s0/data has data");
}

INSTANTIATE_TEST_SUITE_P(Files, ServersMetadata,
                         ::testing::Values(stored("metadata", "/s0/metadata/data.mdb")),
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
