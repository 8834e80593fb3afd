#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "base/clock.h"
#include "control/admin/host_names.h"

namespace vpfs::control {

// Looks names up beside the owner's thread, so that a slow directory or name service delays only
// the request that asked. Belongs to the owner's thread.
class NameLookups {
 public:
  // How long look-ups for one request may take, and how many there may be at once.
  struct Limits {
    Duration patience = std::chrono::seconds(10);
    Duration patience_of_question = std::chrono::seconds(1);
    std::size_t names = std::size_t{1} << 16U;  // as many as a job may have nodes
    std::size_t names_of_question = 4096;
    std::size_t threads = 8;          // of one request
    std::size_t threads_of_all = 32;  // those that hang included
    // All questions together have so many. Any user of this host can ask through the page, and must
    // leave threads for changes.
    std::size_t threads_of_questions = 8;
    std::size_t kept = std::size_t{1} << 17U;
    // A node may get another address, and a user another number.
    Duration holds = std::chrono::minutes(1);
  };

  // `names` gets the answers. `context` is the owner's; the clock outlives this.
  NameLookups(asio::io_context& context, const Clock& clock, HostNames names)
      : NameLookups(context, clock, std::move(names), Limits()) {}
  NameLookups(asio::io_context& context, const Clock& clock, HostNames names, Limits limits);
  // Does not wait. Results of look-ups in progress are dropped.
  ~NameLookups();
  NameLookups(const NameLookups&) = delete;
  NameLookups& operator=(const NameLookups&) = delete;

  // Calls `done` on the owner's thread once the names are kept, at once if they are already; names
  // that do not exist are kept as unknown. Otherwise with a sentence that says why not.
  using Done = std::function<void(std::optional<std::string> problem)>;
  // For a change, names are looked up anew if what is kept is older than Limits::holds; if that
  // takes too long, what is kept counts. A question is asked again rather than waited for:
  // coordinators give up their stages soon.
  enum class For : std::uint8_t { change, question };
  void fetch(const WantedNames& wanted, Done done, For what = For::change);
  // Looks up names that are kept as well.
  void fetch_anew(const WantedNames& wanted, Done done);

 private:
  struct Request;
  struct Work;
  struct Shared;
  void start(const WantedNames& wanted, For what, Done done);
  // Notes that they are looked up now.
  void note(const WantedNames& names);
  [[nodiscard]] WantedNames old(const WantedNames& names) const;
  void end(std::uint64_t request, std::optional<std::string> problem);

  asio::io_context& context_;
  const Clock& clock_;
  HostNames names_;
  const Limits limits_;
  const std::shared_ptr<Shared> shared_;  // with the threads, which may hang for long
  std::map<std::uint64_t, std::unique_ptr<Request>> requests_;
  std::uint64_t last_ = 0;
  struct LookedUp {
    std::map<std::string, TimePoint> users;
    std::map<std::string, TimePoint> groups;
    std::map<std::string, TimePoint> hosts;
  };
  LookedUp looked_up_;  // when, of names that are kept
};

}  // namespace vpfs::control
