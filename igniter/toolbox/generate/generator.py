"""`igniter.Generator`: text from a language model in ONNX Runtime, compiled by Igniter or not.

    generator = igniter.Generator("model.igniter")
    print(generator.generate("Once upon a time", max_new_tokens=50).text)
    for piece in generator.stream("Once upon a time", temperature=0.8, seed=0):
        print(piece, end="", flush=True)

A conversation keeps the cache: only tokens that are not in it yet are computed. The generator has one of its own, so a
prompt that begins like the one before it starts behind the common part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

from igniter.errors import IgniterError
from igniter.toolbox.generate.caches import GrowingPast, Past, Recompute, SharedPast
from igniter.toolbox.generate.generation import Clock, GeneratedSequence, Generation, Limits, Piece, decode
from igniter.toolbox.generate.model_folder import LanguageModel, open_model
from igniter.toolbox.generate.sampling import Sampling
from igniter.toolbox.generate.speculation import Acceptance, Drafter, common_prefix, decode_speculatively
from igniter.toolbox.generate.tokenizer import ChatTemplate, FileTokenizer, Tokenizer, find_template, find_tokenizer

if TYPE_CHECKING:
    import numpy as np

Prompt = str | Sequence[int]


class Settings(TypedDict, total=False):
    """The options of a generation."""

    max_new_tokens: int
    """128 by default."""
    temperature: float | None
    top_k: int
    top_p: float
    repetition_penalty: float
    seed: int | None
    stop: str | Sequence[str]
    """Texts that end the generation; they may span tokens, and are not in the result."""
    eos: int | Sequence[int] | None
    """Tokens that end the generation; by default those of the model's files."""
    chunk: int
    """The most tokens of a prompt in a run; 0 for all."""
    draft_tokens: int
    """The most tokens that a draft model drafts at a time; 4 by default."""


SAMPLING = ("temperature", "top_k", "top_p", "repetition_penalty", "seed")


