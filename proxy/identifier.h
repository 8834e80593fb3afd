#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/dispatcher.h"
#include "proxy/settings.h"
#include "stage/address.h"
#include "stage/identity.h"
#include "stage/known_identities.h"

namespace vpfs::proxy {

// Where a request belongs, by what it says of itself.
struct Belonging {
  stage::VirtualPfsId virtual_pfs;
  std::uint8_t traffic_class = 0;
  bool name_refused = false;
  bool job_not_registered = false;
};

// Tells where requests belong. Rules are matched once for each identity, or rather for each set of
// values that rules look at, as long as it is used now and then. Of one worker, with all of its
// connections: it keeps 16384 identities, or 2 MiB of what they show, and as many of those before,
// which takes at most 6 MiB.
class Identifier {
 public:
  // `seed`: one that clients cannot know.
  Identifier(Dispatcher& dispatcher, std::uint64_t seed) : dispatcher_(dispatcher), known_(seed) {}

  // `hint(name)` gives the value of one of the request's hints, or nothing.
  template <typename Hint>
  [[nodiscard]] Belonging identify(const Settings& settings, const stage::Address& client,
                                   stage::Identity identity, Hint hint, TimePoint now) {
    hints_.clear();
    for (const std::string& name : settings.classifier.hint_names()) hints_.push_back(hint(name));
    identity.hints = hints_;
    return look_up(settings, client, identity, now);
  }

  // What was found out counts no more: other rules hold, or a virtual PFS has gone. Takes the same
  // time however much it is.
  void forget_all() {
    known_.forget_all();
    last_.reset();
  }

 private:
  [[nodiscard]] Belonging look_up(const Settings& settings, const stage::Address& client,
                                  const stage::Identity& identity, TimePoint now);

  // Of key_.
  const Belonging& remember_last(const Belonging& belongs);

  Dispatcher& dispatcher_;
  stage::KnownIdentities<Belonging> known_;
  // Reused from call to call.
  std::vector<std::optional<std::string_view>> hints_;
  std::string key_;
  std::string last_key_;
  std::optional<Belonging> last_;  // what was asked for last, by last_key_
};

}  // namespace vpfs::proxy
