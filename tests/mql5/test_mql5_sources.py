"""The MQL5 sources as texts, and whether the translator and the shim catch what MetaEditor would."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from harness import build, peers, vocabulary
from harness.programs import Runner, environment
from harness.translator import TranslationError, translate

HERE = Path(__file__).parent
MQL5 = build.ROOT / "mql5"
SOURCES = sorted(MQL5.rglob("*.mq?"))
PROBES = sorted((HERE / "programs").glob("*.mq5"))
NEGATIVE = sorted((HERE / "neg").glob("*.mq5"))


def expectation(source: Path) -> tuple[str, str]:
    """Where the mistake in a file of neg/ must be caught, and a part of the message, from its first line."""
    first = source.read_text(encoding="utf-8").splitlines()[0]
    stage, _, message = first.removeprefix("// ").partition(": ")
    return stage, message


def at(stage: str) -> list[Path]:
    return [source for source in NEGATIVE if expectation(source)[0] == stage]


def stem(source: Path) -> str:
    return source.stem


def test_every_file_of_mistakes_says_where_it_is_caught() -> None:
    assert {expectation(source)[0] for source in NEGATIVE} == {"translate", "compile", "run", "fine"}


@pytest.mark.parametrize("source", at("translate"), ids=stem)
def test_what_only_cpp_would_take_is_refused_by_the_translator(source: Path) -> None:
    with pytest.raises(TranslationError) as refused:
        translate(source, include=build.INCLUDE)
    assert expectation(source)[1] in str(refused.value)
    assert re.match(rf"{re.escape(str(source))}:\d+: ", str(refused.value))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("source", at("compile"), ids=stem)
def test_what_metaeditor_would_refuse_or_warn_of_does_not_compile(source: Path, tmp_path: Path) -> None:
    with pytest.raises(build.BuildError) as refused:
        build.check(source, tmp_path)
    assert expectation(source)[1] in str(refused.value)
    assert source.name in str(refused.value)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("source", at("run"), ids=stem)
def test_what_the_terminal_would_stop_ends_the_program(source: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [build.build(source)], env=environment(tmp_path, {}), capture_output=True, text=True, check=False
    )
    assert done.returncode == 70
    assert "MQL5 critical error: " in done.stderr
    assert expectation(source)[1] in done.stderr


@pytest.mark.timeout(300)
@pytest.mark.parametrize("source", at("fine"), ids=stem)
def test_what_mql5_allows_is_translated(run: Runner, source: Path) -> None:
    assert run(build.build(source)).text == expectation(source)[1]


def test_sources_in_utf_16_as_metaeditor_saves_them_are_read(tmp_path: Path) -> None:
    text = (HERE / "neg" / "fine_text.mq5").read_text(encoding="ascii")
    wide = tmp_path / "wide.mq5"
    wide.write_bytes(b"\xff\xfe" + text.replace("\n", "\r\n").encode("utf-16-le"))
    same = translate(HERE / "neg" / "fine_text.mq5", include=build.INCLUDE)
    assert translate(wide, include=build.INCLUDE).replace(str(wide), "X") == same.replace(
        str(HERE / "neg" / "fine_text.mq5"), "X"
    )


def test_every_builtin_that_the_sources_use_is_listed_and_no_other() -> None:
    listed = set(vocabulary.listed(HERE / "builtins.txt"))
    methods = {name for name in listed if name.startswith("matrix::")}
    assert vocabulary.used([*SOURCES, *PROBES], methods) == listed


def test_the_shim_declares_what_is_listed_and_no_other() -> None:
    assert vocabulary.declared(sorted(build.SHIM.glob("*.hpp"))) == set(
        vocabulary.listed(HERE / "builtins.txt")
    )


def test_every_listed_builtin_has_a_page_of_the_reference() -> None:
    for name, topic in vocabulary.listed(HERE / "builtins.txt").items():
        assert re.fullmatch(r"[a-z0-9_]+(/[a-z0-9_]+)+", topic), name


@pytest.mark.parametrize("source", [*SOURCES, *PROBES], ids=lambda source: source.name)
def test_a_source_is_plain_ascii_in_the_style_of_the_terminal(source: Path) -> None:
    raw = source.read_bytes()
    assert raw.isascii()
    assert b"\r" not in raw
    assert b"\t" not in raw
    lines = raw.decode().splitlines()
    assert all(line == line.rstrip() for line in lines)
    for above, line, below in zip(lines, lines[1:], lines[2:], strict=False):
        if line.startswith("//|"):
            assert len(line) == 70, line
            assert line.endswith("|"), line
        # a banner says something: no empty boxes
        assert not (
            above.startswith("//+--")
            and line.startswith("//|")
            and not line.strip("/| ")
            and below.startswith("//+--")
        )
    assert lines[0] == lines[-1] == "//+" + "-" * 66 + "+"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_no_source_needs_a_dll(source: Path) -> None:
    text = source.read_text(encoding="ascii")
    assert "#import" not in text
    assert "WebRequest(" not in text


def test_the_codec_calls_nothing_of_the_terminal() -> None:
    codec = [build.INCLUDE / "MtBridge" / name for name in ("Bytes.mqh", "Protocol.mqh", "Codec.mqh")]
    families = {
        topic.split("/")[0]
        for name, topic in vocabulary.listed(HERE / "builtins.txt").items()
        if name in vocabulary.used(codec, set())
    }
    assert families <= {"array", "constants", "convert", "math", "strings"}


def test_the_client_leaves_the_random_numbers_of_the_program_alone() -> None:
    text = translate(build.program("ClientProbe"), include=build.INCLUDE)
    assert "GetMicrosecondCount" in text
    assert not re.search(r"\bMath(?:Rand|Srand)\b", text)


def test_the_folder_mirrors_that_of_the_terminal() -> None:
    assert {path.relative_to(MQL5).parts[:2] for path in SOURCES} == {
        ("Include", "MtBridge"),
        ("Scripts", "MtBridge"),
    }
    assert {path.relative_to(MQL5).parts[0] for path in MQL5.rglob("*.mq5")} == {"Scripts"}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("model", ["whole", "first"])
def test_the_programs_run_clean_under_the_sanitizers(
    run: Runner, worker_port: int, h1_folder: Path, tmp_path: Path, model: str
) -> None:
    if not build.sanitizers_work(tmp_path):
        pytest.skip(
            f"{build.compiler()} cannot link and run the address and undefined-behaviour sanitizers here"
        )
    programs = {
        name: build.build(build.program(name), sanitized=True)
        for name in ("Covariance", "Multiply", "ClientProbe", "CodecProbe")
    }
    settings = {"InpPort": worker_port, "FUZZ": 1, "SEED": 3, "READ": model}
    symbols = "AUDUSD,BRENT,USDCHF"
    assert (
        "Saved"
        in run(programs["Covariance"], InpSymbols=symbols, InpBars=3000, DATA=h1_folder, **settings).text
    )
    assert "Worker" in run(programs["Multiply"], InpRows=33, InpInner=65, InpCols=17, **settings).text
    actions = "connect,ping,multiply,gram,covariance,correlation,nan,wrong,matrix_multiply,matrix_covariance"
    assert "matrix_covariance: ok" in run(programs["ClientProbe"], InpActions=actions, **settings).text
    with peers.Peer(
        peers.talker(lambda n: peers.message(b"", peers.head(4, n, peers.RESULT), b"", bytes(71)))
    ) as peer:
        assert "71 bytes" in run(programs["ClientProbe"], **{**settings, "InpPort": peer.port}).text
    head = peers.head(4, 99, ((8, 2, (2, 3), 48), (9, 3, (3,), 24)))
    assert "taken" in run(programs["CodecProbe"], InpMode="fuzz", InpHex=head.hex(), InpRounds=5000).text


def test_every_error_that_the_page_explains_is_a_message_of_the_sources() -> None:
    page = (build.ROOT / "docs" / "mt5-setup.md").read_text(encoding="utf-8")
    rows = page.split("## What an error means")[1].split("## ")[0]
    begins = re.findall(r"^\| `([^`]+)`", rows, re.MULTILINE)
    texts = "\n".join(source.read_text(encoding="ascii") for source in SOURCES)
    assert len(begins) > 10
    assert [words for words in begins if words not in texts] == []