class Generator:
    """Generates text, or tokens, with one session that all of its conversations share.

    `model` is a compiled folder, the folder of an export, or an ONNX file. `tokenizer` is a file or folder, or an
    object with `encode` and `decode`; by default `tokenizer.json` beside the model, if there is one. `draft` is a
    smaller model with the same tokens. `max_length` limits sequences below the model's own limit. Other options are
    those of sessions: `intra_op_num_threads=1`.
    """

    def __init__(
        self,
        model: str | Path,
        tokenizer: str | Path | Tokenizer | None = None,
        *,
        draft: str | Path | None = None,
        max_length: int | None = None,
        **session_options: Any,
    ):
        self.model = open_model(model, **session_options)
        self.draft = None if draft is None else open_model(draft, **session_options)
        limits = [size for size in (self.model.context, max_length, self.draft and self.draft.context) if size]
        self.context: int | None = min(limits, default=None)
        self._given = tokenizer
        self._found: Tokenizer | None = None
        self._template: ChatTemplate | None = None
        self._own: Conversation | None = None

    def __repr__(self) -> str:
        return f"<igniter.Generator {self.model.path}: {self.cache} cache, {len(self.model.graph.caches)} tensors>"

    @property
    def cache(self) -> str:
        """The form of the cache: `shared`, `growing`, or `no`."""
        graph = self.model.graph
        return "no" if not graph.caches else "shared" if graph.shared else "growing"

    def _new_past(self, batch: int = 1, *, draft: bool = False) -> Past:
        """Returns an empty past for `batch` sequences."""
        model = cast("LanguageModel", self.draft if draft else self.model)
        kind = Recompute if not model.graph.caches else SharedPast if model.graph.shared else GrowingPast
        return kind(model.session, model.graph, batch, self.context)

    # -- text ---------------------------------------------------------------------------------------------------------

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer; `None` if none was given and none is beside the model."""
        if self._found is None:
            if self._given is not None and not isinstance(self._given, (str, Path)):
                self._found = self._given
            else:
                path = find_tokenizer(self.model.folders, self._given)
                self._found = None if path is None else FileTokenizer(path)
        return self._found

    def encode(self, prompt: Prompt) -> list[int]:
        """Returns the tokens of a prompt; of tokens themselves a list. Raises `IgniterError` for an empty one."""
        if isinstance(prompt, str):
            tokens = self._required().encode(prompt)
        else:
            tokens = [int(token) for token in prompt]
        size = self.model.graph.vocabulary
        wrong = next((token for token in tokens if token < 0 or (size is not None and token >= size)), None)
        if wrong is not None:
            raise IgniterError(f"{wrong} is no token: the model has {size}")
        if not tokens:
            raise IgniterError("the prompt has no tokens: give one token at least, as the one that begins a text")
        return tokens

    def _required(self) -> Tokenizer:
        found = self.tokenizer
        if found is None:
            raise IgniterError(
                f"no tokenizer.json is beside {self.model.path}: name it (--tokenizer), or give token ids (--ids)"
            )
        return found

    @property
    def template(self) -> ChatTemplate:
        """The chat template beside the model; raises `IgniterError` if there is none."""
        if self._template is None:
            folders = list(self.model.folders)
            if isinstance(self._given, (str, Path)):
                given = Path(self._given)
                folders.insert(0, given if given.is_dir() else given.parent)
            self._template = find_template(folders)
        if self._template is None:
            raise IgniterError(
                f"no chat template is beside {self.model.path} (chat_template.jinja, or an entry of "
                "tokenizer_config.json): give the whole text as a prompt"
            )
        return self._template

    # -- generation ---------------------------------------------------------------------------------------------------

    def generate(self, prompt: Prompt, **settings: Unpack[Settings]) -> Generation:
        """Returns what follows a prompt, a text or tokens."""
        return self.stream(prompt, **settings).result()

    def stream(self, prompt: Prompt, **settings: Unpack[Settings]) -> Stream:
        """Returns an iterator of the pieces of text that follow a prompt, as they come."""
        if self._own is None:
            self._own = Conversation(self)
        return self._own.stream(prompt, **settings)

    def generate_batch(self, prompts: Sequence[Prompt], **settings: Unpack[Settings]) -> list[Generation]:
        """Returns what follows each of several prompts, computed together: one run is a token of all of them."""
        return self.stream_batch(prompts, **settings).results()

    def stream_batch(self, prompts: Sequence[Prompt], **settings: Unpack[Settings]) -> Stream:
        """Returns the stream of several prompts: `pieces()` of it yields rows, tokens and texts."""
        if not prompts:
            raise IgniterError("no prompts are given")
        if self.draft is not None and len(prompts) > 1:
            raise IgniterError("speculative decoding is for one sequence: give one prompt, or no draft model")
        work = self._work(settings)
        sequences = [GeneratedSequence(self.encode(prompt), work.limits, self._decoder(work)) for prompt in prompts]
        past = self._new_past(len(prompts))
        clock = Clock()

        def pieces() -> Iterator[Piece]:
            past.reserve(self._room(sequences))
            logits = past.prefill([s.prompt for s in sequences], work.chunk)
            clock.prefilled()
            yield from decode(past, sequences, logits, work.sampling, clock)

        return Stream(pieces(), sequences, clock)

    def conversation(self) -> Conversation:
        """Returns a conversation with a cache of its own."""
        return Conversation(self)

    def chat(self, system: str = "") -> Chat:
        """Returns a conversation by the model's chat template."""
        return Chat(self, system)

    def _work(self, settings: Settings) -> Work:
        return Work(settings, self.model.eos, self.context)

    def _decoder(self, work: Work) -> Tokenizer | None:
        """Returns the tokenizer for the text of a result; `None` if there is none, an error if stop words need it."""
        return self._required() if work.limits.stop else self.tokenizer

    def _room(self, sequences: Sequence[GeneratedSequence]) -> int:
        """Returns the rows that sequences may come to need."""
        most = max(len(s.prompt) + s.limits.new_tokens for s in sequences)
        longest = max(len(s.prompt) for s in sequences)
        return most if self.context is None else max(longest, min(most, self.context))


