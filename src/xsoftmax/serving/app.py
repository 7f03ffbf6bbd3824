"""The application: what is answered at which path. FastAPI and prometheus_client are of the extra [serve]."""

import asyncio
import html
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

import xsoftmax
from xsoftmax.data.rows import Form
from xsoftmax.internal.errors import InputError, as_line
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.serving.batches import Batcher
from xsoftmax.serving.measures import Measures
from xsoftmax.serving.request_rows import RequestError
from xsoftmax.serving.requests import Asked, Limits, example, read_request, read_texts
from xsoftmax.serving.served import Served

PATHS = "POST /predict; GET /health, /ready, /model, /metrics, /docs, /openapi.json"
# What a client that has gone is answered, which nobody reads.
GONE = 499


class Json(Response):
    """A JSON answer, names of any script as they are."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Write JSON."""
        return json.dumps(content, ensure_ascii=False).encode(errors="surrogatepass")


def make_app(
    served: Served, described: dict[str, Any], limits: Limits, gather: float = 0, n_threads: int = 1
) -> FastAPI:
    """Make the application of a model; ``described`` is what ``/model`` says of it, beside what may change.

    Parameters
    ----------
    served : Served
    described : dict
    limits : Limits
    gather : float
        Seconds that a batch waits for more requests.
    n_threads : int
        That score.
    """
    measures, pool = Measures(), ThreadPool(n_threads)
    batcher = Batcher(partial(_answers, served, measures, pool), limits, gather)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(batcher.run())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    app = FastAPI(
        title="xsoftmax", version=xsoftmax.__version__, lifespan=running, docs_url=None, redoc_url=None
    )  # FastAPI's own pages load scripts from another host
    app.add_exception_handler(HTTPException, _unknown)
    app.add_exception_handler(Exception, _unexpected)
    _add_predict(app, served, batcher, limits, measures)
    _add_facts(app, served, described, batcher, measures)
    return app


def _answers(served: Served, measures: Measures, pool: ThreadPool, asked: Sequence[Asked]) -> list[Any]:
    """Answer a batch; answers are made into JSON here, away from the loop that all connections share."""
    begin = time.perf_counter()
    found = served.answers(asked, pool)
    measures.batch(sum(each.n_rows for each in asked), time.perf_counter() - begin)
    return [each if isinstance(each, Exception) else Json(each) for each in found]


def _add_predict(app: FastAPI, served: Served, batcher: Batcher, limits: Limits, measures: Measures) -> None:
    form = served.form

    @app.post("/predict", summary="The likeliest classes of rows", openapi_extra=_request_body(form, limits))
    async def predict(request: Request) -> Response:
        begin, n_rows = time.perf_counter(), 0
        try:
            body = await _body(request, limits)
            plain = request.headers.get("content-type", "").startswith("text/plain")
            asked = (read_texts if plain else read_request)(body, form, limits)
            n_rows = asked.n_rows
            answer: Response = await batcher.ask(asked)
        except ClientDisconnect:
            answer = Response(status_code=GONE)
        except Exception as error:  # noqa: BLE001 - each is told to whoever asked
            answer = _refusal(error)
        measures.request(answer.status_code, n_rows, time.perf_counter() - begin, batcher.n_waiting)
        return answer


def _add_facts(app: FastAPI, served: Served, described: dict[str, Any], batcher: Batcher, measures: Measures) -> None:
    @app.get("/health", summary="Whether the program runs")
    async def health() -> Response:
        return Json({"status": "ok"})

    @app.get("/ready", summary="Whether it answers")
    async def ready() -> Response:
        said = served.problem()
        return Json({"error": said}, 503) if said else Json({"status": "ok", "waiting": batcher.n_waiting})

    @app.get("/model", summary="What the model is")
    async def model() -> Response:
        return Json(described | {"replaced": served.is_replaced(), "problem": served.problem() or None})

    @app.get("/metrics", summary="Numbers for Prometheus")
    async def metrics() -> Response:
        return Response(*measures.written())

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(_page(app.openapi(), served.form))


