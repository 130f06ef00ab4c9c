from .by_id import (
    as_items as as_items,
)
from .facts import (
    Confidences as Confidences,
)
from .facts import (
    Facts as Facts,
)
from .items import (
    Draw as Draw,
)
from .items import (
    Items as Items,
)
from .items import (
    Origin as Origin,
)
from .join import (
    with_task as with_task,
)
from .provenance import (
    Provenance as Provenance,
)
from .provenance import (
    ProvenanceWarning as ProvenanceWarning,
)
from .source import (
    read_table as read_table,
)
from .table import (
    Table as Table,
)
