"""The replicas that the gateway stands before: met, checked, watched, and told to the core."""
