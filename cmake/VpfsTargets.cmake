# vpfs_library(NAME SOURCES ... LINK ... [COMPUTES] [ASIO] [TEST]): a folder's library. COMPUTES is
# for those whose tests compute for long: debug builds optimize them too. script/test prints what
# tests take. ASIO is for those that link asio, TEST for those that link GoogleTest: they choose the
# precompiled headers.
function(vpfs_library name)
  cmake_parse_arguments(ARG "ASIO;COMPUTES;TEST" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  if(ARG_COMPUTES)
    vpfs_computes(${name})
    target_precompile_headers(${name} REUSE_FROM vpfs_computing_headers)
  else()
    vpfs_use_headers(${name} ${ARG_ASIO} ${ARG_TEST})
  endif()
endfunction()

function(vpfs_computes name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Debug>:-O1>)
endfunction()

# vpfs_program(NAME SOURCES ... LINK ... [INSTALL PACKAGE] [ASIO]): a program in <build>/bin. The
# target `programs` builds all of them, without tests. INSTALL is for programs that users need, and
# names the package that has them.
add_custom_target(programs)
function(vpfs_program name)
  cmake_parse_arguments(ARG "ASIO" "INSTALL" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE vpfs_command_line ${ARG_LINK})
  vpfs_use_headers(${name} ${ARG_ASIO} FALSE)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  add_dependencies(programs ${name})
  if(ARG_INSTALL)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${ARG_INSTALL})
    vpfs_program_pages(${name} ${ARG_INSTALL})
  endif()
endfunction()

# Makes <build>/man/NAME.N of docs/man/NAME.N.in, and <build>/completions/NAME, _NAME and NAME.fish
# for bash, zsh and fish, with what the program says of its options.
function(vpfs_program_pages name package)
  file(GLOB source ${PROJECT_SOURCE_DIR}/docs/man/${name}.[0-9].in)
  get_filename_component(page ${source} NAME_WLE)
  string(REGEX REPLACE ".*\\." "" section ${page})
  set(page ${PROJECT_BINARY_DIR}/man/${page})
  set(bash ${PROJECT_BINARY_DIR}/completions/${name})
  set(zsh ${PROJECT_BINARY_DIR}/completions/_${name})
  set(fish ${PROJECT_BINARY_DIR}/completions/${name}.fish)
  set(description ${CMAKE_CURRENT_BINARY_DIR}/${name}.options)
  set(script ${PROJECT_SOURCE_DIR}/cmake/describe_program.py)
  add_custom_command(
    OUTPUT ${page} ${bash} ${zsh} ${fish}
    COMMAND $<TARGET_FILE:${name}> --describe-options > ${description}
    COMMAND ${Python3_EXECUTABLE} -B ${script} ${description} ${source} ${page} ${bash} ${zsh}
            ${fish}
    DEPENDS ${name} ${source} ${script} ${PROJECT_SOURCE_DIR}/cmake/describe_shells.py
    BYPRODUCTS ${description})
  add_custom_target(${name}_pages ALL DEPENDS ${page} ${bash} ${zsh} ${fish})
  add_dependencies(programs ${name}_pages)
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section}
          COMPONENT ${package})
  install(FILES ${bash} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
          COMPONENT ${package})
  install(FILES ${zsh} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
          COMPONENT ${package})
  install(FILES ${fish} DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
          COMPONENT ${package})
endfunction()
