#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <asio/post.hpp>

#include "base/system_clock.h"
#include "dataserver/beegfs/storage_context.h"
#include "dataserver/beegfs/storage_session.h"
#include "net/listener.h"

namespace vpfs::dataserver {

// A BeeGFS storage server as its clients see it (docs/wire-beegfs.md), with its chunk files in
// memory and on a thread of its own. It answers, drops connections and stalls like a real one, and
// makes mistakes on request.
//
// All functions may be called from any thread but its own.
class BeegfsStorage {
 public:
  // Throws std::runtime_error when it cannot listen on the port.
  explicit BeegfsStorage(StorageSettings settings = {});
  ~BeegfsStorage();
  BeegfsStorage(const BeegfsStorage&) = delete;
  BeegfsStorage& operator=(const BeegfsStorage&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Closes everything and ends the thread. record() still works.
  void stop();

  // Faults are queued; a request takes the first that fits it.
  void inject(StorageFault fault);

  [[nodiscard]] StorageRecord record();

  // Replace or return a whole chunk file. Call before stop().
  void put(std::uint16_t target, const std::string& entry, std::span<const std::byte> bytes);
  [[nodiscard]] std::vector<std::byte> content(std::uint16_t target, const std::string& entry);

 private:
  // Calls `action` on the thread and waits for it.
  template <typename Action>
  void on_thread(Action action) {
    if (!thread_.joinable()) return action();
    std::promise<void> done;
    asio::post(loop_, [&action, &done] {
      action();
      done.set_value();
    });
    done.get_future().wait();
  }
  void accept(net::Socket socket);
  void close_sessions();
  [[nodiscard]] net::Task<> write_whole(std::uint16_t target, const std::string& entry,
                                        std::span<const std::byte> bytes);
  [[nodiscard]] net::Task<std::vector<std::byte>> read_whole(std::uint16_t target,
                                                             const std::string& entry);

  StorageSettings settings_;
  SystemClock clock_;
  asio::io_context loop_{1};
  StorageContext context_;
  net::Listener listener_;
  std::uint16_t port_ = 0;
  std::map<std::uint64_t, std::shared_ptr<StorageSession>> sessions_;
  std::uint64_t next_session_ = 0;
  std::thread thread_;
};

}  // namespace vpfs::dataserver
