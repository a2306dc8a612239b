"""Errors travel between processes and keep their sentence and their status."""

from __future__ import annotations

import pickle

import pytest

from mtbridge import errors


@pytest.mark.parametrize("kind", [errors.ProtocolError, errors.RemoteError])
def test_an_error_with_a_status_can_be_sent_between_processes(kind: type[errors.StatusError]) -> None:
    sent = pickle.loads(pickle.dumps(kind("A has 3 columns.", 4)))  # noqa: S301 - our own bytes
    assert type(sent) is kind
    assert (str(sent), sent.status) == ("A has 3 columns.", 4)


def test_the_tree_in_the_head_names_every_error() -> None:
    head = errors.__doc__ or ""
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, Exception):
            assert name in head
