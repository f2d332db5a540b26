"""The life of a closed period: the close, amendments, late events, bans and voids."""
