"""What an engine looks like from outside: one adapter a file, no waiting, bytes and parsed JSON in, values out."""
