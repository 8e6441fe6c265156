"""One question per file: settings in, record out."""
