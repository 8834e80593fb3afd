#include "control/wire/rights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace vpfs::control {
namespace {

using ::testing::HasSubstr;
using Kind = Principal::Kind;

constexpr std::uint32_t kSomebody = 123456;

Identity user(std::uint32_t uid, std::vector<std::uint32_t> gids = {}) {
  return {.uid = uid, .gids = std::move(gids), .certificate = {}, .from = "unix"};
}
Identity certificate(std::vector<std::string> names) {
  return {.uid = std::nullopt, .gids = {}, .certificate = std::move(names), .from = "10.0.0.1"};
}

Access access_of(const PortConfig& config) {
  auto access = resolve_access(config);
  EXPECT_TRUE(access);
  return *access;
}

TEST(Rights, RootAndTheProcesssUserChangeAndTheSocketsGroupReads) {
  PortConfig config;
  config.group = "777";
  const Access access = access_of(config);
  EXPECT_EQ(rights_of(user(0), access), Rights::change);
  EXPECT_EQ(rights_of(user(::geteuid()), access), Rights::change);
  EXPECT_EQ(rights_of(user(kSomebody, {5, 777}), access), Rights::read);
  EXPECT_EQ(rights_of(user(kSomebody, {5}), access), Rights::own);
  EXPECT_TRUE(may_connect(user(kSomebody), access));
}

TEST(Rights, ListsReplaceTheGroupButNotRoot) {
  PortConfig config;
  config.group = "777";
  config.readers = {{.kind = Kind::uid, .name = "", .id = 5}};
  config.writers = {{.kind = Kind::gid, .name = "", .id = 6}};
  const Access access = access_of(config);
  EXPECT_EQ(rights_of(user(0), access), Rights::change);
  EXPECT_EQ(rights_of(user(5), access), Rights::read);
  EXPECT_EQ(rights_of(user(kSomebody, {6}), access), Rights::change);
  EXPECT_EQ(rights_of(user(kSomebody, {777}), access), Rights::own);
}

TEST(Rights, NamesInCertificatesCountOnlyAsWritten) {
  PortConfig config;
  config.writers = {{.kind = Kind::certificate, .name = "ops"},
                    {.kind = Kind::user, .name = "root"}};
  const Access access = access_of(config);
  EXPECT_EQ(rights_of(certificate({"ops"}), access), Rights::change);
  EXPECT_EQ(rights_of(certificate({"a", "ops"}), access), Rights::change);
  for (const char* other : {"root", "op", "ops.example", "OPS", "0"}) {
    EXPECT_EQ(rights_of(certificate({other}), access), Rights::own) << other;
    EXPECT_FALSE(may_connect(certificate({other}), access)) << other;
  }
  EXPECT_FALSE(may_connect(certificate({}), access));
}

TEST(Rights, CallersHaveTheNamesThatAdministratorsKnow) {
  EXPECT_EQ(name_of(user(1001), "alice"), "alice (uid 1001)");
  EXPECT_EQ(name_of(user(1001), std::nullopt), "uid 1001");
  EXPECT_EQ(name_of(certificate({"ops", "10.0.0.1"}), std::nullopt), "CN=ops");
}

TEST(Rights, ARefusalNamesTheCallerAndTheSetting) {
  const Caller reader{.name = "alice (uid 1001)", .from = "unix", .rights = Rights::read};
  const Error change = refusal(reader, Rights::change);
  EXPECT_EQ(change.code(), Error::NOT_PERMITTED);
  EXPECT_EQ(change.place(), "control.writers");
  EXPECT_THAT(change.text(), HasSubstr("alice (uid 1001) from unix may see everything here"));
  const Caller other{.name = "uid 5", .from = "unix", .rights = Rights::own};
  const Error read = refusal(other, Rights::read);
  EXPECT_EQ(read.place(), "control.readers");
  EXPECT_THAT(read.text(), HasSubstr("uid 5 from unix may see only own jobs here"));
}

}  // namespace
}  // namespace vpfs::control
