"""Which built-ins of MQL5 the sources use, and which the shim declares: read from the texts alone."""

from __future__ import annotations

import re
from pathlib import Path

from harness.translator.source import Literals, blank, read

# words of the language, and what C++ gives to the shim with the same meaning
LANGUAGE = frozenset(
    {"datetime", "string", "matrix", "uchar", "ushort", "uint", "ulong", "sizeof", "OnStart"}
)
FROM_C = frozenset({"DBL_EPSILON", "DBL_MAX", "FLT_EPSILON", "INT_MAX", "UINT_MAX", "ULONG_MAX"})
_TYPES = r"(?:void|bool|int|uint|long|ulong|double|string|uchar|datetime|matrix|ENUM_\w+|Mtb\w+)"
_OURS = re.compile(r"^namespace mqlrt\n.*?^\} // namespace mqlrt$", re.MULTILINE | re.DOTALL)


def listed(path: Path) -> dict[str, str]:
    """Name and topic of the reference (https://www.mql5.com/en/docs/TOPIC), a line each."""
    lines = path.read_text(encoding="ascii").splitlines()
    return dict(line.split() for line in lines if line and not line.startswith("#"))


def used(sources: list[Path], methods: set[str]) -> set[str]:
    """Functions, constants and structures that no source defines, and methods of matrix.

    `methods` are the known ``matrix::Name``: they tell apart what a class of ours has under the same name.
    """
    code = "\n".join(blank(Literals().take_out(read(source))) for source in sources)
    code = re.sub(r"^\s*#property.*$", "", code, flags=re.MULTILINE)
    own = set(re.findall(r"#(?:define|ifndef)\s+(\w+)", code))
    own |= set(re.findall(r"\b(?:class|struct|union|enum)\s+(\w+)", code))
    own |= set(re.findall(rf"\b{_TYPES}\s+(?:C\w+::)?(\w+)\s*\(", code))
    for body in re.findall(r"\benum\s+\w+\s*\{([^}]*)\}", code):
        own |= set(re.findall(r"\b([A-Z]\w*)", body))
    calls = set(re.findall(r"(?<![.:~\w])([A-Z]\w*)\s*\(", code))
    constants = set(re.findall(r"(?<![.:\w])([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b", code))
    structures = set(re.findall(r"\b(Mql\w+)\b", code))
    after_dot = set(re.findall(r"\.([A-Z]\w*)\s*\(", code))
    of_matrix = {f"matrix::{name}" for name in after_dot if name not in own or f"matrix::{name}" in methods}
    return (calls | constants | structures) - own - LANGUAGE | of_matrix


def declared(headers: list[Path]) -> set[str]:
    """What the shim gives to MQL5 programs: all that is outside of namespace mqlrt."""
    names: set[str] = set(FROM_C)
    for header in headers:
        text = header.read_text(encoding="ascii")
        text = re.sub(
            r"^namespace mqlrt\n.*?^\} // namespace mqlrt$", "", text, flags=re.MULTILINE | re.DOTALL
        )
        code = blank(Literals().take_out(text))
        names |= set(re.findall(r"#define\s+(\w+)", code))
        names |= set(re.findall(r"^(?:struct|class|enum|using)\s+(\w+)(?!\w|::)", code, re.MULTILINE))
        for body in re.findall(r"^enum\b[^{;]*\{([^}]*)\}", code, re.MULTILINE):
            names |= set(re.findall(r"\b([A-Z]\w*)\s*=", body))
        names |= set(re.findall(r"^(?:inline|template|void)\b.*?\b([A-Z]\w*)\s*\(", code, re.MULTILINE))
        for body in re.findall(r"^class matrix\n\{(.*?)^\};", code, re.MULTILINE | re.DOTALL):
            names |= {f"matrix::{name}" for name in re.findall(r"^    \w+ ([A-Z]\w*)\(", body, re.MULTILINE)}
    return names - LANGUAGE
