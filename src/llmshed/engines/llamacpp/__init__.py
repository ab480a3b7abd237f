"""What of llama.cpp's server is read to measure a replica of it; it is not served by the gateway."""
