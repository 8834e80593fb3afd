#include "base/command_line.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/version.h"

namespace vpfs {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::internal::CaptureStderr;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStderr;
using ::testing::internal::GetCapturedStdout;

struct Parsing {
  std::optional<int> code;
  std::string output;
  std::string errors;
};

Parsing parse(const OptionParser& parser, std::vector<std::string> words) {
  words.insert(words.begin(), "program");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  CaptureStdout();
  CaptureStderr();
  const auto code = parser.parse("program", static_cast<int>(pointers.size()), pointers.data());
  return {.code = code, .output = GetCapturedStdout(), .errors = GetCapturedStderr()};
}

enum class Color { red, green = 5 };

struct Values {
  std::string text = "before";
  double part = 0.5;
  int number = -1;
  std::uint16_t port = 1;
  std::uint32_t count = 2;
  std::uint64_t size = 3;
  std::vector<std::string> names;
  std::vector<std::uint16_t> ports;
  std::vector<std::uint32_t> counts;
  std::vector<std::uint64_t> sizes;
  Color color = Color::red;
  bool flag = false;
};

// Options of every kind, without conditions.
class CommandLineTest : public ::testing::Test {
 protected:
  CommandLineTest() {
    parser_.add_option("--text", values_.text, "some text").value_name("TEXT");
    parser_.add_option("--part", values_.part);
    parser_.add_option("--number", values_.number);
    parser_.add_option("--port", values_.port);
    parser_.add_option("-c,--count", values_.count);
    parser_.add_option("--size", values_.size);
    parser_.add_option("--name", values_.names).one_value_each_time();
    parser_.add_option("--ports", values_.ports).separated_by_commas().one_value_each_time();
    parser_.add_option("--counts", values_.counts);
    parser_.add_option("--sizes", values_.sizes).separated_by_commas();
    parser_.add_choice("--color", values_.color, {{"red", Color::red}, {"green", Color::green}},
                       "of it");
    parser_.add_flag("-f,--flag", values_.flag, "a flag");
  }

  Values values_;
  OptionParser parser_{"Tries what programs take."};
};

TEST_F(CommandLineTest, ValuesThatAreNotGivenStayAsTheyWere) {
  EXPECT_EQ(parse(parser_, {}).code, std::nullopt);
  EXPECT_EQ(values_.text, "before");
  EXPECT_EQ(values_.number, -1);
  EXPECT_EQ(values_.size, 3U);
  EXPECT_EQ(values_.color, Color::red);
  EXPECT_FALSE(values_.flag);
  EXPECT_THAT(values_.names, IsEmpty());
}

TEST_F(CommandLineTest, EveryKindOfValueIsRead) {
  const Parsing parsing =
      parse(parser_, {"--text", "new",     "--part=0.25", "--number", "-7",  "--port",   "65535",
                      "-c",     "4",       "-f",          "--size",   "5",   "--counts", "6",
                      "7",      "--sizes", "8,9",         "--ports",  "1,2", "--color",  "green"});
  EXPECT_EQ(parsing.code, std::nullopt) << parsing.errors;
  EXPECT_EQ(values_.text, "new");
  EXPECT_EQ(values_.part, 0.25);
  EXPECT_EQ(values_.number, -7);
  EXPECT_EQ(values_.port, 65535);
  EXPECT_EQ(values_.count, 4U);
  EXPECT_EQ(values_.size, 5U);
  EXPECT_THAT(values_.counts, ElementsAre(6, 7));
  EXPECT_THAT(values_.sizes, ElementsAre(8, 9));
  EXPECT_THAT(values_.ports, ElementsAre(1, 2));
  EXPECT_EQ(values_.color, Color::green);
  EXPECT_TRUE(values_.flag);
}

TEST_F(CommandLineTest, AListOfOneValueEachTimeTakesNoWordAfterIt) {
  EXPECT_EQ(parse(parser_, {"--name", "a", "--name", "b"}).code, std::nullopt);
  EXPECT_THAT(values_.names, ElementsAre("a", "b"));
  EXPECT_EQ(parse(parser_, {"--name", "a", "b"}).code, kBadUsage);
}

// A script's variable that is not set must not count as an option that was not given.
TEST_F(CommandLineTest, AnEmptyValueOfAnOptionIsAMistake) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--text", ""}, {"--text="}, {"--name", "a", "--name", ""}, {"--size", ""}, {"--ports", ""}};
  for (const std::vector<std::string>& words : wrong) {
    const Parsing parsing = parse(parser_, words);
    EXPECT_EQ(parsing.code, kBadUsage) << words.front();
    EXPECT_THAT(parsing.errors, HasSubstr(words.front().substr(0, words.front().find('='))));
  }
  EXPECT_THAT(parse(parser_, {"--text", ""}).errors, HasSubstr("expected a value, not an empty"));
}

