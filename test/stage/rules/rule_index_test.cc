#include "stage/rules/rule_index.h"

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stage/rules/classifier.h"
#include "test/stage/try_in_turn.h"
#include "test/support/allocation_count.h"

namespace vpfs::stage {
namespace {

constexpr std::array<std::string_view, 3> kHints = {"jobid", "user", "uid"};

// Draws rules and identities from few values, so that they often match.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  std::uint32_t below(std::uint32_t most) { return static_cast<std::uint32_t>(random_() % most); }
  bool one_in(std::uint32_t count) { return below(count) == 0; }
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return *(values.begin() + below(static_cast<std::uint32_t>(values.size())));
  }

  std::string text() {
    if (one_in(200)) return repeated(one_of<std::uint32_t>({200, 300, 9000}));
    std::string text = one_of<std::string>({"", "job-", "job-", "ann/"});
    for (std::uint32_t left = below(6); left > 0; --left) text += one_of({'a', 'b', '1', '-'});
    if (one_in(30)) text += '\0';
    if (one_in(30)) text += one_of({'*', '[', '\\', '\xe9'});
    return text;
  }
  std::string repeated(std::uint32_t times) {
    const std::string part = text().substr(0, 5);
    std::string text;
    for (; times > 0; --times) text += part;
    return text;
  }
  // A text with some bytes made special.
  std::string pattern() {
    if (one_in(20)) return one_of<std::string>({"*", "", "?*", "[", "a[", "*[", "b\\", "[!]a]*"});
    std::string from = text();
    if (from.size() > 100) from.resize(100);
    std::string made;
    for (const char each : from) {
      switch (below(12)) {
        case 0:
          made += '?';
          break;
        case 1:
          made += '*';
          break;
        case 2:
          made += std::string("[x") + each + "]";
          break;
        case 3:
          made += std::string("\\") + each;
          break;
        default:
          made += each;
      }
    }
    if (one_in(3)) made += '*';
    if (one_in(3)) made.insert(0, "*");
    return made;
  }
  std::string address() {
    return one_in(4) ? fmt::format("fd00::{}", below(5))
                     : fmt::format("10.0.{}.{}", below(3), below(5));
  }
  std::string block() {
    const std::string base = address();
    if (one_in(3)) return base;
    if (base[0] == 'f') return fmt::format("{}/{}", base, one_of({0, 8, 64, 125, 127, 128}));
    if (one_in(6)) return fmt::format("::ffff:{}/{}", base, one_of({96, 104, 120, 126, 95, 1}));
    return fmt::format("{}/{}", base, one_of({0, 1, 8, 23, 24, 30, 31, 32}));
  }
  std::vector<std::uint64_t> numbers(std::uint32_t one_in_count) {
    std::vector<std::uint64_t> made;
    if (!one_in(one_in_count)) return made;
    for (std::uint32_t left = 1 + below(3); left > 0; --left) made.push_back(below(6));
    if (one_in(20)) made.push_back(std::uint64_t{1} << 40);
    return made;
  }

  std::vector<std::string> patterns() {
    std::vector<std::string> made = {pattern()};
    while (one_in(4)) made.push_back(pattern());
    return made;
  }
  // `hints` must be there.
  Conditions conditions(const std::vector<std::string>& hints) {
    Conditions made;
    while (one_in(3)) made.clients.push_back(block());
    for (const std::string_view name : kHints) {
      const bool is_demanded = std::ranges::find(hints, name) != hints.end();
      if (is_demanded || one_in(4)) made.hints.emplace_back(name, patterns());
    }
    if (one_in(5)) made.kinds.push_back(one_of({IoKind::read, IoKind::write, IoKind::metadata}));
    if (one_in(20)) made.kinds = {IoKind::metadata, IoKind::read};
    made.file_systems = numbers(8);
    made.uids = numbers(5);
    made.nodes = numbers(8);
    made.targets = numbers(8);
    made.owners = numbers(8);
    made.gids = numbers(8);
    while (one_in(4)) made.directories.push_back(pattern());
    while (one_in(6)) made.jobids.push_back(pattern());
    while (one_in(8)) made.accounts.push_back(one_of<std::string>({"a", "b*", "*", "?"}));
    return made;
  }
  RuleConfig rule() {
    RuleConfig made;
    made.traffic_class = static_cast<std::uint8_t>(below(4));
    made.virtual_pfs = fmt::format("v{}", random_() % 1000);
    if (one_in(3)) {
      made.virtual_pfs +=
          one_of<std::string>({"-{uid}", "{dir}", "{node}.{owner}x", "{jobid}", "{gid}.{account}"});
    }
    std::vector<std::string> hints;
    if (one_in(5)) {
      hints.emplace_back(kHints[below(kHints.size())]);
      made.virtual_pfs += "{" + hints.front() + "}y";
    }
    if (hints.empty() && one_in(10)) return made;
    made.any_of.push_back(conditions(hints));
    while (one_in(4)) made.any_of.push_back(conditions(hints));
    made.exempt = one_in(6);
    if (one_in(5)) made.mode = RuleMode::shadow;
    return made;
  }
  std::vector<RuleConfig> rules() {
    std::vector<RuleConfig> made;
    for (std::uint32_t left = below(25); left > 0; --left) {
      made.push_back(!made.empty() && one_in(10) ? made[below(std::uint32_t(made.size()))]
                                                 : rule());
    }
    return made;
  }

