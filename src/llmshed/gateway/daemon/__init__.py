"""The life of the daemon: put together, serving, reloading, draining."""
