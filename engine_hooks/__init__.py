"""What an engine embeds: the contract, the recorder, the cost models, the scheduler and the adapters."""
