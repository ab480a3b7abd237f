"""Both listeners told in OpenAPI 3.1, made from the tables that the gateway itself goes by."""
