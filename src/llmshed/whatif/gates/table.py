"""The policies by name: what each stands for, and how it is built for a setting."""

from collections.abc import Callable
from dataclasses import dataclass

from llmshed.admission.events import ReplicaUp
from llmshed.admission.replica import Replica
from llmshed.whatif.gate import Gate
from llmshed.whatif.gates.books import Books
from llmshed.whatif.gates.bucket import TokenBucket
from llmshed.whatif.gates.engine_facts import EngineFacts
from llmshed.whatif.gates.gate import RuleGate
from llmshed.whatif.gates.levels import OracleLevel, highest_level
from llmshed.whatif.gates.limits import NoLimit, RequestLimit
from llmshed.whatif.gates.objectives import TtftObjectives
from llmshed.whatif.gates.oracle import Oracle
from llmshed.whatif.gates.rule import Rule
from llmshed.whatif.gates.smallest import SmallestFirst
from llmshed.whatif.gates.thresholds import PolledThresholds, Thresholds
from llmshed.whatif.setting import Setting
from llmshed.whatif.staging import build_controller

BuildRule = Callable[[Setting, Books], Rule]

OURS = "ours"
"""Name of the daemon's own controller."""


@dataclass(frozen=True, slots=True)
class GateKind:
    """One policy of the table.

    Args:
        stands_for: one sentence that says whose behaviour it is.
        build: builds it, with its default parameters.
    """

    stands_for: str
    build: Callable[[Setting], Gate]


def rule_gate(setting: Setting, build_rule: BuildRule) -> RuleGate:
    """Return a gate that follows a rule, with all replicas of the setting up."""
    books = Books()
    gate = RuleGate(setting.policy, build_rule(setting, books), books)
    for spec in setting.specs:
        gate.handle(ReplicaUp(spec), 0.0)
    return gate


def request_limit_gate(setting: Setting, requests: int | None = None) -> RuleGate:
    """Return a gate with a fixed number of requests in flight on each replica; None for its hard cap."""
    return rule_gate(setting, lambda _setting, _books: RequestLimit(requests))


def token_bucket_gate(setting: Setting, tokens_per_second: float | None = None) -> RuleGate:
    """Return a gate with a rate limit on prompt tokens.

    Args:
        setting: the stage.
        tokens_per_second: of each replica; None for the safe prefill rate of its profile or, without one, the rate at
            which an idle replica works through its longest prompt: a gateway cannot know less favourable mixes.

    Raises:
        ValueError: the rate is not above 0.
    """
    if tokens_per_second is not None and not tokens_per_second > 0:
        raise ValueError(
            f"a rate of {tokens_per_second:g} tokens per second lets nothing through; accepted are above 0"
        )
    longest = setting.specs[0].limits.max_input_tokens
    idle = longest / TtftObjectives(setting).idle_seconds(longest)

    def rate(replica: Replica) -> float:
        return tokens_per_second or replica.budget.prefill_tokens_per_second or idle

    return rule_gate(setting, lambda _setting, books: TokenBucket(books, rate))


def thresholds_gate(setting: Setting, thresholds: Thresholds | None = None) -> RuleGate:
    """Return a gate that polls queue depth and KV use; None for the defaults of the Gateway API extension."""
    kv_tokens = EngineFacts(setting.parameters).kv_tokens
    return rule_gate(setting, lambda _setting, books: PolledThresholds(books, setting.models, kv_tokens, thresholds))


def oracle_gate(setting: Setting, level: OracleLevel | None = None) -> RuleGate:
    """Return the order-keeping oracle at one level; None for the highest, `best_oracle` finds a better one."""
    chosen = level or highest_level(setting)
    return rule_gate(setting, lambda _setting, books: Oracle(setting, books, chosen))


GATES: dict[str, GateKind] = {
    OURS: GateKind("llmshed's own controller, unchanged, as the daemon runs it", build_controller),
    "none": GateKind(
        "no gateway: every request goes to the engine, whose own limits alone refuse",
        lambda setting: rule_gate(setting, lambda _setting, _books: NoLimit()),
    ),
    "request_limit": GateKind(
        "a reverse proxy: a fixed number of requests in flight on each replica, refused above", request_limit_gate
    ),
    "token_bucket": GateKind(
        "an API gateway: a rate limit on prompt tokens with a burst, refused above", token_bucket_gate
    ),
    "thresholds": GateKind(
        "the Gateway API inference extension: thresholds on polled queue depth and KV use, bulk shed first",
        thresholds_gate,
    ),
    "smallest_first": GateKind(
        "a bounded line in front of a token ledger, the smallest reservation served first",
        lambda setting: rule_gate(setting, lambda _setting, _books: SmallestFirst(TtftObjectives(setting).of_work)),
    ),
    "oracle": GateKind(
        "the order-keeping oracle: arrival order, true lengths and step times known; no gateway can be built so",
        oracle_gate,
    ),
}
"""Every policy by its name, ours first."""


def build_gate(name: str, setting: Setting) -> Gate:
    """Return the gate of a name with all replicas of the setting up.

    Raises:
        ValueError: no policy has that name; the text lists those that are.
    """
    kind = GATES.get(name)
    if kind is None:
        raise ValueError(f"no policy is called {name}; known are {', '.join(GATES)}")
    return kind.build(setting)
