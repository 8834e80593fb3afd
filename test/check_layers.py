#!/usr/bin/env python3
"""Fails when a file includes or imports something its folder may not depend on.

Run from the repository root. The tables below are the architecture; change them only with
docs/decisions/. A folder also has a largest number of files.
"""
import ast
import collections
import os
import pathlib
import re
import sys

# Room -> rooms that it may include (itself is always allowed). The room of a file has the longest name. What is
# allowed includes the rooms below it, except for a room below: "schedulers/policies" names "schedulers" alone.
MAY_INCLUDE = {
    "base": [],
    "base/log": ["base"],
    "schedulers": ["base"],
    "schedulers/conformance": ["base", "schedulers", "schedulers/policies"],
    "schedulers/policies": ["base", "schedulers"],
    "protocols": ["base"],
    "stage/rules": ["base", "schedulers"],
    "stage/config": ["base", "schedulers", "stage/rules"],
    "stage/book": ["base", "schedulers", "stage/config", "stage/rules"],
    "stage/recorder": ["base", "schedulers", "stage/rules"],
    "stage": ["base", "schedulers", "stage/config", "stage/recorder", "stage/rules"],
    "stage/history": ["base", "schedulers", "stage", "stage/config", "stage/rules"],
    "net": ["base"],
    "client": ["base", "net", "protocols"],
    "client/orangefs/calls": ["base", "net", "protocols"],
    "client/orangefs": ["base", "net", "protocols", "client/orangefs/calls"],
    "control/allocation": ["base", "schedulers"],
    "control/insight": ["base", "schedulers", "stage", "control/allocation"],
    "control/wire": ["base", "net"],
    "control/store": ["base"],
    "control/etcd": ["base", "net", "control/store"],
    "control/election": ["base", "control/store"],
    "control/members": ["base"],
    "control/words": ["base", "control/wire"],
    "control/web": ["base", "control/wire", "control/words"],
    "control/metrics": ["base", "net", "control/web", "control/wire"],
    "control/gate": ["base", "schedulers", "stage"],
    "control/admin": ["base", "net", "schedulers", "stage", "control/gate", "control/insight", "control/store",
                      "control/wire"],
    "control/host": ["base", "net", "schedulers", "stage", "control/admin", "control/gate", "control/insight",
                     "control/metrics", "control/store", "control/wire"],
    "control/handover": ["base", "net", "control/host"],
    "control/plugins": ["base", "schedulers", "stage/config"],
    "control/coordinator/config": ["base", "net", "schedulers", "control/allocation", "control/metrics", "control/wire"],
    "control/coordinator/links": ["base", "net", "control/allocation", "control/coordinator/config", "control/wire"],
    "control/site": ["base", "net", "schedulers", "stage", "control/admin", "control/allocation",
                     "control/coordinator/config", "control/coordinator/links", "control/metrics", "control/store",
                     "control/wire"],
    "control/coordinator/office": ["base", "net", "control/coordinator/config", "control/election", "control/members",
                                   "control/metrics", "control/store", "control/wire"],
    "control/coordinator": ["base", "net", "schedulers", "stage", "control/admin", "control/allocation",
                            "control/coordinator/config", "control/coordinator/links", "control/coordinator/office",
                            "control/election", "control/etcd", "control/members", "control/metrics", "control/site",
                            "control/store", "control/wire"],
    "proxy/config": ["base", "net", "protocols", "schedulers", "stage", "control/handover", "control/host",
                     "control/metrics"],
    "proxy/pump": ["base", "net", "protocols"],
    "proxy": ["base", "net", "protocols", "schedulers", "stage", "control/admin", "control/gate", "control/handover",
              "control/host", "control/metrics", "control/plugins", "control/store", "control/wire", "proxy/config",
              "proxy/pump"],
    "dataserver": ["base", "net", "dataserver/orangefs"],
    "dataserver/store": ["base", "net"],
    "dataserver/orangefs": ["base", "net", "protocols", "dataserver/store"],
    "dataserver/beegfs": ["base", "net", "protocols", "dataserver/store"],
    "tools/trace": ["base"],
    "tools/adaptbf_trace": ["base", "schedulers", "tools/trace"],
    "tools/allocation_trace": ["base", "control/allocation", "tools/trace"],
    "tools/check_policy": ["base", "control/plugins", "schedulers"],
    "tools/decode": ["base", "protocols"],
    "tools/output": ["base", "net"],
    "tools/load": ["base", "net", "client", "protocols", "tools/output"],
    "fuse/layout": ["base"],
    "fuse": ["base", "net", "client", "protocols", "schedulers", "stage", "control/admin", "control/gate",
             "control/host", "control/metrics", "control/store", "control/wire", "fuse/layout"],
    "fuse/orangefs": ["base", "net", "client", "protocols", "schedulers", "stage", "control/wire", "fuse",
                      "fuse/layout"],
    "fuse/posix/files": ["base", "net", "stage", "fuse"],
    "fuse/posix": ["base", "net", "schedulers", "stage", "control/admin", "control/gate", "control/handover", "control/host",
                   "control/metrics", "control/wire", "fuse", "fuse/posix/files"],
    "fuse/mount": ["base", "net", "client", "control/admin", "control/handover", "control/host", "control/plugins", "stage", "fuse", "fuse/orangefs", "fuse/posix"],
    "tools/wishes": ["base", "schedulers"],
    "tools/spank": ["base", "tools/wishes"],
    "tools/selftest": ["base", "client", "tools/load", "tools/sim"],
    "tools/vpfsctl/site": ["base", "net", "control/wire", "control/words", "tools/wishes"],
    "tools/vpfsctl/top": ["base", "net", "control/wire", "control/words", "tools/vpfsctl/site"],
    "tools/recording": ["base", "stage/recorder"],
    "tools/plan": ["base", "control/wire", "fuse/posix", "proxy/config", "stage/book", "stage/config", "stage/rules"],
    "tools/vpfsctl": ["base", "net", "control/admin", "control/wire", "control/words", "stage/recorder", "tools/plan", "tools/recording",
                      "tools/load", "tools/output", "tools/selftest", "tools/sim", "tools/wishes", "tools/vpfsctl/site", "tools/vpfsctl/top"],
    "tools/sim": ["base", "control/admin", "control/plugins", "control/words", "proxy/config", "sim", "stage/config", "tools/output", "tools/recording"],
    "sim/engine": ["base"],
    "sim/device": ["base", "schedulers"],
    "sim/cluster": ["base", "sim/engine"],
    "sim/proxies": ["base", "schedulers", "stage", "control/allocation", "sim/engine"],
    "bench": None,  # None: anything
    "test": None,
}
# Folder of Python -> folders whose Python it may import. script/run_bench.py loads benchmarks by their names.
MAY_IMPORT = {"lab": ["lab"], "bench": ["bench", "lab"], "script": ["script", "lab"]}
PYTHON_ROOTS = [".", "script"]  # where programs look for modules
MOST_FILES = 45  # in one folder, without those below it
PURE = ["base", "schedulers", "protocols", "stage", "control/allocation", "control/election", "control/insight",
        "control/members", "sim"]  # no I/O, no clock
