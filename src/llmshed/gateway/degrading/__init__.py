"""What the rungs of a ladder do to a request before it is counted.

A rung never cuts what a caller did not offer. In the field `llmshed` of a body a caller says which tools and parts are
enrichment, and which parts of the context are optional, in the order in which they may go and down to how many that
stay. What is offered is checked whether or not any rung is in force, so that a mistake shows in calm times. Each change
makes another body from the one that was sent; the engine's adapter reads it anew, and it is counted as any other.
"""
