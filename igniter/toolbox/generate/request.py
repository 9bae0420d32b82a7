"""The arguments and options of `igniter generate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import Json
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class GenerateRequest(Request):
    """Generate text with a language model, compiled or not.

    The text is printed as it comes. Caches, tokenizer and limits are found beside the model.
    """

    model: Annotated[str, Argument("A compiled folder, the folder of an export, or an ONNX file.")]
    prompt: Annotated[
        tuple[str, ...],
        Option("The text to continue, - for standard input; several are computed together.", "--prompt", "-p"),
    ] = ()
    ids: Annotated[
        tuple[str, ...], Option("The tokens to continue, 1,2,3, without a tokenizer; may be repeated.", "--ids")
    ] = ()
    chat: Annotated[
        bool,
        Option("A conversation by the model's chat template: each prompt, or line of input, is a message.", "--chat"),
    ] = False
    system: Annotated[str, Option("The system message of --chat.")] = ""
    tokenizer: Annotated[str, Option("The file or folder of the tokenizer, where it is not beside the model.")] = ""
    max_new_tokens: Annotated[int, Option("The most tokens to generate.", "--max-new-tokens", "-n", min=1)] = 128
    temperature: Annotated[
        float | None, Option("Sample from logits divided by this; 0 takes the most likely token.", min=0)
    ] = None
    top_k: Annotated[int, Option("Sample from the k most likely tokens; 0 from all.", min=0)] = 0
    top_p: Annotated[
        float, Option("Sample from the most likely tokens that together have this probability.", min=0, max=1)
    ] = 1.0
    repetition_penalty: Annotated[float, Option("Divides the logits of tokens that occurred.", min=0)] = 1.0
    seed: Annotated[int | None, Option("Of the random numbers; without one, each run differs.", min=0)] = None
    stop: Annotated[tuple[str, ...], Option("A text that ends the generation; may be repeated.", "--stop")] = ()
    eos: Annotated[
        str, Option("The tokens that end the generation, 2 or 2,32000, in the place of the model's; 'none' for none.")
    ] = ""
    max_length: Annotated[int, Option("The most tokens of prompt and result; 0: as the model has.", min=0)] = 0
    chunk: Annotated[int, Option("The most tokens of a prompt in a run; 0 for all.", min=0)] = 0
    draft: Annotated[
        str, Option("A smaller model with the same tokens, which drafts tokens for the model to check.")
    ] = ""
    draft_tokens: Annotated[int, Option("The most tokens drafted at a time.", min=1)] = 4
    threads: Annotated[int, Option("ONNX Runtime's threads within an op; 0 leaves it to ONNX Runtime.", min=0)] = 0
    stats: Annotated[
        bool, Option("Print times and rates on standard error; on a terminal they always are.", "--stats")
    ] = False
    json: Json = False
