"""How Python's garbage collector is let run in a gateway.

A collection stops the event loop for about a microsecond per object that it looks at. Young ones look at what came
since the last; a full one looks at all that lives, which is some twenty-two objects for each idle connection. What the
gateway makes is freed by its reference counts, without any collection: where errors and connections referred to each
other in a circle, the circles are broken (`tests/integration/test_circles.py`). So full collections find next to
nothing here, and are made rare (docs/adr/0012-rare-full-collections.md).

Memory stays bounded all the same. The collector counts allocations less deallocations, so garbage that only it can free
brings the next full collection nearer: at most a million such objects lie about, which is the product of the three
numbers below, each passed by one or two before it acts; or a quarter of those that live, if that is more.
"""

import gc

_YOUNG_OBJECTS = 700
_YOUNG_COLLECTIONS = 5
"""With the above a bound on one collection that is not full: 3,500 objects, some 4 ms."""
_MIDDLE_COLLECTIONS = 200
"""Python's own 10 let five thousand connections that come one after another bring on three full collections."""


def settle() -> None:
    """Leave out of all later collections what lives as long as the process, and make full collections rare.

    At the start of a gateway there are some 80,000 such objects.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, _YOUNG_COLLECTIONS, _MIDDLE_COLLECTIONS)
