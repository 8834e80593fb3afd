# `cmake --install` uses the GNU directories below the prefix, and DESTDIR in front of all paths.
# Each file belongs to a component, which has the name of the package that it goes into
# (packaging/).
include(GNUInstallDirs)

option(VPFS_STRIP "Strip the programs that are installed" ON)
if(VPFS_STRIP)
  install(CODE "set(CMAKE_INSTALL_DO_STRIP TRUE)" ALL_COMPONENTS)
endif()

install(DIRECTORY conf/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT vpfs-doc
        FILES_MATCHING PATTERN "*.yaml" PATTERN "*.json")
install(PROGRAMS conf/slurm/prolog conf/slurm/epilog
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples/slurm
        COMPONENT vpfs-doc)
install(PROGRAMS conf/flux/job DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples/flux COMPONENT vpfs-doc)
install(FILES conf/pbs/vpfs_hook.py DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples/pbs
        COMPONENT vpfs-doc)
# The pages keep their places beside README.md, so that links among them lead somewhere.
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT vpfs-doc
        FILES_MATCHING PATTERN "*.md" PATTERN man EXCLUDE)
install(FILES README.md CHANGELOG.md CONTRIBUTING.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR}
        COMPONENT vpfs-doc)

install(DIRECTORY examples/scheduler DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
        COMPONENT vpfs-dev)

# vpfs_install_script(COMPONENT NAME): script/NAME as the command vpfs-NAME of administrators, with
# its manual page.
function(vpfs_install_script component name)
  install(PROGRAMS script/${name} DESTINATION ${CMAKE_INSTALL_SBINDIR} RENAME vpfs-${name}
          COMPONENT ${component})
  install(FILES docs/man/vpfs-${name}.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8
          COMPONENT ${component})
endfunction()
vpfs_install_script(vpfs-tools certificates)
vpfs_install_script(vpfs-proxy insert-beegfs)
vpfs_install_script(vpfs-proxy insert-orangefs)
install(FILES script/insert_proxy.py DESTINATION lib/vpfs COMPONENT vpfs-proxy)

# vpfs_install_unit(COMPONENT DIRECTORY NAME): packaging/files/DIRECTORY/NAME, for systemd. It looks
# there below /usr and /usr/local. `@BINDIR@` is the directory of the programs, which is known when
# they are installed.
function(vpfs_install_unit component directory name)
  install(CODE "
    file(READ \"${PROJECT_SOURCE_DIR}/packaging/files/${directory}/${name}\" text)
    string(REPLACE @BINDIR@ \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\" text \"\${text}\")
    set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/${directory}\")
    file(WRITE \"\${folder}/${name}\" \"\${text}\")
    file(CHMOD \"\${folder}/${name}\" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)"
          COMPONENT ${component})
endfunction()
vpfs_install_unit(vpfs-common sysusers.d vpfs.conf)
vpfs_install_unit(vpfs-common tmpfiles.d vpfs.conf)
vpfs_install_unit(vpfs-proxy systemd/system vpfs-proxy@.service)
vpfs_install_unit(vpfs-coordinator systemd/system vpfs-coordinator.service)
vpfs_install_unit(vpfs-mount systemd/system vpfs-mount@.service)
