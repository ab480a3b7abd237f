"""Admission control and load shedding in front of LLM servers."""

__version__ = "0.1.0"