class Work:
    """Settings, checked."""

    def __init__(self, settings: Settings, eos: frozenset[int], context: int | None):
        given = dict(settings)
        known = Settings.__annotations__
        unknown = next((name for name in given if name not in known), None)
        if unknown is not None:
            raise IgniterError(f"generation has no option '{unknown}': it has {', '.join(known)}")
        sampling: dict[str, Any] = {name: given[name] for name in SAMPLING if name in given}
        self.sampling = Sampling(**sampling)
        ends: Any = given.get("eos")
        stop: Any = given.get("stop", ())
        self.limits = Limits(
            cast("int", given.get("max_new_tokens", 128)),
            eos if ends is None else frozenset([ends] if isinstance(ends, int) else ends),
            (stop,) if isinstance(stop, str) else tuple(stop),
            context,
        )
        self.chunk, self.draft_tokens = int(cast("int", given.get("chunk", 0))), given.get("draft_tokens", 4)
        if self.chunk < 0 or cast("int", self.draft_tokens) < 1:
            raise IgniterError("chunk is 0 or more, and draft_tokens 1 or more")


class Stream:
    """A generation under way: an iterator of the pieces of its text. `result()` runs it to its end."""

    def __init__(
        self,
        pieces: Iterator[Piece],
        sequences: Sequence[GeneratedSequence],
        clock: Clock,
        acceptance: Acceptance | None = None,
    ):
        self._pieces, self._sequences, self._clock, self._acceptance = pieces, sequences, clock, acceptance

    def __iter__(self) -> Iterator[str]:
        return (piece.text for piece in self._pieces if piece.text)

    def pieces(self) -> Iterator[Piece]:
        """Yields each token with its row and the text that it completes."""
        return self._pieces

    def result(self) -> Generation:
        """Returns the result of the only sequence."""
        return self.results()[0]

    def results(self) -> list[Generation]:
        """Returns the results of all sequences."""
        for _ in self._pieces:
            pass
        times = self._clock.times(self._sequences)
        return [s.result(times, self._acceptance) for s in self._sequences]


