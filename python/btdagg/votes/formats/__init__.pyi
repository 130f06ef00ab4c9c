from .reading import FORMATS as FORMATS
from .reading import Imported as Imported
from .reading import read as read
from .storing import Stored as Stored
from .storing import store_votes as store_votes
