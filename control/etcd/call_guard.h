#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/result.h"
#include "net/descriptor.h"

namespace vpfs::control {

// Ends calls of a library that block: at their deadline, or once they are cancelled. A thread of
// its own shuts the call's socket down.
//
// One thread makes calls, one at a time. cancel() is for any thread.
class CallGuard {
 public:
  // The socket of a connection, held for as long as calls use it.
  class Line {
   public:
    void close();

   private:
    friend class CallGuard;
    // A duplicate: the library may close its own at any time, and its number may come back.
    net::Descriptor socket_;
  };
  enum class Ended { by_itself, at_deadline, cancelled };

  [[nodiscard]] static Result<std::unique_ptr<CallGuard>> start();
  ~CallGuard();
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;

  // A call on this line begins. Each begin() has its end().
  void begin(Line& line, TimePoint deadline);
  // Within a call: it has made a new socket, or it has another deadline from now on.
  void use_socket(int socket);
  void set_deadline(TimePoint deadline);
  [[nodiscard]] Ended end();

  // Until then, or until it is cancelled.
  void sleep_until(TimePoint time);
  void cancel();
  [[nodiscard]] bool is_cancelled() const;

 private:
  CallGuard() = default;
  void run();

  mutable std::mutex mutex_;  // guards what follows, and the line of the call
  std::condition_variable changed_;
  Line* line_ = nullptr;  // of the call under way
  TimePoint deadline_ = kNever;
  bool is_past_deadline_ = false;
  bool is_cancelled_ = false;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace vpfs::control
