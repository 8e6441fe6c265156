"""Timings, run by hand: no test that `pytest` collects depends on how fast a machine is.

`gradflow speed --config speed` times the measurement beside the usual ways, and
`pytest tests/benchmarks/bench_engine.py` times single parts of it by pytest-benchmark.
"""
