"""The vLLM plugin. vLLM calls `plugin.register` in each of its processes; nothing here imports vLLM."""
