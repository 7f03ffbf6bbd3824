"""`xsoftmax serve`: real processes on loopback, at ports that the system chooses."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest

from serving.models import model_of, rows_of, server
from xsoftmax.cli import main
from xsoftmax.evaluation.prediction import top_k
from xsoftmax.model import Model, load_model, save_model

N_CLASSES, N_FEATURES = 20_000, 64  # 5 MB of weights


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A model of dense rows, large enough for its pages to be counted."""
    path, rng = tmp_path_factory.mktemp("served") / "model.h5", np.random.default_rng(0)
    W = rng.standard_normal((N_CLASSES, N_FEATURES), dtype=np.float32)
    attributes = {"status": "finished", "dataset": "here", "method": "mine"}
    save_model(Model(W, [f"class {k}" for k in range(N_CLASSES)], N_FEATURES, attributes=attributes), path)
    return path


@pytest.fixture(scope="module")
def two(path):
    """A server of two workers, whose requests wait but shortly."""
    with server(path, "--workers", 2, "--max-body", 200_000, "--max-rows", 100) as running:
        yield running


def rows(n, seed=0):
    return np.random.default_rng(seed).standard_normal((n, N_FEATURES)).round(3).astype(np.float32)


def ask(client, X, **others):
    content = {"rows": [[float(f"{value:.3f}") for value in row] for row in X], **others}
    return client.post("/predict", json=content)


def workers_of(program):
    return psutil.Process(program.pid).children()


def test_clients_at_once_get_what_the_model_says(two, path):
    """Forty clients, whose requests are answered in batches by two processes."""
    _, client = two
    model = load_model(path)
    batches = [rows(1 + seed % 3, seed) for seed in range(40)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda X: ask(client, X, top=3), batches))
    for X, answer in zip(batches, answers, strict=True):
        assert answer.status_code == 200, answer.text
        expected = top_k(model, X, 3)
        found = [[each["class"] for each in row["classes"]] for row in answer.json()["rows"]]
        assert found == [[model.class_names[k] for k in row] for row in expected.classes]
        shares = [[each["probability"] for each in row["classes"]] for row in answer.json()["rows"]]
        np.testing.assert_allclose(shares, expected.probabilities, rtol=1e-4)


