#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace vpfs::ctl {

enum class TopOrder { bytes, operations, queue, wait, share, name };

// What of a model is shown, and how.
struct TopView {
  TopOrder order = TopOrder::bytes;
  bool is_reversed = false;
  bool each_proxy = false;
  std::size_t first = 0;  // row that is at the top
  bool shows_help = false;

  // Whether the key means something here: m i q w s n order, r reverses, p shows each proxy, j and
  // k move by a row, ? shows what the columns mean until the next key.
  bool press(int key);
};

struct TopSettings {
  TopView view;
  std::string period = "1s";
  std::uint64_t count = 0;  // how often; 0: until it is ended
  bool is_plain = false;
  bool json = false;  // each table as a line of JSON
};

}  // namespace vpfs::ctl
