import hashlib
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from tokenizers import Tokenizer

from fakes.reference_counts import TOKENIZERS, chat_of, expected_chats, reference, text_of
from llmshed.errors import PromptError
from llmshed.tokenizing.base import TokenBounds
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.chat_request import chat_prompt
from llmshed.tokenizing.counter import Cut, ExactCounter
from llmshed.tokenizing.files import EngineName
from llmshed.tokenizing.load import embedded
from llmshed.tokenizing.prompts import ChatPrompt, IdsPrompt, PromptCount, TextPrompt

CounterOf = Callable[[str, EngineName], ExactCounter]

SIDES: tuple[tuple[str, EngineName, int], ...] = (("hf", "vllm", 90), ("tgi", "tgi", 72))

ONE_IMAGE = ChatPrompt(
    [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 500}},
                {"type": "text", "text": "Be brief."},
            ],
        }
    ]
)


@pytest.mark.slow
@pytest.mark.parametrize(("side", "engine", "known"), SIDES)
def test_chats_render_and_encode_as_the_reference_did_to_the_last_character_and_id(
    counter_of: CounterOf, data_dir: Path, side: str, engine: EngineName, known: int
) -> None:
    tried = 0
    for case, tokenizer, expected in expected_chats(data_dir, side):
        counter, prompt = counter_of(tokenizer, engine), chat_prompt(chat_of(case))
        tried += 1
        if "error" in expected:
            with pytest.raises(PromptError):
                counter.count(prompt)
            continue
        rendered = counter.render(prompt).text
        assert sha256(rendered) == expected["rendered_sha256"], (case["id"], tokenizer)
        assert counter.count(prompt).tokens == expected["prompt_tokens"], (case["id"], tokenizer)
        ids = [token.token_id for token in counter.tokens(prompt)]
        assert sha256(",".join(map(str, ids))) == expected["ids_sha256"], (case["id"], tokenizer)
    assert tried == known


@pytest.mark.slow
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_plain_texts_encode_as_the_reference_did(counter_of: CounterOf, data_dir: Path, tokenizer: str) -> None:
    counter = counter_of(tokenizer, "vllm")
    for case in reference(data_dir)["text_cases"]:
        text, expected = text_of(case["text"]), case["expected"][tokenizer]
        bare = TextPrompt(text, add_special_tokens=False)
        assert counter.count(bare).tokens == expected["without_special"], case["id"]
        assert counter.count(TextPrompt(text)).tokens == expected["with_special"]["tokenizer_json"], case["id"]
        ids = [token.token_id for token in counter.tokens(bare)]
        assert sha256(",".join(map(str, ids))) == expected["ids_sha256"], case["id"]


@pytest.mark.slow
@pytest.mark.parametrize(("tokenizer", "known"), [("qwen3", 46), ("minilm-l6-v2", 46)])
def test_ids_are_those_that_another_implementation_published(
    counter_of: CounterOf, data_dir: Path, tokenizer: str, known: int
) -> None:
    published = orjson.loads((data_dir / "tokenizers" / "reference_ids_llamacpp.json").read_bytes())["sets"]
    (cases,) = [cases for name, cases in published.items() if tokenizer.startswith(name.split("-")[0])]
    counter = counter_of(tokenizer, "vllm")
    for case in cases:
        prompt = TextPrompt(case["text"], add_special_tokens=False)
        ids = [token.token_id for token in counter.tokens(prompt)]
        around = (
            case["ids"][1:-1] if tokenizer.startswith("minilm") and len(case["ids"]) == len(ids) + 2 else case["ids"]
        )
        assert ids == around, case["text"]
        assert counter.count(prompt).tokens == len(ids)
    assert len(cases) == known


@pytest.mark.slow
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_naughty_strings_count_as_the_tokenizer_itself_counts_them(
    counter_of: CounterOf, data_dir: Path, tokenizer_directory: Callable[[str], Path], tokenizer: str
) -> None:
    strings: list[str] = orjson.loads((data_dir / "corpora" / "naughty-strings" / "blns.json").read_bytes())
    direct = Tokenizer.from_file(str(tokenizer_directory(tokenizer) / "tokenizer.json"))
    direct.no_truncation()
    direct.no_padding()
    counter = counter_of(tokenizer, "vllm")
    assert len(strings) == 515
    for text in strings:
        assert counter.count(TextPrompt(text)).tokens == len(direct.encode(text).ids), text


def test_token_ids_are_counted_by_their_number() -> None:
    counter = build_counter(embedded(), "tgi")
    assert counter.count(IdsPrompt((5, 6, 7))) == PromptCount(3, 0)
    assert counter.bounds(IdsPrompt((5, 6, 7))) == TokenBounds(3, 3)


