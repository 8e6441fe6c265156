"""Timings, run by hand: no test that `pytest` collects depends on how fast a machine is.

gradflow speed --config speed                        the measurement beside the usual ways
pytest tests/benchmarks/bench_engine.py              single parts, by pytest-benchmark
pytest tests/benchmarks/bench_engine.py -k curves    one of them
"""
