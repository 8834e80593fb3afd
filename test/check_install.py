#!/usr/bin/env python3
"""Fails when `cmake --install` of a build does not install what it should, where it should.

Run from the repository root: check_install.py BUILD BINDIR DOCDIR MANDIR DATADIR LIBDIR STRIP PLUGIN, where
STRIP is what the build has for VPFS_STRIP, and PLUGIN the path of Slurm's plugin below the prefix, or "none". It
installs below a temporary directory and writes nothing elsewhere.
"""
from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tempfile

PREFIX = pathlib.Path("/usr")
BASE_HEADERS = ("check.h", "clock.h", "config/errors.h", "config_reader.h", "io_kind.h", "result.h",
                "saved/saved_state.h", "units.h", "wide.h")


def expected(build: pathlib.Path, bin_dir: pathlib.Path, doc_dir: pathlib.Path, man_dir: pathlib.Path,
             data_dir: pathlib.Path, lib_dir: pathlib.Path) -> dict[pathlib.Path, pathlib.Path | None]:
    """Each path to be installed and its source; None for a program. A program has a manual page."""
    files: dict[pathlib.Path, pathlib.Path | None] = {}
    files |= development_files(build, doc_dir, lib_dir)
    for source in pathlib.Path("docs/man").glob("*.in"):
        page = source.with_suffix("")  # without .in
        files[bin_dir / page.stem] = None
        files[man_dir / f"man{page.suffix[1:]}" / page.name] = build / "man" / page.name
        for place, name in (("bash-completion/completions", page.stem), ("zsh/site-functions", f"_{page.stem}"),
                            ("fish/vendor_completions.d", f"{page.stem}.fish")):
            files[data_dir / place / name] = build / "completions" / name
    files[PREFIX / "sbin" / "mount.vpfs"] = None  # a link, for mount(8)
    for page in pathlib.Path("docs/man").glob("*.8"):
        files[man_dir / "man8" / page.name] = page
    for name in ("certificates", "insert-beegfs", "insert-orangefs"):
        files[PREFIX / "sbin" / f"vpfs-{name}"] = pathlib.Path("script") / name
    files[PREFIX / "lib/vpfs/insert_proxy.py"] = pathlib.Path("script/insert_proxy.py")
    units = pathlib.Path("packaging/files")
    for file in (*units.glob("systemd/system/*"), *units.glob("sysusers.d/*"), *units.glob("tmpfiles.d/*")):
        files[PREFIX / "lib" / file.relative_to(units)] = file
    for file in (*pathlib.Path("conf").rglob("*.yaml"), *pathlib.Path("conf").rglob("*.json")):
        files[doc_dir / "examples" / file.relative_to("conf")] = file
    for name in ("prolog", "epilog"):
        files[doc_dir / "examples/slurm" / name] = pathlib.Path("conf/slurm") / name
    for name in ("flux/job", "pbs/vpfs_hook.py"):
        files[doc_dir / "examples" / name] = pathlib.Path("conf") / name
    for file in pathlib.Path("docs").rglob("*.md"):
        files[doc_dir / file] = file
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"):
        files[doc_dir / name] = pathlib.Path(name)
    return files


def development_files(build: pathlib.Path, doc_dir: pathlib.Path,
                      lib_dir: pathlib.Path) -> dict[pathlib.Path, pathlib.Path | None]:
    """What policies are made of outside of vpfs. test/examples/plugin_test.py uses it."""
    files: dict[pathlib.Path, pathlib.Path | None] = {}
    for name in BASE_HEADERS:
        files[PREFIX / "include/vpfs/base" / name] = pathlib.Path("base") / name
    for header in (*pathlib.Path("schedulers").glob("*.h"), pathlib.Path("schedulers/conformance/rules.h"),
                   pathlib.Path("schedulers/policies/registry.h")):
        files[PREFIX / "include/vpfs" / header] = header
    exported = next((build / "CMakeFiles/Export").rglob("vpfsTargets.cmake"))
    for file in exported.parent.glob("vpfsTargets*.cmake"):
        files[lib_dir / "cmake/vpfs" / file.name] = file
    for name in ("vpfsConfig.cmake", "vpfsConfigVersion.cmake"):
        files[lib_dir / "cmake/vpfs" / name] = build / name
    files[lib_dir / "pkgconfig/vpfs-schedulers.pc"] = build / "vpfs-schedulers.pc"
    files[lib_dir / "libvpfs-schedulers.a"] = build / "libvpfs-schedulers.a"
    for file in (file for file in pathlib.Path("examples").rglob("*") if file.is_file()):
        files[doc_dir / file] = file
    return files


