#include "protocols/orangefs/wire_printer.h"

namespace vpfs::orangefs {

void WirePrinter::begin(std::string_view name) {
  if (!text_.empty() && text_.back() != '[' && text_.back() != '{') text_ += ' ';
  if (!name.empty()) text_.append(name).append("=");
}

void WirePrinter::open(char bracket) {
  text_ += bracket;
}
void WirePrinter::close(char bracket) {
  text_ += bracket;
}

void WirePrinter::show(const std::vector<std::byte>& value) {
  text_ += "<" + std::to_string(value.size()) + " bytes>";
}

}  // namespace vpfs::orangefs
