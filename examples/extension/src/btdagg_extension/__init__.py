"""A method, a format and a judge, each a function that pyproject.toml names."""