QUOTED = re.compile(r'\s*#\s*include\s*"([^"]+)"')
IO_HEADERS = re.compile(r"^(asio|liburing|fuse|sys/socket|netinet|unistd|thread|mutex|google/)")
CLOCK_READ = re.compile(r"\b(steady|system|high_resolution)_clock::now\(|\bclock_gettime\(|\bsleep_for\(")
CLOCK_OWNERS = {"base/system_clock.cc"}
# They open what an administrator names: configurations and logs.
FILE_OWNERS = {"base/config_file.cc", "base/log/log_file.cc", "base/named_file.cc"}
# The option library is slow to compile: programs declare what they take with base/command_line.h.
OPTION_LIBRARY_OWNERS = {"base/command_line.cc"}


def may_include(layer: str, other: str) -> bool:
    """Whether a file of `layer` may include one of `other`."""
    return other == layer or any(
        other == allowed or (other.startswith(allowed + "/") and not layer.startswith(allowed + "/"))
        for allowed in MAY_INCLUDE[layer])


def layer_of(path: str):
    return max((k for k in MAY_INCLUDE if path == k or path.startswith(k + "/")), key=len, default=None)


def sources():
    """Those of the folders above. What else is here (builds, files of running tests) may vanish meanwhile."""
    tops = {folder.partition("/")[0] for folder in MAY_INCLUDE}
    return sorted(file for top in tops for ending in ("*.h", "*.cc") for file in pathlib.Path(top).rglob(ending))


