"""Asks a server as real clients do: a list of jobs on each line of standard input, their reports on a line of output.

It runs in an environment that holds little but the clients, so it needs nothing else of this repository.
"""

import asyncio
import contextlib
import importlib
import json
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

MOST_AT_ONCE = 256
_making = threading.Lock()
_made: dict[str, Any] = {}

Job = dict[str, Any]
"""How one request is asked for.

    id: sent as `x-request-id` with every try.
    asks: name of a function below.
    url, key, model, prompt, tokens, headers: of the request.
    options: arguments of the client beside those.
"""


def openai_chat(job: Job) -> str | None:
    return _text(_openai(job).chat.completions.create(**_chat(job)).choices[0].message.content)


def openai_chat_stream(job: Job) -> str:
    return _joined(_openai(job).chat.completions.create(**_chat(job), stream=True))


def openai_completion(job: Job) -> str | None:
    asked = {"model": job["model"], "prompt": job["prompt"], "max_tokens": job["tokens"]}
    return _text(_openai(job).completions.create(**asked).choices[0].text)


def openai_herd(job: Job) -> None:
    """Ask `callers` times at once, each with a prompt and an id of its own; the decision log tells what they get."""
    openai = importlib.import_module("openai")
    ids = [f"{job['id']}-{caller}" for caller in range(job["options"]["callers"])]

    async def ask_all() -> None:
        async with openai.AsyncOpenAI(base_url=f"{job['url']}/v1", api_key=job["key"], max_retries=1) as client:
            asks = [
                client.chat.completions.create(**_chat({**job, "prompt": one}), extra_headers={"x-request-id": one})
                for one in ids
            ]
            await asyncio.gather(*asks, return_exceptions=True)

    asyncio.run(ask_all())


def _openai(job: Job) -> Any:
    """Return a client of the job's own; all of them share one pool of connections, which is slow to make."""
    with _making:
        if "openai" not in _made:
            _made["openai"] = importlib.import_module("openai").OpenAI(base_url=job["url"], api_key=job["key"])
    return _made["openai"].with_options(
        base_url=f"{job['url']}/v1", api_key=job["key"], default_headers=_headers(job), **job["options"]
    )


def hub_chat(job: Job) -> str | None:
    asked = {"model": job["model"], "max_tokens": job["tokens"]}
    return _text(_hub_openai(job).chat_completion(_messages(job), **asked).choices[0].message.content)


def hub_chat_stream(job: Job) -> str:
    asked = {"model": job["model"], "max_tokens": job["tokens"]}
    client = _hub_openai(job)  # a stream is closed with its client
    return _joined(client.chat_completion(_messages(job), stream=True, **asked))


def hub_generate(job: Job) -> str:
    return str(_hub_native(job).text_generation(job["prompt"], max_new_tokens=job["tokens"]))


def hub_generate_stream(job: Job) -> str:
    client = _hub_native(job)
    return "".join(client.text_generation(job["prompt"], max_new_tokens=job["tokens"], stream=True))


def _hub_openai(job: Job) -> Any:
    hub = importlib.import_module("huggingface_hub")
    return hub.InferenceClient(base_url=f"{job['url']}/v1", api_key=job["key"], headers=_headers(job))


def _hub_native(job: Job) -> Any:
    hub = importlib.import_module("huggingface_hub")
    return hub.InferenceClient(model=job["url"], token=job["key"], headers=_headers(job))


def tgi_generate(job: Job) -> str:
    return str(_tgi(job).generate(job["prompt"], max_new_tokens=job["tokens"]).generated_text)


def tgi_generate_stream(job: Job) -> str:
    return "".join(event.token.text for event in _tgi(job).generate_stream(job["prompt"], max_new_tokens=job["tokens"]))


def tgi_chat(job: Job) -> str | None:
    return _text(_tgi(job).chat(messages=_messages(job), max_tokens=job["tokens"]).choices[0].message.content)


def _tgi(job: Job) -> Any:
    text_generation = importlib.import_module("text_generation")
    return text_generation.Client(job["url"], headers=_headers(job) | {"Authorization": f"Bearer {job['key']}"})


def litellm_chat(job: Job) -> str | None:
    return _text(_litellm(job).choices[0].message.content)


def litellm_chat_stream(job: Job) -> str:
    return _joined(_litellm(job, stream=True))


def _litellm(job: Job, **more: Any) -> Any:
    litellm: Any = importlib.import_module("litellm")
    litellm.suppress_debug_info = True
    asked = {"messages": _messages(job), "max_tokens": job["tokens"], "extra_headers": _headers(job)}
    place = {"api_base": f"{job['url']}/v1", "api_key": job["key"]}
    return litellm.completion(model=f"openai/{job['model']}", **asked, **place, **job["options"], **more)


