// What a stage does with policies that a loader gives it. test/examples/plugin_test.py has real
// files.
#include "stage/config/policy_plugins.h"

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage/config/scheduler_config.h"
#include "stage/config/share_config.h"
#include "test/support/round_robin.h"

namespace vpfs::stage {
namespace {

using ::testing::HasSubstr;

// Its files are lists of policies.
class Shelf final : public PolicyLoader {
 public:
  Result<Loaded> load(const std::string& path) override {
    const auto found = files.find(path);
    if (found == files.end()) return fail(path + " is not there");
    return Loaded{.policies = found->second, .maker = "a maker", .warning = warning};
  }

  std::map<std::string, std::vector<const PolicyKind*>> files;
  std::string warning;
};

class PolicyPluginsTest : public ::testing::Test {
 protected:
  std::string read(const std::string& text, PolicyLoader* loader) {
    ConfigErrors errors("f.yaml");
    config_ = {};
    config_.plugin_loader = loader;
    {
      ConfigReader reader(text, errors);
      read_scheduler(reader.child("scheduler"), config_, nullptr);
      read_shares(reader, config_);
    }
    warnings_ = errors.warnings();
    return errors.to_string();
  }
  std::string read_named(const PolicyKind& kind) {
    shelf_.files["/x"] = {&kind};
    return read("scheduler: {plugins: /x}\n", &shelf_);
  }

  Shelf shelf_;
  Config config_;
  std::vector<std::string> warnings_;
};

PolicyKind named(std::string_view name) {
  PolicyKind kind = RoundRobin::kKind;
  kind.name = name;
  kind.share_words = {};
  return kind;
}

TEST_F(PolicyPluginsTest, APolicyOfAFileIsAsOneOfVpfs) {
  shelf_.files["/x"] = {&RoundRobin::kKind};
  EXPECT_EQ(read("scheduler: {plugins: /x, policy: round_robin, round_robin: {visit: 3}}\n"
                 "virtual_pfs: {a: {visit: 2}}\n",
                 &shelf_),
            "");
  EXPECT_EQ(&policy_of(config_), &RoundRobin::kKind);
  EXPECT_EQ(config_.scheduler.own.of<RoundRobinSettings>().visit, 3U);
  EXPECT_EQ(
      config_.plugins,
      (std::vector<PluginConfig>{{.path = "/x", .maker = "a maker", .policies = "round_robin"}}));
  EXPECT_TRUE(std::ranges::is_sorted(scheduler_names(config_.policies)));
  const Config copy = config_;
  config_ = {};
  EXPECT_EQ(&policy_of(copy), &RoundRobin::kKind) << "a copy has the list";
}

TEST_F(PolicyPluginsTest, AFileThatIsNotThereIsTheOnlyError) {
  EXPECT_EQ(read("nonsense: 1\nscheduler:\n  depth: none\n  plugins: [/y]\n  policy: drr\n"
                 "  drr: {quantum: 1}\nvirtual_pfs: {a: {visit: 2}}\n",
                 &shelf_),
            "f.yaml:4: scheduler.plugins: /y is not there\n");
}

TEST_F(PolicyPluginsTest, AProgramWithoutALoaderSaysSo) {
  EXPECT_EQ(read("scheduler: {plugins: /x, policy: drr}\n", nullptr),
            "f.yaml:1: scheduler.plugins: this program loads no plugins\n");
}

TEST_F(PolicyPluginsTest, NamesThatAreTakenAreRefused) {
  const PolicyKind sfq = named("sfq");
  EXPECT_THAT(read_named(sfq), HasSubstr("/x has a policy sfq, which vpfs has itself"));
  const PolicyKind depth = named("depth");
  EXPECT_THAT(read_named(depth), HasSubstr("which is the name of a key of `scheduler`"));
  for (const char* name : {"", "Drr", "1drr", "drr-2", "d r"}) {
    const PolicyKind wrong = named(name);
    EXPECT_THAT(read_named(wrong), HasSubstr("a name is a letter, then")) << name;
  }
  const PolicyKind good = named("drr_2");
  EXPECT_EQ(read_named(good), "");
}

TEST_F(PolicyPluginsTest, AWordOfAShareThatExistsIsRefused) {
  static constexpr ShareWord kWeight[] = {{.name = "weight"}};
  PolicyKind kind = named("drr");
  kind.share_words = kWeight;
  EXPECT_THAT(read_named(kind), HasSubstr("has a word of a share \"weight\""));
}

TEST_F(PolicyPluginsTest, AWarningOfTheLoaderIsOneOfTheConfiguration) {
  shelf_.warning = "/x has changed";
  const PolicyKind good = named("drr");
  EXPECT_EQ(read_named(good), "");
  EXPECT_THAT(warnings_, ::testing::ElementsAre("f.yaml:1: scheduler.plugins: /x has changed"));
}

TEST_F(PolicyPluginsTest, APolicyThatMakesNothingForAClassIsRefused) {
  PolicyKind kind = named("drr");
  kind.make = [](const SchedulerSettings& settings, RateLimits&,
                 Scheduler::Part part) -> std::unique_ptr<Policy> {
    if (part.of != 1) return nullptr;
    return std::make_unique<RoundRobin>(settings.own.of<RoundRobinSettings>());
  };
  shelf_.files["/x"] = {&kind};
  EXPECT_EQ(read("scheduler: {plugins: /x, policy: drr}\n", &shelf_), "");
  EXPECT_EQ(read("scheduler: {plugins: /x, policy: drr, classes: {mode: apportion, "
                 "names: [{name: a}, {name: b}]}}\n",
                 &shelf_),
            "f.yaml:1: scheduler.policy: the policy drr fails: it makes nothing\n");
}

}  // namespace
}  // namespace vpfs::stage
