"""The messages of the control port as dictionaries, encoded as control/wire/control.proto says.

Fields have the names of that file. Only what it uses is known: no maps, no packed doubles.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import re
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from lab.report import Json, Row

FILE = pathlib.Path(__file__).resolve().parents[2] / "control/wire/control.proto"
TOKEN = re.compile(r'//[^\n]*|"[^"]*"|[\w.]+|[{}=;]')
VARINT, FIXED64, BYTES = 0, 1, 2
LENGTH = struct.Struct(">I")
SIGNED_LIMIT = 1 << 63


class Malformed(Exception):
    """Bytes that cannot be a message."""


@dataclasses.dataclass(frozen=True)
class Field:
    name: str
    number: int
    type: str
    repeated: bool


@dataclasses.dataclass(frozen=True)
class Schema:
    messages: Mapping[str, Mapping[str, Field]]  # "Rule", "Site.Rule"
    enums: Mapping[str, Mapping[str, int]]  # "Rule.Action"

    @functools.cached_property
    def numbers(self) -> Mapping[str, Mapping[int, Field]]:
        """The fields of each message by their numbers."""
        return {
            name: {field.number: field for field in fields.values()}
            for name, fields in self.messages.items()
        }


def parse(text: str) -> Schema:
    tokens = iter([token for token in TOKEN.findall(text) if not token.startswith("//")])
    messages: dict[str, dict[str, Field]] = {}
    enums: dict[str, dict[str, int]] = {}
    for token in tokens:
        if token == "message":
            _message(tokens, messages, enums)
        elif token != ";":  # syntax, package
            while next(tokens) != ";":
                pass
    return Schema(messages, enums)


def _message(
    tokens: Iterator[str],
    messages: dict[str, dict[str, Field]],
    enums: dict[str, dict[str, int]],
    outer: str = "",
) -> None:
    """A message inside another one is named after both, as are enums: "Site.Rule"."""
    message = outer + next(tokens)
    fields = messages.setdefault(message, {})
    next(tokens)
    depth = 1
    for token in tokens:
        if token == "}":
            depth -= 1
            if depth == 0:
                return
        elif token == "oneof":
            next(tokens), next(tokens)
            depth += 1
        elif token == "message":
            _message(tokens, messages, enums, f"{message}.")
        elif token == "enum":
            values = enums.setdefault(f"{message}.{next(tokens)}", {})
            next(tokens)
            while (name := next(tokens)) != "}":
                next(tokens)
                values[name] = int(next(tokens))
                next(tokens)
        else:
            label, kind = (
                (token, next(tokens)) if token in ("repeated", "optional") else ("", token)
            )
            name, _, number, _ = (next(tokens) for _ in range(4))
            inner = f"{message}.{kind}"
            fields[name] = Field(
                name,
                int(number),
                inner if inner in enums or inner in messages else kind,
                label == "repeated",
            )


@functools.cache
def schema() -> Schema:
    return parse(FILE.read_text())


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def tagged(number: int, content: bytes) -> bytes:
    """A field with a length: a text, or a message inside a message."""
    return varint(number << 3 | BYTES) + varint(len(content)) + content


def encode(message: str, content: Row) -> bytes:
    fields = schema().messages[message]
    return b"".join(_field(fields[name], value) for name, value in content.items())


def _field(field: Field, value: Any) -> bytes:
    if field.repeated:
        one = dataclasses.replace(field, repeated=False)
        return b"".join(_field(one, each) for each in value)
    if field.type in schema().messages:
        return tagged(field.number, encode(field.type, value))
    if isinstance(value, str) and field.type == "string":
        return tagged(field.number, value.encode())
    if field.type == "double":
        return varint(field.number << 3 | FIXED64) + struct.pack("<d", value)
    number = schema().enums[field.type][value] if field.type in schema().enums else int(value)
    return varint(field.number << 3 | VARINT) + varint(number)


def frame(envelope: Row) -> bytes:
    content = encode("Envelope", envelope)
    return LENGTH.pack(len(content)) + content


class _Reader:
    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                return value & ((1 << 64) - 1)
            shift += 7
            if shift > 63:
                raise Malformed("a number of more than 10 bytes")

    def take(self, size: int) -> bytes:
        if self.at + size > len(self.content):
            raise Malformed("a field goes beyond its message")
        self.at += size
        return self.content[self.at - size : self.at]


def decode(message: str, content: bytes) -> Json:
    """Fields that are not there are left out, and so are those that control.proto does not have."""
    found: Json = {}
    reader = _Reader(content)
    known = schema().numbers[message]
    while reader.at < len(content):
        key = reader.varint()
        kind = key & 7
        if kind == VARINT:
            raw: int | bytes = reader.varint()
        elif kind in (FIXED64, BYTES):
            raw = reader.take(8 if kind == FIXED64 else reader.varint())
        else:
            raise Malformed(f"wire type {kind}")
        if (field := known.get(key >> 3)) is not None:
            _put(found, field, raw)
    return found


def _put(found: Json, field: Field, raw: int | bytes) -> None:
    if (
        field.repeated
        and isinstance(raw, bytes)
        and field.type not in ("string", *schema().messages)
    ):
        packed = _Reader(raw)  # repeated numbers are together
        while packed.at < len(raw):
            _put(found, field, packed.varint())
        return
    value = _value(field, raw)
    if field.repeated:
        found.setdefault(field.name, []).append(value)
    else:
        found[field.name] = value


def _value(field: Field, raw: int | bytes) -> object:
    if isinstance(raw, bytes):
        if field.type in schema().messages:
            return decode(field.type, raw)
        return struct.unpack("<d", raw)[0] if field.type == "double" else _text(raw)
    if field.type in schema().enums:
        return next(
            (name for name, number in schema().enums[field.type].items() if number == raw), raw
        )
    if field.type == "bool":
        return bool(raw)
    return raw - (1 << 64) if field.type == "int64" and raw >= SIGNED_LIMIT else raw


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as problem:
        raise Malformed("a text that is not UTF-8, which most receivers refuse") from problem
