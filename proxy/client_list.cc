#include "proxy/client_list.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "stage/stage.h"

namespace vpfs::proxy {
namespace {

// How many connections' rows of one client are kept apart.
constexpr std::size_t kMostRows = 64;
// How many names are looked up per lock.
constexpr std::size_t kNames = 32;

bool is_like(const ShownIdentities::Row& a, const ShownIdentities::Row& b) {
  return a.place.id == b.place.id && a.place.rule == b.place.rule && a.uid == b.uid &&
         a.node == b.node && a.target == b.target && a.owner == b.owner &&
         a.file_system == b.file_system && a.jobid == b.jobid && a.traffic_class == b.traffic_class;
}

std::string_view name_of(IoKind kind) {
  return kind == IoKind::read ? "read" : kind == IoKind::write ? "write" : "metadata";
}

std::string note_of(const ShownIdentities::Row& row) {
  if (row.name_refused) return "its values make no valid name";
  if (row.job_not_registered) return "its job id is not registered for it, so it does not count";
  return row.place.exempt ? "exempt" : "";
}

// The names behind the numbers of one row.
struct Names {
  std::shared_ptr<const stage::VirtualPfsInfo> virtual_pfs;  // null: it was retired
  std::shared_ptr<const std::string> rule;                   // null: it is gone
  std::string jobid;
};

std::vector<Names> look_up(control::StageGate& gate, TimePoint now,
                           const std::vector<const ShownIdentities::Row*>& rows) {
  std::vector<Names> names(rows.size());
  for (std::size_t first = 0; first < rows.size(); first += kNames) {
    gate.inspect(now, [&](stage::Stage& from, TimePoint) {
      for (std::size_t i = first; i < std::min(rows.size(), first + kNames); ++i) {
        const stage::Place& place = rows[i]->place;
        if (from.virtual_pfs().is_there(place.id)) {
          names[i].virtual_pfs = from.virtual_pfs()[place.id.app].info;
          names[i].jobid = from.virtual_pfs().jobid(place.id.app);
        }
        if (const auto* const rule = from.rules().row(place.rule)) names[i].rule = rule->name;
      }
    });
  }
  return names;
}

void fill(control::Seen& to, const ShownIdentities::Row& row, const Names& names,
          const stage::Config& config) {
  to.set_virtual_pfs(names.virtual_pfs == nullptr ? "(retired)" : names.virtual_pfs->name);
  if (names.rule != nullptr) to.set_rule(*names.rule);
  const auto& classes = config.scheduler.classes.classes;
  if (row.traffic_class < classes.size()) to.set_class_(classes[row.traffic_class].name);
  to.set_jobid(valid_utf8(row.jobid.empty() ? names.jobid : row.jobid));
  to.set_job_from_registration(row.job_from_registration);
  if (row.uid) to.set_uid(*row.uid);
  if (row.node) to.set_node(*row.node);
  if (row.owner) to.set_owner(*row.owner);
  if (row.target) to.set_target(*row.target);
  if (row.file_system != 0) to.set_file_system(static_cast<std::uint64_t>(row.file_system));
  to.set_directory(valid_utf8(row.directory));
  to.set_kind(std::string(name_of(row.kind)));
  to.set_requests(row.requests);
  to.set_note(note_of(row));
}

}  // namespace

void ClientList::add(std::vector<ShownConnection> connections) {
  for (ShownConnection& connection : connections) {
    Client& client = clients_[connection.address];
    ++client.connections;
    for (ShownIdentities::Row& row : connection.rows) {
      const auto known = std::ranges::find_if(
          client.rows, [&](const ShownIdentities::Row& each) { return is_like(each, row); });
      if (known != client.rows.end()) {
        known->requests += row.requests;
      } else if (client.rows.size() < kMostRows) {
        client.rows.push_back(std::move(row));
      }
    }
  }
}

std::vector<control::Client> ClientList::messages(control::StageGate& gate, TimePoint now,
                                                  const stage::Config& config) const {
  std::vector<const ShownIdentities::Row*> rows;
  for (const auto& [address, client] : clients_) {
    for (const ShownIdentities::Row& row : client.rows) rows.push_back(&row);
  }
  const std::vector<Names> names = look_up(gate, now, rows);
  std::vector<control::Client> messages;
  messages.reserve(clients_.size());
  std::size_t next = 0;
  for (const auto& [address, client] : clients_) {
    control::Client& message = messages.emplace_back();
    message.set_address(address);
    message.set_connections(client.connections);
    for (const ShownIdentities::Row& row : client.rows) {
      fill(*message.add_seen(), row, names[next++], config);
    }
  }
  return messages;
}

}  // namespace vpfs::proxy
