#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "protocols/orangefs/wire_archive.h"

// The wire order of the structures that are parts of messages (wire_archive.h says how to read it).
namespace vpfs::orangefs {

inline constexpr std::string_view kSimpleStripeName = "simple_stripe";
inline constexpr std::string_view kBasicDistributionName = "basic_dist";
inline constexpr std::string_view kTwoDStripeName = "twod_stripe";
inline constexpr std::string_view kVarStripName = "varstrip_dist";

template <typename A>
void fields(A& archive, StructOf<A, Capability>& x) {
  VPFS_FIELDS(archive, x.issuer, x.fs_id, kPad4, list(x.signature), kAlign8, x.timeout, x.op_mask,
              list(x.handles), kAlign8);
}

template <typename A>
void fields(A& archive, StructOf<A, Credential>& x) {
  VPFS_FIELDS(archive, kPad4, kPad4, x.uid, list(x.groups), kAlign8, x.issuer, x.timeout,
              list(x.signature), kAlign8, kPad4, list(x.certificate), kAlign8);
}

// Whether a hint of this type is a number; all others have a name and a text.
[[nodiscard]] constexpr bool is_numeric_hint(std::uint32_t type) {
  return type >= static_cast<std::uint32_t>(HintType::request_id) &&
         type <= static_cast<std::uint32_t>(HintType::distribution_pv);
}
[[nodiscard]] constexpr bool is_wide_hint(std::uint32_t type) {
  return type == static_cast<std::uint32_t>(HintType::handle);
}

template <typename A>
void fields(A& archive, StructOf<A, Hint>& x) {
  std::uint32_t type = x.type == HintType::named ? x.raw_type : static_cast<std::uint32_t>(x.type);
  VPFS_FIELDS(archive, type);
  const bool numeric = is_numeric_hint(type);
  if constexpr (A::kDecodes) {
    x.type = numeric ? static_cast<HintType>(type) : HintType::named;
    if (!numeric) x.raw_type = type;
  }
  if (!numeric) return VPFS_FIELDS(archive, x.key, x.text);
  if (is_wide_hint(type)) return VPFS_FIELDS(archive, x.number);
  auto number = static_cast<std::uint32_t>(x.number);
  VPFS_FIELDS(archive, number);
  if constexpr (A::kDecodes) x.number = number;
}

template <typename A>
void fields(A& archive, StructOf<A, Hints>& x) {
  VPFS_FIELDS(archive, list(x));
}

template <typename A>
void fields(A& archive, StructOf<A, SimpleStripe>& x) {
  VPFS_FIELDS(archive, x.strip_size);
}
template <typename A>
void fields(A&, StructOf<A, BasicDistribution>&) {}
template <typename A>
void fields(A& archive, StructOf<A, TwoDStripe>& x) {
  VPFS_FIELDS(archive, x.groups, x.strip_size, x.factor);
}
template <typename A>
void fields(A& archive, StructOf<A, VarStrip>& x) {
  VPFS_FIELDS(archive, x.strips);
}

[[nodiscard]] std::string_view name(const Distribution& distribution);
// The default-constructed distribution of that name, if we know it.
[[nodiscard]] std::optional<Distribution> distribution_named(std::string_view name);

template <typename A>
void fields(A& archive, StructOf<A, Distribution>& x) {
  if constexpr (A::kDecodes) {
    const std::optional<Distribution> found = distribution_named(archive.text());
    if (!found) return archive.fail(DecodeError::bad_value);
    x = *found;
  } else {
    const std::string distribution(name(x));
    VPFS_FIELDS(archive, distribution);
  }
  std::visit([&archive](auto& parameters) { VPFS_FIELDS(archive, parameters); }, x);
  VPFS_FIELDS(archive, kAlign8);
}

template <typename A>
void fields(A& archive, StructOf<A, FileRequestElement>& x) {
  VPFS_FIELDS(archive, x.offset, x.num_ereqs, x.num_blocks, x.stride, x.ub, x.lb, x.aggregate_size,
              x.num_contig_chunks, x.depth, x.num_nested_req, x.committed, x.refcount, kPad4,
              x.ereq, x.sreq);
}

// The wire counts the elements after the first.
template <typename A>
void fields(A& archive, StructOf<A, FileRequest>& x) {
  std::uint32_t nested = 0;
  if constexpr (A::kDecodes) {
    nested = archive.count(kMinWireSize<FileRequestElement>);
  } else {
    VPFS_ASSERT(!x.elements.empty());
    nested = static_cast<std::uint32_t>(x.elements.size() - 1);
    VPFS_FIELDS(archive, nested);
  }
  VPFS_FIELDS(archive, kPad4, array(x.elements, std::uint64_t{nested} + 1));
}

template <typename A>
void fields(A& archive, StructOf<A, HandleExtent>& x) {
  VPFS_FIELDS(archive, x.first, x.last);
}

template <typename A>
void fields(A& archive, StructOf<A, Layout>& x) {
  VPFS_FIELDS(archive, x.algorithm, kPad4);
  if constexpr (A::kDecodes) {
    const std::uint32_t servers = archive.count(kMinWireSize<std::string>);
    VPFS_FIELDS(archive, kPad4, array(x.servers, servers));
  } else {
    const auto servers = static_cast<std::uint32_t>(x.servers.size());
    VPFS_FIELDS(archive, servers, kPad4, array(x.servers, servers));
  }
}

}  // namespace vpfs::orangefs
