#!/usr/bin/env python3
"""Policies that are built outside of vpfs: the example is built against what `cmake --install` installs, with CMake
and with pkg-config, keeps the rules, and shares a server in a proxy. Plugins that are wrong are refused.

    plugin_test.py BUILD COMPILER
"""
from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "test")]

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from check_install import install  # noqa: E402
from lab.cluster import Cluster, Front  # noqa: E402
from lab.harness import Program, Programs  # noqa: E402
from lab.load import Application, application_of, check_errors, run_load  # noqa: E402

BUILD: list[pathlib.Path] = []
COMPILER: list[str] = []
DEVICE = {"bandwidth": "200 MiB/s", "per_request": "100 us", "parallelism": 2}
MIB = 1 << 20
# What a plugin describes, without the headers of vpfs: `interface`, `count`, `layout`, `build`, `maker`, `policies`.
DESCRIPTION = """
struct { unsigned interface, count; unsigned long layout; const char *build, *maker; const void* policies; }
  description = {%s};
"""
IN_C = {
    "no_entry": "int nothing;",
    "null": "void* vpfs_scheduler_plugin(void) { return 0; }",
    "version": DESCRIPTION % '7, 1, 0, "libstdc++", "x", 0'
               + "void* vpfs_scheduler_plugin(void) { return &description; }",
    "build": DESCRIPTION % '1, 1, 0, "libc++", "x", 0'
             + "void* vpfs_scheduler_plugin(void) { return &description; }",
    "layout": DESCRIPTION % '1, 1, 5, "libstdc++", "x", 0'
              + "void* vpfs_scheduler_plugin(void) { return &description; }",
    "undefined": "extern int not_there(void); int vpfs_scheduler_plugin(void) { return not_there(); }",
    "aborts": "#include <stdlib.h>\n__attribute__((constructor)) static void start(void) { abort(); }",
}


def run(*command: str | pathlib.Path, cwd: pathlib.Path | None = None, **environment: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=os.environ | environment)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


