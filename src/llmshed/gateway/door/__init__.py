"""The data listener: from a client's bytes to an admitted, relayed and recorded request."""