def installed_text(source: pathlib.Path, bin_dir: pathlib.Path) -> bytes:
    """A file as it is installed: units have the directory of programs, headers include each other below vpfs/."""
    text = source.read_bytes()
    if source.suffix == ".h" and source.parts[0] in ("base", "schedulers"):
        return re.sub(rb'(#include ")(base|schedulers)/', rb"\1vpfs/\2/", text)
    return text.replace(b"@BINDIR@", bytes(bin_dir))


def install(build: pathlib.Path, scratch: pathlib.Path, *words: str) -> pathlib.Path:
    """Installs below the directory that it returns. `words`: more options of `cmake --install`.

    CMake writes the list of what it installed into the build directory, where it would replace the
    list of a real installation. A copy of the install script writes it elsewhere.
    """
    script = (build / "cmake_install.cmake").read_text()
    script, lists = re.subn(rf'file\(WRITE "{re.escape(str(build))}/', f'file(WRITE "{scratch}/', script)
    if lists == 0:
        raise SystemExit("test/check_install.py: cmake_install.cmake does not write a list where one was expected")
    (scratch / "cmake_install.cmake").write_text(script)
    there = scratch / "destdir"
    subprocess.run(["cmake", "--install", str(scratch), "--prefix", str(PREFIX), *words],
                   env=os.environ | {"DESTDIR": str(there)}, stdout=subprocess.DEVNULL, check=True)
    return there


def output(*command: str | pathlib.Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def check_program(installed: pathlib.Path, built: pathlib.Path, strip: bool) -> list[str]:
    problems = []
    if output(installed, "--version") != output(built, "--version"):
        problems.append(f"{installed.name}: --version differs from the built program's")
    if strip and ".symtab" in output("readelf", "--section-headers", "--wide", installed):
        problems.append(f"{installed.name}: is not stripped")
    return problems


def check_plugin(installed: pathlib.Path, strip: bool) -> list[str]:
    """What Slurm looks for, and nothing that the symbols of its programs could meet."""
    symbols = output("nm", "--dynamic", "--defined-only", "--format=just-symbols", installed).split()
    wanted = {"plugin_name", "plugin_type", "plugin_version", "spank_plugin_version", "slurm_spank_init",
              "slurm_spank_init_post_opt"}
    problems = [f"{installed.name}: has no symbol {name}" for name in sorted(wanted - set(symbols))]
    problems += [f"{installed.name}: shows {name}" for name in sorted(set(symbols) - wanted)]
    if strip and ".symtab" in output("readelf", "--section-headers", "--wide", installed):
        problems.append(f"{installed.name}: is not stripped")
    return problems


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    directories = [PREFIX / argument for argument in sys.argv[2:7]]
    strip = sys.argv[7].upper() in ("ON", "TRUE", "YES", "1")
    wanted = expected(build, *directories)
    plugin = PREFIX / sys.argv[8]
    if sys.argv[8] != "none":
        wanted[plugin] = None
    problems = []
    with tempfile.TemporaryDirectory(prefix="vpfs-install-") as scratch:
        there = install(build, pathlib.Path(scratch))
        found = {pathlib.Path("/") / file.relative_to(there) for file in there.rglob("*") if file.is_file()}
        problems += [f"{path}: is not installed" for path in sorted(wanted.keys() - found)]
        problems += [f"{path}: is installed, but not expected" for path in sorted(found - wanted.keys())]
        for path in sorted(wanted.keys() & found):
            file, source = there / path.relative_to("/"), wanted[path]
            if path == plugin:
                problems += check_plugin(file, strip)
            elif source is None:
                problems += check_program(file, build / "bin" / file.resolve().name, strip)
            elif file.read_bytes() != installed_text(source, directories[0]):
                problems.append(f"{path}: differs from {source}")
    print("\n".join(problems) or "install: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
