#include "proxy/identifier.h"

namespace vpfs::proxy {

Belonging Identifier::look_up(const WorkerSettings& settings, const stage::Address& client,
                              const stage::Identity& identity, TimePoint now) {
  key_.clear();
  const bool may_be_kept = settings.classifier.append_key(client, identity, key_);
  if (may_be_kept) {
    if (last_ && key_ == last_key_) return *last_;
    if (const Belonging* const known = known_.find(key_)) return remember_last(*known);
  }
  const stage::Classifier::Match match = settings.classifier.classify(client, identity);
  const Belonging belongs = {.place = dispatcher_.find(match, now, settings.config.rules),
                             .traffic_class = match.traffic_class,
                             .name_refused = match.name_refused,
                             .job_not_registered = match.job_not_registered,
                             .job_from_registration = match.job_from_registration};
  // A request may be "default" only because the table is full; that ends when others are retired.
  const bool is_for_now = belongs.place.id.app == AppId{0} && match.declared_name != "default";
  if (!may_be_kept || is_for_now) return belongs;
  known_.insert(key_, belongs);
  return remember_last(belongs);
}

// Consecutive requests usually belong to one application.
const Belonging& Identifier::remember_last(const Belonging& belongs) {
  last_key_ = key_;
  return last_.emplace(belongs);
}

}  // namespace vpfs::proxy
