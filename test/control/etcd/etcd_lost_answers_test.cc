#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/etcd/etcd_site_store.h"
#include "net/socket_options.h"
#include "test/control/etcd/raw_server.h"
#include "test/control/etcd/store_fixture.h"
#include "test/control/store/site_store_rig.h"

// Calls that etcd has carried out, and whose answers are lost.
namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Between a store and its etcd. It passes requests on, and answers only while it is told so.
class Relay {
 public:
  explicit Relay(int port)
      : port_(port), server_([this](RawServer::Connection& client) { pass(client); }) {}

  [[nodiscard]] std::string url() const {
    return "https://127.0.0.1:" + std::to_string(server_.port());
  }
  void lose_answers(bool yes) { loses_ = yes; }

 private:
  void pass(RawServer::Connection& client) {
    const int etcd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port_));
    if (::connect(etcd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      while (!client.is_over() && move_some(client.socket(), etcd)) continue;
    }
    ::close(etcd);
  }
  // False at the end of one of them.
  bool move_some(int client, int etcd) const {
    pollfd both[] = {{.fd = client, .events = POLLIN, .revents = 0},
                     {.fd = etcd, .events = POLLIN, .revents = 0}};
    if (::poll(both, 2, 10) <= 0) return true;
    char part[65536];
    for (const bool is_answer : {false, true}) {
      if (both[is_answer ? 1 : 0].revents == 0) continue;
      const ssize_t size = ::recv(is_answer ? etcd : client, part, sizeof part, 0);
      if (size <= 0) return false;
      if (is_answer && loses_) continue;
      const int to = is_answer ? client : etcd;
      for (ssize_t sent = 0; sent < size;) {
        const auto rest = static_cast<std::size_t>(size - sent);
        const ssize_t taken = ::send(to, part + sent, rest, MSG_NOSIGNAL);
        if (taken <= 0) return false;
        sent += taken;
      }
    }
    return true;
  }

  const int port_;
  std::atomic<bool> loses_ = false;
  RawServer server_;
};

class EtcdLostAnswers : public ::testing::Test {
 protected:
  EtcdLostAnswers() {
    net::ignore_broken_pipes();
    skip_without_etcd();
  }
  void SetUp() override {
    EtcdSettings settings = one_member().settings();
    const std::string url = settings.endpoints.front();
    relay_ = std::make_unique<Relay>(std::stoi(url.substr(url.rfind(':') + 1)));
    settings.endpoints = {relay_->url()};
    settings.call_time_out = 500ms;
    store_ = open_store(settings, prefix_, 30s);
    other_ = open_store(one_member().settings(), prefix_, 30s);
  }

  // Says "lost answer" if nothing came back.
  std::string without_answer(const auto& call) {
    relay_->lose_answers(true);
    const SiteStore::Outcome<void> outcome = call();
    relay_->lose_answers(false);
    if (outcome || outcome.error().why != SiteStore::Why::unreachable) return answer(outcome);
    return "lost answer";
  }
  std::string stored() {
    return one_member().etcdctl({"get", "--prefix", "--print-value-only", prefix_ + "rules/"});
  }

  const std::string prefix_ = new_prefix();
  std::unique_ptr<Relay> relay_;
  std::unique_ptr<EtcdSiteStore> store_;
  std::unique_ptr<EtcdSiteStore> other_;
};

TEST_F(EtcdLostAnswers, ARecordIsAppendedOnce) {
  ASSERT_EQ(claim(*store_, 1), "done");
  ASSERT_EQ(load(*store_), Records());
  for (const std::string record : {"one", "two"}) {
    EXPECT_EQ(without_answer([&] { return store_->append(record); }), "lost answer");
    EXPECT_THAT(stored(), HasSubstr(record + "\n")) << "it was carried out";
    EXPECT_EQ(without_answer([&] { return store_->append(record); }), "lost answer");
    EXPECT_EQ(answer(store_->append(record)), "done");
  }
  EXPECT_EQ(answer(store_->append("two")), "done") << "another record of the same text";
  EXPECT_EQ(load(*store_), (Records{"one", "two", "two"}));
}

TEST_F(EtcdLostAnswers, ALongRecordIsAppendedOnce) {
  const std::string big(1'200'000, 'b');
  ASSERT_EQ(claim(*store_, 1), "done");
  ASSERT_EQ(load(*store_), Records());
  EXPECT_EQ(without_answer([&] { return store_->append(big); }), "lost answer");
  EXPECT_EQ(load(*store_), Records()) << "its first part was written, which is not a record";
  EXPECT_EQ(without_answer([&] { return store_->append(big); }), "lost answer");
  EXPECT_EQ(answer(store_->append(big)), "done");
  EXPECT_TRUE(load(*store_) == Records{big});
}

TEST_F(EtcdLostAnswers, RecordsAreReplacedOnce) {
  ASSERT_EQ(claim(*store_, 1), "done");
  ASSERT_EQ(load(*store_), Records());
  ASSERT_EQ(answer(store_->append("one")), "done");
  EXPECT_EQ(without_answer([&] { return store_->replace("all"); }), "lost answer");
  EXPECT_EQ(answer(store_->replace("all")), "done");
  EXPECT_EQ(load(*store_), Records{"all"});
  // Others than the same call may follow, too.
  EXPECT_EQ(without_answer([&] { return store_->replace("everything"); }), "lost answer");
  EXPECT_EQ(answer(store_->append("more")), "done");
  EXPECT_EQ(load(*store_), (Records{"everything", "more"}));
  EXPECT_EQ(stored(), "everything\nmore\n");
}

TEST_F(EtcdLostAnswers, AnotherRecordFollowsOneThatIsThereAfterAll) {
  ASSERT_EQ(claim(*store_, 1), "done");
  ASSERT_EQ(load(*store_), Records());
  EXPECT_EQ(without_answer([&] { return store_->append("one"); }), "lost answer");
  EXPECT_EQ(answer(store_->append("two")), "done");
  EXPECT_EQ(load(*store_), (Records{"one", "two"}));
}

TEST_F(EtcdLostAnswers, AnOfficeIsClaimedAndLeftOnce) {
  const auto seen = store_->look();
  ASSERT_TRUE(seen);
  const Leadership own = leadership(1, 7);
  EXPECT_EQ(without_answer([&] { return store_->claim(*seen, own); }), "lost answer");
  EXPECT_EQ(answer(store_->claim(*seen, own)), "done");
  EXPECT_EQ(without_answer([&] { return store_->confirm(); }), "lost answer");
  EXPECT_EQ(answer(store_->confirm()), "done");
  EXPECT_EQ(answer(other_->claim(*seen, leadership(1, 8))), "lost");
  EXPECT_EQ(load(*store_), Records());
  EXPECT_EQ(without_answer([&] { return store_->resign(); }), "lost answer");
  const auto vacant = other_->look();
  ASSERT_TRUE(vacant && vacant->leader);
  EXPECT_TRUE(vacant->is_vacant) << "it was carried out";
  EXPECT_EQ(answer(store_->resign()), "done");
  ASSERT_EQ(claim(*other_, 9), "done");
  EXPECT_EQ(answer(store_->resign()), "lost");
}

}  // namespace
}  // namespace vpfs::control
