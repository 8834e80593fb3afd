#pragma once

#include <array>
#include <string>
#include <string_view>

namespace vpfs::sim_tool {

// A palette that colour-blind people can tell apart (Okabe and Ito).
inline constexpr std::array<std::string_view, 8> kColours = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442"};

// Text as it may be written into an element or an attribute.
[[nodiscard]] std::string escaped(std::string_view text);

// The document around what was drawn.
[[nodiscard]] std::string svg_document(int width, int height, std::string_view drawn);

}  // namespace vpfs::sim_tool