def imported(file: pathlib.Path) -> list[tuple[int, str]]:
    """The modules that a file names in its imports, wherever they are in it, each with its line."""
    found = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append((node.lineno, node.module))
        elif isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
    return found


def folder_of(module: str) -> str | None:
    """The top folder of a module of the project; None for others."""
    first = module.split(".")[0]
    for root in map(pathlib.Path, PYTHON_ROOTS):
        if (root / first).is_dir() or (root / f"{first}.py").is_file():
            return (root / first).parts[0]
    return None


def check_python() -> list[str]:
    problems = []
    for folder, allowed in MAY_IMPORT.items():
        for file in sorted(pathlib.Path(folder).rglob("*.py")):
            problems += [f"{file}:{line}: {folder} must not import {other}" for line, module in imported(file)
                         if (other := folder_of(module)) is not None and other not in allowed]
    return problems


def check_sizes() -> list[str]:
    """No folder has more files than one can look through."""
    problems = []
    for top in sorted({*MAY_IMPORT, *(folder.partition("/")[0] for folder in MAY_INCLUDE)}):
        for place, folders, files in os.walk(top):
            if len(files) > MOST_FILES:
                problems.append(f"{place}: {len(files)} files; at most {MOST_FILES} are in one folder")
            folders[:] = set(folders) - {"__pycache__", "data"}
    return problems


def counted() -> list[str]:
    """How many includes go from each room to each other one."""
    counts = collections.Counter(
        (layer, other)
        for file in sources()
        if (layer := layer_of(file.as_posix())) is not None and MAY_INCLUDE[layer] is not None
        for line in file.read_text().splitlines()
        if (quoted := QUOTED.match(line)) and (other := layer_of(quoted[1])) not in (None, layer))
    return [f"{layer:28} {other:28} {count:4}" for (layer, other), count in sorted(counts.items())]


def main() -> int:
    if "--count" in sys.argv[1:]:
        print("\n".join(counted()))
        return 0
    problems = check_python() + check_sizes()
    for file in sources():
        name, layer = file.as_posix(), layer_of(file.as_posix())
        if layer is None:
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            where = f"{name}:{number}"
            if re.match(r"\s*#\s*include\s*<CLI/", line) and name not in OPTION_LIBRARY_OWNERS:
                problems.append(f"{where}: declare options with base/command_line.h instead of the option library")
            if MAY_INCLUDE[layer] is None:
                continue
            if quoted := QUOTED.match(line):
                target = layer_of(quoted[1])
                if target is None:
                    problems.append(f"{where}: include project headers from the repository root: {quoted[1]}")
                elif not may_include(layer, target):
                    problems.append(f"{where}: {layer} must not depend on {target}")
            elif (angled := re.match(r"\s*#\s*include\s*<([^>]+)>", line)) and layer in PURE:
                if IO_HEADERS.match(angled[1]) and not (name in FILE_OWNERS and angled[1] == "unistd.h"):
                    problems.append(f"{where}: {layer} does no I/O and starts no thread: <{angled[1]}>")
            elif CLOCK_READ.search(line) and name not in CLOCK_OWNERS:
                problems.append(f"{where}: take the time as a parameter instead of reading a clock")
    print("\n".join(problems) or "layers: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
