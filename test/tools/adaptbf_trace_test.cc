#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/outcome.h"
#include "test/support/places.h"
#include "test/support/process.h"

// The program adaptbf_trace.
namespace vpfs {
namespace {

using test::Outcome;
using test::outcome_of;

const std::string kProgram = test::program("adaptbf_trace");
const std::string kHeader = "period,job,nodes,demand\n";

Outcome trace_file(const std::string& file, const std::string& rate, const std::string& period) {
  return outcome_of({kProgram, "--rate", rate, "--period", period, file});
}

std::string trace(const std::string& text, const std::string& rate = "1000",
                  const std::string& period = "0.1") {
  const test::TemporaryDirectory directory;
  const Outcome outcome = trace_file(directory.write("trace.csv", text), rate, period);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.errors, "");
  return outcome.output;
}

// The error about a file, without its name.
std::string problem(const std::string& text) {
  const test::TemporaryDirectory directory;
  const std::string file = directory.write("trace.csv", text);
  const Outcome outcome = trace_file(file, "1000", "0.1");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.output, "");
  EXPECT_TRUE(outcome.errors.starts_with(file + ":")) << outcome.errors;
  return outcome.errors.substr(std::min(file.size(), outcome.errors.size()));
}

// adaptbf_allocator_test.cc derives the numbers by hand.
const std::string kLendAndPayBack = kHeader +
                                    "1,reader,1,20\n"
                                    "1,writer,1,200\n"
                                    "2,writer,1,100\n"
                                    "2,reader,1,100\n";
const std::string kLentAndPaidBack =
    "period,job,tokens,record\n"
    "1,reader,21,29\n"
    "1,writer,79,-29\n"
    "2,writer,21,0\n"
    "2,reader,79,0\n";

TEST(AdapTbfTrace, PrintsTokensAndRecordOfEachRowInTheOrderOfTheInput) {
  EXPECT_EQ(trace(kLendAndPayBack), kLentAndPaidBack);
  EXPECT_EQ(trace(kHeader), "period,job,tokens,record\n");
}

TEST(AdapTbfTrace, ASkippedPeriodIsOneWithoutAnActiveJob) {
  const std::string text = kHeader + "1,a,1,20\n1,b,1,200\n18446744073709551615,a,1,100\n" +
                           "18446744073709551615,b,1,100\n";
  EXPECT_EQ(trace(text),
            "period,job,tokens,record\n1,a,21,29\n1,b,79,-29\n"
            "18446744073709551615,a,75,4\n18446744073709551615,b,25,-4\n");
}

TEST(AdapTbfTrace, AcceptsCarriageReturnsAndAMissingLastLineEnd) {
  std::string text;
  for (const char letter : kLendAndPayBack)
    text += letter == '\n' ? "\r\n" : std::string(1, letter);
  EXPECT_EQ(trace(text), kLentAndPaidBack);
  text.resize(text.size() - 2);
  EXPECT_EQ(trace(text), kLentAndPaidBack);
}

TEST(AdapTbfTrace, ReadsStandardInputWhenAskedTo) {
  const test::TemporaryDirectory directory;
  const std::string command = kProgram + " --rate 1000 --period 0.1 - < ";
  const std::string good = directory.write("good.csv", kLendAndPayBack);
  EXPECT_EQ(outcome_of({"/bin/sh", "-c", command + good}).output, kLentAndPaidBack);
  const Outcome outcome =
      outcome_of({"/bin/sh", "-c", command + directory.write("bad.csv", kHeader + "x")});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.errors, "-:2: 1 fields instead of 4\n");
}

TEST(AdapTbfTrace, TheBudgetIsTheExactProductRoundedDown) {
  const auto budget = [](const std::string& rate, const std::string& period) {
    const std::string output = trace(kHeader + "7,job 1,3,5\n", rate, period);
    const std::string before = "period,job,tokens,record\n7,job 1,";
    EXPECT_TRUE(output.starts_with(before)) << output;
    EXPECT_TRUE(output.ends_with(",0\n")) << output;
    return output.substr(before.size(), output.size() - before.size() - 3);
  };
  EXPECT_EQ(budget("1005", "0.1"), "100");
  EXPECT_EQ(budget("1009.999", "0.1"), "100");
  EXPECT_EQ(budget("1010", "0.1"), "101");
  EXPECT_EQ(budget("3", "0.7"), "2");
  EXPECT_EQ(budget("290", "0.10"), "29");
  EXPECT_EQ(budget("0.3", "10.000"), "3");
  EXPECT_EQ(budget(".5", "007"), "3");
  EXPECT_EQ(budget("9", "0.1"), "0");
  EXPECT_EQ(budget("0", "1"), "0");
  EXPECT_EQ(budget("1099511627776", "1"), "1099511627776");
  EXPECT_EQ(budget("999999999999999999", "0.000000000000000001"), "0");
}

