#include "stage/rules/template_name.h"

#include <algorithm>

#include <fmt/format.h>

namespace vpfs::stage {

bool is_good_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::ranges::all_of(name, [](char each) { return each >= ' ' && each <= '~'; });
}

std::optional<Attribute> template_attribute(std::string_view field) {
  if (field == "uid") return Attribute::uid;
  if (field == "node") return Attribute::node;
  if (field == "target") return Attribute::target;
  if (field == "owner") return Attribute::owner;
  if (field == "dir") return Attribute::directory;
  if (field == "jobid") return Attribute::jobid;
  if (field == "gid") return Attribute::gid;
  if (field == "account") return Attribute::account;
  return std::nullopt;
}

std::optional<std::string> template_problem(std::string_view name) {
  std::size_t open = std::string_view::npos;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const bool inside = open != std::string_view::npos;
    if (name[at] == '{' ? inside : name[at] == '}' && !inside) {
      return fmt::format("'{}': unbalanced braces: expected a name such as job-{{jobid}}", name);
    }
    if (name[at] == '}' && at == open + 1) {
      return fmt::format("'{}': {{}} names no field: expected one such as {{jobid}}", name);
    }
    if (name[at] == '{') open = at;
    if (name[at] == '}') open = std::string_view::npos;
  }
  if (open == std::string_view::npos) return std::nullopt;
  return fmt::format("'{}': a brace is never closed: expected a name such as job-{{jobid}}", name);
}

std::vector<std::string> template_fields(std::string_view name) {
  std::vector<std::string> fields;
  for (std::size_t open = name.find('{'); open != std::string_view::npos;
       open = name.find('{', open + 1)) {
    const std::size_t close = name.find('}', open);
    if (close == std::string_view::npos) break;
    fields.emplace_back(name.substr(open + 1, close - open - 1));
  }
  return fields;
}

}  // namespace vpfs::stage
