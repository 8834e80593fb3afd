// The part of Inodes for a successor in another process.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "base/result.h"
#include "fuse/posix/files/inodes.h"

namespace vpfs::fuse {
namespace {

constexpr std::size_t kRecordsAtOnce = 2048;

// A record begins with its length, so that a later version may write more behind what this one
// knows.
void write(ByteWriter& out, std::vector<std::byte>& bytes, const Inode& inode, bool is_open) {
  const std::size_t begin = bytes.size();
  out.u32(0);
  out.u64(inode.node);
  out.u64(inode.lookups);
  out.u64(inode.name->device);
  out.i32(inode.name->handle.type);
  out.u8(static_cast<std::uint8_t>(inode.name->handle.bytes.size()));
  out.text(inode.name->handle.bytes);
  out.u64(inode.number);
  out.u32(inode.type);
  out.u8(is_open ? 1 : 0);
  out.u32(inode.user);
  out.u64(inode.parent);
  out.u16(static_cast<std::uint16_t>(inode.entry.size()));
  out.text(inode.entry);
  out.i64(inode.seen_changed.tv_sec);
  out.i64(inode.seen_changed.tv_nsec);
  out.i64(inode.seen_size);
  const std::size_t size = bytes.size() - begin - sizeof(std::uint32_t);
  for (std::size_t i = 0; i < sizeof(std::uint32_t); ++i) {
    bytes[begin + i] = static_cast<std::byte>(size >> (8 * i) & 0xffU);
  }
}

}  // namespace

// What is looked up or forgotten meanwhile is noted.
std::vector<std::uint64_t> Inodes::note_changes() {
  std::vector<std::uint64_t> nodes;
  std::uint64_t end = 0;
  {
    const std::lock_guard lock(mutex_);
    notes_ = true;
    ++hand_over_;
    changed_.clear();
    end = numbers_.end();
  }
  for (std::uint64_t node = kRoot + 1; node < end; ++node) {
    if (numbers_.at(node) != nullptr) nodes.push_back(node);
  }
  return nodes;
}

std::vector<std::uint64_t> Inodes::take_changes() {
  std::vector<std::uint64_t> nodes;
  {
    const std::lock_guard lock(mutex_);
    notes_ = false;
    nodes.swap(changed_);
  }
  // A number may have been given again since.
  std::ranges::sort(nodes);
  nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
  return nodes;
}

Inodes::Saved Inodes::save(std::span<const std::uint64_t> nodes, std::size_t& next) {
  Saved saved;
  std::vector<std::byte> bytes;
  ByteWriter out(bytes);
  const std::lock_guard lock(mutex_);
  const std::size_t end = std::min(nodes.size(), next + kRecordsAtOnce);
  for (; next < end && saved.open.size() < kMostOpenAtOnce; ++next) {
    const Inode* const inode = numbers_.at(nodes[next]);
    if (inode == nullptr) continue;
    write(out, bytes, *inode, inode->path != nullptr);
    if (inode->path) saved.open.push_back(inode->path);
  }
  saved.records.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return saved;
}

void Inodes::drop(std::span<const std::uint64_t> nodes) {
  std::vector<std::unique_ptr<Inode>> gone;  // closed without the lock
  const std::lock_guard lock(mutex_);
  for (const std::uint64_t each : nodes) {
    Inode* const inode = numbers_.at(each);
    if (inode != nullptr) gone.push_back(take_out(*inode));
  }
}

Result<void> Inodes::restore(std::string_view records, std::vector<net::Descriptor> open) {
  ByteReader in(std::as_bytes(std::span(records)));
  std::size_t used = 0;
  const std::lock_guard lock(mutex_);
  while (in.remaining() > 0) {
    const std::size_t size = in.u32();
    ByteReader record(in.bytes(size));
    if (in.failed() || !restore(record, open, used)) {
      return fail("an object that the kernel knows cannot be taken on");
    }
  }
  return {};
}

bool Inodes::restore(ByteReader& record, std::vector<net::Descriptor>& open, std::size_t& used) {
  auto inode = std::make_unique<Inode>();
  ObjectName name;
  inode->node = record.u64();
  inode->lookups = record.u64();
  name.device = record.u64();
  name.handle.type = record.i32();
  const std::size_t length = record.u8();
  name.handle.bytes = record.text(length);
  inode->number = record.u64();
  inode->type = record.u32();
  const bool is_open = record.u8() != 0;
  inode->user = record.u32();
  inode->parent = record.u64();
  const std::size_t entry = record.u16();
  inode->entry = record.text(entry);
  inode->seen_changed.tv_sec = record.i64();
  inode->seen_changed.tv_nsec = record.i64();
  inode->seen_size = record.i64();
  if (record.failed() || (is_open && used == open.size())) return false;
  if (!is_open && (name.is_pinned() || !has_handles())) return false;
  Inode& known = *inode;
  const auto before = all_.find(name);
  if (before != all_.end() && before->second.get() == root_) return false;
  if (!numbers_.place(known.node, known)) return false;
  // Between two pieces that save() wrote, the kernel may have forgotten the object and looked it up
  // again. The later piece is right: the earlier number is among the changes.
  if (before != all_.end()) (void)take_out(*before->second);
  const auto place = all_.try_emplace(std::move(name), std::move(inode)).first;
  known.name = &place->first;
  if (known.name->is_pinned()) shares_.take(known.user, 1);
  ObjectPath closes;
  if (is_open) {
    keep_open(known, std::make_shared<const net::Descriptor>(std::move(open[used++])), closes);
  }
  return true;
}

}  // namespace vpfs::fuse
