from . import (
    formats as formats,
)
from .histogram import (
    read_histogram as read_histogram,
)
from .items import (
    Confidences as Confidences,
)
from .items import (
    Items as Items,
)
from .join import (
    align as align,
)
from .labels import (
    Labels as Labels,
)
from .labels import (
    read_labels as read_labels,
)
from .provenance import (
    Provenance as Provenance,
)
from .provenance import (
    ProvenanceWarning as ProvenanceWarning,
)
from .scale import (
    PAIRS as PAIRS,
)
from .scale import (
    PASS_FAIL as PASS_FAIL,
)
from .scale import (
    Scale as Scale,
)
from .sides import (
    Sides as Sides,
)
from .source import (
    read_table as read_table,
)
from .table import (
    Table as Table,
)
from .votes import (
    Votes as Votes,
)
from .votes import (
    read_votes as read_votes,
)
from .votes import (
    tally as tally,
)