TEST_F(CommandLineTest, NoOtherWordBecomesTheValueOfAnOptionWithoutOne) {
  const Parsing parsing = parse(parser_, {"--text=", "--flag", "word"});
  EXPECT_EQ(parsing.code, kBadUsage);
  EXPECT_THAT(parsing.errors, HasSubstr("--text: expected a value, not an empty one"));
  std::string argument;
  parser_.add_option("WORD", argument);
  EXPECT_EQ(parse(parser_, {"--text=a=", "--", "--text="}).code, std::nullopt);
  EXPECT_EQ(values_.text, "a=");
  EXPECT_EQ(argument, "--text=");
  // What belongs to the option before it is its value, and a flag has none.
  EXPECT_EQ(parse(parser_, {"--text", "--name=", "word"}).code, std::nullopt);
  EXPECT_EQ(values_.text, "--name=");
  EXPECT_EQ(argument, "word");
  EXPECT_THAT(parse(parser_, {"--flag=", "word"}).errors, Not(HasSubstr("empty one")));
}

TEST_F(CommandLineTest, AnOptionThatMayBeEmptyTakesAnEmptyValue) {
  std::string account = "before";
  std::vector<std::string> lists;
  parser_.add_option("--account", account).may_be_empty();
  parser_.add_option("-o", lists).one_value_each_time().may_be_empty();
  const Parsing parsing = parse(parser_, {"--account", "", "-o", "", "-o", "a"});
  EXPECT_EQ(parsing.code, std::nullopt) << parsing.errors;
  EXPECT_EQ(account, "");
  EXPECT_THAT(lists, ElementsAre("", "a"));
  EXPECT_EQ(parse(parser_, {"--account=", "--flag"}).code, std::nullopt);
  EXPECT_EQ(account, "");
}

TEST_F(CommandLineTest, AnArgumentMayBeEmpty) {
  std::string argument = "before";
  parser_.add_option("WORD", argument);
  EXPECT_EQ(parse(parser_, {""}).code, std::nullopt);
  EXPECT_EQ(argument, "");
}

TEST_F(CommandLineTest, ValuesThatTheirTypesDoNotHoldAreMistakes) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--port", "65536"}, {"--port", "-1"}, {"--count", "4294967296"}, {"--number", "x"},
      {"--part", "half"},  {"--size", "x"},  {"--counts", "1", "x"},    {"--ports", "1,x"},
      {"--color", "blue"}, {"--text"}};
  for (const std::vector<std::string>& words : wrong) {
    const Parsing parsing = parse(parser_, words);
    EXPECT_EQ(parsing.code, kBadUsage) << words.back();
    EXPECT_THAT(parsing.errors, HasSubstr(words.front()));
    EXPECT_EQ(parsing.output, "");
  }
}

// The option library takes 010 for eight, and a number beyond its type for the largest one.
TEST_F(CommandLineTest, WholeNumbersAreDecimalAndFit) {
  EXPECT_EQ(parse(parser_, {"--count", "010", "--number", "-010"}).code, std::nullopt);
  EXPECT_EQ(values_.count, 10U);
  EXPECT_EQ(values_.number, -10);
  const std::vector<std::vector<std::string>> wrong = {{"--count", "-1"},
                                                       {"--count", "0x10"},
                                                       {"--count", "1 "},
                                                       {"--count", "+1"},
                                                       {"--size", "99999999999999999999"},
                                                       {"--size", "1e3"},
                                                       {"--sizes", "1,02,x"}};
  for (const std::vector<std::string>& words : wrong) {
    const Parsing parsing = parse(parser_, words);
    EXPECT_EQ(parsing.code, kBadUsage) << words.back();
    EXPECT_THAT(parsing.errors, HasSubstr("expected a whole number, 0 to ")) << words.back();
  }
}

TEST_F(CommandLineTest, UnknownWordsAreNamed) {
  for (const std::string word : {"--confg", "word"}) {
    const Parsing parsing = parse(parser_, {word});
    EXPECT_EQ(parsing.code, kBadUsage);
    EXPECT_THAT(parsing.errors, AllOf(HasSubstr(word), HasSubstr("--help")));
  }
}

TEST_F(CommandLineTest, AnOptionThatIsNearlyRightIsProposed) {
  EXPECT_THAT(parse(parser_, {"--numbr", "3"}).errors, HasSubstr("Did you mean --number?"));
  EXPECT_THAT(parse(parser_, {"--quite-another"}).errors, Not(HasSubstr("Did you mean")));
}

