#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "control/etcd/etcd_client.h"
#include "test/support/process.h"

namespace vpfs::test {

// Members of an etcd of their own on loopback, with TLS, client certificates and passwords. A user
// may do anything below /vpfs/. Their end is that of this object.
class EtcdCluster {
 public:
  struct Options {
    std::size_t members = 3;
    std::vector<std::string> more = {};  // arguments of each member
  };
  // Why there can be none; empty: there can.
  [[nodiscard]] static std::string missing();

  // Waits until it answers; a failure is an exception.
  explicit EtcdCluster(const Options& options);

  [[nodiscard]] std::size_t size() const { return members_.size(); }
  // All endpoints, a certificate, and the user.
  [[nodiscard]] control::EtcdSettings settings() const;

  void kill(std::size_t member);                // SIGKILL
  void signal(std::size_t member, int number);  // SIGSTOP, SIGCONT
  void start(std::size_t member);               // again, with what it has stored
  // Waits until the member answers.
  void await(std::size_t member);
  // Forgets all revisions but the newest.
  void compact();
  // What etcdctl prints; as the administrator.
  std::string etcdctl(std::vector<std::string> arguments);

 private:
  struct Member {
    ReservedPort client_port;
    ReservedPort peer_port;
    std::unique_ptr<Process> process;  // null: it does not run
  };

  [[nodiscard]] std::string url(std::size_t member) const;
  [[nodiscard]] std::string file(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> command(std::size_t member) const;
  [[nodiscard]] std::string run_etcdctl(const std::string& endpoints,
                                        std::vector<std::string> arguments, bool& has_failed) const;
  void add_users();

  const Options options_;
  const TemporaryDirectory folder_;
  std::vector<Member> members_;
  bool has_users_ = false;
};

}  // namespace vpfs::test
