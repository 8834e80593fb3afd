// Lost answers: the client retries requests that the server has already carried out.

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/buffer.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "client/orangefs/file_system.h"
#include "test/support/run_task.h"
#include "test/support/servers/embedded_servers.h"

namespace vpfs::client {
namespace {

using orangefs::Op;
using test::run_task;

// A relay between a client and its server, on the test's loop. Drops one answer on demand and
// closes the connection.
class LossyRelay {
 public:
  explicit LossyRelay(asio::io_context& loop)
      : loop_(loop), acceptor_(loop, net::Endpoint(asio::ip::address_v4::loopback(), 0)) {
    asio::co_spawn(loop_, accept(), asio::detached);
  }
  LossyRelay(const LossyRelay&) = delete;
  LossyRelay& operator=(const LossyRelay&) = delete;
  ~LossyRelay() {
    std::error_code ignored;
    acceptor_.close(ignored);
    for (Pair& pair : pairs_) pair.close();
    test::drain(loop_);
  }

  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void set_server(std::uint16_t port) { server_ = port; }
  // The next answer to this operation does not arrive.
  void lose_next(Op op) { lost_ = op; }
  // No answer to this operation arrives; nothing: all do.
  void lose_all(std::optional<Op> op) { all_lost_ = op; }
  [[nodiscard]] bool has_lost() const { return !lost_; }

 private:
  struct Pair {
    net::Socket client;
    net::Socket server;

    void close() {
      std::error_code ignored;
      client.close(ignored);
      server.close(ignored);
    }
  };

  net::Task<> accept() {
    for (;;) {
      auto [error, client] = co_await acceptor_.async_accept(net::kUseTask);
      if (error) co_return;
      net::Socket server(loop_);
      const net::Endpoint endpoint(asio::ip::address_v4::loopback(), server_);
      server.connect(endpoint);
      pairs_.push_back({.client = std::move(client), .server = std::move(server)});
      asio::co_spawn(loop_, requests(pairs_.back()), asio::detached);
      asio::co_spawn(loop_, answers(pairs_.back()), asio::detached);
    }
  }

  static net::Task<> requests(Pair& pair) {
    std::vector<std::byte> bytes(65536);
    for (;;) {
      const auto space = asio::buffer(bytes);
      const auto [error, size] = co_await pair.client.async_read_some(space, net::kUseTask);
      if (error) co_return pair.close();
      const auto part = asio::buffer(bytes.data(), size);
      const auto [failure, sent] = co_await asio::async_write(pair.server, part, net::kUseTask);
      if (failure) co_return pair.close();
    }
  }

  net::Task<> answers(Pair& pair) {
    std::vector<std::byte> message;
    for (;;) {
      message.resize(orangefs::kBmiHeaderSize);
      const auto head = asio::buffer(message);
      const auto [error, size] = co_await asio::async_read(pair.server, head, net::kUseTask);
      const auto header = orangefs::decode_bmi_header(message);
      if (error || !header) co_return pair.close();
      message.resize(message.size() + static_cast<std::size_t>(header->payload_size));
      const auto body = asio::buffer(message) + orangefs::kBmiHeaderSize;
      const auto [cut, got] = co_await asio::async_read(pair.server, body, net::kUseTask);
      if (cut) co_return pair.close();
      const auto response =
          orangefs::decode_response(std::span(message).subspan(orangefs::kBmiHeaderSize));
      if (response && lost_ && orangefs::op_of(response->body) == *lost_) {
        lost_.reset();
        co_return pair.close();
      }
      if (response && all_lost_ && orangefs::op_of(response->body) == *all_lost_) {
        co_return pair.close();
      }
      const auto whole = asio::buffer(message);
      const auto [failure, sent] = co_await asio::async_write(pair.client, whole, net::kUseTask);
      if (failure) co_return pair.close();
    }
  }

  asio::io_context& loop_;
  asio::ip::tcp::acceptor acceptor_;
  std::uint16_t server_ = 0;
  std::list<Pair> pairs_;
  std::optional<Op> lost_;
  std::optional<Op> all_lost_;
};

class Repetition : public testing::Test {
 protected:
  void SetUp() override {
    relay_ = std::make_unique<LossyRelay>(loop_);
    servers_ = std::make_unique<test::EmbeddedServers>(1, "", std::vector{relay_->port()});
    relay_->set_server(servers_->port(0));
    const auto address =
        parse_mount_address("tcp-px://127.0.0.1:" + std::to_string(relay_->port()) + "/vpfs");
    ASSERT_TRUE(address);
    SessionOptions options;
    options.retry_delay = std::chrono::milliseconds(5);
    auto mounted = run_task(loop_, FileSystem::mount(*address, options, clock_));
    ASSERT_TRUE(mounted) << mounted.error().message << servers_->errors();
    file_system_ = std::move(*mounted);
    root_ = file_system_->root();
  }
  void TearDown() override {
    if (file_system_) file_system_->close();
    test::drain(loop_);
    file_system_.reset();
    relay_.reset();
  }

  orangefs::Handle make(const std::string& name) {
    return run_task(loop_, file_system_->create(root_, name, 0644)).value();
  }
  // The object that the name leads to, if it exists.
  std::optional<orangefs::Handle> found(const std::string& name) {
    const auto handle = run_task(loop_, file_system_->lookup(root_, name));
    if (!handle || !run_task(loop_, file_system_->stat(*handle))) return std::nullopt;
    return *handle;
  }
  bool exists(const std::string& name) {
    return run_task(loop_, file_system_->lookup(root_, name)).has_value();
  }

