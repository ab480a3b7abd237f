"""Which replica gets a request, among those where it fits: pure, and replaceable without touching admission."""