class Conversation:
    """One sequence with its cache. It serves one generation at a time; several conversations may run in threads.

    `stream(prompt)` takes the whole text so far: what the cache has of it is not computed again, and what it has beyond
    is dropped. `send(more)` continues from where the last generation ended.
    """

    def __init__(self, generator: Generator):
        self._generator = generator
        self._past = generator._new_past()
        draft = generator.draft
        self._drafter = None if draft is None else Drafter(generator._new_past(draft=True), draft.graph.vocabulary)
        self.tokens: list[int] = []
        """All tokens so far: prompts and results."""
        self._turn = 0

    @property
    def cached(self) -> int:
        """The number of tokens in the cache."""
        return self._past.lengths[0]

    def generate(self, prompt: Prompt, **settings: Unpack[Settings]) -> Generation:
        """Returns what follows a prompt."""
        return self.stream(prompt, **settings).result()

    def send(self, more: Prompt, **settings: Unpack[Settings]) -> Generation:
        """Adds a text or tokens to the conversation; returns what follows."""
        return self.stream_more(more, **settings).result()

    def stream_more(self, more: Prompt, **settings: Unpack[Settings]) -> Stream:
        """Adds a text or tokens to the conversation; returns the stream of what follows."""
        generator = self._generator
        special = {"special": not self.tokens} if isinstance(generator.tokenizer, FileTokenizer) else {}
        if isinstance(more, str):
            encode = cast("Callable[..., list[int]]", generator._required().encode)
            more = encode(more, **special)
        return self.stream([*self.tokens, *more], **settings)

    def rewind(self, length: int) -> None:
        """Forgets all tokens from `length` on."""
        if not 0 <= length <= len(self.tokens):
            raise IgniterError(f"the conversation has {len(self.tokens)} tokens, so it cannot go back to {length}")
        self._turn += 1
        del self.tokens[length:]
        if self.cached > length:
            self._past.rewind(length)

    def stream(self, prompt: Prompt, **settings: Unpack[Settings]) -> Stream:
        """Returns an iterator of the pieces of text that follow a prompt."""
        generator = self._generator
        work = generator._work(settings)
        sequence = GeneratedSequence(generator.encode(prompt), work.limits, generator._decoder(work))
        self._turn += 1
        clock, acceptance = Clock(), Acceptance() if self._drafter is not None else None
        pieces = self._pieces(sequence, work, clock, acceptance, self._turn)
        return Stream(pieces, [sequence], clock, acceptance)

    def _pieces(
        self, sequence: GeneratedSequence, work: Work, clock: Clock, acceptance: Acceptance | None, turn: int
    ) -> Iterator[Piece]:
        for piece in self._decoded(sequence, work, clock, acceptance, turn):
            self.tokens = sequence.history
            yield piece
            if self._turn != turn:
                raise IgniterError("another generation has begun in this conversation: read a stream to its end first")

    def _decoded(
        self, sequence: GeneratedSequence, work: Work, clock: Clock, acceptance: Acceptance | None, turn: int
    ) -> Iterator[Piece]:
        if self._turn != turn:
            raise IgniterError("another generation has begun in this conversation: read a stream to its end first")
        logits = self._prefilled(sequence, work.chunk, clock)
        if sequence.reason is not None:
            return
        if self._drafter is None or acceptance is None:
            yield from decode(self._past, [sequence], logits[None], work.sampling, clock)
            return
        most = cast("int", work.draft_tokens)
        rest = (work.sampling, most, clock, acceptance)
        yield from decode_speculatively(self._past, self._drafter, sequence, logits, *rest)

    def _prefilled(self, sequence: GeneratedSequence, chunk: int, clock: Clock) -> np.ndarray[Any, Any]:
        """Computes the tokens of a prompt that are not in the cache; returns the last logits."""
        prompt = sequence.prompt
        # The logits of the last token are needed, so it is always computed.
        common = min(common_prefix(self.tokens[: self.cached], prompt), len(prompt) - 1)
        self._past.rewind(common)
        self.tokens, clock.reused = list(prompt), common
        self._past.reserve(self._generator._room([sequence]))
        logits = self._past.prefill([prompt[common:]], chunk)[0]
        clock.prefilled()
        return logits


class Chat:
    """A conversation of messages, rendered by the model's chat template."""

    def __init__(self, generator: Generator, system: str = ""):
        self._generator, self._template = generator, generator.template
        self._conversation = Conversation(generator)
        self.messages: list[dict[str, str]] = [{"role": "system", "content": system}] if system else []

    def send(self, text: str, **settings: Unpack[Settings]) -> Generation:
        """Sends a message; returns the answer."""
        stream = self.stream(text, **settings)
        for _ in stream.pieces():
            pass
        return stream.result()

    def stream(self, text: str, **settings: Unpack[Settings]) -> Stream:
        """Sends a message; returns the stream of the answer. The answer is a message once the stream has ended."""
        asked = [*self.messages, {"role": "user", "content": text}]
        prompt = self._encode(self._template.render(asked))
        stream = self._conversation.stream(prompt, **settings)
        inner = stream.pieces()

        def pieces() -> Iterator[Piece]:
            yield from inner
            answer = stream._sequences[0].stream
            self.messages = [*asked, {"role": "assistant", "content": "" if answer is None else answer.text}]

        return Stream(pieces(), stream._sequences, stream._clock, stream._acceptance)

    def _encode(self, text: str) -> list[int]:
        tokenizer = self._generator._required()
        # The template has the special tokens.
        return tokenizer.encode(text, False) if isinstance(tokenizer, FileTokenizer) else tokenizer.encode(text)


def render_messages(generator: Generator, messages: Sequence[Mapping[str, str]]) -> list[int]:
    """Returns the tokens of messages by the chat template."""
    text = generator.template.render(messages)
    tokenizer = generator._required()
    return tokenizer.encode(text, False) if isinstance(tokenizer, FileTokenizer) else tokenizer.encode(text)


__all__ = ["Chat", "Conversation", "Generator", "Settings", "Stream", "render_messages"]
