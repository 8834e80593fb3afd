#include "base/saved/saved_state.h"

#include <utility>

#include "base/byte_reader.h"
#include "base/byte_writer.h"

namespace vpfs {
namespace {

// Deeper trees are not ours.
constexpr int kDeepestState = 16;
// The fewest bytes of a member: its name's length, its kind and a length.
constexpr std::size_t kLeastMember = 6;

}  // namespace

const SavedState::Values& SavedState::list(std::string_view name) const {
  static const Values none;
  const auto* const found = find<Values>(name);
  return found == nullptr ? none : *found;
}

const SavedState& SavedState::child(std::string_view name) const {
  static const SavedState missing;
  const Values& all = list(name);
  return all.empty() ? missing : all.front();
}

// A state is the number of its members, and of each its name with a length, the kind and the value.
// The kind is the index of Value. Runs begin with their length.
void SavedState::write(ByteWriter& out) const {
  out.u32(static_cast<std::uint32_t>(members_.size()));
  for (const auto& [name, value] : members_) {
    out.u8(static_cast<std::uint8_t>(name.size()));
    out.text(name);
    out.u8(static_cast<std::uint8_t>(value.index()));
    if (const auto* const number = std::get_if<std::uint64_t>(&value)) {
      out.u64(*number);
    } else if (const auto* const text = std::get_if<std::string>(&value)) {
      out.u32(static_cast<std::uint32_t>(text->size()));
      out.text(*text);
    } else if (const auto* const numbers = std::get_if<Numbers>(&value)) {
      out.u32(static_cast<std::uint32_t>(numbers->size()));
      for (const std::uint64_t each : *numbers) out.u64(each);
    } else {
      const auto& values = std::get<Values>(value);
      out.u32(static_cast<std::uint32_t>(values.size()));
      for (const SavedState& each : values) each.write(out);
    }
  }
}

std::string SavedState::encode() const {
  std::vector<std::byte> bytes;
  ByteWriter out(bytes);
  write(out);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool SavedState::read(ByteReader& in, int depth) {
  const std::size_t count = in.u32();
  if (depth > kDeepestState || count > in.remaining() / kLeastMember) return false;
  members_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t length = in.u8();
    std::string name(in.text(length));
    const std::uint8_t kind = in.u8();
    Value value;
    if (kind == 0) {
      value = in.u64();
    } else if (kind == 1) {
      const std::size_t size = in.u32();
      value = std::string(in.text(size));
    } else if (kind == 2) {
      const std::size_t size = in.u32();
      if (size > in.remaining() / sizeof(std::uint64_t)) return false;
      Numbers numbers(size);
      for (std::uint64_t& each : numbers) each = in.u64();
      value = std::move(numbers);
    } else if (kind == 3) {
      const std::size_t size = in.u32();
      if (size > in.remaining() / sizeof(std::uint32_t)) return false;
      Values values(size);
      for (SavedState& each : values) {
        if (!each.read(in, depth + 1)) return false;
      }
      value = std::move(values);
    } else {
      return false;
    }
    if (in.failed()) return false;
    members_.emplace_back(std::move(name), std::move(value));
  }
  return !in.failed();
}

Result<SavedState> SavedState::decode(std::string_view bytes) {
  ByteReader in(std::as_bytes(std::span(bytes)));
  SavedState state;
  if (!state.read(in, 0) || in.remaining() > 0) {
    return fail("a state that cannot be read, at byte " + std::to_string(in.offset()));
  }
  return state;
}

}  // namespace vpfs
