"""`igniter serve`: the protocol, the batches, a server in this process, and model repositories."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from google.protobuf import text_format
from onnx import TensorProto, helper

import igniter
from igniter.errors import IgniterError
from igniter.toolbox.serve.batching import Batcher, Full
from igniter.toolbox.serve.here import application
from igniter.toolbox.serve.model import ServedModel
from igniter.toolbox.serve.protocol import HEADER_LENGTH, InferRequest, decode, encode, request_of, response_of
from igniter.toolbox.serve.repository import write_repository
from igniter.toolbox.serve.request import ServeRequest
from igniter.toolbox.serve.settings import Settings
from igniter.toolbox.serve.show import run
from igniter.toolbox.serve.tensors import DATATYPES, BadRequest, Tensor, dtype_of

VALUES: dict[str, Any] = {
    "BOOL": [True, False, True],
    "BYTES": ["", "grün", "a b"],
    "FP16": [0.5, -2.0, np.inf],
    "BF16": [0.5, -2.0, np.nan],
    "FP32": [0.1, -0.0, np.inf],
    "FP64": [0.1, -1e300, np.nan],
}


def array_of(datatype: str) -> np.ndarray[Any, Any]:
    """Three values of a type: extremes of integers."""
    dtype = dtype_of(datatype)
    if datatype in VALUES:
        return np.array(VALUES[datatype], dtype)
    limits = np.iinfo(dtype)
    return np.array([limits.min, 1, limits.max], dtype)


def same(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """True if two arrays have one type, one shape and the same values, bit by bit."""
    return (
        one.dtype == other.dtype and one.shape == other.shape and one.tolist().__repr__() == other.tolist().__repr__()
    )


def model_of(path: Path, rows: str | int = "n", mixes: bool = False) -> Path:
    """y = softmax(x W), over the rows of the batch if it mixes them."""
    weights = np.random.default_rng(3).standard_normal((8, 5)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Softmax", ["h"], ["y"], axis=0 if mixes else 1),
    ]
    graph = helper.make_graph(
        nodes,
        "served",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, 5])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    igniter.compile(model_of(folder / "model.onnx"), folder / "model.igniter", verify=False)
    return folder / "model.igniter"


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("datatype", DATATYPES.values())
def test_tensors_of_every_type_arrive_as_they_were_sent(datatype: str, binary: bool):
    array = array_of(datatype).reshape(3, 1)
    tensor = Tensor("x", datatype, ("n", 1))
    body, headers = request_of({"x": array}, [tensor], binary=binary)
    asked = decode(body, headers.get(HEADER_LENGTH), [tensor], [tensor])
    assert same(asked.feed["x"], array)
    body, headers = encode("m", asked, [tensor], asked.feed)
    assert same(response_of(body, headers.get(HEADER_LENGTH))["x"], array)


def test_a_nested_list_is_row_major_and_an_empty_tensor_has_no_elements():
    tensor = Tensor("x", "INT32", ("n", 2))
    for data, shape in (([[1, 2], [3, 4]], [2, 2]), ([], [0, 2])):
        body = json.dumps({"inputs": [{"name": "x", "datatype": "INT32", "shape": shape, "data": data}]}).encode()
        found = decode(body, None, [tensor], []).feed["x"]
        np.testing.assert_array_equal(found, np.array(data, np.int32).reshape(shape), strict=True)


GOOD = {"name": "x", "datatype": "INT8", "shape": [2], "data": [1, 2]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"datatype": "INT4"}, "there is no datatype 'INT4'"),
        ({"datatype": "INT16"}, "input 'x' is INT8, not int16"),
        ({"shape": [3]}, "'x' has 2 elements; its shape [3] has 3"),
        ({"shape": [-1]}, "not a list of sizes"),
        ({"shape": [2, 1]}, "input 'x' has the shape [-1], not [2, 1]"),
        ({"data": [1, "a"]}, "are not all of its datatype"),
        ({"data": [1, 1.5]}, "are not all of its datatype"),
        ({"data": [1, True]}, "are not all of its datatype"),
        ({"data": [1, 300]}, "the data of 'x'"),
        ({"data": None}, "neither 'data' nor a binary_data_size"),
        ({"parameters": {"binary_data_size": 9}}, "0 bytes are left"),
        ({"name": "y"}, "'x' is missing, 'y' is unknown"),
        ({"name": 3}, "an input has no 'name'"),
    ],
)
def test_a_wrong_tensor_is_named(change: dict[str, Any], said: str):
    with pytest.raises(BadRequest) as error:
        decode(json.dumps({"inputs": [GOOD | change]}).encode(), None, [Tensor("x", "INT8", ("n",))], [])
    assert said in error.value.message


@pytest.mark.parametrize(
    ("body", "length", "said"),
    [
        (b"{", None, "not JSON"),
        (b"[]", None, "not a JSON object"),
        (b"{}", None, "'inputs' is missing"),
        (b"{}", "9", "the body has 2 bytes"),
        (b"{}", "-1", "the body has 2 bytes"),
        (json.dumps({"inputs": [GOOD]}).encode() + b"??", "71", "2 bytes follow the last tensor"),
        (json.dumps({"inputs": [GOOD, GOOD]}).encode(), None, "'x' is there twice"),
        (json.dumps({"inputs": [GOOD], "outputs": [{"name": "z"}]}).encode(), None, "there is no output 'z'"),
    ],
)
def test_a_wrong_request_is_named(body: bytes, length: str | None, said: str):
    if length == "71":
        length = str(len(body) - 2)
    with pytest.raises(BadRequest) as error:
        decode(body, length, [Tensor("x", "INT8", ("n",))], [Tensor("y", "INT8", ("n",))])
    assert said in error.value.message


def test_bytes_that_end_within_a_string_are_an_error():
    for data, said in ((b"\x01\x00", "within the length"), (b"\x05\x00\x00\x00ab", "within a string")):
        entry = {"name": "x", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": len(data)}}
        text = json.dumps({"inputs": [entry]}).encode()
        with pytest.raises(BadRequest, match=said):
            decode(text + data, str(len(text)), [Tensor("x", "BYTES", ("n",))], [])


def doubled(calls: list[int], fails: float | None = None) -> Any:
    async def run_it(feed: Any) -> dict[str, Any]:
        calls.append(len(feed["x"]))
        await asyncio.sleep(0.01)
        if fails is not None and np.any(feed["x"] == fails):
            raise BadRequest("this value is not taken")
        return {"y": feed["x"] * 2}

    return run_it


def test_requests_that_wait_run_as_one_batch_and_each_gets_its_rows():
    calls: list[int] = []

    async def ask() -> list[Any]:
        batcher = Batcher(doubled(calls), most=8)
        return await asyncio.gather(*(batcher({"x": np.full((rows, 2), rows)}) for rows in (1, 2, 3, 4, 5)))

    for rows, found in zip((1, 2, 3, 4, 5), asyncio.run(ask()), strict=True):
        np.testing.assert_array_equal(found["y"], np.full((rows, 2), 2 * rows))
    assert calls == [1, 5, 4, 5]


def test_requests_of_other_dims_are_not_joined():
    calls: list[int] = []

    async def ask() -> list[Any]:
        batcher = Batcher(doubled(calls), most=8)
        return await asyncio.gather(*(batcher({"x": np.ones((1, n))}) for n in (2, 3, 2, 3)))

    assert [found["y"].shape for found in asyncio.run(ask())] == [(1, 2), (1, 3), (1, 2), (1, 3)]
    assert sorted(calls) == [1, 1, 1, 1] or sorted(calls) == [1, 1, 2]


def test_a_request_that_fails_does_not_fail_those_in_its_batch():
    async def ask() -> list[Any]:
        batcher = Batcher(doubled([], fails=13), most=8, wait=0.02)
        return await asyncio.gather(*(batcher({"x": np.array([[v]])}) for v in (1, 13, 3)), return_exceptions=True)

    one, bad, three = asyncio.run(ask())
    assert one["y"] == 2 and three["y"] == 6 and isinstance(bad, BadRequest)


def test_a_full_queue_refuses():
    async def ask() -> list[Any]:
        batcher = Batcher(doubled([]), queue=2)
        return await asyncio.gather(*(batcher({"x": np.ones((1, 1))}) for _ in range(5)), return_exceptions=True)

    assert sum(isinstance(each, Full) for each in asyncio.run(ask())) == 2


class Server:
    """A server of a model in a thread."""

    def __init__(self, model: ServedModel, settings: Settings):
        uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra `serve`)")
        config = uvicorn.Config(application(model, settings), port=0, log_level="error", lifespan="off")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            assert self.thread.is_alive()
            self.thread.join(0.01)
        self.address = f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}"

    def get(self, path: str) -> tuple[int, Any]:
        return self._ask(urllib.request.Request(self.address + path))

    def post(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
        return self._ask(urllib.request.Request(self.address + path, body, headers, method="POST"))

    def _ask(self, request: urllib.request.Request) -> tuple[int, Any]:
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                data, length = response.read(), response.headers.get(HEADER_LENGTH)
                if request.get_method() == "POST":
                    return response.status, response_of(data, length)
                return response.status, data.decode() if request.full_url.endswith("metrics") else json.loads(data)
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())["error"]


@pytest.fixture
def server(compiled: Path) -> Iterator[Server]:
    made = Server(ServedModel(compiled, threads=1), Settings("net", batch=4))
    yield made
    made.server.should_exit = True
    made.thread.join(30)


@pytest.mark.parametrize("binary", [False, True])
def test_a_server_answers_what_a_session_does(server: Server, compiled: Path, binary: bool):
    model = ServedModel(compiled, threads=1)
    for rows in (1, 3, 0):
        feed = {"x": np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)}
        status, found = server.post("/v2/models/net/infer", *request_of(feed, model.inputs, binary=binary))
        assert status == 200
        np.testing.assert_array_equal(found["y"], model.run(feed)["y"], strict=True)


def test_many_clients_at_once_get_their_own_results(server: Server, compiled: Path):
    model, wrong = ServedModel(compiled, threads=1), list[str]()

    def client(seed: int) -> None:
        for i in range(10):
            feed = {"x": np.random.default_rng((seed, i)).standard_normal((1 + i % 3, 8)).astype(np.float32)}
            status, found = server.post("/v2/models/net/infer", *request_of(feed, model.inputs))
            if status != 200 or not np.allclose(found["y"], model.run(feed)["y"], rtol=1e-5):
                wrong.append(f"client {seed}, request {i}: {status}")

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert 'igniter_requests_total{model="net",status="200"} 60.0' in server.get("/metrics")[1]


def test_metadata_health_and_what_is_not_there(server: Server):
    assert server.get("/v2/health/live") == (200, {"live": True})
    assert server.get("/v2/health/ready") == (200, {"ready": True})
    status, told = server.get("/v2/models/net/versions/1")
    assert status == 200 and told["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 8]}]
    assert server.get("/v2/models/other") == (404, "there is no model 'other'; this server has 'net'")
    assert server.get("/v2/models/net/versions/2")[0] == 404
    assert server.get("/v1")[0] == 404
    status, said = server.post("/v2/models/net/infer", b"{}", {})
    assert (status, said) == (400, "'inputs' is missing, or is not a list of objects")


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_above_the_limit_is_not_read(compiled: Path, announced: bool):
    """Whether the client says the length at the start, or sends chunks."""
    made = Server(ServedModel(compiled, threads=1), Settings("net", max_request=1000))
    sent = list[int]()

    def chunks() -> Iterator[bytes]:
        for i in range(1 << 16):
            sent.append(i)
            yield b" " * (1 << 16)

    body: Any = b" " * 1001 if announced else chunks()
    connection = http.client.HTTPConnection(made.address.removeprefix("http://"), timeout=60)
    try:
        with contextlib.suppress(ConnectionError):  # the server may close before the client has sent everything
            connection.request("POST", "/v2/models/net/infer", body)
        if announced:
            response = connection.getresponse()
            said = json.loads(response.read())["error"]
            assert (response.status, said) == (413, "the request is larger than 1,000 bytes, the limit of this server")
        assert len(sent) < 1 << 15
        small = request_of({"x": np.ones((1, 8), np.float32)}, ServedModel(compiled).inputs)
        assert made.post("/v2/models/net/infer", *small)[0] == 200
        assert 'igniter_requests_total{model="net",status="413"} 1.0' in made.get("/metrics")[1]
    finally:
        connection.close()
        made.server.should_exit = True
        made.thread.join(30)


def test_a_model_that_mixes_the_batch_is_not_served_in_batches(tmp_path: Path):
    mixing = ServedModel(model_of(tmp_path / "mixing.onnx", mixes=True))
    with pytest.raises(IgniterError, match="mixes the elements of a batch"):
        mixing.check_batching({})
    fixed = ServedModel(model_of(tmp_path / "fixed.onnx", rows=2))
    with pytest.raises(IgniterError, match="the first dim of 'x' is not symbolic"):
        fixed.check_batching({})
    ServedModel(model_of(tmp_path / "rows.onnx")).check_batching({})


def test_options_without_effect_are_errors(compiled: Path, tmp_path: Path):
    for given, said in (
        ({"at": "/m"}, "--at has no effect for a model in this process; it is for a repository"),
        ({"items": 5}, "--items has no effect"),
        ({"wait": 3.0}, "give --batch"),
        ({"triton": str(tmp_path), "port": 3}, "--port has no effect for a repository"),
        ({"ray": "local", "detach": True}, "--detach and --ray local do not go together"),
        ({"name": "a/b"}, "cannot be the name of a model"),
    ):
        with pytest.raises(IgniterError, match=said):
            run(ServeRequest(str(compiled), **given))


def parsed(text: str) -> dict[str, list[str]]:
    """The fields of a `config.pbtxt` by protobuf's own tokenizer, to see that the text is well-formed."""
    tokens, found, depth = text_format.Tokenizer(text.splitlines()), dict[str, list[str]](), list[str]()
    while not tokens.AtEnd():
        token = tokens.token
        if token in "{[":
            depth.append(token)
        elif token in "}]":
            assert {"{": "}", "[": "]"}[depth.pop()] == token
        found.setdefault(token, []).append(token)
        tokens.NextToken()
    assert not depth
    return found


