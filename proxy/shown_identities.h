#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/attributes.h"
#include "base/io_kind.h"
#include "proxy/identifier.h"
#include "stage/place.h"
#include "stage/rules/identity.h"

namespace vpfs::proxy {

// What the requests of one connection have shown, for `vpfsctl who`. Requests that differ in
// nothing but their job id, directory or kind share a row if they belong together; the row has
// those of its latest new request. A connection keeps its last kMost rows.
class ShownIdentities {
 public:
  static constexpr std::size_t kMost = 8;

  struct Row {
    stage::Place place;
    std::uint8_t traffic_class = 0;
    bool name_refused = false;
    bool job_not_registered = false;
    bool job_from_registration = false;
    IoKind kind = IoKind::read;
    std::optional<std::uint32_t> uid;
    std::optional<std::uint32_t> node;
    std::optional<std::uint32_t> target;
    std::optional<std::uint32_t> owner;
    std::int64_t file_system = 0;
    std::uint64_t requests = 0;
    std::string jobid;
    std::string directory;
  };

  // `jobid()` gives the request's job id, or nothing; it is called for a new row only. O(kMost),
  // and O(1) for a request like the one before it.
  template <typename Jobid>
  void saw(const stage::Identity& identity, const Belonging& who, Jobid&& jobid) {
    Row* row = find(identity, who);
    if (row == nullptr) {
      const std::optional<std::string_view> id = jobid();
      row = &add(identity, who, id.value_or(std::string_view()));
    }
    row->kind = identity.kind;
    ++row->requests;
  }

  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }

 private:
  [[nodiscard]] Row* find(const stage::Identity& identity, const Belonging& who);
  Row& add(const stage::Identity& identity, const Belonging& who, std::string_view jobid);

  std::vector<Row> rows_;
  std::size_t last_ = 0;  // the row of the last request
  std::size_t next_ = 0;  // the row to be replaced next
};

}  // namespace vpfs::proxy
