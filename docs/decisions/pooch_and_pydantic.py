"""Hold pooch against `download`, and pydantic against the validators: what docs/decisions.md tells of.

In an environment of its own: `pip install pooch pydantic pyyaml tqdm`, then
`PYTHONPATH=src python docs/decisions/pooch_and_pydantic.py`.
"""

import contextlib
import hashlib
import inspect
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pooch
import pydantic

from xsoftmax.data import typed_values
from xsoftmax.data.config import Archive, DatasetConfig, Source, load_config
from xsoftmax.data.download import download
from xsoftmax.data.fetch import Patience
from xsoftmax.internal.errors import suggestion

CONTENT = bytes(range(256)) * 4000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def packed(name: str, content: bytes) -> bytes:
    """Pack one file into a tar."""
    text = io.BytesIO()
    with tarfile.open(fileobj=text, mode="w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return text.getvalue()


FILES = {
    "whole": CONTENT,
    "cut": CONTENT,
    "page": b"<!doctype html><title>Please log in</title>",
    "outside.tar.gz": packed("../../escaped", b"x"),
    "bomb.tar.gz": packed("zeros", bytes(2**24)),
}


class Handler(BaseHTTPRequestHandler):
    """``cut`` ends the first half of every whole answer; other addresses give their file."""

    sent = 0

    def do_GET(self) -> None:
        """Answer, from where Range says."""
        name = self.path.lstrip("/").partition("?")[0]
        content, start = FILES.get(name), int(re.sub(r"\D", "", self.headers.get("Range", "0")))
        if content is None:
            self.send_error(404)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        given = content[start : len(content) // 2] if name == "cut" and not start else content[start:]
        Handler.sent += len(given)
        self.wfile.write(given)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def outcome(action: Callable[[], Any]) -> str:
    """Tell how an action ended, how many bytes it asked for and how long it took."""
    Handler.sent, begin = 0, time.perf_counter()
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            action()
        said = "done"
    except Exception as error:  # noqa: BLE001 - whatever a library raises is what is compared
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return f"{said[:400]}  [{Handler.sent:,} bytes, {time.perf_counter() - begin:.1f} s]"


def downloads(address: str, folder: Path) -> None:
    """Compare what becomes of files that are not what they should be."""
    pooch.get_logger().setLevel("ERROR")

    def by_pooch(url: str, sha256: str | None, **more: Any) -> str:
        to, name = Path(tempfile.mkdtemp(dir=folder)) / "in" / "here", url.rsplit("/")[-1].split("?")[0]
        theirs = pooch.create(to, address, registry={name: sha256}, urls={name: url}, retry_if_failed=1)
        found = outcome(lambda: theirs.fetch(name, **more))
        return found + ("  and lies outside the target" if list(to.parents[1].rglob("escaped")) else "")

    def by_us(*urls: str, sha256: str | None = SHA256, **more: Any) -> str:
        to = Path(tempfile.mkdtemp(dir=folder)) / "in" / "here"
        to.parent.mkdir()
        source = Source(urls[0].rsplit("/")[-1].split("?")[0], urls, sha256=sha256, **more)
        config = DatasetConfig("toy", "table", files=(source,), folder=to.parent)
        return outcome(lambda: download(config, to, patience=Patience(attempts=2, pause=0.1)))

    cases: list[tuple[str, Callable[[], str], Callable[[], str]]] = [
        ("a connection that ends half-way", lambda: by_pooch(f"{address}/cut", SHA256),
         lambda: by_us(f"{address}/cut")),
        ("a log-in page, no checksum known", lambda: by_pooch(f"{address}/page", None),
         lambda: by_us(f"{address}/page", sha256=None)),
        ("the first address is gone", lambda: by_pooch(f"{address}/gone", SHA256),
         lambda: by_us(f"{address}/gone", f"{address}/whole")),
        ("a token in an address that fails", lambda: by_pooch(f"{address}/gone?token=SECRET", SHA256),
         lambda: by_us(f"{address}/gone?token=SECRET")),
        ("a tar with ../../escaped", lambda: by_pooch(f"{address}/outside.tar.gz", None, processor=pooch.Untar()),
         lambda: by_us(f"{address}/outside.tar.gz", sha256=None, archive=Archive())),
        ("16 MB out of 16 kB, 1 MB allowed",
         lambda: by_pooch(f"{address}/bomb.tar.gz", None, processor=pooch.Untar()),
         lambda: by_us(f"{address}/bomb.tar.gz", sha256=None, archive=Archive(max_bytes=2**20))),
    ]  # fmt: skip
    for name, theirs, ours in cases:
        print(f"\n{name}\n  pooch  {theirs()}\n  ours   {ours()}")


def _default(field: Field) -> Any:
    if field.default_factory is not MISSING:
        return pydantic.Field(default_factory=field.default_factory)
    return ... if field.default is MISSING else field.default


def strict(hint: Any) -> Any:
    """Give a type of ours as pydantic has to be told it, for the same to pass: numbers finite, from 0 on."""
    if hint in (int, float):
        return Annotated[hint, pydantic.Field(ge=0, allow_inf_nan=False)]
    if is_dataclass(hint) and isinstance(hint, type):
        hints, options = get_type_hints(hint), pydantic.ConfigDict(extra="forbid", strict=True)
        given: Any = {each.name: (strict(hints[each.name]), _default(each)) for each in fields(hint)}
        return pydantic.create_model(hint.__name__, __config__=options, **given)
    if get_origin(hint) is UnionType:
        return Union[tuple(strict(each) for each in get_args(hint))]  # noqa: UP007 - made while it runs
    if get_origin(hint) is dict:
        return dict[get_args(hint)[0], strict(get_args(hint)[1])]  # type: ignore[misc]
    if get_origin(hint) is tuple:
        return tuple[strict(get_args(hint)[0]), ...]
    return hint


WORDS = {
    "int": "a whole number", "float": "a number", "string": "text", "bool": "true or false", "tuple": "a list",
    "model": "keys and values", "dict": "keys and values", "list": "a list",
}  # fmt: skip


def in_our_words(model: Any, error: pydantic.ValidationError) -> str:
    """Say the first thing that is wrong as ours do: what was found, and what is known or expected."""
    first = error.errors()[0]
    places = [place for place in first["loc"] if place != "[key]"]
    key = "".join(f"[{place}]" if isinstance(place, int) else f".{place}" for place in places).lstrip(".")
    kind, value = first["type"], first["input"]
    if kind == "extra_forbidden":
        for place in places[:-1]:
            inner = model if isinstance(place, int) else model.model_fields[place].annotation
            while not hasattr(inner, "model_fields"):
                inner = next(each for each in get_args(inner) if each is not type(None))
            model = inner
        return f"unknown key '{key}'; {suggestion(str(places[-1]), sorted(model.model_fields))}"
    if kind == "literal_error":
        return f"{key}: {value!r} is not one of {first['ctx']['expected']}"
    if kind in ("greater_than_equal", "finite_number"):
        return f"{key}: {value} is {'negative' if value < 0 else 'no finite number'}"
    return f"{key}: expected {WORDS[kind.split('_')[0]]}, found {value!r:.60}"


WRONG = [
    "labels: second", "max_features: -1", "max_features: many", "title: [a]", "colour: red", "text: {min_dff: 3}",
    "split: {validation: .nan}", "files: [{urls: here}]", "split: {keep_classes: 1}", "expect: {row: 3}", "text: 3",
]  # fmt: skip


def validators(folder: Path) -> None:
    """Compare what is said of descriptions of data sets that are wrong."""
    import yaml

    model = strict(DatasetConfig)
    for line in WRONG:
        text = f"name: own\nformat: table\n{line}\n"
        (folder / "own.yaml").write_text(text)
        try:
            model.model_validate_json(json.dumps(yaml.safe_load(text)), strict=True)
            theirs = "(accepted)"
        except pydantic.ValidationError as error:
            theirs = " | ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
            theirs += f"\n    translated  {in_our_words(model, error)}"
        try:
            load_config(folder / "own.yaml")
            ours = "(accepted)"
        except ValueError as error:
            ours = str(error).replace(f"{folder}/", "")
        print(f"\n{line}\n  pydantic  {theirs}\n  ours      {ours}")


def seconds_to_import(statement: str) -> float:
    """Time an import in a fresh process, the fastest of seven."""
    program = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", program]
    return min(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(7))


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Serve the files."""
    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{serving.server_port}"
    serving.shutdown()


def main() -> None:
    """Print all of it."""
    print(f"pooch {pooch.__version__}, pydantic {pydantic.VERSION}, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as name, server() as address:
        downloads(address, Path(name))
        validators(Path(name))
    ours = [getattr(typed_values, name) for name in ("build", "_value", "_mapping", "_scalar", "short")]
    for name, functions in (("ours", ours), ("around pydantic, beside WORDS", [strict, _default, in_our_words])):
        n_lines = sum(len(inspect.getsource(each).splitlines()) for each in functions)
        print(f"\nlines that check types, {name}: {n_lines}")
    print("\nto import, in ms")
    for statement in (
        "import xsoftmax.data.download",
        "import pooch, requests",
        "import xsoftmax.data.config",
        "import pydantic; pydantic.BaseModel",
        "import pydantic; pydantic.create_model('M', **{f'f{i}': (int, 0) for i in range(40)})",
    ):
        print(f"  {1000 * seconds_to_import(statement):6.0f}  {statement}")


if __name__ == "__main__":
    main()
