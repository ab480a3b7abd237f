"""A chat template that works too long, or takes too much, ends a process and not the gateway."""

from dataclasses import replace

import pytest

from llmshed.errors import TokenizerError
from llmshed.tokenizing.files import ChatTemplate, EngineName, TokenizerFiles
from llmshed.tokenizing.load import embedded
from llmshed.tokenizing.prompts import ChatPrompt
from llmshed.tokenizing.trial import try_template

ONE = {"chat_user": ChatPrompt([{"role": "user", "content": "a"}])}
NESTED = "{% for a in range(3000) %}{% for b in range(3000) %}{% endfor %}{% endfor %}"


def files_with(template: str) -> TokenizerFiles:
    return replace(
        embedded(), templates={"tokenizer_config.json": ChatTemplate(template, "tokenizer_config.json", tool_use=None)}
    )


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["tgi", "vllm"])
def test_a_usual_template_passes_and_so_does_one_that_refuses(engine: EngineName) -> None:
    try_template(embedded(), engine)
    try_template(files_with("{{ raise_exception('no') }}"), engine)


def test_without_a_template_there_is_nothing_to_try() -> None:
    try_template(replace(embedded(), templates={}), "tgi")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "template", "cause"),
    [
        ("vllm", "{{ (10**(10**7))%7 }}", "250 ms of processor time to render; it is not used"),  # while compiling
        ("vllm", "{% set n = 7 %}{{ (10**(10**n))%7 }}", "250 ms of processor time to render for the probe chat_user"),
        ("vllm", NESTED, "250 ms of processor time to render for the probe chat_user"),
        ("vllm", "{% set a = messages[0].content %}{{ a * 300000000 }}", "MiB to render for the probe chat_user"),
        ("vllm", "{{ messages[0].content.x }}{% if %}", "the chat template is no jinja2 template"),
        ("tgi", "{% if %}", "the chat template cannot be read by TGI's engine"),
    ],
)
def test_a_template_that_is_too_dear_is_not_used_and_told_with_its_file(
    engine: EngineName, template: str, cause: str
) -> None:
    with pytest.raises(TokenizerError) as caught:
        try_template(files_with(template), engine, ONE)
    assert str(caught.value).startswith("embedded: tokenizer_config.json: ")
    assert cause in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("template", ["{{ (10**(10**7))%7 }}", NESTED, "{{ 'a' * 300000000 }}"])
def test_what_hangs_the_other_engine_ends_in_tgis_or_is_not_used(template: str) -> None:
    try:
        try_template(files_with(template), "tgi", ONE)
    except TokenizerError as error:
        assert "to render" in str(error) or "was ended by" in str(error)  # noqa: PT017 - an error is as good
