#include "proxy/handover/kept_connections.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proxy/handover/connection_keeper.h"
#include "proxy/handover/rest_journal.h"
#include "proxy/handover/rest_watch.h"
#include "proxy/handover/stream_counts.h"
#include "test/net/socket_pair.h"
#include "test/support/process.h"

namespace vpfs::proxy {
namespace {

using namespace std::chrono_literals;

constexpr const char* kAnyName = "conn-1";

// A session's two connections, with the ends of client and server.
struct KeptLink {
  explicit KeptLink(asio::io_context& context)
      : client(net::connected_pair(context)), server(net::connected_pair(context)) {}

  [[nodiscard]] std::array<int, 2> sockets() {
    return {client.first.native_handle(), server.first.native_handle()};
  }
  void send_from_client() { ASSERT_EQ(::send(client.second.native_handle(), "abc", 3, 0), 3); }
  [[nodiscard]] bool client_sees_end() {
    char byte = 0;
    return ::recv(client.second.native_handle(), &byte, 1, MSG_DONTWAIT) == 0;
  }

  std::pair<net::Socket, net::Socket> client;
  std::pair<net::Socket, net::Socket> server;
};

net::Descriptor copy_for_manager(int descriptor) {
  return net::Descriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
}

SavedState state_of_link(std::uint64_t number) {
  SavedState state;
  state.set("number", number);
  return state;
}

class KeptConnectionsTest : public testing::Test {
 protected:
  KeptConnectionsTest() {
    for (int i = 0; i < 4; ++i) links_.push_back(std::make_unique<KeptLink>(context_));
  }

