from . import (
    formats as formats,
)
from .evidence import (
    Confidences as Confidences,
)
from .evidence import (
    Evidence as Evidence,
)
from .histogram import (
    read_histogram as read_histogram,
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
from .panel import (
    panel_counts as panel_counts,
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
