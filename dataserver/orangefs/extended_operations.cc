// The operations on extended attributes.

#include <cerrno>
#include <utility>

#include "dataserver/orangefs/operations.h"
#include "dataserver/orangefs/permissions.h"

namespace vpfs::dataserver {
namespace {

using orangefs::Op;
using orangefs::Response;
using orangefs::Status;

// The flags of SETEATTR.
constexpr std::int32_t kMustNotBe = 1;
constexpr std::int32_t kMustBe = 2;

// Tokens of LISTEATTR; others are the number of keys already listed.
constexpr std::uint64_t kListStart = 0x7ffffffe;
constexpr std::uint64_t kListEnd = 0x7ffffffd;

}  // namespace

Operations::Reply Operations::run(const orangefs::GeteattrRequest& body,
                                  const Request& /*request*/) {
  orangefs::EattrResponse found;
  Status last = 0;
  bool any = false;
  for (std::size_t i = 0; i < body.keys.size(); ++i) {
    Outcome<std::string> value = context_.metadata.extended(body.handle, body.keys[i]);
    if (value && std::cmp_greater(value->size(), body.value_sizes[i])) value = refuse(ERANGE);
    last = status_of(value);
    any = any || value.has_value();
    found.errors.push_back(last);
    found.values.push_back(value ? std::move(*value) : std::string());
  }
  if (!any) return ready(failure(Op::geteattr, last != 0 ? last : status_of(EINVAL)));
  return ready(Response{.status = 0, .body = std::move(found)});
}

Operations::Reply Operations::run(const orangefs::SeteattrRequest& body, const Request& request) {
  if (!permits(request.capability, orangefs::kCapSetattr))
    return ready(failure(Op::seteattr, status_of(EACCES)));
  Metadata::IfPresent rule = Metadata::IfPresent::replace;
  if (body.flags == kMustNotBe) rule = Metadata::IfPresent::must_not_be;
  if (body.flags == kMustBe) rule = Metadata::IfPresent::must_be;
  const Outcome<void> set =
      context_.metadata.set_extended(body.handle, body.keys, body.values, rule);
  if (!set) return ready(failure(Op::seteattr, set.error()));
  return settled(answer(Op::seteattr, 0));
}

Operations::Reply Operations::run(const orangefs::DeleattrRequest& body, const Request& request) {
  if (!permits(request.capability, orangefs::kCapSetattr))
    return ready(failure(Op::deleattr, status_of(EACCES)));
  const Outcome<void> removed = context_.metadata.remove_extended(body.handle, body.key);
  if (!removed) return ready(failure(Op::deleattr, removed.error()));
  return settled(answer(Op::deleattr, 0));
}

Operations::Reply Operations::run(const orangefs::ListeattrRequest& body,
                                  const Request& /*request*/) {
  Outcome<std::vector<std::string>> keys = context_.metadata.extended_keys(body.handle);
  if (!keys) return ready(failure(Op::listeattr, keys.error()));
  orangefs::ListeattrResponse list;
  if (body.key_sizes.empty()) {
    // The question is how many there are.
    list.token = keys->size();
    return ready(Response{.status = 0, .body = std::move(list)});
  }
  std::size_t next = body.token == kListStart ? 0 : static_cast<std::size_t>(body.token);
  if (body.token == kListEnd) next = keys->size();
  for (const std::int64_t room : body.key_sizes) {
    if (next >= keys->size()) break;
    if (std::cmp_greater((*keys)[next].size(), room)) {
      return ready(failure(Op::listeattr, status_of(ERANGE)));
    }
    list.keys.push_back(std::move((*keys)[next++]));
  }
  list.token = next >= keys->size() ? kListEnd : next;
  return ready(Response{.status = 0, .body = std::move(list)});
}

}  // namespace vpfs::dataserver
