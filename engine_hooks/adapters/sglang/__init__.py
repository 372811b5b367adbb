"""The SGLang plugin. SGLang calls `plugin.register` in each of its processes; nothing here imports SGLang."""
