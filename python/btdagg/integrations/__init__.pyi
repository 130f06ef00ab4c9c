from . import (
    annotations as annotations,
)
from . import (
    arrow as arrow,
)
from . import (
    inspect as inspect,
)
from . import (
    langfuse as langfuse,
)
from . import (
    mlflow as mlflow,
)
from . import (
    opentelemetry as opentelemetry,
)
from . import (
    phoenix as phoenix,
)
from . import (
    pytest as pytest,
)
from . import (
    sklearn as sklearn,
)
