"""The manual pages of this version, read as resources by `llmshed man`."""
