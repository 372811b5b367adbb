"""The contract between an engine and Tachograph: names, units, `GraphExecution`, validation, OTLP mapping.

Standard library only, so that an engine can depend on it.
"""
