"""Code without literals to C++: arrays, packed structures, inputs, functions used before they are defined."""

from __future__ import annotations

import re

_NOT_TYPES = frozenset({"return", "delete", "else", "case", "new"})

# const double &values[]        double &values[]
_VIEW = re.compile(r"\bconst\s+(\w+)\s*&\s*(\w*)\s*\[\s*\]")
_REFERENCE = re.compile(r"\b(\w+)\s*&\s*(\w*)\s*\[\s*\]")

# at the start of a statement: [static|const] type name, name[...] ...;
_DECLARATION = re.compile(
    r"""((?:(?<=[;{}:)])|^)\s*(?:(?:static|const)\s+)*)        # what stands before
        (\w+)\s+                                               # type
        ((?:\w+\s*(?:=[^;{}\[\]]*)?,\s*)*                      # names that are no arrays
         \w+\s*\[[\w+*\ ]*\][^;()]*);                          # the first array and the rest""",
    re.MULTILINE | re.VERBOSE,
)
_ARRAY = re.compile(r"\s*(\w+)\s*\[\s*([\w+* ]*?)\s*\]\s*(=.*)?$", re.DOTALL)
_FUNCTION = re.compile(r"^(?!else|return)((?:static\s+)?\w+\s+\w+\s*\([^(){};=]*\))\s*\{", re.MULTILINE)
_STRUCTURE = re.compile(r"\b(?:struct|union)\s+\w+\s*\{[^{}]*\};")
_INPUT = re.compile(r"^\s*s?input\s+(\w+)\s+(\w+)\s*=\s*(.*);")
_INPUT_GROUP = re.compile(r"^\s*s?input\s+group\b")
_OBJECTS = re.compile(r"\[\s*\]|\bstring\b|\bC[A-Z]\w*\b")


def input_line(line: str) -> str | None:
    """C++ for a line that declares an input, or None for any other line."""
    if _INPUT_GROUP.match(line):
        return ""
    found = _INPUT.match(line)
    if not found:
        return None
    kind, name, value = found.groups()
    return f'static const {kind} {name} = mqlrt::input<{kind}>("{name}", {value});'


def statements(code: str) -> str:
    """C++ for code without inputs and directives; the number of lines stays."""
    packed = _STRUCTURE.sub(_packed, code)
    views = _VIEW.sub(r"const mqlrt::View<\1> &\2", packed)
    references = _REFERENCE.sub(r"mqlrt::Ref<\1> \2", views)
    return _DECLARATION.sub(_declaration, references)


def prototypes(code: str) -> tuple[int, str]:
    """Where the first function of `code` starts, and declarations of all, as MQL5 lets a call stand first."""
    functions = list(_FUNCTION.finditer(code))
    if not functions:
        return -1, ""
    return functions[0].start(), " ".join(re.sub(r"\s+", " ", found.group(1)) + ";" for found in functions)


def _packed(found: re.Match[str]) -> str:
    """MQL5 packs its structures; those that hold objects have no bytes that anybody could see."""
    text = found.group(0)
    if _OBJECTS.search(text):
        return text
    return f'_Pragma("pack(push, 1)") {text} _Pragma("pack(pop)")'


def _declaration(found: re.Match[str]) -> str:
    before, kind, names = found.groups()
    if kind in _NOT_TYPES:
        return found.group(0)
    return before + " ".join(_declarator(kind, name) for name in _split(names))


def _declarator(kind: str, text: str) -> str:
    array = _ARRAY.match(text)
    if not array:
        return f"{kind} {text.strip()};"
    name, size, value = array.groups()
    holder = f"mqlrt::Static<{kind},{size}>" if size else f"mqlrt::Dynamic<{kind}>"
    return f"{holder} {name}{value or ''};"


def _split(names: str) -> list[str]:
    """Split at the commas that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for i, character in enumerate(names):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append(names[start:i])
            start = i + 1
    return [*parts, names[start:]]
