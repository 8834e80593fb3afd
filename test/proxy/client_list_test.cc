#include "proxy/client_list.h"

#include <algorithm>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proxy/config/config.h"
#include "proxy/worker_settings.h"
#include "test/proxy/counting_clock.h"

namespace vpfs::proxy {
namespace {

class ClientListTest : public ::testing::Test {
 protected:
  static Config make_config() {
    ConfigErrors errors("client_list_test");
    Config config = parse_config(
        "proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:1'}\n"
        "virtual_pfs: {'job-{jobid}': {weight: 1}}\n"
        "rules: [{name: jobs, match: {hint: {jobid: '*'}}, virtual_pfs: 'job-{jobid}'}]\n",
        errors);
    EXPECT_EQ(errors.to_string(), "");
    return config;
  }
  stage::Place place_of(const std::string& jobid) {
    const std::optional<std::string_view> hint = jobid;
    stage::Identity identity;
    std::vector<std::optional<std::string_view>> hints(settings_->classifier.hint_names().size(),
                                                       hint);
    identity.hints = hints;
    return dispatcher_.find(
        settings_->classifier.classify(*stage::Address::parse("10.0.0.1"), identity), clock_.now(),
        settings_->config.rules);
  }
  static ShownIdentities::Row row_of(const stage::Place& place, std::uint32_t uid,
                                     std::uint64_t requests) {
    ShownIdentities::Row row;
    row.place = place;
    row.uid = uid;
    row.requests = requests;
    return row;
  }
  [[nodiscard]] std::vector<control::Client> messages() {
    return list_.messages(dispatcher_, clock_.now(), settings_->config);
  }

  CountingClock clock_;
  const WorkerSettingsPtr settings_ = std::make_shared<const WorkerSettings>(make_config());
  Dispatcher dispatcher_{settings_, 1, [](std::size_t) {}, clock_.now()};
  ClientList list_;
};

TEST_F(ClientListTest, ConnectionsOfOneAddressAreOneClientWithTheSumOfItsRows) {
  const stage::Place a = place_of("a");
  list_.add({{.address = "10.0.0.1", .rows = {row_of(a, 7, 3)}},
             {.address = "10.0.0.2", .rows = {row_of(a, 7, 1)}}});
  list_.add({{.address = "10.0.0.1", .rows = {row_of(a, 7, 4), row_of(a, 8, 1)}}});
  const auto clients = messages();
  ASSERT_EQ(clients.size(), 2U);
  EXPECT_EQ(clients[0].address(), "10.0.0.1");
  EXPECT_EQ(clients[0].connections(), 2U);
  ASSERT_EQ(clients[0].seen_size(), 2);
  EXPECT_EQ(clients[0].seen(0).requests(), 7U);
  EXPECT_EQ(clients[0].seen(0).virtual_pfs(), "job-a");
  EXPECT_EQ(clients[0].seen(0).rule(), "jobs");
  EXPECT_EQ(clients[0].seen(1).uid(), 8U);
}

TEST_F(ClientListTest, ARetiredVirtualPfsHasNoName) {
  const stage::Place gone = place_of("a");
  clock_.advance(std::chrono::hours(3));
  for (int i = 0; i < 3; ++i) {
    dispatcher_.retire_idle(clock_.now());
    std::vector<PendingIo*> released;
    std::uint64_t epoch = 0;
    for (int turn = 0; turn < 3; ++turn) {
      Turn quiet;
      quiet.epoch = epoch;
      epoch = dispatcher_.turn(0, quiet, clock_.now(), released).epoch;
    }
  }
  (void)place_of("b");  // has its number now
  list_.add({{.address = "10.0.0.1", .rows = {row_of(gone, 7, 3)}}});
  EXPECT_EQ(messages().at(0).seen(0).virtual_pfs(), "(retired)");
}

TEST_F(ClientListTest, OneClientHasABoundedNumberOfRows) {
  const stage::Place a = place_of("a");
  for (std::uint32_t uid = 0; uid < 1000; ++uid) {
    list_.add({{.address = "10.0.0.1", .rows = {row_of(a, uid, 1)}}});
  }
  const auto clients = messages();
  EXPECT_EQ(clients[0].connections(), 1000U);
  EXPECT_EQ(clients[0].seen_size(), 64);
}

TEST_F(ClientListTest, NotesSayWhyARequestIsWhereItIs) {
  ShownIdentities::Row unregistered = row_of(place_of("a"), 1, 1);
  unregistered.job_not_registered = true;
  ShownIdentities::Row refused = row_of(place_of("a"), 2, 1);
  refused.name_refused = true;
  refused.directory = "\xff\xfe";
  list_.add({{.address = "10.0.0.1", .rows = {unregistered, refused}}});
  const auto clients = messages();
  EXPECT_THAT(clients[0].seen(0).note(), ::testing::HasSubstr("not registered"));
  EXPECT_THAT(clients[0].seen(1).note(), ::testing::HasSubstr("no valid name"));
  control::Client copy;
  EXPECT_TRUE(copy.ParseFromString(clients[0].SerializeAsString())) << "texts are UTF-8";
}

TEST_F(ClientListTest, ManyClientsAreNamedInParts) {
  const stage::Place a = place_of("a");
  for (int i = 0; i < 300; ++i) {
    list_.add({{.address = "10.0.0." + std::to_string(i),
                .rows = {row_of(a, static_cast<std::uint32_t>(i), 1)}}});
  }
  const auto clients = messages();
  ASSERT_EQ(clients.size(), 300U);
  EXPECT_TRUE(std::ranges::all_of(
      clients, [](const auto& each) { return each.seen(0).virtual_pfs() == "job-a"; }));
}

}  // namespace
}  // namespace vpfs::proxy
