"""A simulated engine on a virtual clock: device queue, host thread, scheduler, and what disturbs them."""
