#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/config/parts.h"
#include "base/config_file.h"
#include "base/config_reader.h"
#include "test/support/odd_files.h"
#include "test/support/process.h"

namespace vpfs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kKeysOfOthers[] = {"shares", "rules"};

TEST(ConfigParts, AreReadBackWithTheirLines) {
  std::string text = "a: 1\nb: 2";
  add_part(text, "f.d/1.yaml", "c: 3\n");
  add_part(text, "f.d/2.yaml", "");
  add_part(text, "f.d/3.yaml", "d: 4");
  EXPECT_EQ(text,
            "a: 1\nb: 2\n--- # file: f.d/1.yaml\nc: 3\n--- # file: f.d/2.yaml\n"
            "--- # file: f.d/3.yaml\nd: 4");
  const std::vector<ConfigPart> parts = parts_of(text);
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(parts[0].text, "a: 1\nb: 2\n");
  EXPECT_EQ(parts[0].file, "");
  EXPECT_EQ(parts[1].text, "c: 3\n");
  EXPECT_EQ(parts[1].file, "f.d/1.yaml");
  EXPECT_EQ(parts[1].first_line, 4);
  EXPECT_EQ(parts[2].text, "");
  EXPECT_EQ(parts[2].first_line, 6);
  EXPECT_EQ(parts[3].text, "d: 4");
  EXPECT_EQ(parts[3].first_line, 7);
}

TEST(ConfigParts, ATextAloneIsOnePart) {
  for (const char* text : {"", "a: 1", "a: 1\n---\nb: 2\n", "a: '--- # file: x'\n"}) {
    ASSERT_EQ(parts_of(text).size(), 1U) << text;
    EXPECT_EQ(parts_of(text)[0].text, text);
    EXPECT_EQ(line_of_part(text), std::nullopt);
  }
  EXPECT_EQ(line_of_part("a: 1\n--- # file: x\n"), 2);
}

struct Joined {
  std::vector<std::string> shares;
  std::vector<std::string> rules;
  std::vector<std::string> errors;
};

Joined joined_of(const std::string& text) {
  Joined all;
  ConfigErrors errors("f.yaml");
  {
    ConfigReader reader(text, errors, kKeysOfOthers);
    reader.for_each_named("shares", [&](const std::string& name, ConfigReader& each) {
      all.shares.push_back(name);
      std::uint64_t weight = 0;
      each.get("weight", &weight, 1, 9);
    });
    reader.for_each("rules", [&](ConfigReader& each) {
      std::string name;
      each.get("name", &name);
      all.rules.push_back(name);
    });
    (void)reader.has("main");
  }
  all.errors = errors.lines();
  return all;
}

std::string in_parts(const std::string& main, const std::string& one, const std::string& two = "") {
  std::string text = main;
  add_part(text, "f.d/1.yaml", one);
  add_part(text, "f.d/2.yaml", two);
  return text;
}

TEST(ConfigParts, ListsAndMappingsOfAllFilesFollowEachOther) {
  const Joined all =
      joined_of(in_parts("main: 1\nshares: {a: {}}\nrules: [{name: x}]\n",
                         "rules: [{name: y}]\nshares: {b: {weight: 2}}\n", "rules: [{name: z}]\n"));
  EXPECT_THAT(all.errors, IsEmpty());
  EXPECT_THAT(all.shares, ElementsAre("a", "b"));
  EXPECT_THAT(all.rules, ElementsAre("x", "y", "z"));
}

TEST(ConfigParts, TheMainFileNeedNotHaveWhatTheOthersHave) {
  const Joined all = joined_of(in_parts("main: 1\n", "rules: [{name: y}]\n", "# nothing\n"));
  EXPECT_THAT(all.errors, IsEmpty());
  EXPECT_THAT(all.rules, ElementsAre("y"));
}