  struct Shown {
    Address client;
    Identity identity;
    std::string directory;
    std::vector<std::string> texts;
    std::vector<std::optional<std::string_view>> hints;
  };
  // Its values replace those in `shown`.
  void identity(Shown& shown, std::size_t hints) {
    const auto number = [this]() -> std::optional<std::uint32_t> {
      return one_in(5) ? std::nullopt : std::optional(below(7));
    };
    shown.client = *Address::parse(address());
    shown.directory = one_in(6) ? "" : text();
    shown.texts.clear();
    shown.hints.clear();
    for (std::size_t i = 0; i < hints; ++i) shown.texts.push_back(text());
    for (const std::string& each : shown.texts) {
      shown.hints.push_back(one_in(6) ? std::nullopt : std::optional<std::string_view>(each));
    }
    shown.identity = {.kind = one_of({IoKind::read, IoKind::write, IoKind::metadata}),
                      .file_system = static_cast<std::int64_t>(below(7)),
                      .uid = number(),
                      .node = number(),
                      .target = number(),
                      .owner = number(),
                      .directory = shown.directory,
                      .hints = shown.hints};
  }
  // Those that the registry takes.
  std::vector<RegisteredJob> jobs(JobRegistry& registry) {
    std::vector<RegisteredJob> taken;
    for (std::uint32_t left = one_in(4) ? 0 : below(8); left > 0; --left) {
      const RegisteredJob job = {.jobid = text(),
                                 .clients = {block(), block()},
                                 .uids = numbers(2),
                                 .gids = numbers(2),
                                 .account = one_of<std::string>({"", "a", "b", "bb"}),
                                 .nodes = below(5)};
      if (registry.add(job)) taken.push_back(job);
    }
    return taken;
  }

 private:
  std::mt19937 random_;
};

void expect_equal(const Classifier::Match& found, const Classifier::Match& expected) {
  EXPECT_EQ(found.virtual_pfs, expected.virtual_pfs);
  EXPECT_EQ(found.declared_name, expected.declared_name);
  EXPECT_EQ(found.traffic_class, expected.traffic_class);
  EXPECT_EQ(found.name_refused, expected.name_refused);
  EXPECT_EQ(found.job_not_registered, expected.job_not_registered);
  EXPECT_EQ(found.rule, expected.rule);
  EXPECT_EQ(found.shadow_rule, expected.shadow_rule);
  EXPECT_EQ(found.shadow_name, expected.shadow_name);
  EXPECT_EQ(found.exempt, expected.exempt);
  EXPECT_EQ(found.nodes, expected.nodes);
  EXPECT_EQ(found.jobid, expected.jobid);
  EXPECT_EQ(found.job_from_registration, expected.job_from_registration);
}