async def _body(request: Request, limits: Limits) -> bytes:
    """Read what is sent, up to the limit.

    Raises
    ------
    RequestError
        If it is too much, or does not come.
    """
    too_much = RequestError(f"the request has more than {limits.body} bytes; send fewer rows at a time", 413)
    said = request.headers.get("content-length", "0")
    if not said.isdecimal() or int(said) > limits.body:
        raise too_much
    parts, n_bytes = [], 0
    try:
        async with asyncio.timeout(limits.seconds):
            async for part in request.stream():
                parts.append(part)
                n_bytes += len(part)
                if n_bytes > limits.body:
                    raise too_much
    except TimeoutError:
        raise RequestError(f"the request did not arrive within {limits.seconds:g} s; send it faster", 408) from None
    return b"".join(parts)


def _refusal(error: Exception) -> Response:
    """Say what is wrong; an answer that is worth another try says when."""
    if isinstance(error, RequestError):
        later = {"Retry-After": "1"} if error.status == 503 else None
        return Json({"error": str(error)}, error.status, later)
    if isinstance(error, InputError | MemoryError):  # of what the machine has, not of the request
        return Json({"error": as_line(error)}, 503, {"Retry-After": "1"})
    print(f"error: {as_line(error)}", file=sys.stderr, flush=True)
    return Json({"error": "the server failed; what failed is in its log"}, 500)


async def _unknown(request: Request, error: Exception) -> Response:
    """Say what may be asked."""
    status = getattr(error, "status_code", 404)
    what = f"{request.method} {request.url.path[:80]}"
    said = f"{what} is not understood; there are {PATHS}" if status in (404, 405) else f"{what}: {error}"
    return Json({"error": said}, status, getattr(error, "headers", None))


async def _unexpected(request: Request, error: Exception) -> Response:
    return _refusal(error)


def _request_body(form: Form, limits: Limits) -> dict[str, Any]:
    """Describe a request in OpenAPI."""
    name = "texts" if form.kind == "texts" else "rows"
    item: dict[str, Any] = (
        {"type": "string"} if name == "texts" else {"oneOf": [{"type": "array"}, {"type": "object"}]}
    )
    properties = {
        name: {"type": "array", "items": item, "minItems": 1, "maxItems": limits.rows},
        "top": {"type": "integer", "minimum": 1, "maximum": limits.top},
        "exact": {"type": "boolean", "description": "look at all classes, though there is an index"},
    }
    schema = {"type": "object", "required": [name], "properties": properties, "additionalProperties": False}
    content: dict[str, Any] = {"application/json": {"schema": schema, "example": json.loads(_filled(form))}}
    if name == "texts":
        content["text/plain"] = {"schema": item, "example": "a text\nanother one\n"}
    return {"requestBody": {"required": True, "content": content}}


def _filled(form: Form) -> str:
    return example(form).replace(", ...", "")


def _page(schema: dict[str, Any], form: Form) -> str:
    """Write a page about the paths, which loads nothing from anywhere."""
    rows = "".join(
        f"<tr><td><code>{method.upper()} {path}</code></td><td>{html.escape(said.get('summary', ''))}</td></tr>"
        for path, methods in schema["paths"].items()
        for method, said in methods.items()
    )
    call = f"curl -s http://HOST:PORT/predict -d '{example(form)}'"
    return (
        "<!doctype html><meta charset=utf-8><title>xsoftmax</title>"
        "<style>body{font:1rem sans-serif;max-width:50rem;margin:2rem auto}td{padding:.2rem 1rem}</style>"
        f"<h1>xsoftmax</h1><table>{rows}</table><p>For example:<pre>{html.escape(call)}</pre>"
        "<p>The whole schema is at <a href=openapi.json>openapi.json</a>."
    )
