"""The store: facts, what is folded from them, and every read of either. Embedded (chDB) or on a server, with one SQL."""
