"""What a report says of each question. A new command is a file here and a line in the list."""

from __future__ import annotations

from gradflow.present.report.question import Question
from gradflow.present.report.questions.benchmark import BENCHMARK
from gradflow.present.report.questions.decay import DECAY
from gradflow.present.report.questions.depth import DEPTH
from gradflow.present.report.questions.inits import INITS
from gradflow.present.report.questions.inspect import INSPECT
from gradflow.present.report.questions.params import PARAMS
from gradflow.present.report.questions.parity import PARITY
from gradflow.present.report.questions.saturate import SATURATE
from gradflow.present.report.questions.spectrum import SPECTRUM
from gradflow.present.report.questions.speed import SPEED
from gradflow.present.report.questions.step import STEP
from gradflow.present.report.questions.watch import WATCH

# In the order in which a report asks them: from the single step to whole models.
_ORDER = (
    DECAY,
    DEPTH,
    SPECTRUM,
    INITS,
    SATURATE,
    PARITY,
    PARAMS,
    STEP,
    BENCHMARK,
    WATCH,
    INSPECT,
    SPEED,
)
QUESTIONS: dict[str, Question] = {question.command: question for question in _ORDER}


def question_of(command: str) -> Question:
    """Return the question of a command; one that has no words of its own is asked by its name.

    >>> question_of("decay").command, question_of("news").title
    ('decay', 'gradflow news')
    """
    return QUESTIONS.get(command) or Question(command=command, title=f"gradflow {command}")
