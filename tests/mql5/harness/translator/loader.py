"""Follow the includes and put one C++ file together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from harness.translator import checks, rewrite
from harness.translator.source import Complaints, Literals, TranslationError, blank, read

_INCLUDE = re.compile("#include\\s+(?:<([^>]+)>|(\x01\\d+\x02))")
_RESOURCE = re.compile("#resource\\s+(\x01\\d+\x02)\\s+as\\s+string\\s+([A-Za-z_]\\w*)\\s*$")
_PROPERTY = re.compile(r"#property\s+(\w+)\s*(.*)")
LONGEST_RESOURCE = 63


def translate(source: Path, *, include: Path, installed: Mapping[str, Path] | None = None) -> str:
    """C++ of an MQL5 program.

    Parameters
    ----------
    source : Path
        The .mq5 file.
    include : Path
        The folder that stands for MQL5/Include of the terminal.
    installed : mapping of str to Path
        Folders that installing copies to a place below MQL5, such as "Include/MtBridge/kernels".

    Raises
    ------
    TranslationError
        If anything is not MQL5; the message has a line for each mistake.
    """
    loader = _Loader(include, installed or {})
    loader.load(source)
    if loader.complaints.lines:
        raise TranslationError("\n".join(loader.complaints.lines))
    return '#include "mql5.hpp"\n' + "\n".join(loader.out) + "\n"


class _Loader:
    def __init__(self, include: Path, installed: Mapping[str, Path]) -> None:
        self.include = include
        self.installed = installed
        self.out: list[str] = []
        self.complaints = Complaints()
        self.seen: set[Path] = set()

    def load(self, path: Path) -> None:
        """Append the C++ of a file and of what it includes, each file once."""
        path = path.resolve()
        if path in self.seen:
            return
        self.seen.add(path)
        text = read(path)
        for number, line in enumerate(text.split("\n"), 1):
            if not line.isascii():
                self.complaints.add(path, number, "a character that is not ASCII: code pages differ")
        literals = Literals()
        lines = literals.take_out(text).split("\n")
        chunk: list[str] = []
        start = 1
        for number, line in enumerate(lines, 1):
            for complaint in checks.complaints(blank(line)):
                self.complaints.add(path, number, complaint)
            directive = line.strip()
            if not directive.startswith(("#include", "#property", "#import", "#resource")):
                declared = rewrite.input_line(line)
                chunk.append(line if declared is None else declared)
                continue
            self._flush(path, start, chunk, literals)
            self._directive(path, number, directive, literals)
            chunk, start = [], number + 1
        self._flush(path, start, chunk, literals)

    def _directive(self, path: Path, number: int, line: str, literals: Literals) -> None:
        if found := _INCLUDE.match(line):
            system, local = found.groups()
            name = system or literals.original(local).strip('"')
            target = (self.include if system else path.parent) / name.replace("\\", "/")
            if target.is_file():
                self.load(target)
            else:
                self.complaints.add(path, number, f"{target} is not there")
        elif line.startswith("#resource"):
            self._resource(path, number, line, literals)
        elif found := _PROPERTY.match(line):
            if complaint := checks.property_complaint(found.group(1)):
                self.complaints.add(path, number, complaint)
        else:
            self.complaints.add(path, number, "DLL imports are not translated: mtbridge needs none")

    def _resource(self, path: Path, number: int, line: str, literals: Literals) -> None:
        """A constant with the text of a file, which MetaEditor, too, reads when it compiles."""
        found = _RESOURCE.match(line)
        if not found:
            self.complaints.add(path, number, 'only `#resource "file" as string Name` is translated')
            return
        name = literals.original(found.group(1)).strip('"').replace("\\\\", "\\")
        if len(name) > LONGEST_RESOURCE or ".." in name:
            self.complaints.add(path, number, f"{name} is over {LONGEST_RESOURCE} characters or has '..'")
            return
        target = self._placed(path, name.replace("\\", "/"))
        if not target.is_file():
            self.complaints.add(path, number, f"{target} is not there")
            return
        text = target.read_text(encoding="utf-8")
        if not text.isascii():
            self.complaints.add(
                path, number, f"{target} has a character that is not ASCII: code pages differ"
            )
        self.out.append(f'static const string {found.group(2)} = R"mql5({text})mql5"_mql;')

    def _placed(self, path: Path, name: str) -> Path:
        """Where a resource lies: below MQL5 if its name begins with a backslash, else beside the source."""
        if not name.startswith("/"):
            return path.parent / name
        below = name[1:]
        for place, folder in self.installed.items():
            if below.startswith(f"{place}/"):
                return folder / below[len(place) + 1 :]
        return self.include.parent / below

    def _flush(self, path: Path, start: int, chunk: list[str], literals: Literals) -> None:
        code = rewrite.statements("\n".join(chunk))
        at, declared = rewrite.prototypes(code)
        mark = f'#line {start} "{path}"\n'
        if at >= 0:
            line = start + code.count("\n", 0, at)
            code = f'{code[:at]}{declared}\n#line {line} "{path}"\n{code[at:]}'
        self.out.append(mark + literals.cpp(code))
