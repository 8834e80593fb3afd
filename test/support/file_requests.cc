#include "test/support/file_requests.h"

#include <algorithm>
#include <map>
#include <utility>

namespace vpfs::test {
namespace {

std::int64_t extent_of(const orangefs::FileRequestElement& fields) {
  return fields.ub - fields.lb;
}

bool is_one_run(const orangefs::FileRequestElement& fields) {
  return fields.num_contig_chunks == 1 && fields.aggregate_size == extent_of(fields);
}

}  // namespace

DatatypeBuilder::DatatypeBuilder()
    : head_(std::make_shared<Element>(
          Element{.fields = orangefs::FileRequest::contiguous_bytes().elements[0]})),
      bytes_{0} {}

DatatypeBuilder::DatatypeBuilder(ElementPtr head, std::vector<std::int64_t> bytes)
    : head_(std::move(head)), bytes_(std::move(bytes)) {}

DatatypeBuilder::Element DatatypeBuilder::block_of(const ElementPtr& old, std::int64_t offset,
                                                   std::int32_t length, std::int64_t stride,
                                                   std::int32_t count) {
  const orangefs::FileRequestElement& of = old->fields;
  const std::int64_t block = length * extent_of(of);
  Element element{.ereq = old};
  orangefs::FileRequestElement& made = element.fields;
  made.offset = offset;
  made.num_ereqs = length;
  made.num_blocks = count;
  made.stride = stride;
  made.lb = offset;
  made.ub = offset + (count - 1) * stride + block;
  made.aggregate_size = of.aggregate_size * count * length;
  made.num_contig_chunks = of.num_contig_chunks * length * count;
  if (is_one_run(of)) {
    made.num_contig_chunks = count == 1 || stride == block || -stride == block ? 1 : count;
  }
  made.depth = of.depth + 1;
  return element;
}

DatatypeBuilder DatatypeBuilder::contiguous(std::int32_t count) const {
  return hvector(1, count, 0);
}

DatatypeBuilder DatatypeBuilder::hvector(std::int32_t count, std::int32_t length,
                                         std::int64_t stride) const {
  Element element = block_of(head_, 0, length, stride, count);
  if (stride < 0) element.fields.lb = (count - 1) * stride;
  std::vector<std::int64_t> bytes;
  for (std::int32_t block = 0; block < count; ++block) {
    for (std::int32_t i = 0; i < length; ++i) {
      for (const std::int64_t at : bytes_) bytes.push_back(block * stride + i * extent() + at);
    }
  }
  return {std::make_shared<Element>(std::move(element)), std::move(bytes)};
}

DatatypeBuilder DatatypeBuilder::resized(std::int64_t lower_bound, std::int64_t new_extent) const {
  const orangefs::FileRequestElement& old = head_->fields;
  const bool wraps_only = head_->ereq && !head_->sreq && old.offset == 0 && old.num_ereqs == 1 &&
                          old.num_blocks == 1 && old.stride == 0;
  Element element = block_of(wraps_only ? head_->ereq : head_, 0, 1, 0, 1);
  element.fields.lb = lower_bound;
  element.fields.ub = lower_bound + new_extent;
  return {std::make_shared<Element>(std::move(element)), bytes_};
}

DatatypeBuilder DatatypeBuilder::structure(const std::vector<Member>& members) {
  ElementPtr rest;
  std::vector<std::int64_t> bytes;
  for (const Member& member : members) {
    for (std::int32_t i = 0; i < member.length; ++i) {
      for (const std::int64_t at : member.type->bytes_) {
        bytes.push_back(member.displacement + i * member.type->extent() + at);
      }
    }
  }
  for (std::size_t i = members.size(); i-- > 0;) {
    const Member& member = members[i];
    Element element = block_of(member.type->head_, member.displacement, member.length, 0, 1);
    if (rest) {
      orangefs::FileRequestElement& made = element.fields;
      made.lb = std::min(made.lb, rest->fields.lb);
      made.ub = std::max(made.ub, rest->fields.ub);
      made.depth = std::max(made.depth, rest->fields.depth);
      made.aggregate_size += rest->fields.aggregate_size;
      made.num_contig_chunks += rest->fields.num_contig_chunks;
    }
    element.sreq = rest;
    rest = std::make_shared<Element>(std::move(element));
  }
  return {rest, std::move(bytes)};
}

DatatypeBuilder DatatypeBuilder::hindexed(const std::vector<std::int32_t>& lengths,
                                          const std::vector<std::int64_t>& displacements) const {
  const auto self = std::make_shared<const DatatypeBuilder>(*this);
  std::vector<Member> members;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    members.push_back({.length = lengths[i], .displacement = displacements[i], .type = self});
  }
  return structure(members);
}

std::int64_t DatatypeBuilder::extent() const {
  return extent_of(head_->fields);
}

int DatatypeBuilder::depth() const {
  return head_->fields.depth;
}

orangefs::FileRequest DatatypeBuilder::request() const {
  orangefs::FileRequest request;
  std::map<const Element*, std::int32_t> placed;
  const auto place = [&](const auto& self, const ElementPtr& element) -> std::int32_t {
    if (!element) return -1;
    if (const auto found = placed.find(element.get()); found != placed.end()) return found->second;
    const auto index = static_cast<std::int32_t>(request.elements.size());
    placed[element.get()] = index;
    request.elements.push_back(element->fields);
    const std::int32_t ereq = self(self, element->ereq);
    const std::int32_t sreq = self(self, element->sreq);
    request.elements[static_cast<std::size_t>(index)].ereq = ereq;
    request.elements[static_cast<std::size_t>(index)].sreq = sreq;
    return index;
  };
  (void)place(place, head_);
  request.elements[0].num_nested_req = static_cast<std::int32_t>(request.elements.size() - 1);
  request.elements[0].committed = -1;
  return request;
}

std::vector<std::int64_t> stream_bytes(const DatatypeBuilder& type, std::int64_t offset,
                                       std::int64_t size) {
  std::vector<std::int64_t> bytes;
  for (std::int64_t at = offset; at < offset + size; ++at) {
    bytes.push_back(at / type.size() * type.extent() +
                    type.bytes()[static_cast<std::size_t>(at % type.size())]);
  }
  return bytes;
}

}  // namespace vpfs::test
