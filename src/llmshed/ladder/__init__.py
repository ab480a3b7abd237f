"""When a pool degrades and sheds, by which agreed step, and when it comes back: the degradation ladder.

A ladder is a list of rungs, agreed on before the incident. At rung k the actions of rungs 1..k are in force. With w a
window, s(w) the signal of the pool in it, o the objective, and c the rung in force by rule alone:

    s(w)   95th percentile over the window's interactive arrivals of
             residence        for those that left the queue (0 where nobody waited)
             age              for those that wait when the window ends
             delay estimate   at refusal, uncapped, for those refused for want of room, or shed
    above  s(w) > b of rung c + 1, where b is the entry's bound, o unless the rung names another
    calm   s(w) < exit ratio x b of rung c, or fewer arrivals than the least sample and nobody waits for longer than b
    climb  c -> c + 1   after as many windows above in a row as rung c + 1 asks for, counted anew after each step
    back   c -> c - 1   after as many calm windows in a row as rung c asks for, doubled for each early re-entry, and
                        with room: offered token rate, held-back work included, <= service rate seen under pressure

A climb within the re-entry windows after a step back is an early re-entry; it doubles the windows that each further
step back takes, up to a most, until the ladder has been left for that long. After twice that most in calm windows a
step back needs no room. Early refusal cannot hide an overload: whoever is refused counts with the wait that it was
spared. A rung can also be entered and left by another signal, which is looked at as a window ends.

A person can hold a rung for a time. In force is the higher of the held rung and that by rule, which goes on meanwhile.
"""
