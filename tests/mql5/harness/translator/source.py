"""One MQL5 file: its bytes, its literals set aside, and the complaints about it."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass, field
from pathlib import Path

# comments, dates and colours, text, characters: everything whose inside is not code
_LITERAL = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | [DC]'[^']*' | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+'""",
    re.DOTALL | re.VERBOSE,
)
_PLACE = re.compile("\x01(\\d+)\x02")


class TranslationError(Exception):
    """What is wrong with the sources, a line each: ``file:line: what``."""


@dataclass
class Complaints:
    """Collects what is wrong, so that one run tells everything."""

    lines: list[str] = field(default_factory=list)

    def add(self, path: Path, line: int, text: str) -> None:
        self.lines.append(f"{path}:{line}: {text}")


class Literals:
    """Literals taken out of the code, and put back as C++ when the code is done."""

    def __init__(self) -> None:
        self._originals: list[str] = []

    def take_out(self, text: str) -> str:
        """`text` with placeholders for literals, and comments made blank (line breaks kept)."""
        return _LITERAL.sub(self._placeholder, text)

    def _placeholder(self, found: re.Match[str]) -> str:
        literal = found.group(0)
        if literal.startswith(("//", "/*")):
            return re.sub(r"[^\n]", "", literal) or " "
        self._originals.append(literal)
        return f"\x01{len(self._originals) - 1}\x02"

    def original(self, text: str) -> str:
        """`text` with the literals as they were written."""
        return _PLACE.sub(lambda found: self._originals[int(found.group(1))], text)

    def cpp(self, text: str) -> str:
        """`text` with the literals as C++ writes them."""
        return _PLACE.sub(lambda found: _as_cpp(self._originals[int(found.group(1))]), text)


def _as_cpp(literal: str) -> str:
    if literal.startswith('"'):
        return literal + "_mql"
    if literal.startswith("D'"):
        return f"datetime({_seconds(literal[2:-1])}L)"
    if literal.startswith("'"):
        return f"((ushort){literal})"
    raise TranslationError(f"colour literal {literal}: the shim has no colours")


def _seconds(date: str) -> int:
    """Seconds of 1970 for the inside of D'2024.01.31 23:59:59'."""
    numbers = [int(number) for number in re.split(r"[ .:/-]+", date.strip())]
    year, month, day, hour, minute, second = [*numbers, 0, 0, 0][:6]
    return calendar.timegm((year, month, day, hour, minute, second))


def blank(text: str) -> str:
    """`text` without literals, for looking at words."""
    return _PLACE.sub("", text)


def read(path: Path) -> str:
    """Text of a source file; MetaEditor saves UTF-8 or UTF-16, with CRLF."""
    raw = path.read_bytes()
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return raw.decode(encoding).replace("\r\n", "\n")
