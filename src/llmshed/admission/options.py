"""A request as it would run on each replica, and the choice between them."""

from collections.abc import Iterable
from typing import NamedTuple

from llmshed.admission.budget import Equation, Reservation
from llmshed.admission.echo import Arrival
from llmshed.admission.lanes import Classification, output_ceiling
from llmshed.admission.policy import LanePolicy, ModelLimits, ReplicaSpec
from llmshed.admission.reasons import Reason
from llmshed.admission.replica import Replica
from llmshed.admission.request import Lane, Request
from llmshed.admission.verdict import AcceptedMaximums, Decision, DelayTerms, QueueTerms, Verdict, WindowTerms
from llmshed.routing.choose import Candidate, most_headroom


class Cap(NamedTuple):
    """A lower ceiling, in tokens, that is granted, and what is told of a request whose own it lowers."""

    tokens: int
    degradations: tuple[str, ...]


class Option(NamedTuple):
    """One replica, with the ceiling and reservation that the request would have there, and what was done to it."""

    replica: Replica
    ceiling_tokens: int
    reservation: Reservation
    degradations: tuple[str, ...] = ()

    def within_context(self, request: Request) -> bool:
        """Say whether the model on this replica can hold every sequence of the request."""
        limits = self.replica.spec.limits
        longest = request.longest_prompt_tokens
        return (
            self.ceiling_tokens >= 1
            and longest <= limits.max_input_tokens
            and longest + self.ceiling_tokens <= limits.max_total_tokens
        )

    def possible(self, request: Request) -> bool:
        """Say whether the request could run here at all, if nothing else did."""
        return self.within_context(request) and self.replica.holds_ever(self.reservation)

    def takes_prompt(self, request: Request, lane: Lane) -> bool:
        """Say whether the replica takes prompts of that length beside interactive work; other lanes have no bound."""
        most = self.replica.spec.max_shared_prompt_tokens
        return lane is not Lane.BULK or most is None or request.longest_prompt_tokens <= most

    def verdict(  # noqa: PLR0913 - the terms of a verdict, by keyword
        self,
        decision: Decision,
        chosen: Classification,
        lane_policy: LanePolicy,
        equation: Equation | None = None,
        *,
        reason: Reason | None = None,
        retry_after_seconds: float | None = None,
        detail: str = "",
        delay: DelayTerms | None = None,
        window: WindowTerms | None = None,
        queue: QueueTerms | None = None,
        arrival: Arrival | None = None,
    ) -> Verdict:
        """Return a verdict that carries every number of this option, the replica's equation now if none is given.

        The other terms are as `Verdict` tells them, all of them here: copies of a verdict cost as much as deciding.
        """
        spec = self.replica.spec
        return Verdict(
            decision,
            reason,
            lane=chosen.lane,
            intent=chosen.intent,
            priority_class=chosen.priority_class,
            output_ceiling_tokens=max(self.ceiling_tokens, 0),
            reservation=self.reservation,
            equation=self.replica.equation() if equation is None else equation,
            replica=spec.name,
            pool=spec.pool,
            profile=spec.profile,
            maximums=accepted_maximums(lane_policy, spec.limits),
            retry_after_seconds=retry_after_seconds,
            detail=detail,
            delay=delay,
            window=window,
            queue=queue,
            arrival=arrival,
            degradations=self.degradations,
        )


def options_on(
    replicas: Iterable[Replica], request: Request, lane_policy: LanePolicy, cap: Cap | None = None
) -> list[Option]:
    """Return one option for each replica, possible or not; `cap` is what a rung grants at most."""
    options: list[Option] = []
    for replica in replicas:
        last = options[-1] if options else None
        if last is not None and _alike(replica.spec, last.replica.spec):
            options.append(Option(replica, last.ceiling_tokens, last.reservation, last.degradations))
        else:
            ceiling, degradations = output_ceiling(request, lane_policy, replica.spec.limits), request.degradations
            if cap is not None and cap.tokens < ceiling:
                ceiling, degradations = cap
            options.append(Option(replica, ceiling, replica.reservation(request, ceiling), degradations))
    return options


def _alike(one: ReplicaSpec, other: ReplicaSpec) -> bool:
    """Say whether a request is the same on both, as on most replicas of a pool."""
    same_limits = one.limits is other.limits or one.limits == other.limits
    return same_limits and one.overrun_chunk_tokens == other.overrun_chunk_tokens


def most_free(options: list[Option]) -> Option:
    """Return the option on the replica with the most headroom; `options` is not empty."""
    by_name = {option.replica.spec.name: option for option in options}
    equations = {name: option.replica.equation() for name, option in by_name.items()}
    chosen = most_headroom(
        Candidate(name, equation.headroom_tokens, equation.free_sequences) for name, equation in equations.items()
    )
    if chosen is None:
        raise ValueError("no replica to choose from")
    return by_name[chosen.name]


def output_bound(lane_policy: LanePolicy, limits: ModelLimits) -> int | None:
    """Return the highest ceiling that lane and model permit; None when neither bounds it by itself."""
    by_lane, by_model = lane_policy.max_output_tokens, limits.max_output_tokens
    if by_lane is None or by_model is None:
        return by_model if by_lane is None else by_lane
    return min(by_lane, by_model)


def roomiest_maximums(lane_policy: LanePolicy, limits: Iterable[ModelLimits]) -> AcceptedMaximums:
    """Return the limits of a lane where no one replica was chosen: those of the roomiest, or the lane's own of none."""
    roomiest = max(limits, key=lambda one: one.max_total_tokens, default=None)
    if roomiest is None:
        return AcceptedMaximums(lane_policy.max_input_tokens, lane_policy.max_output_tokens, None)
    return accepted_maximums(lane_policy, roomiest)


def accepted_maximums(lane_policy: LanePolicy, limits: ModelLimits) -> AcceptedMaximums:
    """Return the limits that a caller of this lane is told."""
    lane_input = limits.max_input_tokens if lane_policy.max_input_tokens is None else lane_policy.max_input_tokens
    return AcceptedMaximums(
        max_input_tokens=min(lane_input, limits.max_input_tokens),
        max_output_tokens=output_bound(lane_policy, limits),
        max_total_tokens=limits.max_total_tokens,
    )
