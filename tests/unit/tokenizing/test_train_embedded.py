from pathlib import Path

import orjson

from llmshed.tokenizing import load
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.prompts import ChatPrompt, TextPrompt
from llmshed.tokenizing.train_embedded import VOCABULARY, config, own_texts, train

FOLDER = Path(load.__file__).parent / "embedded"


def test_the_same_texts_give_the_same_file() -> None:
    texts = ["the queue drains " * 50, "a gateway counts tokens " * 50, "über 1234\n" * 20]
    assert train(texts, 400) == train(texts, 400)
    assert orjson.loads(train(texts, 400))["model"]["type"] == "BPE"


def test_what_the_package_carries_is_what_the_script_writes(repository: Path) -> None:
    carried = orjson.loads((FOLDER / "tokenizer.json").read_bytes())
    made = orjson.loads(train(["few words"]))
    assert orjson.loads((FOLDER / "tokenizer_config.json").read_bytes()) == config()
    assert {key: value for key, value in carried.items() if key != "model"} == {
        key: value for key, value in made.items() if key != "model"
    }
    assert any(repository / "README.md" == path for path in repository.glob("*.md"))
    assert all(own_texts(repository))


def test_it_is_small() -> None:
    carried = (FOLDER / "tokenizer.json").read_bytes()
    assert len(carried) < 300_000
    assert len(orjson.loads(carried)["model"]["vocab"]) == VOCABULARY


def test_it_loses_no_byte() -> None:
    counter = build_counter(load.embedded(), "tgi")
    text = "plain, Grüße, \u65e5\u672c\u8a9e, \U0001f469\u200d\U0001f467, \x00\x1b\n\t" + bytes(range(128)).decode()
    ids = [token.token_id for token in counter.tokens(TextPrompt(text))]
    assert counter._tokenizer.decode(ids, skip_special_tokens=False) == text


def test_its_template_is_chatml_and_takes_texts_and_parts_in_both_engines() -> None:
    expected = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi you<|im_end|>\n<|im_start|>assistant\n"
    prompt = ChatPrompt(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Hi "}, {"type": "text", "text": "you"}]},
        ]
    )
    for engine in ("tgi", "vllm"):
        assert build_counter(load.embedded(), engine).render(prompt).text == expected