TEST_F(CommandLineTest, HelpAndVersionGoToStandardOutput) {
  const Parsing help = parse(parser_, {"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.errors, "");
  EXPECT_THAT(help.output, AllOf(HasSubstr("Tries what programs take."), HasSubstr("--text TEXT"),
                                 HasSubstr("some text"), HasSubstr("-f,--flag")));
  const Parsing version = parse(parser_, {"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.output, "program " + std::string(vpfs::version()) + "\n");
}

TEST_F(CommandLineTest, AnEmptyOptionIsReportedAsRequired) {
  CaptureStderr();
  EXPECT_EQ(parser_.missing("--config"), kBadUsage);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("--config is required"));
}

TEST(OptionParser, BothEndsOfARangeAreAllowed) {
  Values values;
  OptionParser parser("ranges");
  parser.add_option("--number", values.number).between(-2, 2);
  parser.add_option("--part", values.part).between(0.0, 1.0);
  parser.add_option("--count", values.count).between(10U, 20U);
  parser.add_option("--sizes", values.sizes).between(std::uint64_t{1}, 5'000'000'000);
  for (const auto* good : {"--number=-2", "--number=2", "--part=0", "--part=1", "--count=10",
                           "--count=20", "--sizes=1", "--sizes=5000000000"}) {
    EXPECT_EQ(parse(parser, {good}).code, std::nullopt) << good;
  }
  for (const auto* bad : {"--number=-3", "--number=3", "--part=-0.1", "--part=1.1", "--count=9",
                          "--count=21", "--sizes=0", "--sizes=5000000001"}) {
    const Parsing parsing = parse(parser, {bad});
    EXPECT_EQ(parsing.code, kBadUsage) << bad;
    EXPECT_THAT(parsing.errors, HasSubstr("not in range")) << bad;
  }
  EXPECT_EQ(parse(parser, {"--sizes", "1", "0"}).code, kBadUsage);
}

TEST(OptionParser, OnlyPositiveNumbersAndListedWordsPassTheirChecks) {
  Values values;
  OptionParser parser("checks");
  parser.add_option("--part", values.part).positive();
  parser.add_option("--text", values.text).one_of({"read", "write"});
  EXPECT_EQ(parse(parser, {"--part", "0.1", "--text", "write"}).code, std::nullopt);
  EXPECT_EQ(values.text, "write");
  EXPECT_EQ(parse(parser, {"--part", "0"}).code, kBadUsage);
  EXPECT_EQ(parse(parser, {"--part=-1"}).code, kBadUsage);
  const Parsing parsing = parse(parser, {"--text", "erase"});
  EXPECT_EQ(parsing.code, kBadUsage);
  EXPECT_THAT(parsing.errors, HasSubstr("erase not in {read,write}"));
}

TEST(OptionParser, RequiredNeededAndExcludedOptionsAreChecked) {
  Values values;
  OptionParser parser("conditions");
  parser.add_option("NAME", values.text).required();
  const Option count = parser.add_option("--count", values.count);
  parser.add_option("--size", values.size).needs(count);
  parser.add_option("--port", values.port).excludes(count);
  EXPECT_THAT(parse(parser, {}).errors, HasSubstr("NAME is required"));
  EXPECT_EQ(parse(parser, {"n", "--port", "1"}).code, std::nullopt);
  EXPECT_EQ(parse(parser, {"n", "--size", "1", "--count", "1"}).code, std::nullopt);
  EXPECT_THAT(parse(parser, {"n", "--size", "1"}).errors, HasSubstr("--size requires --count"));
  EXPECT_THAT(parse(parser, {"n", "--port", "1", "--count", "1"}).errors, HasSubstr("excludes"));
}

TEST(OptionParser, HiddenOptionsWorkAndAreNotShown) {
  Values values;
  OptionParser parser("hides");
  parser.add_flag("--secret", values.flag).hidden();
  EXPECT_THAT(parse(parser, {"--help"}).output, Not(HasSubstr("--secret")));
  EXPECT_THAT(parse(parser, {"--describe-options"}).output, Not(HasSubstr("--secret")));
  EXPECT_EQ(parse(parser, {"--secret"}).code, std::nullopt);
  EXPECT_TRUE(values.flag);
}

// A program with the commands "list" and "rule start".
class CommandsTest : public ::testing::Test {
 protected:
  CommandsTest() {
    parser_.take_options_after_commands();
    parser_.require_command();
    parser_.add_flag("--json", json_, "print JSON");
    (void)parser_.add_command("list", "list all", [this] { chosen_ += "list"; });
    const Command rule = parser_.add_command("rule", "rules");
    rule.require_command();
    const Command start = rule.add_command("start", "start one", [this] { chosen_ += "start"; });
    start.add_option("NAME", name_, "of the rule").required();
    start.add_option("WORD", words_, "of it");
    start.add_option("-t,--time", time_, "until it ends").value_name("TIME");
    parser_.describe_mistakes([this](const UsageMistake& mistake) {
      mistake_ = mistake;
      return "told\n";
    });
  }

  bool json_ = false;
  std::string name_;
  std::vector<std::string> words_;
  std::string time_;
  std::string chosen_;
  std::optional<UsageMistake> mistake_;
  OptionParser parser_{"Has commands."};
};

TEST_F(CommandsTest, OnlyTheChosenCommandIsCalled) {
  EXPECT_EQ(parse(parser_, {"rule", "start", "r", "a", "b", "--time", "1s"}).code, std::nullopt);
  EXPECT_EQ(chosen_, "start");
  EXPECT_EQ(name_, "r");
  EXPECT_THAT(words_, ElementsAre("a", "b"));
  EXPECT_EQ(time_, "1s");
  EXPECT_EQ(mistake_, std::nullopt);
}

TEST_F(CommandsTest, OptionsOfTheProgramMayComeAfterACommand) {
  EXPECT_EQ(parse(parser_, {"list", "--json"}).code, std::nullopt);
  EXPECT_TRUE(json_);
}

TEST_F(CommandsTest, AMissingCommandIsAMistakeWithThoseThatMayFollow) {
  const Parsing parsing = parse(parser_, {"rule"});
  EXPECT_EQ(parsing.code, kBadUsage);
  EXPECT_EQ(parsing.errors, "told\n");
  ASSERT_TRUE(mistake_);
  EXPECT_EQ(mistake_->command, "rule");
  EXPECT_THAT(mistake_->commands, ElementsAre("start"));
  EXPECT_THAT(mistake_->unknown, IsEmpty());
}

TEST_F(CommandsTest, AnUnknownCommandIsToldWithItsWord) {
  EXPECT_EQ(parse(parser_, {"lits"}).code, kBadUsage);
  ASSERT_TRUE(mistake_);
  EXPECT_EQ(mistake_->command, "");
  EXPECT_THAT(mistake_->commands, ElementsAre("list", "rule"));
  EXPECT_THAT(mistake_->unknown, ElementsAre("lits"));
}

TEST_F(CommandsTest, AnUnknownOptionIsToldWithThoseOfTheProgramAndItsCommands) {
  EXPECT_EQ(parse(parser_, {"rule", "start", "r", "--tiem"}).code, kBadUsage);
  ASSERT_TRUE(mistake_);
  EXPECT_EQ(mistake_->command, "start");
  EXPECT_THAT(mistake_->unknown, ElementsAre("--tiem"));
  EXPECT_THAT(mistake_->options,
              ElementsAre("--help", "--json", "--version", "--help", "--help", "--time"));
  EXPECT_THAT(chosen_, IsEmpty());
}

TEST_F(CommandsTest, ADescriptionHasEveryCommandOptionAndArgument) {
  const Parsing parsing = parse(parser_, {"--describe-options"});
  EXPECT_EQ(parsing.code, 0);
  EXPECT_EQ(parsing.output,
            "program\tprogram\tHas commands.\n"
            "option\t\t-h,--help\t\tPrint this help message and exit\n"
            "option\t\t--json\t\tprint JSON\n"
            "option\t\t--version\t\tDisplay program version information and exit\n"
            "command\tlist\tlist all\n"
            "option\tlist\t-h,--help\t\tPrint this help message and exit\n"
            "command\trule\trules\n"
            "option\trule\t-h,--help\t\tPrint this help message and exit\n"
            "command\trule start\tstart one\n"
            "option\trule start\t-h,--help\t\tPrint this help message and exit\n"
            "argument\trule start\tNAME\tone\tof the rule\n"
            "argument\trule start\tWORD\tany\tof it\n"
            "option\trule start\t-t,--time\tTIME\tuntil it ends\n");
}

TEST(OptionParser, ProgramsThatAreNotInstalledHaveNoVersion) {
  const OptionParser parser("measures");
  std::string program = "program";
  std::string word = "--version";
  std::vector<char*> words = {program.data(), word.data()};
  CaptureStderr();
  const std::optional<int> code = parser.parse(2, words.data());
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("--version"));
  ASSERT_TRUE(code);
  EXPECT_GE(*code, 100);
}

}  // namespace
}  // namespace vpfs
