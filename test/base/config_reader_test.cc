#include "base/config_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using namespace std::chrono_literals;

// The errors that ConfigReader reports about `text` when `read` uses it.
template <typename Read>
std::vector<std::string> errors_of(std::string_view text, Read read) {
  ConfigErrors errors("f.yaml");
  {
    ConfigReader reader(text, errors);
    read(reader);
  }
  return errors.lines();
}

void read_nothing(ConfigReader& /*reader*/) {}

TEST(ConfigReader, ReadsEveryKindOfValue) {
  ConfigErrors errors("f.yaml");
  std::string text;
  bool flag = false;
  double factor = 0;
  std::uint64_t number = 0;
  Bytes size;
  BytesPerSecond rate;
  Duration time = {};
  std::vector<std::string> list;
  std::vector<std::string> single;
  std::vector<std::pair<std::string, std::string>> pairs;
  std::string choice;
  {
    ConfigReader reader(
        "text: a b\nflag: true\nfactor: 1.5\nnumber: 7\nsize: 4 KiB\nrate: 2 MiB/s\ntime: 3 s\n"
        "list: [x, y]\nsingle: x\npairs: {b: 1, a: two}\nchoice: sfq\n",
        errors);
    EXPECT_TRUE(reader.get("text", &text));
    EXPECT_TRUE(reader.get("flag", &flag));
    EXPECT_TRUE(reader.get("factor", &factor, 0.0, 2.0));
    EXPECT_TRUE(reader.get("number", &number, 1, 10));
    EXPECT_TRUE(reader.get("size", &size, Bytes{1}, Bytes{kMiB}));
    EXPECT_TRUE(reader.get("rate", &rate, BytesPerSecond{1}, BytesPerSecond{kGiB}));
    EXPECT_TRUE(reader.get("time", &time, 1s, 10s));
    EXPECT_TRUE(reader.get("list", &list));
    EXPECT_TRUE(reader.get("single", &single));
    EXPECT_TRUE(reader.get("pairs", &pairs));
    EXPECT_TRUE(reader.choose("choice", &choice, {"fifo", "sfq"}));
  }
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_EQ(text, "a b");
  EXPECT_TRUE(flag);
  EXPECT_EQ(factor, 1.5);
  EXPECT_EQ(number, 7U);
  EXPECT_EQ(size, Bytes{4096});
  EXPECT_EQ(rate, BytesPerSecond{2 * kMiB});
  EXPECT_EQ(time, Duration(3s));
  EXPECT_THAT(list, ElementsAre("x", "y"));
  EXPECT_THAT(single, ElementsAre("x"));
  EXPECT_THAT(pairs, ElementsAre(Pair("b", "1"), Pair("a", "two")));
  EXPECT_EQ(choice, "sfq");
}

TEST(ConfigReader, AnAbsentKeyLeavesTheDefaultAndReportsNothing) {
  std::uint64_t number = 5;
  EXPECT_THAT(errors_of("",
                        [&](ConfigReader& reader) {
                          EXPECT_FALSE(reader.get("number", &number, 1, 10));
                          EXPECT_FALSE(reader.child("mapping").get("number", &number, 1, 10));
                          reader.child("mapping").require("number");
                          EXPECT_FALSE(reader.for_each("list", [](ConfigReader&) { FAIL(); }));
                        }),
              ElementsAre());
  EXPECT_EQ(number, 5U);
}

TEST(ConfigReader, AllErrorsOfAFileComeInOnePassInLineOrder) {
  ConfigErrors errors("proxy.yaml");
  {
    ConfigReader root("proxy:\n  listn: here\n  workers: none\ndepth: 0\ndepth: 3\n", errors);
    std::uint64_t depth = 9;
    root.get("depth", &depth, 1, 64);
    EXPECT_EQ(depth, 9U);
    ConfigReader proxy = root.child("proxy");
    std::string listen;
    std::uint64_t workers = 0;
    proxy.get("listen", &listen);
    proxy.get("workers", &workers, 1, 8);
    proxy.require("upstream");
  }
  EXPECT_EQ(errors.to_string(),
            "proxy.yaml:1: proxy.upstream: is missing\n"
            "proxy.yaml:2: proxy.listn: unknown key; did you mean \"listen\"?\n"
            "proxy.yaml:3: proxy.workers: \"none\" is not a whole number\n"
            "proxy.yaml:4: depth: \"0\" is out of range: 1 to 64\n"
            "proxy.yaml:5: depth: given twice; first on line 4\n");
}

