"""The networks that code writes out, by name: each takes `size` and the options of `Layers`, and is a model."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from benchmark.models import diffusion, vision, vision_transformers

Network = Callable[..., onnx.ModelProto]

NETWORKS: dict[str, Network] = {
    network.__name__: network
    for network in (
        vision.resnet50,
        vision.vgg16,
        vision.densenet121,
        vision.inception_v3,
        vision.squeezenet1_1,
        vision.shufflenet_v1,
        vision.shufflenet_v2,
        vision.mobilenet_v2,
        vision.mobilenet_v3_large,
        vision.efficientnet_b0,
        vision.convnext_tiny,
        vision_transformers.swin_tiny,
        vision_transformers.vit_base,
        vision.yolov8n,
        diffusion.unet,
        diffusion.vae_decoder,
    )
}