def test_a_chat_is_counted_as_its_rendered_text_without_special_tokens() -> None:
    counter = build_counter(embedded(), "tgi")
    rendered = counter.render(ChatPrompt([{"role": "user", "content": "Grüße"}]))
    assert rendered == TextPrompt(
        "<|im_start|>user\nGrüße<|im_end|>\n<|im_start|>assistant\n", add_special_tokens=False
    )
    count = counter.count(ChatPrompt([{"role": "user", "content": "Grüße"}]))
    assert count == PromptCount(counter.count(rendered).tokens, len(rendered.text.encode()))


@pytest.mark.parametrize("engine", ["tgi", "vllm"])
def test_half_of_a_surrogate_pair_is_refused_and_not_a_crash(engine: EngineName) -> None:
    counter = build_counter(embedded(), engine)
    for prompt in (TextPrompt("a\ud800b"), ChatPrompt([{"role": "user", "content": "a\udc00"}])):
        with pytest.raises(PromptError, match="surrogate"):
            counter.count(prompt)
    counter.bounds(TextPrompt("a\ud800b"))


def test_without_a_template_chats_are_refused_and_texts_are_counted(embedded_without_template: ExactCounter) -> None:
    assert embedded_without_template.count(TextPrompt("Hello")).tokens > 0
    with pytest.raises(PromptError, match="no chat template"):
        embedded_without_template.count(ChatPrompt([{"role": "user", "content": "Hello"}]))


@pytest.fixture
def embedded_without_template() -> ExactCounter:
    return build_counter(replace(embedded(), templates={}), "tgi")


@pytest.mark.parametrize("engine", ["tgi", "vllm"])
def test_an_image_costs_its_bound_and_its_base64_nothing(engine: EngineName) -> None:
    around = ChatPrompt([{"role": "user", "content": "What is this?Be brief."}])
    counter = build_counter(embedded(), engine, image_tokens=1000)
    text_alone = counter.count(around).tokens
    # The image cuts the text in two, which can keep two tokens apart that would else be one.
    assert text_alone + 1000 <= counter.count(ONE_IMAGE).tokens <= text_alone + 1002


def test_images_in_native_text_are_found_where_tgi_finds_them() -> None:
    counter = build_counter(embedded(), "tgi", image_tokens=77)
    apart = counter.count(TextPrompt("look at ")).tokens + counter.count(TextPrompt(" and ")).tokens
    assert counter.count(TextPrompt("look at ![](https://x/y.png) and ![](data:;base64,AAAA)")).tokens == apart + 2 * 77


@pytest.mark.parametrize("engine", ["tgi", "vllm"])
def test_images_without_a_bound_are_refused(engine: EngineName) -> None:
    with pytest.raises(PromptError, match="image"):
        build_counter(embedded(), engine).count(ONE_IMAGE)


def test_the_tokens_of_an_image_are_not_made_up() -> None:
    with pytest.raises(PromptError, match="engine alone"):
        build_counter(embedded(), "tgi", image_tokens=9).tokens(ONE_IMAGE)


def test_pieces_are_the_text_that_tokens_stand_for() -> None:
    counter = build_counter(embedded(), "tgi")
    pieces = [token.piece for token in counter.tokens(TextPrompt("Hello world<|im_end|>"))]
    assert "".join(pieces) == "Hello world<|im_end|>"
    assert pieces[-1] == "<|im_end|>"


@pytest.mark.parametrize(
    ("cut", "bounds", "left"),
    [
        (Cut(), (3, None), (3, None)),
        (Cut(truncate_tokens=128), (300, None), (128, 128)),
        (Cut(truncate_tokens=128), (3, 200), (3, 128)),
        (Cut(truncate_tokens=128, pad_tokens=128), (3, None), (128, 128)),
        (Cut(pad_multiple=8), (3, 17), (3, 24)),
    ],
)
def test_truncation_and_padding_move_both_bounds(
    cut: Cut, bounds: tuple[int, int | None], left: tuple[int, int | None]
) -> None:
    assert cut.apply(TokenBounds(*bounds)) == TokenBounds(*left)


def test_threads_count_at_once_and_agree() -> None:
    counter = build_counter(embedded(), "tgi", cache_bytes=50_000)
    prompts = [ChatPrompt([{"role": "user", "content": f"question {number} " * number}]) for number in range(40)]
    alone = [counter.count(prompt).tokens for prompt in prompts]
    found: list[list[int]] = []
    threads = [
        threading.Thread(target=lambda: found.append([counter.count(prompt).tokens for prompt in prompts]))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [alone] * 8


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
