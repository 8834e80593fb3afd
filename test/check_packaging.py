#!/usr/bin/env python3
"""Fails when packages would not have what is installed, or a unit is not what a service manager wants.

Run from the repository root: check_packaging.py BUILD. The packages themselves are made by script/package.
"""
from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PACKAGING = pathlib.Path("packaging")
UNITS = PACKAGING / "files/systemd/system"
# What `systemd-analyze security` may say at most. docs/decisions/0066-packages.md has the mount's reason.
MOST_EXPOSED = {"vpfs-proxy@.service": 3.0, "vpfs-coordinator.service": 3.0, "vpfs-mount@.service": 5.7}
# Each of these gives a unit a mount namespace, where what it mounts is not seen on the host: systemd.exec(5).
OWN_FILES = set("""
BindPaths BindReadOnlyPaths DynamicUser ExecPaths ExtensionDirectories ExtensionImages IPCNamespacePath
InaccessiblePaths LogNamespace MountAPIVFS MountFlags MountImages NetworkNamespacePath NoExecPaths PrivateDevices
PrivateIPC PrivateMounts PrivateNetwork PrivatePIDs PrivateTmp PrivateUsers ProcSubset ProtectControlGroups
ProtectHome ProtectKernelLogs ProtectKernelModules ProtectKernelTunables ProtectProc ProtectSystem ReadOnlyPaths
ReadWritePaths RootDirectory RootImage TemporaryFileSystem
""".split())


def components() -> set[str]:
    """Those that `cmake --install` knows."""
    found = set()
    # A build that runs meanwhile makes and removes folders, so `build` is not entered.
    for top in pathlib.Path().iterdir():
        for file in top.rglob("CMakeLists.txt") if top.name != "build" else ():
            found |= set(re.findall(r"\b(?:INSTALL|COMPONENT) (vpfs-[a-z]+)", file.read_text()))
    install = pathlib.Path("cmake/VpfsInstall.cmake").read_text()
    return found | set(re.findall(r"\b(?:COMPONENT|vpfs_install_\w+\() ?(vpfs-[a-z]+)", install))


def check_lists() -> list[str]:
    wanted = components()
    control = set(re.findall(r"(?m)^Package: (\S+)$", (PACKAGING / "debian/control").read_text()))
    spec = (PACKAGING / "rpm/vpfs.spec.in").read_text()
    lists = {"debian/control": control,
             "rpm/vpfs.spec.in, %package": set(re.findall(r"(?m)^%package -n (\S+)$", spec)),
             "rpm/vpfs.spec.in, %files": set(re.findall(r"(?m)^%files -n (\S+) -f \1\.files$", spec)),
             "rpm/vpfs.spec.in, components": set(re.findall(r"%global components (.*)", spec)[0].split())}
    return [f"packaging/{where}: {name} is in one list only" for where, names in lists.items()
            for name in sorted(names ^ wanted)]


def check_unit(unit: pathlib.Path, build: pathlib.Path) -> list[str]:
    text = unit.read_text()
    problems = [f"{unit}: no {key}" for key in ("Type=notify", "WatchdogSec=", "LimitNOFILE=", "Documentation=man:")
                if key not in text]
    for program in re.findall(r"(?m)^Exec\w+=@BINDIR@/(\S+)", text):
        if not (build / "bin" / program).exists():
            problems.append(f"{unit}: {program} is not a program of the build")
    if "NotifyAccess=all" not in text and "vpfs-proxy" in unit.name:
        problems.append(f"{unit}: a process that takes over could not tell anything")
    if unit.name == "vpfs-mount@.service":
        problems += check_mount(unit)
    return problems


def check_mount(unit: pathlib.Path) -> list[str]:
    """That the mount appears on the host, and that fusermount3 may end it."""
    settings = dict(re.findall(r"(?m)^(\w+)=(.*)$", unit.read_text()))
    problems = [f"{unit}: {name}= keeps the mount from the host" for name in sorted(OWN_FILES & set(settings))]
    if "mnt" not in settings.get("RestrictNamespaces", "mnt").split():
        problems.append(f"{unit}: fusermount3 needs a mount namespace for auto_unmount")
    return problems


def check_with_systemd(build: pathlib.Path, scratch: pathlib.Path) -> list[str]:
    """What systemd-analyze says of the units, with the programs of the build."""
    problems = []
    for unit in sorted(UNITS.iterdir()):
        (scratch / unit.name).write_text(unit.read_text().replace("@BINDIR@", str(build / "bin")))
    for unit in sorted(scratch.iterdir()):
        said = analyze("verify", "--man=no", unit)
        problems += [f"{unit.name}: {line}" for line in said.splitlines() if "vpfs" in line]
        exposed = re.search(r"Overall exposure level for \S+: ([0-9.]+)", analyze("security", "--offline=true", unit))
        most = MOST_EXPOSED.get(unit.name, 3.0)
        if exposed is None or float(exposed[1]) > most:
            problems.append(f"{unit.name}: {exposed[0] if exposed else 'no exposure level'}, at most {most}")
    return problems


def analyze(*words: str | pathlib.Path) -> str:
    done = subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    problems = check_lists()
    for unit in sorted(UNITS.iterdir()):
        problems += check_unit(unit, build)
    if shutil.which("systemd-analyze"):
        with tempfile.TemporaryDirectory(prefix="vpfs-units-") as scratch:
            problems += check_with_systemd(build, pathlib.Path(scratch))
    else:
        print("systemd-analyze is not installed: units were only read")
    print("\n".join(problems) or "packaging: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
