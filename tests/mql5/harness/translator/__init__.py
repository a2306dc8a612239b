"""MQL5 to C++20: rewrites genuine sources just enough for a C++ compiler and tests/mql5/shim.

    translate(Path("mql5/Scripts/MtBridge/Covariance.mq5"), include=Path("mql5/Include"))

gives the text of one C++ file. ``#line`` marks stay, so that the compiler names the line of the MQL5 file.
What MetaEditor would refuse and C++ would take (``auto``, ``->``, local references, reserved words as names)
is refused here, all of it at once, by `TranslationError`.
"""

from __future__ import annotations

from harness.translator.loader import translate
from harness.translator.source import TranslationError

__all__ = ["TranslationError", "translate"]