def test_workers_share_the_weights(two, path):
    """Of the pages of the model's file that a worker has in memory, none is its own."""
    program, client = two
    for _ in range(200):  # which worker a new connection goes to is the system's choice: until both have read weights
        with httpx.Client(base_url=client.base_url) as another:
            assert ask(another, rows(5)).status_code == 200
        found = [_mapped(process.pid, path) for process in workers_of(program)]
        found = [sizes for sizes in found if sizes is not None]
        if all(sizes["Rss"] > sizes["Size"] // 2 for sizes in found):
            break
    assert len(found) == 2
    for sizes in found:
        assert sizes["Size"] >= 4 * N_CLASSES * N_FEATURES // 1024
        assert sizes["Rss"] > sizes["Size"] // 2
        assert sizes["Private_Dirty"] == sizes["Anonymous"] == 0


def _mapped(pid, path):
    """Kilobytes of the largest map of a file, by what `/proc` calls them."""
    found, current = [], None
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            current = {} if line.endswith(str(path)) else None
            found += [] if current is None else [current]
        elif current is not None and line.endswith(" kB"):
            current[line.split(":")[0]] = int(line.split()[1])
    return max(found, key=lambda each: each["Size"], default=None)


def test_it_tells_how_it_is(two):
    _, client = two
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json()["status"] == "ok"
    said = client.get("/model").json()
    assert (said["classes"], said["features"], said["index"]) == (N_CLASSES, N_FEATURES, None)
    assert (said["replaced"], said["problem"]) == (False, None)
    assert client.post("/predict", content=b"{").status_code == 400
    assert ask(client, rows(2)).status_code == 200
    text = client.get("/metrics").text
    assert float(re.search(r'^xsoftmax_requests_total\{status="200"\} (\S+)$', text, re.MULTILINE)[1]) >= 1
    assert float(re.search(r"^xsoftmax_rows_total (\S+)$", text, re.MULTILINE)[1]) >= 2


def test_its_pages_load_nothing_from_elsewhere(two):
    _, client = two
    page = client.get("/docs").text
    assert re.findall(r"(?:src|href)=\"?([^\s\">]+)", page) == ["openapi.json"]
    assert "<script" not in page
    schema = client.get("/openapi.json").json()
    assert set(schema["paths"]) == {"/predict", "/health", "/ready", "/model", "/metrics"}
    assert "rows" in schema["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]["example"]
    assert client.get("/redoc").status_code == 404


def test_refusals_are_json(two):
    _, client = two
    for answer, status, message in (
        (client.get("/"), 404, "GET / is not understood; there are POST /predict; GET /health, "),
        (client.get("/predict"), 405, "GET /predict is not understood"),
        (client.post("/predict", content=b"[1]"), 400, "the request is a list; send an object"),
        (ask(client, rows(1)[:, :3]), 400, "row 0 has 3 numbers, the model 64 columns"),
        (ask(client, rows(101)), 413, "101 rows; send 100 at most"),
        (client.post("/predict", content=b"x" * 200_001), 413, "the request has more than 200000 bytes; send fewer"),
        (client.post("/predict", content=iter([b"x" * 100_000] * 3)), 413, "more than 200000 bytes"),
    ):
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/json"
        assert message in answer.json()["error"]


@pytest.mark.fault(
    "a worker of a server killed",
    happens="another takes its place; what the killed one was answering is lost, all else is answered",
    user="`warning: a worker ended by signal 9 (SIGKILL); another takes its place`; a client of it sees its "
    "connection closed",
    lost="requests that the worker was answering",
)
def test_a_killed_worker_is_replaced(path):
    with server(path, "--workers", 2) as (program, client):
        ask(client, rows(1))
        (first, *_) = workers_of(program)
        first.kill()
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and (first.pid in _pids(program) or len(_pids(program)) < 2):
            time.sleep(0.05)
        assert len(_pids(program)) == 2
        for seed in range(10):
            with httpx.Client(base_url=client.base_url, timeout=60) as another:
                assert ask(another, rows(1, seed)).status_code == 200
        program.terminate()
        assert program.wait(30) == 0
        assert "warning: a worker ended by signal 9 (SIGKILL); another takes its place" in program.stderr.read()


def _pids(program):
    return [process.pid for process in workers_of(program) if process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.long_cases
@pytest.mark.fault(
    "SIGTERM, or Ctrl-C, of a server that is answering",
    happens="it lets nobody new in, answers what has begun, and ends with status 0",
    user="`stopped: requests that had begun were answered`",
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_gracefully(path, number):
    body = json.dumps({"rows": rows(3).tolist()}).encode()
    with server(path) as (program, client):
        host, port = client.base_url.host, client.base_url.port
        with socket.create_connection((host, port), timeout=60) as connection:
            head = f"POST /predict HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body[:100])
            time.sleep(0.5)
            program.send_signal(number)
            time.sleep(0.5)  # it has begun, and the rest of it is still to come
            connection.sendall(body[100:])
            assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
        assert program.wait(30) == 0
        assert program.stderr.read().splitlines() == ["stopped: requests that had begun were answered"]
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{client.base_url}/health")


@pytest.mark.fault(
    "the first process of a server killed",
    happens="its workers see it, answer what has begun, and end",
    user="connections are refused",
    lost="nothing",
)
def test_workers_end_with_the_first_process(path):
    with server(path, "--workers", 2) as (program, _):
        found = workers_of(program)
        program.kill()
        gone, alive = psutil.wait_procs(found, timeout=30)
        assert (len(gone), alive) == (2, [])


@pytest.mark.fault(
    "a model's file cut short under the pages that a server has mapped",
    happens="a worker that reads beyond its end is killed by the system and replaced; the others refuse",
    user='status 503, `{"error": "model.h5 was changed in place while it is served; …"}`',
    lost="requests that the worker was answering",
)
def test_a_model_cut_short_ends_no_server(tmp_path):
    save_model(model_of("dense", n_classes=5000), tmp_path / "model.h5")
    with server(tmp_path / "model.h5") as (program, client):
        content = rows_of("dense")[0]
        assert client.post("/predict", json=content).status_code == 200
        os.truncate(tmp_path / "model.h5", 4096)
        answer = client.post("/predict", json=content)
        assert answer.status_code == 503
        assert "model.h5 was changed in place while it is served" in answer.json()["error"]
        assert client.get("/ready").status_code == 503
        assert client.get("/health").status_code == 200
        assert program.poll() is None


@pytest.mark.fault(
    "workers of a server that die as soon as they begin",
    happens="after three more that do so, the server ends",
    user="`error: workers die as soon as they begin (last: status 3); look at what they say`",
)
def test_workers_that_cannot_live_are_not_begun_for_ever():
    code = """
import os
from xsoftmax.serving.workers import supervise
supervise(lambda: os._exit(3), 1, lambda: None, lambda pid: None)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert "workers die as soon as they begin (last: status 3); look at what they say" in ended.stderr
    assert ended.stderr.count("another takes its place") == 3


WRONG = [
    (["none.h5"], "none.h5: no such file; give the model.h5 of a fit, or train it again"),
    (["model.h5", "--port", "99999"], "--port is 99999; set it to a number from 0, any that is free, to 65535"),
    (["model.h5", "--host", "nowhere.invalid"], "--host is 'nowhere.invalid', which is no address"),
    (["model.h5", "--host", "203.0.113.7"], "203.0.113.7 cannot be listened at"),
    (["model.h5", "--workers", "0"], "--workers is 0; set it to a number from 1 to 256"),
    (["model.h5", "--threads", "0"], "threads is 0; set it to 1 or more"),
    (["model.h5", "--gather", "-1"], "--gather is -1; set it to milliseconds from 0 to 1000"),
    (["model.h5", "--max-rows", "0"], "--max-rows is 0; set it above 0"),
    (["model.h5", "--probes", "3"], "--probes is 3, and there is no index; name one with --index"),
    (["model.h5", "--index", "ivf", "--probes", "0"], "--probes is 0; set it to 1 or more"),
]


@pytest.mark.parametrize(("words", "message"), WRONG, ids=[message[:20] for _, message in WRONG])
def test_wrong_calls_are_told_in_a_line(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save_model(model_of("dense"), tmp_path / "model.h5")
    assert main(["serve", *words, *([] if "--port" in words else ["--port", "0"])]) == 1
    said = capsys.readouterr().err.splitlines()
    assert message in said[-1]
    assert said[-1].startswith("error: ")


@pytest.mark.fault(
    "a port that another program listens at",
    happens="nothing is loaded",
    user="`error: port … of 127.0.0.1 is in use; choose another with --port, 0 for any that is free`",
)
def test_a_port_in_use_is_told(two, path, capsys):
    _, client = two
    assert main(["serve", str(path), "--port", str(client.base_url.port)]) == 1
    message = f"error: port {client.base_url.port} of 127.0.0.1 is in use; choose another with --port, 0 for any"
    assert message in capsys.readouterr().err


def test_a_damaged_model_is_not_served(tmp_path, capsys):
    save_model(model_of("dense"), tmp_path / "model.h5")
    content = bytearray((tmp_path / "model.h5").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "model.h5").write_bytes(content)
    assert main(["serve", str(tmp_path / "model.h5"), "--port", "0"]) == 1
    assert "damaged: its content does not have the SHA-256" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn", "prometheus_client"])
def test_a_missing_extra_is_told(missing, tmp_path):
    code = f"import sys; sys.modules[{missing!r}] = None; from xsoftmax.cli import main; sys.exit(main(sys.argv[1:]))"
    save_model(model_of("dense"), tmp_path / "model.h5")
    words = [sys.executable, "-c", code, "serve", str(tmp_path / "model.h5"), "--port", "0"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == (
        f"error: {missing} is not installed, which this needs; type: pip install 'xsoftmax[serve]'\n"
    )


def test_a_model_of_texts_with_an_address_of_ipv6(tmp_path):
    """What curl sends by itself is a form, and is read as JSON all the same."""
    save_model(model_of("texts"), tmp_path / "model.h5")
    command = [sys.executable, "-m", "xsoftmax", "serve", tmp_path / "model.h5", "--port", "0", "--host", "::1"]
    program = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = program.stdout.readline()
        if not line and "cannot be listened at" in program.stderr.read():
            pytest.skip("no IPv6 here")
        form = {"content-type": "application/x-www-form-urlencoded"}
        body = json.dumps(rows_of("texts")[0] | {"top": 1}).encode()
        answer = httpx.post(line.partition(": ")[0] + "/predict", content=body, headers=form)
        assert len(answer.json()["rows"]) == 3
        assert answer.json()["rows"][0]["classes"][0]["class"].startswith("class ")
        lines = "\r\n".join(rows_of("texts")[0]["texts"]) + "\n"
        plain = httpx.post(answer.url, content=lines.encode(), headers={"content-type": "text/plain; charset=utf-8"})
        assert [row["classes"][0] for row in plain.json()["rows"]] == [
            row["classes"][0] for row in answer.json()["rows"]
        ]
        broken = httpx.post(answer.url, content=b"\xff", headers={"content-type": "text/plain"})
        assert (broken.status_code, "not UTF-8" in broken.json()["error"]) == (400, True)
    finally:
        program.terminate()
        program.wait()
