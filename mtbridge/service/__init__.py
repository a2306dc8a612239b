"""A request in, a reply out: what the worker does with a message, with no socket in sight.

Everything that a request can get wrong ends here as an error reply with a stable status. Nothing a
client sends may raise out of `Service.answer`, and no reply carries a traceback.

`service` has the way through, `arrays` what is read of a message, `matrices` and `moving` the operations.
"""

from __future__ import annotations

from mtbridge.service.service import Service, refuse

__all__ = ["Service", "refuse"]
