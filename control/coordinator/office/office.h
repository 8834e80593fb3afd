#pragma once

#include <functional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "control/election/tenure.h"
#include "control/store/store_thread.h"

namespace vpfs::coordinator {

// A leader's hold on its office: it confirms it at the store again and again, and says when it is
// over. Belongs to the leader's thread.
class Office {
 public:
  // All outlive it. `over` is called once, with the reason.
  Office(asio::io_context& context, const Clock& clock, control::StoreThread& store,
         const election::Tenure& tenure, std::function<void(const std::string& why)> over);

  // Confirms from now on, and waits for the first confirmation: what came before may have taken
  // nearly all of the lease.
  void start();
  // Asks nothing more.
  void stop();
  // Whether the leader may send a cycle. A process that was stopped for a while finds out here.
  [[nodiscard]] bool holds();
  // Confirms for others too, with a call that begins after they have asked; it counts like any
  // other. They are told in the leader's thread, none after stop(). Null: it cannot be lost.
  using Told = std::function<void(const control::SiteStore::Outcome<void>&)>;
  [[nodiscard]] std::function<void(Told)> confirmation();
  // The leader may not go on.
  void end(const std::string& why);

  [[nodiscard]] control::StoreCaller& store() { return store_; }
  // What the store did not do last; "": it works.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  void confirm_at_once();
  void confirm_for(Told told);
  void confirm();
  void confirmed(const control::SiteStore::Outcome<void>& outcome);
  void wait();
  void lost() { end("another coordinator leads"); }

  const Clock& clock_;
  control::StoreThread& thread_;
  control::StoreCaller store_;
  election::Tenure tenure_;
  const std::function<void(const std::string& why)> over_;
  const bool may_be_lost_;
  asio::steady_timer timer_;
  bool is_asking_ = false;
  std::vector<Told> asked_;  // by what is being asked
  std::vector<Told> next_;   // by what is asked next
  std::string trouble_;      // is in the log
  bool is_over_ = false;
};

}  // namespace vpfs::coordinator
