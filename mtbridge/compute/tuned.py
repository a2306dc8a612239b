"""Settings that `mtbridge tune` found for the devices of this machine, kept in the cache folder.

A set counts for one device and driver, one width of vector registers, one form, one element type and the
very kernels that it was checked with. Whatever else the file says is ignored: the shipped settings are there.
"""

from __future__ import annotations

import secrets
from pathlib import Path

import msgspec

from mtbridge.compute.embedded import cache_folder, writable_cache
from mtbridge.compute.parameters import SPACES, Limits
from mtbridge.sources import kernels_hash

LARGEST_FILE = 1 << 20
"""Bytes: a larger file is none of ours."""

AGAIN = "`mtbridge tune` measures again"


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a set of settings is for; `device` is the key of a verdict, platform, name and driver together."""

    device: str
    vector_bytes: int
    form: str
    dtype: str
    kernels: str = msgspec.field(default_factory=kernels_hash)


class TunedSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings that were checked and measured.

    `error` is the largest error that the check found, as a share of its bound: above 1 would be wrong.
    `speedup` is how many times as fast as the shipped settings these were.
    """

    target: Target
    settings: dict[str, int]
    error: float
    speedup: float


def store() -> Path:
    """Return the file of the tuned sets."""
    return cache_folder() / "tuned.json"


def kept_sets() -> tuple[list[TunedSet], str]:
    """Return what the file holds, and a sentence if it cannot be read."""
    path = store()
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            return [], f"{path} is ignored: it is larger than any file of tuned settings; {AGAIN}."
        return msgspec.json.decode(content, type=list[TunedSet]), ""
    except FileNotFoundError:
        return [], ""
    except OSError as error:
        return [], f"{path} is ignored: {error.strerror or error}; {AGAIN}."
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return [], f"{path} is ignored: it is damaged ({error}); {AGAIN}."


def tuned_for(target: Target, limits: Limits) -> tuple[TunedSet | None, str]:
    """Return the set that was measured for `target`, and a sentence if there is one that cannot be used."""
    sets, note = kept_sets()
    found = next((kept for kept in sets if kept.target == target), None)
    if found is None:
        return None, note
    fault = SPACES[target.form].fault(found.settings, target.dtype, limits)
    if not 0 <= found.error <= 1:
        fault = f"its check found an error of {found.error:.3g} of the bound"
    if fault:
        return None, f"the tuned {target.dtype} settings in {store()} are ignored: {fault}; {AGAIN}."
    return found, note


def keep(found: TunedSet) -> None:
    """Put a set in the file in place of an older one for its target; those of other kernels are left out."""
    sets, _ = kept_sets()
    others = [
        kept for kept in sets if kept.target != found.target and kept.target.kernels == found.target.kernels
    ]
    # made first: where it cannot be written to, another folder is the cache from now on
    writable_cache()
    path = store()
    draft = path.with_name(f"tuned.{secrets.token_hex(4)}")
    draft.write_bytes(msgspec.json.encode([*others, found]))
    draft.replace(path)
