"""The daemon: everything between a client's socket and an engine's. Only code here and in its sisters ever waits."""
