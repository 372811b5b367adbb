"""A small real engine that decodes speculatively, on a CPU: `tachograph demo torch`.

Everything in it computes: a transformer with a cache of keys and values, draft heads,
verification, a device queue with two submissions in flight, the embedded scheduler.
Needs torch.
"""
