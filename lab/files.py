"""Files that are whole, whatever happens meanwhile."""

from __future__ import annotations

import pathlib

from lab.harness import Problem


def write_whole(file: pathlib.Path, text: str) -> None:
    """Replaces the file, or leaves it as it was: a disk may be full, and a program interrupted."""
    new = file.with_name(f".{file.name}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(text)
        new.replace(file)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise Problem(f"{file} cannot be written: {error.strerror}") from error
