"""The routers that people put before their engines today, from PyPI: smg, sglang-router and litellm."""

import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from dataplane.asking import KEY, MODEL
from dataplane.environments import environment
from dataplane.processes import free_port, running
from dataplane.proxies import Place, Proxy

SMG = "smg==1.13.0"
SGLANG_ROUTER = "sglang-router==0.3.2"
LITELLM = "litellm[proxy]==1.106.12"

_ONE_THREAD = {"TOKIO_WORKER_THREADS": "1"}
_LITELLM_CONFIG = """
model_list:
  - model_name: {model}
    litellm_params: {{ model: openai/{model}, api_base: "http://127.0.0.1:{replica}/v1", api_key: none }}
"""


@contextmanager
def smg(place: Place) -> Iterator[Proxy]:
    """Run smg with one thread.

    Raises:
        NotRunningError: it cannot be installed, or does not start.
    """
    programs = environment("smg", [SMG])
    with _router(place, [programs / "smg", "launch"]) as proxy:
        yield proxy


@contextmanager
def sglang_router(place: Place) -> Iterator[Proxy]:
    """Run sglang-router with one thread.

    Raises:
        NotRunningError: it cannot be installed, or does not start.
    """
    programs = environment("sglang-router", [SGLANG_ROUTER])
    with _router(place, [programs / "python", "-m", "sglang_router.launch_router"]) as proxy:
        yield proxy


@contextmanager
def litellm(place: Place) -> Iterator[Proxy]:
    """Run litellm's proxy with one process.

    Raises:
        NotRunningError: it cannot be installed, or does not start.
    """
    programs = environment("litellm", [LITELLM])
    config = place.folder / "litellm.yaml"
    config.write_text(_LITELLM_CONFIG.format(model=MODEL, replica=place.replica_port), encoding="utf-8")
    port = free_port()
    words = ["--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    environ = {
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # it does not start without a key otherwise
        "LITELLM_LOCAL_MODEL_COST_MAP": "true",  # nothing is fetched
        "PATH": f"{programs}:{os.environ.get('PATH', os.defpath)}",
    }
    with _answering(place, port, [programs / "litellm", *words], environ) as proxy:
        yield proxy


@contextmanager
def _router(place: Place, command: Sequence[str | Path]) -> Iterator[Proxy]:
    port = free_port()
    words = ["--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(free_port())]
    replica = ["--worker-urls", f"http://127.0.0.1:{place.replica_port}", "--policy", "round_robin"]
    with _answering(place, port, [*command, *words, *replica], _ONE_THREAD) as proxy:
        yield proxy


@contextmanager
def _answering(place: Place, port: int, command: Sequence[str | Path], environ: Mapping[str, str]) -> Iterator[Proxy]:
    with running(command, place.folder / "log", place.core, lambda: answers(port), environ) as program:
        yield Proxy(program, port)


def answers(port: int) -> bool:
    """Say whether a proxy serves a chat: some take connections long before they have found their replica."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        data=b'{"model":"%s","messages":[{"role":"user","content":"Hello"}],"max_tokens":16}' % MODEL.encode(),
        headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - loopback
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
