"""Questions about all items, from a few labels; `btdagg` itself names those that are asked most."""

from btdagg.questions.certify import Certificate
from btdagg.questions.change import change
from btdagg.questions.choose import choose
from btdagg.questions.gate import not_worse
from btdagg.questions.review import worth_a_look

__all__ = ["Certificate", "change", "choose", "not_worse", "worth_a_look"]
