#include "schedulers/status_fields.h"

#include <algorithm>

#include "base/check.h"

namespace vpfs {
namespace {

// Most policies say no more.
constexpr std::size_t kUsual = 4;

StatusField::Value joined(const StatusField& one, const StatusField& other) {
  VPFS_ASSERT(one.value.index() == other.value.index());
  switch (one.join) {
    case StatusField::Join::same:
      return other.value;
    case StatusField::Join::sum:
      return std::get<std::int64_t>(one.value) + std::get<std::int64_t>(other.value);
    case StatusField::Join::largest:
      return std::max(one.value, other.value);
    case StatusField::Join::every:
      return std::get<bool>(one.value) && std::get<bool>(other.value);
  }
  return one.value;
}

}  // namespace

void StatusFields::add(StatusField field) {
  VPFS_DEBUG_ASSERT(find(field.name) == nullptr);
  if (fields_.empty()) fields_.reserve(kUsual);
  fields_.push_back(field);
}

void StatusFields::join(const StatusFields& other) {
  for (const StatusField& field : other) {
    const auto mine = std::ranges::find(fields_, field.name, &StatusField::name);
    if (mine == fields_.end()) {
      add(field);
    } else {
      mine->value = joined(*mine, field);
    }
  }
}

const StatusField* StatusFields::find(std::string_view name) const {
  const auto found = std::ranges::find(fields_, name, &StatusField::name);
  return found == fields_.end() ? nullptr : &*found;
}

StatusFields server_capacity(std::uint64_t cost_per_second, std::string_view source) {
  StatusFields fields;
  fields.add({.name = "capacity",
              .value = static_cast<std::int64_t>(cost_per_second),
              .join = StatusField::Join::sum});
  fields.add({.name = "capacity_source", .value = source});
  return fields;
}

}  // namespace vpfs
