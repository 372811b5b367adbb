"""Whether an engine keeps the contract: rules, and what of a stream of OTLP requests breaks them."""
