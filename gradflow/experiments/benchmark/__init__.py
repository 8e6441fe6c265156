"""The delayed-copy benchmark and its like: tasks, training, fair comparison."""

from gradflow.experiments.benchmark.one_run import train_one
from gradflow.experiments.benchmark.plan import plan_benchmark
from gradflow.experiments.benchmark.run import benchmark_tasks, compare, run_benchmark

__all__ = ["benchmark_tasks", "compare", "plan_benchmark", "run_benchmark", "train_one"]
