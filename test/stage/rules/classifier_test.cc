#include "stage/rules/classifier.h"

#include <gtest/gtest.h>

namespace vpfs::stage {
namespace {

const Address kClient = Address::parse("10.1.2.3").value();

// An identity and what it borrows.
struct Hinted : Identity {
  Hinted(const Classifier& classifier,
         const std::vector<std::pair<std::string, std::string>>& shown)
      : texts(shown) {
    for (const std::string& name : classifier.hint_names()) {
      std::optional<std::string_view> value;
      for (const auto& [key, text] : texts) {
        if (key == name) value = text;
      }
      values.push_back(value);
    }
    Identity::hints = values;
  }
  Hinted(const Hinted&) = delete;
  Hinted& operator=(const Hinted&) = delete;

  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<std::optional<std::string_view>> values;
};
Hinted identity(const Classifier& classifier,
                const std::vector<std::pair<std::string, std::string>>& hints) {
  return {classifier, hints};
}

TEST(Classifier, TheFirstMatchingRuleWins) {
  const Classifier classifier(
      {{.any_of = {{.hints = {{"jobid", {"a*"}}}}}, .virtual_pfs = "first"},
       {.any_of = {{.hints = {{"jobid", {"ab"}}}}}, .virtual_pfs = "second"}});
  EXPECT_EQ(classifier.classify(kClient, identity(classifier, {{"jobid", "ab"}})).virtual_pfs,
            "first");
}

TEST(Classifier, WithoutAMatchItIsDefault) {
  const Classifier classifier({{.any_of = {{.hints = {{"jobid", {"a"}}}}}, .virtual_pfs = "x"}});
  EXPECT_EQ(classifier.classify(kClient, identity(classifier, {})).virtual_pfs, "default");
  EXPECT_EQ(classifier.classify(kClient, identity(classifier, {{"jobid", "b"}})).virtual_pfs,
            "default");
}

TEST(Classifier, AllConditionsOfARuleMustHold) {
  const Classifier classifier({{.any_of = {{.clients = {"10.0.0.0/8"},
                                            .hints = {{"jobid", {"?"}}},
                                            .kinds = {IoKind::write},
                                            .file_systems = {7},
                                            .uids = {1000}}},
                                .virtual_pfs = "x"}});
  Hinted good = identity(classifier, {{"jobid", "1"}});
  good.kind = IoKind::write;
  good.file_system = 7;
  good.uid = 1000;
  EXPECT_EQ(classifier.classify(kClient, good).virtual_pfs, "x");
  EXPECT_EQ(classifier.classify(Address::parse("11.1.2.3").value(), good).virtual_pfs, "default");
  const auto without = [&](auto change) {
    Identity bad = good;
    change(bad);
    return classifier.classify(kClient, bad).virtual_pfs;
  };
  EXPECT_EQ(without([](Identity& bad) { bad.kind = IoKind::metadata; }), "default");
  EXPECT_EQ(without([](Identity& bad) { bad.file_system = 8; }), "default");
  EXPECT_EQ(without([](Identity& bad) { bad.uid = 1001; }), "default");
  EXPECT_EQ(without([](Identity& bad) { bad.uid.reset(); }), "default");
  good.values[0] = "12";
  EXPECT_EQ(classifier.classify(kClient, good).virtual_pfs, "default");
}

TEST(Classifier, TemplatesTakeTheValuesOfHints) {
  const Classifier classifier({{.any_of = {{.hints = {{"jobid", {"*"}}, {"user", {"*"}}}}},
                                .virtual_pfs = "{user}/job-{jobid}"}});
  const auto match =
      classifier.classify(kClient, identity(classifier, {{"user", "ann"}, {"jobid", "42"}}));
  EXPECT_EQ(match.virtual_pfs, "ann/job-42");
  EXPECT_EQ(match.declared_name, "{user}/job-{jobid}");
}

TEST(AddressBlock, KnowsPrefixesOfBothFamilies) {
  const auto block = AddressBlock::parse("10.128.0.0/9");
  ASSERT_TRUE(block);
  EXPECT_TRUE(block->contains(Address::parse("10.200.0.1").value()));
  EXPECT_TRUE(block->contains(Address::parse("::ffff:10.200.0.1").value()));
  EXPECT_FALSE(block->contains(Address::parse("10.100.0.1").value()));
  EXPECT_TRUE(AddressBlock::parse("0.0.0.0/0")->contains(Address::parse("1.2.3.4").value()));
  EXPECT_FALSE(AddressBlock::parse("0.0.0.0/0")->contains(Address::parse("fd00::1").value()));
  EXPECT_TRUE(AddressBlock::parse("fd00::/8")->contains(Address::parse("fd12::1").value()));
  for (const char* bad : {"10.0.0.0/33", "10.0.0.0/", "10.0.0", "host", "10.0.0.0/-1", "::/129"}) {
    EXPECT_FALSE(AddressBlock::parse(bad)) << bad;
  }
}

TEST(AddressBlock, CoversTheBlocksThatAreInIt) {
  const auto covers = [](const char* wide, const char* narrow) {
    return AddressBlock::parse(wide)->covers(*AddressBlock::parse(narrow));
  };
  EXPECT_TRUE(covers("10.0.0.0/8", "10.1.0.0/16"));
  EXPECT_TRUE(covers("10.0.0.0/8", "10.0.0.0/8"));
  EXPECT_TRUE(covers("10.0.0.0/8", "::ffff:10.1.2.3"));
  EXPECT_FALSE(covers("10.1.0.0/16", "10.0.0.0/8"));
  EXPECT_FALSE(covers("10.0.0.0/8", "11.0.0.0/16"));
  EXPECT_FALSE(covers("0.0.0.0/0", "fd00::/8"));
}

Identity beegfs_identity() {
  return {.kind = IoKind::write,
          .uid = 1001,
          .node = 7,
          .target = 101,
          .owner = 1002,
          .directory = "4-68A-1"};
}

TEST(Classifier, LooksAtAllThatBeegfsShows) {
  const Identity good = beegfs_identity();
  const auto class_of = [&](const RuleConfig& rule, const Identity& identity) {
    return Classifier({rule}).classify(kClient, identity).virtual_pfs;
  };
  const RuleConfig rule = {.any_of = {{.uids = {1001},
                                       .nodes = {6, 7},
                                       .targets = {101},
                                       .owners = {1002},
                                       .directories = {"x*", "4-*"}}},
                           .virtual_pfs = "x"};
  EXPECT_EQ(class_of(rule, good), "x");
  const auto without = [&](auto change) {
    Identity bad = good;
    change(bad);
    return class_of(rule, bad);
  };
  EXPECT_EQ(without([](Identity& bad) { bad.node = 8; }), "default");
  EXPECT_EQ(without([](Identity& bad) { bad.target = 102; }), "default");
  EXPECT_EQ(without([](Identity& bad) { bad.owner = 0; }), "default");
  EXPECT_EQ(without([](Identity& bad) { bad.owner.reset(); }), "default");
  EXPECT_EQ(without([](Identity& bad) { bad.directory = "5-68A-1"; }), "default");
  EXPECT_EQ(without([](Identity& bad) { bad.directory = ""; }), "default");
}

TEST(Classifier, TemplatesMakeOneVirtualPfsForEachValueThatIsKnown) {
  const Classifier classifier({{.virtual_pfs = "user-{uid}-in-{dir}"}, {.virtual_pfs = "rest"}});
  EXPECT_TRUE(classifier.looks_at_uid());
  Identity identity = beegfs_identity();
  EXPECT_EQ(classifier.classify(kClient, identity).virtual_pfs, "user-1001-in-4-68A-1");
  EXPECT_EQ(classifier.classify(kClient, identity).declared_name, "user-{uid}-in-{dir}");
  identity.directory = "";
  EXPECT_EQ(classifier.classify(kClient, identity).virtual_pfs, "rest");
  const Classifier by_node({{.virtual_pfs = "{node}.{target}.{owner}"}});
  EXPECT_FALSE(by_node.looks_at_uid());
  EXPECT_EQ(by_node.classify(kClient, identity).virtual_pfs, "7.101.1002");
}

TEST(Classifier, AHintThatARuleDemandsGoesBeforeAnAttributeOfItsName) {
  const Classifier classifier({{.any_of = {{.hints = {{"uid", {"*"}}}}}, .virtual_pfs = "{uid}"}});
  Hinted with_hint = identity(classifier, {{"uid", "hinted"}});
  with_hint.uid = 5;
  EXPECT_EQ(classifier.classify(kClient, with_hint).virtual_pfs, "hinted");
}

TEST(Classifier, ANameThatARequestMakesIsPrintableTextOfBoundedLength) {
  const Classifier classifier(
      {{.any_of = {{.hints = {{"jobid", {"*"}}}}}, .virtual_pfs = "job-{jobid}"}}, 3);
  const auto match_of = [&](const std::string& job) {
    return classifier.classify(kClient, identity(classifier, {{"jobid", job}}));
  };
  for (const std::string& good : {std::string(124, 'x'), std::string("a \"b\" ~"), std::string()}) {
    EXPECT_EQ(match_of(good).virtual_pfs, "job-" + good);
    EXPECT_FALSE(match_of(good).name_refused);
  }
  for (const std::string& bad :
       {std::string(125, 'x'), std::string("a\nb"), std::string("\x7f"), std::string("\xc3\xa4")}) {
    EXPECT_EQ(match_of(bad).virtual_pfs, "default") << bad;
    EXPECT_EQ(match_of(bad).declared_name, "default");
    EXPECT_EQ(match_of(bad).traffic_class, 3);
    EXPECT_TRUE(match_of(bad).name_refused) << bad;
  }
  const Classifier bare({{.any_of = {{.hints = {{"jobid", {"*"}}}}}, .virtual_pfs = "{jobid}"}});
  EXPECT_TRUE(bare.classify(kClient, identity(bare, {{"jobid", ""}})).name_refused);
}

// A rule that makes no name of a value may match any value.
TEST(Classifier, ALongHintMatchesRulesThatDoNotFillItIn) {
  const Classifier classifier({{.any_of = {{.hints = {{"jobid", {"*"}}}}}, .virtual_pfs = "jobs"}});
  const auto match =
      classifier.classify(kClient, identity(classifier, {{"jobid", std::string(9000, 'x')}}));
  EXPECT_EQ(match.virtual_pfs, "jobs");
  EXPECT_FALSE(match.name_refused);
}

TEST(Classifier, AJobIdThatIsNotRegisteredIsNotSeenByTheRules) {
  JobRegistry jobs;
  ASSERT_TRUE(jobs.add({.jobid = "7", .clients = {"10.1.2.3"}, .uids = {1001}}));
  ASSERT_TRUE(jobs.add({.jobid = "8", .clients = {"10.9.0.0/16"}, .uids = {}}));
  const Classifier classifier(
      {{.any_of = {{.hints = {{"jobid", {"*"}}}}}, .virtual_pfs = "job-{jobid}"},
       {.any_of = {{.hints = {{"user", {"ann"}}}}}, .virtual_pfs = "ann"}},
      0, &jobs, JobIds::registered);
  const auto match_of = [&](const std::string& job, std::optional<std::uint32_t> uid = {}) {
    Hinted made = identity(classifier, {{"jobid", job}, {"user", "ann"}});
    made.uid = uid;
    return classifier.classify(kClient, made);
  };
  EXPECT_EQ(match_of("7").virtual_pfs, "job-7");
  EXPECT_EQ(match_of("7", 1001).virtual_pfs, "job-7");
  EXPECT_FALSE(match_of("7").job_not_registered);
  EXPECT_EQ(match_of("7", 1002).virtual_pfs, "ann") << "the next rule";
  EXPECT_TRUE(match_of("7", 1002).job_not_registered);
  EXPECT_EQ(match_of("8").virtual_pfs, "ann") << "of another node";
  EXPECT_EQ(match_of("9").virtual_pfs, "ann");
  EXPECT_TRUE(match_of("9").job_not_registered);
  const Hinted without = identity(classifier, {});
  EXPECT_EQ(classifier.classify(kClient, without).virtual_pfs, "default");
  EXPECT_FALSE(classifier.classify(kClient, without).job_not_registered);
}

std::string key_of(const Classifier& classifier, const Address& client, const Identity& identity) {
  std::string key;
  EXPECT_TRUE(classifier.append_key(client, identity, key));
  return key;
}

TEST(ClassifierKey, IsOfWhatRulesLookAtAndOfNothingElse) {
  const Address other = Address::parse("10.9.9.9").value();
  const auto tells_apart = [&](const RuleConfig& rule, auto change, const Address& client) {
    const Classifier classifier({rule});
    const Identity before = beegfs_identity();
    Identity after = before;
    change(after);
    return key_of(classifier, kClient, before) != key_of(classifier, client, after);
  };
  const auto everything = [](Identity& each) {
    each = {.kind = IoKind::read, .file_system = 9, .directory = "x"};
  };
  EXPECT_FALSE(tells_apart({.virtual_pfs = "all"}, everything, other));
  const auto same = [](Identity&) {};
  const RuleConfig by_client = {.any_of = {{.clients = {"10.0.0.0/8"}}}, .virtual_pfs = "v"};
  EXPECT_TRUE(tells_apart(by_client, same, other));
  EXPECT_FALSE(tells_apart(by_client, everything, kClient));
  const std::vector<std::pair<RuleConfig, void (*)(Identity&)>> cases = {
      {{.any_of = {{.kinds = {IoKind::read}}}}, [](Identity& each) { each.kind = IoKind::read; }},
      {{.any_of = {{.file_systems = {1}}}}, [](Identity& each) { each.file_system = 1; }},
      {{.any_of = {{.uids = {1}}}}, [](Identity& each) { each.uid = 1; }},
      {{.any_of = {{.uids = {1}}}}, [](Identity& each) { each.uid.reset(); }},
      {{.any_of = {{.nodes = {1}}}}, [](Identity& each) { each.node = 1; }},
      {{.any_of = {{.targets = {1}}}}, [](Identity& each) { each.target.reset(); }},
      {{.any_of = {{.owners = {1}}}}, [](Identity& each) { each.owner = 1; }},
      {{.any_of = {{.directories = {"*"}}}}, [](Identity& each) { each.directory = "4-68A-2"; }},
      {{.virtual_pfs = "{uid}"}, [](Identity& each) { each.uid = 2; }},
      {{.virtual_pfs = "{node}"}, [](Identity& each) { each.node = 2; }},
      {{.virtual_pfs = "{target}"}, [](Identity& each) { each.target = 2; }},
      {{.virtual_pfs = "{owner}"}, [](Identity& each) { each.owner = 2; }},
      {{.virtual_pfs = "{dir}"}, [](Identity& each) { each.directory = ""; }},
  };
  for (const auto& [rule, change] : cases) {
    EXPECT_TRUE(tells_apart(rule, change, kClient)) << &rule - &cases.front().first;
    EXPECT_FALSE(tells_apart(rule, same, other)) << "the address does not matter";
  }
}

// An unknown number differs from zero, and a missing text from an empty one. No text looks like the
// end of one and the start of the next.
TEST(ClassifierKey, IsAnotherForEachIdentity) {
  const Classifier classifier(
      {{.any_of = {{.hints = {{"a", {"*"}}, {"b", {"*"}}}}}, .virtual_pfs = "v"}});
  const std::vector<std::vector<std::optional<std::string_view>>> all = {
      {std::nullopt, std::nullopt},
      {"", std::nullopt},
      {std::nullopt, ""},
      {"", ""},
      {"x", ""},
      {"", "x"},
      {"xx", ""},
      {"x", "x"},
      {"x\2x", "x"},
      {"x", "\2xx"}};
  std::vector<std::string> keys;
  for (const auto& hints : all) keys.push_back(key_of(classifier, kClient, {.hints = hints}));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(keys[i], keys[j]) << i << " and " << j;
  }
}

TEST(ClassifierKey, IsNotMadeOfLongTextsThatRulesLookAt) {
  const std::string longest(128, 'x');
  const std::string longer(129, 'x');
  std::string key;
  const Classifier by_directory(
      {RuleConfig{.any_of = {{.directories = {"*"}}}, .virtual_pfs = "v"}});
  EXPECT_TRUE(by_directory.append_key(kClient, {.directory = longest}, key));
  EXPECT_FALSE(by_directory.append_key(kClient, {.directory = longer}, key));
  const Classifier by_hint({{.any_of = {{.hints = {{"jobid", {"*"}}}}}, .virtual_pfs = "v"}});
  const std::vector<std::optional<std::string_view>> hints = {longer};
  EXPECT_FALSE(by_hint.append_key(kClient, {.hints = hints}, key));
  key.clear();
  EXPECT_TRUE(Classifier({{.virtual_pfs = "v"}}).append_key(kClient, {.directory = longer}, key));
  EXPECT_EQ(key, "");
}

TEST(ClassifierKey, HasTheAddressAndTheUserWhereJobsAreRegistered) {
  JobRegistry jobs;
  ASSERT_TRUE(jobs.add({.jobid = "7", .clients = {"10.0.0.0/8"}, .uids = {1}}));
  const std::vector<RuleConfig> rules = {
      {.any_of = {{.hints = {{"jobid", {"*"}}}}}, .virtual_pfs = "v"}};
  const Classifier trusting(rules);
  const Classifier registered(rules, 0, &jobs, JobIds::registered);
  const std::vector<std::optional<std::string_view>> hints = {"7"};
  const Identity one = {.uid = 1, .hints = hints};
  const Identity two = {.uid = 2, .hints = hints};
  const Address other = Address::parse("10.9.9.9").value();
  EXPECT_EQ(key_of(trusting, kClient, one), key_of(trusting, other, two));
  EXPECT_NE(key_of(registered, kClient, one), key_of(registered, other, one));
  EXPECT_NE(key_of(registered, kClient, one), key_of(registered, kClient, two));
  EXPECT_FALSE(trusting.looks_at_uid()) << "no rule does";
  EXPECT_TRUE(registered.looks_at_uid()) << "a job does";
}

}  // namespace
}  // namespace vpfs::stage
