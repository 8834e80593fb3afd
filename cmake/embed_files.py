#!/usr/bin/env python3
"""Writes files into a C++ source, as the answers of an HTTP port.

embed_files.py OUTPUT PATH=FILE ...: OUTPUT defines vpfs::control::web_files() with the text of each
FILE under its PATH. What a file is follows from its ending.
"""
from __future__ import annotations

import pathlib
import sys

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}
LINE = 96  # bytes of a string literal


def literal(text: bytes) -> str:
    """The text as string literals, one for each line. Octal escapes end after three digits."""

    def escaped(byte: int) -> str:
        letter = chr(byte)
        return letter if 32 <= byte < 127 and letter not in '"\\?' else f"\\{byte:03o}"

    parts = (text[at : at + LINE] for at in range(0, len(text), LINE))
    return "\n".join('        "' + "".join(map(escaped, part)) + '"' for part in parts) or '        ""'


def main() -> int:
    output = pathlib.Path(sys.argv[1])
    rows = []
    for argument in sys.argv[2:]:
        path, _, name = argument.partition("=")
        file = pathlib.Path(name)
        text = file.read_bytes()
        rows.append(
            f'    {{.path = "{path}",\n     .type = "{TYPES[file.suffix]}",\n'
            f"     .text = std::string_view(\n{literal(text)},\n        {len(text)})}},\n"
        )
    output.write_text(
        "// Written by embed_files.py.\n"
        '#include "control/web/web_file.h"\n\n'
        "namespace vpfs::control {\n"
        "namespace {\n\n"
        f"constexpr WebFile kFiles[] = {{\n{''.join(rows)}}};\n\n"
        "}  // namespace\n\n"
        "std::span<const WebFile> web_files() {\n  return kFiles;\n}\n\n"
        "}  // namespace vpfs::control\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
