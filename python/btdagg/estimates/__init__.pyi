from .certificate import Certificate as Certificate
from .change import change as change
from .looks import worth_a_look as worth_a_look
from .non_inferiority import not_worse as not_worse
from .sample_design import choose as choose
