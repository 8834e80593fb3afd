#!/usr/bin/env python3
"""Fails when the spack recipe, the Ansible role or the container files do not agree with the packages.

Run from the repository root. packaging/trial/ansible.sh tries the role; nothing here installs or builds anything.
"""
from __future__ import annotations

import ast
import pathlib
import re
import sys

import yaml

PACKAGING = pathlib.Path("packaging")
UNITS = PACKAGING / "files/systemd/system"
RECIPE = PACKAGING / "spack/spack_repo/vpfs/packages/vpfs/package.py"
ANSIBLE = PACKAGING / "ansible"
ROLE = ANSIBLE / "roles/vpfs"
CONTAINERS = sorted((PACKAGING / "container").glob("Containerfile.*"))
PROGRAMS = {page.name.split(".")[0] for page in pathlib.Path("docs/man").glob("*.in")}
CONTROL = (PACKAGING / "debian/control").read_text()
PACKAGES = set(re.findall(r"(?m)^Package: (\S+)$", CONTROL))
# What packages are built with, and its name in spack; None: spack has it otherwise, or it is for packages alone.
IN_SPACK = {
    "clang-19": "cxx", "cmake": "cmake", "debhelper-compat": None, "dh-sequence-installsysusers": None,
    "libasio-dev": "asio", "libcli11-dev": "cli11", "libcpp-httplib-dev": "cpp-httplib", "libfmt-dev": "fmt",
    "libfuse3-dev": "libfuse", "libjs-dygraphs": None, "liblmdb-dev": "lmdb", "libncurses-dev": "ncurses",
    "libpcap-dev": "libpcap", "libprotobuf-dev": "protobuf", "libslurm-dev": None, "libspdlog-dev": "spdlog",
    "libssl-dev": "openssl",
    "liburing-dev": "liburing", "libyaml-cpp-dev": "yaml-cpp", "lld-19": None, "ninja-build": None,
    "nlohmann-json3-dev": "nlohmann-json", "pkg-config": "pkgconfig", "prometheus-cpp-dev": "prometheus-cpp",
    "protobuf-compiler": "protobuf", "python3": "python", "zlib1g-dev": "zlib-api"}
ONLY_IN_SPACK = {"c", "googletest"}  # CMake looks for a C compiler; tests