def test_a_repository_names_the_library_by_its_path_on_the_server(compiled: Path, tmp_path: Path):
    library = next(compiled.glob("*.so")).name
    settings = Settings("net", threads=2, batch=8, wait_ms=1.5, replicas=3)
    written = write_repository(compiled, tmp_path / "repository", "/srv/models", settings)
    text = (written / "config.pbtxt").read_text()
    assert f'"/srv/models/net/1/{library}"' in text and "max_batch_size: 8" in text
    assert "dims: [ 8 ]" in text and "max_queue_delay_microseconds: 1500" in text and "count: 3" in text
    tokens = parsed(text)
    assert {"name", "backend", "input", "output", "model_operations", "dynamic_batching"} <= set(tokens)
    # What ONNX Runtime does with the folder, as the backend would.
    feed = {"x": np.ones((2, 8), np.float32)}
    options = __import__("onnxruntime").SessionOptions()
    options.register_custom_ops_library(str(written / "1" / library))
    session = __import__("onnxruntime").InferenceSession(str(written / "1" / "model.onnx"), options)
    np.testing.assert_array_equal(session.run(None, feed)[0], ServedModel(compiled).run(feed)["y"])
    assert write_repository(compiled, tmp_path / "repository", "/srv/models", Settings("net")) == written
    assert "max_batch_size: 0" in (written / "config.pbtxt").read_text()
    assert sorted(p.name for p in (tmp_path / "repository").iterdir()) == ["net"]


def test_a_repository_overwrites_nothing_else(compiled: Path, tmp_path: Path):
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "notes").write_text("mine")
    with pytest.raises(IgniterError, match="is no model of a repository"):
        write_repository(compiled, tmp_path, "/models", Settings("net"))
    assert (tmp_path / "net" / "notes").read_text() == "mine"
    with pytest.raises(IgniterError, match="absolute"):
        write_repository(compiled, tmp_path, "models", Settings("other"))


def test_values_of_sixteen_bits_are_numbers_in_json():
    request = InferRequest("", {}, {"y": False})
    body, _ = encode("m", request, [Tensor("y", "BF16", (2,))], {"y": np.array([0.5, 3.0], ml_dtypes.bfloat16)})
    assert json.loads(body)["outputs"][0]["data"] == [0.5, 3.0]
