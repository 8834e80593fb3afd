#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "control/store/journal_lines.h"
#include "stage/book/record.h"
#include "stage/book/rule_book.h"
#include "test/fuzz/require.h"
#include "test/stage/book/plain_rules.h"

namespace {

using namespace vpfs;

// A record that can be read is written and read the same again.
void check_record(std::string_view text) {
  const auto read = stage::read_record(text);
  if (!read) {
    test::require(!read.error().empty(), "an error without a text");
    return;
  }
  if (const auto* const operation = std::get_if<stage::BookOperation>(&read->what)) {
    const auto written = stage::to_record(*operation, read->number.value_or(1));
    test::require(written.has_value(), "an operation that was read cannot be written");
    const auto again = stage::read_record(*written);
    test::require(again && std::get<stage::BookOperation>(again->what) == *operation,
                  "an operation changes when it is written");
    (void)stage::command_of(*operation);
  } else {
    const auto& state = std::get<stage::BookState>(read->what);
    const auto again = stage::read_record(stage::to_record(state));
    test::require(again && std::get<stage::BookState>(again->what) == state,
                  "a state changes when it is written");
  }
}

}  // namespace

// The bytes of a journal, from the file to the book.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto lines = control::read_journal_lines(bytes);
  std::string_view rest = bytes;
  if (lines) {
    test::require(lines->sound_bytes <= size, "more whole lines than bytes");
    const auto again = control::read_journal_lines(bytes.substr(0, lines->sound_bytes));
    test::require(again && again->lines.size() == lines->lines.size() &&
                      again->sound_bytes == lines->sound_bytes,
                  "the whole lines are others without the rest");
  } else {
    test::require(lines.error().number >= 1, "a damaged line without a number");
  }

  // Every line as a record, whatever its checksum, which a fuzzer would hardly find.
  stage::RuleBook book(&stage::plain_rule);
  stage::Composer composer(&stage::plain_rule);
  const stage::Config file;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (const std::size_t brace = line.find('{'); brace != std::string_view::npos) {
      line.remove_prefix(brace);
    }
    check_record(line);
    const std::uint64_t number = book.state().number;
    if (!book.replay(line)) {
      test::require(book.state().number == number, "a refused record was counted");
    }
  }
  while (const auto due = book.expire(WallTime(std::chrono::seconds(1'800'000'000)))) {
    book.commit(*due);
  }
  (void)composer.compose(file, book.state());
  stage::RuleBook copy(&stage::plain_rule);
  test::require(copy.replay(book.snapshot()).has_value(), "a snapshot is not read");
  test::require(copy.state() == book.state(), "a snapshot is another book");
  for (const stage::HistoryEntry& entry : book.history()) (void)book.differences_of(entry.version);
  return 0;
}
