from .reading import FORMATS as FORMATS
from .reading import Imported as Imported
from .reading import read as read
