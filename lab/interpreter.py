"""Chooses the Python for scripts.

The first python3 on PATH may lack packages that the distribution's has.
"""

import importlib.util
import os
import subprocess
import sys

PACKAGES = {
    "tabulate": "python3-tabulate",
    "matplotlib": "python3-matplotlib",
}  # and the distribution's packages with them
NEEDED = "tabulate"  # without matplotlib only the plots are missing
DISTRIBUTION = "/usr/bin/python3"
QUESTION = (
    "import importlib.util, sys\nprint(*(name for name in sys.argv[1:] if "
    "importlib.util.find_spec(name) is None))"
)


def lacking_here() -> list[str]:
    return [name for name in PACKAGES if importlib.util.find_spec(name) is None]


def lacking(python: str) -> list[str]:
    """The packages that another interpreter lacks. If it cannot run, it lacks all."""
    try:
        done = subprocess.run(
            [python, "-c", QUESTION, *PACKAGES], check=False, capture_output=True, text=True
        )
    except OSError:
        return list(PACKAGES)
    return done.stdout.split() if done.returncode == 0 else list(PACKAGES)


def best() -> str:
    """This interpreter, unless the distribution's has more of the packages."""
    here = lacking_here()
    return DISTRIBUTION if here and len(lacking(DISTRIBUTION)) < len(here) else sys.executable


def with_packages() -> None:
    """Starts the running script again with the better interpreter.

    Ends it if none has the needed package.

    Scripts call this before they import anything that needs a package.
    """
    python = best()
    if python != sys.executable:
        os.execv(python, [python, *sys.argv])
    if NEEDED in lacking_here():
        sys.exit(
            f"{os.path.basename(sys.argv[0])}: {python} has no package '{NEEDED}': install "
            f"{PACKAGES[NEEDED]} (script/bootstrap does)"
        )


if __name__ == "__main__":
    print(best())
