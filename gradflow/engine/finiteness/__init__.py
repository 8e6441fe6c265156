"""Why a run is not finite: an honest overflow, or a fault of the cell."""
