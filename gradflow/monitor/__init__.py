"""`gradflow.watch` as one calls it, and its callbacks for trainers.

`gradflow.watching`, below, measures, judges and writes the log, and knows no terminal;
`gradflow.present` draws, and knows no training. Here they meet.
"""
