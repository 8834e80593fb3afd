#include "control/coordinator/office/elected.h"

#include <algorithm>
#include <utility>

#include "control/election/candidacy.h"

namespace vpfs::coordinator {
namespace {

using control::SiteStore;

std::unexpected<Error> as_error(const SiteStore::Failure& failure) {
  std::string text = "journal: " + failure.text;
  if (failure.why == SiteStore::Why::damaged) {
    text += "; --term has to be above the last term then: vpfsctl status of a stage shows it";
  }
  return fail(std::move(text));
}

}  // namespace

Result<Elected> claim_at_once(SiteStore& store, const Clock& clock, control::Leadership own,
                              std::uint64_t least_term) {
  const TimePoint asked = clock.now();
  const auto seen = store.look();
  if (!seen) return as_error(seen.error());
  own.term = std::max(seen->least_term, least_term);
  if (const auto claimed = store.claim(*seen, own); !claimed) return as_error(claimed.error());
  auto records = store.load();
  if (!records) return fail("journal: " + records.error().text);
  return Elected{.own = std::move(own),
                 .tenure = election::Tenure(store.traits().lease, asked),
                 .clear_from = election::Candidacy(store.traits()).clear_from(*seen, clock.now()),
                 .records = std::move(*records)};
}

}  // namespace vpfs::coordinator
