#include "control/plugins/plugin_files.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "schedulers/policies/fifo.h"
#include "test/support/process.h"

namespace vpfs::control {
namespace {

using ::testing::HasSubstr;

constexpr const PolicyKind* kKinds[] = {&Fifo::kKind};

PluginDescription good() {
  return {.interface = kPluginInterface,
          .count = 1,
          .layout = kPluginLayout,
          .build = kPluginBuild,
          .maker = "a maker",
          .policies = kKinds};
}

std::string problem_of(const PluginDescription& description) {
  const Result<void> checked = check_description("/p.so", &description);
  return checked ? "" : checked.error().message;
}

TEST(PluginDescription, OneOfTheSameInterfaceAndBuildIsGood) {
  EXPECT_EQ(problem_of(good()), "");
  PluginDescription without_maker = good();
  without_maker.maker = nullptr;
  EXPECT_EQ(problem_of(without_maker), "");
}

// Only `interface` may be read of one that is of another version.
TEST(PluginDescription, AnotherInterfaceIsSaidFirst) {
  PluginDescription other = {};
  other.interface = kPluginInterface + 1;
  EXPECT_THAT(problem_of(other), HasSubstr("/p.so is for version 2 of the scheduler interface, and "
                                           "this program has version 1"));
}

TEST(PluginDescription, AnotherBuildIsRefused) {
  PluginDescription other = good();
  other.build = "libc++";
  EXPECT_THAT(problem_of(other), HasSubstr("was built with libc++, and this program with "));
  other.build = nullptr;
  EXPECT_THAT(problem_of(other), HasSubstr("was built with an unknown library"));
  other = good();
  ++other.layout;
  EXPECT_THAT(problem_of(other), HasSubstr("its types have other sizes"));
}

TEST(PluginDescription, PoliciesThatCannotBeMadeAreRefused) {
  PluginDescription none = good();
  none.count = 0;
  EXPECT_EQ(problem_of(none), "/p.so has no policy");
  none = good();
  none.policies = nullptr;
  EXPECT_EQ(problem_of(none), "/p.so has no policy");
  const PolicyKind* const nothing[] = {&Fifo::kKind, nullptr};
  none = good();
  none.policies = nothing;
  none.count = 2;
  EXPECT_EQ(problem_of(none), "/p.so has a policy that cannot be made");
  const PolicyKind without_make = {.name = "x"};
  const PolicyKind* const unmade[] = {&without_make};
  none = good();
  none.policies = unmade;
  EXPECT_EQ(problem_of(none), "/p.so has a policy that cannot be made");
  EXPECT_EQ(check_description("/p.so", nullptr).error().message,
            "/p.so: its vpfs_scheduler_plugin() returns nothing");
}

TEST(PluginFiles, ATextIsNotALibrary) {
  const test::TemporaryDirectory scratch;
  const std::string path = scratch.path() / "p.so";
  std::ofstream(path) << std::string(1000, 'x');
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  PluginFiles files;
  EXPECT_THAT(files.load(path).error().message, HasSubstr("/p.so cannot be loaded: invalid ELF"));
  EXPECT_THAT(files.load("p.so").error().message, HasSubstr("is not an absolute path"));
}

}  // namespace
}  // namespace vpfs::control
