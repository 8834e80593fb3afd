# Precompiled headers of libraries and programs: those of other projects that most of ours include.
# A set has one compilation, which every target with the same options uses.
#
#   vpfs_headers            for most
#   vpfs_asio_headers       also asio, for those that link it
#   vpfs_computing_headers  for libraries that debug builds optimize (COMPUTES)
#
# vpfs_test_headers and vpfs_asio_test_headers are as the first two, with GoogleTest (test/support).
function(vpfs_use_headers name asio test)
  set(kind "")
  if(asio)
    string(APPEND kind _asio)
  endif()
  if(test)
    string(APPEND kind _test)
  endif()
  target_precompile_headers(${name} REUSE_FROM vpfs${kind}_headers)
endfunction()

set(vpfs_header_list <algorithm> <array> <chrono> <expected> <fmt/format.h> <fmt/ranges.h>
                     <functional> <map> <memory> <mutex> <nlohmann/json.hpp> <optional> <span>
                     <spdlog/spdlog.h> <string>
                     <string_view> <unordered_map> <utility> <variant> <vector>)
# A target needs a source.
set(vpfs_no_source ${PROJECT_BINARY_DIR}/headers.cc)
file(CONFIGURE OUTPUT ${vpfs_no_source} CONTENT "")

add_library(vpfs_headers OBJECT ${vpfs_no_source})
target_link_libraries(vpfs_headers PRIVATE spdlog::spdlog nlohmann_json::nlohmann_json)
target_precompile_headers(vpfs_headers PRIVATE ${vpfs_header_list})

add_library(vpfs_asio_headers OBJECT ${vpfs_no_source})
target_link_libraries(vpfs_asio_headers PRIVATE spdlog::spdlog nlohmann_json::nlohmann_json
                      vpfs_asio)
target_precompile_headers(vpfs_asio_headers PRIVATE <asio.hpp> ${vpfs_header_list})

add_library(vpfs_computing_headers OBJECT ${vpfs_no_source})
vpfs_computes(vpfs_computing_headers)
target_link_libraries(vpfs_computing_headers PRIVATE spdlog::spdlog nlohmann_json::nlohmann_json)
target_precompile_headers(vpfs_computing_headers PRIVATE ${vpfs_header_list})