TEST(ConfigReader, AnUnknownKeyNamesTheKnownOnesWhenNoneIsNear) {
  EXPECT_THAT(errors_of("zebra: 1\n",
                        [](ConfigReader& reader) {
                          (void)reader.has("weight");
                          (void)reader.has("rate");
                        }),
              ElementsAre("f.yaml:1: zebra: unknown key (known here: weight, rate)"));
  EXPECT_THAT(errors_of("a: 1\n", read_nothing), ElementsAre("f.yaml:1: a: unknown key"));
}

TEST(ConfigReader, AMessageStaysOneLineWhateverItQuotes) {
  EXPECT_THAT(errors_of("\"a\\nb\\x1b[2J\": 1\n", read_nothing),
              ElementsAre("f.yaml:1: a\\nb\\x1b[2J: unknown key"));
}

// The YAML library reads documents without end from these.
TEST(ConfigReader, ALoneCommaIsAMistake) {
  for (const char* const text : {",", ",#` # ", "a: 1\n---\n,"}) {
    EXPECT_FALSE(errors_of(text, read_nothing).empty()) << text;
  }
}

TEST(ConfigReader, WrongTypesAreNamed) {
  EXPECT_THAT(
      errors_of("a: [1]\nb:\nc: yes\nd: 1.5\ne: {x: 1}\nf: word\ng: 7\nh: [{}]\ni: {x: [1]}\n",
                [](ConfigReader& reader) {
                  std::string text;
                  bool flag = false;
                  std::uint64_t number = 0;
                  double factor = 0;
                  std::vector<std::string> list;
                  std::vector<std::pair<std::string, std::string>> pairs;
                  reader.get("a", &text);
                  reader.get("b", &text);
                  reader.get("c", &flag);
                  reader.get("d", &number, 0, 9);
                  reader.for_each("e", [](ConfigReader&) { FAIL(); });
                  reader.get("f", &factor, 0.0, 1.0);
                  (void)reader.child("g");
                  reader.get("h", &list);
                  reader.get("i", &pairs);
                }),
      ElementsAre("f.yaml:1: a: must be a single value", "f.yaml:2: b: has no value",
                  "f.yaml:3: c: \"yes\" is not a truth value: expected true or false",
                  "f.yaml:4: d: \"1.5\" is not a whole number", "f.yaml:5: e: must be a list",
                  "f.yaml:6: f: \"word\" is not a number",
                  "f.yaml:7: g: must be a mapping (key: value)",
                  "f.yaml:8: h: must be a value or a list of values",
                  "f.yaml:9: i.x: must be a single value"));
}

TEST(ConfigReader, AnEmptyListOrMappingOfValuesIsAMistake) {
  std::vector<std::string> list = {"before"};
  std::vector<std::pair<std::string, std::string>> pairs;
  EXPECT_THAT(errors_of("list: []\npairs: {}\n",
                        [&](ConfigReader& reader) {
                          EXPECT_FALSE(reader.get("list", &list));
                          EXPECT_FALSE(reader.get("pairs", &pairs));
                        }),
              ElementsAre("f.yaml:1: list: is empty: give it a value, or leave it out",
                          "f.yaml:2: pairs: is empty: give it a value, or leave it out"));
  EXPECT_THAT(list, ElementsAre("before"));
}

