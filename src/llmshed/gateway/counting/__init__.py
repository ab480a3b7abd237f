"""Counting prompts off the event loop, behind bounded queues."""
