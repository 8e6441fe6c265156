"""The door: one short command per file; it parses, calls one function, shows and saves."""
