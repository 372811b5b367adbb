"""The scheduler an engine embeds: which graph to run next, by expected tokens per estimated cost.

Standard library only; no clock and no randomness of its own, so equal inputs give equal decisions.
"""