// Two jobs share one token; the smaller id gets it.
TEST(AdapTbfTrace, TiesGoToTheSmallerIdByValueWhereBothAreNumbersAndAsTextOtherwise) {
  const auto winner = [](const std::string& one, const std::string& other) {
    const std::string output =
        trace(kHeader + "1," + one + ",1,9\n1," + other + ",1,9\n", "1", "1");
    EXPECT_TRUE(output.contains("," + one + ",1,0\n") != output.contains("," + other + ",1,0\n"));
    return output.contains("," + one + ",1,0\n") ? one : other;
  };
  EXPECT_EQ(winner("10", "9"), "9");
  EXPECT_EQ(winner("100000000000000000000001", "100000000000000000000000"),
            "100000000000000000000000");
  EXPECT_EQ(winner("010", "9"), "9");
  EXPECT_EQ(winner("1", "01"), "01");
  EXPECT_EQ(winner("job9", "job10"), "job10");
  EXPECT_EQ(winner("a", "10"), "10");
  EXPECT_EQ(winner("b \"x\"", "b"), "b");
}

TEST(AdapTbfTrace, EveryErrorInTheFileIsOneLineWithItsPlace) {
  const std::string header = ":1: the header must be \"period,job,nodes,demand\"\n";
  EXPECT_EQ(problem(""), header);
  EXPECT_EQ(problem("1,a,1,20\n"), header);
  EXPECT_EQ(problem("period,job,nodes,demand,\n"), header);
  EXPECT_EQ(problem(kHeader + "\n"), ":2: 1 fields instead of 4\n");
  EXPECT_EQ(problem(kHeader + "1,a,1,20\n1,b,1\n"), ":3: 3 fields instead of 4\n");
  EXPECT_EQ(problem(kHeader + "1,a,b,1,20"), ":2: 5 fields instead of 4\n");
  EXPECT_EQ(problem(kHeader + "x,a,1,20\n"), ":2: period: \"x\" is not a number\n");
  EXPECT_EQ(problem(kHeader + "1,a,,20\n"), ":2: nodes: \"\" is not a number\n");
  EXPECT_EQ(problem(kHeader + "1,a,-1,20\n"), ":2: nodes: \"-1\" is not a number\n");
  EXPECT_EQ(problem(kHeader + "1,a,1,2.5\n"), ":2: demand: \"2.5\" is not a number\n");
  EXPECT_EQ(problem(kHeader + "1,a,0,20\n"), ":2: nodes: must be more than zero\n");
  EXPECT_EQ(problem(kHeader + "1,a,1,0\n"), ":2: demand: must be more than zero\n");
  EXPECT_EQ(problem(kHeader + "1,a,1099511627777,20\n"),
            ":2: nodes: 1099511627777 is more than 1099511627776\n");
  EXPECT_EQ(problem(kHeader + "1,a,1,99999999999999999999999\n"),
            ":2: demand: 99999999999999999999999 is more than 1099511627776\n");
  EXPECT_EQ(problem(kHeader + "18446744073709551616,a,1,1\n"),
            ":2: period: 18446744073709551616 is more than 18446744073709551615\n");
  EXPECT_EQ(problem(kHeader + "1,a,1,20\n1,b,1,20\n1,a,1,20\n"),
            ":4: job a is there twice in period 1\n");
  EXPECT_EQ(problem(kHeader + "2,a,1,20\n1,a,1,20\n"), ":3: period 1 comes after 2\n");
}

TEST(AdapTbfTrace, FilesThatCannotBeReadAreErrors) {
  Outcome outcome = trace_file("/no/such/file", "1", "1");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.errors, "/no/such/file: cannot open: No such file or directory\n");
  outcome = trace_file("/", "1", "1");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.errors, "/: cannot read: Is a directory\n");
}

TEST(AdapTbfTrace, EveryErrorOfTheCommandLineIsOneLine) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "--rate is required\n"},
      {{"--rate", "1", "--period", "1"}, "FILE is required\n"},
      {{"--rate", "1", "-"}, "--period is required\n"},
      {{"--rate", "1", "--period", "1", "--what", "-"},
       "The following argument was not expected: --what\n"},
      {{"--rate", "1e3", "--period", "1", "-"}, "--rate: \"1e3\" is not a decimal number\n"},
      {{"--rate", "-1", "--period", "1", "-"}, "--rate: \"-1\" is not a decimal number\n"},
      {{"--rate", "1", "--period", "1.", "-"}, "--period: \"1.\" is not a decimal number\n"},
      {{"--rate", "1", "--period", ".", "-"}, "--period: \".\" is not a decimal number\n"},
      {{"--rate", "1", "--period", "0.00", "-"}, "--period: must be more than zero\n"},
      {{"--rate", "1234567890.1234567891", "--period", "1", "-"},
       "--rate: 1234567890.1234567891 has more than 18 digits\n"},
      {{"--rate", "1099511627777", "--period", "1", "-"},
       "--rate times --period: more than 1099511627776 tokens\n"},
  };
  for (const auto& [arguments, message] : cases) {
    std::vector<std::string> command = {kProgram};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Outcome outcome = outcome_of(command);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.output, "");
    EXPECT_EQ(outcome.errors, message);
  }
}

TEST(AdapTbfTrace, AFullDiskIsAnError) {
  const test::TemporaryDirectory directory;
  const std::string command = kProgram + " --rate 1000 --period 0.1 " +
                              directory.write("trace.csv", kLendAndPayBack) + " > /dev/full";
  const Outcome outcome = outcome_of({"/bin/sh", "-c", command});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.errors, "cannot write to standard output: No space left on device\n");
}

}  // namespace
}  // namespace vpfs
