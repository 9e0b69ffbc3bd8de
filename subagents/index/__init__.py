"""The code index: what the files of a snapshot define, use and import, kept by blob in a cache file.

    from subagents.index.opening import open_index
    from subagents.index.kept_brief import repository_brief

Nothing is imported here, so that asking for one module costs no other.
"""