TEST(ConfigReader, ATextThatIsNotYamlHasOneErrorOnly) {
  EXPECT_THAT(errors_of("a: {b: 1\nc: 2\n",
                        [](ConfigReader& reader) {
                          reader.require("d");
                          reader.report("e", "is not as before");
                          reader.child("f").report("g", "neither");
                        }),
              ElementsAre("f.yaml:2: not YAML: end of map flow not found"));
}

TEST(ConfigReader, WarningsCarryTheirPlaceAndAreNotErrors) {
  ConfigErrors errors("f.yaml");
  {
    ConfigReader reader("a: 1\nlist:\n  - {x: 1}\n  - {x: 2}\n", errors);
    (void)reader.has("a");
    reader.for_each("list", [](ConfigReader& entry) { (void)entry.has("x"); });
  }
  errors.warn("list[1]", "hardly meant");
  errors.warn("a", "too small");
  errors.warn("list[0].y", "the line is that of what is around it");
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_THAT(errors.warnings(),
              ElementsAre("f.yaml:1: a: too small",
                          "f.yaml:3: list[0].y: the line is that of what is around it",
                          "f.yaml:4: list[1]: hardly meant"));
  errors.add("list[1].x", "is wrong");
  EXPECT_THAT(errors.lines(), ElementsAre("f.yaml:4: list[1].x: is wrong"));
}

TEST(ConfigReader, AnUnknownKeyIsProposedTheKeyThatOthersCallSo) {
  EXPECT_THAT(errors_of("iops: 1\nweigth: 2\n",
                        [](ConfigReader& reader) {
                          (void)reader.has("operations");
                          (void)reader.has("weight");
                          reader.suggest("iops", "operations");
                        }),
              ElementsAre("f.yaml:1: iops: unknown key; did you mean \"operations\"?",
                          "f.yaml:2: weigth: unknown key; did you mean \"weight\"?"));
}

TEST(ConfigReader, WhatAReaderHasReportedMakesItNotFlawless) {
  ConfigErrors errors("f.yaml");
  ConfigReader root("good: {a: 1}\nbad: {b: 1}\nworse: 1\n", errors);
  ConfigReader good = root.child("good");
  (void)good.has("a");
  good.finish();
  EXPECT_TRUE(good.flawless());
  ConfigReader bad = root.child("bad");
  EXPECT_TRUE(bad.flawless());
  bad.finish();
  EXPECT_FALSE(bad.flawless());
  EXPECT_FALSE(root.child("worse").flawless());
  root.finish();
  EXPECT_THAT(errors.lines(), ElementsAre("f.yaml:2: bad.b: unknown key",
                                          "f.yaml:3: worse: must be a mapping (key: value)"));
}

TEST(ConfigReader, RangesArePrintedInTheUnitsOfTheValue) {
  EXPECT_THAT(
      errors_of("size: 2 TiB\nrate: 1/s\ntime: 1 ms\nopen: 0 B\nnumber: 99999999999999999999\n"
                "negative: -1\nnan: nan\n",
                [](ConfigReader& reader) {
                  Bytes size;
                  BytesPerSecond rate;
                  Duration time = {};
                  std::uint64_t number = 0;
                  double factor = 0;
                  reader.get("size", &size, Bytes{1}, Bytes{kGiB});
                  reader.get("rate", &rate, BytesPerSecond{kKiB}, BytesPerSecond{kGiB});
                  reader.get("time", &time, 1s, 1h);
                  reader.get("open", &size, Bytes{1}, Bytes{UINT64_MAX});
                  reader.get("number", &number, 1, 5);
                  reader.get("negative", &number, 1, 5);
                  reader.get("nan", &factor, 0.5, 1.5);
                }),
      ElementsAre("f.yaml:1: size: \"2 TiB\" is out of range: 1 B to 1 GiB",
                  "f.yaml:2: rate: \"1/s\" is out of range: 1 KiB/s to 1 GiB/s",
                  "f.yaml:3: time: \"1 ms\" is out of range: 1 s to 1 h",
                  "f.yaml:4: open: \"0 B\" is out of range: at least 1 B",
                  "f.yaml:5: number: \"99999999999999999999\" is out of range: 1 to 5",
                  "f.yaml:6: negative: \"-1\" is not a whole number",
                  "f.yaml:7: nan: \"nan\" is out of range: 0.5 to 1.5"));
}

