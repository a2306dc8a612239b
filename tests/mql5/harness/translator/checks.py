"""Lines that C++ would take and MetaEditor would not.

Each check is one line of the reference, seen from the side of the mistake. They look at one line without its
literals, which is enough because the sources write one statement a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CPP_ONLY = _words("""
    alignas alignof asm auto catch char16_t char32_t concept consteval constexpr const_cast decltype
    explicit friend goto inline int8_t int16_t int32_t int64_t lambda mutable noexcept nullptr
    reinterpret_cast requires signed size_t static_assert static_cast std thread_local throw try typeid
    uint8_t uint16_t uint32_t uint64_t unsigned using volatile wchar_t
""")
RESERVED = _words("""
    bool break case char class color complex const continue datetime default delete do double dynamic_cast
    else enum export extern false final float for group if input int interface long matrix namespace new
    offsetof operator override pack private protected public return short sinput sizeof static string
    struct switch template this true typename uchar uint ulong union ushort vector virtual void while
""")
PROPERTIES = _words("""
    copyright description icon library link script_show_confirm script_show_inputs service stacksize
    tester_file tester_indicator tester_library version
""")
SIMPLE_TYPES = (
    "bool|char|color|datetime|double|float|int|long|matrix|short|string|uchar|uint|ulong|ushort|vector"
)
MUST_BE_LOOKED_AT = (
    "SocketConnect|SocketSend|SocketRead|SocketTimeouts|ArrayResize|FileOpen|FileWriteArray|FileDelete|FileMove"
    "|CLContextCreate|CLProgramCreate|CLKernelCreate|CLBufferCreate|CLBufferWrite|CLBufferRead|CLExecute"
    "|CLSetKernelArg|CLSetKernelArgMem|CLGetInfoString"
)

_RESERVED_NAME = re.compile(rf"\b(?:{SIMPLE_TYPES})\s+&?\s*(\w+)\s*(?=[=;,\[)])")
_LOCAL_REFERENCE = re.compile(rf"(?:^|[;{{}}])\s*(?:const\s+)?(?:{SIMPLE_TYPES})\s*&\s*\w+\s*=")
_POINTER = re.compile(r"^\s*[A-Z]\w*\s*\*\s*\w+\s*[=;]")
_CHAR_ARRAY = re.compile(r"\bchar\s+&?\s*\w*\s*\[")
_SIZED_PARAMETER = re.compile(rf"\b(?:{SIMPLE_TYPES})\s*&\s*\w+\s*\[\s*\w+\s*\]")
_UNLOOKED_RESULT = re.compile(rf"\s*(?:{MUST_BE_LOOKED_AT})\s*\(")


def complaints(line: str) -> Iterator[str]:
    """What is wrong with one line of code."""
    for word in re.findall(r"\b[A-Za-z_]\w*\b", line):
        if word in CPP_ONLY:
            yield f"'{word}' is C++, not MQL5"
    for name in _RESERVED_NAME.findall(line):
        if name in RESERVED:
            yield f"'{name}' is a reserved word"
    if _LOCAL_REFERENCE.search(line):
        yield "a local reference is not MQL5"
    if "->" in line:
        yield "'->' is no operator of MQL5: '.' serves objects and pointers"
    if _POINTER.search(line):
        yield "object pointers are not translated: use objects"
    if _CHAR_ARRAY.search(line):
        yield "char[] is refused by builds from 5100 on where text is meant: use uchar[]"
    if _SIZED_PARAMETER.search(line):
        yield "an array parameter has no size"
    if _UNLOOKED_RESULT.match(line):
        yield "the result of this call must be looked at"


def property_complaint(name: str) -> str | None:
    """What is wrong with ``#property name``."""
    if name in PROPERTIES:
        return None
    return f"#property {name} is unknown, and MetaEditor would pass over it"
