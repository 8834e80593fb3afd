"""vpfs for spack 1.0 and later, from the clone that this file is in (docs/admin/other-ways.md)."""

import pathlib

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *

# packaging/spack/spack_repo/vpfs/packages/vpfs/package.py
CLONE = pathlib.Path(__file__).resolve().parents[6]
PROGRAMS = (
    "vpfs-proxy",
    "vpfs-coordinator",
    "vpfs-mount",
    "vpfsctl",
    "vpfs-decode",
    "vpfs-sim",
    "vpfs-server",
    "vpfs-load",
    "vpfs-check-policy",
)


class Vpfs(CMakePackage):
    """Virtual parallel file systems: one OrangeFS or BeeGFS looks like many, and each application
    gets a share of its bandwidth that holds while others press against it."""

    git = CLONE.as_uri()

    license("Apache-2.0", checked_by="vpfs")

    version("main", branch="main")

    variant("tests", default=False, description="Also builds the tests")
    variant("benchmarks", default=False, description="Also builds the programs of script/bench")
    variant("hardened", default=True, description="PIE, full RELRO, stack protector, CET")
    variant("strip", default=True, description="Strips the programs that are installed")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.11:", type="build")

    # Lower bounds are the versions of Debian 12. Upper bounds are those of Ubuntu 24.04, for
    # libraries whose interfaces change: vpfs has not been built with later ones.
    depends_on("asio@1.22.1:1.28", type="build")
    depends_on("cli11@2.1.2:2.4", type="build")
    depends_on("cpp-httplib@0.11.4:0.15", type="build")
    depends_on("fmt@9.1:9")
    depends_on("googletest@1.12.1: +gmock", type="build", when="+tests")
    depends_on("libfuse@3.14:")
    depends_on("liburing@2.3:")
    depends_on("libpcap@1.10.3:")
    depends_on("lmdb@0.9.24:")
    depends_on("ncurses@6.4: +termlib")
    depends_on("nlohmann-json@3.11.2:3.11", type="build")
    depends_on("openssl@3:")
    depends_on("prometheus-cpp@1.0.1:")
    depends_on("protobuf@21.12:21")
    depends_on("spdlog@1.10:1.12")
    depends_on("yaml-cpp@0.7:")
    depends_on("zlib-api")

    requires("platform=linux", msg="vpfs uses io_uring, splice and FUSE of Linux")
    conflicts("%gcc@:11", msg="the language is C++23")
    conflicts("%clang@:18", msg="the language is C++23")

    # The page of `control.http` has this script inside. spack has no package of it.
    resource(
        name="dygraphs",
        url="https://registry.npmjs.org/dygraphs/-/dygraphs-2.2.1.tgz",
        sha256="f515549becffeb0912b0dffa963f7d42726818ca7ef5605bdd7707995742b7ec",
        placement="dygraphs",
    )

    @property
    def httplib_description(self):
        return pathlib.Path(self.stage.path) / "pkgconfig"

    def setup_build_environment(self, env):
        env.prepend_path("PKG_CONFIG_PATH", str(self.httplib_description))

    @run_before("cmake")
    def describe_httplib(self):
        """spack installs cpp-httplib without a file for pkg-config, by which the build finds it."""
        self.httplib_description.mkdir(exist_ok=True)
        (self.httplib_description / "cpp-httplib.pc").write_text(
            "Name: cpp-httplib\n"
            "Description: HTTP, by its header\n"
            f"Version: {self.spec['cpp-httplib'].version}\n"
            "Requires: libssl libcrypto\n"
            f"Cflags: -I{self.spec['cpp-httplib'].prefix.include} -DCPPHTTPLIB_OPENSSL_SUPPORT\n"
        )

    def cmake_args(self):
        dygraphs = pathlib.Path(self.stage.source_path) / "dygraphs/dist"
        return [
            self.define_from_variant("VPFS_TESTS", "tests"),
            self.define_from_variant("VPFS_BENCHMARKS", "benchmarks"),
            self.define_from_variant("VPFS_HARDENED", "hardened"),
            self.define("VPFS_SLURM", False),  # it would have to be the site's
            self.define_from_variant("VPFS_STRIP", "strip"),
            self.define("DYGRAPHS_SCRIPT", str(dygraphs / "dygraph.min.js")),
            self.define("DYGRAPHS_STYLE", str(dygraphs / "dygraph.min.css")),
        ]

    def test_version(self):
        """each installed program says its version"""
        for program in PROGRAMS:
            with test_part(self, f"test_version_{program}", purpose=f"run {program} --version"):
                output = which(self.prefix.bin.join(program))("--version", output=str, error=str)
                check_outputs(rf"{program} \d+\.\d+\.\d+", output)
