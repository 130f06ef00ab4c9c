from . import (
    datasets as datasets,
)
from . import (
    estimates as estimates,
)
from . import (
    evaluation as evaluation,
)
from . import (
    formats as formats,
)
from . import (
    integrations as integrations,
)
from . import (
    judge as judge,
)
from . import (
    methods as methods,
)
from . import (
    model as model,
)
from . import (
    online as online,
)
from . import (
    paper as paper,
)
from . import (
    report as report,
)
from . import (
    votes as votes,
)
from ._core import __version__ as __version__
from ._util.errors import InputError as InputError
from .evaluation.metrics import (
    mean_absolute_error as mean_absolute_error,
)
from .evaluation.metrics import (
    pairwise_accuracy as pairwise_accuracy,
)
from .evaluation.protocol import Protocol as Protocol
from .inference.anytime import ConfidenceSequence as ConfidenceSequence
from .inference.significance import (
    paired_permutation_test as paired_permutation_test,
)
from .inference.significance import (
    pairwise_pvalues as pairwise_pvalues,
)
from .inference.significance import (
    rank_clusters as rank_clusters,
)
from .methods.majority import majority_vote as majority_vote
from .model.bootstrap import bootstrap as bootstrap
from .model.calibration import Bounds as Bounds
from .model.calibration import Calibration as Calibration
from .model.covariates import Covariate as Covariate
from .model.davidson import DavidsonModel as DavidsonModel
from .model.fit import calibrate as calibrate
from .model.fit import calibrate_panel as calibrate_panel
from .model.grades import GradeModel as GradeModel
from .model.panel import PanelModel as PanelModel
from .model.prior import Prior as Prior
from .model.prior import fit_prior as fit_prior
from .project import Columns as Columns
from .project import Project as Project
from .questions.agreement import agreement as agreement
from .questions.bias import bias as bias
from .questions.certify import certify as certify
from .questions.compare import compare as compare
from .questions.decide import decide as decide
from .questions.decisions import decisions as decisions
from .questions.difference import difference as difference
from .questions.difference import differences as differences
from .questions.estimate import estimate as estimate
from .questions.evaluate import evaluate as evaluate
from .questions.recalibrate import recalibrate as recalibrate
from .questions.systems import estimate_systems as estimate_systems
from .votes.join import (
    align as align,
)
from .votes.labels import (
    Labels as Labels,
)
from .votes.labels import (
    read_labels as read_labels,
)
from .votes.scale import (
    PAIRS as PAIRS,
)
from .votes.scale import (
    PASS_FAIL as PASS_FAIL,
)
from .votes.scale import (
    Scale as Scale,
)
from .votes.scores import read_scores as read_scores
from .votes.standings import standing as standing
from .votes.votes import (
    Votes as Votes,
)
from .votes.votes import (
    read_votes as read_votes,
)
from .votes.votes import (
    tally as tally,
)
