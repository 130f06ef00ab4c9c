"""Databases that queries are run in: tables in, rows out."""

import json
import os
import sqlite3
import subprocess
import sys
from typing import ClassVar

import pytest

from databases import postgres_programs


class SqliteEngine:
    dialect = "sqlite"
    types: ClassVar = {"int": "INTEGER", "text": "TEXT", "real": "REAL"}

    def __init__(self, folder):
        self.connection = sqlite3.connect(":memory:")

    def table(self, name, kinds, rows):
        columns = ", ".join(f"`{column}` {self.types[kind]}" for column, kind in kinds.items())
        self.connection.execute(f"CREATE TABLE `{name}` ({columns})")
        marks = ", ".join("?" * len(kinds))
        self.connection.executemany(f"INSERT INTO `{name}` VALUES ({marks})", rows)

    def rows(self, query):
        return [tuple(row) for row in self.connection.execute(query).fetchall()]


class DuckDbEngine:
    dialect = "duckdb"
    types: ClassVar = {"int": "BIGINT", "text": "VARCHAR", "real": "DOUBLE"}

    def __init__(self, folder):
        import duckdb

        self.folder, self.connection = folder, duckdb.connect()

    def table(self, name, kinds, rows):
        columns = ", ".join(f'"{column}" {self.types[kind]}' for column, kind in kinds.items())
        self.connection.execute(f'CREATE TABLE "{name}" ({columns})')
        file = self.folder / f"{name}.duck.csv"
        file.write_text(as_csv(rows))
        self.connection.execute(f"COPY \"{name}\" FROM '{file}' (HEADER false, NULLSTR '\\N')")

    def rows(self, query):
        return self.connection.execute(query).fetchall()


class PostgresEngine:
    dialect = "postgresql"
    types: ClassVar = {"int": "bigint", "text": "text", "real": "double precision"}

    def __init__(self, folder, server):
        self.folder = folder
        self.url = server.database(f"engine_{abs(hash(folder))}")

    def table(self, name, kinds, rows):
        columns = ", ".join(f'"{column}" {self.types[kind]}' for column, kind in kinds.items())
        self._run(f'CREATE TABLE "{name}" ({columns})')
        file = self.folder / f"{name}.pg.csv"
        file.write_text(as_csv(rows))
        self._run(f"\\copy \"{name}\" FROM '{file}' (FORMAT csv, NULL '\\N')")

    def rows(self, query):
        said = self._run(f"SELECT row_to_json(q) FROM (\n{query}\n) AS q;")
        return [tuple(json.loads(line).values()) for line in said.splitlines()]

    def _run(self, command):
        done = subprocess.run(
            [postgres_programs() / "psql", self.url, "-v", "ON_ERROR_STOP=1", "-qXAt"],
            input=command, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout


class ClickHouseEngine:
    dialect = "clickhouse"
    types: ClassVar = {
        "int": "Nullable(Int64)",
        "text": "Nullable(String)",
        "real": "Nullable(Float64)",
    }

    def __init__(self, folder):
        from chdb.session import Session

        self.folder, self.session = folder, Session(str(folder / "clickhouse"))
        self.session.query("CREATE DATABASE tests")
        self.session.query("USE tests")

    def table(self, name, kinds, rows):
        columns = ", ".join(f"`{column}` {self.types[kind]}" for column, kind in kinds.items())
        self.session.query(f"CREATE TABLE `{name}` ({columns}) ENGINE = Memory")
        file = self.folder / f"{name}.ch.csv"
        file.write_text(as_csv(rows))
        self.session.query(f"INSERT INTO `{name}` FROM INFILE '{file}' FORMAT CSV")

    def rows(self, query):
        settings = "SETTINGS output_format_json_quote_64bit_integers = 0"
        said = self.session.query(f"{query} {settings}", "JSONCompactEachRow")
        return [tuple(json.loads(line)) for line in str(said).splitlines()]

    def close(self):
        self.session.close()


class SparkEngine:
    dialect = "spark"
    types: ClassVar = {"int": "bigint", "text": "string", "real": "double"}

    def __init__(self, folder, session):
        self.folder, self.session = folder, session

    def table(self, name, kinds, rows):
        schema = ", ".join(f"`{column}` {self.types[kind]}" for column, kind in kinds.items())
        file = self.folder / f"{name}.spark.csv"
        file.write_text(as_csv(rows))
        read = self.session.read.schema(schema).option("nullValue", "\\N").option("escape", '"')
        read.csv(str(file)).createOrReplaceTempView(name)

    def rows(self, query):
        return [tuple(row) for row in self.session.sql(query).collect()]


def spark_session():
    """A session in this process on two cores."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # of workers, which need btdagg
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )


def as_csv(rows):
    def cell(value):
        if value is None:
            return "\\N"
        return '"' + value.replace('"', '""') + '"' if isinstance(value, str) else str(value)

    return "".join(",".join(map(cell, row)) + "\n" for row in rows)


NAMES = [
    pytest.param(name, marks=() if name == "sqlite" else pytest.mark.integration)
    for name in ("sqlite", "duckdb", "postgresql", "clickhouse", "spark")
]
