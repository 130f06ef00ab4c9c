from .regimes import (
    REGIMES as REGIMES,
)
from .simulation import (
    simulate as simulate,
)
from .sums import (
    simulated_pairs as simulated_pairs,
)
from .thurstone import (
    Thurstone as Thurstone,
)
