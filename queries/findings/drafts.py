"""A draft model's own graph, charged to the speculative rounds that verify its drafts (`engine_hooks.contract.drafting`)."""

from dataclasses import replace

import numpy as np

from engine_hooks.contract.drafting import drafts_by_round
from queries.findings.timeline import Timeline


def with_drafts_charged(timeline: Timeline) -> Timeline:
    """The timeline with what the drafts of each speculative round took as that round's, and no longer as their own.

    Their GPU time stands in `Timeline.drafts`. The device idles, and the host works, before the first of them. Without
    draft executions it is the very same timeline.
    """
    rounds = drafts_by_round(timeline.executions)
    if not rounds:
        return timeline
    drafts, first = timeline.drafts.copy(), timeline.first.copy()
    gap, host, idle = timeline.gap.copy(), timeline.host.copy(), timeline.idle.copy()
    for row, places in rounds.items():
        own = list(places)
        drafts[row] = timeline.gpu[own].sum()
        first[row] = own[0]
        gap[row] += gap[own].sum()
        idle[row] = idle[[*own, row]].any()
        host[row] = host[[*own, row]].sum() if (host[[*own, row]] >= 0).all() else -1
        gap[own], host[own] = 0, -1
    return replace(timeline, drafts=drafts, first=first, gap=np.where(idle, 0, gap), host=host, idle=idle)
