"""Profiles that ship with this version: data for operators, read as resources and never executed."""
