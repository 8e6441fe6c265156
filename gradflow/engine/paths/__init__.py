"""Along which paths the state at step 0 is felt: through the keep gate, or around it."""

from gradflow.engine.paths.path_norms import PathNorms, path_norms

__all__ = ["PathNorms", "path_norms"]
