from .answers import (
    parse_verdict as parse_verdict,
)
from .client import (
    BatchClient as BatchClient,
)
from .client import (
    ChatError as ChatError,
)
from .client import (
    ChatReply as ChatReply,
)
from .client import (
    ChatRequest as ChatRequest,
)
from .client import (
    FunctionClient as FunctionClient,
)
from .client import (
    Token as Token,
)
from .client import (
    Usage as Usage,
)
from .client import (
    Verdict as Verdict,
)
from .jobs import (
    estimate as estimate,
)
from .jobs import (
    judge as judge,
)
from .judging import (
    Judging as Judging,
)
from .pairs import (
    Pair as Pair,
)
from .pairs import (
    Pairs as Pairs,
)
from .pairs import (
    read_pairs as read_pairs,
)
from .prices import (
    Prices as Prices,
)
from .prompts import (
    TEMPLATES as TEMPLATES,
)
from .prompts import (
    PromptTemplate as PromptTemplate,
)
from .prompts import (
    get_template as get_template,
)
from .provider import (
    ModelClient as ModelClient,
)
from .runs import (
    Limits as Limits,
)
from .store.database import (
    StoreError as StoreError,
)
from .store.store import (
    VoteStore as VoteStore,
)
