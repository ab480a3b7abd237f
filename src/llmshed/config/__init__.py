"""The operator's settings: frozen values, parsed and validated from text, never read from disk here.

Every setting is stated once, in the models of this package: its name, type, bounds, default and meaning. The parser,
the JSON schema, `llmshed config`, llmshed.toml(5) and the tests follow from there.
"""