  // What the manager has of a process that recorded these links and ended.
  void keep(const std::vector<std::size_t>& recorded) {
    auto journal = RestJournal::make(8);
    ASSERT_TRUE(journal);
    for (const std::size_t i : recorded) {
      const auto client = stream_counts(links_[i]->sockets()[0]);
      const auto server = stream_counts(links_[i]->sockets()[1]);
      ASSERT_TRUE(client && server);
      ASSERT_TRUE(
          journal->write(i, {.client = *client, .server = *server, .state = state_of_link(i)}));
    }
    journal->open();
    // As of another process, which does not run any more.
    net::Descriptor memory(::memfd_create("copy", MFD_CLOEXEC));
    std::vector<std::byte> bytes(4096 + 8 * 512);
    ASSERT_EQ(::pread(journal->descriptor(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    const std::uint64_t no_process = 1U << 30;
    std::memcpy(bytes.data() + 24, &no_process, sizeof no_process);
    ASSERT_EQ(::pwrite(memory.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    kept_.add(ConnectionKeeper::kJournalName, std::move(memory));
  }
  void keep_sockets(std::size_t link) {
    for (const int socket : links_[link]->sockets()) kept_.add(kAnyName, copy_for_manager(socket));
  }

  asio::io_context context_;
  std::vector<std::unique_ptr<KeptLink>> links_;
  net::Inherited kept_;
};

TEST_F(KeptConnectionsTest, ThatDidNotMoveSinceTheirRecordGoOn) {
  keep({0, 1, 2});
  for (const std::size_t i : {2U, 0U, 1U}) keep_sockets(i);
  links_[1]->send_from_client();  // waits in the kernel
  const KeptConnections all = take_kept_connections(kept_, true);
  EXPECT_EQ(all.problem, "");
  EXPECT_EQ(all.ended, 0U);
  EXPECT_EQ(all.names, std::set<std::string>{kAnyName});
  ASSERT_EQ(all.connections.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(all.connections[i].state, state_of_link(i));
    EXPECT_EQ(stream_counts(all.connections[i].client.get()),
              stream_counts(links_[i]->sockets()[0]));
    EXPECT_EQ(stream_counts(all.connections[i].server.get()),
              stream_counts(links_[i]->sockets()[1]));
  }
}

TEST_F(KeptConnectionsTest, OneByteThatWasReadOrWrittenEndsBoth) {
  links_[0]->send_from_client();
  keep({0, 1, 2});
  for (const std::size_t i : {0U, 1U, 2U}) keep_sockets(i);
  std::byte byte = {};
  ASSERT_EQ(::recv(links_[0]->sockets()[0], &byte, 1, 0), 1);
  ASSERT_EQ(::send(links_[1]->sockets()[1], &byte, 1, 0), 1);
  const KeptConnections all = take_kept_connections(kept_, true);
  ASSERT_EQ(all.connections.size(), 1U);
  EXPECT_EQ(all.connections[0].state, state_of_link(2));
  EXPECT_EQ(all.ended, 4U);
  EXPECT_TRUE(links_[0]->client_sees_end());
  EXPECT_TRUE(links_[1]->client_sees_end());
  EXPECT_FALSE(links_[2]->client_sees_end());
}

TEST_F(KeptConnectionsTest, WithoutARecordOrWithHalfOfThePairTheyEnd) {
  keep({0, 1});
  keep_sockets(2);
  kept_.add(kAnyName, copy_for_manager(links_[0]->sockets()[0]));
  kept_.add(kAnyName, copy_for_manager(links_[1]->sockets()[1]));
  const KeptConnections all = take_kept_connections(kept_, true);
  EXPECT_TRUE(all.connections.empty());
  EXPECT_EQ(all.ended, 4U);
  EXPECT_TRUE(links_[0]->client_sees_end());
  EXPECT_TRUE(links_[2]->client_sees_end());
}

TEST_F(KeptConnectionsTest, ASecondCopyOfASocketIsNotUsedTwice) {
  keep({0});
  keep_sockets(0);
  keep_sockets(0);
  const KeptConnections all = take_kept_connections(kept_, true);
  EXPECT_EQ(all.connections.size(), 1U);
  EXPECT_EQ(all.ended, 0U);
  EXPECT_FALSE(links_[0]->client_sees_end());
}

TEST_F(KeptConnectionsTest, EndWithoutAJournalOrAWish) {
  keep_sockets(0);
  const KeptConnections none = take_kept_connections(kept_, true);
  EXPECT_EQ(none.problem, "there is none");
  EXPECT_TRUE(none.connections.empty());
  EXPECT_TRUE(links_[0]->client_sees_end());
  keep({1});
  keep_sockets(1);
  const KeptConnections unwanted = take_kept_connections(kept_, false);
  EXPECT_EQ(unwanted.problem, "connections are not kept any more");
  EXPECT_TRUE(links_[1]->client_sees_end());
}

TEST_F(KeptConnectionsTest, OfAManagerThatHasNoneAreNone) {
  const KeptConnections all = take_kept_connections(kept_, true);
  EXPECT_TRUE(all.names.empty());
  EXPECT_EQ(all.problem, "");
}

// The environment of a program that a manager has started.
class ConnectionKeeperTest : public testing::Test {
 protected:
  ConnectionKeeperTest() : manager_(::socket(AF_UNIX, SOCK_DGRAM, 0)), link_(context_) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_ = (folder_.path() / "notify").string();
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(manager_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    set("NOTIFY_SOCKET", path_);
    set("FDSTORE", "22");
  }
  ~ConnectionKeeperTest() override {
    ::unsetenv("NOTIFY_SOCKET");  // NOLINT(concurrency-mt-unsafe)
    ::unsetenv("FDSTORE");        // NOLINT(concurrency-mt-unsafe)
  }
  static void set(const char* name, const std::string& value) {
    ::setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): no other thread
  }
  // The words of the next message; "": there is none.
  [[nodiscard]] std::string heard() {
    std::array<char, 256> text = {};
    const ssize_t size = ::recv(manager_.get(), text.data(), text.size(), MSG_DONTWAIT);
    return size < 0 ? "" : std::string(text.data(), static_cast<std::size_t>(size));
  }

  asio::io_context context_;
  test::TemporaryDirectory folder_;
  std::string path_;
  net::Descriptor manager_;
  KeptLink link_;
};

TEST_F(ConnectionKeeperTest, IsThereIfTheManagerKeepsEnough) {
  EXPECT_NE(ConnectionKeeper::make(100), nullptr);
  for (const char* few : {"17", "0", "-5", "many", "22x", ""}) {
    set("FDSTORE", few);
    EXPECT_EQ(ConnectionKeeper::make(100), nullptr) << few;
  }
  set("FDSTORE", "99999999999");
  EXPECT_NE(ConnectionKeeper::make(100), nullptr);
  ::unsetenv("NOTIFY_SOCKET");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(ConnectionKeeper::make(100), nullptr);
}

TEST_F(ConnectionKeeperTest, APlaceServesAnotherConnectionAfterAWhile) {
  const auto keeper = ConnectionKeeper::make(100);
  const TimePoint now = TimePoint() + 1h;
  ASSERT_TRUE(keeper->take_place(now) && keeper->take_place(now));
  const auto last = keeper->take_place(now);
  ASSERT_TRUE(last);
  EXPECT_EQ(keeper->kept(), 3U);
  EXPECT_FALSE(keeper->take_place(now));
  keeper->give_back(*last, now);
  EXPECT_FALSE(keeper->take_place(now + 1s)) << "the manager may still have the sockets";
  EXPECT_EQ(keeper->take_place(now + 2s), last);
}

TEST_F(ConnectionKeeperTest, OffersASessionOnceItHasRested) {
  const auto keeper = ConnectionKeeper::make(100);
  RestWatch watch(keeper.get());
  const TimePoint begin = TimePoint() + 1h;
  EXPECT_FALSE(watch.is_due(5, begin));
  EXPECT_FALSE(watch.is_due(6, begin + 900ms)) << "it has moved";
  EXPECT_FALSE(watch.is_due(6, begin + 1800ms));
  ASSERT_TRUE(watch.is_due(6, begin + 1900ms));
  watch.record(link_.sockets(), {}, begin + 1900ms);
  EXPECT_EQ(heard(), "");
  keeper->tell_some();
  EXPECT_TRUE(heard().starts_with("FDSTORE=1\nFDNAME=conn-"));
  EXPECT_FALSE(watch.is_due(6, begin + 5s)) << "nothing is new";
  EXPECT_FALSE(watch.is_due(7, begin + 6s));
  ASSERT_TRUE(watch.is_due(7, begin + 6200ms));
  watch.record(link_.sockets(), {}, begin + 6200ms);
  keeper->tell_some();
  EXPECT_EQ(heard(), "") << "the manager has it already";
  watch.forget(begin + 7s);
  EXPECT_EQ(keeper->kept(), 0U);
}

TEST_F(ConnectionKeeperTest, AsksNothingOfSessionsThatHaveNoPlace) {
  const auto keeper = ConnectionKeeper::make(1);
  const TimePoint begin = TimePoint() + 1h;
  const auto place = keeper->take_place(begin);
  ASSERT_TRUE(place);
  RestWatch watch(keeper.get());
  EXPECT_FALSE(watch.is_due(5, begin));
  EXPECT_FALSE(watch.is_due(5, begin + 1h));
  keeper->give_back(*place, begin);
  EXPECT_TRUE(watch.is_due(5, begin + 2h));
}

TEST_F(ConnectionKeeperTest, TellsABusyManagerLater) {
  set("FDSTORE", "1000");
  const auto keeper = ConnectionKeeper::make(100);
  for (int i = 0; i < 150; ++i) keeper->offer(link_.sockets());
  std::size_t told = 0;
  for (int i = 0; i < 100; ++i) {
    keeper->tell_some();
    while (!heard().empty()) ++told;
  }
  EXPECT_EQ(told, 100U) << "as many as there are places";
}

TEST_F(ConnectionKeeperTest, HasTheManagerDropAllWhenAnotherProcessHasThem) {
  const auto keeper = ConnectionKeeper::make(100);
  keeper->adopt({"conn-a", "conn-b"});
  keeper->offer(link_.sockets());
  keeper->leave();
  EXPECT_EQ(heard(), "FDSTOREREMOVE=1\nFDNAME=conn-a\n");
  EXPECT_EQ(heard(), "FDSTOREREMOVE=1\nFDNAME=conn-b\n");
  keeper->tell_some();
  EXPECT_EQ(heard(), "");
  EXPECT_FALSE(keeper->take_place(TimePoint() + 1h));
}

TEST_F(ConnectionKeeperTest, GivesUpAManagerThatHasGone) {
  const auto keeper = ConnectionKeeper::make(100);
  keeper->offer(link_.sockets());
  manager_.close();
  keeper->tell_some();
  EXPECT_FALSE(keeper->take_place(TimePoint() + 1h));
}

}  // namespace
}  // namespace vpfs::proxy