TEST(ConfigParts, AMistakeNamesItsFileAndLine) {
  const Joined all = joined_of(in_parts("main: 1\nrules: [{nam: x}]\n",
                                        "shares:\n  b:\n    weight: 20\n", "rules:\n  - {x: y}\n"));
  EXPECT_THAT(all.errors,
              ElementsAre("f.yaml:2: rules[0].nam: unknown key; did you mean \"name\"?",
                          "f.d/1.yaml:3: shares.b.weight: \"20\" is out of range: 1 to 9",
                          "f.d/2.yaml:2: rules[1].x: unknown key (known here: name)"));
}

TEST(ConfigParts, ANameInTwoFilesNamesBoth) {
  const Joined all =
      joined_of(in_parts("main: 1\n\nshares: {a: {}}\n", "shares:\n  a: {}\n  c: {}\n  c: {}\n"));
  EXPECT_THAT(all.errors, ElementsAre("f.d/1.yaml:2: shares.a: given twice; first in f.yaml:3",
                                      "f.d/1.yaml:4: shares.c: given twice; first on line 3"));
}

TEST(ConfigParts, OtherKeysBelongIntoTheMainFile) {
  const Joined all = joined_of(in_parts("main: 1\n", "main: 2\n"));
  EXPECT_THAT(all.errors, ElementsAre("f.d/1.yaml:1: main: belongs into f.yaml: this file may have "
                                      "shares and rules"));
}

TEST(ConfigParts, FormsThatDoNotFitAreMistakes) {
  EXPECT_THAT(joined_of(in_parts("rules: [{name: x}]\n", "rules: {name: y}\n")).errors,
              ElementsAre("f.d/1.yaml:1: rules: must have the same form as in f.yaml:1"));
  EXPECT_THAT(joined_of(in_parts("rules: [{name: x}]\n", "rules:\n")).errors,
              ElementsAre("f.d/1.yaml:1: rules: has no value"));
  EXPECT_THAT(joined_of(in_parts("main: 1\n", "- x\n")).errors,
              ElementsAre("f.d/1.yaml:1: must be a mapping (key: value)"));
  EXPECT_THAT(joined_of(in_parts("main: 1\n", "\nrules: [\n")).errors,
              ElementsAre(::testing::StartsWith("f.d/1.yaml:3: not YAML: ")));
  EXPECT_THAT(joined_of(in_parts("main: 1\n", "rules: []\n---\nrules: []\n")).errors,
              ElementsAre("f.d/1.yaml:2: a second YAML document; only one is allowed"));
}

TEST(ConfigParts, WithoutKeysForThemThereIsOneFile) {
  ConfigErrors errors("f.yaml");
  {
    ConfigReader reader(in_parts("a: 1\n", "b: 1\n"), errors);
    (void)reader.has("a");
  }
  EXPECT_THAT(errors.lines(), ElementsAre("f.yaml:2: a second YAML document; only one is allowed"));
}

class ConfigFolder : public ::testing::Test {
 protected:
  ConfigFolder() {
    directory_.write("f.yaml", "main: 1\n");
    std::filesystem::create_directory(path("f.d"));
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (directory_.path() / name).string();
  }
  void read() {
    errors_ = ConfigErrors(path("f.yaml"));
    text_ = read_config_texts(errors_);
  }
  // The names of the files beside the main one.
  [[nodiscard]] std::vector<std::string> names() {
    read();
    std::vector<std::string> names;
    if (!text_) return {errors_.to_string()};
    for (const ConfigPart& each : parts_of(*text_)) {
      if (!each.file.empty()) names.push_back(std::filesystem::path(each.file).filename());
    }
    return names;
  }
  [[nodiscard]] std::vector<std::string> errors() {
    read();
    EXPECT_FALSE(text_);
    return errors_.lines();
  }

  test::TemporaryDirectory directory_;
  ConfigErrors errors_{""};
  std::optional<std::string> text_;
};

TEST_F(ConfigFolder, IsNamedAfterTheMainFile) {
  EXPECT_EQ(config_folder("/etc/vpfs/proxy.yaml"), "/etc/vpfs/proxy.d");
  EXPECT_EQ(config_folder("site.conf"), "site.conf.d");
}

