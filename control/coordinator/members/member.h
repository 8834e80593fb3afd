#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "control/coordinator/config/config.h"
#include "control/coordinator/coordinator.h"
#include "control/metrics/own_part.h"
#include "control/store/store_thread.h"
#include "control/wire/owner.h"

namespace vpfs::coordinator {

// The part of a process that serves stages beside other members of its site, whichever of them
// leads. It has a thread of its own. Its functions are for any thread.
class Member final : public control::OwnPart {
 public:
  struct Parts {
    const Clock& clock;
    const Config& config;  // of the process
    const Coordinator::Options& options;
    control::StoreThread& store;  // nothing is asked of it
    std::string name;
    std::uint64_t incarnation = 0;
  };

  // Its sockets are open and it serves, once it is told which stages are its own. All parts outlive
  // it. The error names the key of the configuration.
  [[nodiscard]] static Result<std::unique_ptr<Member>> start(const Parts& parts);
  // Leaves its stages.
  ~Member() override;
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  // Members reach the leader there; empty: it has none. The same again does nothing while it is
  // connected.
  void follow(const std::vector<std::string>& leader);
  // None leads, as far as is known.
  void follow_none();

  void answer_status(std::string status, control::Answer answer) override;
  void give_metrics(MakeText others, std::function<void(MakeText)> give) override;
  [[nodiscard]] bool has_turned() override;

  // Where stages dial.
  [[nodiscard]] const std::optional<net::Endpoint>& tcp_endpoint() const { return tcp_endpoint_; }

 private:
  explicit Member(const Parts& parts);
  [[nodiscard]] std::string with_own_part(const std::string& status);

  const Config config_;
  const Coordinator::Options options_;
  const std::string name_;
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  control::StoreCaller store_;
  std::unique_ptr<Coordinator> coordinator_;
  std::optional<net::Endpoint> tcp_endpoint_;
  std::atomic<bool> has_turned_ = true;
  std::thread thread_;
};

}  // namespace vpfs::coordinator
