from .content import Content as Content
from .reading import FORMATS as FORMATS
from .reading import read as read
from .reading import read_grades as read_grades
