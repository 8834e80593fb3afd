#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config/errors.h"
#include "base/result.h"
#include "base/units.h"

namespace vpfs {

// A key that other systems use, and the key to use instead.
struct ConfigWord {
  std::string_view other;
  std::string_view instead;
};

// A checked view of one YAML mapping.
//
// The caller asks for every allowed key. A getter returns whether the key is present and valid;
// only then does it write `*value`. It reports invalid values into the ConfigErrors. The destructor
// reports each key that was not asked for as unknown and suggests the nearest known key, so one
// pass finds all errors of a file. Destroy children before looking at the errors. A key given twice
// is an error; the first one counts.
class ConfigReader {
 public:
  // Parses `text`. After a syntax error the reader reports nothing else and acts as an empty
  // mapping.
  ConfigReader(std::string_view text, ConfigErrors& errors) : ConfigReader(text, errors, {}) {}
  // The same of several files (see base/config/parts.h). Files beside the main one may have these
  // keys; their lists and mappings follow those of the files before.
  ConfigReader(std::string_view text, ConfigErrors& errors,
               std::span<const std::string_view> keys_of_parts);
  ConfigReader(ConfigReader&&) noexcept;
  ConfigReader& operator=(ConfigReader&&) = delete;
  ~ConfigReader();

  [[nodiscard]] bool has(std::string_view key);
  // Whether the key has exactly this scalar; reports nothing.
  [[nodiscard]] bool is(std::string_view key, std::string_view value);
  bool get(std::string_view key, std::string* value);
  bool get(std::string_view key, bool* value);
  bool get(std::string_view key, double* value, double least, double most);
  bool get(std::string_view key, std::uint64_t* value, std::uint64_t least, std::uint64_t most);
  bool get(std::string_view key, Bytes* value, Bytes least, Bytes most);
  bool get(std::string_view key, BytesPerSecond* value, BytesPerSecond least, BytesPerSecond most);
  bool get(std::string_view key, Duration* value, Duration least, Duration most);
  // A scalar or a list of scalars; an empty list is an error.
  bool get(std::string_view key, std::vector<std::string>* value);
  // Every key of a mapping with its scalar value, in file order; an empty mapping is an error.
  bool get(std::string_view key, std::vector<std::pair<std::string, std::string>>* value);
  // Whether the key is there with a single value; reports nothing.
  [[nodiscard]] bool is_scalar(std::string_view key);
  // One of `choices`; the error lists them. The range of the getters above is inclusive; the
  // largest value of the type as `most` means no upper limit.
  bool choose(std::string_view key, std::string* value, const std::vector<std::string>& choices);
  // Reports a missing key, unless this mapping itself is absent or not a mapping; require the
  // mapping in its parent.
  void require(std::string_view key);

  // Nothing more is read of this mapping, and its keys are not looked at.
  void finish_unread();

  // A nested mapping; an absent key gives an empty mapping that reports nothing.
  [[nodiscard]] ConfigReader child(std::string_view key);
  // Calls `each` for every mapping of a list, in file order. False if the key is absent or not a
  // list.
  bool for_each(std::string_view key, const std::function<void(ConfigReader&)>& each);
  // Each `name: {mapping}` of a mapping of mappings, in file order.
  bool for_each_named(std::string_view key,
                      const std::function<void(const std::string&, ConfigReader&)>& each);
  // All keys of this mapping, in file order (does not mark them as known).
  [[nodiscard]] std::vector<std::string> keys() const;

  // Makes the error about the unknown key `other_word` propose `instead`.
  void suggest(std::string_view other_word, std::string_view instead);
  void suggest(std::span<const ConfigWord> words);
  // Reports unknown keys now instead of at the end; no key may be asked for after it.
  void finish();
  // Whether nothing has been reported since this reader was made.
  [[nodiscard]] bool flawless() const;

  // Reports a problem that only the caller can see, such as two contradictory values. The line is
  // that of the key if present, else of the mapping. The key may be an item of a list: "dial[1]".
  void report(std::string_view key, std::string_view problem);
  // The same as the only error of the whole text, because nothing that follows can be judged.
  void report_alone(std::string_view key, std::string_view problem);
  // Warns of a key of this mapping, which is there.
  void warn(std::string_view key, std::string_view text);
  [[nodiscard]] int line() const;
  // Where another line of the text is, for a message about this mapping: "on line 7" or "in
  // FILE:7".
  [[nodiscard]] std::string place(int line) const;

 private:
  struct State;
  explicit ConfigReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vpfs
