from .regimes import (
    REGIMES as REGIMES,
)
from .simulation import (
    simulate as simulate,
)
from .thurstone import (
    Thurstone as Thurstone,
)
