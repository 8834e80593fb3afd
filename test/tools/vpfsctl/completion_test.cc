#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/places.h"
#include "test/tools/vpfsctl/proxies.h"

// What bash proposes for a command line that is not complete.
namespace vpfs::test {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// The words that bash proposes behind `words`, the last of which may be a part.
std::vector<std::string> proposals(const std::string& name, const std::vector<std::string>& words) {
  const std::filesystem::path file = program_directory() / "../completions" / name;
  std::string script = "PATH='" + program_directory().string() + "':$PATH\nsource '" +
                       file.string() + "'\nCOMP_WORDS=('" + name + "'";
  for (const std::string& word : words) script += " '" + word + "'";
  script += ")\nCOMP_CWORD=" + std::to_string(words.size()) + "\n";
  std::string function = "_" + name;
  for (char& letter : function) letter = letter == '-' ? '_' : letter;
  script += function + "\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
  Process bash({"bash", "-u", "-c", script});
  const auto exit = bash.wait();
  EXPECT_TRUE(exit && exit->code == 0) << bash.errors();
  EXPECT_EQ(bash.errors(), "");
  std::vector<std::string> found;
  std::istringstream lines(bash.output());
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) found.push_back(line);
  }
  return found;
}

TEST(Completion, ProposesCommandsAndTheirCommands) {
  EXPECT_THAT(proposals("vpfsctl", {"r"}), UnorderedElementsAre("rule", "record", "reload"));
  EXPECT_THAT(proposals("vpfsctl", {"job", "st"}), UnorderedElementsAre("start", "stop"));
  EXPECT_THAT(proposals("vpfsctl", {"--json", "--proxy", "/a.sock", "rule", "ch"}),
              UnorderedElementsAre("change"));
}

TEST(Completion, ProposesOptionsOfTheCommandAndOfTheProgram) {
  const auto words = proposals("vpfsctl", {"rule", "apply", "--"});
  for (const char* option : {"--dry-run", "--confirm", "--file", "--atomic", "--proxy", "--json"}) {
    EXPECT_THAT(words, Contains(option));
  }
  EXPECT_THAT(words, Not(Contains("--best-effort")));
}

TEST(Completion, ProposesFilesAndChoices) {
  const TemporaryDirectory directory;
  const std::string file = directory.write("rules.yaml", "");
  EXPECT_THAT(proposals("vpfsctl", {"rule", "apply", "-f", directory.path().string() + "/ru"}),
              UnorderedElementsAre(file));
  EXPECT_THAT(proposals("vpfsctl", {"bypass", "o"}), UnorderedElementsAre("on", "off"));
  EXPECT_THAT(proposals("vpfsctl", {"top", "--sort", "w"}), UnorderedElementsAre("wait"));
  EXPECT_THAT(proposals("vpfsctl", {"job", "start", "--uid", ""}), IsEmpty());
}

TEST(Completion, ProposesTheNamesOfRunningRules) {
  Proxies proxies({Mood::obeys});
  proxies.on_ask([](const control::Envelope&) {
    control::Envelope reply;
    reply.mutable_rule_reply()->add_rules()->set_name("backup");
    reply.mutable_rule_reply()->add_rules()->set_name("batch");
    reply.mutable_rule_reply()->add_rules()->set_name("dd");
    return reply;
  });
  EXPECT_THAT(proposals("vpfsctl", {"--proxies", proxies.file(), "rule", "stop", "b"}),
              UnorderedElementsAre("backup", "batch"));
  EXPECT_THAT(proposals("vpfsctl", {"--proxies", proxies.file(), "rule", "stop", "dd", "b"}),
              IsEmpty());
}

TEST(Completion, ANameIsNotAskedForWithoutAProxy) {
  EXPECT_THAT(proposals("vpfsctl", {"--proxy", "/none.sock", "rule", "stop", "b"}), IsEmpty());
}

TEST(Completion, EveryInstalledProgramHasOne) {
  EXPECT_THAT(proposals("vpfs-proxy", {"--ch"}), UnorderedElementsAre("--check-config"));
  EXPECT_THAT(proposals("vpfs-server", {"--se"}), UnorderedElementsAre("--server"));
  EXPECT_THAT(proposals("vpfs-load", {"--no"}), UnorderedElementsAre("--no-live"));
  EXPECT_THAT(proposals("vpfs-decode", {"--qu"}), UnorderedElementsAre("--quiet"));
  EXPECT_THAT(proposals("vpfs-proxy", {"--config", program("vpfs-prox")}),
              UnorderedElementsAre(program("vpfs-proxy")));
}

}  // namespace
}  // namespace vpfs::test
