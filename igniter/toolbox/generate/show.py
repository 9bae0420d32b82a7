"""`igniter generate`: text as it comes, and times at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from igniter.errors import IgniterError
from igniter.toolbox.generate.generator import Generator, Settings, Stream
from igniter.toolbox.output import console, print_json

if TYPE_CHECKING:
    from igniter.toolbox.generate.generation import Generation
    from igniter.toolbox.generate.request import GenerateRequest


def run(request: GenerateRequest) -> None:
    """Generates and prints."""
    _check(request)
    options = {"intra_op_num_threads": request.threads} if request.threads else {}
    generator = Generator(
        request.model,
        request.tokenizer or None,
        draft=request.draft or None,
        max_length=request.max_length or None,
        **options,
    )
    settings = _settings(request)
    found = _chat(request, generator, settings) if request.chat else _texts(request, generator, settings)
    if request.json:
        print_json(_described(generator, found))
    elif request.stats or sys.stderr.isatty():
        for line in statistics(found):
            console(stderr=True).print(line, markup=False)


def _check(request: GenerateRequest) -> None:
    if request.prompt and request.ids:
        raise IgniterError("--prompt gives text and --ids tokens: give one of them")
    if not request.prompt and not request.ids and not request.chat:
        raise IgniterError("nothing is given to continue: give --prompt TEXT, --ids 1,2,3, or --chat")
    if request.chat and request.ids:
        raise IgniterError("--chat takes messages, and --ids gives tokens: leave one of them out")
    if request.system and not request.chat:
        raise IgniterError("--system is the system message of --chat: give both, or neither")


def _settings(request: GenerateRequest) -> Settings:
    settings: Settings = {
        "max_new_tokens": request.max_new_tokens,
        "temperature": request.temperature,
        "top_k": request.top_k,
        "top_p": request.top_p,
        "repetition_penalty": request.repetition_penalty,
        "seed": request.seed,
        "stop": request.stop,
        "chunk": request.chunk,
        "draft_tokens": request.draft_tokens,
    }
    if request.eos:
        settings["eos"] = [] if request.eos == "none" else parse_ids(request.eos, "--eos")
    return settings


def parse_ids(text: str, option: str = "--ids") -> list[int]:
    """Parses `1,2,3`."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise IgniterError(f"{option} '{text}' is no list of tokens: write numbers, 1,2,3")
    return [int(part) for part in parts]


def _texts(request: GenerateRequest, generator: Generator, settings: Settings) -> list[Generation]:
    prompts: list[str | list[int]] = [sys.stdin.read() if p == "-" else p for p in request.prompt]
    prompts += [parse_ids(text) for text in request.ids]
    if len(prompts) == 1:
        stream = generator.stream(prompts[0], **settings)
        return [_printed(stream, generator, request)]
    found = generator.generate_batch(prompts, **settings)
    if not request.json:
        for each in found:
            print(each.text if generator.tokenizer is not None else ",".join(map(str, each.tokens)))
    return found


def _chat(request: GenerateRequest, generator: Generator, settings: Settings) -> list[Generation]:
    chat = generator.chat(request.system)
    messages: Iterator[str] = iter(request.prompt) if request.prompt else _lines()
    return [_printed(chat.stream(message, **settings), generator, request) for message in messages]


def _lines() -> Iterator[str]:
    """Yields lines of standard input, with a prompt on a terminal."""
    while True:
        if sys.stdin.isatty():
            print("> ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.rstrip("\n")


def _printed(stream: Stream, generator: Generator, request: GenerateRequest) -> Generation:
    """Prints the pieces of a text, or tokens where there is no tokenizer, as they come."""
    if request.json:
        return stream.result()
    for number, piece in enumerate(stream.pieces()):
        token = "" if piece.ends else f"{',' * bool(number)}{piece.token}"
        print(token if generator.tokenizer is None else piece.text, end="", flush=True)
    print(flush=True)
    return stream.result()


def _described(generator: Generator, found: Sequence[Generation]) -> dict[str, Any]:
    described: dict[str, Any] = {"model": str(generator.model.path), "cache": generator.cache}
    described["results"] = [each.to_dict() for each in found]
    if found:
        # All of a batch have the times of the batch; messages of a chat have their own.
        own = {id(each.times): each.times for each in found}
        described["times"] = [times.to_dict() for times in own.values()]
    accepted = [each.acceptance.to_dict() for each in found if each.acceptance is not None]
    return {**described, "acceptance": accepted} if accepted else described


def statistics(found: Sequence[Generation]) -> list[str]:
    """Returns a line of times for each result, or for a batch."""
    lines: list[str] = []
    for times in {id(each.times): each.times for each in found}.values():
        reused = f" ({times.reused_tokens} of them in the cache)" if times.reused_tokens else ""
        lines.append(
            f"prompt: {times.prompt_tokens} tokens{reused} in {times.prefill:.3f} s, "
            f"{times.prefill_rate:.1f} tokens/s; first token after {times.first:.3f} s; "
            f"{times.new_tokens} new tokens, {times.decode_rate:.1f} tokens/s"
        )
    for each in found:
        if each.acceptance is not None:
            a = each.acceptance
            lines.append(f"drafted: {a.drafted} tokens in {a.rounds} rounds, {a.accepted} accepted ({a.rate:.0%})")
    reasons = ", ".join(dict.fromkeys(each.finish_reason for each in found))
    return [*lines, f"ended by: {reasons}"] if found else lines


__all__ = ["parse_ids", "run", "statistics"]
