#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace vpfs::stage {

// Reads the members of a JSON object. The first member that is missing or of another type is the
// error, and gives an empty value, as all that follow do. Other members are skipped.
class JsonMembers {
 public:
  // `error` collects the first error of a whole text; both outlive the reader.
  JsonMembers(const nlohmann::json& object, std::string& error) : object_(object), error_(error) {
    if (!object.is_object()) report("an object is missing");
  }

  [[nodiscard]] bool has(const char* key) const {
    return object_.is_object() && object_.contains(key);
  }
  [[nodiscard]] std::string text(const char* key) {
    const nlohmann::json* const value = member(key, "a text");
    return value != nullptr && is(key, value->is_string(), "a text") ? value->get<std::string>()
                                                                     : std::string();
  }
  [[nodiscard]] bool flag(const char* key) {
    const nlohmann::json* const value = member(key, "true or false");
    return value != nullptr && is(key, value->is_boolean(), "true or false") && value->get<bool>();
  }
  [[nodiscard]] std::uint64_t number(const char* key, std::uint64_t most) {
    const nlohmann::json* const value = member(key, "a number");
    return value == nullptr ? 0 : number(*value, key, most);
  }
  [[nodiscard]] std::vector<std::string> texts(const char* key) {
    std::vector<std::string> found;
    for_each(key, [&](const nlohmann::json& value) {
      if (is(key, value.is_string(), "a list of texts")) found.push_back(value);
    });
    return found;
  }
  [[nodiscard]] std::vector<std::uint64_t> numbers(const char* key, std::uint64_t most) {
    std::vector<std::uint64_t> found;
    for_each(key, [&](const nlohmann::json& value) { found.push_back(number(value, key, most)); });
    return found;
  }
  // Each value of a list.
  template <typename Use>
  void for_each(const char* key, Use use) {
    const nlohmann::json* const value = member(key, "a list");
    if (value == nullptr || !is(key, value->is_array(), "a list")) return;
    for (const nlohmann::json& each : *value) use(each);
  }
  [[nodiscard]] JsonMembers child(const char* key) {
    static const nlohmann::json nothing = nlohmann::json::object();
    const nlohmann::json* const value = member(key, "an object");
    if (value == nullptr) return {nothing, error_};
    return {is(key, value->is_object(), "an object") ? *value : nothing, error_};
  }

  void report(std::string problem) {
    if (error_.empty()) error_ = std::move(problem);
  }
  [[nodiscard]] bool failed() const { return !error_.empty(); }

 private:
  [[nodiscard]] const nlohmann::json* member(const char* key, std::string_view kind) {
    if (failed()) return nullptr;
    const auto found = object_.find(key);
    if (found != object_.end()) return &*found;
    report(fmt::format("\"{}\" is missing, {}", key, kind));
    return nullptr;
  }
  bool is(const char* key, bool fits, std::string_view kind) {
    if (!fits) report(fmt::format("\"{}\" is not {}", key, kind));
    return fits;
  }
  std::uint64_t number(const nlohmann::json& value, const char* key, std::uint64_t most) {
    if (!is(key, value.is_number_unsigned(), "a whole number")) return 0;
    const auto read = value.get<std::uint64_t>();
    if (read <= most) return read;
    report(fmt::format("\"{}\" is more than {}", key, most));
    return 0;
  }

  const nlohmann::json& object_;
  std::string& error_;
};

}  // namespace vpfs::stage
