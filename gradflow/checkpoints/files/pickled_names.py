"""Which classes and functions a pickle names, read without running it, and what they mean.

A pickle is a small program that calls what it names. torch.load(weights_only=True) calls nothing
but what builds tensors; a file that names more is refused, and to say why one has to know the
names. They are listed here by disassembling the program (`pickletools`), which runs none of it.
"""

from __future__ import annotations

import pickletools
import re
from collections.abc import Iterable, Iterator
from typing import IO

_LEGACY_PICKLES = 5  # torch's old format: a number, a version, facts of the system, data, keys
_OLD_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg"}  # as Python 2 wrote them

# What torch itself builds tensors from.
_TENSORS = re.compile(
    r"torch\._utils\._rebuild_\w+|torch\._tensor\._rebuild_from_type_v2|torch\.\w*Storage|"
    r"torch\.storage\.\w+|torch\.(Size|device|Tensor|serialization\._get_layout)|"
    r"torch\.nn\.parameter\.(Parameter|Buffer)|collections\.(OrderedDict|Counter)|_codecs\.encode|"
    r"torch\.(b?float|u?int|complex|quint|qint|bool|half|double|long|short|per_)\w*|"
    r"builtins\.(set|bytearray|complex)"
)
# Facts beside the weights (hyper-parameters, a best loss, a date), which nobody needs alive here.
_FACTS = re.compile(
    r"argparse\.Namespace|types\.SimpleNamespace|functools\.partial|fractions\.Fraction|"
    r"decimal\.Decimal|uuid\.UUID|zoneinfo\.ZoneInfo(\._unpickle)?|"
    r"collections\.(defaultdict|deque)|pathlib\.\w+|pathlib\._local\.\w+|"
    r"datetime\.(datetime|date|time|timedelta|timezone)|copyreg\._reconstructor|"
    r"builtins\.(list|dict|tuple|frozenset|int|float|str|bool|bytes|slice|range|object)|"
    r"typing\.(Any|Union|Optional)|numpy\.(_?core|_core)\.(multiarray|numeric)\.\w+|"
    r"numpy\.(dtype|ndarray|float16|float32|float64|int32|int64|bool_|random\.\w+)|"
    r"numpy\.dtypes\.\w+|omegaconf\.\w+\.\w+|torch\.torch_version\.TorchVersion|"
    r"torch\.optim\.\w+\.\w+|(pytorch_lightning|lightning|lightning_fabric)\.[\w.]*AttributeDict"
)
_MODULES = re.compile(r"torch\.nn\.(modules\.|utils\.)|torch\.fx\.|torch\._dynamo")
_QUANTISED = re.compile(r"torch\.(_C\.)?ScriptObject|torch\.ao\.nn\.quantized|torch\.nn\.quantized")
_HOSTILE = re.compile(
    r"(os|posix|nt|subprocess|sys|pty|socket|shutil|runpy|importlib|webbrowser|ctypes|code|pdb|"
    r"urllib\.\w+|http\.\w+|pip(\.\w+)*|multiprocessing\.\w+|asyncio\.\w+|timeit|bdb)\.\w+|"
    r"builtins\.(eval|exec|compile|open|__import__|globals|input|breakpoint)|"
    r"_?operator\.(attrgetter|methodcaller)|torch\.(load|jit\.\w+|hub\.\w+|ops\.\w+)|pickle\.\w+"
)


def names_in_pickle(stream: IO[bytes], *, legacy: bool = False) -> list[str]:
    """Return the dotted names that a pickle would look up, in order, each once.

    Args:
        stream: at the pickle's beginning.
        legacy: whether several pickles follow each other, as in torch's old format.

    Raises:
        ValueError: it is no pickle, or it is cut off.
    """
    found: dict[str, None] = {}
    for _ in range(_LEGACY_PICKLES if legacy else 1):
        found |= dict.fromkeys(_names(stream))
    return list(found)


def refused_names(names: Iterable[str]) -> list[str]:
    """Return the names that are neither tensors nor plain facts.

    >>> refused_names(["torch.FloatStorage", "argparse.Namespace", "__main__.Net"])
    ['__main__.Net']
    """
    return [n for n in names if not (_TENSORS.fullmatch(n) or is_fact(n))]


def is_fact(name: str) -> bool:
    """Return whether a name only holds facts, so that something inert may stand in for it."""
    return _FACTS.fullmatch(name) is not None


def is_hostile(name: str) -> bool:
    """Return whether no checkpoint has an honest use for this name.

    >>> is_hostile("posix.system"), is_hostile("__main__.Net")
    (True, False)
    """
    return _HOSTILE.fullmatch(name) is not None


def is_of_module(name: str) -> bool:
    """Return whether a name is a layer's or a model's, so that a whole module was pickled."""
    return _MODULES.match(name) is not None


def is_of_quantised(name: str) -> bool:
    """Return whether a name holds weights that torch packed as whole numbers."""
    return _QUANTISED.match(name) is not None


def _names(stream: IO[bytes]) -> Iterator[str]:
    """Yield the names of one pickle: GLOBAL says them, STACK_GLOBAL takes them from two strings."""
    strings: list[str] = []
    kept: dict[int, str] = {}
    for opcode, argument, _ in pickletools.genops(stream):
        if opcode.name == "GLOBAL":
            yield _dotted(*str(argument).split(" ", 1))
        elif opcode.name == "STACK_GLOBAL" and len(strings) > 1:
            yield _dotted(strings[-2], strings[-1])
        elif isinstance(argument, str) and opcode.name != "PERSID":
            strings.append(argument)
        elif opcode.name == "MEMOIZE" and strings:
            kept[len(kept)] = strings[-1]
        elif opcode.name in ("BINPUT", "LONG_BINPUT") and strings:
            kept[int(str(argument))] = strings[-1]
        elif opcode.name in ("BINGET", "LONG_BINGET"):
            strings.append(kept.get(int(str(argument)), "?"))


def _dotted(module: str, name: str) -> str:
    return f"{_OLD_MODULES.get(module, module)}.{name}"