TEST(RuleIndex, FindsWhatTryingAllRulesInTurnFinds) {
  Draw draw(3);
  std::size_t cases = 0;
  std::size_t matched = 0;
  for (int set = 0; set < 500; ++set) {
    const std::vector<RuleConfig> rules = draw.rules();
    JobRegistry registry;
    const std::vector<RegisteredJob> jobs = draw.jobs(registry);
    const JobIds ids = draw.one_in(2) ? JobIds::trusted : JobIds::registered;
    const Classifier classifier(rules, 3, &registry, ids);
    const TryInTurn in_turn(rules, classifier.hint_names(), 3, jobs, ids);
    Draw::Shown shown;
    for (int i = 0; i < 40; ++i) {
      draw.identity(shown, classifier.hint_names().size());
      const Classifier::Match expected = in_turn.classify(shown.client, shown.identity);
      expect_equal(classifier.classify(shown.client, shown.identity), expected);
      ++cases;
      matched += expected.declared_name == "default" ? 0 : 1;
      ASSERT_FALSE(HasFailure()) << "rules " << set << ", identity " << i;
    }
  }
  EXPECT_EQ(cases, 20'000);
  EXPECT_GT(matched, cases / 4);
}

// A value cached by a key must be right for all identities with that key.
TEST(RuleIndex, RequestsOfOneKeyHaveOneMatch) {
  Draw draw(5);
  std::size_t again = 0;
  for (int set = 0; set < 250; ++set) {
    std::vector<RuleConfig> rules = draw.rules();
    rules.resize(std::min<std::size_t>(rules.size(), 1));
    JobRegistry registry;
    (void)draw.jobs(registry);
    const Classifier classifier(rules, 3, draw.one_in(2) ? &registry : nullptr,
                                draw.one_in(2) ? JobIds::trusted : JobIds::registered);
    std::map<std::string, Classifier::Match> known;
    Draw::Shown shown;
    for (int i = 0; i < 100; ++i) {
      draw.identity(shown, classifier.hint_names().size());
      std::string key;
      if (!classifier.append_key(shown.client, shown.identity, key)) continue;
      const Classifier::Match match = classifier.classify(shown.client, shown.identity);
      const auto [found, is_new] = known.emplace(key, match);
      if (!is_new) expect_equal(match, found->second);
      again += is_new || key.empty() ? 0 : 1;
      ASSERT_FALSE(HasFailure()) << "rules " << set << ", identity " << i;
    }
  }
  EXPECT_GT(again, 1000);
}

// More patterns than the index holds without allocating, and identities that show many of them.
TEST(RuleIndex, FindsTheFirstOfThousandsOfRulesByTheMiddleOfTexts) {
  std::vector<RuleConfig> rules;
  for (int i = 0; i < 6000; ++i) {
    const std::string pattern = fmt::format("*x{:03}y*{}*", i % 1000, i / 1000);
    rules.push_back(
        {.any_of = {{.hints = {{"jobid", {pattern}}}}}, .virtual_pfs = fmt::format("v{}", i)});
  }
  const Classifier classifier(rules);
  const TryInTurn in_turn(rules, classifier.hint_names(), 0);
  Draw draw(4);
  for (int i = 0; i < 50; ++i) {
    std::string text;
    for (int part = 0; part < 40; ++part) {
      text += fmt::format("{}{:03}y", draw.one_in(3) ? "x" : "-", draw.below(1000));
    }
    const std::vector<std::optional<std::string_view>> hints = {text};
    const Identity identity = {.hints = hints};
    expect_equal(classifier.classify({}, identity), in_turn.classify({}, identity));
  }
}

// The index uses only a part of long ones.
TEST(RuleIndex, FindsPatternsWithLongStartsAndEnds) {
  std::vector<RuleConfig> rules;
  for (const std::size_t size : {31U, 32U, 33U, 40U, 100U}) {
    const std::string same(size - 1, '=');
    rules.push_back(
        {.any_of = {{.directories = {"a" + same + "*"}}}, .virtual_pfs = fmt::format("a{}", size)});
    rules.push_back(
        {.any_of = {{.directories = {"*" + same + "z"}}}, .virtual_pfs = fmt::format("z{}", size)});
  }
  std::ranges::reverse(rules);
  const Classifier classifier(rules);
  const TryInTurn in_turn(rules, {}, 0);
  for (std::size_t size = 1; size < 110; ++size) {
    const std::string same(size - 1, '=');
    for (const std::string& text : {"a" + same, "a" + same + "x", same + "z", "x" + same + "z"}) {
      const Identity identity = {.directory = text};
      expect_equal(classifier.classify({}, identity), in_turn.classify({}, identity));
    }
  }
}

TEST(RuleIndex, ATextMayRepeatWhatManyRulesDemand) {
  std::vector<RuleConfig> rules;
  for (int i = 0; i < 1000; ++i) {
    for (const std::string& pattern : {fmt::format("*aaa*b{}", i), fmt::format("*aaa{}*", i)}) {
      rules.push_back({.any_of = {{.hints = {{"jobid", {pattern}}}}}, .virtual_pfs = "v"});
    }
  }
  const Classifier classifier(rules);
  const std::string text(32'000, 'a');
  const std::vector<std::optional<std::string_view>> hints = {text};
  EXPECT_EQ(classifier.classify({}, {.hints = hints}).virtual_pfs, "default");
}

TEST(RuleIndex, LooksUpWithoutAllocating) {
  std::vector<RuleConfig> rules;
  for (int i = 0; i < 300; ++i) {
    rules.push_back({.any_of = {{.clients = {fmt::format("10.{}.0.0/16", i % 200)},
                                 .hints = {{"jobid", {fmt::format("job-{}", i)}}}}},
                     .virtual_pfs = "v"});
    rules.push_back({.any_of = {{.uids = {static_cast<std::uint64_t>(i)}}}, .virtual_pfs = "v"});
    const std::string project = fmt::format("*[a-c]*proj{}*", i);
    rules.push_back({.any_of = {{.directories = {project}}}, .virtual_pfs = "v"});
    const std::string user = fmt::format("*user{}*", i);
    rules.push_back({.any_of = {{.directories = {user}}}, .virtual_pfs = "{uid}-{dir}"});
  }
  const Classifier classifier(rules);
  const std::string job = "job-1000-x";  // the match has a copy, which needs no memory
  const std::string directory = "/scratch/proj/user/" + std::string(400, 'x');
  const std::vector<std::optional<std::string_view>> hints = {job};
  const Identity identity = {.uid = 12'345, .directory = directory, .hints = hints};
  const std::uint64_t before = allocation_count();
  const Classifier::Match match = classifier.classify(*Address::parse("10.1.2.3"), identity);
  EXPECT_EQ(allocation_count(), before);
  EXPECT_EQ(match.virtual_pfs, "default");
}

}  // namespace
}  // namespace vpfs::stage
