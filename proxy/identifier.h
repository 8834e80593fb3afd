#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/dispatcher.h"
#include "proxy/worker_settings.h"
#include "stage/rules/address.h"
#include "stage/rules/identity.h"
#include "stage/rules/known_identities.h"

namespace vpfs::proxy {

// Where a request belongs.
struct Belonging {
  stage::Place place;
  std::uint8_t traffic_class = 0;
  bool name_refused = false;
  bool job_not_registered = false;
  bool job_from_registration = false;
};

// Finds where requests belong. Matches the rules once for each identity in use, where an identity
// is the set of values that rules look at. One worker has one for all of its connections. It keeps
// the latest 16384 identities or 2 MiB of their values, and as many older ones: 8 MiB at most.
class Identifier {
 public:
  // `seed` must be unknown to clients.
  Identifier(Dispatcher& dispatcher, std::uint64_t seed) : dispatcher_(dispatcher), known_(seed) {}

  // `hint(name)` gives the value of one of the request's hints, or nothing.
  template <typename Hint>
  [[nodiscard]] Belonging identify(const WorkerSettings& settings, const stage::Address& client,
                                   stage::Identity identity, Hint hint, TimePoint now) {
    hints_.clear();
    for (const std::string& name : settings.classifier.hint_names()) hints_.push_back(hint(name));
    identity.hints = hints_;
    return look_up(settings, client, identity, now);
  }

  // Forgets all results, because the rules changed or a virtual PFS was retired. Takes constant
  // time.
  void forget_all() {
    known_.forget_all();
    last_.reset();
  }

 private:
  [[nodiscard]] Belonging look_up(const WorkerSettings& settings, const stage::Address& client,
                                  const stage::Identity& identity, TimePoint now);

  // Stores the result for key_.
  const Belonging& remember_last(const Belonging& belongs);

  Dispatcher& dispatcher_;
  stage::KnownIdentities<Belonging> known_;
  // Kept between calls to save allocations.
  std::vector<std::optional<std::string_view>> hints_;
  std::string key_;
  std::string last_key_;
  std::optional<Belonging> last_;  // the last result, of last_key_
};

}  // namespace vpfs::proxy
