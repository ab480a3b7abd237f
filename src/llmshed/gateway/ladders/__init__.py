"""What the gateway keeps of its ladders outside of the core: files, what people did, and how good fallbacks are."""
