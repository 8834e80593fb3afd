# `cmake --install` uses the GNU directories below the prefix, and DESTDIR in front of all paths.
include(GNUInstallDirs)

option(VPFS_STRIP "Strip the programs that are installed" ON)
if(VPFS_STRIP)
  install(CODE "set(CMAKE_INSTALL_DO_STRIP TRUE)")
endif()

install(DIRECTORY conf/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples FILES_MATCHING PATTERN "*.yaml"
        PATTERN "*.json")
install(PROGRAMS conf/slurm/prolog conf/slurm/epilog DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples/slurm)
# The pages keep their places beside README.md, so that links among them lead somewhere.
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN "*.md")
install(FILES README.md CHANGELOG.md CONTRIBUTING.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