def calls(tree: ast.AST, name: str) -> list[list]:
    """The constant arguments of each call of a function or method of this name."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if called == name:
                found.append([each.value for each in node.args if isinstance(each, ast.Constant)])
    return found


def check_recipe() -> list[str]:
    tree = ast.parse(RECIPE.read_text())
    cmake = "".join(file.read_text() for file in pathlib.Path("cmake").glob("*.cmake"))
    options = set(re.findall(r"\boption\((VPFS_\w+)", cmake))
    variants = {call[0] for call in calls(tree, "variant")}
    used = calls(tree, "define_from_variant")
    problems = [f"{RECIPE}: {option} is not an option of CMake" for option, _ in used if option not in options]
    problems += [f"{RECIPE}: the variant {name} is declared or used only" for name in variants ^ {n for _, n in used}]
    web = pathlib.Path("control/web/CMakeLists.txt").read_text()
    problems += [f"{RECIPE}: {call[0]} is not a variable of the build" for call in calls(tree, "define")
                 if f"({call[0]} " not in web and call[0] not in options]
    programs = {each.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "PROGRAMS"
                for each in node.value.elts}
    problems += [f"{RECIPE}: {name} is in one list of programs only" for name in sorted(programs ^ PROGRAMS)]
    specs = {re.match(r"[\w-]+", call[0])[0] for call in calls(tree, "depends_on")}
    needed = re.search(r"(?ms)^Build-Depends:(.*?)^\S", CONTROL)[1]
    for package in re.findall(r"(?:^|,)\s*([\w.+-]+)", needed):
        if package not in IN_SPACK:
            problems.append(f"{RECIPE}: {package} is new in Build-Depends, test/check_ways.py has no name in spack for it")
        elif IN_SPACK[package] and IN_SPACK[package] not in specs:
            problems.append(f"{RECIPE}: packages are built with {package}, and nothing depends_on {IN_SPACK[package]}")
    problems += [f"{RECIPE}: packages are not built with {name}"
                 for name in sorted(specs - set(IN_SPACK.values()) - ONLY_IN_SPACK)]
    wanted = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)", pathlib.Path("CMakeLists.txt").read_text())[1]
    if [f"cmake@{wanted}:"] not in calls(tree, "depends_on"):
        problems.append(f"{RECIPE}: CMake is {wanted} or newer")
    depth = len(RECIPE.parts) - 1
    if f".parents[{depth}]" not in RECIPE.read_text():
        problems.append(f"{RECIPE}: the clone is parents[{depth}] of the recipe")
    return problems


def tasks_of(content: object) -> list[dict]:
    """All tasks of a file, with those of blocks."""
    found = []
    for each in content if isinstance(content, list) else []:
        found += [each, *tasks_of(each.get("block")), *tasks_of(each.get("rescue"))]
    return found


def words(value: object) -> list[str]:
    return [value] if isinstance(value, str) else list(value or [])


def check_tasks(file: pathlib.Path, tasks: list[dict], handlers: set[str]) -> list[str]:
    problems = []
    for task in tasks:
        where = f"{file}, {task.get('name')}"
        problems += [f"{where}: there is no handler {name!r}" for name in words(task.get("notify")) if name not in handlers]
        included = words(task.get("ansible.builtin.include_tasks"))
        for name in re.findall(r"[\w-]+\.yml", " ".join(included)):
            if not (ROLE / "tasks" / name).exists():
                problems.append(f"{where}: there is no {name}")
        if template := task.get("ansible.builtin.template"):
            problems += check_template(where, template)
        if service := task.get("ansible.builtin.systemd_service"):
            problems += check_service(where, service)
    return problems


def unit_text(name: str) -> str | None:
    unit = UNITS / (re.sub(r"@.*", "@", name) + ".service")
    return unit.read_text() if unit.exists() else None


def check_service(where: str, service: dict) -> list[str]:
    text = unit_text(service["name"])
    if text is None:
        return [f"{where}: there is no unit for {service['name']}"]
    reloads = "ExecReload=" in text
    if service["state"] == "reloaded" and not reloads:
        return [f"{where}: {service['name']} cannot reload"]
    if service["state"] == "restarted" and reloads:
        return [f"{where}: {service['name']} can reload"]
    return []


def check_template(where: str, template: dict) -> list[str]:
    problems = []
    if not (ROLE / "templates" / template["src"]).exists():
        problems.append(f"{where}: there is no template {template['src']}")
    if not template["dest"].startswith("/etc/vpfs/"):
        return problems
    path = re.sub(r"\{\{.*?\}\}", "%i", template["dest"])
    units = [unit for unit in UNITS.iterdir() if f"AssertPathExists={path}\n" in unit.read_text()]
    if len(units) != 1:
        return [*problems, f"{where}: no unit runs with {path}"]
    program = re.search(r"ExecStart=@BINDIR@/(\S+)", units[0].read_text())[1]
    if template.get("validate") != f"{program} --config %s --check-config":
        problems.append(f"{where}: {program} does not check it")
    if f"Group={template['group']}\n" not in units[0].read_text():
        problems.append(f"{where}: {units[0].name} does not run as the group {template['group']}")
    return problems


def check_role() -> list[str]:
    problems, parsed = [], {}
    for file in [*ANSIBLE.rglob("*.yml"), PACKAGING / "trial/ansible.yml"]:
        try:
            parsed[file] = yaml.safe_load(file.read_text())
        except yaml.YAMLError as error:
            problems.append(f"{file}: {error}")
    if problems:
        return problems
    handlers = {each["name"] for each in parsed[ROLE / "handlers/main.yml"]}
    for file, content in parsed.items():
        if file.parent.name in ("tasks", "handlers"):
            problems += check_tasks(file, tasks_of(content), handlers)
    notified = {name for file, content in parsed.items() if file.parent.name == "tasks"
                for task in tasks_of(content) for name in words(task.get("notify"))}
    problems += [f"{ROLE}: nothing notifies {name!r}" for name in sorted(handlers - notified)]
    for file in parsed:
        named = re.findall(r"vpfs_packages: \[(.*)\]", file.read_text())
        problems += [f"{file}: there is no package {name}" for text in named for name in text.split(", ")
                     if name not in PACKAGES]
    known = set(parsed[ROLE / "defaults/main.yml"])
    text = (ANSIBLE / "inventory.example.yml").read_text() + (PACKAGING / "trial/ansible.yml").read_text()
    problems += [f"{ANSIBLE}: the role has no variable {name}"
                 for name in sorted(set(re.findall(r"(?m)^ +(vpfs_\w+):", text)) - known - {"vpfs_storage", "vpfs_coordinators"})]
    return problems


def check_container(file: pathlib.Path) -> list[str]:
    text = file.read_text().replace("\\\n", " ")
    problems = []
    built = set(re.search(r"--target ([\w -]+?) +&&", text)[1].split())
    collected = re.search(r"container/collect \S+ \S+ (.*)", text)[1].split()
    if built != set(collected) or not built <= PROGRAMS:
        problems.append(f"{file}: builds {sorted(built)} and collects {sorted(collected)}; programs are {sorted(PROGRAMS)}")
    run = re.findall(r'(?m)^(?:ENTRYPOINT \[| +CMD \["sh", "-c", )"([\w-]+)', text)
    problems += [f"{file}: runs {name}, and does not build it" for name in run if name not in built]
    for source in re.findall(r"(?m)^COPY (?!--)(\S+) ", text):
        if not pathlib.Path(source).exists():
            problems.append(f"{file}: there is no {source}")
    directories = set(re.findall(r"(?m)^d (\S+)", (PACKAGING / "files/tmpfiles.d/vpfs.conf").read_text()))
    for path in re.findall(r"(?m)^VOLUME (\S+)|-o vpfs \S+ \S+ \S+ \S+ (/(?:run|var)/\S+)", text):
        if not set(path) & directories:
            problems.append(f"{file}: {path} is not a directory of packages")
    if not re.search(r"(?m)^USER [1-9]", text):
        problems.append(f"{file}: runs as root")
    return problems


def first_stage(file: pathlib.Path) -> str:
    """What both build with: one layer serves both."""
    return re.search(r"(?ms)^ARG DEBIAN.*?^FROM tools AS build$", file.read_text())[0]


def main() -> int:
    problems = check_recipe() + check_role()
    for file in CONTAINERS:
        problems += check_container(file)
    if len({first_stage(file) for file in CONTAINERS}) != 1:
        problems.append("packaging/container: the files have different first stages")
    print("\n".join(problems) or "other ways in: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