TEST_F(ConfigFolder, ItsFilesAreReadInTheOrderOfTheirNames) {
  for (const char* name : {"20-b.yaml", "10-a.yaml", "9.yaml", "Z.yaml"}) {
    directory_.write(std::string("f.d/") + name, "rules: []\n");
  }
  EXPECT_THAT(names(), ElementsAre("10-a.yaml", "20-b.yaml", "9.yaml", "Z.yaml"));
}

TEST_F(ConfigFolder, AMissingFolderIsAllowed) {
  std::filesystem::remove(path("f.d"));
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_EQ(text_, "main: 1\n");
}

TEST_F(ConfigFolder, WhatEditorsAndPackagesLeaveIsNotRead) {
  for (const char* name :
       {"a.yaml~", ".#a.yaml", "#a.yaml#", ".a.yaml.swp", "a.yaml.dpkg-new", "a.yaml.dpkg-old",
        "a.yaml.rpmsave", "a.yaml.rpmnew", ".hidden.yaml", "README"}) {
    directory_.write(std::string("f.d/") + name, ": not YAML [");
  }
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_THAT(errors_.warnings(), IsEmpty());
}

TEST_F(ConfigFolder, AnEndingThatIsNearlyRightIsAWarning) {
  directory_.write("f.d/a.yml", "rules: []\n");
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_THAT(errors_.warnings(),
              ElementsAre(path("f.d/a.yml") + ": is not read: its name does not end with .yaml"));
}

TEST_F(ConfigFolder, AnEmptyFileIsGood) {
  directory_.write("f.d/a.yaml", "");
  directory_.write("f.d/b.yaml", " \n\n");
  EXPECT_THAT(names(), ElementsAre("a.yaml", "b.yaml"));
}

TEST_F(ConfigFolder, WhatCannotBeReadIsOneErrorEach) {
  std::filesystem::create_directory(path("f.d/folder.yaml"));
  std::filesystem::create_symlink("nowhere", path("f.d/link.yaml"));
  EXPECT_THAT(errors(),
              ElementsAre(path("f.d/folder.yaml") + ": is a directory, not a file",
                          path("f.d/link.yaml") + ": cannot be read: No such file or directory"));
}

TEST_F(ConfigFolder, AFileThatMayNotBeReadIsAnError) {
  const std::string secret = directory_.write("f.d/secret.yaml", "rules: []\n");
  std::filesystem::permissions(directory_.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(secret, std::filesystem::perms::none);
  const test::AsNobody nobody;
  EXPECT_THAT(errors(), ElementsAre(secret + ": cannot be read: Permission denied"));
}

TEST_F(ConfigFolder, AFolderThatIsNoneOrMayNotBeReadIsAnError) {
  std::filesystem::permissions(directory_.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(path("f.d"), std::filesystem::perms::none);
  {
    const test::AsNobody nobody;
    EXPECT_THAT(errors(), ElementsAre(path("f.d") + ": cannot be read: Permission denied"));
  }
  std::filesystem::remove(path("f.d"));
  directory_.write("f.d", "x");
  EXPECT_THAT(errors(), ElementsAre(path("f.d") + ": cannot be read: Not a directory"));
}

TEST_F(ConfigFolder, AFileThatWouldSplitItselfIsAnError) {
  directory_.write("f.d/a.yaml", "rules: []\n--- # file: b\n");
  EXPECT_THAT(errors(),
              ElementsAre(path("f.d/a.yaml") + ":2: a second YAML document; only one is allowed"));
  std::filesystem::remove(path("f.d/a.yaml"));
  directory_.write("f.yaml", "main: 1\n--- # file: b\n");
  EXPECT_THAT(errors(),
              ElementsAre(path("f.yaml") + ":2: a second YAML document; only one is allowed"));
}

}  // namespace
}  // namespace vpfs