  asio::io_context loop_;
  SystemClock clock_;
  std::unique_ptr<LossyRelay> relay_;
  std::unique_ptr<test::EmbeddedServers> servers_;
  std::unique_ptr<FileSystem> file_system_;
  orangefs::Handle root_ = 0;
};

TEST_F(Repetition, NewObjectsKeepTheirNames) {
  relay_->lose_next(Op::crdirent);
  const auto file = run_task(loop_, file_system_->create(root_, "file", 0644));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE(relay_->has_lost());
  relay_->lose_next(Op::crdirent);
  const auto directory = run_task(loop_, file_system_->mkdir(root_, "directory", 0755));
  ASSERT_TRUE(directory) << directory.error().message;
  ASSERT_TRUE(relay_->has_lost());
  relay_->lose_next(Op::crdirent);
  const auto link = run_task(loop_, file_system_->symlink(root_, "link", "file"));
  ASSERT_TRUE(link) << link.error().message;
  ASSERT_TRUE(relay_->has_lost());
  EXPECT_EQ(found("file"), *file);
  EXPECT_EQ(found("directory"), *directory);
  EXPECT_EQ(found("link"), *link);
}

// Nothing may be destroyed that a name may lead to.
TEST_F(Repetition, ANewObjectStaysIfItIsNotKnownWhetherItsNameIsThere) {
  relay_->lose_next(Op::crdirent);
  relay_->lose_all(Op::lookup_path);
  const auto file = run_task(loop_, file_system_->create(root_, "file", 0644));
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().code, std::errc::file_exists);
  ASSERT_TRUE(relay_->has_lost());
  relay_->lose_all({});
  EXPECT_TRUE(found("file")) << "the name leads to an object that is there";
}

TEST_F(Repetition, ChangesOfExtendedAttributesEndWell) {
  const orangefs::Handle file = make("file");
  const auto set = [&](const std::string& value) {
    return run_task(loop_, file_system_->set_extended(file, "user.x", value, SetMode::create));
  };
  relay_->lose_next(Op::seteattr);
  const Result<void> made = set("1");
  ASSERT_TRUE(relay_->has_lost());
  EXPECT_TRUE(made) << made.error().message;
  EXPECT_EQ(set("2").error().code, std::errc::file_exists) << "that of another";
  relay_->lose_next(Op::deleattr);
  const Result<void> removed = run_task(loop_, file_system_->remove_extended(file, "user.x"));
  ASSERT_TRUE(relay_->has_lost());
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_FALSE(run_task(loop_, file_system_->remove_extended(file, "user.x"))) << "it is gone";
}

TEST_F(Repetition, AnEntryOfAnotherClientIsStillInTheWay) {
  const orangefs::Handle first = make("file");
  const auto second = run_task(loop_, file_system_->create(root_, "file", 0644));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, std::errc::file_exists);
  EXPECT_EQ(found("file"), first);
}

TEST_F(Repetition, RemovingEndsWell) {
  for (const Op lost : {Op::rmdirent, Op::remove}) {
    (void)make("file");
    relay_->lose_next(lost);
    const auto removed = run_task(loop_, file_system_->remove(root_, "file"));
    EXPECT_TRUE(removed) << removed.error().message;
    EXPECT_TRUE(relay_->has_lost());
    EXPECT_FALSE(exists("file"));
  }
  const auto again = run_task(loop_, file_system_->remove(root_, "file"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, std::errc::no_such_file_or_directory);
}

TEST_F(Repetition, RenamingEndsWell) {
  for (const Op lost : {Op::crdirent, Op::rmdirent}) {
    const orangefs::Handle file = make("old");
    relay_->lose_next(lost);
    const auto renamed = run_task(loop_, file_system_->rename(root_, "old", root_, "new"));
    EXPECT_TRUE(renamed) << renamed.error().message;
    EXPECT_TRUE(relay_->has_lost());
    EXPECT_FALSE(exists("old"));
    EXPECT_EQ(found("new"), file);
    ASSERT_TRUE(run_task(loop_, file_system_->remove(root_, "new")));
  }
}

TEST_F(Repetition, ReplacingEndsWell) {
  for (const Op lost : {Op::chdirent, Op::rmdirent, Op::remove}) {
    const orangefs::Handle file = make("old");
    if (!exists("new")) (void)make("new");
    relay_->lose_next(lost);
    const auto renamed = run_task(loop_, file_system_->rename(root_, "old", root_, "new"));
    EXPECT_TRUE(renamed) << renamed.error().message;
    EXPECT_TRUE(relay_->has_lost());
    EXPECT_FALSE(exists("old"));
    EXPECT_EQ(found("new"), file);
  }
}

TEST_F(Repetition, ADirectoryWithEntriesKeepsItsNameAndItsEntries) {
  const auto directory = run_task(loop_, file_system_->mkdir(root_, "directory", 0755));
  ASSERT_TRUE(directory);
  const auto inside = run_task(loop_, file_system_->create(*directory, "file", 0644));
  ASSERT_TRUE(inside);
  const auto removed = run_task(loop_, file_system_->remove(root_, "directory"));
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, std::errc::directory_not_empty);
  EXPECT_EQ(found("directory"), *directory);
  EXPECT_EQ(run_task(loop_, file_system_->resolve("directory/file")), *inside);
}

}  // namespace
}  // namespace vpfs::client
