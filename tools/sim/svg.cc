#include "tools/sim/svg.h"

#include <fmt/format.h>

namespace vpfs::sim_tool {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char each : text) {
    switch (each) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        // XML has no way to write a control character.
        result += static_cast<unsigned char>(each) < 0x20 ? '?' : each;
    }
  }
  return result;
}

std::string svg_document(int width, int height, std::string_view drawn) {
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{}' height='{}' font-family='sans-serif' "
      "font-size='12'>\n<rect width='100%' height='100%' fill='white'/>\n{}</svg>\n",
      width, height, drawn);
}

}  // namespace vpfs::sim_tool
