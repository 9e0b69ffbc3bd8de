"""Tools of model-driven subagents: read-only, confined to the snapshot, each answer bounded and recorded."""
