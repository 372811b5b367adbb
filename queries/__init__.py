"""Questions to the store: SQL catalogue, runner, and what is concluded from the answers."""
