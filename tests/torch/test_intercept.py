"""What submodules are given: shown, recorded, replayed; each compiled and compared."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'onnx-igniter[torch]'")
pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'onnx-igniter[torch]'")

import igniter.torch  # noqa: E402
from igniter import IgniterError  # noqa: E402
from igniter.torch.trees import decode, encode  # noqa: E402

from .test_backend import Net, randn, same  # noqa: E402


class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Net(), Net()
        self.unused = torch.nn.Linear(2, 2)

    def forward(self, x, twice=False):
        y = self.second(self.first(x))
        return {"y": self.second(y) if twice else y, "half": y.to(torch.bfloat16)}


def test_calls_are_shown_with_what_was_given():
    lines = []
    net, x = Two().eval(), randn(3, 8)
    with torch.no_grad(), igniter.torch.intercept(net, show=lines.append) as calls:
        net(x, twice=True)
    assert [call.name for call in calls if call.name.count(".") == 0] == ["first", "second", "second", ""]
    assert lines[-1] == "(model): Two(float32[3, 8], twice=True) -> {y: float32[3, 8], half: bfloat16[3, 8]}"
    assert len(lines) == len(calls)
    # Afterwards nothing listens.
    net(x)
    assert len(lines) == len(calls)


def test_what_was_recorded_is_replayed(tmp_path):
    net, x = Two().eval(), randn(3, 8)
    folder = tmp_path / "calls"
    with torch.no_grad(), igniter.torch.intercept(net, folder, show=None) as calls:
        net(x)
    assert len(igniter.torch.load_calls(folder)) == len(calls)
    found = igniter.torch.replay(net, folder)
    assert len(found) == len(calls) and not [each for each in found if each.wrong]
    # A changed model differs where it was changed, and in what has that in it.
    with torch.no_grad():
        net.second.down.weight.mul_(2)
    wrong = {each.name for each in igniter.torch.replay(net, folder) if each.wrong}
    assert wrong == {"second.down", "second", ""}
    with pytest.raises(IgniterError, match="which the model lacks"):
        igniter.torch.replay(torch.nn.Linear(8, 8), folder, only="first*")


def test_a_compiled_model_is_replayed(tmp_path):
    net, x = Two().eval(), randn(3, 8)
    with torch.no_grad(), igniter.torch.intercept(net, tmp_path / "calls", show=None, only=""):
        net(x)
    (found,) = igniter.torch.replay(igniter.torch.compile(net), tmp_path / "calls")
    assert not found.wrong


def test_records_hold_no_code(tmp_path):
    net, x = Two().eval(), randn(3, 8)
    with torch.no_grad(), igniter.torch.intercept(net, tmp_path / "calls", show=None):
        net(x)
    assert sorted({path.suffix for path in (tmp_path / "calls").iterdir()}) == [".json", ".npz"]
    index = json.loads((tmp_path / "calls" / "calls.json").read_text())
    assert index["calls"][-1]["class"] == "Two"


def test_a_record_is_replaced_and_another_folder_is_not(tmp_path):
    net, x = Net().eval(), randn(3, 8)
    for _ in range(2):
        with torch.no_grad(), igniter.torch.intercept(net, tmp_path / "calls", show=None, only=""):
            net(x)
    assert len(igniter.torch.load_calls(tmp_path / "calls")) == 1
    (tmp_path / "mine").mkdir()
    refused = pytest.raises(IgniterError, match="does not contain a record of calls")
    with refused, igniter.torch.intercept(net, tmp_path / "mine"):
        pass
    assert list((tmp_path / "mine").iterdir()) == []
    with pytest.raises(IgniterError, match="does not contain a record"):
        igniter.torch.load_calls(tmp_path / "mine")


def test_after_an_error_there_is_no_record(tmp_path):
    net = Net().eval()
    with pytest.raises(RuntimeError), igniter.torch.intercept(net, tmp_path / "calls", show=None):
        net(randn(3, 5))
    assert not (tmp_path / "calls").exists()


def test_a_damaged_record_is_an_error(tmp_path):
    net, x = Net().eval(), randn(3, 8)
    with torch.no_grad(), igniter.torch.intercept(net, tmp_path / "calls", show=None, only=""):
        net(x)
    (tmp_path / "calls" / "0.npz").write_bytes(b"no archive")
    with pytest.raises(IgniterError, match=r"0.npz is damaged"):
        igniter.torch.load_calls(tmp_path / "calls")


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        2.5,
        float("inf"),
        "text",
        (1, [2.0, None], {"a": ()}),
        torch.tensor(3),
        torch.randn(2, 3).t(),
        torch.randn(0, 3),
        torch.randn(3).to(torch.bfloat16),
        torch.randn(3).to(torch.complex64),
        [torch.tensor([True, False]), torch.arange(3, dtype=torch.uint8)],
    ],
    # Random numbers in the name of a test are others in each process that collects it.
    ids=lambda value: f"{value.dtype}{tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__,
)
def test_values_come_back(value):
    arrays = []
    tree = json.loads(json.dumps(encode(value, arrays)))
    same(decode(tree, {f"arr_{n}": array for n, array in enumerate(arrays)}), value)


def test_what_cannot_be_recorded_says_so():
    with pytest.raises(IgniterError, match="a set was given"):
        decode(encode({1, 2}, []), {})


def test_every_module_is_compared():
    net = Two().eval()
    results = igniter.torch.verify_every_module(net, (randn(3, 8),), {"twice": True})
    status = {each.name: (each.status, each.calls) for each in results.modules}
    assert status["second"] == ("same", 2) and status[""] == ("same", 1)
    assert status["unused"] == ("not called", 0)
    assert results and all(each.error < 1e-5 for each in results.modules)
    assert len(results.to_dict()) == len(list(net.named_modules()))
    assert "second.norm" in str(results)


def test_a_module_that_differs_is_named(monkeypatch):
    from igniter.torch import submodules

    honest = submodules.differences

    def planted(got, expected, rtol):
        return honest([2 * got[0]], expected, rtol) if got[0].shape[-1] == 32 else honest(got, expected, rtol)

    monkeypatch.setattr(submodules, "differences", planted)
    results = igniter.torch.verify_every_module(Net().eval(), (randn(3, 8),))
    assert [each.name for each in results.modules if each.status == "differs"] == ["up"]
    assert not results


def test_a_compiled_module_cannot_be_intercepted():
    fast = igniter.torch.compile(Net().eval())
    with pytest.raises(IgniterError, match="intercept its `wrapped`"), igniter.torch.intercept(fast):
        pass


def test_a_pattern_that_fits_nothing_is_an_error():
    with pytest.raises(IgniterError, match="no submodule's name fits 'frist'"):
        igniter.torch.verify_every_module(Two(), (randn(3, 8),), only="frist")


def test_training_mode_is_put_back_as_it_was():
    net = Two()
    net.first.eval()
    igniter.torch.verify_every_module(net, (randn(3, 8),), only="second")
    assert net.training and net.second.training and not net.first.training and not net.first.up.training


def test_the_command(tmp_path, capsys):
    from igniter.tools.torch.request import TorchRequest
    from igniter.tools.torch.show import run

    file = tmp_path / "mine.py"
    file.write_text(
        "import torch\n\ndef make():\n    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())\n"
        "    return net, (torch.ones(2, 4),)\n"
    )
    table, record = tmp_path / "table.csv", tmp_path / "calls"
    assert not run(TorchRequest(f"{file}:make", True, "*", 0, str(record), 1e-4, str(table), True))
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] and [each["status"] for each in told["modules"]] == ["same"] * 3
    assert table.read_text().splitlines()[0] == "module,class,calls,status,error,reason"
    assert len(igniter.torch.load_calls(record)) == 3
    assert not run(TorchRequest(f"{file}:make", False, "*", 0, "", 1e-4, "", False))
    assert "1 modules: 1 same" in capsys.readouterr().out
    for wrong, why in (
        ("mine", "names no function"),
        (f"{file}:none", "has no function"),
        ("no_such:f", "cannot import"),
    ):
        with pytest.raises(IgniterError, match=why):
            run(TorchRequest(wrong, False, "*", 0, "", 1e-4, "", False))
    with pytest.raises(IgniterError, match="--only and --depth choose submodules"):
        run(TorchRequest(f"{file}:make", False, "first", 0, "", 1e-4, "", False))
