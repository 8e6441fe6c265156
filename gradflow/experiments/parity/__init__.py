"""Do two cells compute the same, forward and backward? And if not: where, and which is which?

`setup`, `problem` and `mapping` bring two sides to one `bench`, `compare` holds them against each
other, `blame` finds the first difference, `variants`, `identify`, `gates` and `explain` tell what
it is; `answer`, `checks`, `notes` and `words` say so. `comparison` puts them together.
"""

from gradflow.experiments.parity.comparison import parity as parity
from gradflow.experiments.parity.comparison import run_parity as run_parity
