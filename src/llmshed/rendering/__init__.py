"""Pages and drawings from results: text in memory, no file, no network."""