class Site:
    """What is installed, and what was built with it."""

    def __init__(self, work: pathlib.Path) -> None:
        self.work = work
        (work / "scratch").mkdir()
        self.prefix = install(BUILD[0], work / "scratch", "--component", "vpfs-dev") / "usr"
        pc = next(self.prefix.rglob("vpfs-schedulers.pc"))
        self.flags = run("pkg-config", "--cflags", "--libs", "vpfs-schedulers",
                         PKG_CONFIG_PATH=str(pc.parent)).split()
        self.example = work / "clone"
        shutil.copytree(next(self.prefix.rglob("examples/scheduler")), self.example)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            built = [pool.submit(self._build_with_cmake), pool.submit(self._build_by_hand)]
            for each in built:
                each.result()
        self.drr = self.example / "build/drr.so"

    def _build_with_cmake(self) -> None:
        run("cmake", "-S", self.example, "-B", self.example / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", self.example / "build", "--parallel", "2")

    def _build_by_hand(self) -> None:
        """With the compiler of vpfs, which need not be the one that CMake takes."""
        common = [COMPILER[0], "-std=c++23", "-fPIC", "-shared", "-fvisibility=hidden"]
        self.other = self.work / "other.so"
        run(*common, "-o", self.other, self.example / "drr.cc", self.example / "plugin.cc", *self.flags)
        self.bad = self.work / "bad.so"
        run(*common, "-o", self.bad, ROOT / "test/examples/bad_plugins.cc", *self.flags)
        for name, text in IN_C.items():
            (self.work / f"{name}.c").write_text(text)
            run("cc", "-shared", "-fPIC", "-o", self.work / f"{name}.so", self.work / f"{name}.c")


class PluginTest(unittest.TestCase):
    site: Site

    @classmethod
    def setUpClass(cls) -> None:
        os.umask(0o022)
        folder = tempfile.TemporaryDirectory(prefix="vpfs-plugin-")
        cls.addClassCleanup(folder.cleanup)
        cls.site = Site(pathlib.Path(folder.name))

    def check_config(self, plugins: object, policy: str = "drr", program: str = "vpfs-proxy",
                     **more: object) -> subprocess.CompletedProcess[str]:
        file = self.site.work / "config.yaml"
        proxy = {} if program == "vpfs-mount" else {"proxy": {"listen": "127.0.0.1:0", "upstream": "127.0.0.1:3334"}}
        scheduler = {"plugins": plugins, "policy": policy} | more
        file.write_text(json.dumps(proxy | {"scheduler": scheduler}, default=str, indent=1) + "\n")
        words = ["--config", str(file), "--check-config"] if program == "vpfs-proxy" else [
            f"posix:{self.site.work}", str(self.site.work), "-o", f"config={file}", "--check-config"]
        return subprocess.run([BUILD[0] / "bin" / program, *words], capture_output=True, text=True, check=False)

    def refused(self, plugins: object, policy: str = "drr", **more: object) -> str:
        """The only error of a configuration, without its place."""
        done = self.check_config(plugins, policy, **more)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        place, _, text = lines[0].partition(": scheduler.")
        self.assertTrue(place.startswith(str(self.site.work / "config.yaml:")), lines[0])
        return text

    def check_policy(self, *words: str | pathlib.Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([BUILD[0] / "bin/vpfs-check-policy", "--plugin", *words], capture_output=True, text=True,
                              check=False)

    def test_the_tests_of_the_example_pass(self) -> None:
        run("ctest", "--output-on-failure", cwd=self.site.example / "build")

    def test_it_exports_its_entry_alone(self) -> None:
        for plugin in (self.site.drr, self.site.other):
            symbols = run("nm", "--dynamic", "--defined-only", "--demangle", plugin)
            ours = [line for line in symbols.splitlines() if "vpfs" in line and " std::" not in line]
            self.assertEqual([line.split()[-1] for line in ours], ["vpfs_scheduler_plugin"])

    def test_it_goes_in_order_and_keeps_the_rules_however_it_was_built(self) -> None:
        for plugin in (self.site.drr, self.site.other):
            done = self.check_policy(plugin)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn(f"drr of {plugin} (an example of vpfs, version 1)\n", done.stdout)
            self.assertIn("weights 1 : 2 : 4 divide cost 1.00 : 2.0", done.stdout)

    def test_a_proxy_and_a_mount_say_what_they_load(self) -> None:
        for program in ("vpfs-proxy", "vpfs-mount"):
            done = self.check_config(self.site.drr, program=program, drr={"quantum": "128 KiB"})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"plugin {self.site.drr}: drr (an example of vpfs, version 1)", done.stdout)
            self.assertIn("a turn is 128 KiB of cost x weight", done.stdout)

    def test_its_settings_are_checked(self) -> None:
        done = self.check_config(self.site.drr, drr={"quantum": "1 B", "quantun": 1})
        self.assertEqual(done.returncode, 2)
        self.assertIn("scheduler.drr.quantum: ", done.stderr)
        self.assertIn("quantun", done.stderr)

    def test_shares_a_server_in_a_proxy(self) -> None:
        front = Front("drr", "proxy", policy="drr", weights={"a": 2, "b": 1}, depth_requests=4,
                      scheduler={"plugins": [str(self.site.drr)], "drr": {"quantum": "256 KiB"}},
                      control={"socket": str(self.site.work / "proxy.sock")})
        work = self.site.work / "run"
        work.mkdir()
        load = [Application(name, 256 << 10, outstanding=16, read_percent=50, file_size=8 * MIB) for name in "ab"]
        with Programs(BUILD[0] / "bin", work) as programs:
            cluster = Cluster(programs, 1, [front], DEVICE)
            first = cluster.start("drr")[0]
            successors: list[Program] = []

            # A hot restart in the middle: the new process loads the plugin and goes on.
            def take_over(_: str) -> None:
                if not successors:
                    successors.append(programs.start("successor", "vpfs-proxy", "--config", str(work / "drr0.yaml"),
                                                     "--take-over", f"{self.site.work}/proxy.sock.restart"))

            result = run_load(programs, "load", cluster.address("drr"), load, 3.0, 0.5, take_over, verify=True)
            check_errors(result)
            self.assertIn("ready", successors[0].last_lines(50))
            first.wait_until_ended()
            self.assertEqual(first.exit_code(), 0)
            rates = [application_of(result, name)["bytes"] for name in "ab"]
            self.assertGreater(rates[1], 8 * MIB)
            self.assertGreater(rates[0] / rates[1], 1.5)
            self.assertLess(rates[0] / rates[1], 2.6)
            self.assertIn('"deficit"', cluster.status_file("drr").read_text())

    def test_shares_a_server_in_the_simulator(self) -> None:
        front = Front("drr", "proxy", policy="drr", weights={"a": 4, "b": 1}, depth_requests=4,
                      scheduler={"plugins": [str(self.site.drr)], "drr": {"quantum": "256 KiB"}})
        work = self.site.work
        (work / "simulated.yaml").write_text(json.dumps(front.proxy_config(4334, 3334, str(work / "none"))))
        applications = [{"name": name, "processes": 4, "outstanding": 8, "size": "256 KiB"} for name in "ab"]
        scenario = {"configuration": "simulated.yaml", "servers": {"count": 1, "device": DEVICE}, "duration": "5 s",
                    "warm_up": "1 s", "applications": applications}
        (work / "scenario.yaml").write_text(json.dumps(scenario))
        run(BUILD[0] / "bin/vpfs-sim", "--json", work / "simulated.json", work / "scenario.yaml")
        (result,) = json.loads((work / "simulated.json").read_text())
        self.assertEqual(result["policy"], "drr")
        rates = [application["mib_per_s"] for application in result["applications"]]
        self.assertAlmostEqual(rates[0] / rates[1], 4, delta=0.1)

    def test_files_that_are_not_plugins_are_refused(self) -> None:
        text = self.site.work / "text.so"
        text.write_text("not a library\n")
        work = self.site.work
        for plugin, problem in {
            work / "none.so": f"plugins: {work}/none.so: No such file or directory",
            work: f"plugins: {work} is a directory",
            pathlib.Path("/dev/null"): "plugins: /dev/null is not a file",
            pathlib.Path("drr.so"): 'plugins: "drr.so" is not an absolute path',
            text: f"plugins: {text} cannot be loaded: file too short",
            work / "undefined.so": f"plugins: {work}/undefined.so cannot be loaded: undefined symbol: not_there",
            work / "no_entry.so": f"plugins: {work}/no_entry.so is not a plugin of vpfs: it does not export "
                                  "vpfs_scheduler_plugin()",
            work / "null.so": f"plugins: {work}/null.so: its vpfs_scheduler_plugin() returns nothing",
            work / "version.so": f"plugins: {work}/version.so is for version 7 of the scheduler interface, and this "
                                 "program has version 1: build the plugin with the headers of this vpfs",
            work / "build.so": f"plugins: {work}/build.so was built with libc++, and this program with libstdc++",
        }.items():
            with self.subTest(plugin=plugin):
                self.assertEqual(self.refused(plugin), problem)
                self.assertEqual(self.refused([self.site.other, plugin]), problem)
        self.assertIn("its types have other sizes", self.refused(work / "layout.so"))

    def test_names_that_exist_are_refused(self) -> None:
        both = [self.site.drr, self.site.other]
        self.assertEqual(self.refused(both),
                         f"plugins: {self.site.other} has a policy drr, which another plugin has too")
        self.assertEqual(self.refused([self.site.drr, self.site.drr]),
                         f"plugins: {self.site.drr} has a policy drr, which another plugin has too")

    def test_what_others_can_write_is_refused(self) -> None:
        folder = self.site.work / "open"
        folder.mkdir()
        plugin = folder / "drr.so"
        shutil.copy(self.site.drr, plugin)
        link = self.site.work / "link.so"
        link.symlink_to(plugin)
        self.assertEqual(self.check_config(link).returncode, 0)
        plugin.chmod(0o757)
        self.assertEqual(self.refused(link), f"plugins: {plugin} can be written by others than its owner (mode 0757): "
                                             f"chmod go-w {plugin}")
        plugin.chmod(0o755)
        folder.chmod(0o775)
        self.assertEqual(self.refused(link), f"plugins: {plugin} could be replaced: {folder} can be written by others "
                                             f"than its owner (mode 0775): chmod go-w {folder}")
        folder.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(plugin, 12345, 0)
            self.assertEqual(self.refused(plugin), f"plugins: {plugin} belongs to user 12345: expected root")

    def test_policies_that_cannot_be_made_are_refused(self) -> None:
        for policy, problem in {"nothing": "it makes nothing", "throws": "no luck today",
                                "reads": "an exception of an unknown type"}.items():
            self.assertEqual(self.refused(self.site.bad, policy, nonsense=1),
                             f"policy: the policy {policy} fails: {problem}")
        self.assertEqual(self.check_config(self.site.bad, "sfq").returncode, 0)

    def test_the_check_of_policies_finds_bad_ones(self) -> None:
        for policy, problem in {"steals": "a request goes that is not queued", "doubles": "it ends the process by signal 6",
                                "throws": "it throws: no luck today", "nothing": "make() makes nothing"}.items():
            done = self.check_policy(self.site.bad, "--policy", policy)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn(problem, done.stdout)
        done = self.check_policy(self.site.bad, "--policy", "drr")
        self.assertEqual(done.returncode, 2)
        self.assertIn("has no policy drr (it has: steals, doubles, hangs, nothing, throws, reads)", done.stderr)

    def test_a_library_that_aborts_ends_the_check_and_not_more(self) -> None:
        aborts = self.site.work / "aborts.so"
        self.assertEqual(self.check_config(aborts).returncode, -6)
        done = self.check_policy(aborts)
        self.assertEqual(done.returncode, 2)
        self.assertIn("while it is loaded, it ends the process by signal 6 (Aborted)", done.stderr)


if __name__ == "__main__":
    COMPILER.append(sys.argv.pop(2))
    BUILD.append(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