def litellm_router(job: Job) -> str | None:
    """Ask for far too much of the group `bulk`, once for each of its deployments, and then for little of `interactive`.

    Both are names of groups; each group has two deployments, which are two names of the same gateway.
    """
    litellm = importlib.import_module("litellm")
    bulk, interactive = job["options"]["bulk"], job["options"]["interactive"]
    place = {"model": f"openai/{job['model']}", "api_base": f"{job['url']}/v1", "api_key": job["key"], "max_retries": 0}
    deployments = [
        {"model_name": group, "litellm_params": place, "model_info": {"id": f"{group}-{number}"}}
        for group in sorted({bulk, interactive})
        for number in range(2)
    ]
    router = litellm.Router(model_list=deployments, num_retries=0)
    asked = {"messages": _messages(job), "extra_headers": _headers(job)}
    for _ in range(2):
        with contextlib.suppress(litellm.RateLimitError):
            router.completion(model=bulk, max_tokens=1000, **asked)
    return _text(router.completion(model=interactive, max_tokens=job["tokens"], **asked).choices[0].message.content)


def langchain_chat(job: Job) -> str:
    return str(_langchain(job).invoke(job["prompt"]).content)


def langchain_chat_stream(job: Job) -> str:
    return "".join(str(chunk.content) for chunk in _langchain(job).stream(job["prompt"]))


def _langchain(job: Job) -> Any:
    langchain_openai = importlib.import_module("langchain_openai")
    place = {"base_url": f"{job['url']}/v1", "api_key": job["key"], "default_headers": _headers(job)}
    return langchain_openai.ChatOpenAI(model=job["model"], max_tokens=job["tokens"], **place, **job["options"])


class StatusError(Exception):
    """What an HTTP library that raises nothing returned at last."""


def urllib3_generate(job: Job) -> str:
    asked = {"inputs": job["prompt"], "parameters": {"max_new_tokens": job["tokens"]}}
    return str(json.loads(_urllib3(job, "/generate", asked))["generated_text"])


def urllib3_chat(job: Job) -> str | None:
    answer = json.loads(_urllib3(job, "/v1/chat/completions", _chat(job)))
    return _text(answer["choices"][0]["message"]["content"])


def _urllib3(job: Job, path: str, body: dict[str, Any]) -> str:
    urllib3 = importlib.import_module("urllib3")
    retries = urllib3.Retry(total=2, allowed_methods=None, raise_on_status=False)
    headers = _headers(job) | {"Authorization": f"Bearer {job['key']}", "Content-Type": "application/json"}
    with urllib3.PoolManager(retries=retries) as pool:
        answer = pool.request("POST", job["url"] + path, body=json.dumps(body), headers=headers)
        text = answer.data.decode()
    if answer.status >= 400:
        raise StatusError(f"{answer.status} {text}")
    return str(text)


def _headers(job: Job) -> dict[str, str]:
    return {"x-request-id": job["id"], **job["headers"]}


def _messages(job: Job) -> list[dict[str, str]]:
    return [{"role": "user", "content": job["prompt"]}]


def _chat(job: Job) -> dict[str, Any]:
    return {"model": job["model"], "messages": _messages(job), "max_tokens": job["tokens"]}


def _joined(chunks: Iterator[Any]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def _text(content: Any) -> str | None:
    return None if content is None else str(content)


ASKS: dict[str, Callable[[Job], str | None]] = {
    function.__name__: function
    for function in (
        openai_chat,
        openai_chat_stream,
        openai_completion,
        openai_herd,
        hub_chat,
        hub_chat_stream,
        hub_generate,
        hub_generate_stream,
        tgi_generate,
        tgi_generate_stream,
        tgi_chat,
        litellm_chat,
        litellm_chat_stream,
        litellm_router,
        langchain_chat,
        langchain_chat_stream,
        urllib3_generate,
        urllib3_chat,
    )
}


def report(job: Job) -> dict[str, Any]:
    """Run one job, and tell its text or what it raised."""
    try:
        return {"id": job["id"], "text": ASKS[job["asks"]](job)}
    except Exception as error:  # noqa: BLE001 - whatever a client raises is what is looked at
        return {"id": job["id"], "raised": type(error).__name__, "says": str(error)}


def main() -> None:
    """Answer each line of jobs when all of them have ended."""
    warnings.simplefilter("ignore")
    out, sys.stdout = sys.stdout, sys.stderr  # some clients print hints
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        for line in sys.stdin:
            jobs = json.loads(line)
            out.write(json.dumps(list(pool.map(report, jobs))) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
