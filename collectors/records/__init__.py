"""Record sources: services and databases that know what an agent's calls came to. They are only ever read (docs/records.md)."""