TEST(ConfigReader, BadUnitsAndChoicesAreNamed) {
  EXPECT_THAT(
      errors_of("time: 5\npolicy: fair\n",
                [](ConfigReader& reader) {
                  Duration time = {};
                  std::string policy;
                  reader.get("time", &time, 0s, 1h);
                  reader.choose("policy", &policy, {"fifo", "sfq"});
                }),
      ElementsAre("f.yaml:1: time: \"5\" needs a unit, such as \"5 s\" (known: ns, us, ms, s, "
                  "min, h)",
                  "f.yaml:2: policy: \"fair\" is not one of: fifo, sfq"));
}

TEST(ConfigReader, ListsAndNamedMappingsComeInFileOrder) {
  std::vector<std::string> seen;
  const auto errors = errors_of(
      "rules:\n  - {to: b}\n  - {to: a}\n  - plain\n  - {too: c}\n"
      "shares:\n  z: {weight: 2}\n  y: {weight: 1}\n  x: 3\n",
      [&](ConfigReader& reader) {
        reader.for_each("rules", [&](ConfigReader& rule) {
          std::string to = "none";
          rule.get("to", &to);
          seen.push_back(to);
        });
        reader.for_each_named("shares", [&](const std::string& name, ConfigReader& share) {
          std::uint64_t weight = 0;
          share.get("weight", &weight, 1, 10);
          seen.push_back(name + std::to_string(weight));
        });
      });
  EXPECT_THAT(seen, ElementsAre("b", "a", "none", "z2", "y1"));
  EXPECT_THAT(errors, ElementsAre("f.yaml:4: rules[2]: must be a mapping (key: value)",
                                  "f.yaml:5: rules[3].too: unknown key; did you mean \"to\"?",
                                  "f.yaml:9: shares.x: must be a mapping (key: value)"));
}

TEST(ConfigReader, WhatTheCallerReportsIsAtTheKeyOrTheMapping) {
  EXPECT_THAT(errors_of("a:\n  b: 1\n",
                        [](ConfigReader& reader) {
                          ConfigReader a = reader.child("a");
                          (void)a.has("b");
                          a.report("b", "contradicts c");
                          a.report("c", "contradicts b");
                          EXPECT_EQ(a.line(), 1);
                        }),
              ElementsAre("f.yaml:1: a.c: contradicts b", "f.yaml:2: a.b: contradicts c"));
}

TEST(ConfigReader, ASyntaxErrorIsOneErrorWithItsLine) {
  const auto errors = errors_of("a: 1\nb: [1, 2\nc: 3\n", [](ConfigReader& reader) {
    reader.require("a");
    reader.require("z");
  });
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_THAT(errors[0], ::testing::StartsWith("f.yaml:3: not YAML: "));
}

TEST(ConfigReader, TextThatIsNotAMappingIsReported) {
  EXPECT_THAT(errors_of("- 1\n- 2\n", read_nothing),
              ElementsAre("f.yaml:1: must be a mapping (key: value)"));
  EXPECT_THAT(errors_of("--- {}\n--- {}\n", read_nothing),
              ElementsAre("f.yaml:2: a second YAML document; only one is allowed"));
  EXPECT_THAT(errors_of("[a]: 1\n", read_nothing),
              ElementsAre("f.yaml:1: a key must be a plain word"));
}

TEST(ConfigReader, ARangeErrorInADeepMappingHasTheFullKey) {
  EXPECT_THAT(errors_of("a: {b: {c: 5}}\n",
                        [](ConfigReader& reader) {
                          std::uint64_t value = 0;
                          reader.child("a").child("b").get("c", &value, 1, 4);
                        }),
              ElementsAre("f.yaml:1: a.b.c: \"5\" is out of range: 1 to 4"));
}

}  // namespace
}  // namespace vpfs
