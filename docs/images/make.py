"""Make the images of the README and of the pages again, each by the command beside its name.

python docs/images/make.py            # into docs/images
python docs/images/make.py FOLDER     # somewhere else
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

IMAGES = {
    "decay.svg": "decay",
    "departure.svg": "decay --candidate-gain 0,0.25,0.5,0.75,1,1.25,1.5,1.75,2,2.5,3",
    "watch.svg": "watch examples/watched_training.jsonl",
}
HERE = Path(__file__).resolve().parent


def make_image(name: str, folder: Path) -> Path:
    """Run the command of an image and put its figure of that name into `folder`."""
    with tempfile.TemporaryDirectory() as run:
        words = ["gradflow", *shlex.split(IMAGES[name]), "--quiet", "--out", f"{run}/run"]
        command = [sys.executable, "-m", *words]
        subprocess.run(command, check=True, cwd=HERE.parent.parent, stdout=subprocess.DEVNULL)
        return Path(shutil.copy(f"{run}/run/figures/{name}", folder / name))


if __name__ == "__main__":
    target = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else HERE
    for image in IMAGES:
        sys.stdout.write(f"{make_image(image, target)}\n")
